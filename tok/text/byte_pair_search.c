/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/byte_pair_search.h"

#include <stdbool.h>

#include "base/core/simd.h"

void pair_find_add(struct pair_find *f, unsigned char first, unsigned char second)
{
    unsigned k = (unsigned)first | (unsigned)second << 8;
    if (!f->group_of[first])
        f->group_of[first] = (unsigned char)(1u << (f->groups++ % 8));
    unsigned char group = f->group_of[first];
    f->bit[k >> 6] |= (uint64_t)1 << (k & 63);
    f->half[0][first & 15] |= group;
    f->half[1][first >> 4] |= group;
    f->half[2][second & 15] |= group;
    f->half[3][second >> 4] |= group;
}

void pair_find_add_single(struct pair_find *f, unsigned char first)
{
    for (unsigned second = 0; second < 256; second++)
        pair_find_add(f, first, (unsigned char)second);
}

static bool stands(const struct pair_find *f, const unsigned char *p)
{
    unsigned k = (unsigned)p[0] | (unsigned)p[1] << 8;
    return f->bit[k >> 6] >> (k & 63) & 1;
}

#ifdef __x86_64__
AVX2 static __m256i groups_of(const unsigned char *lower, const unsigned char *upper, __m256i b)
{
    __m256i low = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)lower));
    __m256i high = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)upper));
    __m256i mask = _mm256_set1_epi8(15);
    __m256i top = _mm256_and_si256(_mm256_srli_epi16(b, 4), mask);
    return _mm256_and_si256(_mm256_shuffle_epi8(low, _mm256_and_si256(b, mask)),
                            _mm256_shuffle_epi8(high, top));
}

/* From `at` on, as long as 33 bytes are left; where it stopped, a pair or not. */
AVX2 static size_t next_avx2(const struct pair_find *f, const unsigned char *text, size_t n,
                             size_t at)
{
    for (; at + 33 <= n; at += 32) {
        __m256i a = _mm256_loadu_si256((const __m256i *)(text + at));
        __m256i b = _mm256_loadu_si256((const __m256i *)(text + at + 1));
        __m256i both = _mm256_and_si256(groups_of(f->half[0], f->half[1], a),
                                        groups_of(f->half[2], f->half[3], b));
        unsigned some =
            ~(unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(both, _mm256_setzero_si256()));
        for (; some; some &= some - 1)
            if (stands(f, text + at + __builtin_ctz(some)))
                return at + (unsigned)__builtin_ctz(some);
    }
    return at;
}
#endif

size_t pair_find_next(const struct pair_find *f, const char *text, size_t n, size_t at)
{
    const unsigned char *s = (const unsigned char *)text;
#ifdef __x86_64__
    if (cpu_avx2())
        at = next_avx2(f, s, n, at);
#endif
    while (at + 1 < n && !stands(f, s + at))
        at++;
    return at + 1 < n || (at < n && f->group_of[s[at]]) ? at : n;
}
