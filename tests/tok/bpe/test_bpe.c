/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/bpe.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "tests/t.h"

/* The definition: merge the lowest rank, leftmost first, until no pair is left. */
struct plain {
    const struct bpe_pair *pair;
    size_t n;
    uint64_t *log; /* pairs that became adjacent, left << 32 | right */
    size_t nlog;
};

static const struct bpe_pair *plain_find(const struct plain *p, uint32_t left, uint32_t right)
{
    for (size_t i = p->n; i--;)
        if (p->pair[i].left == left && p->pair[i].right == right)
            return &p->pair[i];
    return NULL;
}

static void plain_see(struct plain *p, uint32_t left, uint32_t right)
{
    if (p->log && plain_find(p, left, right))
        p->log[p->nlog++] = (uint64_t)left << 32 | right;
}

static size_t plain_merge(struct plain *p, uint32_t *sym, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        plain_see(p, sym[i], sym[i + 1]);
    for (;;) {
        const struct bpe_pair *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const struct bpe_pair *q = plain_find(p, sym[i], sym[i + 1]);
            if (q && (!best || q->rank < best->rank)) {
                best = q;
                at = i;
            }
        }
        if (!best)
            return n;
        sym[at] = best->id;
        n--;
        memmove(sym + at + 1, sym + at + 2, (n - at - 1) * sizeof(*sym));
        if (at)
            plain_see(p, sym[at - 1], sym[at]);
        if (at + 1 < n)
            plain_see(p, sym[at], sym[at + 1]);
    }
}

static void hear(void *arg, uint32_t left, uint32_t right, uint32_t id)
{
    struct plain *p = arg;
    (void)id;
    p->log[p->nlog++] = (uint64_t)left << 32 | right;
}

enum { LONGEST = 400, PAIRS = 60 };

/* Random tables: few symbols, so that runs overlap; few ranks, so that there are ties; ids that
 * form pairs of lower rank, or ascend with gaps; duplicate pairs. */
static size_t random_pairs(struct bpe_pair *pair, uint64_t n)
{
    uint32_t letters = 1 + t_rand(n, 0) % 6, ranks = 1 + t_rand(n, 1) % (n & 1 ? 4 : 100);
    size_t count = t_rand(n, 2) % PAIRS;
    for (size_t i = 0; i < count; i++) {
        uint32_t known = letters + (uint32_t)(n & 32 ? i * (1 + n % 6) : i);
        pair[i] = (struct bpe_pair){.left = t_rand(n, 10 + i * 4) % known,
                                    .right = t_rand(n, 11 + i * 4) % (n & 2 ? letters : known),
                                    .rank = n & 4 ? (uint32_t)i : t_rand(n, 12 + i * 4) % ranks,
                                    .id = n & 8 ? t_rand(n, 13 + i * 4) % known : known};
        if (n & 16)
            pair[i].rank = UINT32_MAX - 1 - pair[i].rank * 7;
    }
    return count;
}

static void check(const struct bpe *m, struct bpe_work *w, struct plain *p, const uint32_t *sym,
                  size_t n)
{
    static uint32_t got[LONGEST], want[LONGEST];
    static uint64_t heard[4 * LONGEST], log[4 * LONGEST];
    memcpy(got, sym, n * sizeof(*sym));
    memcpy(want, sym, n * sizeof(*sym));
    p->log = log;
    p->nlog = 0;
    size_t nwant = plain_merge(p, want, n);
    T_EQ(bpe_merge(m, w, got, n), nwant);
    T_MEM(got, want, nwant * sizeof(*got));
    memcpy(got, sym, n * sizeof(*sym));
    struct plain ear = {.log = heard};
    T_EQ(bpe_merge_seen(m, w, got, n, hear, &ear), nwant);
    T_MEM(got, want, nwant * sizeof(*got));
    T_EQ(ear.nlog, p->nlog);
    T_MEM(heard, log, ear.nlog * sizeof(*log));
}

/* Random words side by side, up to the number of lanes. */
static void check_short(const struct bpe *m, struct plain *p, uint64_t n, uint32_t letters)
{
    uint32_t sym[BPE_SHORT][BPE_LANES], want[BPE_LANES][BPE_SHORT], left[BPE_LANES] = {0};
    size_t words = n % (BPE_LANES + 1);
    p->log = NULL;
    for (size_t k = 0; k < words; k++) {
        left[k] = (uint32_t)(t_rand(n, 5000 + k) % (BPE_SHORT + 1));
        for (size_t i = 0; i < left[k]; i++) {
            want[k][i] = t_rand(n, 6000 + k * BPE_SHORT + i) % letters;
            want[k][i] += want[k][i] + 1 == letters && n % 5 == 0 ? 1u << 31 : 0; /* in no pair */
            sym[i][k] = want[k][i];
        }
    }
    bpe_merge_short(m, sym, left, words);
    for (size_t k = 0; k < words; k++) {
        uint32_t length = left[k];
        T_EQ(length, plain_merge(p, want[k], t_rand(n, 5000 + k) % (BPE_SHORT + 1)));
        for (size_t i = 0; i < length; i++)
            T_EQ(sym[i][k], want[k][i]);
    }
}

static void as_defined(void)
{
    struct bpe_work w = {0};
    struct bpe_pair pair[PAIRS];
    uint32_t sym[LONGEST];
    uint64_t tables = getenv("WEFT_FULL") ? 100000 : 3000;
    for (uint64_t n = 0; n < tables; n++) {
        struct plain p = {.pair = pair, .n = random_pairs(pair, n)};
        struct bpe *m = bpe_create(pair, p.n);
        for (uint64_t i = 0; i < 4; i++) {
            size_t length = t_rand(n, 1000 + i) % (i == 3 ? LONGEST : i == 2 ? 90 : 20);
            uint32_t letters = 1 + t_rand(n, 2000 + i) % 7;
            for (size_t k = 0; k < length; k++)
                sym[k] = t_rand(n * 4 + i, 3000 + k) % letters;
            check(m, &w, &p, sym, length);
            check_short(m, &p, n * 4 + i, letters);
        }
        bpe_destroy(m);
    }
    bpe_work_finish(&w);
}

/* Words anywhere in a text, of any length, up to the number of lanes. */
static void bytes_of_words(void)
{
    enum { TEXT = 1000 };
    char text[TEXT + BPE_SHORT + 3];
    uint32_t of[256], sym[BPE_SHORT][BPE_LANES], at[BPE_LANES], n[BPE_LANES];
    for (uint32_t i = 0; i < 256; i++)
        of[i] = t_rand(1, i);
    for (uint32_t i = 0; i < sizeof(text); i++)
        text[i] = (char)t_rand(2, i);
    for (uint32_t round = 0; round < 3000; round++) {
        size_t count = round % (BPE_LANES + 1);
        uint32_t longest = 1 + round % BPE_SHORT;
        for (uint32_t k = 0; k < count; k++) {
            at[k] = t_rand(round, 3 + k) % TEXT;
            n[k] = t_rand(round, 100 + k) % (longest + 1);
        }
        bpe_put_bytes(of, text, at, n, count, sym);
        for (size_t k = 0; k < count; k++)
            for (size_t i = 0; i < n[k]; i++)
                T_EQ(sym[i][k], of[(uint8_t)text[at[k] + i]]);
    }
}

/*
 * So many pairs that some lookups hit a different pair: side by side and one by one give the same.
 */
static void taken_for_another(bool ascending)
{
    enum { N = 200000, LETTERS = 1500, LENGTH = 40, ROUNDS = 300 };
    struct bpe_work w = {0};
    struct bpe_pair *pair = mem_new(N, sizeof(*pair));
    for (uint32_t i = 0; i < N; i++)
        pair[i] = (struct bpe_pair){t_rand(1, i) % (LETTERS + i / 2), t_rand(2, i) % LETTERS, i,
                                    LETTERS + (ascending ? i : N - 1 - i)};
    struct bpe *m = bpe_create(pair, N);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t sym[BPE_SHORT][BPE_LANES], want[BPE_LANES][LENGTH], n[BPE_LANES];
        for (size_t k = 0; k < BPE_LANES; k++) {
            n[k] = LENGTH;
            for (size_t i = 0; i < LENGTH; i++)
                sym[i][k] = want[k][i] = t_rand(round + 3, k * LENGTH + i) % LETTERS;
        }
        bpe_merge_short(m, sym, n, BPE_LANES);
        for (size_t k = 0; k < BPE_LANES; k++) {
            T_EQ(n[k], bpe_merge(m, &w, want[k], LENGTH));
            for (size_t i = 0; i < n[k]; i++)
                T_EQ(sym[i][k], want[k][i]);
        }
    }
    bpe_destroy(m);
    bpe_work_finish(&w);
    free(pair);
}

static void many_alike(void)
{
    taken_for_another(true);
    taken_for_another(false);
}

/* a a -> b, b b -> c, ...: one letter a million times; and no merge at all. */
static void one_letter(void)
{
    enum { N = 1 << 20, LEVELS = 12 };
    struct bpe_work w = {0};
    struct bpe_pair pair[LEVELS];
    uint32_t *sym = mem_new(N, sizeof(*sym));
    for (uint32_t i = 0; i < LEVELS; i++)
        pair[i] = (struct bpe_pair){i, i, i, i + 1};
    struct bpe *m = bpe_create(pair, LEVELS);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    T_EQ(bpe_merge(m, &w, sym, N), N >> LEVELS);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    T_CHECK(b.tv_sec - a.tv_sec < 60); /* some 20 ms; the definition would take hours */
    for (size_t i = 0; i < N >> LEVELS; i++)
        T_EQ(sym[i], LEVELS);
    bpe_destroy(m);
    bpe_work_finish(&w);
    free(sym);
}

/* Each merge creates the pair that merges next, to the left of many that wait: nested rounds. */
static void cascades(void)
{
    struct bpe_work w = {0};
    struct bpe_pair pair[] = {{0, 1, 9, 2}, {2, 1, 9, 2}, {3, 2, 5, 3}, {2, 0, 3, 0}, {3, 0, 9, 1}};
    struct plain p = {.pair = pair, .n = 5};
    struct bpe *m = bpe_create(pair, 5);
    uint32_t sym[LONGEST];
    for (uint64_t n = 0; n < 300; n++) {
        for (size_t k = 0; k < LONGEST; k++)
            sym[k] = t_rand(n, k) % 8 ? t_rand(n, k) / 8 % 2 : 3;
        check(m, &w, &p, sym, LONGEST);
    }
    bpe_destroy(m);
    bpe_work_finish(&w);
}

static void no_pairs(void)
{
    struct bpe_work w = {0};
    struct bpe *m = bpe_create(NULL, 0);
    uint32_t sym[100] = {0};
    T_EQ(bpe_merge(m, &w, sym, 100), 100);
    T_EQ(bpe_merge(m, &w, sym, 2), 2);
    T_EQ(bpe_merge(m, &w, sym, 0), 0);
    bpe_destroy(m);
    bpe_work_finish(&w);
}

/* More ranks than one level of the index of lists holds. */
static void many_ranks(void)
{
    enum { N = 300000 };
    struct bpe_work w = {0};
    struct bpe_pair *pair = mem_new(N, sizeof(*pair));
    uint32_t sym[LONGEST];
    for (uint32_t i = 0; i < N; i++)
        pair[i] = (struct bpe_pair){i, i + 1, (uint32_t)((uint64_t)i * 7919 % N), N + 1 + i};
    struct bpe *m = bpe_create(pair, N);
    for (uint64_t n = 0; n < 200; n++) {
        uint32_t at = t_rand(7, n) % (N - LONGEST);
        for (uint32_t k = 0; k < LONGEST; k++)
            sym[k] = at + k;
        struct plain p = {.pair = pair + at, .n = LONGEST};
        uint32_t want[LONGEST];
        memcpy(want, sym, sizeof(want));
        size_t k = plain_merge(&p, want, LONGEST);
        T_EQ(bpe_merge(m, &w, sym, LONGEST), k);
        T_MEM(sym, want, k * sizeof(*sym));
    }
    bpe_destroy(m);
    bpe_work_finish(&w);
    free(pair);
}

T_MAIN(T_CASE(as_defined), T_CASE(bytes_of_words), T_CASE(many_alike), T_CASE(one_letter),
       T_CASE(cascades), T_CASE(no_pairs), T_CASE(many_ranks))
