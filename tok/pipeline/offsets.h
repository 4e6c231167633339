/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_OFFSETS_H
#define TOK_PIPELINE_OFFSETS_H

/*
 * The way of a pipeline that knows where each id comes from: all of its steps over aligned text,
 * one piece at a time, without caches. What the files offsets.c, aligned_normalize.c and
 * model_offsets.c share; pipeline.c includes it, too.
 */

#include "tok/pipeline/aligned_text.h"
#include "tok/pipeline/pipeline_internal.h"

/* offsets.c: an engine's encode_spans. */
int pipe_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                      struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* aligned_normalize.c */
int aligned_normalize(const struct pipe_spec *s, struct pipe_work *w, struct aligned *a,
                      struct err *e);

/* Of a text's beginning: how many bytes of it, once normalized, count as its beginning, where a
 * pre-tokenizer asks for that (Metaspace, by "first"). */
size_t pipe_zero(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                 unsigned edge);

/* model_offsets.c: the ids of one piece, and which bytes of it each stands for. */
int pipe_model_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* White space at the ends of a token's string. */
void span_spaces(struct tok_span *s, const char *text, size_t n);

/* tok/core/engine.h's say_unknown, of Unigram, whose unknown pieces are their text in the
 * reference. */
void pipe_say_unknown(const void *state, void *scratch, const char *text, size_t n,
                      const int32_t *id, size_t nids, struct tok_unknown *ret);

#endif
