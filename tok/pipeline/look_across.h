/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_LOOK_ACROSS_H
#define TOK_PIPELINE_LOOK_ACROSS_H

/*
 * Whether raw text may be split between two characters so that its parts give what the whole gives.
 * Each step is queried for the characters as they reach it. Constant; thread-safe.
 */

#include "tok/pipeline/pipeline_internal.h"

/* Whether every step of the normalizer looks no further than from one character to the next, with
 * strips and prefixes only at the beginning. */
bool across_known(const struct pipe_spec *s);

/* Whether step i allows a split after a character; what follows it must allow one, too. */
bool across_behind(const struct pipe_spec *s, size_t i, uint32_t c);

/* Of a character after which no split is allowed: whether the step's result for it and what follows
 * begins as the result for it alone. */
bool across_repeats(const struct pipe_spec *s, size_t i, uint32_t c);

enum across {
    ACROSS_LOOKS,  /* no split is allowed there */
    ACROSS_BESIDE, /* no step acts there */
    ACROSS_PARTED  /* a pre-token ends there and another begins */
};

/* What the pre-tokenizer does between two characters, which are updated to what the model sees. */
enum across across_pre(const struct pipe_spec *s, uint32_t *a, uint32_t *b);

bool across_in(struct string_ref t, uint32_t c);

/* ---- the two sides of a character ---------------------------------------------------------------
 */

enum {
    SIDE_CHAR = 0x1fffff,  /* bits of a side that are the character */
    SIDE_KNOWN = 1 << 24,  /* it was looked up; no other flag: the character vanishes */
    SIDE_FREE = 1 << 25,   /* the normalizer does not act across this side */
    SIDE_WHOLE = 1 << 26,  /* the vocabulary has all its characters */
    SIDE_SAME = 1 << 27,   /* it is unchanged, and free on both sides */
    SIDE_GRASPS = 1 << 28, /* of `last`: it may combine with whatever follows */
};

/*
 * What a character becomes: the first and the last character of that, with flags. A text may be
 * split between two that are free there: the first one then ends in its `last` whatever precedes
 * it, unless that grasps what follows; the second begins with its `first` unless what follows is
 * not free on its left.
 */
struct sides {
    uint32_t first, last;
};

/* `whole`: SIDE_WHOLE is needed. Uses w->norm. */
struct sides sides_look(const struct pipe_spec *s, struct pipe_work *w, uint32_t c, bool whole);

#endif
