/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_OPT_ROW_H
#define BASE_CLI_OPT_ROW_H

/*
 * Internal to option handling; only opt*.c include it. A `row` is an option by its index: first the
 * common ones that every program has, then those of the program's table.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/buf.h"
#include "base/cli/opt.h"

enum { NO_VERB = -1, NO_ROW = -1 };

/* What a common row is for; the rows of the table are all OPT_ROLE_VALUE. */
enum opt_role {
    OPT_ROLE_VALUE,
    OPT_ROLE_ANSWER /* --help and the like, and --config: no values, not in a file */
};

/* The origin of a row's value. */
struct opt_origin_row {
    enum opt_origin from;
    const char *where; /* "preset tiny", "file a.toml:3"; NULL: `from` says it all */
};

/* ---- the table as rows (opt_find.c) ---- */

/* NULL after the last row. */
const struct opt *opt_row(const struct opt_table *t, int row);
enum opt_role opt_role(const struct opt_table *t, int row);
bool opt_for_verb(const struct opt *o, int verb);

/* A common row that this program does not have: --preset without presets. */
bool opt_absent(const struct opt_table *t, int row);

/* Accepted by the verb without effect: opt.idle, a preset that sets nothing of the verb,
 * --verbose where nothing more is printed. */
bool opt_idle(const struct opt_table *t, int row, int verb);

/* '-' and '_' are alike. */
bool opt_same_name(const char *a, size_t na, const char *b);

/* The row of that name or alias among the verb's, else among all; NO_ROW if there is none. NO_VERB:
 * among all. */
int opt_find(const struct opt_table *t, int verb, const char *name, size_t n);

enum { OPT_NAME_SIZE = 80 };

/* The known name that was probably meant; false if none is close. */
bool opt_nearest(const struct opt_table *t, int verb, const char *name, size_t n,
                 char ret[OPT_NAME_SIZE]);

/* A name on the command line, not NUL-terminated. */
struct opt_name {
    const char *name;
    size_t n;
};

/* A suggestion for an unknown name: "--lr", or a sentence of the table of synonyms. False if there
 * is none. */
bool opt_meant(const struct opt_table *t, int verb, const char *name, size_t n, struct buf *ret);

/* As opt_meant, from the synonyms only. */
bool opt_synonym_of(const struct opt_table *t, int verb, const char *name, size_t n,
                    struct buf *ret);

/* ERR_USAGE for `n` >= 1 unknown names, each with its suggestion; `place` names program and verb.
 */
int opt_refuse_names(const struct opt_table *t, int verb, const char *place,
                     const struct opt_name *list, size_t n, struct err *e);

/* Begins with "no-", as the denial of a switch does. */
bool opt_denies(const char *name, size_t n);

/* Aborts if the table contradicts itself, two options of one name for one verb, or if a short
 * sentence does not fit its line. */
void opt_check_table(const struct opt_table *t);

/* ---- the command line as it was given (opt_foreign.c) ---- */

/* An option of the command line: a row of the table, a foreign one, or neither. */
struct opt_seen {
    struct opt_name name;
    int row;
    const struct opt_foreign *foreign;
    bool rejected;   /* of a foreign one */
    const char *why; /* of a foreign one, and of one that is overruled; else NULL */
};

void opt_note_seen(struct opts *o, int argc, const struct opt_seen *s);

/* The options of this row have no effect: `why`. */
void opt_note_overruled(struct opts *o, int row, const char *why);

/* The foreign option that this is, of a verb that takes them, or the denial of one; NULL: neither.
 */
const struct opt_foreign *opt_find_foreign(const struct opts *o, const char *name, size_t n);

/* What becomes of a foreign option that was given so, its value too (NULL: none). */
struct opt_seen opt_judge_foreign(const struct opt_foreign *f, const char *name, size_t n,
                                  const char *value);

/* ERR_USAGE with the option's reason. */
int opt_refuse_foreign(const struct opts *o, const struct opt_foreign *f, const char *place,
                       struct err *e);

/* A list that is given again: a warning where another program takes the last (opt.last_in). */
void opt_tell_joined(const struct opt *row, const char *const *before, size_t nbefore,
                     const char *const *now, size_t nnow);

/* ERR_USAGE: a number that is one alone was followed by another (opt.single). */
int opt_refuse_second(const struct opt *row, const char *first, const char *second, struct err *e);

/* Why a row has no effect, appended to `why`; false if it may have one (opt_unused.c). */
bool opt_unused_why(const struct opts *o, int row, opt_fact_fn *fact, void *arg, struct buf *why);

/* ---- values (opt_value.c) ---- */

/* The texts of one value. */
struct opt_texts {
    const char *const *text;
    size_t n;
    bool verbatim; /* a list's texts are its items; else they are split at commas */
};

/* Parses the value of `row` and stores it. Error messages begin with `label`. */
int opt_store(struct opts *o, int row, const char *label, const struct opt_texts *value,
              struct err *e);

/* A row's value as TOML; false for an unset text, which TOML cannot express. */
bool opt_value_text(const struct opts *o, int row, struct buf *b);

/* "from 1 to 100", "at least 1", or nothing. */
void opt_bounds_text(const struct opt *o, char *ret, size_t size);

/* As opt_store, and records the origin; a value of higher precedence stays. */
int opt_apply(struct opts *o, int row, const struct opt_origin_row *origin, const char *label,
              const struct opt_texts *value, struct err *e);

/* ---- sources (opt_config.c) ---- */

struct toml_file;

/* Checks every key of the file, and applies those of the verb. */
int opt_apply_file(struct opts *o, const char *path, const struct toml_file *t, struct err *e);
int opt_apply_preset(struct opts *o, const char *name, struct err *e);

/* After the command line: the dialect that the option `compat` names, or that the names of the
 * command line choose (opt_dialect.c). */
int opt_apply_dialect(struct opts *o, struct err *e);

/* The value of the file's key `preset`, NULL if it has none. */
const char *opt_file_preset(const struct toml_file *t);

/* ---- answers (opt_help.c, opt_man.c, opt_complete.c) ---- */

void opt_print_short(const struct opts *o, FILE *out);
void opt_print_long(const struct opts *o, FILE *out);
void opt_print_version(const struct opts *o, FILE *out);
void opt_print_man(const struct opts *o, FILE *out);
void opt_print_completion(const struct opts *o, const char *shell, FILE *out);

/* Sections in the order of their first rows that the verb takes: the next one after `last`, or
 * NULL. */
const char *opt_next_section(const struct opt_table *t, int verb, const char *last);

/* A row's section, "" for none. */
const char *opt_section(const struct opt *row);

/* Program and verb for messages: "tok train". */
const char *opt_place(struct opts *o);

/* The name of a section in a file: lower case, '-' for blanks. */
void opt_slug(const char *section, char *ret, size_t size);

#endif
