/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/local_cache.h"

#include <string.h>

#include "tests/t.h"

enum { WORDS = 1000, ROOM = 20000 };

struct words_of {
    char text[ROOM + 64];
    uint32_t start[WORDS + 1];
};

/* Words of 0 to 17 bytes, some of which differ only in one byte or after a zero byte. */
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

/* Hashes and keys are those of the words, with or without a thread-local cache. */
static void right_keys(const struct words_of *w, const struct local_words *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct key key = key_of(w->text, w->start + i);
        if (key.high)
            T_EQ(x->hash[i], hash_of(key));
        T_EQ(x->key[i], small_is(key) ? small_key(key, x->hash[i]) : 0);
    }
}

static uint64_t ids_for(const struct words_of *w, uint32_t i)
{
    struct key key = key_of(w->text, w->start + i);
    return key.low * 31 + key.high;
}

/* What is found was kept, for this very word, last of all words of its entry; the others are listed
 * in order. */
static void finds_what_was_kept(void)
{
    static struct words_of w;
    static struct local_words x;
    struct local_cache f;
    size_t found = 0;
    local_cache_init(&f, 1 << 20);
    if (!f.at)
        t_skip("no AVX-512");
    for (uint64_t round = 0; round < 20; round++) {
        make(&w, round / 2); /* each twice */
        for (uint32_t n = 1; n <= WORDS; n += n < 20 ? 1 : 327) {
            local_cache_find(&f, w.text, w.start, n, &x);
            right_keys(&w, &x, n);
            size_t k = 0;
            for (uint32_t i = 0; i < n; i++) {
                if (k < x.others && x.other[k] == i) {
                    k++;
                    continue;
                }
                T_CHECK(x.key[i] && x.ids[i] == ids_for(&w, i));
                found++;
            }
            T_EQ(k, x.others);
        }
        local_cache_find(&f, w.text, w.start, WORDS, &x);
        for (uint32_t i = 0; i < WORDS; i++)
            local_cache_keep(&f, x.hash[i], (struct small){x.key[i], ids_for(&w, i)}, x.key[i]);
        local_cache_find(&f, w.text, w.start, WORDS, &x);
        size_t lost = 0;
        for (size_t k = 0; k < x.others; k++)
            lost += x.key[x.other[k]] != 0;
        T_CHECK(lost < WORDS / 10); /* few share an entry */
    }
    T_CHECK(found > 1000);
    local_cache_finish(&f);
}

static void keeps_what_it_is_told(void)
{
    struct local_cache f;
    local_cache_init(&f, 0);
    T_CHECK(local_cache_bytes(&f) <= 16 << 10);
    if (!f.at)
        t_skip("no AVX-512");
    for (int keep = 0; keep < 2; keep++) {
        size_t here = 0;
        local_cache_keep(&f, (uint64_t)7 << 60, (struct small){77, 1}, keep);
        for (size_t i = 0; i < (size_t)1 << f.bits; i++)
            here += f.at[i].key == 77;
        T_EQ(here, (size_t)keep);
    }
    local_cache_finish(&f);
}

/* Without a thread-local cache, every word is listed. */
static void without_one(void)
{
    static struct words_of w;
    static struct local_words x;
    struct local_cache f = {0};
    make(&w, 1);
    T_EQ(local_cache_bytes(&f), 0);
    local_cache_find(&f, w.text, w.start, WORDS, &x);
    right_keys(&w, &x, WORDS);
    T_EQ(x.others, WORDS);
    for (uint32_t i = 0; i < WORDS; i++)
        T_EQ(x.other[i], i);
    local_cache_finish(&f);
}

T_MAIN(T_CASE(finds_what_was_kept), T_CASE(keeps_what_it_is_told), T_CASE(without_one))
