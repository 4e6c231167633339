/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_OFFSETS_H
#define TOK_PIPELINE_OFFSETS_H

/*
 * The pipeline with offsets: all of its steps over aligned text, one pre-token at a time, without
 * caches. Shared by offsets.c, aligned_normalize.c and model_offsets.c, and included by pipeline.c.
 */

#include "tok/pipeline/aligned_text.h"
#include "tok/pipeline/pipeline_internal.h"

/* offsets.c: an engine's encode_spans. */
int pipe_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                      struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* aligned_normalize.c */
int aligned_normalize(const struct pipe_spec *s, struct pipe_work *w, struct aligned *a,
                      struct err *e);

/* At the beginning of a text: how many bytes of it, once normalized, count as its beginning, if a
 * pre-tokenizer needs that (Metaspace with "first"). */
size_t pipe_zero(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                 unsigned edge);

/* model_offsets.c: the ids of one pre-token, and the bytes of it that each stands for. */
int pipe_model_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* White space at the ends of a token's string. */
void span_spaces(struct tok_span *s, const char *text, size_t n);

/* say_unknown of tok/core/engine.h for Unigram, whose unknown pieces are printed as their text in
 * the reference. */
void pipe_say_unknown(const void *state, void *scratch, const char *text, size_t n,
                      const int32_t *id, size_t nids, struct tok_unknown *ret);

#endif
