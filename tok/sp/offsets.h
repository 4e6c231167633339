/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_OFFSETS_H
#define TOK_SP_OFFSETS_H

/*
 * Spans of the ids of a SentencePiece model: begin and end of the pieces as libsentencepiece 0.1.97
 * and 0.2.2 write them into a SentencePieceText (Normalizer::Normalize records for each normalized
 * byte where its item begins, PopulateSentencePieceText takes the spans from there). The text is
 * normalized again, and the ids are matched to it in order by their strings; a run of unknown
 * characters ends where what follows matches.
 *
 * Immutable after sp_offsets_create and shared by threads.
 */

#include "tok/core/engine.h"
#include "tok/sp/model.h"
#include "tok/text/specials.h"

struct sp_offsets;

/* `m` must outlive it. Tables are created for the first text. */
struct sp_offsets *sp_offsets_create(const struct sp_model *m);
void sp_offsets_destroy(struct sp_offsets *o);

/* How a text is split, and the function that encodes a part by itself. */
struct sp_offsets_job {
    const struct specials *specials; /* strings that become tokens; NULL: none */
    bool crlf;                       /* CR LF counts as LF */
    int (*encode)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
                  struct err *e);
    const void *state;
    void *scratch;
};

/* Appends the ids of n bytes and their spans, in bytes. ERR_INTEGRITY if the ids do not match their
 * part. */
int sp_offsets_find(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* The text of each unknown id of such a text; nothing if they do not match. */
void sp_offsets_say(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, const int32_t *id, size_t nids, struct tok_unknown *ret);

#endif
