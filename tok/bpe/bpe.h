/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_BPE_H
#define TOK_BPE_BPE_H

/*
 * Byte-pair merging, the one engine behind every format. Of all neighbours that are a pair of the
 * table the one of the lowest rank is joined, of equal ranks the leftmost, until there is none.
 * A list of merges (rank: its line), tiktoken's ranks (every split of a token into two tokens) and
 * SentencePiece's scores (rank: their descending order, equal scores alike) all become such a
 * table.
 *
 * Few symbols are searched one by one; more go through lists of places by rank, so that n symbols
 * take n log n steps whatever they are.
 *
 * The table is immutable and shared by threads; a struct bpe_work belongs to one and allocates
 * nothing once it has seen the longest text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BPE_SYMBOLS = (1 << 21) - 1, /* those of pairs, and what these become, are smaller */
    BPE_RANKS = (1 << 22) - 1,   /* different ones */
    BPE_LANES = 32,
    BPE_SHORT = 72
};

/* Symbols are numbers of the caller's own; those that are in no pair may be any but UINT32_MAX. */
struct bpe_pair {
    uint32_t left, right, rank, id; /* left and right become id */
};

struct bpe;

/* A pair that is there twice counts as its later entry says. */
struct bpe *bpe_create(const struct bpe_pair *pair, size_t n);
void bpe_destroy(struct bpe *m);

/* A zeroed struct is ready for use, with any table. */
struct bpe_work {
    uint32_t *place;       /* the arrays of bpe.c, one behind the other */
    size_t room;           /* symbols that they hold */
    uint32_t *head, *tail; /* of the list of each rank; UINT32_MAX: empty */
    uint64_t *bits;        /* which lists are not empty, which words of these are not, and so on */
    size_t ranks;
    struct bpe_round *round;
    size_t round_room;
    uint32_t *taken; /* places of the rounds */
    size_t taken_room;
};

void bpe_work_finish(struct bpe_work *w);

/* In place; returns how many symbols are left. n < 2^31. */
size_t bpe_merge(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n);

/*
 * Up to BPE_LANES short words at once, a few times faster than one by one: symbol i of word k is
 * sym[i][k], and n[k] <= BPE_SHORT is their number, before and after.
 */
void bpe_merge_short(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count);

/* Their symbols, of words of bytes: word k is text[at[k] .. at[k] + n[k]), byte b is of[b]. Three
 * bytes behind a word are readable. */
void bpe_put_bytes(const uint32_t of[256], const char *text, const uint32_t *at, const uint32_t *n,
                   size_t count, uint32_t sym[][BPE_LANES]);

/*
 * The same as bpe_merge, and `seen` hears of every pair of neighbours that ever stood side by side,
 * in the order in which they came to do so: from left to right at first; after a join, the one with
 * the symbol before, then the one behind.
 */
typedef void bpe_seen(void *arg, uint32_t left, uint32_t right, uint32_t id);
size_t bpe_merge_seen(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg);

#endif
