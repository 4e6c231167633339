/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/byte_alphabet.h"

#include <stdbool.h>

#include "base/core/simd.h"
#include "base/core/utf8.h"

static bool prints(uint8_t b)
{
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b != 0xad);
}

uint32_t letter_of_byte(uint8_t b)
{
    if (prints(b))
        return b;
    if (b <= ' ')
        return 0x100u + b;
    return b == 0xad ? 0x143 : 0x100u + 33 + (b - 0x7fu);
}

size_t letter_put(char *dst, uint8_t b)
{
    return utf8_put(dst, letter_of_byte(b));
}

int byte_of_letter(const char *p, size_t left, size_t *ret_n)
{
    const unsigned char *s = (const unsigned char *)p;
    if (left && s[0] >= '!' && s[0] <= '~')
        return *ret_n = 1, s[0];
    if (left < 2 || s[0] < 0xc2 || s[0] > 0xc5)
        return -1;
    uint32_t c = (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    *ret_n = 2;
    if (c < 0x100)
        return prints((uint8_t)c) ? (int)c : -1;
    if (c <= 0x120)
        return (int)(c - 0x100);
    return c <= 0x142 ? (int)(c - 0x121 + 0x7f) : c == 0x143 ? 0xad : -1;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Of U+0080 to U+017F; 0: not a letter, except at ZERO, the letter of byte 0. */
enum { ZERO = 0x80 };
static const uint8_t byte_of[256] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0x00, 0xae, 0xaf,
    0xb0, 0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xbb, 0xbc, 0xbd, 0xbe, 0xbf,
    0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xcb, 0xcc, 0xcd, 0xce, 0xcf,
    0xd0, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
    0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef,
    0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff,
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
    0x20, 0x7f, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d,
    0x8e, 0x8f, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d,
    0x9e, 0x9f, 0xa0, 0xad, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

size_t letters_bytes_plain(const char *p, size_t n, char *dst)
{
    const unsigned char *s = (const unsigned char *)p, *end = n ? s + n : s;
    char *to = dst;
    bool bad = false;
    while (s < end) {
        unsigned c = *s++;
        if (c < 0x80) {
            bad |= c - '!' > '~' - '!';
            *to++ = (char)c;
            continue;
        }
        if (s == end || c < 0xc2 || c > 0xc5)
            return 0;
        unsigned at = (c - 0xc2) << 6 | (*s++ & 0x3f);
        bad |= !byte_of[at] && at != ZERO;
        *to++ = (char)byte_of[at];
    }
    return bad ? 0 : (size_t)(to - dst);
}

#ifdef __x86_64__
/* byte_of[at] for 64 bytes. */
AVX512_BYTES static inline __m512i look_up(__m512i at)
{
    __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(byte_of), at, _mm512_loadu_si512(byte_of + 64));
    __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(byte_of + 128), at,
                                            _mm512_loadu_si512(byte_of + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high);
}

/* Decodes 1 to 64 bytes. */
AVX512_BYTES static size_t bytes_wide(const char *p, size_t n, char *dst)
{
    __mmask64 all = UINT64_MAX >> (64 - n);
    __m512i v = _mm512_maskz_loadu_epi8(all, p);
    __m512i before = _mm512_maskz_loadu_epi8(all & ~(__mmask64)1, p - 1);
    __m512i top = _mm512_set1_epi8((char)0xc0);
    uint64_t ascii = _mm512_mask_cmplt_epu8_mask(all, v, _mm512_set1_epi8((char)0x80));
    uint64_t print = _mm512_mask_cmplt_epu8_mask(all, _mm512_sub_epi8(v, _mm512_set1_epi8('!')),
                                                 _mm512_set1_epi8('~' - '!' + 1));
    uint64_t first = _mm512_mask_cmplt_epu8_mask(
        all, _mm512_sub_epi8(v, _mm512_set1_epi8((char)0xc2)), _mm512_set1_epi8(4));
    uint64_t next = all & ~ascii & ~first;
    __m512i at = _mm512_slli_epi16(_mm512_sub_epi8(before, _mm512_set1_epi8(2)), 6);
    at = _mm512_ternarylogic_epi64(top, at, v, 0xca); /* the upper two bits of the one, else v */
    __m512i byte = look_up(at);
    uint64_t known = _mm512_test_epi8_mask(byte, byte) |
                     _mm512_cmpeq_epi8_mask(at, _mm512_set1_epi8((char)ZERO));
    if (print != ascii || first << 1 != next || (first >> (n - 1) & 1) || next & ~known)
        return 0;
    __mmask64 kept = all & ~first;
    size_t count = (size_t)__builtin_popcountll(kept);
    v = _mm512_maskz_compress_epi8(kept, _mm512_mask_mov_epi8(v, next, byte));
    _mm512_storeu_si512(dst, v);
    return count;
}

static size_t bytes_short(const char *p, size_t n, char *dst)
{
    return cpu_avx512_bytes() ? bytes_wide(p, n, dst) : letters_bytes_plain(p, n, dst);
}
#else
static size_t bytes_short(const char *p, size_t n, char *dst)
{
    return letters_bytes_plain(p, n, dst);
}
#endif

size_t letters_bytes(const char *p, size_t n, char *dst)
{
    return n && n <= LETTERS_ROOM ? bytes_short(p, n, dst) : letters_bytes_plain(p, n, dst);
}
