/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/pack.h"

#include <endian.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include "base/core/bytes.h"
#include "base/core/simd.h"
#include "dataset/shard/ids.h"

enum shard_dtype shard_dtype_for(int64_t vocab_size)
{
    return vocab_size > 0 && vocab_size < 65500 ? SHARD_U16 : SHARD_I32;
}

enum { RUN = 32 }; /* elements; a constant, so that the compiler vectorizes */

/* Packs ids into two or four bytes each; returns whether all are in 0 .. last. */
static inline __attribute__((always_inline)) bool
pack_checked(const int32_t *id, size_t n, bool narrow, int32_t last, unsigned char *ret)
{
    enum { AHEAD = 2048 };           /* bytes; other cores have the cache lines */
    int32_t bad[RUN] = {0}, any = 0; /* negative: an id was, or was above `last` */
    size_t i = 0, width = narrow ? 2 : 4;
    for (; i + RUN <= n; i += RUN) {
        uint16_t piece[RUN];
        __builtin_prefetch(ret + width * i + AHEAD, 1);
        for (size_t k = 0; k < RUN; k++) {
            int32_t v = id[i + k];
            bad[k] |= v | -(v > last);
            piece[k] = htole16((uint16_t)v);
        }
        if (narrow)
            memcpy(ret + 2 * i, piece, sizeof(piece));
        else
            memcpy(ret + 4 * i, id + i, RUN * sizeof(*id));
    }
    for (; i < n; i++) {
        any |= id[i] | -(id[i] > last);
        if (narrow)
            store_u16(ret + 2 * i, (uint16_t)id[i]);
        else
            store_u32(ret + 4 * i, (uint32_t)id[i]);
    }
    for (size_t k = 0; k < RUN; k++)
        any |= bad[k];
    return any >= 0;
}

#ifdef __x86_64__
__attribute__((target("avx2,prfchw"))) static bool
pack_avx2(const int32_t *id, size_t n, bool narrow, int32_t last, unsigned char *ret)
{
    return narrow ? pack_checked(id, n, true, last, ret) : pack_checked(id, n, false, last, ret);
}
#endif

#ifdef __x86_64__
/* Ids of two bytes each, thirty-two at a time. */
__attribute__((target("avx512f,avx512bw,avx512vl,prfchw"))) static bool
narrow_avx512(const int32_t *id, size_t n, int32_t last, struct shard_watch *watch,
              unsigned char *ret)
{
    enum { AHEAD = 2048 }; /* as above */
    const __m512i most = _mm512_set1_epi32(last), watched = _mm512_set1_epi32(watch->id);
    const __m512i order =
        _mm512_set_epi64(7, 5, 3, 1, 6, 4, 2, 0); /* undoes the order of packing */
    __mmask16 bad = 0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512i a = _mm512_loadu_si512(id + i), b = _mm512_loadu_si512(id + i + 16);
        __mmask16 some = _mm512_cmpeq_epi32_mask(a, watched),
                  more = _mm512_cmpeq_epi32_mask(b, watched);
        bad |= _mm512_cmpgt_epu32_mask(a, most) | _mm512_cmpgt_epu32_mask(b, most);
        if (some | more) /* rare */
            watch->n += (unsigned)__builtin_popcount((unsigned)some << 16 | more);
        __builtin_prefetch(ret + 2 * i + AHEAD, 1);
        _mm512_storeu_si512(ret + 2 * i,
                            _mm512_permutexvar_epi64(order, _mm512_packus_epi32(a, b)));
    }
    for (; i < n; i += 16) {
        __mmask16 some = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        __m512i v = _mm512_maskz_loadu_epi32(some, id + i);
        watch->n += (unsigned)__builtin_popcount(_mm512_mask_cmpeq_epi32_mask(some, v, watched));
        bad |= _mm512_cmpgt_epu32_mask(v, most); /* negative ones are large as unsigned */
        _mm256_mask_storeu_epi16(ret + 2 * i, some, _mm512_cvtepi32_epi16(v));
    }
    return !bad;
}
#endif

static bool pack(const int32_t *id, size_t n, bool narrow, int32_t last, struct shard_watch *watch,
                 unsigned char *ret)
{
#ifdef __x86_64__
    if (narrow && cpu_avx512())
        return narrow_avx512(id, n, last, watch, ret);
#endif
    if (watch->id >= 0)
        watch->n += ids_count(id, n, watch->id);
#ifdef __x86_64__
    if (cpu_avx2())
        return pack_avx2(id, n, narrow, last, ret);
#endif
    return narrow ? pack_checked(id, n, true, last, ret) : pack_checked(id, n, false, last, ret);
}

/* Above all ids. */
static int64_t limit_of(enum shard_dtype t, int64_t vocab_size)
{
    return vocab_size > 0 ? vocab_size : t == SHARD_U16 ? 1 << 16 : SHARD_ANY_ID;
}

static int32_t last_of(enum shard_dtype t, int64_t vocab_size)
{
    int64_t limit = limit_of(t, vocab_size);
    return limit <= INT32_MAX ? (int32_t)limit - 1 : INT32_MAX;
}

size_t shard_pack_good(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n)
{
    int64_t limit = limit_of(t, vocab_size);
    size_t i = 0;
    while (i < n && id[i] >= 0 && id[i] < limit)
        i++;
    return i;
}

int shard_pack_refused(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n,
                       struct err *e)
{
    size_t i = shard_pack_good(t, vocab_size, id, n);
    BUG_ON(i == n, "all of %zu ids are good", n);
    return err_set(e, ERR_DATA, "token %zu has id %" PRId32 ", which is not in 0..%" PRId64, i,
                   id[i], limit_of(t, vocab_size) - 1);
}

bool shard_pack_watched(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n,
                        struct shard_watch *watch, void *ret)
{
    return pack(id, n, t == SHARD_U16, last_of(t, vocab_size), watch, ret);
}

int shard_pack(enum shard_dtype t, int64_t vocab_size, const int32_t *id, size_t n, void *ret,
               struct err *e)
{
    struct shard_watch none = {.id = -1};
    if (shard_pack_watched(t, vocab_size, id, n, &none, ret))
        return 0;
    return shard_pack_refused(t, vocab_size, id, n, e);
}
