/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/t.h"
#include "tests/tok/charsmap.h"
#include "tok/text/base64.h"
#include "tok/pipeline/precompiled.h"

/* Rules: "a" becomes "b", CR a space. Expected results are spm_precompiled's under tokenizers
 * 0.23.3. */

static const char *const rule[][2] = {{"a", "b"}, {"\r", " "}};

static void becomes(const char *rules, const char *text, const char *want)
{
    struct buf b = {0};
    precompiled_run(rules, text, strlen(text), &b);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
}

static void clusters_are_looked_up(void)
{
    struct buf raw = {0}, text = {0};
    struct arena arena = {0};
    const char *rules;
    struct err e;
    size_t k;
    make_charsmap(&raw, rule, 2);
    base64_put(&text, raw.data, raw.len);
    T_OK(precompiled_read("x", &arena, text.data, text.len, &rules, &k, &e), &e);
    T_EQ(k, raw.len);
    T_MEM(rules, raw.data, k);
    becomes(rules, "", "");
    becomes(rules, "abca", "bbcb");
    becomes(rules, "a\u0301 \u0301a", "b \u0301b"); /* the accent is dropped with its cluster */
    becomes(rules, "a\u0301\u0302\u0303",
            "b\u0301\u0302\u0303"); /* one of seven bytes: by characters */
    becomes(rules, "x\r\ny\n", "x y\n");
    arena_finish(&arena);
    buf_finish(&raw);
    buf_finish(&text);
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
              ERR_DATA, "x.json: n.precompiled_charsmap is not base64");
    T_ERR(precompiled_read("x.json: n", &arena, "AAAAAAA=", 8, &rules, &n, &e), &e, ERR_DATA,
          "x.json: n");
    T_ERR(precompiled_read("x.json: n", &arena, "", 0, &rules, &n, &e), &e, ERR_DATA,
          "do not hold a trie");
    arena_finish(&arena);
}

T_MAIN(T_CASE(clusters_are_looked_up), T_CASE(bad_rules_are_refused))
