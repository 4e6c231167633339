/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/core/buf.h"
#include "base/format/jsonl.h"
#include "base/core/utf8.h"
#include "base/core/mem.h"
#include "tests/t.h"

static const char *const keys[] = {"text", "ids", "text", "k\"\xc3\xa9"};
static struct jsonl *j;
static struct jsonl_value v[5];
static struct err e;
static struct buf room;

/* What follows the line must not matter: here it would continue as JSON. */
static int parse(const char *line, size_t n)
{
    if (!j)
        j = jsonl_create(keys, 4);
    buf_reset(&room);
    buf_add(&room, line, n);
    for (int i = 0; i < JSONL_PADDING; i++)
        buf_addc(&room, "}]\"1"[i % 4]);
    memset(v, 0x55, sizeof(v));
    return jsonl_parse(j, room.data, n, v, &e);
}

static void takes(const char *line)
{
    T_OK(parse(line, strlen(line)), &e);
}

static void refuses(const char *line, const char *words)
{
    T_ERR(parse(line, strlen(line)), &e, ERR_DATA, words);
    T_CHECK(strncmp(e.msg, "byte ", 5) == 0);
}

static void text_is(int k, const char *want, size_t n)
{
    T_EQ(v[k].kind, JSONL_STRING);
    T_EQ(v[k].length, n);
    T_MEM(v[k].text, want, n);
}

static void strings_come_unescaped(void)
{
    takes("{\"id\": 1, \"text\": \"plain\", \"x\": {\"text\": \"not this\"}}");
    text_is(0, "plain", 5);
    text_is(2, "plain", 5);
    T_EQ(v[1].kind, JSONL_MISSING);
    takes("{\"text\":\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20AC\\ud83D\\uDe00z\"}");
    text_is(0, "a\"\\/\b\f\n\r\t\0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", 20);
    takes("{\"text\":\"\"}");
    text_is(0, "", 0);
    takes(" \t{ \"text\" : \"a\" , \"k\\u0022\\u00e9\" : \"b\\n\" } \r");
    text_is(0, "a", 1);
    text_is(3, "b\n", 2);
    takes("{\"te\\u0078t\":\"same key\"}");
    text_is(0, "same key", 8);
}

/* Runs of backslashes of any length, at any place of a vector, and what is not an escape after
 * them. */
static void escapes_stand_anywhere(void)
{
    static const char *const piece[] = {"\\\\",    "\\n",      "\\\"", "\\/",
                                        "\\u0041", "\xc3\xa9", "a",    "bc"};
    static const char *const meant[] = {"\\", "\n", "\"", "/", "A", "\xc3\xa9", "a", "bc"};
    for (uint32_t round = 0; round < 3000; round++) {
        struct buf line = {0}, want = {0};
        buf_adds(&line, "{\"text\":\"");
        uint32_t n = t_rand(2, round) % 200, plain = t_rand(3, round) % 80;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t r = t_rand(4, (uint64_t)round << 32 | i),
                     k = r % 100 < plain ? 6 : r / 100 % 8;
            buf_adds(&line, piece[k]);
            buf_adds(&want, meant[k]);
        }
        size_t at = line.len;
        buf_adds(&line, "\"}");
        T_OK(parse(line.data, line.len), &e);
        text_is(0, want.data ? want.data : "", want.len);
        char message[64];
        line.len = at;
        buf_adds(&line, round % 2 ? "\\x\"}" : "\\\xee\x81\xae\"}"); /* its low bits are an n's */
        snprintf(message, sizeof(message), "byte %zu: bad escape in a string", at);
        T_ERR(parse(line.data, line.len), &e, ERR_DATA, message);
        buf_finish(&line);
        buf_finish(&want);
    }
}

static void long_strings_at_every_offset(void)
{
    char plain[200], line[1400];
    for (size_t n = 0; n < sizeof(plain); n++) {
        size_t m = (size_t)sprintf(line, "{\"text\":\"");
        for (size_t i = 0; i < n; i++) {
            uint32_t kind = t_rand(1, n * 1000 + i) % 8;
            plain[i] = kind ? (char)('a' + i % 26) : '\n';
            m += (size_t)sprintf(line + m,
                                 kind == 0   ? "\\n"
                                 : kind == 1 ? "\\u%04x"
                                             : "%c",
                                 plain[i]);
        }
        sprintf(line + m, "\"}");
        takes(line);
        text_is(0, plain, n);
    }
}

static void ids_are_whole_numbers(void)
{
    takes("{\"ids\":[1, -2,9223372036854775807,-9223372036854775808, 0],\"text\":[]}");
    T_EQ(v[1].kind, JSONL_IDS);
    T_EQ(v[1].length, 5);
    static const int64_t want[] = {1, -2, INT64_MAX, INT64_MIN, 0};
    T_MEM(v[1].ids, want, sizeof(want));
    T_EQ(v[0].kind, JSONL_IDS);
    T_EQ(v[0].length, 0);
    static const char *const other[] = {
        "[1.0]",        "[1,\"2\"]",      "[1,[2]]", "[true]",    "[9223372036854775808]",
        "[1e2]",        "[NaN]",          "{}",      "null",      "1",
        "true",         "[1,{}]",         "[null]",  "[\"a\",1]", "[\"a\",[]]",
        "[\"a\",null]", "[\"a\",[\"b\"]]"};
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        char line[100];
        sprintf(line, "{\"ids\":%s, \"text\":\"t\"}", other[i]);
        takes(line);
        T_EQ(v[1].kind, JSONL_OTHER);
        text_is(0, "t", 1);
    }
    refuses("{\"ids\":[1,]}", "byte 10: expected a value");
    refuses("{\"ids\":[1 2]}", "byte 10: expected ',' or ']'");
    refuses("{\"ids\":[01]}", "byte 8: bad number");
    refuses("{\"ids\":[1", "byte 9: expected ',' or ']', found the end");
    refuses("{\"ids\":[1}", "byte 9: expected ',' or ']', found '}'");
}

/* Each is followed by its end. */
static void arrays_of_ids(void)
{
    static const int64_t end = JSONL_LIST_END, want[] = {1, 2, end, end, 3, end};
    takes("{\"ids\":[[1, 2], [],[ 3 ]],\"text\":\"t\"}");
    T_EQ(v[1].kind, JSONL_ID_LISTS);
    T_EQ(v[1].length, 6);
    T_MEM(v[1].ids, want, sizeof(want));
    text_is(0, "t", 1);
    static const char *const other[] = {"[[1],2]",     "[2,[1]]",  "[[[1]]]",
                                        "[[1],[[2]]]", "[[1.5]]",  "[[9223372036854775807]]",
                                        "[[1],null]",  "[[\"a\"]]"};
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
        char line[100];
        sprintf(line, "{\"ids\":%s, \"text\":\"t\"}", other[i]);
        takes(line);
        T_EQ(v[1].kind, JSONL_OTHER);
        text_is(0, "t", 1);
    }
    refuses("{\"ids\":[[1,]]}", "byte 11: expected a value");
}

/* Each is followed by its end. */
static void strings_of_an_array(void)
{
    takes("{\"text\":[\"a\", \"\",\"b\\n\\u00e9\" ,\"\xc3\xa9\"],\"ids\":[\"x\"]}");
    T_EQ(v[0].kind, JSONL_STRINGS);
    T_EQ(v[0].length, 11);
    T_MEM(v[0].text,
          "a\xff\xff"
          "b\n\xc3\xa9\xff\xc3\xa9\xff",
          11);
    T_EQ(v[1].kind, JSONL_STRINGS);
    T_MEM(v[1].text, "x\xff", 2);
    takes("{\"text\":[\"a\",\"b\\n\",1],\"k\\\"\\u00e9\":\"\\t\"}");
    T_EQ(v[0].kind, JSONL_OTHER);
    text_is(3, "\t", 1);
    refuses("{\"text\":[\"a\",]}", "byte 13: expected a value");
    refuses("{\"text\":[\"a\" \"b\"]}", "byte 13: expected ',' or ']'");
    refuses("{\"text\":[\"a\\x\"]}", "escape");
    refuses("{\"text\":[\"\\ud800\"]}", "surrogate");
    refuses("{\"text\":[\"a\"", "byte 12: expected ',' or ']', found the end");
}

static void the_last_duplicate_wins(void)
{
    takes("{\"text\":\"a\\n\",\"text\":\"b\\t\"}");
    text_is(0, "b\t", 2);
    takes("{\"text\":\"a\",\"ids\":[1,2],\"text\":null,\"ids\":[3]}");
    T_EQ(v[0].kind, JSONL_OTHER);
    T_EQ(v[1].length, 1);
    T_EQ(v[1].ids[0], 3);
    takes("{\"ids\":[1],\"ids\":[2,2.5]}");
    T_EQ(v[1].kind, JSONL_OTHER);
    takes("{\"ids\":[1,2.5],\"ids\":[7,8]}");
    T_EQ(v[1].length, 2);
    T_EQ(v[1].ids[0], 7);
}

static void numbers_nobody_asked_for_pass(void)
{
    takes("{\"a\":123456789012345678901234567890,\"b\":[1e999,-1e-999,NaN,-Infinity,Infinity,-0.0],"
          "\"c\":-0,\"d\":1E+5,\"text\":\"t\"}");
    text_is(0, "t", 1);
    static const char *const bad[] = {"01",   "1.",     ".5",   "-",    "+1",  "1e",  "1e+",
                                      "0x10", "1_0",    "nan",  "-NaN", "Inf", "inf", "Infinit",
                                      "NaNs", "--1",    "1.e5", "1 2",  "tru", "nul", "True",
                                      "None", "falsey", "1a",   "-I"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[64];
        sprintf(line, "{\"a\":%s}", bad[i]);
        refuses(line, "byte ");
        sprintf(line, "{\"a\":[0,%s]}", bad[i]);
        refuses(line, "byte ");
    }
}

static void bad_lines_name_the_byte(void)
{
    refuses("", "byte 0: nothing");
    refuses("   ", "byte 0: nothing but blanks");
    refuses("[1]", "byte 0: expected an object, found '['");
    refuses("\"a\"", "byte 0: expected an object");
    refuses("{\"text\":\"a\"", "byte 11: expected ',' or '}', found the end");
    refuses("{\"text\":\"a", "byte 8: the string that begins here has no end");
    refuses("{\"text\":\"a\"} x", "byte 13: expected the end of the line, found 'x'");
    refuses("{\"text\":\"a\"}{}", "byte 12: expected the end of the line");
    refuses("{\"text\":\"a\"}}", "byte 12: expected the end of the line");
    T_EQ(e.kind, ERR_KIND_NONE);
    refuses("{\"text\":\"a\"}\r {\"text\":\"a\"}",
            "byte 14: expected the end of the line, found '{' after CR");
    T_EQ(e.kind, ERR_KIND_CR_LINES);
    refuses("{\"text\" \"a\"}", "byte 8: expected ':'");
    refuses("{text:1}", "byte 1: expected a key in quotes, found 't'");
    refuses("{\"a\":1,}", "byte 7: expected a key");
    refuses("{,}", "byte 1: expected a key");
    refuses("{\"a\":[}]}", "byte 6: expected a value, found '}'");
    refuses("{\"a\":[1}}", "byte 7: expected ',' or ']'");
    refuses("{\"a\":{\"b\"}}", "byte 9: expected ':'");
    refuses("{\"a\":}", "byte 5: expected a value");
    refuses("{\"a\":1 \"b\":2}", "byte 7: expected ',' or '}'");
    refuses("{\"a\":\"\\q\"}", "byte 6: bad escape");
    refuses("{\"a\":\"\\u12g4\"}", "byte 6: bad escape");
    refuses("{\"text\":\"\\u12\"}", "byte 9: bad escape");
    refuses("{\"a\":\"\\ud800\"}", "byte 6: lone surrogate");
    refuses("{\"text\":\"x\\udfff\"}", "byte 10: lone surrogate");
    refuses("{\"text\":\"\\ud800\\ud800\"}", "byte 9: lone surrogate");
    refuses("{\"\\ud800\":1}", "byte 2: lone surrogate");
    refuses("{\"a\":{\"\\ud800\":1}}", "byte 7: lone surrogate");
    refuses("{\"text\":\"a\tb\"}", "byte 10: control character 0x09");
    refuses("{\"a\":\"\xc0\xaf\"}", "byte 6: 0xc0 is not UTF-8");
    refuses("{\"a\":\"\xed\xa0\x80\"}", "byte 6: 0xed is not UTF-8");
    refuses("{\"a\":\"\xf4\x90\x80\x80\"}", "byte 6: 0xf4 is not UTF-8");
    refuses("\xef\xbb\xbf{}", "byte 0: expected an object");
    refuses("{\"a\":\xc2\xa0 1}", "byte 5: expected a value, found byte 0xc2");
    T_ERR(parse("{\"a\":1\0}", 8), &e, ERR_DATA, "byte 5: bad number");
    T_ERR(parse("{\"a\":\0001}", 9), &e, ERR_DATA, "byte 5: expected a value");
}

static void nesting_has_a_limit(void)
{
    struct buf b = {0};
    for (int depth = 1023; depth <= 1024; depth++) {
        buf_reset(&b);
        buf_adds(&b, "{\"a\":");
        for (int i = 0; i < depth; i++)
            buf_adds(&b, i % 3 ? "[" : "{\"x\":");
        buf_adds(&b, "0");
        for (int i = depth; i-- > 0;)
            buf_adds(&b, i % 3 ? "]" : "}");
        buf_adds(&b, ",\"text\":\"t\"}");
        if (depth == 1023)
            takes(buf_str(&b));
        else
            refuses(buf_str(&b), "nested deeper than 1024");
    }
    buf_finish(&b);
}

static void a_line_of_many_megabytes(void)
{
    size_t n = (size_t)64 << 20;
    takes("{}");
    struct buf b = {0};
    buf_adds(&b, "{\"text\":\"");
    size_t head = b.len;
    memset(buf_reserve(&b, n), 'x', n);
    b.len += n;
    memcpy(b.data + b.len - 2, "\\n", 2);
    buf_adds(&b, "\"}");
    memset(buf_reserve(&b, JSONL_PADDING), 0, JSONL_PADDING);
    T_OK(jsonl_parse(j, b.data, b.len, v, &e), &e);
    T_EQ(v[0].length, n - 1);
    T_EQ(v[0].text[n - 2], '\n');
    T_MEM(v[0].text, b.data + head, n - 2);
    buf_finish(&b);
}

static void four_gigabytes_are_refused(void)
{
    size_t n = (size_t)4 << 30;
    takes("{}");
    char *p = mmap(NULL, n + JSONL_PADDING, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    T_CHECK(p != MAP_FAILED);
    int rc = jsonl_parse(j, p, n, v, &e);
    munmap(p, n + JSONL_PADDING);
    T_ERR(rc, &e, ERR_DATA, "4294967296 bytes of JSON, at most");
}

/* The last case: lets go of what the others shared. */
static void nothing_is_left(void)
{
    jsonl_destroy(j);
    jsonl_destroy(NULL);
    j = NULL;
    buf_finish(&room);
}

static void white_space(void)
{
    const char *s = "ab", *w = " \t\r\n", *f = "\f";
    T_CHECK(jsonl_blank(s, s));
    T_CHECK(jsonl_blank(w, w + 4));
    T_CHECK(!jsonl_blank(s, s + 1));
    T_CHECK(!jsonl_blank(f, f + 1));
}

static void keys_may_lead_into_objects(void)
{
    static const char *const paths[] = {"a.b", "a.c.d", "a", "x\\.y", "a.b"};
    struct jsonl *k = jsonl_create(paths, 5);
    char line[200] = "{\"a\":{\"b\":\"B\",\"c\":{\"d\":[7],\"b\":0},\"x\":[{\"b\":1}]},"
                     "\"b\":\"no\",\"x.y\":\"dot\"}";
    T_OK(jsonl_parse(k, line, strlen(line), v, &e), &e);
    text_is(0, "B", 1);
    text_is(3, "dot", 3);
    T_EQ(v[1].kind, JSONL_IDS);
    T_EQ(v[1].ids[0], 7);
    T_EQ(v[2].kind, JSONL_OTHER);
    strcpy(line, "{\"a\":{\"b\":\"B\",\"c\":{\"d\":1}},\"a\":\"flat\"}");
    T_OK(jsonl_parse(k, line, strlen(line), v, &e), &e);
    T_EQ(v[0].kind, JSONL_MISSING);
    T_EQ(v[1].kind, JSONL_MISSING);
    text_is(2, "flat", 4);
    strcpy(line, "{\"a\":{\"b\":\"B\",}}");
    T_ERR(jsonl_parse(k, line, strlen(line), v, &e), &e, ERR_DATA, "byte 14: expected a key");
    jsonl_destroy(k);
}

static const char before[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl";

/* Each code, at each place of 64 bytes that are read at once. */
static void every_code_becomes_its_character(void)
{
    static const char *const form[] = {"\\u%04x", "\\u%04X"};
    for (uint32_t c = 0; c <= 0xffff; c++) {
        char line[160], want[80];
        int at = sprintf(line, "{\"text\": \"%.*s", (int)(c % 64), before);
        at += sprintf(line + at, form[c / 64 % 2], c);
        at += sprintf(line + at, "z\\n\\u20ac\"}");
        size_t n = c % 64;
        memcpy(want, before, n);
        n += utf8_put(want + n, c);
        memcpy(want + n, "z\n\xe2\x82\xac", 5);
        int code = parse(line, (size_t)at);
        if (c >= 0xd800 && c <= 0xdfff) {
            T_EQ(code, ERR_DATA);
            continue;
        }
        T_OK(code, &e);
        text_is(0, want, n + 5);
    }
}

static void a_bad_digit_is_none(void)
{
    for (uint32_t i = 0; i < 4 * 64 * 256; i++) {
        char line[160];
        unsigned char c = (unsigned char)(i / 256);
        int at = sprintf(line, "{\"text\": \"%.*s\\u20ac", (int)(i / 4 % 64), before);
        line[at - 4 + (int)(i % 4)] = (char)c;
        at += sprintf(line + at, "\"}");
        bool digit = c && strchr("0123456789abcdefABCDEF", c);
        T_EQ(parse(line, (size_t)at), digit ? 0 : ERR_DATA);
    }
}

/* A line of random pieces: mostly good ones, and of all shapes. */
static void make_line(struct buf *b, uint64_t round)
{
    static const char *const name[] = {"text", "ids", "other", "t\\u0065xt", "k\xc3\xa9", "te\\u"};
    static const char *const value[] = {"1",
                                        "-0.5e3",
                                        "01",
                                        "true",
                                        "nul",
                                        "NaN",
                                        "[1,2]",
                                        "[]",
                                        "{}",
                                        "[1,]",
                                        "{\"text\":[{}]}",
                                        "[[\"]\"]]",
                                        "\"\"",
                                        "\"\\n\"",
                                        "\"\\\"",
                                        "\"\\ud83d\"",
                                        "\"a\tb\"",
                                        "\"\xff\"",
                                        "{\"a\" 1}",
                                        "\"\\uD83D\\ude00\"",
                                        "",
                                        "1 2",
                                        "-Infinity",
                                        "{\"a\":[1,{\"b\":\"\\u12\"}]}"};
    static const char *const letter[] = {"a",       "bcdefgh", " ",       "\\n",
                                         "\\\"",    "\\\\",    "\\u00e9", "\xe3\x81\x82",
                                         "\\u0041", "\\u3042", "\\uFFFd", "\\uD83d\\uDe00",
                                         "\\u0000"};
    uint32_t good = t_rand(11, round) % 4, at = 0;
    buf_addc(b, '{');
    for (uint32_t i = 0, n = 1 + t_rand(12, round) % 4; i < n; i++) {
        uint64_t k = round * 8 + i;
        buf_addf(b, "%s\"%s\"%s:%s", i ? t_rand(13, k) % 5 ? "," : ", " : "",
                 name[t_rand(14, k) % (good ? 3 : 6)], t_rand(15, k) % 5 ? "" : " ",
                 t_rand(16, k) % 5 ? "" : "  ");
        if (t_rand(17, k) % 2) {
            buf_adds(b, value[t_rand(18, k) % 24]);
            continue;
        }
        buf_addc(b, '"');
        for (uint32_t m = t_rand(19, k) % 90; m; m--)
            buf_adds(b, letter[t_rand(20, round * 1000 + at++) % 13]);
        buf_adds(b, t_rand(21, k) % 50 ? "\"" : "");
    }
    static const char *const close[] = {"}", "}", "}", "} ", "}\r", " }\t", "}}", ""};
    buf_adds(b, close[t_rand(22, round) % 8]);
}

static void same(const struct jsonl_value *a, const struct jsonl_value *b)
{
    T_EQ(a->kind, b->kind);
    if (a->kind != JSONL_OTHER && a->kind != JSONL_MISSING)
        T_EQ(a->length, b->length);
    if (a->kind == JSONL_STRING || a->kind == JSONL_STRINGS)
        T_MEM(a->text, b->text, b->length);
    if (a->kind == JSONL_IDS)
        T_MEM(a->ids, b->ids, b->length * sizeof(*b->ids));
}

/* A key inside of an object is looked for the long way only: so are the same lines then. */
static void one_pass_is_the_long_way(void)
{
    static const char *const few[] = {"text", "ids", "text"}, *const deep[] = {"text", "ids",
                                                                               "q.q"};
    int good = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        struct jsonl *a = jsonl_create(few, 3), *b = jsonl_create(deep, 3);
        struct jsonl_value x[3], y[3];
        struct err other;
        struct buf line = {0}, more = {0};
        make_line(&line, round);
        size_t n = line.len, got = 0;
        memset(buf_reserve(&line, JSONL_PADDING), "\"}\n]"[round % 4], JSONL_PADDING);
        int rc = jsonl_parse(a, line.data, n, x, &e),
            want = jsonl_parse(b, line.data, n, y, &other);
        T_EQ(rc, want);
        for (int k = 0; k < 2 && !want; k++)
            same(&x[k], &y[k]);
        if (want)
            T_STR(e.msg, other.msg);
        else
            same(&x[2], &x[0]);
        good += !want;

        /* the same with lines after it */
        make_line(&more, round);
        buf_adds(&more, round % 3 ? "\n{\"text\":1}\n" : "\n");
        size_t all = more.len;
        memset(buf_reserve(&more, JSONL_PADDING), '"', JSONL_PADDING);
        T_EQ(jsonl_next(a, more.data, more.data + all, &got, x, &e), want);
        T_EQ(got, n);
        for (int k = 0; k < 2 && !want; k++)
            same(&x[k], &y[k]);
        if (want)
            T_STR(e.msg, other.msg);
        buf_finish(&line);
        buf_finish(&more);
        jsonl_destroy(a);
        jsonl_destroy(b);
    }
    T_CHECK(good > 2000 && good < 18000);
}

/* Nothing after the end is read, wherever a line is cut. */
static void cut_lines_are_refused(void)
{
    char line[300];
    int n = sprintf(line, "{\"id\": 12, \"x\": [{\"a\": \"\\u00e9\"}], \"text\": \"");
    for (int i = 0; i < 150; i++)
        n += sprintf(line + n, i % 7 ? "%c" : "\\n", 'a' + i % 26);
    n += sprintf(line + n, "\"}");
    takes(line);
    for (size_t k = 0; k < (size_t)n; k++) {
        struct jsonl *a = jsonl_create(keys, 1);
        buf_reset(&room);
        buf_add(&room, line, (size_t)n);
        buf_adds(&room, "\"}\n");
        for (int i = 0; i < JSONL_PADDING; i++)
            buf_addc(&room, '}');
        T_EQ(jsonl_parse(a, room.data, k, v, &e), ERR_DATA);
        jsonl_destroy(a);
    }
}

static void keys_are_listed(void)
{
    static const char *const cases[][2] = {
        {"{}", ""},
        {" { \"a\" : 1 , \"b\":\"x,}{\\\"\" } ", "a, b"},
        {"{\"m\": {\"text\": \"t\", \"l\": [1, {\"k\": 2}]}, \"id\": null}", "m.text, m.l, id"},
        {"{\"o\":{},\"p\":[[]],\"q\":-1.5e3}", "p, q"},
        {"{\"\u3042\": true}", "\u3042"},
        {"{\"a\\\"b\": [\"{\", {}], \"c\": {\"d\": {}}, \"e\": false}", "a\\\"b, e"},
        {"[1, 2]", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf line = {0}, b = {0};
        buf_adds(&line, cases[i][0]);
        buf_reserve(&line, JSONL_PADDING);
        jsonl_keys(line.data, line.len, &b);
        T_STR(buf_str(&b), cases[i][1]);
        buf_finish(&line);
        buf_finish(&b);
    }
}

static void of_many_keys_the_first_are_listed(void)
{
    struct buf line = {0}, b = {0};
    for (int i = 0; i < 20; i++)
        buf_addf(&line, "%s\"k%d\": %d", i ? ", " : "{", i, i);
    buf_adds(&line, "}");
    buf_reserve(&line, JSONL_PADDING);
    jsonl_keys(line.data, line.len, &b);
    T_CHECK(strstr(buf_str(&b), "k0, k1") && strstr(b.data, "k15, ...") && !strstr(b.data, "k16"));
    buf_finish(&line);
    buf_finish(&b);
}

T_MAIN(T_CASE(keys_are_listed), T_CASE(of_many_keys_the_first_are_listed),
       T_CASE(strings_come_unescaped), T_CASE(keys_may_lead_into_objects),
       T_CASE(escapes_stand_anywhere), T_CASE(every_code_becomes_its_character),
       T_CASE(a_bad_digit_is_none), T_CASE(long_strings_at_every_offset),
       T_CASE(ids_are_whole_numbers), T_CASE(arrays_of_ids), T_CASE(strings_of_an_array),
       T_CASE(the_last_duplicate_wins), T_CASE(numbers_nobody_asked_for_pass),
       T_CASE(bad_lines_name_the_byte), T_CASE(nesting_has_a_limit),
       T_CASE(a_line_of_many_megabytes), T_CASE(four_gigabytes_are_refused),
       T_CASE(one_pass_is_the_long_way), T_CASE(cut_lines_are_refused), T_CASE(nothing_is_left),
       T_CASE(white_space))
