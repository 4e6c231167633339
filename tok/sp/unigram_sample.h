/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_SAMPLE_H
#define TOK_SP_UNIGRAM_SAMPLE_H

/*
 * Other segmentations than the best, as sentencepiece 0.2.2 has them (Model::NBestEncode,
 * Lattice::NBest, Lattice::Sample and its scores of user-defined pieces): the n best in their
 * order, and one at random, with probabilities in proportion to exp(alpha * score).
 *
 * The state must not be in the middle of a text. What random numbers it takes are functions of the
 * key that it was given and of how many it took for this text.
 */

#include "tok/sp/unigram.h"

/*
 * Appends the segmentations of a text to an empty `ret`, the best first, ties in the library's
 * order; `most` is from 1 to TOK_NBEST. One alone is unigram_put's, of score 0. Past 10,000
 * ways under way all but the best few hundred are dropped, as there. ERR_RESOURCE for a text that
 * takes more than 2^27 nodes or steps.
 */
int unigram_nbest(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  size_t most, struct tok_nbest *ret, struct err *e);

/* One of the `most` best, whole texts only. */
int unigram_sample_nbest(const struct unigram *u, struct unigram_state *s, const char *text,
                         size_t n, size_t most, double alpha, struct tok_ids *ids, struct err *e);

/* From now on unigram_put takes one of all segmentations; before any text. */
void unigram_set_alpha(struct unigram *u, double alpha);

/* The random numbers of the texts to come. */
void unigram_state_key(struct unigram_state *s, uint64_t key);

#endif
