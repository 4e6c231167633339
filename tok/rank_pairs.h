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

/*
 * Fills s->pair by ascending ids, of a vocabulary of letters that is indexed, and s->unreached.
 * With `all`, every split: for who leaves merges out.
 */
void rank_pairs(struct pipe_spec *s, bool all);

#endif
