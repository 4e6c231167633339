/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLI_OPT_H
#define BASE_CLI_OPT_H

/*
 * One table of options per program, from which all else is derived: parsing of the command line
 * and of TOML files, -h, --help, the man page, completion for bash, zsh and fish, --print-config.
 *
 *     program verb --key value --key=value --switch files
 *
 * '-' and '_' are alike in names; a switch takes no value but accepts =true and =false, and
 * --no-NAME; a list takes values up to the next option, separated by spaces or commas. An item with
 * a comma is written "in double quotes"; in a list of paths the name of an existing file is one
 * item, commas or not. A list that is repeated on the command line accumulates, with a warning
 * where users of another program expect the last to count, and replaces that of a file. "--" ends
 * the options. There are no abbreviations. Unknown names are ERR_USAGE, all in one message, each
 * with a suggestion. If a single option is repeated, the last value counts, with a warning if they
 * differ.
 *
 * A file's keys may stand at its top or in any [section] of the table, named by the heading in
 * lower case with '-' for blanks. A key of another verb of the program is accepted and not applied.
 * Two verbs may have options of one name that differ in all else.
 *
 * Values land in the program's own struct, at `offset`; precedence is default < preset < config
 * file < command line, and the origin of each value is kept. Strings live as long as the opts, and
 * are UTF-8.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/core/arena.h"
#include "base/core/err.h"

enum opt_type {
    OPT_SWITCH, /* bool */
    OPT_INT,    /* int64_t; 1_000, 1e9, 4k, 8M, 2G (decimal) are understood */
    OPT_REAL,   /* double */
    OPT_TEXT,   /* const char *, NULL when unset */
    OPT_CHOICE, /* int, index into choices */
    OPT_LIST    /* struct opt_list */
};

struct opt_list {
    const char **item;
    size_t n;
};

/*
 * For programs whose runs are saved and resumed: what becomes of an option that is another one than
 * that of the run which the checkpoint is of. The program compares; in base/cli nothing depends on
 * it. An option of which nobody has decided it is 0, and a test of the program finds it.
 */
enum opt_resumed {
    RESUMED_UNDECIDED,
    /* an error, where it makes another model or tokenizer: what it comes to is compared (the
     * model's configuration, the digest of the tokenizer's file, its size, the end of a document)
     */
    RESUMED_EQUAL,
    /* the new value counts, and a warning names both: what a step computes (data, batch, objective,
     * types, optimizer) */
    RESUMED_WARNED,
    /* likewise; the user may have the checkpoint's value count instead, or no warning: learning
     * rate and weight decay (--use-checkpoint-opt_param-scheduler, --override-opt_param-scheduler)
     */
    RESUMED_SCHEDULE,
    /* the new value counts: how a run is carried out, watched and saved; what its start alone reads
     * (initial weights and loss scale); where values come from that are compared themselves */
    RESUMED_FREE
};

/* Longest `brief`: a line of -h has 80 columns. A longer one aborts the program at startup. */
enum { OPT_BRIEF = 50 };

struct opt {
    const char *name; /* "micro-batch-size", or as the field spells it: "vocab_size" */
    enum opt_type type;
    size_t offset;     /* offsetof(struct xxx_options, member) */
    const char *def;   /* text of the default; NULL: 0, false, unset, empty */
    const char *unset; /* shown as the default if `def` is NULL: "the newest" */
    double min, max;   /* both 0: no bounds; max 1e18, or 0 with min > 0: no upper bound */
    const char *meta;  /* "N", "PATH"; for OPT_CHOICE "a|b|c" */
    const char *group; /* heading in --help, and table in the config file */
    bool paths;        /* of a list: files or prefixes; a name that exists is not split at commas */
    bool numbers;      /* of a list: its values are numbers, so another word ends it */
    /* of a list: the program that takes the last where it is given twice; a warning tells of it */
    const char *last_in;
    /* of a number: why another one after it is refused; NULL: that is a file */
    const char *single;
    unsigned verbs;    /* bit set of the verbs that take it; 0: all */
    const char *alias; /* other names, comma separated, or NULL */
    bool basic;        /* shown by -h; --help shows all */
    unsigned idle;     /* verbs that accept it without effect: not listed, with a warning */
    const char *needs; /* when it has an effect (see opts_warn_unused); NULL: always */
    enum opt_resumed resumed;
    /* each process of a job may have it in its own way, all others must be the same on all: names
     * of files whose contents are compared, what belongs to one machine, what is printed there */
    bool local;
    const char *brief; /* sentence of at most OPT_BRIEF columns for -h; NULL: the long one */
    const char *help;  /* long sentence, for --help and the man page; neither has a full stop */
};

/*
 * A row of a table: fields by their names, in the order of struct opt; omitted ones are 0.
 *
 *     OPT_ROW(.name = "seq-length", .type = OPT_INT, .offset = offsetof(struct job, seq_length),
 *             .def = "1024", .min = 1, .max = 1e7, .meta = "N", .group = "data",
 *             .verbs = RUN | EVAL, .basic = true, .resumed = RESUMED_WARNED,
 *             .brief = "tokens of a sequence",
 *             .help = "tokens of a sequence; the model must have as many positions"),
 */
#define OPT_ROW(...)                                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

struct opt_verb {
    const char *name;
    const char *args;     /* "[FILE...]" or "" */
    const char *help;     /* one line */
    const char *examples; /* lines for -h of the verb: begin with the program's name */
    bool takes_files;
};

/* A preset: a named set of values, applied by the option `preset`. */
struct opt_preset {
    const char *name, *help;
    const char *const (*values)[2]; /* pairs of name and text, ended by {NULL, NULL} */
};

/*
 * Options of another program that a verb takes over from its users' scripts: known by name and
 * accepted without effect, or rejected, with a reason for each: what follows "no effect: ", or "not
 * supported: ". A rejected one may be accepted with certain values. --no-NAME of a switch is always
 * accepted.
 */
struct opt_foreign {
    const char *name;
    enum { FOREIGN_SWITCH, FOREIGN_VALUE, FOREIGN_LIST } takes;
    bool rejected;
    const char *why;
    const char *accepted; /* values, comma separated, that are without effect; NULL: none */
    const char *why_then; /* their reason */
};

/*
 * A version of another program, whose users' command lines a verb takes, and the values that its
 * options have there, as those of a preset: what is given counts. The option `compat`, a choice
 * among the names of all dialects in their order, names one. Where it is not given, the first
 * dialect counts one of whose marks is on the command line.
 */
struct opt_dialect {
    const char *name;
    const char *who;                /* in sentences: "Megatron-LM v1.1.5" */
    const char *const (*mark)[2];   /* an option's name, as it is written, and NULL or one that must
                                     * be there, too; ended by {NULL, NULL}; may be NULL */
    const char *const (*values)[2]; /* as of a preset */
};

struct opt_table {
    const char *program, *help;
    const char *examples;              /* for -h of the program */
    const struct opt_verb *verb;       /* ended by a NULL name; its index is the bit in opt.verbs */
    const struct opt *opt;             /* ended by a NULL name */
    const struct opt_preset *preset;   /* ended by a NULL name; may be NULL */
    const struct opt_synonym *synonym; /* ended by a NULL name; may be NULL */
    unsigned verbose;                  /* bit set of the verbs where --verbose prints more */
    const struct opt_synonym *verb_synonym; /* the same for verbs; may be NULL */
    const struct opt_foreign *foreign;      /* ended by a NULL name; may be NULL */
    unsigned foreign_verbs;                 /* bit set of the verbs that take these */
    const struct opt_dialect *dialect;      /* ended by a NULL name; may be NULL */
};

/*
 * Names from other tools, as hints and not as aliases: for an unknown `name` the hint is "did you
 * mean --ours?" if the verb has that option; `text`, unless NULL, replaces "--ours". `ours` may be
 * NULL if there is a text. For a verb, `ours` is a verb of the program. A row whose `ours` does not
 * exist aborts the program at startup.
 */
struct opt_synonym {
    const char *name, *ours, *text;
};

/* Every program's struct begins with these; their options are part of every table. */
struct opt_common {
    bool help_short, help_long, version, man, print_config, quiet, verbose;
    const char *completion; /* bash, zsh, fish */
    const char *config;     /* TOML file */
    const char *preset;
};

enum opt_origin { FROM_DEFAULT, FROM_PRESET, FROM_FILE, FROM_FLAG };

struct opts {
    const struct opt_table *table;
    void *values;      /* the program's struct */
    int verb;          /* index, -1 if none was named */
    const char **file; /* the other arguments */
    size_t nfile;
    struct arena arena;    /* owns strings and lists */
    const char *swallowed; /* private: what a list took that may have been meant as a file */
    void *origin;          /* private: where each value came from */
    void *seen;            /* private: the options of the command line in their order */
    size_t nseen;
};

/*
 * Fills `values` (which begins with struct opt_common) from defaults, presets, file and flags.
 * ERR_USAGE names the option, what was given and what is expected; on failure there is nothing to
 * finish.
 */
int opts_init(struct opts *o, const struct opt_table *t, void *values, int argc, char **argv,
              struct err *e);

/*
 * For an error about a missing file argument, already in `e`: adds as a hint that a list option
 * took the last words ("--corpus took 'P.model' as a value"), if one did. Returns e->code.
 */
int opts_hint_swallowed(const struct opts *o, struct err *e);

/*
 * Prints what -h, --help, --version, --man, --completion or --print-config asks for on `out`. True
 * if one was given: the program is done (code 0). --man on a terminal goes through man(1).
 */
bool opts_answer(struct opts *o, FILE *out);

/*
 * Sets one value by name, with origin `from`: a value of higher precedence stays, and an option of
 * another verb is accepted and not applied. Presets, a checkpoint's configuration and tests use it.
 */
int opts_set(struct opts *o, enum opt_origin from, const char *name, const char *text,
             struct err *e);
/* As opts_set; `where` (NULL: none) is the origin that --print-config shows, "file a.json", and
 * must live as long as the opts. */
int opts_set_from(struct opts *o, enum opt_origin from, const char *where, const char *name,
                  const char *text, struct err *e);
enum opt_origin opts_origin(const struct opts *o, const char *name);

/* Whether the verb has an option of that name. */
bool opts_takes(const struct opts *o, const char *name);

/* Appends the i-th of an OPT_CHOICE's words. */
struct buf;
void opt_choice_word(const char *choices, int i, struct buf *out);

/* Whether an option of the verb is on: a switch that is set, a number other than 0, a text. */
bool opts_is_on(const struct opts *o, const char *name);

/*
 * A file of another program, `where`, decides the value, whatever the command line says. The option
 * is then as if a flag had given it; *ret_other: a flag has given another value, which opts_dry_run
 * tells. `text` NULL: a number that has no default is as if nobody had given it.
 */
int opts_overrule(struct opts *o, const char *where, const char *name, const char *text,
                  bool *ret_other, struct err *e);

/* The word that was probably meant, NULL if none is close. */
const char *opt_nearest_word(const char *const *words, size_t nwords, const char *name);

/*
 * The whole configuration of the verb as TOML, with a comment after each value naming its origin;
 * reading it back gives the same values.
 */
void opts_print_config(const struct opts *o, FILE *out);

/* Calls fn with the row and the value (as TOML; NULL: none) of each of these options, in the order
 * of the table. */
typedef void opt_value_fn(void *arg, const struct opt *row, const char *text);
void opts_each_value(const struct opts *o, opt_value_fn *fn, void *arg);

/*
 * Warns of every option that was given (by a flag, or by a file that changes its default) without
 * effect: its verb is among the row's `idle`, or its `needs` is not met. All programs call it once
 * per run, when the answers of `fact` are known. `needs` is a list of clauses, all of which must
 * hold; a clause is a list of alternatives, one of which must:
 *
 *     "split-sentences"                        that option is on, not 0, not empty
 *     "input-format=text, split-sentences"     it has that value, or the other is on
 *     "!pretokenized; output"                  the first is not given, and the second is
 *     "inspect: samples"                       under the verb `inspect` only
 *     "@sentencepiece"                         a fact that the program knows
 *
 * The warning names the option and what is missing: "--lang has no effect without
 * --split-sentences". Options that lack the same thing share a warning. Where ignoring an option
 * would change the result (a filter that cannot be applied), the program fails instead.
 *
 * `fact` (NULL if no row asks) returns NULL when the fact holds, else what follows "has no
 * effect": "with a WordPiece tokenizer", "in prep build, which ...".
 */
typedef const char *opt_fact_fn(void *arg, const char *fact);
void opts_warn_unused(const struct opts *o, opt_fact_fn *fact, void *arg);

/* Appends the same warnings to `ret`, one per line. */
void opts_unused(const struct opts *o, opt_fact_fn *fact, void *arg, struct buf *ret);

/* For what is known only later: "--json-keys has no effect: no input is JSONL", if it was given. */
void opts_warn_no_effect(const struct opts *o, const char *name, const char *why);

/* Warns of the foreign options of the command line that were accepted without effect: in one line
 * where the program has a --dry-run that tells the reasons, else in one line each. */
void opts_warn_foreign(const struct opts *o);

/* Says which dialect the names of the command line have chosen, and what it has set. */
void opts_tell_dialect(const struct opts *o);

/*
 * A dry run: prints each option of the command line, with what becomes of it, and a line that
 * counts them. A table with a switch `dry-run` has opts_init accept unknown and rejected options
 * where that is given. ERR_USAGE if there were any. `fact` as above.
 */
int opts_dry_run(const struct opts *o, opt_fact_fn *fact, void *arg, FILE *out, struct err *e);

/* The foreign option of that name, NULL if there is none. */
const struct opt_foreign *opts_foreign(const struct opt_table *t, const char *name, size_t n);

void opts_finish(struct opts *o);

#endif
