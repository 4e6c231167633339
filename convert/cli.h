/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_CLI_H
#define CONVERT_CLI_H

/* The options of convert, and its verbs. */

#include "base/cli/opt.h"
#include "base/core/buf.h"
#include "base/core/err.h"
#include "convert/vocabulary/rows.h"

struct cli {
    struct opt_common common;
    bool json, tensors, same;
    bool dry_run, overwrite;
    int64_t ranks, threads, shard_size, file_size;
    int64_t tp, pp, rank;
    const char *like, *adapter, *rows, *base;
    int dtype;   /* CLI_DTYPES */
    int to;      /* CLI_FORMATS */
    int outtype; /* GGUF_OUTTYPES */
    struct opt_list ignored_keys;
};

#define CLI_FORMATS "hf|gguf|peft"
enum { CLI_HF, CLI_GGUF, CLI_PEFT };
#define CLI_DTYPES "auto|float32|float16|bfloat16"

/* Writes a text to standard output. ERR_IO. */
int cli_write_out(const struct buf *b, struct err *e);

/* ERR_USAGE unless the verb has a source and a target, or a checkpoint at least. */
int cli_two_names(const struct opts *o, const char *verb, struct err *e);
int cli_needs_ckpt(const struct opts *o, const char *verb, struct err *e);

/* --rows, where it is given: *ret is `own`, which the caller finishes, else NULL. */
int cli_open_rows(const struct cli *v, struct vocab_rows *own, const struct vocab_rows **ret,
                  struct err *e);

/* The verbs, in the order of help: a row for each, with its function in verb_NAME.c; main.c has
 * their texts. Those that read any number of files log the error of each and return the code of the
 * first. */
#define CLI_VERB_LIST(X)                                                                           \
    X(INSPECT, cmd_inspect)                                                                        \
    X(VERIFY, cmd_verify)                                                                          \
    X(IMPORT, cmd_import)                                                                          \
    X(EXPORT, cmd_export)                                                                          \
    X(RESHARD, cmd_reshard)                                                                        \
    X(AVERAGE, cmd_average)

#define CLI_VERB_MEMBER(verb, function) CLI_VERB_##verb,
enum cli_verb { CLI_VERB_LIST(CLI_VERB_MEMBER) };

#define CLI_VERB_FUNCTION(verb, function)                                                          \
    int function(const struct opts *o, const struct cli *v, struct err *e);
CLI_VERB_LIST(CLI_VERB_FUNCTION)

#endif
