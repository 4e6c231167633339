/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "base/format/json.h"
#include "base/core/rng.h"
#include "tests/t.h"

static struct json_doc *parse(const char *text)
{
    struct json_doc *d = NULL;
    struct err e;
    T_OK(json_parse("x.json", text, strlen(text), &d, &e), &e);
    return d;
}

static void refuses(const char *text, const char *words)
{
    struct json_doc *d = NULL;
    struct err e;
    T_ERR(json_parse("x.json", text, strlen(text), &d, &e), &e, ERR_DATA, words);
    T_CHECK(strncmp(e.msg, "x.json: byte ", 13) == 0);
    T_CHECK(d == NULL);
}

static void every_kind_arrives(void)
{
    struct json_doc *d =
        parse(" {\"a\": null, \"b\": [true, false], \"c\": -12, \"d\": 0.5,\n"
              "  \"e\": \"x\\u00e9\\n\\ud83d\\ude00\\u0000y\", \"f\": {}, \"g\": []} ");
    const struct json *o = json_root(d);
    T_EQ(o->kind, JSON_OBJECT);
    T_EQ(o->length, 7);
    T_EQ(json_get(o, "a")->kind, JSON_NULL);
    const struct json *b = json_get(o, "b");
    T_EQ(b->kind, JSON_ARRAY);
    T_EQ(b->length, 2);
    T_CHECK(b->child[0].boolean && !b->child[1].boolean);
    T_EQ(json_get(o, "c")->kind, JSON_INT);
    T_EQ(json_get(o, "c")->integer, -12);
    T_NEAR(json_get(o, "c")->real, -12, 0);
    T_EQ(json_get(o, "d")->kind, JSON_REAL);
    T_NEAR(json_get(o, "d")->real, 0.5, 0);
    const struct json *s = json_get(o, "e");
    T_EQ(s->length, 10);
    T_MEM(s->string, "x\xc3\xa9\n\xf0\x9f\x98\x80\0y", 11);
    T_EQ(json_get(o, "f")->kind, JSON_OBJECT);
    T_EQ(json_get(o, "g")->length, 0);
    T_CHECK(json_get(o, "h") == NULL);
    T_CHECK(json_get(b, "a") == NULL);
    T_STR(o->child[6].key, "g");
    json_close(d);
}

static void numbers_by_their_size(void)
{
    struct json_doc *d = parse("[9223372036854775807, -9223372036854775808, 9223372036854775808,"
                               "1000000000000000019884624838656, 1e999, -1e-999, NaN, -Infinity,"
                               "1e3, -0, 2.75]");
    const struct json *v = json_root(d)->child;
    T_EQ(v[0].kind, JSON_INT);
    T_EQ(v[0].integer, INT64_MAX);
    T_EQ(v[1].kind, JSON_INT);
    T_EQ(v[1].integer, INT64_MIN);
    T_EQ(v[2].kind, JSON_REAL);
    T_NEAR(v[2].real, 0x1p63, 0);
    T_EQ(v[3].kind, JSON_REAL);
    T_NEAR(v[3].real, 1e30, 0);
    T_CHECK(isinf(v[4].real) && v[4].integer == 0);
    T_NEAR(v[5].real, 0, 0);
    T_CHECK(isnan(v[6].real));
    T_CHECK(isinf(v[7].real) && v[7].real < 0);
    T_EQ(v[8].kind, JSON_REAL);
    T_EQ(v[8].integer, 1000);
    T_EQ(v[9].kind, JSON_INT);
    T_EQ(v[10].integer, 2);
    json_close(d);
}

static void bad_texts_name_the_byte(void)
{
    refuses("", "byte 0");
    refuses("  ", "byte 0");
    refuses("{\"a\": 1, \"b\": 2, \"a\": 3}", "byte 17: duplicate key \"a\"");
    refuses("[1 2]", "byte 3: expected ',' or ']', found '2'");
    refuses("{\"a\" 1}", "byte 5: expected ':'");
    refuses("{a: 1}", "byte 1: expected a key in quotes, found 'a'");
    refuses("{\"a\": 1,}", "byte 8: expected a key");
    refuses("[1,]", "byte 3: expected a value");
    refuses("[1", "byte 2: expected ',' or ']', found the end");
    refuses("[01]", "byte 1: bad number");
    refuses("[1.]", "byte 1: bad number");
    refuses("[-]", "byte 1: bad number");
    refuses("[1e]", "byte 1: bad number");
    refuses("[+1]", "byte 1: expected a value");
    refuses("[truf]", "byte 1: bad literal");
    refuses("[truely]", "byte 1: bad literal");
    refuses("[-NaN]", "byte 1: bad number");
    refuses("[\"a\\x\"]", "byte 3: bad escape");
    refuses("[\"\\ud800\"]", "byte 2: lone surrogate");
    refuses("[\"\\udc00\\ud800\"]", "byte 2: lone surrogate");
    refuses("[\"\\ud800\\u0041\"]", "byte 2: lone surrogate");
    refuses("[\"a\nb\"]", "byte 3: control character 0x0a");
    refuses("[\"a]", "byte 1: the string that begins here has no end");
    refuses("[\"a\xff\"]", "byte 3: 0xff is not UTF-8");
    refuses("[\"\xed\xa0\x80\"]", "byte 2: 0xed is not UTF-8");
    refuses("[1] 2", "byte 4: expected the end");
    refuses("[\"a\"\"b\"]", "byte 4: expected ',' or ']'");
    refuses("[\"a\"b]", "byte 4: expected ',' or ']'");
    refuses("[1\"a\"]", "byte 1: bad number");
    refuses("[1\x0c, 2]", "byte");
    refuses("\xef\xbb\xbf[]", "byte 0: expected a value");
}

static void depth_has_a_limit(void)
{
    struct buf b = {0};
    for (int depth = 64; depth <= 65; depth++) {
        buf_reset(&b);
        for (int i = 0; i < depth; i++)
            buf_addc(&b, '[');
        for (int i = 0; i < depth; i++)
            buf_addc(&b, ']');
        if (depth == 64)
            json_close(parse(buf_str(&b)));
        else
            refuses(buf_str(&b), "byte 64: nested deeper than 64");
    }
    buf_finish(&b);
}

static void many_keys(void)
{
    struct buf b = {0};
    buf_addc(&b, '{');
    for (int i = 0; i < 100000; i++)
        buf_addf(&b, "%s\"key%d\": %d", i ? "," : "", i * 7, i);
    buf_addc(&b, '}');
    struct json_doc *d = parse(buf_str(&b));
    T_EQ(json_root(d)->length, 100000);
    for (int i = 0; i < 100000; i += 9999)
        T_EQ(json_root(d)->child[i].integer, i);
    json_close(d);
    b.len--;
    buf_adds(&b, ",\"key7\":1}");
    refuses(buf_str(&b), "duplicate key \"key7\"");
    buf_finish(&b);
}

static void keys_may_contain_nul(void)
{
    struct json_doc *d = parse("{\"a\\u0000b\": 1, \"a\\u0000c\": 2, \"a\": 3}");
    T_EQ(json_root(d)->child[1].key_length, 3);
    T_EQ(json_get(json_root(d), "a")->integer, 3);
    json_close(d);
}

static void required_members(void)
{
    struct json_doc *d = parse("{\"n\": 3, \"s\": \"x\", \"z\": \"a\\u0000\"}");
    const struct json *o = json_root(d);
    struct err e;
    int64_t n = 0;
    const char *s = NULL;
    T_OK(json_need_int(o, "c.json", "n", &n, &e), &e);
    T_EQ(n, 3);
    T_OK(json_need_str(o, "c.json", "s", &s, &e), &e);
    T_STR(s, "x");
    T_ERR(json_need_int(o, "c.json", "s", &n, &e), &e, ERR_DATA,
          "c.json: \"s\" is not a whole number");
    T_ERR(json_need_str(o, "c.json", "q", &s, &e), &e, ERR_DATA,
          "c.json: no \"q\", which must be a string");
    T_ERR(json_need_str(o, "c.json", "z", &s, &e), &e, ERR_DATA, "contains a NUL");
    json_close(d);
}

static void files_are_read_and_limited(void)
{
    struct err e;
    struct json_doc *d = NULL;
    T_OK(file_replace(t_path("a.json"), "{\"a\": [1]}", 10, &e), &e);
    T_OK(json_open(t_path("a.json"), 10, &d, &e), &e);
    T_EQ(json_get(json_root(d), "a")->child[0].integer, 1);
    json_close(d);
    d = NULL;
    T_ERR(json_open(t_path("a.json"), 9, &d, &e), &e, ERR_DATA, "a.json");
    T_ERR(json_open(t_path("none.json"), 9, &d, &e), &e, ERR_IO, "none.json");
    T_CHECK(d == NULL);
    json_close(NULL);
}

static void written_strings_read_back(void)
{
    struct buf b = {0};
    char s[256];
    for (int i = 0; i < 128; i++)
        s[i] = (char)i;
    size_t n = 128;
    memcpy(s + n, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    n += 9;
    buf_addc(&b, '{');
    jsonw_key(&b, "k\"");
    jsonw_string(&b, s, n);
    buf_addc(&b, '}');
    struct json_doc *d = NULL;
    struct err e;
    T_OK(json_parse("b", b.data, b.len, &d, &e), &e);
    const struct json *v = json_get(json_root(d), "k\"");
    T_EQ(v->length, n);
    T_MEM(v->string, s, n);
    json_close(d);
    buf_reset(&b);
    jsonw_string(&b, "a\xff\xc3z\xe2\x82", 6);
    T_STR(buf_str(&b), "\"a\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd\"");
    buf_finish(&b);
}

static void one_document_takes_many_texts(void)
{
    struct json_doc *d = NULL;
    struct err e;
    static const char good[] = "{\"a\": \"b\\nc\", \"d\": [1, 2, [3]]}",
                      bad[] = "{\"a\": [1, {\"b\": 2}";
    for (int turn = 0; turn < 3; turn++) {
        T_OK(json_again("x", good, sizeof(good) - 1, &d, &e), &e);
        T_STR(json_get(json_root(d), "a")->string, "b\nc");
        T_EQ(json_get(json_root(d), "d")->child[2].child[0].integer, 3);
        T_ERR(json_again("x", bad, sizeof(bad) - 1, &d, &e), &e, ERR_DATA, "x: byte ");
        T_EQ(json_root(d)->kind, JSON_NULL);
        T_OK(json_again("x", "7", 1, &d, &e), &e);
        T_EQ(json_root(d)->integer, 7);
    }
    json_close(d);
}

static const char *real_text(struct buf *b, double v)
{
    buf_reset(b);
    jsonw_real(b, v);
    return buf_str(b);
}

static void written_reals_read_back(void)
{
    struct buf b = {0};
    T_STR(real_text(&b, 0.1), "0.1");
    T_STR(real_text(&b, 4), "4.0");
    T_STR(real_text(&b, -0.0), "-0.0");
    T_STR(real_text(&b, 1e300), "1e+300");
    T_STR(real_text(&b, 5e-324), "5e-324");
    T_STR(real_text(&b, 12301269178906916), "12301269178906916.0");
    T_STR(real_text(&b, 1e15), "1e+15");
    T_STR(real_text(&b, NAN), "null");
    T_STR(real_text(&b, -INFINITY), "null");
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t bits = (uint64_t)t_rand(7, 2 * i) << 32 | t_rand(7, 2 * i + 1);
        double v;
        memcpy(&v, &bits, sizeof(v));
        if (!isfinite(v))
            continue;
        real_text(&b, v);
        struct json_doc *d = parse(b.data);
        T_CHECK(json_root(d)->real == v);
        json_close(d);
    }
    buf_finish(&b);
}

T_MAIN(T_CASE(one_document_takes_many_texts), T_CASE(every_kind_arrives),
       T_CASE(numbers_by_their_size), T_CASE(bad_texts_name_the_byte), T_CASE(depth_has_a_limit),
       T_CASE(many_keys), T_CASE(keys_may_contain_nul), T_CASE(required_members),
       T_CASE(files_are_read_and_limited), T_CASE(written_strings_read_back),
       T_CASE(written_reals_read_back))
