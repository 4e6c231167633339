/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSON_ESCAPE_H
#define BASE_FORMAT_JSON_ESCAPE_H

/* Escapes in the strings of JSON, for json_walk.c and json_quick.c; no other file includes it. */

#include <stddef.h>
#include <stdint.h>

/* The character of the two-byte escape with this byte; 0 if there is none. */
extern const char json_short_escape[256];

/* Values of hexadecimal digits plus 1; 0 for other bytes. */
extern const uint8_t json_hex_value[256];

static inline int json_hex4(const char *s, const char *end)
{
    if (end - s < 4)
        return -1;
    int a = json_hex_value[(unsigned char)s[0]], b = json_hex_value[(unsigned char)s[1]];
    int c = json_hex_value[(unsigned char)s[2]], d = json_hex_value[(unsigned char)s[3]];
    if (!a || !b || !c || !d)
        return -1;
    return (a - 1) << 12 | (b - 1) << 8 | (c - 1) << 4 | (d - 1);
}

/*
 * The escape at s (a backslash): its length, and the code point that it stands for; 0 if it is
 * invalid, for the reason *ret_why.
 */
static inline size_t json_escape(const char *s, const char *end, uint32_t *ret,
                                 const char **ret_why)
{
    unsigned char c = end - s > 1 ? (unsigned char)s[1] : 0;
    *ret_why = "bad escape in a string";
    if (json_short_escape[c]) {
        *ret = (unsigned char)json_short_escape[c];
        return 2;
    }
    int high = c == 'u' ? json_hex4(s + 2, end) : -1;
    if (high < 0)
        return 0;
    *ret = (uint32_t)high;
    if (high < 0xd800 || high > 0xdfff)
        return 6;
    *ret_why = "lone surrogate in a string";
    if (high > 0xdbff || end - s < 12 || s[6] != '\\' || s[7] != 'u')
        return 0;
    int low = json_hex4(s + 8, end);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    *ret = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

#ifdef __x86_64__
static inline uint64_t json_first_bits(size_t n)
{
    return n < 64 ? (UINT64_C(1) << n) - 1 : UINT64_MAX;
}

/* The backslashes that begin an escape: not those that are escaped themselves. */
static inline uint64_t json_escape_starts(uint64_t backslash)
{
    if (!(backslash & backslash << 1))
        return backslash;
    uint64_t starts = 0;
    for (uint64_t left = backslash; left;) {
        uint64_t bit = left & (0 - left);
        starts |= bit;
        left &= ~(bit | bit << 1);
    }
    return starts;
}
#endif

#endif
