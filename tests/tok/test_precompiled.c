/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/t.h"
#include "tok/precompiled.h"

/* Rules: "a" becomes "b", CR a space. What they give is spm_precompiled's under tokenizers 0.23.3.
 */

enum { BLOCK = 256, UNITS = 4 * BLOCK };

static size_t make_rules(unsigned char *p)
{
    uint32_t unit[UNITS];
    for (uint32_t i = 0; i < UNITS; i++)
        unit[i] = (i & 255) ^ 1; /* no step leads here */
    unit[0] = (uint32_t)BLOCK << 10;
    unit[BLOCK + 'a'] = 'a' | 1u << 8 | ((2 * BLOCK) ^ (BLOCK + 'a')) << 10;
    unit[2 * BLOCK] = 1u << 31 | 0;
    unit[BLOCK + '\r'] = '\r' | 1u << 8 | ((3 * BLOCK) ^ (BLOCK + '\r')) << 10;
    unit[3 * BLOCK] = 1u << 31 | 2;
    uint32_t size = sizeof(unit);
    memcpy(p, &size, 4);
    memcpy(p + 4, unit, size);
    memcpy(p + 4 + size, "b\0 ", 4);
    return 4 + size + 4;
}

static size_t to_base64(const unsigned char *p, size_t n, char *to)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t k = 0;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p[i + 2] : 0);
        to[k++] = digits[v >> 18];
        to[k++] = digits[v >> 12 & 63];
        to[k++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
        to[k++] = i + 2 < n ? digits[v & 63] : '=';
    }
    return k;
}

static void becomes(const char *rules, const char *text, const char *want)
{
    struct buf b = {0};
    precompiled_run(rules, text, strlen(text), &b);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
}

static void clusters_are_looked_up(void)
{
    unsigned char raw[UNITS * 4 + 8];
    char text[2 * sizeof(raw)];
    struct arena arena = {0};
    const char *rules;
    struct err e;
    size_t n = make_rules(raw), k, got = to_base64(raw, n, text);
    T_OK(precompiled_read("x", &arena, text, got, &rules, &k, &e), &e);
    T_EQ(k, n);
    T_MEM(rules, raw, n);
    becomes(rules, "", "");
    becomes(rules, "abca", "bbcb");
    becomes(rules, "a\u0301 \u0301a", "b \u0301b"); /* the accent goes with its cluster */
    becomes(rules, "a\u0301\u0302\u0303",
            "b\u0301\u0302\u0303"); /* one of seven bytes: by characters */
    becomes(rules, "x\r\ny\n", "x y\n");
    arena_finish(&arena);
}

static void bad_rules_are_refused(void)
{
    struct arena arena = {0};
    const char *rules;
    struct err e;
    size_t n;
    static const char *const bad[] = {
        "A", "AAA", "AA=A", "A===", "AAB=", "AB==", "AA*=", "====", "AAAAA==="};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        T_ERR(precompiled_read("x.json: n", &arena, bad[i], strlen(bad[i]), &rules, &n, &e), &e,
              ERR_DATA, "x.json: n.precompiled_charsmap is no base64");
    T_ERR(precompiled_read("x.json: n", &arena, "AAAAAAA=", 8, &rules, &n, &e), &e, ERR_DATA,
          "x.json: n");
    T_ERR(precompiled_read("x.json: n", &arena, "", 0, &rules, &n, &e), &e, ERR_DATA, "no trie");
    arena_finish(&arena);
}

T_MAIN(T_CASE(clusters_are_looked_up), T_CASE(bad_rules_are_refused))
