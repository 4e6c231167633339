/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_EDIT_RECIPE_EDIT_H
#define TOK_EDIT_RECIPE_EDIT_H

/*
 * Growing and shrinking vocabularies, and which row of an embedding each id of the new one gets.
 * The recipe is written in the format from which it was read.
 *
 * Files that are lists (vocab.json with merges.txt, tiktoken's ranks, vocab.txt) hold pieces only.
 * Special tokens that are not pieces keep their ids without a line, or get new ones when the
 * vocabulary shrinks.
 */

#include "tok/edit/recipe.h"

/* The source of each row of an embedding matrix; tok/FORMAT.md describes the file. */
struct recipe_rows {
    size_t old_size, n;
    int32_t *old;  /* by new id; -1: a new row, */
    size_t *start; /* the mean of the rows from[start[id] .. start[id + 1]) */
    struct tok_ids from;
};

void recipe_rows_finish(struct recipe_rows *w);
void recipe_rows_put(const struct recipe_rows *w, struct buf *b);

bool recipe_is_list(const struct recipe *r);

/*
 * Spells a new piece as a list file does, NUL-terminated; notes what the file cannot say about it.
 * ERR_USAGE: it cannot hold the piece.
 */
int recipe_spell_piece(struct recipe *r, const char *text, bool special, const char **ret,
                       struct err *e);

/* The name that --tiktoken-pattern has for the pattern, else the pattern itself. */
const char *recipe_pattern_name(const struct recipe *r);

/* For ranks, before writing: drops special tokens, which are not ranks, and notes them and the
 * pattern. */
void recipe_drop_tokens(struct recipe *r);

/*
 * Adds tokens after all ids. One that is in the vocabulary keeps its id and becomes an added (or
 * special) token.
 */
int recipe_extend(struct recipe *r, const struct tokenizer *t, const char *const *text, size_t n,
                  size_t nspecial /* the first of them */, struct recipe_rows *ret, struct err *e);

/* Appends the pieces of `b` that `r` lacks after all ids of r. Pipelines must be the same. */
int recipe_join(struct recipe *r, const struct tokenizer *t, const struct recipe *b,
                const struct tokenizer *tb, struct recipe_rows *ret, struct err *e);

/*
 * Keeps special and added tokens, bytes and the unknown piece; of the others those with a count (if
 * counts are given, by id), at most `size` in all (0: any number): the most frequent, or without
 * counts those learnt first. A BPE keeps with each piece what merging it passes through. Without
 * `size`, counted texts keep their ids up to renumbering (except for some texts with unknown words
 * of a WordPiece).
 */
int recipe_prune(struct recipe *r, const struct tokenizer *t, const uint64_t *count, size_t size,
                 struct recipe_rows *ret, struct err *e);

#endif
