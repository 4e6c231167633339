/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_UNIGRAM_H
#define TOK_LEARN_SP_UNIGRAM_H

/*
 * Pieces of a unigram model (Kudo 2018) as SentencePiece 0.2.2 learns them: all characters and the
 * substrings that cover most of the text are the seed; EM steps (with digamma, and dropping
 * everything expected less than half a time) alternate with prunings, which keep the pieces whose
 * loss would cost most; the rest is cut to size by score, with all required characters in it.
 *
 * It is the same algorithm, not the same arithmetic: sums are exact where the library adds floats
 * in an order that depends on its threads, and the seed has any repeat within words that may be a
 * piece, with its own count, where the library's repeats are those of whole sentences. As there, a
 * character without a piece gets the count of the most frequent one. So pieces and scores differ a
 * little, and the text is as short (tests/interop/learn_unigram.py).
 *
 * The result is the same for any number of threads and any order of the words.
 */

#include "base/core/err.h"
#include "base/thread/pool.h"
#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/out.h"
#include "tok/learn/sp/valid.h"

/*
 * Bytes of memory for each byte of distinct words; measured on English: 37, of which 11 are for
 * characters and sorted suffixes, the rest for the pieces at each position. Candidates take 36
 * bytes each besides that, and 8 for each thread.
 */
enum { LEARN_UNIGRAM_COST = 44 };

struct learn_unigram_options {
    struct learn_valid valid;
    uint64_t vocab_size; /* of the model: prunings end at 1.1 times this */
    uint64_t learnt;     /* most pieces to learn, special ones excluded */
    uint64_t seeds;      /* most candidates of more than one character in the seed */
    double shrink;       /* share that a pruning keeps */
    int steps;           /* EM steps between prunings */
    /* `done` of about `total` pieces at positions were visited; may be NULL. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

struct learn_unigram_report {
    size_t seeds;    /* candidates in the seed */
    uint64_t tokens; /* of the text, as segmented by the last pruning; 0 if there was none */
};

/*
 * Takes the words of `front`, freeing them on the way; appends to `ret`, whose arena owns the
 * texts, by falling score, then by bytes. ERR_RESOURCE for 2^32 characters of distinct words, or as
 * many candidates in one sentence.
 */
int learn_unigram(const struct learn_unigram_options *o, struct learn_sp *front, struct pool *pool,
                  struct learn_scores *ret, struct learn_unigram_report *report, struct err *e);

#endif
