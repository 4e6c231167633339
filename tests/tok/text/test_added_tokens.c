/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "tests/t.h"

/* The matches as "[id:text]"; `done` advances as callers advance it. */
static void found(const struct added_token *token, size_t n, const char *text, const char *want)
{
    struct added *a = NULL;
    struct added_at at = {0};
    struct buf b = {0};
    struct err e;
    uint64_t skipped = 0;
    size_t length = strlen(text);
    char *padded = calloc(length + 64, 1);
    memcpy(padded, text, length);
    T_OK(added_create("x.json", token, n, &a, &e), &e);
    while (added_next(a, padded, length, false, &at, &skipped)) {
        buf_addf(&b, "[%d:%.*s]", (int)at.token->id, (int)(at.end - at.start), text + at.start);
        at.done = at.end;
    }
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    added_destroy(a);
    free(padded);
}

static void white_space_belongs_to_the_first_that_takes_it(void)
{
    static const struct added_token both[] = {
        {.text = "\n", .length = 1, .id = 6, .lstrip = true, .rstrip = true}};
    found(both, 1, "x\n\nx", "[6:\n\n]");
    found(both, 1, "x \n \n x\nx", "[6: \n \n ][6:\n]");
    static const struct added_token left[] = {
        {.text = "A", .length = 1, .id = 1, .rstrip = true},
        {.text = " \nb", .length = 3, .id = 2, .lstrip = true},
        {.text = "\t", .length = 1, .id = 3}};
    found(left, 3, "A \nbx", "[1:A \n][2:b]");
    found(left, 3, "A\tx", "[1:A\t][3:\t]"); /* one that absorbs none is found anyway */
}

/* Tokens of a few letters, of all lengths, with common prefixes and suffixes. */
static size_t make_tokens(struct added_token *token, char (*text)[ADDED_MAX], uint64_t seed)
{
    size_t n = 1 + t_rand(seed, 0) % 12;
    for (size_t i = 0; i < n; i++) {
        size_t length = i ? 1 + t_rand(seed, 2 * i + 1) % (i % 3 ? 6 : 300) : 200 + seed % 3000;
        for (size_t k = 0; k < length; k++)
            text[i][k] = t_rand(seed * 100 + i, k) % (i ? 9 : 60) ? 'a' : 'b';
        token[i] = (struct added_token){.text = text[i], .length = length, .id = (int32_t)i};
        for (size_t k = 0; k < i; k++)
            if (token[k].length == length && !memcmp(text[k], text[i], length))
                token[i--].length = 0, n--, k = i, seed += 977;
    }
    return n;
}

/* The longest of those that begin at a position, one after the other. */
static int32_t slow(const struct added_token *token, size_t n, const char *text, size_t left)
{
    size_t best = 0;
    int32_t id = -1;
    for (size_t i = 0; i < n; i++)
        if (token[i].length > best && token[i].length <= left &&
            memcmp(token[i].text, text, token[i].length) == 0) {
            best = token[i].length;
            id = (int32_t)i;
        }
    return id;
}

static void long_tokens_like_their_texts(void)
{
    enum { TEXT = 60000 };
    char *text = calloc(TEXT + 64, 1), (*piece)[ADDED_MAX] = calloc(16, ADDED_MAX);
    uint64_t matches = 0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        struct added_token token[16];
        struct added_at at = {0};
        struct added *a = NULL;
        struct err e;
        size_t n = make_tokens(token, piece, seed), from = 0;
        for (size_t i = 0; i < TEXT; i++)
            text[i] = t_rand(seed, i) % (seed % 2 ? 40 : 4000) ? 'a'
                      : t_rand(seed, i) % 3                    ? 'b'
                                                               : 'c';
        T_OK(added_create("x.json", token, n, &a, &e), &e);
        uint64_t skipped = 0;
        while (added_next(a, text, TEXT, false, &at, &skipped)) {
            for (; from < at.start; from++)
                T_EQ(slow(token, n, text + from, TEXT - from), -1);
            T_EQ(slow(token, n, text + from, TEXT - from), at.token->id);
            T_EQ(at.end - at.start, token[at.token->id].length);
            at.done = from = at.end;
            matches++;
        }
        T_CHECK(!at.block);
        for (; from < TEXT; from++)
            T_EQ(slow(token, n, text + from, TEXT - from), -1);
        T_CHECK(at.walked < 10 * TEXT + 80000);
        for (size_t place = 1; place < TEXT; place += 1 + t_rand(seed, place) % 997) {
            bool spans = false;
            for (size_t i = 0; i < n && !spans; i++)
                for (size_t k = 1; k <= token[i].length && k <= place && !spans; k++)
                    spans = memcmp(text + place - k, piece[i], k) == 0;
            T_EQ(added_spans(a, text, place), spans);
        }
        added_destroy(a);
    }
    T_CHECK(matches > 10000);
    free(text);
    free(piece);
}

/* One that never matches, but nearly does everywhere; and white space that each of its tokens
 * absorbs. */
static void time_is_that_of_the_text(void)
{
    enum { TEXT = 1 << 20 };
    char *text = malloc(TEXT + 64), piece[ADDED_MAX];
    memset(text, 'a', TEXT + 64);
    memset(piece, 'a', sizeof(piece));
    piece[ADDED_MAX - 1] = 'b';
    const struct added_token token[] = {{.text = piece, .length = ADDED_MAX, .id = 0},
                                        {.text = "\n", .length = 1, .id = 1, .rstrip = true}};
    struct added_at at = {0};
    struct added *a;
    struct err e;
    uint64_t skipped;
    size_t matches = 0;
    T_OK(added_create("x.json", token, 2, &a, &e), &e);
    T_CHECK(!added_next(a, text, TEXT, false, &at, &skipped));
    T_CHECK(at.walked < 9 * TEXT);
    memset(text, '\n', TEXT);
    at = (struct added_at){0};
    for (; added_next(a, text, TEXT, false, &at, &skipped); at.done = at.end, matches++)
        T_EQ(at.end, TEXT);
    T_EQ(matches, TEXT);
    added_destroy(a);
    free(text);
}

static void too_many_bytes(void)
{
    enum { N = ADDED_BYTES / ADDED_MAX + 1 };
    struct added_token *token = calloc(N, sizeof(*token));
    char *text = malloc((size_t)N * ADDED_MAX);
    struct added *a;
    struct err e;
    memset(text, 'a', (size_t)N * ADDED_MAX);
    for (size_t i = 0; i < N; i++) {
        memcpy(text + i * ADDED_MAX, &i, sizeof(i));
        token[i] = (struct added_token){.text = text + i * ADDED_MAX, .length = ADDED_MAX};
    }
    T_EQ(added_create("x.json", token, N, &a, &e), ERR_DATA);
    T_STR(e.msg, "x.json: added tokens of 16781312 bytes, more than 16777216");
    T_OK(added_create("x.json", token, N - 1, &a, &e), &e);
    added_destroy(a);
    free(token);
    free(text);
}

struct taken {
    struct buf said; /* each match as "[id]", and the text between them */
    bool ended;
};

static int take(void *arg, const char *text, size_t n, bool ends, const struct added_token *token,
                struct err *e)
{
    struct taken *t = arg;
    (void)e;
    T_CHECK(!token || ends);
    buf_add(&t->said, text, n);
    if (token)
        buf_addf(&t->said, "[%d]", (int)token->id);
    t->ended = ends && !token;
    return 0;
}

/* As a whole text is searched. */
static void say_whole(const struct added *a, const char *text, size_t n, bool skip, struct buf *b,
                      uint64_t *skipped)
{
    struct added_at at = {0};
    size_t done = 0;
    buf_reset(b);
    for (; added_next(a, text, n, skip, &at, skipped); done = at.done = at.end) {
        if (at.start > done)
            buf_add(b, text + done, at.start - done);
        buf_addf(b, "[%d]", (int)at.token->id);
    }
    buf_add(b, text + done, n - done);
}

/* In parts of whole characters, the tokens and the text between them are those of the whole. */
static void parts_are_like_the_whole(void)
{
    static const char *const string[] = {"<m>", "  ",  "ab",     "abc", "\n",       "b",
                                         "<m",  "m> ", "\u3000", "a b", "\xc3\xa9", "<m><m>"};
    static const char *const part[] = {"<m>", " ",      "  ",       "ab",   "c",
                                       "a",   "\n",     "<",        "m>",   "\u3000",
                                       "x",   "\u6f22", "\xc3\xa9", " \n ", "b"};
    enum { STRINGS = sizeof(string) / sizeof(*string), PARTS = sizeof(part) / sizeof(*part) };
    struct buf text = {0}, want = {0};
    struct taken got = {0};
    struct err e;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct added_token token[4];
        struct added *a;
        uint64_t skipped = 0, same = 0;
        size_t n = 1 + seed % 4, length, most = 1 + t_rand(seed, 99) % 9;
        for (size_t i = 0; i < n; i++) {
            const char *s = string[(t_rand(seed, 0) + i * 5) % STRINGS];
            uint64_t bits = t_rand(seed, 1 + i);
            token[i] = (struct added_token){s,        strlen(s), (int32_t)i, bits % 5 == 0,
                                            bits & 8, bits & 16, bits & 32};
        }
        T_OK(added_create("x.json", token, n, &a, &e), &e);
        struct added_open *o = added_open_create(a, seed & 1, SIZE_MAX);
        for (int again = 0; again < 3; again++) {
            buf_reset(&text);
            for (uint64_t i = 0; i < seed % 60; i++)
                buf_adds(&text, part[t_rand(seed * 3 + (uint64_t)again, 100 + i) % PARTS]);
            length = text.len;
            memset(buf_reserve(&text, 64), 0, 64);
            skipped = 0;
            say_whole(a, text.data, length, seed & 1, &want, &skipped);
            buf_reset(&got.said);
            for (size_t at = 0, k, i = 0;; at += k) {
                k = t_rand(seed, 1000 + i++) % (most + 1);
                k = k < length - at ? k : length - at;
                while (at + k < length && ((unsigned char)text.data[at + k] & 0xc0) == 0x80)
                    k++;
                bool last = at + k == length && (again || i % 3);
                T_OK(added_open_put(o, text.data + at, k, last, take, &got, &e), &e);
                if (last)
                    break;
            }
            T_CHECK(got.ended);
            T_STR(buf_str(&got.said), buf_str(&want));
            added_open_take_work(o, &same);
            T_EQ(same, skipped);
        }
        added_open_destroy(o);
        added_destroy(a);
    }
    buf_finish(&text);
    buf_finish(&want);
    buf_finish(&got.said);
}

/* What is kept of a text in parts is the beginning of a token, and of white space a few bytes; the
 * work is that of the text. */
static int count(void *arg, const char *text, size_t n, bool ends, const struct added_token *token,
                 struct err *e)
{
    (void)text, (void)ends, (void)token, (void)e;
    *(size_t *)arg += n;
    return 0;
}

/* After a token that looks around nothing may be split, of whatever length it is. */
static void no_split_after_a_token(void)
{
    static const struct added_token token[] = {{.text = "<r>", .length = 3, .rstrip = true},
                                               {.text = "<>", .length = 2, .rstrip = true}};
    struct added *a;
    struct err e;
    const char *text = "xx<r> y<> zz";
    T_OK(added_create("x.json", token, 2, &a, &e), &e);
    for (size_t at = 1; at < strlen(text); at++)
        T_EQ(added_parts(a, text, at, strlen(text)), at == 1 || at + 1 == strlen(text));
    added_destroy(a);
}

static void parts_go_out_early(void)
{
    enum { PART = 1 << 16, ROUNDS = 40 };
    char *text = malloc(PART), piece[ADDED_MAX];
    memset(piece, 'a', sizeof(piece));
    const struct added_token token[] = {{.text = piece, .length = ADDED_MAX, .id = 0},
                                        {.text = "  ", .length = 2, .id = 1},
                                        {.text = "<m>", .length = 3, .id = 2, .lstrip = true}};
    for (size_t n = 1; n <= 3; n++) {
        struct added *a;
        struct err e;
        size_t got = 0;
        uint64_t skipped;
        T_OK(added_create("x.json", token + n - 1, 4 - n, &a, &e), &e);
        struct added_open *o = added_open_create(a, false, 12 << 20);
        memset(text, n == 1 ? 'a' : ' ', PART);
        for (int i = 0; i < ROUNDS; i++)
            T_OK(added_open_put(o, text, PART, false, count, &got, &e), &e);
        T_CHECK(added_open_take_work(o, &skipped) < (uint64_t)ROUNDS * PART * 8);
        T_EQ(got, 0); /* tokens, or white space that is withheld */
        T_OK(added_open_put(o, "<m>x", 4, true, count, &got, &e), &e);
        T_EQ(got, 1);
        added_open_destroy(o);
        added_destroy(a);
    }
    free(text);
}

T_MAIN(T_CASE(white_space_belongs_to_the_first_that_takes_it), T_CASE(long_tokens_like_their_texts),
       T_CASE(time_is_that_of_the_text), T_CASE(too_many_bytes), T_CASE(parts_are_like_the_whole),
       T_CASE(no_split_after_a_token), T_CASE(parts_go_out_early))
