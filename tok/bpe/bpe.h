/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_BPE_H
#define TOK_BPE_BPE_H

/*
 * Byte-pair merging (Sennrich et al. 2016), the one engine behind every format. Of all adjacent
 * pairs in the table the one with the lowest rank is merged, of equal ranks the leftmost, until no
 * pair is left. A list of merges (rank: its line), tiktoken's ranks (every split of a token into
 * two tokens) and SentencePiece's scores (rank: their descending order, equal scores alike) all
 * become such a table.
 *
 * A few symbols are searched linearly; more go through lists of positions by rank, so that n
 * symbols take O(n log n) steps, whatever they are.
 *
 * The table is immutable and shared by threads; a struct bpe_work belongs to one and allocates
 * nothing once it has seen the longest text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BPE_SYMBOLS = (1 << 21) - 1, /* symbols of pairs, and their results, are below it */
    BPE_RANKS = (1 << 22) - 1,   /* distinct ranks at most */
    BPE_LANES = 32,
    BPE_SHORT = 72
};

/* The caller chooses the symbols; one that is in no pair may be any number but UINT32_MAX. */
struct bpe_pair {
    uint32_t left, right, rank, id; /* left and right become id */
};

struct bpe;

/* If a pair occurs twice, the later entry counts. */
struct bpe *bpe_create(const struct bpe_pair *pair, size_t n);
void bpe_destroy(struct bpe *m);

/* A zeroed struct is ready for use, with any table. */
struct bpe_work {
    uint32_t *place;       /* the arrays of bpe.c, one after another */
    size_t room;           /* their capacity in symbols */
    uint32_t *head, *tail; /* of each rank's list; UINT32_MAX: empty */
    uint64_t *bits; /* non-empty lists; above them, non-zero words of these bits, and so on */
    size_t ranks;
    struct bpe_round *round;
    size_t round_room;
    uint32_t *taken; /* positions of the rounds */
    size_t taken_room;
};

void bpe_work_finish(struct bpe_work *w);

/* Merges in place and returns the number of symbols left. n < 2^31. */
size_t bpe_merge(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n);

/*
 * Up to BPE_LANES short words at once, a few times faster than one by one: symbol i of word k is
 * sym[i][k]; n[k] <= BPE_SHORT is its number of symbols, updated by the call.
 */
void bpe_merge_short(const struct bpe *m, uint32_t sym[][BPE_LANES], uint32_t *n, size_t count);

/* Fills `sym` for byte-level words: word k is text[at[k] .. at[k] + n[k]), byte b is symbol of[b].
 * Three bytes after a word must be readable. */
void bpe_put_bytes(const uint32_t of[256], const char *text, const uint32_t *at, const uint32_t *n,
                   size_t count, uint32_t sym[][BPE_LANES]);

/*
 * As bpe_merge, and calls `seen` for every pair of symbols that is ever adjacent, in the order in
 * which they become so: from left to right at first; after a merge, the pair with the symbol
 * before, then the pair with the symbol after.
 */
typedef void bpe_seen(void *arg, uint32_t left, uint32_t right, uint32_t id);
size_t bpe_merge_seen(const struct bpe *m, struct bpe_work *w, uint32_t *sym, size_t n,
                      bpe_seen *seen, void *arg);

#endif
