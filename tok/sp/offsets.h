/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_OFFSETS_H
#define TOK_SP_OFFSETS_H

/*
 * Where the ids of a SentencePiece model stand: begin and end of the pieces as libsentencepiece
 * 0.1.97 and 0.2.2 write them into a SentencePieceText (Normalizer::Normalize keeps for each
 * normalized byte where its item begins, PopulateSentencePieceText takes the pieces from there).
 * The text is normalized again, and the ids laid over it one behind the other by their strings; a
 * run of unknown characters ends where what follows fits.
 *
 * Immutable after sp_offsets_create and shared by threads.
 */

#include "tok/core/engine.h"
#include "tok/sp/model.h"
#include "tok/text/specials.h"

struct sp_offsets;

/* `m` must outlive it. Tables are made for the first text. */
struct sp_offsets *sp_offsets_create(const struct sp_model *m);
void sp_offsets_destroy(struct sp_offsets *o);

/* What a text is cut into, and who encodes each part by itself. */
struct sp_offsets_job {
    const struct specials *specials; /* strings that become tokens; NULL: none */
    bool crlf;                       /* CR LF in the text is LF */
    int (*encode)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
                  struct err *e);
    const void *state;
    void *scratch;
};

/* Appends the ids of n bytes and a span, in bytes of these, for each. ERR_INTEGRITY if ids cannot
 * be those of their part. */
int sp_offsets_find(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* What the unknown ones of the ids of such a text stand for; nothing if they cannot be its ids. */
void sp_offsets_say(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, const int32_t *id, size_t nids, struct tok_unknown *ret);

#endif
