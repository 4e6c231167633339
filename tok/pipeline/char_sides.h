/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_CHAR_SIDES_H
#define TOK_PIPELINE_CHAR_SIDES_H

/*
 * What a character of a text as it stands becomes by itself, and whether that is what it becomes
 * wherever it stands. segment.c cuts texts by it.
 */

#include "tok/pipeline/pipeline_internal.h"

enum {
    SIDE_CHAR = 0x1fffff,  /* bits of a side that are the character */
    SIDE_KNOWN = 1 << 24,  /* it was looked at; nothing else: the character vanishes */
    SIDE_FREE = 1 << 25,   /* the normalizer does not act across this side */
    SIDE_WHOLE = 1 << 26,  /* the vocabulary has all its characters */
    SIDE_SAME = 1 << 27,   /* it becomes itself, and is free on both sides */
    SIDE_GRASPS = 1 << 28, /* of `last`: it may take in whatever comes next */
};

/*
 * What a character becomes: its first and its last character then, with flags. A text may be cut
 * between two that are free there, and the first then ends in its `last` whatever stands before it,
 * unless that grasps it; the second begins with its `first` unless what follows is not free on its
 * left.
 */
struct sides {
    uint32_t first, last;
};

/* `whole`: SIDE_WHOLE is asked for. Uses w->norm. */
struct sides sides_look(const struct pipe_spec *s, struct pipe_work *w, uint32_t c, bool whole);

#endif
