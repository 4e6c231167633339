/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/ranks_to_merges.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

/*
 * Random vocabularies of a few letters, in which nearly every case occurs: pieces that merging does
 * not reach, pieces reached through higher ones, runs of one letter. The slow twin merges by the
 * ranks themselves.
 */

enum { MOST = 120, LONGEST = 12 };

struct made {
    char text[MOST][LONGEST + 1];
    size_t n;
};

static int find(const struct made *m, const char *p, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (strlen(m->text[i]) == n && !memcmp(m->text[i], p, n))
            return (int)i;
    return -1;
}

static void add(struct made *m, const char *p, size_t n)
{
    if (n > LONGEST || m->n == MOST || find(m, p, n) >= 0)
        return;
    memcpy(m->text[m->n], p, n);
    m->text[m->n++][n] = 0;
}

static void swap(struct made *m, size_t i, size_t j)
{
    char was[LONGEST + 1];
    if (i == j)
        return;
    strcpy(was, m->text[i]);
    strcpy(m->text[i], m->text[j]);
    strcpy(m->text[j], was);
}

enum { GROWN, LETTERS_LAST, SHUFFLED, ANY, WAYS };

/* Pieces made of two others; these, with the letters after them, or in any order; any strings. */
static void make(struct made *m, uint64_t r, int how)
{
    uint64_t k = 0;
    size_t letters = 1 + t_rand(r, k++) % 3, want = 5 + t_rand(r, k++) % (MOST - 5);
    *m = (struct made){0};
    for (size_t i = 0; i < letters; i++)
        add(m, &"abc"[i], 1);
    for (int tries = 0; tries < 400 && m->n < want; tries++) {
        char text[2 * LONGEST + 1] = "";
        if (how == ANY) {
            size_t n = 2 + t_rand(r, k++) % 6;
            for (size_t i = 0; i < n; i++)
                text[i] = "abc"[t_rand(r, k++) % letters];
        } else {
            strcpy(text, m->text[t_rand(r, k++) % m->n]);
            strcat(text, m->text[t_rand(r, k++) % m->n]);
        }
        add(m, text, strlen(text));
    }
    for (size_t i = 0; how == LETTERS_LAST && i + letters < m->n; i++)
        swap(m, i, i + letters);
    for (size_t i = m->n - 1; how == SHUFFLED && i; i--)
        swap(m, i, t_rand(r, k++) % (i + 1));
}

/* The result of merging; ret_two: the last two symbols, before they became one. */
static size_t merge(const struct made *m, const char *text, size_t n, int *id, int ret_two[2])
{
    size_t at[64], count = n;
    ret_two[0] = ret_two[1] = -1;
    for (size_t i = 0; i <= n; i++)
        at[i] = i;
    for (;;) {
        int best = -1;
        size_t where = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            int x = find(m, text + at[i], at[i + 2] - at[i]);
            if (x >= 0 && (best < 0 || x < best)) {
                best = x;
                where = i;
            }
        }
        if (best < 0)
            break;
        if (count == 2) {
            ret_two[0] = find(m, text, at[1]);
            ret_two[1] = find(m, text + at[1], n - at[1]);
        }
        memmove(at + where + 1, at + where + 2, (count - where - 1) * sizeof(*at));
        count--;
    }
    for (size_t i = 0; i < count; i++)
        id[i] = find(m, text + at[i], at[i + 1] - at[i]);
    return count;
}

struct ranks {
    struct tok_vocab vocab;
    struct bpe_merges merges;
};

static void finish(struct ranks *s)
{
    vocab_finish(&s->vocab);
    bpe_merges_finish(&s->merges);
}

static void open_spec(struct ranks *s, const struct made *m)
{
    struct err e;
    *s = (struct ranks){.vocab.path = "made"};
    T_OK(vocab_room(&s->vocab, m->n, m->n, &e), &e);
    for (size_t i = 0; i < m->n; i++)
        T_OK(vocab_add(&s->vocab, m->text[i], strlen(m->text[i]), (int64_t)i, &e), &e);
    T_OK(vocab_index(&s->vocab, &e), &e);
}

/* For each piece its last two symbols, and no others; or all splits, if pieces depend on higher
 * ones. */
static bool pairs_are_those_made(uint64_t r, int how)
{
    struct made m;
    struct ranks s;
    size_t k = 0;
    make(&m, r, how);
    open_spec(&s, &m);
    T_CHECK(rank_pairs(&s.vocab, false, &s.merges));
    bool told = s.merges.unreached;
    for (size_t id = 0; id < m.n && told; id++) {
        int ids[64], two[2];
        size_t n = strlen(m.text[id]);
        bool reached = merge(&m, m.text[id], n, ids, two) == 1;
        T_EQ(s.merges.unreached[id], !reached);
        if (n == 1 || !reached)
            continue;
        T_CHECK(k < s.merges.npairs && s.merges.pair[k].id == id && s.merges.pair[k].rank == id);
        T_EQ(s.merges.pair[k].left, two[0]);
        T_EQ(s.merges.pair[k++].right, two[1]);
    }
    T_EQ(told ? s.merges.npairs : 0, k);
    for (size_t id = 0; id < m.n && !told; id++)
        for (size_t i = 1; i < strlen(m.text[id]); i++) {
            int left = find(&m, m.text[id], i);
            int right = find(&m, m.text[id] + i, strlen(m.text[id]) - i);
            if (left < 0 || right < 0)
                continue;
            T_CHECK(k < s.merges.npairs && s.merges.pair[k].id == id &&
                    s.merges.pair[k].left == (uint32_t)left &&
                    s.merges.pair[k].right == (uint32_t)right);
            k++;
        }
    T_EQ(s.merges.npairs, k);
    finish(&s);
    return told;
}

/* Every split as a merge of its own, those of one piece in any order. */
static void list_splits(struct ranks *s, uint64_t r)
{
    T_CHECK(rank_pairs(&s->vocab, true, &s->merges));
    for (size_t i = 1; i < s->merges.npairs; i++) {
        size_t j = t_rand(r, i) % (i + 1);
        struct bpe_pair was = s->merges.pair[i];
        if (s->merges.pair[j].id != was.id)
            continue;
        s->merges.pair[i] = s->merges.pair[j];
        s->merges.pair[j] = was;
    }
    for (size_t i = 0; i < s->merges.npairs; i++)
        s->merges.pair[i].rank = (uint32_t)i;
}

/* The reduced list merges any text as the whole list does. */
static bool lists_merge_alike(uint64_t r, int how)
{
    struct made m;
    struct ranks s;
    make(&m, r, how);
    open_spec(&s, &m);
    list_splits(&s, r);
    size_t all = s.merges.npairs;
    struct bpe *whole = bpe_create(s.merges.pair, s.merges.npairs);
    rank_pairs_keep_made(&s.vocab, &s.merges);
    struct bpe *kept = bpe_create(s.merges.pair, s.merges.npairs);
    struct bpe_work w = {0};
    for (uint64_t k = 0; k < 20; k++) {
        enum { LENGTH = 24 };
        uint32_t a[LENGTH], b[LENGTH];
        for (size_t i = 0; i < LENGTH; i++) {
            a[i] = (uint32_t)find(&m, &"abc"[t_rand(r + k, i) % 3], 1);
            a[i] = b[i] = a[i] == UINT32_MAX ? (uint32_t)find(&m, "a", 1) : a[i];
        }
        size_t n = bpe_merge(whole, &w, a, LENGTH);
        T_EQ(bpe_merge(kept, &w, b, LENGTH), n);
        T_CHECK(!memcmp(a, b, n * sizeof(*a)));
    }
    bpe_work_finish(&w);
    bpe_destroy(whole);
    bpe_destroy(kept);
    bool fewer = s.merges.npairs < all;
    finish(&s);
    return fewer;
}

static void lists_of_all_splits(void)
{
    enum { ROUNDS = 200 };
    size_t fewer = 0;
    for (uint64_t r = 0; r < ROUNDS; r++)
        for (int how = GROWN; how < WAYS; how++)
            fewer += lists_merge_alike(WAYS * r + (uint64_t)how, how);
    T_CHECK(fewer > ROUNDS);
}

static void made_up_vocabularies(void)
{
    size_t told[WAYS] = {0};
    enum { ROUNDS = 600 };
    for (uint64_t r = 0; r < ROUNDS; r++)
        for (int how = GROWN; how < WAYS; how++)
            told[how] += pairs_are_those_made(WAYS * r + (uint64_t)how, how);
    for (int how = GROWN; how < WAYS; how++)
        T_CHECK(told[how] > 0 && told[how] < ROUNDS);
    T_CHECK(told[GROWN] > ROUNDS / 4 && told[LETTERS_LAST] > ROUNDS / 4);
}

/* Pieces of 1 to 2100 equal letters have over two million splits. */
static void too_many_splits(void)
{
    static char text[2100];
    struct ranks s;
    struct err e;
    memset(text, 'a', sizeof(text));
    for (size_t n = 1000; n <= sizeof(text); n += 1100) {
        s = (struct ranks){.vocab.path = "made"};
        T_OK(vocab_room(&s.vocab, n, n, &e), &e);
        for (size_t i = 0; i < n; i++)
            T_OK(vocab_add(&s.vocab, text, i + 1, (int64_t)i, &e), &e);
        T_OK(vocab_index(&s.vocab, &e), &e);
        T_EQ(rank_pairs(&s.vocab, true, &s.merges), n == 1000);
        finish(&s);
    }
}

T_MAIN(T_CASE(too_many_splits), T_CASE(made_up_vocabularies), T_CASE(lists_of_all_splits))
