/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_MERGE_H
#define TOK_LEARN_MERGE_H

/*
 * The engine under every byte pair trainer: words as rows of symbols, the counts of their
 * neighbouring pairs, the places of each pair, and a queue. The most frequent pair is replaced by
 * one symbol wherever it stands, from left to right, and the counts of the pairs around it follow;
 * what becomes of a pair, and when to end, is the rule's.
 *
 * A symbol spans one or more slots, as many as it has first symbols. Its head slot holds its id
 * and its last slot the id with TAIL, so that both neighbours are found in one step however long
 * the word is. The counts of words stand apart, for runs of words that share one. Work is in
 * proportion to the places touched.
 *
 * Counts are those of Hugging Face's BpeTrainer, in 64 bits: overlapping places count ("aaa" has
 * two of (a, a)), and the pair that was merged keeps its count. A rule that gives an id that exists
 * already makes pairs of it new again; then, as there, such a pair is merged in whole words.
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
     * Pairs are queued in the order in which they come up, from word to word and from left to
     * right, those that count nothing any more, too, and which of equal ones goes first is left to
     * the heap: all as std::priority_queue of libstdc++ does for SentencePiece.
     */
    bool as_they_come;
    /*
     * A guess at the count of the last pair that will be merged, or 0. Pairs that come up less
     * often are not followed until no other is left; all pairs are then counted anew. Saves time
     * and memory and never changes what comes out. Not with as_they_come.
     */
    uint64_t floor;
    /*
     * Whether a pair may become a symbol and its place among pairs of the same count, smaller
     * first. NULL: every pair may, smaller left ids first, then smaller right ones. `first`: of
     * two symbols that words were made of.
     */
    bool (*may)(void *arg, struct learn_pair p, bool first, uint64_t *ret_tie);
    /* Below 0 if a goes before b, where count and place are equal; NULL: never asked. */
    int (*compare)(void *arg, struct learn_pair a, struct learn_pair b);
    /*
     * The best pair: the id of the symbol that it becomes (its span must be the sum of both),
     * LEARN_PASS to drop it, LEARN_STOP to end.
     */
    uint32_t (*choose)(void *arg, struct learn_pair p, uint64_t count);
};

struct learn_merge;

/* Room for so many symbols in so many words. ERR_RESOURCE beyond 2^32 slots. */
int learn_merge_create(uint64_t symbols, uint64_t words, struct learn_merge **ret, struct err *e);
void learn_merge_destroy(struct learn_merge *m);

/* Ids are below LEARN_IDS. Words of one count in a row take less memory. */
void learn_merge_word(struct learn_merge *m, const uint32_t *id, size_t n, uint64_t count);

/* First symbols of which `id` consists; 0 for one that was not seen. */
uint32_t learn_merge_span(const struct learn_merge *m, uint32_t id);

/* For an id that no word holds yet but that a rule may give: how many first symbols it spans. */
void learn_merge_set_span(struct learn_merge *m, uint32_t id, uint32_t span);

void learn_merge_run(struct learn_merge *m, const struct learn_rule *rule);

#endif
