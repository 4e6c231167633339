/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_EDIT_RECIPE_BPE_H
#define TOK_EDIT_RECIPE_BPE_H

/*
 * Applies the merges of a recipe, or a SentencePiece model's scores, to its own pieces: which
 * pieces merging reaches, and through which others.
 */

#include "tok/edit/recipe.h"

struct recipe_bpe;

/* The recipe must outlive it and keep its pieces and merges. */
struct recipe_bpe *recipe_bpe_create(const struct recipe *r);
void recipe_bpe_destroy(struct recipe_bpe *b);

bool recipe_bpe_has(const struct recipe_bpe *b, int32_t left, int32_t right);

/* Does merging the characters of a piece result in the piece? */
bool recipe_bpe_reaches(struct recipe_bpe *b, int32_t id);

/*
 * Calls `on` for each piece on the way: the characters, and the result of each merge. False,
 * without any call, if the piece is not reached.
 */
bool recipe_bpe_walk(struct recipe_bpe *b, int32_t id, void (*on)(void *arg, int32_t id),
                     void *arg);

#endif
