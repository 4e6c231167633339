/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_CLI_H
#define CONVERT_CLI_H

/* The options of convert, and its verbs that write. */

#include "base/cli/opt.h"
#include "base/core/buf.h"
#include "base/core/err.h"

struct cli {
    struct opt_common common;
    bool json, tensors, same;
    bool dry_run, overwrite;
    int64_t ranks, threads, shard_size, file_size;
    int64_t tp, pp, rank;
    const char *like, *adapter, *rows, *base;
    int dtype;   /* CLI_DTYPES */
    int to;      /* CLI_FORMATS */
    int outtype; /* enum gguf_outtype */
    struct opt_list ignored_keys;
};

#define CLI_FORMATS "hf|gguf|peft"
enum { CLI_HF, CLI_GGUF, CLI_PEFT };
#define CLI_DTYPES "auto|float32|float16|bfloat16"

/* Writes a text to standard output. ERR_IO. */
int cli_write_out(const struct buf *b, struct err *e);

/* A folder of Hugging Face as a checkpoint, and back. */
int cmd_import(const struct opts *o, const struct cli *v, struct err *e);
int cmd_export(const struct opts *o, const struct cli *v, struct err *e);

#endif
