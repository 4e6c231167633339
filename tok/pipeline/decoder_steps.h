/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_DECODER_STEPS_H
#define TOK_PIPELINE_DECODER_STEPS_H

/*
 * The decoder's steps as tokenizers 0.23.3 defines them: a list of strings, one for each id, goes
 * through them and is concatenated at the end. decoder.c avoids lists where it can and must agree
 * with decoder_lists.
 */

#include "tok/pipeline/pipeline_internal.h"

/* Appends the text of the ids for any steps except DEC_BYTE_LEVEL alone. */
int decoder_lists(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                  struct buf *text, struct err *e);

/* Is the id in the vocabulary? Others are skipped. */
static inline bool decoder_has(const struct pipe *p, int32_t id)
{
    return pipe_piece(p, id).p != NULL;
}

/* The string of an id in the first step's input: of an added token, its normalized string. May be
 * in w. */
struct string_ref decoder_spelling(const struct pipe *p, struct pipe_work *w, int32_t id);

/* A step that takes each string by itself: appends its result for `t` to the new list. */
int decoder_step(struct pipe_work *w, const struct dec_step *s, struct string_ref t, bool first,
                 bool last, struct err *e);

void decoder_end(struct pipe_work *w);  /* ends a string of the new list */
void decoder_take(struct pipe_work *w); /* the new list replaces the list */
struct string_ref decoder_string(const struct pipe_work *w, size_t i); /* of the list */

/* "<0x41>" -> 0x41, else -1. */
int decoder_byte(struct string_ref t);

/* A string in the byte alphabet as bytes, or unchanged if it has any other character. */
void decoder_put_bytes(struct buf *out, const char *p, size_t n);

/* Replaces invalid UTF-8 in what was appended to `out` from `from` on. */
void decoder_mend(struct pipe_work *w, struct buf *out, size_t from);

#endif
