/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_RANKS_TO_MERGES_H
#define TOK_BPE_RANKS_TO_MERGES_H

/*
 * The merges that ranks stand for: two neighbours merge when their concatenation is a piece, the
 * lowest id first, of equal ids the leftmost. So every split of a piece into two pieces is a merge.
 *
 * Only one split of each piece is ever applied. What merging makes of a piece's own characters does
 * not depend on its surroundings, as long as nothing merges across its ends; so the two parts that
 * become the piece are the last two when its characters are merged alone. The other splits never
 * are neighbours.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/bpe/bpe.h"
#include "tok/text/vocab.h"

/* A model's merges, and the pieces that these never produce. Empty when zeroed. */
struct bpe_merges {
    struct bpe_pair *pair;
    size_t npairs;
    uint8_t *unreached; /* by id: merging does not produce the piece; NULL: not known */
};

void bpe_merges_finish(struct bpe_merges *m);

/* 200,000 ranks have half a million splits; a crafted file could have many more. */
enum { RANK_PAIRS_MOST = 1 << 21 };

/*
 * Fills m->pair, by ascending ids, and m->unreached from an indexed vocabulary that has every
 * character of its pieces as a piece. With `all`, keeps every split (needed for dropout). False:
 * there are more than RANK_PAIRS_MOST.
 */
bool rank_pairs(const struct tok_vocab *v, bool all, struct bpe_merges *m);

/* Only the merges that apply; false, and nothing is filled, if these cannot be decided. */
bool rank_pairs_made(const struct tok_vocab *v, struct bpe_merges *m);

/*
 * A list of merges may be ranks in disguise: every split of a piece, piece by piece (Llama-3's
 * tokenizer.json has 280,147 merges for 128,000 pieces). Such a list is reduced to the merges that
 * apply, and m->unreached is filled; other lists are unchanged.
 */
void rank_pairs_keep_made(const struct tok_vocab *s, struct bpe_merges *m);

#endif
