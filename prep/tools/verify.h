/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_VERIFY_H
#define PREP_TOOLS_VERIFY_H

/*
 * `prep verify`: checks all of a shard in one pass (structure, every id, the manifest's digests and
 * counts), and repairs damage that can be repaired.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/tools/repair.h"
#include "dataset/shard/shard.h"
#include "tok/tokenizer/tokenizer.h"

struct verify_request {
    const char *prefix;
    const struct tokenizer *tok; /* bounds the ids, has the end of document; may be NULL */
    bool tokenizer_differs;      /* from the one of the manifest: a warning */
    int64_t vocab_size;          /* bounds the ids without a tokenizer; 0: the manifest's */
    bool repair;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
    void *arg;
};

struct verify_report {
    struct shard_stats stats; /* of a sound shard */
    bool sound;               /* it is now, perhaps after a repair */
    bool has_manifest;
    bool packed;          /* a packed set: its .pack was checked, too */
    int64_t limit;        /* ids are below; SHARD_ANY_ID if unknown */
    int64_t eod;          /* -1: unknown */
    struct repair repair; /* damage that can be repaired, or was */
    bool repaired;
};

/*
 * ERR_DATA for an inconsistent shard (with `repair`: one that cannot be repaired), an id outside
 * the vocabulary, or a manifest of other data; ERR_INTEGRITY for bytes that differ from the
 * manifest's; ERR_USAGE for another tokenizer. `ret` is filled as far as it went.
 */
int verify_run(const struct verify_request *q, struct verify_report *ret, struct err *e);

#endif
