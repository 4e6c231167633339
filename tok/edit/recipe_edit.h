/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_EDIT_RECIPE_EDIT_H
#define TOK_EDIT_RECIPE_EDIT_H

/*
 * Vocabularies that grow and shrink, and which row of an embedding each id of the new one gets.
 * The recipe is written in the format from which it was read.
 *
 * Files that are lists (vocab.json with merges.txt, tiktoken's ranks, vocab.txt) hold pieces only.
 * Special tokens, where they are no pieces, keep their ids without a line, or get new ones when it
 * shrinks.
 */

#include "tok/edit/recipe.h"

/* What becomes of the rows of an embedding matrix; tok/FORMAT.md has the file. */
struct recipe_rows {
    size_t old_size, n;
    int32_t *old;  /* by new id; -1: a new row, */
    size_t *start; /* which is the mean of those of from[start[id] .. start[id + 1]) */
    struct tok_ids from;
};

void recipe_rows_finish(struct recipe_rows *w);
void recipe_rows_put(const struct recipe_rows *w, struct buf *b);

/*
 * Ids of added tokens that the vocabulary lacks follow on from the number of pieces, whatever the
 * file says. Where that gives other ids, and always when `pieces` come behind them, they go among
 * the pieces, where ids are their own (true). Megatron-LM's pieces behind a SentencePiece model's
 * do, too.
 */
bool recipe_make_room(struct recipe *r, const struct tokenizer *t, bool pieces);

bool recipe_is_list(const struct recipe *r);

/*
 * A new piece of a list as the file spells it, NUL behind it; notes what the file does not say of
 * it. ERR_USAGE: it cannot hold the piece.
 */
int recipe_spell_piece(struct recipe *r, const char *text, bool special, const char **ret,
                       struct err *e);

/* The name that --tiktoken-pattern has for what cuts the text, else the pattern itself. */
const char *recipe_pattern_name(const struct recipe *r);

/* Of ranks, before they are written: special tokens are no ranks, which is noted, as the pattern.
 */
void recipe_drop_tokens(struct recipe *r);

/*
 * Added tokens behind all ids. One that the vocabulary has keeps its id and becomes an added (or
 * special) token.
 */
int recipe_extend(struct recipe *r, const struct tokenizer *t, const char *const *text, size_t n,
                  size_t nspecial /* the first of them */, struct recipe_rows *ret, struct err *e);

/* The pieces of `b` that `r` lacks, behind all ids of r. Pipelines must be the same. */
int recipe_join(struct recipe *r, const struct tokenizer *t, const struct recipe *b,
                const struct tokenizer *tb, struct recipe_rows *ret, struct err *e);

/*
 * Keeps special and added tokens, bytes and the unknown piece; of the others those with a count (if
 * counts are given, by id), at most `size` in all (0: any number), the frequent ones first, else
 * those that were learnt first. A BPE keeps with each piece what merging it passes through. With no
 * `size` texts that were counted have the same ids but for their numbers (of a WordPiece with words
 * that it does not know, not always).
 */
int recipe_prune(struct recipe *r, const struct tokenizer *t, const uint64_t *count, size_t size,
                 struct recipe_rows *ret, struct err *e);

#endif
