/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_CLASS_H
#define TOK_PRETOK_SCAN_CLASS_H

/*
 * For scan_*.c: code points of UTF-8 and their classes, and the implementations behind scan_starts.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tok/pretok/scan.h"
#include "tok/unicode/unicode.h"
#include "tok/unicode/tables/tables.h"

#define SCAN_UNICODE UNI_16

/* White space without a category of its own. */
enum { SCAN_NEXT_LINE = 0x85 };

static inline bool scan_continues(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The code point at p, *ret_n bytes long; three more bytes must be readable. No validation. */
static inline uint32_t scan_decode(const uint8_t *p, unsigned *ret_n)
{
    if (p[0] < 0x80) {
        *ret_n = 1;
        return p[0];
    }
    if (p[0] < 0xe0) {
        *ret_n = 2;
        return (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
    }
    if (p[0] < 0xf0) {
        *ret_n = 3;
        return (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    }
    *ret_n = 4;
    uint32_t c = (p[0] & 7u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    return c < UNI_LIMIT ? c : 0xfffd;
}

/* The same where only n >= 1 bytes can be read; *ret_n may be larger. */
static inline uint32_t scan_decode_within(const uint8_t *p, size_t n, unsigned *ret_n)
{
    uint8_t end[4] = {0};
    if (n >= 4)
        return scan_decode(p, ret_n);
    memcpy(end, p, n);
    return scan_decode(end, ret_n);
}

/* The ideographs and kana that DeepSeek's second split isolates. */
static inline bool scan_ideograph(uint32_t c)
{
    return c - 0x4e00 <= 0x9fa5 - 0x4e00 || c - 0x3040 <= 0x30ff - 0x3040;
}

/* Script Han; for most of it, and kana, without a search. */
static inline bool scan_han(uint32_t c)
{
    bool kana = c - 0x3040 <= 0x30ff - 0x3040;
    return c - 0x4e00 <= 0x9fff - 0x4e00 || (!kana && uni_han(SCAN_UNICODE, c));
}

/*
 * Bytes of the contraction at p, at most `left`: an apostrophe and s, d, m, t, ll, ve or re; 0 for
 * none. With case ignored, the long s (U+017F) is an s as well.
 */
static inline unsigned scan_contraction(const uint8_t *p, size_t left, bool any_case)
{
    uint8_t fold = any_case ? 0x20 : 0;
    if (left < 2 || p[0] != '\'')
        return 0;
    uint8_t a = p[1] | fold, b = left > 2 ? p[2] | fold : 0;
    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return 2;
    if ((a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e'))
        return 3;
    return any_case && left > 2 && p[1] == 0xc5 && p[2] == 0xbf ? 3 : 0;
}

/* The end of the pre-token that begins at i < n. */
size_t scan_plain_next(enum scan_family f, const char *text, size_t n, size_t i);

size_t scan_plain_starts(enum scan_family f, const char *text, size_t n, uint32_t *at);
size_t scan256_starts(enum scan_family f, const char *text, size_t n, uint32_t *at);
size_t scan512_starts(enum scan_family f, const char *text, size_t n, uint32_t *at);

#endif
