/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_BPE_H
#define TOK_LEARN_SP_BPE_H

/*
 * SentencePiece's BPE, word and character trainers as in 0.2.2: the pieces, their order and their
 * scores.
 *
 * BPE: merges the most frequent pair of symbols that may be a piece; of equal ones the shorter,
 * then the one with smaller code points. Two pairs that spell one piece are different: the first
 * makes it, the other is dropped and stays unmerged in the text. The order of pairs that are equal
 * in all this follows from the library's heap, which the queue copies (tok/learn/merge.h). Earlier
 * releases considered only a part of the pairs.
 */

#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/out.h"

/* About this many bytes of memory per byte of a word. */
enum { LEARN_SPBPE_COST = 16 };

struct learn_spbpe_options {
    const struct sp_train_options *train;
    const struct learn_meta *meta;
    struct pool *pool;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* may be NULL */
    void *arg;
};

/* How the trainer of this model type splits its sentences. */
enum learn_sp_cut learn_sp_cut_of(const struct sp_train_options *o);

/* Appends to `ret`, whose arena owns the texts. Frees the sentences on the way. */
int learn_spbpe(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                struct err *e);
int learn_spword(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e);
int learn_spchar(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e);

#endif
