/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_SAMPLE_H
#define TOK_SP_UNIGRAM_SAMPLE_H

/*
 * Segmentations other than the best, as in sentencepiece 0.2.2 (Model::NBestEncode, Lattice::NBest,
 * Lattice::Sample and its scores of user-defined pieces): the n best in order, and a random one,
 * with probability proportional to exp(alpha * score).
 *
 * The state must not be inside a text. Random numbers are functions of the key and of how many were
 * drawn for this text.
 */

#include "tok/sp/unigram.h"

/*
 * Appends the segmentations of a text to an empty `ret`, best first, ties in the library's order;
 * `most` is from 1 to TOK_NBEST. If it is 1, that is unigram_put's, with score 0. As in the
 * library, beyond 10,000 partial paths only the best few hundred are kept. ERR_RESOURCE for a text
 * that takes more than 2^27 nodes or steps.
 */
int unigram_nbest(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  size_t most, struct tok_nbest *ret, struct err *e);

/* A random one of the `most` best; whole texts only. */
int unigram_sample_nbest(const struct unigram *u, struct unigram_state *s, const char *text,
                         size_t n, size_t most, double alpha, struct tok_ids *ids, struct err *e);

/* From now on unigram_put samples from all segmentations; call before any text. */
void unigram_set_alpha(struct unigram *u, double alpha);

/* The key of the random numbers for the next texts. */
void unigram_state_key(struct unigram_state *s, uint64_t key);

#endif
