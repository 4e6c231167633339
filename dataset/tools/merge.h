/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_TOOLS_MERGE_H
#define DATASET_TOOLS_MERGE_H

/*
 * Several shards joined into one, byte for byte as Megatron-LM's IndexedDatasetBuilder.add_index
 * does: lengths and modes one behind the other, document entries shifted, offsets counted anew, the
 * .bin files one behind the other. Memory does not grow with the shards.
 */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

/*
 * Prefixes that are meant by what a user names: a prefix, with or without .bin or .idx behind it, a
 * pattern of prefixes, or a folder, which stands for all shards in it in byte order of their names
 * (as Megatron's tool sorts them). A .bin in a folder without its .idx, or the other way round, is
 * ERR_DATA; a folder or pattern without shards ERR_IO. Fresh names, for names_free.
 */
int merge_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e);

/* All names in a folder that end so, without that end, with the folder before them; as above. */
int merge_list(const char *folder, const char *end, char ***ret, size_t *ret_n, struct err *e);

struct merge_request {
    const char *const *prefix; /* in the order in which they are joined */
    size_t n;
    const char *output; /* prefix */
    bool overwrite;
    const volatile sig_atomic_t *stop; /* not 0: stop as soon as may be, ERR_FAIL; may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes of .bin; may be NULL */
    void *arg;
};

struct merge_report {
    uint64_t documents, sequences, tokens;
    size_t unknown; /* shards without a manifest: then no tokenizer is named in the new one */
    bool mixed_eod; /* some have an end of document appended, others not */
};

/*
 * ERR_USAGE for types, modes or tokenizers that are not the same, packed sets, an output that is
 * there or among the inputs, more sequences than an .idx holds. ERR_DATA for a shard that does not
 * hold together.
 */
int merge_run(const struct merge_request *q, struct merge_report *ret, struct err *e);

#endif
