/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_IMPORT_H
#define PREP_TOOLS_IMPORT_H

/*
 * `prep import`: token files of other tools (dataset/tools/foreign.h) concatenated into a shard.
 * Empty sequences are dropped, as Megatron-LM's tool does; documents are kept. Memory does not grow
 * with the files; the output is atomic.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/tools/foreign.h"
#include "dataset/shard/shard.h"
#include "tok/tokenizer/tokenizer.h"

/*
 * Expands names, patterns, and folders: of a folder all files of one kind, in byte order: .ds, else
 * .idx, else .npy, else .bin. For names_free.
 */
int import_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e);

struct import_request {
    const char *const *input;
    size_t n;
    struct foreign_options ask;
    const char *output; /* prefix */
    bool overwrite;
    const struct tokenizer *tok;       /* bounds the ids, named in the manifest; may be NULL */
    int64_t vocab_size;                /* bounds them without one; 0: unknown */
    const volatile sig_atomic_t *stop; /* may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* tokens; may be NULL */
    void *arg;
};

struct import_report {
    uint64_t documents, sequences, tokens;
    enum shard_dtype dtype;
};

/*
 * Tokens become u16 or i32, by the vocabulary's size as always; if that is unknown, u16 unless a
 * file has wider ones. ERR_DATA for malformed files and for ids outside the vocabulary.
 */
int import_run(const struct import_request *q, struct import_report *ret, struct err *e);

#endif
