/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_BPE_H
#define TOK_LEARN_SP_BPE_H

/*
 * SentencePiece's trainers of byte pairs, words and characters, as those of 0.2.2: the pieces,
 * their order and their scores.
 *
 * Byte pairs: the most frequent pair of symbols that may be a piece is merged; of equal ones the
 * shorter, then the one with smaller code points. Two pairs that spell one piece are different:
 * the first makes it, the other is dropped and stays as it is in the text. Which of two that are
 * equal in all this comes first follows from the library's heap, which the queue copies
 * (tok/learn/merge.h). Earlier releases took the best of a part of the pairs only.
 */

#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/out.h"

/* What of memory a byte of a word takes, about. */
enum { LEARN_SPBPE_COST = 16 };

struct learn_spbpe_options {
    const struct sp_train_options *train;
    const struct learn_meta *meta;
    struct pool *pool;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
    void *arg;
};

/* How the trainer of this model type wants its sentences. */
enum learn_sp_cut learn_sp_cut_of(const struct sp_train_options *o);

/* Appends to `ret`, whose arena has the texts. The sentences are freed on the way. */
int learn_spbpe(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                struct err *e);
int learn_spword(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e);
int learn_spchar(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e);

#endif
