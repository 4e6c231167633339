/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_RANKS_TO_MERGES_H
#define TOK_BPE_RANKS_TO_MERGES_H

/*
 * The merges that ranks stand for: two neighbours merge when both together are a piece, the lowest
 * id first, of equals the leftmost. So every split of a piece into two pieces is a merge.
 *
 * Only one of them is ever made. What merging makes of a piece's own characters does not depend on
 * what stands round it, as long as nothing merges across its ends; so the two parts that become
 * the piece are those that are left last when its characters are merged alone. The others never
 * stand beside each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/bpe/bpe.h"
#include "tok/text/vocab.h"

/* A model's merges, and which pieces they never make. Empty when zeroed. */
struct bpe_merges {
    struct bpe_pair *pair;
    size_t npairs;
    uint8_t *unreached; /* by id: merging does not get to the piece; NULL: not known */
};

void bpe_merges_finish(struct bpe_merges *m);

/* Of 200,000 ranks there are half a million splits; a file may be made to have many more. */
enum { RANK_PAIRS_MOST = 1 << 21 };

/*
 * Fills m->pair by ascending ids, of a vocabulary that is indexed, with all characters of its
 * pieces among these, and m->unreached.
 * With `all`, every split (needed for dropout). False: there are more than RANK_PAIRS_MOST.
 */
bool rank_pairs(const struct tok_vocab *v, bool all, struct bpe_merges *m);

/* The merges that are made, as above; false, and none: it cannot be told which they are. */
bool rank_pairs_made(const struct tok_vocab *v, struct bpe_merges *m);

/*
 * A list of merges may be ranks in disguise: every split of a piece, one piece after the other
 * (Llama-3's tokenizer.json has 280,147 for 128,000 pieces). Of such a one those stay that are ever
 * made, and m->unreached is filled; of another list all.
 */
void rank_pairs_keep_made(const struct tok_vocab *s, struct bpe_merges *m);

#endif
