/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/documents.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "tests/t.h"

static const char *write_file(const char *name, const char *text, size_t n)
{
    struct err e;
    const char *path = t_path(name);
    T_OK(file_replace(path, text, n, &e), &e);
    return path;
}

static const char *const text_key[] = {"text"}, *const two_keys[] = {"b", "a"};

/* All documents, each in brackets. */
static int read_all(struct docs *d, struct buf *b, struct err *e)
{
    bool more = true;
    int code = 0;
    while (!code) {
        const char *text;
        size_t n;
        code = docs_next(d, &text, &n, &more, e);
        if (code || !more)
            break;
        buf_addc(b, '[');
        buf_add(b, text, n);
        buf_addc(b, ']');
    }
    buf_str(b);
    return code;
}

static void gives(const char *name, const char *content, enum docs_format format, const char *want)
{
    struct err e;
    struct buf b = {0};
    const char *path = write_file(name, content, strlen(content));
    struct docs *d = docs_create(&path, 1, format, text_key, 1);
    T_OK(read_all(d, &b, &e), &e);
    T_STR(b.data, want);
    docs_destroy(d);
    buf_finish(&b);
}

static void refuses(const char *name, const char *content, enum docs_format format,
                    const char *words)
{
    struct err e;
    struct buf b = {0};
    const char *path = write_file(name, content, strlen(content));
    struct docs *d = docs_create(&path, 1, format, text_key, 1);
    T_ERR(read_all(d, &b, &e), &e, ERR_DATA, words);
    docs_destroy(d);
    buf_finish(&b);
}

static void lines_stay_as_they_are(void)
{
    gives("a.txt", "one\n\n two \r\nlast", DOCS_AUTO, "[one][][ two \r][last]");
    gives("a.txt",
          "\xef\xbb\xbf"
          "one\n",
          DOCS_AUTO,
          "[\xef\xbb\xbf"
          "one]");
    gives("a.txt", "", DOCS_AUTO, "");
    gives("a.txt", "\n", DOCS_TEXT, "[]");
    gives("a.jsonl", "{\"text\": \"x\"}\n", DOCS_TEXT, "[{\"text\": \"x\"}]");
    gives("a.txt", "a\t3\n", DOCS_TSV, "[a\t3]");
}

static void names_and_contents_tell_jsonl(void)
{
    gives("a.jsonl", "{\"text\": \"x\\ny\", \"n\": 1e999}\n{\"text\": \"z\"}", DOCS_AUTO,
          "[x\ny][z]");
    gives("a.ndjson", "{\"text\": \"x\"}\n", DOCS_AUTO, "[x]");
    gives("a.txt", "{\"text\": \"x\"}\n", DOCS_AUTO, "[x]");
    gives("a.txt", "{\"other\": \"x\"}\n", DOCS_TEXT, "[{\"other\": \"x\"}]");
    gives("a.txt", "{\"other\": \"x\"} {\n", DOCS_AUTO, "[{\"other\": \"x\"} {]");
    gives("a.txt", "{ }\n{}", DOCS_AUTO, "[{ }][{}]");
    gives("a.txt", "{ a brace\n", DOCS_AUTO, "[{ a brace]");
    gives("a.txt", "\xef\xbb\xbf{\"text\": \"x\"}\r\n\n \n", DOCS_AUTO, "[x]");
    gives("a.txt", "{\"text\": \"x\"}", DOCS_JSONL, "[x]");
}

static void bad_records_are_named(void)
{
    refuses("a.jsonl", "plain\n", DOCS_AUTO, "a.jsonl, line 1: byte 0");
    refuses("a.txt", "{\"other\": \"x\"}\n", DOCS_AUTO,
            "a.txt, line 1: the object has no key \"text\"");
    refuses("a.txt", "{\"{}\": {}}\n", DOCS_AUTO, "a.txt, line 1: the object has no key");
    refuses("a.jsonl", "{\"text\": \"x\"}\n{\"text\": 5}\n", DOCS_AUTO, "line 2: the value under");
    refuses("a.jsonl", "{\"text\": \"x\"}\n{\"tex\": 5}\n", DOCS_AUTO,
            "line 2: the object has no key");
    refuses("a.jsonl", "{\"text\": \"x\"}\n\n{\"text\": \"y\"}\n", DOCS_AUTO,
            "line 2: a blank line");
    refuses("a.jsonl", "{\"text\": \"x\xff\"}\n", DOCS_AUTO, "line 1: byte");
    refuses("a.txt", "[1]\n", DOCS_JSONL, "a.txt, line 1");
}

static void several_files_and_keys(void)
{
    struct err e;
    struct buf b = {0};
    const char *a = write_file("a.jsonl", "{\"a\": \"1\", \"b\": \"2\"}\n", 20);
    const char *path[] = {a, write_file("b.jsonl", "", 0), a};
    struct docs *d = docs_create(path, 3, DOCS_AUTO, two_keys, 2);
    T_OK(read_all(d, &b, &e), &e);
    T_STR(b.data, "[2][1][2][1]");
    T_EQ(docs_consumed(d), 40);
    T_EQ(docs_total(d), 0); /* an empty file looks like a stream */
    docs_destroy(d);
    path[1] = t_path("missing");
    d = docs_create(path, 3, DOCS_AUTO, two_keys, 2);
    T_ERR(read_all(d, &b, &e), &e, ERR_IO, "missing");
    docs_destroy(d);
    buf_finish(&b);
}

/* Lines longer than the buffer, at every remainder of its size. */
static void long_lines_are_whole(void)
{
    struct err e;
    struct buf content = {0};
    for (size_t i = 0; i < 40; i++) {
        char *p = buf_reserve(&content, 600000);
        size_t n = i % 5 ? i * 37 : 200000 + i * 9973;
        memset(p, 'a' + (int)(i % 26), n);
        content.len += n;
        buf_addc(&content, '\n');
    }
    const char *path = write_file("long.txt", content.data, content.len);
    struct docs *d = docs_create(&path, 1, DOCS_AUTO, text_key, 1);
    for (size_t i = 0; i < 40; i++) {
        const char *text;
        size_t n, want = i % 5 ? i * 37 : 200000 + i * 9973;
        bool more;
        T_OK(docs_next(d, &text, &n, &more, &e), &e);
        T_CHECK(more);
        T_EQ(n, want);
        for (size_t k = 0; k < n; k++)
            T_EQ(text[k], 'a' + (int)(i % 26));
        const char *name;
        uint64_t line;
        docs_place(d, &name, &line);
        T_EQ(line, i + 1);
        T_STR(name, path);
    }
    docs_destroy(d);
    buf_finish(&content);
}

/* As read_all, with parts concatenated; *ret_longs of the documents came in parts. */
static int read_in_parts(struct docs *d, struct buf *b, int *ret_longs, struct err *e)
{
    bool more = true, last;
    int code = 0;
    *ret_longs = 0;
    while (!code) {
        const char *text;
        size_t n;
        code = docs_next(d, &text, &n, &more, e);
        if (code || !more)
            break;
        buf_addc(b, '[');
        *ret_longs += !text;
        last = text != NULL;
        if (text)
            buf_add(b, text, n);
        uint64_t consumed = docs_consumed(d);
        size_t all = 0;
        while (!code && !last) {
            code = docs_part(d, &text, &n, &last, e);
            all += code ? 0 : n;
            if (!code)
                buf_add(b, text, n);
        }
        if (all > DOCS_LONG) /* the meter moves while the text is handed out */
            T_CHECK(docs_consumed(d) > consumed + all / 8);
        buf_addc(b, ']');
    }
    buf_str(b);
    return code;
}

static void add_long(struct buf *b, const char *word, size_t bytes)
{
    for (size_t end = b->len + bytes; b->len < end;)
        buf_adds(b, word);
}

/*
 * Whole or in parts, the same documents or the same refusal; the given numbers of `lines` as text
 * and of `values` as JSONL come in parts.
 */
static void agree(struct buf *content, const char *const *key, size_t nkeys, int lines, int values,
                  int code, const char *words)
{
    struct err e, f;
    struct buf whole = {0}, parts = {0};
    int seen;
    const char *path = write_file("long.jsonl", content->data, content->len);
    for (enum docs_format format = DOCS_TEXT; format <= DOCS_JSONL; format++) {
        struct docs *d = docs_create(&path, 1, format, key, nkeys);
        struct docs *p = docs_create(&path, 1, format, key, nkeys);
        docs_in_parts(p, path, DOCS_LONG);
        bool bad = code && format == DOCS_JSONL;
        T_EQ(read_all(d, &whole, &e), bad ? code : 0);
        T_EQ(read_in_parts(p, &parts, &seen, &f), bad ? code : 0);
        if (bad)
            T_CHECK(strstr(e.msg, words) && strstr(f.msg, words));
        else
            T_EQ(seen, format == DOCS_JSONL ? values : lines);
        T_EQ(whole.len, parts.len);
        T_MEM(whole.data, parts.data, whole.len);
        docs_destroy(d);
        docs_destroy(p);
        whole.len = parts.len = 0;
    }
    content->len = 0;
    buf_finish(&whole);
    buf_finish(&parts);
}

static void long_lines_may_come_in_parts(void)
{
    enum { MORE = DOCS_LONG + (1 << 20) };
    struct buf b = {0};
    buf_adds(&b, "{\"text\": \"first\"}\n{\"x\": [1, {}], \"text\": \"");
    add_long(&b, "two \\u3042\\n\xe3\x81\x82 ", MORE);
    buf_adds(&b, "\"}\r\n{\"text\": \"\"}\n{\"text\": \"no\", \"text\": \"");
    add_long(&b, "three", 3 * MORE);
    buf_adds(&b, "\", \"text\": \"short after all\"}\n{\"text\": \"last\"}");
    agree(&b, text_key, 1, 2, 2, 0, "");
    buf_adds(&b, "{\"a\": \"1\", \"b\": \"");
    add_long(&b, "x", MORE);
    buf_adds(&b, "\"}");
    agree(&b, two_keys, 2, 1, 2, 0, "");
    buf_adds(&b, "{\"text\": \"good\"}\n{\"text\": \"");
    add_long(&b, "bad ", MORE);
    buf_adds(&b, "\", }\n");
    agree(&b, text_key, 1, 1, 0, ERR_DATA, "long.jsonl, line 2");
    buf_adds(&b, "{\"other\": \"");
    add_long(&b, "x", MORE);
    buf_adds(&b, "\"}\n");
    agree(&b, text_key, 1, 1, 0, ERR_DATA, "line 1: the object has no key \"text\"");
    buf_adds(&b, "{\"text\": \"one\"}\n");
    add_long(&b, " ", MORE);
    buf_adds(&b, "\n  \n");
    agree(&b, text_key, 1, 1, 0, 0, "");
    buf_adds(&b, "{\"text\": \"one\"}\n \n{\"text\": \"");
    add_long(&b, "two", MORE);
    agree(&b, text_key, 1, 1, 0, ERR_DATA, "line 2: a blank line");
    buf_finish(&b);
}

T_MAIN(T_CASE(lines_stay_as_they_are), T_CASE(names_and_contents_tell_jsonl),
       T_CASE(bad_records_are_named), T_CASE(several_files_and_keys), T_CASE(long_lines_are_whole),
       T_CASE(long_lines_may_come_in_parts))
