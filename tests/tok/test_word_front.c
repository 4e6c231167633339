/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_front.h"

#include <string.h>

#include "tests/t.h"

enum { WORDS = 2000, ROOM = 40000 };

struct words_of {
    char text[ROOM + 64];
    uint32_t start[WORDS + 1];
};

/* Words of 0 to 17 bytes, some of which differ in one byte or in a zero behind only. */
static void make(struct words_of *w, uint64_t seed)
{
    w->start[0] = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t r = t_rand(seed, i), n = r % 18, at = w->start[i];
        memset(w->text + at, r / 18 % 3 ? 'a' : 0, n);
        if (n)
            w->text[at + r / 54 % n] = (char)(r / 1000 % 7);
        w->start[i + 1] = at + n;
    }
}

static struct key key_at(const struct words_of *w, uint32_t i)
{
    return key_of(w->text, w->start + i);
}

/* What is found was kept, for this very word, last of all words of its place; the others are
 * listed in order. */
static void finds_what_was_kept(void)
{
    static struct words_of w;
    static const struct entry *at[WORDS + 8];
    static uint32_t other[WORDS + 8];
    static bool kept[WORDS];
    struct word_front f;
    size_t found = 0;
    word_front_init(&f, 1 << 20);
    if (!f.at)
        t_skip("no AVX-512");
    for (uint64_t round = 0; round < 20; round++) {
        make(&w, round / 2); /* each twice */
        for (uint32_t n = 1; n <= WORDS; n += n < 20 ? 1 : 660) {
            size_t others = word_front_find(&f, w.text, w.start, n, at, other), k = 0;
            for (uint32_t i = 0; i < n; i++) {
                if (k < others && other[k] == i) {
                    k++;
                    continue;
                }
                struct key key = key_at(&w, i);
                uint32_t length = w.start[i + 1] - w.start[i];
                T_CHECK(length <= SHORT && at[i]->key[0] == key.low);
                T_CHECK((at[i]->key[1] & KEY_MASK) == key.high);
                T_CHECK(!length || at[i]->id[0] == (uint32_t)(key.low * 31 + key.high));
                found += length > 0;
            }
            T_EQ(k, others);
        }
        for (uint32_t i = 0; i < WORDS; i++) {
            struct key key = key_at(&w, i);
            struct entry x = {.key = {key.low, key.high | (uint64_t)1 << 60},
                              .id = {(uint32_t)(key.low * 31 + key.high)}};
            word_front_keep(&f, &x); /* of a longer word, nothing */
            kept[i] = key.high;
        }
        size_t others = word_front_find(&f, w.text, w.start, WORDS, at, other), lost = 0;
        for (size_t k = 0; k < others; k++)
            lost += kept[other[k]];
        T_CHECK(lost < WORDS / 10); /* few share a place with another */
    }
    T_CHECK(found > 1000);
    word_front_finish(&f);
}

/* Words of more ids than an entry has, and the empty one, are not kept. */
static void keeps_few_ids(void)
{
    struct word_front f;
    word_front_init(&f, 0);
    T_CHECK(word_front_bytes(&f) <= 1024);
    if (!f.at)
        t_skip("no AVX-512");
    for (uint64_t count = INLINE; count <= MANY; count++) {
        struct entry x = {.key = {'a', (uint64_t)1 << 56 | count << 60}, .id = {7}};
        word_front_keep(&f, &x);
        size_t here = 0;
        for (size_t i = 0; i < (size_t)1 << f.bits; i++)
            here += f.at[i].key[1] == x.key[1];
        T_EQ(here, count == INLINE);
    }
    word_front_finish(&f);
}

/* Where there is no front, every word is another one. */
static void without_one(void)
{
    static struct words_of w;
    static const struct entry *at[WORDS + 8];
    static uint32_t other[WORDS + 8];
    struct word_front f = {0};
    struct entry x = {.key = {'a', (uint64_t)1 << 56 | (uint64_t)1 << 60}};
    make(&w, 1);
    word_front_keep(&f, &x);
    T_EQ(word_front_bytes(&f), 0);
    T_EQ(word_front_find(&f, w.text, w.start, WORDS, at, other), WORDS);
    for (uint32_t i = 0; i < WORDS; i++)
        T_EQ(other[i], i);
    word_front_finish(&f);
}

T_MAIN(T_CASE(finds_what_was_kept), T_CASE(keeps_few_ids), T_CASE(without_one))
