/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "tests/t.h"
#include "tok/text/byte_alphabet.h"

enum { MOST = 40, LONG = 24, VOCAB = 600 };

/* The slow twin: symbols as rows of ids, all pairs counted again before each merge. Equal to the
 * trainer as long as no merge spells an existing symbol. */
struct twin {
    uint32_t word[MOST][LONG];
    size_t n[MOST];
    uint64_t count[MOST];
    char *text[VOCAB];
    uint32_t ids;
    struct learn_pair merge[VOCAB];
    size_t nmerges;
    uint64_t pairs[VOCAB][VOCAB];
};

static bool twin_best(struct twin *t, struct learn_pair *best)
{
    memset(t->pairs, 0, sizeof(t->pairs));
    for (size_t i = 0; i < MOST; i++)
        for (size_t k = 1; k < t->n[i]; k++)
            t->pairs[t->word[i][k - 1]][t->word[i][k]] += t->count[i];
    uint64_t most = 0;
    for (uint32_t l = 0; l < t->ids; l++)
        for (uint32_t r = 0; r < t->ids; r++)
            if (t->pairs[l][r] > most) {
                most = t->pairs[l][r];
                *best = (struct learn_pair){l, r};
            }
    return most > 0;
}

static void twin_merge(struct twin *t, struct learn_pair p)
{
    for (size_t i = 0; i < MOST; i++) {
        size_t m = 0;
        for (size_t k = 0; k < t->n[i]; m++) {
            bool here = k + 1 < t->n[i] && t->word[i][k] == p.left && t->word[i][k + 1] == p.right;
            t->word[i][m] = here ? t->ids : t->word[i][k];
            k += here ? 2 : 1;
        }
        t->n[i] = m;
    }
    t->text[t->ids++] = mem_printf("%s%s", t->text[p.left], t->text[p.right]);
    t->merge[t->nmerges++] = p;
}

/* False if a merge would spell an existing symbol. */
static bool twin_run(struct twin *t, size_t size)
{
    struct learn_pair p = {0};
    while (t->ids < size && twin_best(t, &p)) {
        char *text = mem_printf("%s%s", t->text[p.left], t->text[p.right]);
        bool known = false;
        for (uint32_t i = 0; i < t->ids; i++)
            known |= strcmp(t->text[i], text) == 0;
        free(text);
        if (known)
            return false;
        twin_merge(t, p);
    }
    return true;
}

static void make(uint64_t seed, int letters, struct learn_words *w, struct twin *t)
{
    *w = (struct learn_words){.n = MOST};
    w->text = mem_new(MOST * LONG + 64, 1);
    w->start = mem_new(MOST + 1, sizeof(*w->start));
    w->count = mem_new(MOST, sizeof(*w->count));
    memset(t, 0, sizeof(*t));
    for (uint32_t i = 0; i < MOST; i++) {
        size_t n = 1 + t_rand(seed, 10 * i) % LONG;
        w->count[i] = t->count[i] = 1 + t_rand(seed, 10 * i + 1) % 5;
        if (i == 7) /* heavier than 31 bits */
            w->count[i] = t->count[i] = (uint64_t)5 << 32;
        w->start[i + 1] = w->start[i] + n;
        for (size_t k = 0; k < n; k++) {
            char c = (char)('a' + t_rand(seed + 1000, i * LONG + k) % (uint32_t)letters);
            w->text[w->start[i] + k] = c;
        }
    }
    bool seen[26] = {false};
    for (uint64_t i = 0; i < w->start[MOST]; i++)
        seen[w->text[i] - 'a'] = true;
    uint32_t id[26] = {0};
    for (uint32_t c = 0; c < 26; c++)
        if (seen[c]) {
            id[c] = t->ids;
            t->text[t->ids++] = mem_printf("%c", (int)('a' + c));
        }
    for (size_t i = 0; i < MOST; i++)
        for (uint64_t k = w->start[i]; k < w->start[i + 1]; k++)
            t->word[i][t->n[i]++] = id[w->text[k] - 'a'];
}

/* All pairs tracked from the beginning, symbols spelled twice included. */
static void same_without_a_floor(uint64_t seed, size_t size, const struct learn_vocab *v)
{
    struct twin *t = mem_new(1, sizeof(*t));
    struct learn_words w;
    struct learn_vocab all;
    struct err e;
    make(seed, 2 + (int)(seed % 20), &w, t);
    struct learn_bpe_options o = {.bytes = true, .vocab_size = size, .floor = 1};
    T_OK(learn_bpe(&o, &w, &all, &e), &e);
    T_EQ(all.n, v->n);
    T_EQ(all.nmerges, v->nmerges);
    T_MEM(all.merge, v->merge, v->nmerges * sizeof(*v->merge));
    for (uint32_t i = 0; i < t->ids; i++)
        free(t->text[i]);
    learn_vocab_finish(&all);
    free(t);
}

static void equals_counting_anew(void)
{
    struct twin *t = mem_new(1, sizeof(*t));
    int compared = 0;
    for (uint64_t seed = 0; seed < 90; seed++) {
        struct learn_words w;
        struct learn_vocab v;
        struct err e;
        make(seed, 2 + (int)(seed % 20), &w, t);
        size_t size = 30 + t_rand(seed, 999) % 200;
        struct learn_bpe_options o = {
            .bytes = true, .vocab_size = size, .floor = seed % 3 * t_rand(seed, 998) % 60};
        T_OK(learn_bpe(&o, &w, &v, &e), &e);
        if (twin_run(t, size)) {
            compared++;
            T_EQ(v.n, t->ids);
            T_EQ(v.nmerges, t->nmerges);
            T_MEM(v.merge, t->merge, t->nmerges * sizeof(*t->merge));
            for (size_t i = 0; i < v.n; i++)
                T_STR(v.piece[i].text, t->text[i]);
        }
        same_without_a_floor(seed, size, &v);
        for (uint32_t i = 0; i < t->ids; i++)
            free(t->text[i]);
        learn_vocab_finish(&v);
    }
    free(t);
    T_CHECK(compared > 20);
}

static void words_of(const char *const *word, const uint64_t *count, size_t n,
                     struct learn_words *w)
{
    struct buf b = {0};
    *w = (struct learn_words){.n = n};
    w->start = mem_new(n + 1, sizeof(*w->start));
    w->count = mem_new(n, sizeof(*w->count));
    for (size_t i = 0; i < n; i++) {
        buf_adds(&b, word[i]);
        w->start[i + 1] = b.len;
        w->count[i] = count[i];
    }
    buf_reserve(&b, 64);
    w->text = b.data;
}

static void learn(struct learn_bpe_options o, struct learn_vocab *v)
{
    static const char *const word[] = {"low", "lower", "newest", "widest"};
    static const uint64_t count[] = {5, 2, 6, 3};
    struct learn_words w;
    struct err e;
    words_of(word, count, 4, &w);
    T_OK(learn_bpe(&o, &w, v, &e), &e);
}

static void special_tokens_come_first_and_may_be_merged_to(void)
{
    static const char *const special[] = {"<s>", "es"};
    struct learn_vocab v;
    learn(
        (struct learn_bpe_options){
            .bytes = true, .vocab_size = 16, .special = special, .nspecial = 2},
        &v);
    T_STR(v.piece[0].text, "<s>");
    T_STR(v.piece[1].text, "es");
    T_STR(v.piece[2].text, "d");
    T_EQ(v.n, 16);
    T_EQ(v.nmerges, 5);                 /* 2 special, 10 letters; one merge gives "es", 4 are new */
    T_STR(v.piece[v.n - 1].text, "ew"); /* 6 times, as "ne" and "west": the smaller pair of ids */
    learn_vocab_finish(&v);
}

static void limits_hold(void)
{
    struct learn_vocab v;
    learn((struct learn_bpe_options){.bytes = true, .vocab_size = 100, .min_frequency = 7}, &v);
    T_EQ(v.nmerges, 4); /* es 9, est 9, lo 7, low 7 */
    learn_vocab_finish(&v);
    learn((struct learn_bpe_options){.bytes = true, .vocab_size = 100, .max_token_length = 3}, &v);
    for (size_t i = 0; i < v.n; i++)
        T_CHECK(v.piece[i].length < 3);
    learn_vocab_finish(&v);
    learn((struct learn_bpe_options){.bytes = true, .vocab_size = 5, .limit_alphabet = 3}, &v);
    T_STR(v.piece[0].text, "e"); /* 17 times; w 16, t and s 9: the smaller one stays */
    T_STR(v.piece[1].text, "s");
    T_STR(v.piece[2].text, "w");
    T_EQ(v.n, 5);
    T_EQ(v.lost, 7);
    learn_vocab_finish(&v);
    /* of all bytes, those that occur are kept */
    learn(
        (struct learn_bpe_options){
            .bytes = true, .whole_alphabet = true, .vocab_size = 10, .limit_alphabet = 10},
        &v);
    for (const char *p = "deilnorstw"; *p; p++)
        T_CHECK(learn_vocab_find(&v, p, 1) >= 0);
    T_EQ(v.lost, 0);
    learn_vocab_finish(&v);
}

static void prefix_and_suffix_mark_symbols(void)
{
    struct learn_vocab v;
    learn((struct learn_bpe_options){.vocab_size = 60, .prefix = "##", .suffix = "$"}, &v);
    T_CHECK(learn_vocab_find(&v, "##s", 3) >= 0);
    T_CHECK(learn_vocab_find(&v, "##t$", 4) >= 0);
    T_CHECK(learn_vocab_find(&v, "low$", 4) >= 0);
    T_CHECK(learn_vocab_find(&v, "newest$", 7) >= 0);
    T_CHECK(learn_vocab_find(&v, "##est$", 6) >= 0);
    learn_vocab_finish(&v);
}

static void all_bytes_have_letters_of_their_own(void)
{
    struct learn_vocab v;
    learn((struct learn_bpe_options){.bytes = true, .whole_alphabet = true, .vocab_size = 1}, &v);
    T_EQ(v.n, 256);
    T_STR(v.piece[0].text, "!");
    T_EQ(letter_of_byte(' '), 0x120);
    T_EQ(letter_of_byte('\n'), 0x10a);
    T_EQ(letter_of_byte(0xad), 0x143);
    learn_vocab_finish(&v);
}

T_MAIN(T_CASE(equals_counting_anew), T_CASE(special_tokens_come_first_and_may_be_merged_to),
       T_CASE(limits_hold), T_CASE(prefix_and_suffix_mark_symbols),
       T_CASE(all_bytes_have_letters_of_their_own))
