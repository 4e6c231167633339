/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_H
#define TOK_SP_UNIGRAM_H

/*
 * SentencePiece's unigram model: text to ids exactly as sentencepiece 0.2.2 gives them
 * (Model::EncodeOptimized and the byte fallback of PopulateSentencePieceText), as a stream.
 *
 * The library accumulates a path's scores in 32-bit floats from the first byte of the text, so its
 * choice anywhere depends on everything before; and where the best sum at a position exceeds
 * 100,000 it subtracts it from all sums from there on. The same sums are kept here, and ids are
 * emitted as soon as every path that may still win passes the same position. So memory does not
 * grow with the text, and the ids are those of the whole. (With pieces of one letter, paths through
 * a run of it may not meet before its end: then the steps of the paths go to a temporary file.)
 *
 * Text between two positions that no piece spans is a segment (mostly a word), whose ids are
 * cached: they hold for every preceding sum that is small enough for rounding not to matter; that
 * limit is cached with them, and beyond it the paths are compared again.
 *
 * The tables are shared by threads, a text's state belongs to one.
 */

#include <stdbool.h>

#include "tok/core/engine.h"
#include "tok/sp/model.h"
#include "tok/sp/normalize.h"
#include "tok/text/trie.h"

struct unigram;

/* One per model; `m` must outlive it. NULL for models that only the library can encode. */
struct unigram *unigram_create(const struct sp_model *m);
void unigram_destroy(struct unigram *u);

struct unigram_state;
/* For one model; destroy it first. */
struct unigram_state *unigram_state_create(void);
void unigram_state_destroy(struct unigram_state *s);

/* Uses the code for processors without AVX-512; call before the first text, for tests. */
void unigram_state_plain(struct unigram_state *s);

/*
 * Takes the next bytes of a text; appends the ids that are final. With `last` all are, and the
 * state is ready for another text.
 */
void unigram_put(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                 bool last, struct tok_ids *ids);

/*
 * From now on unigram_put may write to a temporary file, and empty `ids` through the sink; NULL:
 * no longer. After each call, unigram_take_failure returns what failed meanwhile, or 0.
 */
void unigram_set_sink(struct unigram_state *s, const struct tok_sink *o);
int unigram_take_failure(struct unigram_state *s, struct err *e);

/* Discards an unfinished text. */
void unigram_reset(struct unigram_state *s);

/*
 * Parts of one text for several threads. unigram_cut: the largest split point below n of text that
 * begins at a character, 0 if there is none. unigram_look, in any order, appends what can be
 * computed between two split points, or after the last, without the preceding sum: most of the
 * work. Then, part by part: unigram_begin_sum with the sum before it, unigram_put_looked with its
 * text and that result (`last`: nothing follows), unigram_ended for the sum after it. The first
 * part of a text has no result of unigram_look.
 */
size_t unigram_cut(const struct unigram *u, const char *text, size_t n);
void unigram_look(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  struct tok_ids *ret);
void unigram_begin_sum(struct unigram_state *s, float from, bool at_cut);
void unigram_begin_after(struct unigram_state *s, bool unknown); /* the last id was unknown */
void unigram_put_looked(const struct unigram *u, struct unigram_state *s, const char *text,
                        size_t n, const struct tok_ids *looked, bool last, struct tok_ids *ids);
float unigram_ended(const struct unigram_state *s);

/* Invalid UTF-8 bytes since the last call. */
uint64_t unigram_take_invalid(struct unigram_state *s);

/* Positions looked at or moved beyond the one look at each, since the last call. */
uint64_t unigram_take_steps(struct unigram_state *s);

/* ---- n best and sampling ------------------------------------------------------------------ */

/*
 * Segmentations other than the best, as in sentencepiece 0.2.2 (Model::NBestEncode, Lattice::NBest,
 * Lattice::Sample and its scores of user-defined pieces): the n best in order, and a random one,
 * with probability proportional to exp(alpha * score).
 *
 * The state must not be inside a text. Random numbers are functions of the key and of how many were
 * drawn for this text.
 */

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
