/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_LOOK_ACROSS_H
#define TOK_PIPELINE_LOOK_ACROSS_H

/*
 * Whether a text may be cut between two characters before it goes through the steps of a tokenizer,
 * so that its parts give what the whole gives. Each step is asked about the characters as they
 * reach it. Constant; for any thread.
 */

#include "tok/pipeline/pipeline_internal.h"

/* Whether the normalizer consists of steps that look no further than from one character to the
 * next; strips and prefixes only at the beginning. */
bool across_known(const struct pipe_spec *s);

/* Whether step i lets the text be cut before a character, behind one: a place needs both. */
bool across_before(const struct pipe_spec *s, size_t i, uint32_t c);
bool across_behind(const struct pipe_spec *s, size_t i, uint32_t c);

/* Of a character that may not be cut behind: whether what the step makes of it and what follows is
 * seen to begin as what it makes of it alone. */
bool across_repeats(const struct pipe_spec *s, size_t i, uint32_t c);

/* Whether the step may join the character with any that comes next. */
bool across_grasps(const struct pipe_spec *s, size_t i, uint32_t c);

enum across {
    ACROSS_LOOKS,  /* the text may not be cut there */
    ACROSS_BESIDE, /* no step does anything there */
    ACROSS_PARTED  /* a piece ends there and another begins */
};

/* What the pre-tokenizer does between two characters, which become those that the model sees. */
enum across across_pre(const struct pipe_spec *s, uint32_t *a, uint32_t *b);

bool across_in(struct string_ref t, uint32_t c);

#endif
