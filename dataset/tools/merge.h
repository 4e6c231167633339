/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_TOOLS_MERGE_H
#define DATASET_TOOLS_MERGE_H

/*
 * Several shards merged into one, byte for byte as Megatron-LM's IndexedDatasetBuilder.add_index
 * does: lengths, modes and .bin files concatenated, document entries shifted, offsets recomputed.
 * Memory does not grow with the shards.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

/*
 * Expands what a user names to prefixes: a prefix, with or without .bin or .idx, a pattern of
 * prefixes, or a folder, which stands for all its shards in byte order of their names (Megatron's
 * order). A .bin in a folder without its .idx, or the reverse, is ERR_DATA; a folder or pattern
 * without shards ERR_IO. New names, for names_free.
 */
int merge_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e);

/* All files in a folder with suffix `end`: folder and name, without the suffix; as above. */
int merge_list(const char *folder, const char *end, char ***ret, size_t *ret_n, struct err *e);

struct merge_request {
    const char *const *prefix; /* in the order of merging */
    size_t n;
    const char *output; /* prefix */
    bool overwrite;
    bool tokenizer_differs;            /* a warning: all are taken to have the first one's */
    const volatile sig_atomic_t *stop; /* not 0: stop soon, ERR_FAIL; may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes of .bin; may be NULL */
    void *arg;
};

struct merge_report {
    uint64_t documents, sequences, tokens;
    size_t unknown; /* shards without a manifest: then the new one names no tokenizer */
    bool mixed_eod; /* some have appended ends of document, others not */
};

/*
 * ERR_USAGE for different types, modes or tokenizers, packed sets, an output that exists or is an
 * input, more sequences than an .idx can have. ERR_DATA for an inconsistent shard.
 */
int merge_run(const struct merge_request *q, struct merge_report *ret, struct err *e);

#endif
