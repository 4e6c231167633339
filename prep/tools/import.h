/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_IMPORT_H
#define PREP_TOOLS_IMPORT_H

/*
 * `prep import`: token files of other tools (dataset/tools/foreign.h) into a shard, one file behind
 * the other. Sequences without tokens are left out, as Megatron-LM's tool does; documents stay.
 * Memory does not grow with the files; the output appears whole.
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
 * The files that are meant: each name, what a pattern matches, and for a folder all of one kind in
 * it in byte order: .ds, else .idx, else .npy, else .bin. For names_free.
 */
int import_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e);

struct import_request {
    const char *const *input;
    size_t n;
    struct foreign_options ask;
    const char *output; /* prefix */
    bool overwrite;
    const struct tokenizer *tok;       /* bounds the ids, and goes into the manifest; may be NULL */
    int64_t vocab_size;                /* bounds them without one; 0: not known */
    const volatile sig_atomic_t *stop; /* may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* tokens; may be NULL */
    void *arg;
};

struct import_report {
    uint64_t documents, sequences, tokens;
    enum shard_dtype dtype;
};

/*
 * Tokens become u16 or i32, by the vocabulary's size as always; if that is not known, u16 where no
 * file has wider ones. ERR_DATA for what is malformed and for ids beyond the vocabulary.
 */
int import_run(const struct import_request *q, struct import_report *ret, struct err *e);

#endif
