/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_KERNELS_H
#define TOK_SP_KERNELS_H

/*
 * The loops of the unigram model that are written for several processors, as in
 * tok/text/kernels.h, and the batch of segments that they work on (unigram_lanes.c).
 * tests/tok/test_kernels.c runs each entry against its twin, tests/bench/bench_kernels.c times
 * both.
 */

#include "base/core/simd.h"
#include "tok/sp/unigram_internal.h"
#include "tok/text/kernels.h"

enum {
    UNIGRAM_AHEAD = 64, /* bytes after a text that must be readable */
    UNIGRAM_MARK = 0xff /* in place of a character's bytes: a space */
};

#define UNIGRAM_ROUGH ((uint32_t)1 << 31) /* flag of a number: the text must be normalized */

/*
 * Writes to to[k] the four bytes from the start of character k of n bytes of valid UTF-8 on, the
 * first one lowest; returns the number of characters. 16 more entries may be written.
 */
typedef size_t unigram_spread_fn(const char *text, size_t n, uint32_t *to);

/*
 * Replaces the bytes of n characters by their numbers in u->ends, and UNIGRAM_MARK by u->space.
 * With `raw`, numbers of characters that the normalizer changes get UNIGRAM_ROUGH; returns whether
 * there are any. 16 entries after n may be overwritten.
 */
typedef bool unigram_number_fn(const struct unigram *u, uint32_t *number, size_t n, bool raw);

/*
 * Finds the best paths of the first texts of a batch and returns their number; the others are left
 * to unigram_learn. Sets ids, limit and rows of `sum`.
 */
typedef size_t unigram_paths_fn(const struct unigram *u, struct unigram_lanes *w);

struct sp_kernels {
    unigram_spread_fn *spread;
    unigram_number_fn *number;
    unigram_paths_fn *paths;
};

extern const struct sp_kernels sp_kernels[SIMD_LEVELS];

unigram_spread_fn unigram_spread_plain, unigram_spread_avx512;
unigram_number_fn unigram_number_plain, unigram_number_avx512;
unigram_paths_fn unigram_paths_plain, unigram_paths_avx512;

struct unigram_lanes {
    const struct sp_kernels *kernels;
    aho_corasick_walk_fn *walk;
    uint32_t *number; /* of the characters of all texts; at first their bytes */
    size_t nnumber, number_room;
    size_t count;                              /* texts */
    uint32_t begin[WORD_LIST], end[WORD_LIST]; /* their numbers */
    bool rough[WORD_LIST];
    uint32_t place[WORD_LIST];       /* indices in `texts`: */
    struct aho_corasick_texts texts; /* those that are not empty, the longest first */
    uint32_t chars[WORD_LIST + AHO_CORASICK_LANES];
    size_t done; /* the first of them, for which ids, limit and sum are set */
    float limit[WORD_LIST + AHO_CORASICK_LANES];
    uint32_t ids[WORD_LIST + AHO_CORASICK_LANES]; /* how many */
    uint32_t *piece; /* rows: the longest piece that ends after a character; then the last one of
                        the best path there, and its characters */
    uint32_t *gap;   /* rows: margin of that path over the next best */
    uint32_t *sum;   /* rows: scores of the best paths; then the ids, from last to first */
    size_t room;
};

#endif
