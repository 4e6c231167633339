/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_TOOLS_REPAIR_H
#define DATASET_TOOLS_REPAIR_H

/*
 * Shards that do not hold together, and how they are mended: from the lengths of the .idx, the
 * size of the .bin and the ids at the ends of documents. What cannot be told from these is left
 * alone. FORMAT.md, "Mending".
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

enum damage {
    DAMAGE_OFFSETS = 1, /* are not the running sum of the lengths */
    DAMAGE_EODS = 2,    /* each document's last token, its end, is not counted */
    DAMAGE_BOUNDS = 4,  /* the .idx was cut, or its documents end before its sequences do */
    DAMAGE_BIN = 8      /* the .bin was cut: the documents that are not whole go */
};

struct repair {
    unsigned damage; /* of enum damage; 0: nothing to mend */
    int64_t eod;     /* DAMAGE_EODS: the id that all documents end in */
    /* as it will be */
    uint64_t documents, sequences, tokens;
    uint64_t rebuilt; /* documents made of one sequence each, since theirs were lost */
    uint64_t lost;    /* documents that go */
};

/*
 * What is wrong with the shard, and what it will be when it is mended; `eod` is the end of document
 * if it is known, -1 if not. ERR_DATA, with the reason, where it cannot be mended.
 */
int repair_look(const char *prefix, int64_t eod, struct repair *ret, struct err *e);

/*
 * Mends it. The .bin is written only with DAMAGE_BIN, the .idx always, and the manifest if there is
 * one: its options then say "repaired", unless the .idx is again what it had a digest of.
 */
int repair_run(const char *prefix, int64_t eod, struct repair *ret, struct err *e);

/* The damage in words: "offsets, ends of document not counted". */
void repair_words(unsigned damage, char *ret, size_t n);

#endif
