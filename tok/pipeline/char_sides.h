/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_CHAR_SIDES_H
#define TOK_PIPELINE_CHAR_SIDES_H

/*
 * What a character of raw text becomes by itself, and whether it becomes that wherever it is.
 * segment.c splits texts by it.
 */

#include "tok/pipeline/pipeline_internal.h"

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
