/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/small_table.h"

#include <string.h>

#include "tests/t.h"
#include "tok/cache/kernels.h"
#include "tok/cache/packed_ids.h"

/* Words of up to nine bytes, many of which differ only in one byte or after a zero byte. */
static struct key word(uint64_t stream, uint32_t i, uint64_t *ret_hash)
{
    char text[16 + 8];
    uint32_t r = t_rand(stream, i), start[2] = {0, 1 + r % SMALL};
    memset(text, r & 1 ? 'a' : 0, sizeof(text));
    for (uint32_t k = 0; k < 4; k++)
        text[(r / 16 + k) % start[1]] = (char)(i >> 8 * k);
    struct key key = key_of(text, start);
    *ret_hash = hash_of(key);
    return key;
}

static uint64_t ids_of(struct key key)
{
    return (key.low * 31 + key.high * 7) >> 4 | (uint64_t)1 << 60;
}

/* What is found was kept for this very word, while the table grows from its first size on. */
static void finds_what_was_kept(void)
{
    enum { WORDS = 300000 };
    struct small_table t;
    uint64_t hash;
    small_init(&t, 16 << 20);
    size_t bytes = small_bytes(&t), kept = 0, lost = 0, missed = 0, used = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        struct key key = word(1, i, &hash);
        uint64_t small = small_key(key, hash), ids = small_find(&t, small, hash);
        T_CHECK(small_is(key));
        T_CHECK(!ids || ids == ids_of(key));
        if (ids)
            continue;
        bool here = small_keep(&t, small, hash, ids_of(key), i % 2);
        T_EQ(small_find(&t, small, hash), here ? ids_of(key) : 0);
        T_CHECK(here || small_full(&t, hash));
        T_CHECK(small_keep(&t, small, hash, ids_of(key), false) == here);
        missed += !here;
        kept++;
        if (++used > small_limit(&t) && small_growth(&t)) {
            size_t more = small_growth(&t), before = small_bytes(&t);
            size_t now = small_grow(&t);
            T_CHECK(now <= used && now > used / 10 * 9);
            T_EQ(small_bytes(&t), before + more);
            T_EQ(small_find(&t, small, hash), here ? ids_of(key) : 0);
            used = now;
        }
    }
    T_CHECK(small_bytes(&t) > bytes);
    for (uint32_t i = 0; i < WORDS; i++) {
        struct key key = word(1, i, &hash);
        uint64_t ids = small_find(&t, small_key(key, hash), hash);
        T_CHECK(!ids || ids == ids_of(key));
        lost += !ids;
    }
    T_CHECK(kept > WORDS / 2 && used <= kept && missed < WORDS / 50 && lost < WORDS / 50);
    small_finish(&t);
}

/* A table that cannot grow: it evicts half, so that there is space for new words, and none is
 * mistaken for another. */
static void words_give_way(void)
{
    struct small_table t;
    uint64_t hash;
    size_t used = 0, missed = 0, thinned = 0;
    small_init(&t, 0);
    T_EQ(small_growth(&t), 0);
    T_EQ(small_bytes(&t), SMALL_LEAST);
    for (uint32_t i = 0; i < 50000; i++) {
        struct key key = word(2, i, &hash);
        uint64_t small = small_key(key, hash), ids = small_find(&t, small, hash);
        T_CHECK(!ids || ids == ids_of(key));
        if (ids)
            continue;
        small_keep(&t, small, hash, ids_of(key), true);
        missed += !small_find(&t, small, hash);
        if (++used > small_limit(&t)) {
            used = small_thin(&t);
            T_CHECK(used > small_limit(&t) / 4 && used <= small_limit(&t) / 2);
            thinned++;
        }
    }
    T_CHECK(thinned > 5 && missed < 50000 / 5);
    T_EQ(small_bytes(&t), SMALL_LEAST);
    small_finish(&t);
}

static void forgets_by_number(void)
{
    struct small_table t;
    uint64_t hash;
    size_t kept = 0, left = 0;
    small_init(&t, 1 << 20);
    for (uint32_t i = 0; i < 1000; i++) {
        struct key key = word(3, i, &hash);
        uint64_t ids = ids_at(i % 2 ? IDS_MANY : IDS_KINDS, i), small = small_key(key, hash);
        if (!small_find(&t, small, hash))
            small_keep(&t, small, hash, ids, true), kept++;
    }
    size_t used = small_drop(&t, IDS_MANY);
    T_CHECK(used < kept && used > 0);
    for (uint32_t i = 0; i < 1000; i++) {
        struct key key = word(3, i, &hash);
        uint64_t ids = small_find(&t, small_key(key, hash), hash);
        T_CHECK(!ids_are(ids, IDS_MANY));
        left += ids != 0;
    }
    T_CHECK(left > 300);
    small_finish(&t);
}

/* Both ways of unpacking ids, for any number of words. */
static void come_back(enum ids_form bits)
{
    enum { WORDS = 100 };
    const int32_t last = bits == IDS_OF_32 ? INT32_MAX : (1 << bits) - 3;
    const size_t most = 64 / bits;
    uint64_t ids[WORDS];
    int32_t want[WORDS * PACKED], got[WORDS * PACKED + IDS_SLACK], id[PACKED + 1];
    size_t n = 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t r = t_rand(4, i), count = r / 4 % (uint32_t)(most + 1);
        for (uint32_t k = 0; k < PACKED; k++)
            id[k] = r & 1 ? (int32_t)(t_rand(5 + k, i) % (uint32_t)last) : r & 2 ? last : 0;
        ids[i] = ids_pack(id, count, bits);
        T_CHECK(ids_here(ids[i]));
        memcpy(want + n, id, count * sizeof(*id));
        n += count;
        for (size_t from = 0; from <= i; from++) {
            size_t plain = ids_unpack_plain(ids + from, i + 1 - from, bits, got);
            T_CHECK(plain <= n);
            T_MEM(got, want + n - plain, plain * sizeof(*got));
            memset(got, 0x7f, plain * sizeof(*got));
            T_EQ(ids_unpack(ids + from, i + 1 - from, bits, got), plain);
            T_MEM(got, want + n - plain, plain * sizeof(*got));
        }
    }
    for (size_t k = 0; k <= most; k++)
        id[k] = last;
    T_CHECK(ids_pack(id, most, bits) && !ids_pack(id, most + 1, bits));
    for (size_t k = 0; k < most; k++) {
        id[k] = bits == IDS_OF_32 ? -2 : last + 1;
        T_CHECK(!ids_pack(id, most, bits) && !ids_pack(id, k + 1, bits));
        T_CHECK(k == 0 || ids_pack(id, k, bits));
        id[k] = last;
    }
    ids[0] = 0; /* no word at all */
    T_EQ(ids_unpack(ids, 1, bits, got), 0);
    T_EQ(ids_unpack_plain(ids, 1, bits, got), 0);
}

static void ids_come_back(void)
{
    come_back(IDS_OF_16);
    come_back(IDS_OF_21);
    come_back(IDS_OF_32);
    for (unsigned kind = IDS_MANY; kind < IDS_KINDS + 2; kind++)
        for (size_t place = 0; place < IDS_PLACES; place = place * 2 + 1) {
            T_CHECK(!ids_here(ids_at(kind, place)) && ids_are(ids_at(kind, place), kind));
            T_CHECK(!ids_are(ids_at(kind, place), kind + 1));
            T_EQ(ids_place(ids_at(kind, place)), place);
        }
}

/* The last vocabulary of each form: its highest id fits, and no other form packs more ids. */
static void forms_by_vocabulary(void)
{
    static const enum ids_form form[] = {IDS_OF_16, IDS_OF_21, IDS_OF_32};
    static const int64_t end[] = {65534, 2097150, (int64_t)1 << 31};
    T_EQ(ids_form_for(0), IDS_OF_16);
    for (int i = 0; i < 3; i++) {
        int32_t id[2] = {(int32_t)(end[i] - 1), (int32_t)end[i]};
        T_EQ(ids_form_for(end[i]), form[i]);
        T_CHECK(ids_pack(id, 1, form[i]));
        if (i == 2)
            break;
        T_EQ(ids_form_for(end[i] + 1), form[i + 1]);
        T_CHECK(!ids_pack(id, 2, form[i]) && ids_pack(id, 2, form[i + 1]));
    }
}

T_MAIN(T_CASE(finds_what_was_kept), T_CASE(words_give_way), T_CASE(forgets_by_number),
       T_CASE(ids_come_back), T_CASE(forms_by_vocabulary))
