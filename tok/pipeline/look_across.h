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

/* Whether step i allows a split before a character, or after one: a position needs both. */
bool across_before(const struct pipe_spec *s, size_t i, uint32_t c);
bool across_behind(const struct pipe_spec *s, size_t i, uint32_t c);

/* Of a character after which no split is allowed: whether the step's result for it and what follows
 * begins as the result for it alone. */
bool across_repeats(const struct pipe_spec *s, size_t i, uint32_t c);

/* Whether the step may join the character with any that follows. */
bool across_grasps(const struct pipe_spec *s, size_t i, uint32_t c);

enum across {
    ACROSS_LOOKS,  /* no split is allowed there */
    ACROSS_BESIDE, /* no step acts there */
    ACROSS_PARTED  /* a pre-token ends there and another begins */
};

/* What the pre-tokenizer does between two characters, which are updated to what the model sees. */
enum across across_pre(const struct pipe_spec *s, uint32_t *a, uint32_t *b);

bool across_in(struct string_ref t, uint32_t c);

#endif
