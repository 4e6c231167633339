/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_front.h"

#include <sys/mman.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/cpu.h"
#include "base/mem.h"

enum {
    MOST_BITS = 14, /* 512 KiB */
    LEAST_BITS = 4,
    AHEAD = 128 /* words whose keys are known before the first is looked up */
};

/* Odd; the upper bits of the products depend on all bits of the key. */
#define MIX_LOW 0x9E3779B97F4A7C15u
#define MIX_HIGH 0xD1B54A32D192ED03u

void word_front_init(struct word_front *f, size_t bytes)
{
    *f = (struct word_front){0};
    if (!cpu_avx512())
        return;
    f->bits = MOST_BITS;
    while (f->bits > LEAST_BITS && word_front_bytes(f) > bytes)
        f->bits--;
    f->at = mem_pages(word_front_bytes(f));
}

void word_front_finish(struct word_front *f)
{
    if (f->at)
        munmap(f->at, word_front_bytes(f));
    *f = (struct word_front){0};
}

size_t word_front_bytes(const struct word_front *f)
{
    return f->bits ? sizeof(struct entry) << f->bits : 0;
}

void word_front_keep(struct word_front *f, const struct entry *x)
{
    uint64_t count = x->key[1] >> 60;
    if (!f->at || count > INLINE || !(x->key[1] & KEY_MASK))
        return;
    uint64_t mixed = x->key[0] * MIX_LOW + (x->key[1] & KEY_MASK) * MIX_HIGH;
    f->at[mixed >> (64 - f->bits)] = *x;
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl")))

/* Entry k of a table of sixteen. */
WIDE static inline __m512i pick(const uint64_t *table, __m512i k)
{
    return _mm512_permutex2var_epi64(_mm512_loadu_si512(table), k, _mm512_loadu_si512(table + 8));
}

/* Keys and entries of eight words that begin and end there. */
struct wanted {
    __m512i low, high, place;
    __mmask8 is_short;
};

WIDE static inline struct wanted want8(const struct word_front *f, const char *text, __m256i begin,
                                       __m256i end)
{
    struct wanted w;
    __m512i length = _mm512_cvtepu32_epi64(_mm256_sub_epi32(end, begin));
    w.is_short = _mm512_cmple_epu64_mask(length, _mm512_set1_epi64(SHORT));
    __m512i from = _mm512_cvtepu32_epi64(begin);
    w.low = _mm512_i64gather_epi64(from, text, 1);
    w.high = _mm512_i64gather_epi64(from, text + 8, 1);
    w.low = _mm512_and_si512(w.low, pick(low_mask, length));
    w.high = _mm512_and_si512(w.high, pick(high_mask, length));
    w.high = _mm512_or_si512(w.high, _mm512_slli_epi64(length, 56));
    __m512i mixed =
        _mm512_add_epi64(_mm512_mullo_epi64(w.low, _mm512_set1_epi64((int64_t)MIX_LOW)),
                         _mm512_mullo_epi64(w.high, _mm512_set1_epi64((int64_t)MIX_HIGH)));
    w.place = _mm512_srl_epi64(mixed, _mm_cvtsi32_si128(64 - (int)f->bits));
    w.place = _mm512_slli_epi64(w.place, 5);
    _Static_assert(sizeof(struct entry) == 32, "places are counted in entries");
    return w;
}

/* Which of them are here. */
WIDE static inline __mmask8 find8(const struct word_front *f, const struct wanted *w)
{
    __m512i low = _mm512_i64gather_epi64(w->place, f->at, 1);
    __m512i high = _mm512_i64gather_epi64(w->place, (const char *)f->at + 8, 1);
    high = _mm512_and_si512(_mm512_xor_si512(w->high, high), _mm512_set1_epi64((int64_t)KEY_MASK));
    __m512i differ = _mm512_or_si512(_mm512_xor_si512(w->low, low), high);
    return _mm512_mask_testn_epi64_mask(w->is_short, differ, differ);
}

/* All keys first: eight that wait for their hash would keep the next eight from being read. */
WIDE static size_t find_wide(const struct word_front *f, const char *text, const uint32_t *start,
                             size_t n, const struct entry **at, uint32_t *other)
{
    __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    size_t others = 0;
    struct wanted wanted[AHEAD / 8];
    for (size_t from = 0; from < n; from += AHEAD) {
        size_t to = n - from < AHEAD ? n : from + AHEAD;
        struct wanted *w = wanted;
        for (size_t i = from; i < to; i += 8) {
            __mmask8 have = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
            __m256i begin = _mm256_maskz_loadu_epi32(have, start + i);
            *w++ = want8(f, text, begin, _mm256_maskz_loadu_epi32(have, start + i + 1));
        }
        w = wanted;
        for (size_t i = from; i < to; i += 8, w++) {
            __mmask8 have = n - i < 8 ? (__mmask8)((1u << (n - i)) - 1) : 0xff;
            __m512i entry = _mm512_add_epi64(w->place, _mm512_set1_epi64((int64_t)f->at));
            _mm512_storeu_si512(at + i, entry);
            __mmask8 missing = (__mmask8)(have & ~find8(f, w));
            _mm256_storeu_si256((__m256i *)(other + others),
                                _mm256_maskz_compress_epi32(missing, index));
            others += (unsigned)__builtin_popcount(missing);
            index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
        }
    }
    return others;
}
#endif

size_t word_front_find(const struct word_front *f, const char *text, const uint32_t *start,
                       size_t n, const struct entry **at, uint32_t *other)
{
#ifdef __x86_64__
    if (f->at)
        return find_wide(f, text, start, n, at, other);
#endif
    (void)text, (void)start, (void)at;
    for (size_t i = 0; i < n; i++)
        other[i] = (uint32_t)i;
    return n;
}
