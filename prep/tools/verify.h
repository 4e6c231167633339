/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_VERIFY_H
#define PREP_TOOLS_VERIFY_H

/*
 * `prep verify`: all of a shard looked at in one pass (structure, every id, the manifest's digests
 * and counts), and the damage that can be mended mended.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/tools/repair.h"
#include "dataset/shard/shard.h"
#include "tok/tokenizer/tokenizer.h"

struct verify_request {
    const char *prefix;
    const struct tokenizer *tok; /* bounds the ids, knows the end of document; may be NULL */
    int64_t vocab_size;          /* bounds the ids where no tokenizer is named; 0: the manifest's */
    bool repair;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
    void *arg;
};

struct verify_report {
    struct shard_stats stats; /* of a sound shard */
    bool sound;               /* it is now, perhaps after repair */
    bool has_manifest;
    bool packed;          /* a packed set: its .pack was looked at, too */
    int64_t limit;        /* ids are below; SHARD_ANY_ID: not known */
    int64_t eod;          /* -1: not known */
    struct repair repair; /* damage that was found and can be mended, or was */
    bool repaired;
};

/*
 * ERR_DATA for a shard that does not hold together (with `repair`: that cannot be mended), for an
 * id that is not of the vocabulary or a manifest of other data; ERR_INTEGRITY for bytes that are
 * not the manifest's; ERR_USAGE for another tokenizer's. `ret` is filled as far as it went.
 */
int verify_run(const struct verify_request *q, struct verify_report *ret, struct err *e);

#endif
