/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/kernels.h"

/* Four ids in a register, whose valid bytes are compressed together. */

#ifdef __x86_64__
enum { WIDTH = 64 /* bytes written for four ids */ };

AVX512_BYTES static inline unsigned ids_equal(__m128i v, int c)
{
    return _mm_cmpeq_epi8_mask(v, _mm_set1_epi8((char)c));
}

AVX512_BYTES static inline unsigned from(__m128i v, int c)
{
    return _mm_cmpge_epu8_mask(v, _mm_set1_epi8((char)c));
}

/* RFC 3629, as sets of positions. */
AVX512_BYTES static inline bool good_wide(__m128i v)
{
    unsigned high = (unsigned)_mm_movepi8_mask(v), lead = from(v, 0xc2), three = from(v, 0xe0),
             four = from(v, 0xf0), next = high & ~from(v, 0xc0), odd = next & from(v, 0xa0),
             far = next & from(v, 0x90);
    unsigned bad = high & ~(lead | next);
    bad |= from(v, 0xf5) | ((lead << 1 | three << 2 | four << 3) ^ next);
    bad |= ids_equal(v, 0xe0) << 1 & ~odd;
    bad |= ids_equal(v, 0xed) << 1 & odd;
    bad |= ids_equal(v, 0xf0) << 1 & ~far;
    bad |= ids_equal(v, 0xf4) << 1 & far;
    return !bad;
}

AVX512_BYTES bool id_bytes_set_avx512(struct id_bytes_entry *to, const char *p, size_t n,
                                      bool *ret_good)
{
    unsigned all = (1u << n) - 1;
    __m128i v = _mm_maskz_loadu_epi8((__mmask16)all, p);
    _mm_storeu_si128((void *)to->all, v);
    *ret_good = good_wide(v);
    return _mm_test_epi8_mask(v, v) == all;
}

AVX512_BYTES static inline __m128i one(const struct id_bytes_entry *of, int32_t id)
{
    return _mm_loadu_si128((const void *)&of[(uint32_t)id]);
}

AVX512_BYTES static inline __m512i four(const struct id_bytes_entry *of, const int32_t *id)
{
    __m512i v = _mm512_castsi128_si512(one(of, id[0]));
    v = _mm512_inserti32x4(v, one(of, id[1]), 1);
    v = _mm512_inserti32x4(v, one(of, id[2]), 2);
    return _mm512_inserti32x4(v, one(of, id[3]), 3);
}

/* An entry's bytes are never 0, so the nonzero ones are its length. Only the highest bit of a tag
 * is seen, and no mask in use has it. */
AVX512_BYTES char *id_bytes_put_avx512(const struct id_bytes_entry *of, const int32_t **id,
                                       const int32_t *end, char *to, unsigned *seen)
{
    const __m512i count = _mm512_broadcast_i32x4(_mm_setr_epi8(
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, (char)ID_BYTES_FAR));
    const uint64_t far = 0x8000800080008000u;
    __m512i all = _mm512_setzero_si512();
    const int32_t *p = *id;
    for (; end - p >= 8; p += 8) {
        __m512i v = four(of, p), w = four(of, p + 4);
        uint64_t m = _mm512_test_epi8_mask(v, count), k = _mm512_test_epi8_mask(w, count);
        if ((m | k) & far)
            break;
        all = _mm512_or_si512(all, _mm512_or_si512(v, w));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(m, v));
        to += __builtin_popcountll(m);
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(k, w));
        to += __builtin_popcountll(k);
    }
    *id = p;
    char tag[WIDTH];
    _mm512_storeu_si512(tag, all);
    *seen |= (uint8_t)(tag[15] | tag[31] | tag[47] | tag[63]);
    return id_bytes_put_each(of, id, end - p < 8 ? end : p + 8, to, seen);
}
#endif
