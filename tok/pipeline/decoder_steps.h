/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_DECODER_STEPS_H
#define TOK_PIPELINE_DECODER_STEPS_H

/*
 * The decoder's steps as tokenizers 0.23.3 defines them: a list of strings, one for each id, goes
 * through them and is joined in the end. decoder.c does without lists where it can; decoder_lists
 * is what it must agree with.
 */

#include "tok/pipeline/pipeline_internal.h"

/* Appends the text of the ids, whatever the steps are; but for DEC_BYTE_LEVEL alone as it stands.
 */
int decoder_lists(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                  struct buf *text, struct err *e);

/* Has the vocabulary such an id? Others are left out. */
static inline bool decoder_has(const struct pipe *p, int32_t id)
{
    return pipe_piece(p, id).p != NULL;
}

/* What the first step hears of an id: of an added token, its normalized string. It may lie in w. */
struct string_ref decoder_spelling(const struct pipe *p, struct pipe_work *w, int32_t id);

/* A step that takes each string by itself: appends what it makes of `t` to the new list. */
int decoder_step(struct pipe_work *w, const struct dec_step *s, struct string_ref t, bool first,
                 bool last, struct err *e);

void decoder_end(struct pipe_work *w); /* what lies behind the last string of the new list is one */
void decoder_take(struct pipe_work *w); /* the new list becomes the list, and is empty */
struct string_ref decoder_string(const struct pipe_work *w, size_t i); /* of the list */

/* Of "<0x41>" 0x41, else -1. */
int decoder_byte(struct string_ref t);

/* A string's letters as bytes, or as it stands if one of its characters is no letter. */
void decoder_put_bytes(struct buf *out, const char *p, size_t n);

/* Replaces bytes that are no UTF-8 in what was appended to `out` from `from` on. */
void decoder_mend(struct pipe_work *w, struct buf *out, size_t from);

#endif
