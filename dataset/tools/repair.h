/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_TOOLS_REPAIR_H
#define DATASET_TOOLS_REPAIR_H

/*
 * Inconsistent shards and their repair: from the lengths of the .idx, the size of the .bin and the
 * ids at the ends of documents. What these do not determine is left alone. FORMAT.md, "Repair".
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

enum damage {
    DAMAGE_OFFSETS = 1, /* are not the running sum of the lengths */
    DAMAGE_EODS = 2,    /* each document's end-of-document token is not counted */
    DAMAGE_BOUNDS = 4,  /* the .idx is truncated, or its documents end before its sequences */
    DAMAGE_BIN = 8      /* the .bin is truncated: incomplete documents are dropped */
};

struct repair {
    unsigned damage; /* of enum damage; 0: nothing to repair */
    int64_t eod;     /* DAMAGE_EODS: the id that all documents end in */
    /* after the repair */
    uint64_t documents, sequences, tokens;
    uint64_t rebuilt; /* documents of one sequence each, made up for lost ones */
    uint64_t lost;    /* documents dropped */
};

/*
 * Diagnoses the shard, and says what it will be after the repair; `eod` is the end of document if
 * known, else -1. ERR_DATA, with the reason, if it cannot be repaired.
 */
int repair_look(const char *prefix, int64_t eod, struct repair *ret, struct err *e);

/*
 * Repairs it. The .bin is written only with DAMAGE_BIN, the .idx always, and the manifest if there
 * is one: its options then say "repaired", unless the .idx matches its old digest again.
 */
int repair_run(const char *prefix, int64_t eod, struct repair *ret, struct err *e);

/* The damage in words: "offsets, ends of document not counted". */
void repair_words(unsigned damage, char *ret, size_t n);

#endif
