/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSCAN_H
#define BASE_FORMAT_JSCAN_H

/*
 * One long line of JSONL, parsed incrementally: what base/format/jsonl does for a line in memory,
 * by the same rules, for a line too long to keep there. The whole line is validated; the values of
 * the wanted keys go into spills, unescaped, as they arrive; of duplicate keys the last one counts.
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
    struct spill spill; /* JSONL_STRING: UTF-8; JSONL_STRINGS: each with JSONL_STRING_END;
                           JSONL_IDS, JSONL_ID_LISTS: int64_t each */
};

struct jscan {
    size_t nkeys;
    struct jscan_value *value; /* one for each key; owned */
    /* private */
    int state, after; /* what comes next; after a literal, number or string */
    uint64_t at;      /* bytes consumed */
    bool cr;          /* the last one between tokens was a CR */
    size_t depth;
    unsigned char array[JSCAN_DEPTH / 8]; /* bit d: level d is an array */
    struct buf name;                      /* of the current member, up to the longest wanted name */
    struct key_tree keys;                 /* the wanted ones */
    const struct key_field **way; /* the open objects on the path to one, the root first; owned */
    size_t on;                    /* their number; they are the outermost open containers */
    const struct key_field *here; /* the field whose value comes next, if it is on the path */
    size_t want;            /* index of the wanted key whose value is being read; nkeys: none */
    size_t want_depth;      /* containers open around that value */
    bool in_key, is_string; /* the current string is a key on the path; is the wanted value,
                               or one of its strings */
    const char *word;       /* rest of a literal */
    uint32_t code, high;    /* of an escape; a high surrogate whose other half follows */
    int digits;             /* of \u still to come */
    unsigned char need, low, top; /* UTF-8: bytes to come, bounds of the next */
    char number[24];              /* the current integer */
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
