/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/utf8.h"

#include "base/core/bytes.h"
#include "base/core/utf8_cxx.h"

enum { BLOCK = 4096, SHORT = 32 };

/* Bytes of valid blocks of whole characters; stops at an invalid block or a short rest. */
static size_t good_blocks(const char *p, size_t n)
{
    size_t i = 0;
    while (n - i >= SHORT) {
        size_t k = n - i < BLOCK ? n - i : BLOCK;
        while (i + k < n && k > BLOCK - 4 && ((unsigned char)p[i + k] & 0xc0) == 0x80)
            k--;
        if (!utf8_all_good(p + i, k))
            break;
        i += k;
    }
    return i;
}

size_t utf8_good(const char *p, size_t n)
{
    size_t i = good_blocks(p, n);
    while (i < n) {
        while (i + 8 <= n && !(load_u64(p + i) & 0x8080808080808080u))
            i += 8;
        if (i == n)
            break;
        size_t k = utf8_char(p + i, p + n);
        if (!k)
            break;
        i += k;
    }
    return i;
}

uint64_t utf8_invalid(const char *p, size_t n)
{
    uint64_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        i += utf8_good(p + i, n - i);
        bad += i < n;
    }
    return bad;
}

/* Bytes of the longest prefix of a character at p, where none is complete: at least 1. */
static size_t bad_run(const unsigned char *s, size_t left)
{
    size_t want = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || left < 2)
        return 1;
    unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 1;
    size_t i = 2;
    while (i < want - 1 && i < left && (s[i] & 0xc0) == 0x80)
        i++;
    return i;
}

size_t utf8_mend(struct buf *out, const char *p, size_t n)
{
    size_t runs = 0;
    for (size_t i = 0; i < n;) {
        size_t k = utf8_good(p + i, n - i);
        buf_add(out, p + i, k);
        i += k;
        if (i == n)
            break;
        buf_add(out, "\xef\xbf\xbd", 3);
        i += bad_run((const unsigned char *)p + i, n - i);
        runs++;
    }
    return runs;
}

size_t utf8_before_mending(const char *p, size_t n, size_t at)
{
    enum { MARK = 3 }; /* bytes of U+FFFD */
    size_t i = 0;
    while (i < n) {
        size_t k = utf8_good(p + i, n - i);
        if (at < k || i + k == n)
            return i + (at < k ? at : k);
        i += k;
        at -= k;
        if (at < MARK)
            return i;
        at -= MARK;
        i += bad_run((const unsigned char *)p + i, n - i);
    }
    return n;
}

/* Controls of C0 and C1, line separators, marks and isolates of direction. */
static bool is_plain(uint32_t c)
{
    return c >= 0x20 && (c < 0x7f || c > 0x9f) && c != 0x200e && c != 0x200f &&
           (c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069);
}

size_t utf8_plain(const char *p, size_t n, char *ret, size_t size)
{
    static const char digit[] = "0123456789abcdef";
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t k = utf8_char(p + i, p + n), bytes = k ? k : 1;
        bool plain = k && is_plain(utf8_code(p + i, k));
        if (len + (plain ? bytes : 4 * bytes) >= size)
            break;
        for (size_t end = i + bytes; i < end; i++)
            if (plain) {
                ret[len++] = p[i];
            } else {
                ret[len++] = '\\';
                ret[len++] = 'x';
                ret[len++] = digit[(unsigned char)p[i] >> 4];
                ret[len++] = digit[(unsigned char)p[i] & 15];
            }
    }
    ret[len] = '\0';
    return len;
}
