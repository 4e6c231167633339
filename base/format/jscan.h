/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSCAN_H
#define BASE_FORMAT_JSCAN_H

/*
 * One long line of JSONL, read in pieces: what base/format/jsonl does for a line in memory, by the
 * same rules, for one that shall not be held there. The whole line is validated; the values under
 * the wanted keys go into spills, unescaped, as they come by; of duplicate keys the last one
 * counts.
 *
 * Memory is constant. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/format/jsonl.h"
#include "base/format/keys.h"
#include "base/io/spill.h"

enum { JSCAN_DEPTH = 1024 };

struct jscan_value {
    enum jsonl_kind kind;
    struct spill spill; /* JSONL_STRING: UTF-8; JSONL_STRINGS: each with its end; JSONL_IDS:
                           int64_t each */
};

struct jscan {
    size_t nkeys;
    struct jscan_value *value; /* one for each key; owned */
    /* private */
    int state, after; /* what comes next; after a literal, number or string */
    uint64_t at;      /* bytes taken */
    size_t depth;
    unsigned char array[JSCAN_DEPTH / 8]; /* bit d: level d is an array */
    struct buf name;                      /* of the member at hand, as much as can matter */
    struct key_tree keys;                 /* the wanted ones */
    const struct key_field **way; /* the open objects on the way to one, the root first; owned */
    size_t on;                    /* their number; they are the outermost that are open */
    const struct key_field *here; /* the field whose value comes next, if it is on the way */
    size_t want;                  /* index of the wanted key whose value is at hand; nkeys: none */
    size_t want_depth;            /* what is open around that value */
    bool in_key, is_string;       /* the string at hand is a key on the way; is the wanted value,
                                     or one of its strings */
    const char *word;             /* rest of a literal */
    uint32_t code, high;          /* of an escape; a high surrogate waits for its other half */
    int digits;                   /* of \u still to come */
    unsigned char need, low, top; /* UTF-8: bytes to come, bounds of the next */
    char number[24];              /* the whole number at hand */
    size_t nnumber;
};

/* Spills lie beside `output`. On failure nothing is open. */
int jscan_open(struct jscan *j, const char *const *key, size_t nkeys, const char *output,
               struct err *e);

/* The next n bytes of the line. ERR_DATA, "byte N: reason", is final: the line is bad. */
int jscan_feed(struct jscan *j, const char *p, size_t n, struct err *e);

/* The line ends here. Spills are flushed. */
int jscan_end(struct jscan *j, struct err *e);

void jscan_close(struct jscan *j);

#endif
