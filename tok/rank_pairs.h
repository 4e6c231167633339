/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_RANK_PAIRS_H
#define TOK_RANK_PAIRS_H

/*
 * The merges that ranks stand for: two neighbours merge when both together are a piece, the lowest
 * id first, of equals the leftmost. So every split of a piece into two pieces is a merge.
 *
 * Only one of them is ever made. What merging makes of a piece's own characters does not depend on
 * what stands round it, as long as nothing merges across its ends; so the two parts that become
 * the piece are those that are left last when its characters are merged alone. The others never
 * stand beside each other.
 */

#include "tok/pipe.h"

/* Of 200,000 ranks there are half a million splits; a file may be made to have many more. */
enum { RANK_PAIRS_MOST = 1 << 21 };

/*
 * Fills s->pair by ascending ids, of a vocabulary that is indexed, with all characters of its
 * pieces among these, and s->unreached.
 * With `all`, every split: for who leaves merges out. False: there are more than RANK_PAIRS_MOST.
 */
bool rank_pairs(struct pipe_spec *s, bool all);

/* The merges that are made, as above; false, and none: it cannot be told which they are. */
bool rank_pairs_made(struct pipe_spec *s);

/*
 * A list of merges may be ranks in disguise: every split of a piece, one piece behind the other
 * (Llama-3's tokenizer.json has 280,147 for 128,000 pieces). Of such a one those stay that are ever
 * made, and s->unreached is filled; of another list all.
 */
void rank_pairs_keep_made(struct pipe_spec *s);

#endif
