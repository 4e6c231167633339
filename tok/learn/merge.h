/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_MERGE_H
#define TOK_LEARN_MERGE_H

/*
 * The engine under every BPE trainer: words as rows of symbols, the counts of adjacent pairs, the
 * positions of each pair, and a queue. The most frequent pair is replaced by one symbol at all its
 * positions, from left to right, and the counts of the pairs around it are updated; the rule
 * decides what a pair becomes, and when to stop.
 *
 * A symbol spans one or more slots, as many as it has first symbols. Its first slot holds its id
 * and its last slot the id with TAIL, so that both neighbours are found in one step however long
 * the word is. The counts of words are stored separately, for runs of words with equal counts. Work
 * is proportional to the positions visited.
 *
 * Counts are those of Hugging Face's BpeTrainer, in 64 bits: overlapping positions count ("aaa" has
 * two of (a, a)), and the pair that was merged keeps its count. If a rule returns an existing id,
 * pairs with it are new again; then, as there, such a pair is merged in whole words.
 *
 * One thread; the order in which words are added does not matter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

enum { LEARN_STOP = 0x3fffffff, LEARN_PASS = 0x3ffffffe, LEARN_IDS = 0x3ffffff0 };

struct learn_pair {
    uint32_t left, right;
};

struct learn_rule {
    void *arg;
    /*
     * Queues pairs in the order in which they first occur, from word to word and from left to
     * right, including those whose count fell to 0, and leaves the order of equal ones to the heap:
     * all as std::priority_queue of libstdc++ does for SentencePiece.
     */
    bool as_they_come;
    /*
     * An estimate of the count of the last pair that will be merged, or 0. Pairs with lower counts
     * are not tracked until no other is left; then all pairs are counted again. Saves time and
     * memory and never changes the result. Not with as_they_come.
     */
    uint64_t floor;
    /*
     * Whether a pair may become a symbol, and its rank among pairs of equal count, smaller first.
     * NULL: every pair may, ordered by left id, then by right id. `first`: of two symbols that
     * words were made of.
     */
    bool (*may)(void *arg, struct learn_pair p, bool first, uint64_t *ret_tie);
    /* Below 0 if a precedes b, for equal count and rank; NULL: not needed. */
    int (*compare)(void *arg, struct learn_pair a, struct learn_pair b);
    /*
     * For the best pair: returns the id of the symbol that it becomes (whose span must be the sum
     * of both), LEARN_PASS to drop it, LEARN_STOP to end.
     */
    uint32_t (*choose)(void *arg, struct learn_pair p, uint64_t count);
};

struct learn_merge;

/* Allocates for this many symbols in this many words. ERR_RESOURCE beyond 2^32 slots. */
int learn_merge_create(uint64_t symbols, uint64_t words, struct learn_merge **ret, struct err *e);
void learn_merge_destroy(struct learn_merge *m);

/* Ids are below LEARN_IDS. Adjacent words with equal counts take less memory. */
void learn_merge_word(struct learn_merge *m, const uint32_t *id, size_t n, uint64_t count);

/* Number of first symbols in `id`; 0 for one that has not occurred. */
uint32_t learn_merge_span(const struct learn_merge *m, uint32_t id);

/* For an id that is in no word yet but that a rule may return: the number of first symbols it
 * spans. */
void learn_merge_set_span(struct learn_merge *m, uint32_t id, uint32_t span);

void learn_merge_run(struct learn_merge *m, const struct learn_rule *rule);

#endif
