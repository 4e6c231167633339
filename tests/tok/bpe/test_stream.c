/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

enum { PAIRS = 80, LONGEST = 200000 };

/* Pairs of which every symbol spells one text: a pair whose text is known makes the known symbol.
 * Ranks may be lower than those of a pair's sides, and equal. */
static size_t random_pairs(struct bpe_pair *pair, uint64_t n, uint32_t letters)
{
    static char text[PAIRS + 8][64];
    uint32_t known = letters;
    size_t count = 0;
    for (uint32_t i = 0; i < letters; i++)
        snprintf(text[i], sizeof(text[i]), "%c", 'a' + (int)i);
    for (size_t i = 0; i < PAIRS; i++) {
        uint32_t l = t_rand(n, 10 + i * 4) % known, r = t_rand(n, 11 + i * 4) % known, id = 0;
        char both[128];
        snprintf(both, sizeof(both), "%s%s", text[l], text[r]);
        if (strlen(both) > 40)
            continue;
        while (id < known && strcmp(text[id], both) != 0)
            id++;
        if (id == known)
            strcpy(text[known++], both);
        pair[count++] = (struct bpe_pair){.left = l,
                                          .right = r,
                                          .rank = n & 1 ? (uint32_t)i : t_rand(n, 12 + i * 4) % 9,
                                          .id = id};
    }
    return count;
}

struct got {
    uint32_t *sym;
    size_t n;
};

static void keep(void *arg, const uint32_t *sym, size_t n)
{
    struct got *g = arg;
    memcpy(g->sym + g->n, sym, n * sizeof(*sym));
    g->n += n;
}

static void put_letters(uint32_t *sym, size_t n, uint64_t seed, uint32_t letters)
{
    uint32_t period = 1 + t_rand(seed, 3) % 7;
    for (size_t i = 0; i < n; i++)
        sym[i] = seed % 3 == 0   ? (uint32_t)(i % period) % letters /* the same again and again */
                 : seed % 3 == 1 ? t_rand(seed, 100 + i) % letters
                                 : t_rand(seed, 100 + i / 50 * 50 + i % 5) % letters;
    for (size_t i = 0; i < n && seed % 4 == 0; i += 1 + t_rand(seed, 99 + i) % 9000)
        sym[i] = 1u << 30; /* in no pair */
}

static void same_as_the_whole(void)
{
    static struct bpe_pair pair[PAIRS];
    uint32_t *sym = mem_new(LONGEST, sizeof(*sym)), *want = mem_new(LONGEST, sizeof(*sym));
    struct got got = {mem_new(LONGEST, sizeof(*sym)), 0};
    struct bpe_work w = {0};
    for (uint64_t n = 0; n < 60; n++) {
        uint32_t letters = 1 + n % 4;
        struct bpe *m = bpe_create(pair, random_pairs(pair, n, letters));
        struct bpe_stream_table *t = bpe_stream_table_create(m);
        struct bpe_stream *s = bpe_stream_create(t);
        T_CHECK(s != NULL);
        for (uint64_t k = 0; k < 6; k++) {
            size_t size = k < 5 ? t_rand(n, k) % 300 : n % 6 ? 30000 : LONGEST;
            put_letters(sym, size, n * 7 + k, letters);
            memcpy(want, sym, size * sizeof(*sym));
            size_t left = bpe_merge(m, &w, want, size);
            got.n = 0;
            for (size_t at = 0, part; at < size || at == 0; at += part) {
                part = 1 + t_rand(n, 7000 + at) % (size < 1000 ? 50 : 70000);
                part = part < size - at ? part : size - at;
                bpe_stream_put(s, sym + at, part, at + part == size, keep, &got);
                if (at + part == size)
                    break;
            }
            T_EQ(got.n, left);
            T_MEM(got.sym, want, left * sizeof(*want));
        }
        bpe_stream_destroy(s);
        bpe_stream_table_destroy(t);
        bpe_destroy(m);
    }
    bpe_work_finish(&w);
    free(sym);
    free(want);
    free(got.sym);
}

/* a, aa, aaaa, ...: of a text of one letter all but its end is final at any time, and eight times
 * the text takes eight times the steps. */
static void symbols_come_out_early(void)
{
    struct bpe_pair pair[6];
    struct got got = {mem_new(1 << 20, sizeof(uint32_t)), 0};
    uint32_t *sym = mem_new(1 << 20, sizeof(*sym));
    uint64_t work[2];
    for (uint32_t i = 0; i < 6; i++)
        pair[i] = (struct bpe_pair){.left = i, .right = i, .rank = i, .id = i + 1};
    struct bpe *m = bpe_create(pair, 6);
    struct bpe_stream_table *t = bpe_stream_table_create(m);
    struct bpe_stream *s = bpe_stream_create(t);
    for (int k = 0; k < 2; k++) {
        size_t n = (size_t)1 << (17 + 3 * k);
        got.n = 0;
        bpe_stream_take_work(s);
        bpe_stream_put(s, sym, n, false, keep, &got);
        T_CHECK(got.n * 64 + (1 << 16) >= n);
        bpe_stream_put(s, sym, 0, true, keep, &got);
        T_EQ(got.n, n / 64);
        work[k] = bpe_stream_take_work(s);
    }
    T_CHECK(work[1] < work[0] * 8 * 3 / 2);
    bpe_stream_destroy(s);
    bpe_stream_table_destroy(t);
    bpe_destroy(m);
    free(sym);
    free(got.sym);
}

static void check_whole(const struct bpe_pair *pair, size_t pairs, const uint32_t *sym, size_t n)
{
    uint32_t *want = mem_new(n, sizeof(*want));
    struct got got = {mem_new(n, sizeof(*want)), 0};
    struct bpe_work w = {0};
    memcpy(want, sym, n * sizeof(*want));
    struct bpe *m = bpe_create(pair, pairs);
    struct bpe_stream_table *t = bpe_stream_table_create(m);
    struct bpe_stream *s = bpe_stream_create(t);
    size_t left = bpe_merge(m, &w, want, n);
    bpe_stream_put(s, sym, n, true, keep, &got);
    T_EQ(got.n, left);
    T_MEM(got.sym, want, left * sizeof(*want));
    bpe_stream_destroy(s);
    bpe_stream_table_destroy(t);
    bpe_destroy(m);
    bpe_work_finish(&w);
    free(want);
    free(got.sym);
}

/* Symbols 0 and 1 make 3, 0 and 2 make 4: after 1 nothing is begun, nor after 2, and they remain
 * what they are. */
static void symbols_that_begin_nothing(void)
{
    static const struct bpe_pair pair[] = {{.left = 0, .right = 1, .rank = 0, .id = 3},
                                           {.left = 0, .right = 2, .rank = 1, .id = 4}};
    uint32_t sym[2000];
    for (size_t i = 0; i < 2000; i++)
        sym[i] = t_rand(1, i) % 3;
    check_whole(pair, 2, sym, 2000);
}

/* More symbols and nodes than are numbered at a time, and some of them more often than others. */
static void more_symbols_than_numbers(void)
{
    enum { LETTERS = 100, TEXT = 500000 };
    struct bpe_pair *pair = mem_new((size_t)LETTERS * LETTERS, sizeof(*pair));
    uint32_t *sym = mem_new(TEXT, sizeof(*sym));
    for (uint32_t i = 0; i < LETTERS * LETTERS; i++)
        pair[i] = (struct bpe_pair){.left = i / LETTERS,
                                    .right = i % LETTERS,
                                    .rank = t_rand(2, i) % 5000,
                                    .id = LETTERS + i};
    for (size_t i = 0; i < TEXT; i++)
        sym[i] = t_rand(3, i) % (i % 256 < 64 ? LETTERS : 8);
    check_whole(pair, (size_t)LETTERS * LETTERS, sym, TEXT);
    free(pair);
    free(sym);
}

/* A symbol that is made of two different texts has no table. */
static void texts_must_be_known(void)
{
    static const struct bpe_pair two[] = {{.left = 0, .right = 1, .rank = 0, .id = 5},
                                          {.left = 1, .right = 1, .rank = 1, .id = 5}};
    static const struct bpe_pair endless[] = {{.left = 0, .right = 1, .rank = 0, .id = 0}};
    for (int i = 0; i < 2; i++) {
        struct bpe *m = i ? bpe_create(endless, 1) : bpe_create(two, 2);
        struct bpe_stream_table *t = bpe_stream_table_create(m);
        T_CHECK(!bpe_stream_create(t));
        bpe_stream_table_destroy(t);
        bpe_destroy(m);
    }
}

T_MAIN(T_CASE(same_as_the_whole), T_CASE(symbols_come_out_early),
       T_CASE(symbols_that_begin_nothing), T_CASE(more_symbols_than_numbers),
       T_CASE(texts_must_be_known))
