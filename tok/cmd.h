/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CMD_H
#define TOK_CMD_H

/*
 * The verbs of the program `tok`. The files cmd*.c and main.c are the program, not the library:
 * they may write to stdout and log.
 */

#include "base/cli/opt.h"
#include "base/io/sink.h"
#include "tok/stream/documents.h"
#include "tok/learn/out.h"
#include "tok/tokenizer/options.h"
#include "tok/edit/recipe.h"
#include "tok/learn/sp/library_trainer.h"

/* The verbs, in the order of help: a row for each, with its function; cmd_table.c has their texts.
 */
#define CMD_VERB_LIST(X)                                                                           \
    X(TRAIN, cmd_train)                                                                            \
    X(ENCODE, cmd_encode)                                                                          \
    X(DECODE, cmd_decode)                                                                          \
    X(INSPECT, cmd_inspect)                                                                        \
    X(DIFF, cmd_diff)                                                                              \
    X(CONVERT, cmd_convert)                                                                        \
    X(EXTEND, cmd_extend)                                                                          \
    X(MERGE, cmd_merge)                                                                            \
    X(PRUNE, cmd_prune)

#define CMD_VERB_MEMBER(verb, function) CMD_VERB_##verb,
enum cmd_verb { CMD_VERB_LIST(CMD_VERB_MEMBER) };

enum cmd_format { CMD_TEXT, CMD_JSON, CMD_U16, CMD_U32, CMD_DOCS };

#define CMD_FORMATS "text|json|u16|u32|docs"
/* --output_format: ids and pieces in turn, for each of enum cmd_shape */
#define CMD_SHAPES "id|piece|nbest_id|nbest_piece|sample_id|sample_piece"

enum cmd_shape { CMD_BEST, CMD_NBEST, CMD_SAMPLE };

#define CMD_DECODE_FORMATS "text|json" /* the first two of enum cmd_format */

/*
 * --input-format of decode: follows enum docs_format; the formats that --format u16 and u32 write
 */
enum cmd_input { CMD_IN_U16 = DOCS_JSONL + 1, CMD_IN_U32 };

#define CMD_DECODE_INPUTS "auto|text|jsonl|u16|u32"

/* --type of train */
enum cmd_type { CMD_SENTENCEPIECE, CMD_BPE, CMD_WORDPIECE };

#define CMD_TYPES "sentencepiece|bpe|wordpiece"

/* Sections of options, by the types they apply to. */
#define CMD_OWN "bpe and wordpiece"
#define CMD_BYTES "byte-level bpe"
#define CMD_PIECES "wordpiece"

struct compare;
struct facts;

struct cli {
    struct opt_common common;
    struct tok_flags tok;
    struct sp_train_options train;

    struct opt_list input; /* --input of train; other files are arguments of the verb */
    const char *model_prefix;
    int input_format; /* enum docs_format; of decode also enum cmd_input */
    /* --json-keys of train, encode, decode */
    struct opt_list json_keys;
    const char *text_key, *ids_key;

    int pieces;  /* --output_format, an index into CMD_SHAPES */
    int format;  /* enum cmd_format */
    int offsets; /* encode: 0 none, else an enum tok_unit and one */
    const char *output;
    bool overwrite;   /* of all verbs that write files */
    bool allow_empty; /* train */
    bool append_eod;
    bool skip_special;      /* decode */
    const char *truncation; /* encode: a number, or "file" */
    int truncation_side;    /* 0 as the file says, 1 right, 2 left */
    int64_t stride;
    bool overflow;       /* encode: write the truncated rest as further documents */
    const char *padding; /* like truncation */
    int64_t workers;
    bool json;    /* inspect, diff, convert */
    int64_t show; /* diff: differing segments that are listed */
    int to;       /* convert: enum recipe_format */
    struct opt_list proof;

    struct opt_list corpus; /* inspect */
    const char *by;
    const char *verb; /* its name */
    const char *add;  /* extend: a file of tokens */
    struct opt_list add_special;
    struct opt_list keep_used; /* prune: a corpus */
    int64_t size;

    int type; /* enum cmd_type */
    /* for our own trainers */
    struct opt_list special_tokens;
    int64_t min_frequency, max_token_length, limit_alphabet;
    const char *continuing_subword_prefix, *end_of_word_suffix;
    int files;        /* enum learn_files */
    int64_t memory;   /* MiB, 0 for no limit */
    int pretokenizer; /* index into pretok_families */
    const char *pretokenizer_pattern;
    int digits; /* enum pretok_digits */
    const char *initial_alphabet;
    bool lowercase, clean_text, handle_chinese_chars;
    int strip_accents; /* 0 as lowercase, 1 yes, 2 no */
    int engine;        /* 0: our own, 1: SentencePiece's */

    const char **file; /* the other arguments */
    size_t nfile;
    struct opts *opts; /* where values come from */
};

static inline enum cmd_shape cmd_shape(const struct cli *c)
{
    return (enum cmd_shape)(c->pieces / 2);
}

static inline bool cmd_pieces(const struct cli *c)
{
    return c->pieces % 2;
}

/* encode: checks that its options are compatible. */
int cmd_check_encode(const struct cli *c, const struct tok_info *i, struct err *e);
/* The n best segmentations of a text, as text or JSON. */
void cmd_put_nbest(struct buf *b, const struct tokenizer *t, const struct cli *c,
                   struct tok_work *w, const char *text, size_t n, const struct tok_nbest *list);

/* diff: ERR_FAIL without a message: they differ, which is a finding and not an error. */
#define CMD_VERB_FUNCTION(verb, function) int function(const struct cli *c, struct err *e);
CMD_VERB_LIST(CMD_VERB_FUNCTION)

int cmd_train_folder(const struct cli *c, struct err *e); /* creates the folder if it is missing */
int cmd_learn(const struct cli *c, struct err *e);        /* our BPE and WordPiece trainers */
/* Whether --type, --engine and the other options select SentencePiece's own trainer. */
bool cmd_is_theirs(const struct cli *c);
/* Defaults that depend on --type of train. */
int cmd_learn_defaults(struct opts *o, const struct cli *c, struct err *e);
struct cmd_source;
uint64_t cmd_source_consumed(const struct cmd_source *s);
uint64_t cmd_source_total(const struct cmd_source *s);
/* Our SentencePiece trainers; the name of an option that they do not support, or NULL. */
const char *cmd_learn_sp_lacks(const struct sp_train_options *o);
int cmd_learn_sp(const struct cli *c, const struct sp_train_input *in, struct cmd_source *source,
                 struct buf *model, struct sp_train_report *report, struct err *e);
/* Reads --input and the other files, folders among them. */
int cmd_inputs(const struct cli *c, struct docs **ret, struct err *e);
/* ERR_DATA if there was no document, unless --allow-empty. */
int cmd_check_empty(const struct cli *c, const struct docs *docs, struct err *e);
/* docs_open by the options of c with the one key of --json-keys; warns of empty files. */
int cmd_open_docs(const struct cli *c, const struct docs_names *names, enum docs_format format,
                  struct docs **ret, struct err *e);
/* Warns of options that have no effect with these tokenizers, or of --json-keys if no file was
 * JSONL. */
void cmd_unused_warn(const struct cli *c, struct tokenizer *const *t, size_t n);
void cmd_unused_keys(const struct cli *c, bool had_keys);

/* The part of inspect that encodes. `r` may be NULL. */
int cmd_survey(const struct cli *c, struct facts *f, const struct tokenizer *t,
               const struct recipe *r, struct err *e);

/* Logs what a recipe's target does not keep. */
void cmd_say_notes(const struct recipe *r);

/* Opens what a recipe was written as, from the temporary files. */
int cmd_open_staged(const struct recipe *r, enum recipe_format format, enum tok_type type,
                    const struct recipe_file *staged, struct tokenizer **ret, struct err *e);

/* Runs a corpus through `with`; rows of `f` for the first `most` stretches. */
int cmd_compare(const struct cli *c, const char *const *path, size_t npath, struct compare *with,
                struct facts *f, uint64_t most, struct err *e);

/* encode --offsets: checks that it is compatible with the other options (cmd_offsets.c). */
int cmd_offsets_check(const struct cli *c, struct err *e);

/* encode --truncation and related options (cmd_window.c): reserves space for the end of document in
 * `ret`. */
int cmd_window(const struct cli *c, const struct tokenizer *t, struct tok_window *ret,
               struct err *e);

/*
 * cmd_output.c: the rule of base/io/output.h for files to be written, checked against everything
 * that the verb reads, with patterns and folders expanded. `t` is the open tokenizer, or NULL.
 * cmd_will_write also creates the folder, cmd_may_write changes nothing.
 */
int cmd_may_write(const struct cli *c, char *const *path, size_t n, const struct tokenizer *t,
                  struct err *e);
int cmd_will_write(const struct cli *c, const char *path, const struct tokenizer *t, struct err *e);

/* Adds a hint to a failure to open a file whose name looks like something to encode or decode. */
int cmd_missing(const struct cli *c, int code, const char *kind, struct err *e);

/* The options of the program, and its verbs. */
extern const struct opt_table tok_table;

#endif
