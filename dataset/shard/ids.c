/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/ids.h"

#include <string.h>

#include "base/core/simd.h"

/* Widens ids; `top` becomes the largest, as unsigned. */
#define WIDEN(type)                                                                                \
    for (; i < n; i++) {                                                                           \
        type v;                                                                                    \
        memcpy(&v, p + i * sizeof(v), sizeof(v));                                                  \
        ret[i] = (int32_t)v;                                                                       \
        uint64_t u = (uint64_t)(int64_t)v;                                                         \
        top = u > top ? u : top;                                                                   \
    }                                                                                              \
    break

/*
 * The two types that shards usually have: sixteen at a time, so that compilers vectorize. Sign bits
 * collect whether an id is below 0 or above the last valid one.
 */
#define WIDEN16(type)                                                                              \
    for (; i + 16 <= n; i += 16) {                                                                 \
        type v[16];                                                                                \
        memcpy(v, p + i * sizeof(*v), sizeof(v));                                                  \
        for (size_t k = 0; k < 16; k++) {                                                          \
            uint32_t u = (uint32_t)v[k];                                                           \
            ret[i + k] = (int32_t)u;                                                               \
            sign[k] |= u | (last - u);                                                             \
        }                                                                                          \
    }                                                                                              \
    WIDEN(type)

static bool widen_any(enum shard_dtype t, const unsigned char *p, uint64_t n, int64_t limit,
                      int32_t *ret)
{
    uint64_t top = 0, i = 0;
    uint32_t last = (uint32_t)(limit - 1), sign[16] = {0}, any = 0;
    switch (t) {
    case SHARD_U16:
        WIDEN16(uint16_t);
    case SHARD_I32:
        WIDEN16(int32_t);
    case SHARD_U8:
        WIDEN(uint8_t);
    case SHARD_I8:
        WIDEN(int8_t);
    case SHARD_I16:
        WIDEN(int16_t);
    case SHARD_I64:
        WIDEN(int64_t);
    }
    for (size_t k = 0; k < 16; k++)
        any |= sign[k];
    return any <= INT32_MAX && top < (uint64_t)limit;
}

#ifdef __x86_64__

/* Runs of documents are often short: the last 31 or fewer are masked rather than done singly. */
AVX512 static bool widen16_wide(const unsigned char *p, uint64_t n, uint16_t last, int32_t *ret)
{
    __m512i top = _mm512_setzero_si512();
    uint64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i v = _mm512_loadu_si512(p + 2 * i);
        top = _mm512_max_epu16(top, v);
        _mm512_storeu_si512(ret + i, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
        _mm512_storeu_si512(ret + i + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
    }
    uint32_t left = (UINT32_C(1) << (n - i)) - 1;
    __m512i v = _mm512_maskz_loadu_epi16(left, p + 2 * i);
    top = _mm512_max_epu16(top, v);
    _mm512_mask_storeu_epi32(ret + i, (__mmask16)left,
                             _mm512_cvtepu16_epi32(_mm512_castsi512_si256(v)));
    if (left >> 16)
        _mm512_mask_storeu_epi32(ret + i + 16, (__mmask16)(left >> 16),
                                 _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(v, 1)));
    return !_mm512_cmpgt_epu16_mask(top, _mm512_set1_epi16((short)last));
}

AVX512 static bool widen32_wide(const unsigned char *p, uint64_t n, uint32_t last, int32_t *ret)
{
    __m512i top = _mm512_setzero_si512();
    uint64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i v = _mm512_loadu_si512(p + 4 * i);
        top = _mm512_max_epu32(top, v);
        _mm512_storeu_si512(ret + i, v);
    }
    __mmask16 left = (__mmask16)((1u << (n - i)) - 1);
    __m512i v = _mm512_maskz_loadu_epi32(left, p + 4 * i);
    top = _mm512_max_epu32(top, v);
    _mm512_mask_storeu_epi32(ret + i, left, v);
    return !_mm512_cmpgt_epu32_mask(top, _mm512_set1_epi32((int)last));
}

AVX2 static bool widen16_avx2(const unsigned char *p, uint64_t n, uint16_t last, int32_t *ret)
{
    __m256i top = _mm256_setzero_si256(), most = _mm256_set1_epi16((short)last);
    uint64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + 2 * i));
        top = _mm256_max_epu16(top, v);
        _mm256_storeu_si256((__m256i *)(void *)(ret + i),
                            _mm256_cvtepu16_epi32(_mm256_castsi256_si128(v)));
        _mm256_storeu_si256((__m256i *)(void *)(ret + i + 8),
                            _mm256_cvtepu16_epi32(_mm256_extracti128_si256(v, 1)));
    }
    bool good = _mm256_testc_si256(_mm256_cmpeq_epi16(_mm256_max_epu16(top, most), most),
                                   _mm256_set1_epi8(-1));
    for (; i < n; i++) {
        uint16_t v;
        memcpy(&v, p + 2 * i, sizeof(v));
        ret[i] = v;
        good &= v <= last;
    }
    return good;
}

#endif

bool ids_widen(enum shard_dtype t, const unsigned char *p, uint64_t n, int64_t limit, int32_t *ret)
{
    if (!n || limit <= 0)
        return !n;
#ifdef __x86_64__
    uint16_t last = (uint16_t)(limit > UINT16_MAX ? UINT16_MAX : limit - 1);
    if (t == SHARD_U16 && cpu_avx512())
        return widen16_wide(p, n, last, ret);
    if (t == SHARD_I32 && cpu_avx512())
        return widen32_wide(p, n, (uint32_t)(limit - 1), ret);
    if (t == SHARD_U16 && cpu_avx2())
        return widen16_avx2(p, n, last, ret);
#endif
    return widen_any(t, p, n, limit, ret);
}

/* ---- how often one occurs ------------------------------------------------------------------- */

static inline __attribute__((always_inline)) uint64_t count_of(const int32_t *id, size_t n,
                                                               int32_t which)
{
    enum { RUN = 32 }; /* constant, so that the compiler vectorizes */
    uint32_t sum[RUN] = {0};
    uint64_t all = 0;
    size_t i = 0;
    for (; i + RUN <= n; i += RUN)
        for (size_t k = 0; k < RUN; k++)
            sum[k] += id[i + k] == which;
    for (; i < n; i++)
        all += id[i] == which;
    for (size_t k = 0; k < RUN; k++)
        all += sum[k];
    return all;
}

#ifdef __x86_64__
AVX2 static uint64_t count_avx2(const int32_t *id, size_t n, int32_t which)
{
    return count_of(id, n, which);
}
#endif

#ifdef __x86_64__
AVX512 static uint64_t count_avx512(const int32_t *id, size_t n, int32_t which)
{
    const __m512i wanted = _mm512_set1_epi32(which);
    uint64_t all = 0;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __mmask16 a = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(id + i), wanted);
        __mmask16 b = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(id + i + 16), wanted);
        __mmask16 c = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(id + i + 32), wanted);
        __mmask16 d = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(id + i + 48), wanted);
        if (a | b | c | d) /* rare */
            all += (uint64_t)__builtin_popcount(a) + (uint64_t)__builtin_popcount(b) +
                   (uint64_t)__builtin_popcount(c) + (uint64_t)__builtin_popcount(d);
    }
    for (; i < n; i++)
        all += id[i] == which;
    return all;
}
#endif

uint64_t ids_count(const int32_t *id, size_t n, int32_t which)
{
#ifdef __x86_64__
    if (cpu_avx512())
        return count_avx512(id, n, which);
    if (cpu_avx2())
        return count_avx2(id, n, which);
#endif
    return count_of(id, n, which);
}
