/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "base/format/jscan.h"
#include "tests/t.h"

/* The oracle is base/jsonl: both must take the same lines and give the same values. */

enum { KEYS = 7 };

static const char *const keys[KEYS] = {"text",    "id", "t\xC3\xA9", "m.text",
                                       "m.n.ids", "m",  "d\\.t"};

/* Feeds the line in pieces of random length up to `longest`. */
static int feed(struct jscan *j, const char *p, size_t n, uint32_t longest, uint64_t stream,
                struct err *e)
{
    int code = 0;
    uint64_t i = 0;
    while (n && !code) {
        size_t k = 1 + t_rand(stream, i++) % longest;
        k = k < n ? k : n;
        code = jscan_feed(j, p, k, e);
        p += k;
        n -= k;
    }
    return code ? code : jscan_end(j, e);
}

static void same_value(const struct jscan_value *got, const struct jsonl_value *want)
{
    struct err e;
    bool text = want->kind == JSONL_STRING || want->kind == JSONL_STRINGS;
    const void *p = text ? (const void *)want->text : want->ids;
    size_t n = text ? want->length
               : want->kind == JSONL_IDS || want->kind == JSONL_ID_LISTS
                   ? want->length * sizeof(int64_t)
                   : 0;
    T_EQ(got->kind, want->kind);
    if (!text && want->kind != JSONL_IDS && want->kind != JSONL_ID_LISTS)
        return;
    T_EQ(got->spill.size, n);
    char *b = mem_new(n + 1, 1);
    T_OK(spill_read(&got->spill, 0, b, n, &e), &e);
    if (n)
        T_MEM(b, p, n);
    free(b);
}

static int compare(const char *line, size_t n, uint32_t longest, uint64_t stream)
{
    struct err e, want_e;
    struct jscan j;
    struct jsonl_value want[KEYS];
    struct jsonl *oracle = jsonl_create(keys, KEYS);
    char *padded = mem_new(n + JSONL_PADDING, 1);
    memcpy(padded, line, n);
    int want_code = jsonl_parse(oracle, padded, n, want, &want_e);
    T_OK(jscan_open(&j, keys, KEYS, t_path("out"), &e), &e);
    int code = feed(&j, line, n, longest, stream, &e);
    if (code != want_code)
        t_fail(__FILE__, __LINE__, "%.*s: got %d (%s), want %d (%s)", (int)(n < 300 ? n : 300),
               line, code, code ? e.msg : "", want_code, want_code ? want_e.msg : "");
    if (code && want_code)
        T_EQ(e.kind, want_e.kind);
    for (size_t k = 0; k < KEYS && !code; k++)
        same_value(&j.value[k], &want[k]);
    jscan_close(&j);
    jsonl_destroy(oracle);
    free(padded);
    return code;
}

static const char *const good[] = {
    "{}",
    " { } ",
    "{\"text\": \"abc\"}",
    "{\"text\":\"\"}\r",
    "{\"id\":[1,2,3],\"text\":null}",
    "{\"id\":[]}",
    "{\"id\":[ ]}",
    "{\"id\":[[1,2] ,[], [3]],\"text\":[[]]}",
    "{\"id\":[[1],2],\"text\":[2,[1]]}",
    "{\"id\":[[1,[2]]],\"text\":[[1],\"a\"]}",
    "{\"id\":[[9223372036854775807]],\"text\":[[1],{}]}",
    "{\"id\":[[1],[{\"id\":[2]}]]}",
    "{\"id\":[-1,0,-0,9223372036854775807,-9223372036854775808]}",
    "{\"id\":[9223372036854775808]}",
    "{\"id\":[1,2.0]}",
    "{\"id\":[1,1e3]}",
    "{\"id\":[1,\"2\"]}",
    "{\"id\":[1,[2]]}",
    "{\"id\":[\"a\", \"\",\"b\\n\\u00e9\xC3\xA9\"],\"text\":[\"x\"]}",
    "{\"id\":[\"a\",1],\"text\":[\"x\",[\"y\"]]}",
    "{\"id\":[\"a\",{\"text\":\"b\"}],\"text\":[[\"x\"],\"y\"]}",
    "{\"text\":[\"a\",-Infinity],\"m\":{\"text\":[\"b\",\"c\"]},\"d\":\"e\"}",
    "{\"text\":[\"a\"],\"text\":\"b\",\"id\":\"c\",\"id\":[\"d\",\"e\",null]}",
    "{\"id\":[[],2]}",
    "{\"id\":[NaN]}",
    "{\"id\":[-Infinity, 3]}",
    "{\"id\":[00000000000000000000000]}",
    "{\"id\":[1,true]}",
    "{\"id\":[1,{}]}",
    "{\"text\":\"one\",\"text\":\"two\"}",
    "{\"text\":\"one\",\"text\":3}",
    "{\"text\":3,\"text\":\"x\",\"id\":[1],\"id\":[2,3]}",
    "{\"text\":{\"text\":\"inner\"}}",
    "{\"a\":{\"text\":\"inner\"},\"text\":\"outer\"}",
    "{\"a\":[{\"text\":1}]}",
    "{\"te\\u0078t\":\"escaped key\"}",
    "{\"t\\u00e9\":\"e\"}",
    "{\"textt\":\"x\",\"tex\":\"y\"}",
    "{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u3042\\ud83d\\ude00\\u0000z\"}",
    "{\"text\":\"\xE3\x81\x82\xF0\x9F\x98\x80\xC3\xA9\x7F\"}",
    "{\"a\":123456789012345678901234567890,\"b\":1e999,\"c\":-0.5E-7}",
    "{\"d\":[NaN,Infinity,-Infinity]}",
    "{\"a\":true,\"b\":false,\"c\":null,\"\":0}",
    "{\"a\":[[[[{}]]]],\"b\":{\"c\":{\"d\":[]}}}",
    "{\"m\":{\"text\":\"inner\",\"n\":{\"ids\":[1,2],\"text\":\"not this\"}},\"text\":\"outer\"}",
    "{\"m\":{\"n\":{\"ids\":[1,{\"text\":2}]},\"text\":\"x\",\"m\":{\"text\":\"y\"}}}",
    "{\"m\":{\"text\":\"a\"},\"m\":{\"n\":{}}}",
    "{\"m\":{\"text\":\"a\",\"n\":{\"ids\":[3]}},\"m\":\"now a string\"}",
    "{\"m\":[{\"text\":\"in an array\"}],\"n\":{\"ids\":[1]}}",
    "{\"m\":[1,2],\"m\":{\"text\":\"b\",\"text\":\"c\"}}",
    "{\"d\":{\"t\":\"no\"},\"d.t\":\"yes\",\"m.text\":\"no\"}",
};

static const char *const wrong[] = {
    "{\"text\":\"a\"}\r{\"text\":\"a\"}",
    "",
    " ",
    "[]",
    "3",
    "\"text\"",
    "null",
    "{",
    "{\"",
    "{\"a",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{,}",
    "{a:1}",
    "{\"a\" 1}",
    "{\"a\":}",
    "{\"a\"::1}",
    "{}{}",
    "{} x",
    "{\"a\":01}",
    "{\"a\":1.}",
    "{\"a\":.5}",
    "{\"a\":-}",
    "{\"a\":+1}",
    "{\"a\":1e}",
    "{\"a\":1e+}",
    "{\"a\":0x10}",
    "{\"a\":nul}",
    "{\"a\":nulls}",
    "{\"a\":Nan}",
    "{\"a\":-NaN}",
    "{\"a\":inf}",
    "{\"a\":True}",
    "{\"a\":[1,]}",
    "{\"a\":[,1]}",
    "{\"a\":[1 2]}",
    "{\"a\":[1}",
    "{\"a\":{]}",
    "{\"a\":1]",
    "{\"text\":\"\t\"}",
    "{\"text\":\"\x01\"}",
    "{\"text\":\"\\x\"}",
    "{\"text\":\"\\u12\"}",
    "{\"text\":\"\\u12g4\"}",
    "{\"text\":\"\\ud800\"}",
    "{\"text\":\"\\ud800x\"}",
    "{\"text\":\"\\ud800\\n\"}",
    "{\"text\":\"\\ud800\\u0041\"}",
    "{\"text\":\"\\ud800\\ud800\"}",
    "{\"text\":\"\\udc00\"}",
    "{\"a\":\"\\udc00\"}",
    "{\"text\":\"\xff\"}",
    "{\"text\":\"\xC0\x80\"}",
    "{\"text\":\"\xE0\x80\x80\"}",
    "{\"text\":\"\xED\xA0\x80\"}",
    "{\"text\":\"\xF4\x90\x80\x80\"}",
    "{\"text\":\"\xE3\x81\"}",
    "{\"text\":\"\xE3\x81",
    "{\"text\":\"\x80\"}",
    "{\"a\":'x'}",
    "{\"a\":1,,\"b\":2}",
    "\x0b{}",
    "{\"\xff\":1}",
    "{\"a\":1}\x0c",
};

static void same_lines_are_good(void)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        for (uint32_t longest = 1; longest < 40; longest += 6) {
            int code = compare(good[i], strlen(good[i]), longest, i);
            if (code && !strstr(good[i], "[000"))
                t_fail(__FILE__, __LINE__, "%s: is refused", good[i]);
        }
}

static void same_lines_are_bad(void)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        for (uint32_t longest = 1; longest < 40; longest += 6)
            if (!compare(wrong[i], strlen(wrong[i]), longest, i))
                t_fail(__FILE__, __LINE__, "%s: is taken", wrong[i]);
}

/* Every line above with one byte altered, dropped or put in. */
static void same_after_every_mishap(void)
{
    static const char bytes[] = "\"\\{}[],:0-.eEuNIt \x80\xE3\x01";
    uint64_t draw = 0;
    for (int round = 0; round < 6000; round++) {
        const char *s = good[t_rand(11, draw++) % (sizeof(good) / sizeof(*good))];
        char line[256];
        size_t n = strlen(s), at = t_rand(11, draw++) % n;
        uint32_t what = t_rand(11, draw++) % 3;
        char c = bytes[t_rand(11, draw++) % (sizeof(bytes) - 1)];
        memcpy(line, s, at);
        size_t k = at;
        if (what < 2)
            line[k++] = c;
        size_t rest = what == 1 ? at : at + 1;
        memcpy(line + k, s + rest, n - rest);
        compare(line, k + n - rest, 7, draw);
    }
}

static void same_depth(void)
{
    for (int depth = 1020; depth < 1028; depth++) {
        struct buf b = {0};
        buf_adds(&b, "{\"a\":");
        for (int i = 0; i < depth; i++)
            buf_addc(&b, '[');
        for (int i = 0; i < depth; i++)
            buf_addc(&b, ']');
        buf_addc(&b, '}');
        compare(b.data, b.len, 100, 1);
        buf_finish(&b);
    }
}

static void long_texts(void)
{
    static const char *const pieces[] = {
        "abc ",     "\\n", "\\u3042", "\xE3\x81\x82", "\\ud83d\\ude00", "\xF0\x9F\x98\x80",
        "\xC3\xA9", "\\\\"};
    struct buf b = {0};
    buf_adds(&b, "{\"x\":\"");
    for (uint64_t i = 0; i < 50000; i++)
        buf_adds(&b, pieces[t_rand(3, i) % 8]);
    buf_adds(&b, "\",\"text\":\"");
    for (uint64_t i = 0; i < 200000; i++)
        buf_adds(&b, pieces[t_rand(4, i) % 8]);
    buf_adds(&b, "\",\"id\":[1");
    for (uint64_t i = 0; i < 200000; i++)
        buf_addf(&b, ",%u", t_rand(5, i));
    buf_adds(&b, "]}");
    T_EQ(compare(b.data, b.len, 70000, 1), 0);
    T_EQ(compare(b.data, b.len, 3, 1), 0);
    b.len -= 1;
    T_EQ(compare(b.data, b.len, 70000, 1), ERR_DATA);
    buf_finish(&b);
}

static void a_long_key_costs_nothing(void)
{
    struct err e;
    struct jscan j;
    char block[4096];
    memset(block, 'k', sizeof(block));
    T_OK(jscan_open(&j, keys, KEYS, t_path("out"), &e), &e);
    T_OK(jscan_feed(&j, "{\"text", 6, &e), &e);
    for (int i = 0; i < 1000; i++)
        T_OK(jscan_feed(&j, block, sizeof(block), &e), &e);
    T_CHECK(j.name.cap < 4096);
    T_OK(jscan_feed(&j, "\":1}", 4, &e), &e);
    T_OK(jscan_end(&j, &e), &e);
    T_EQ(j.value[0].kind, JSONL_MISSING);
    jscan_close(&j);
}

T_MAIN(T_CASE(same_lines_are_good), T_CASE(same_lines_are_bad), T_CASE(same_after_every_mishap),
       T_CASE(same_depth), T_CASE(long_texts), T_CASE(a_long_key_costs_nothing))
