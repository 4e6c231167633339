/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/thread/pool.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/make.h"
#include "tok/tokenizer/tokenizer_work.h"

/* One text by several threads: same ids, counts and failures as by one. */

enum { MOST = 5 };

static const char *const segment[] = {
    "word",         " a",           "ab ",          "  ",   "\n",       "it's", "12345",
    "\xc3\xa9",     "\xe2\x80\x94", "<s>",          "<u",   "s>",       "</s>", "[TOK] ",
    "\xe6\xbc\xa2", "e\xcc\x81",    "\xe2\x96\x81", "\xff", "\xe2\x96", "x y"};
enum { SEGMENTS = sizeof(segment) / sizeof(*segment) };

/* Some of the segments only; now and then a run of one that is longer than any part. */
static void make_long(struct buf *b, uint64_t stream, size_t n)
{
    uint32_t first = t_rand(stream, 0) % SEGMENTS, few = 1 + t_rand(stream, 1) % SEGMENTS;
    buf_reset(b);
    for (uint64_t i = 2; b->len < n; i++) {
        uint32_t r = t_rand(stream, i);
        size_t times = r % 5000 == 0 ? 30000 : 1;
        for (; times; times--)
            buf_adds(b, segment[(first + (r >> 16) % few) % SEGMENTS]);
    }
}

struct threads {
    const struct tokenizer *t;
    struct pool *pool;
    struct tok_work *one, *work[MOST];
};

static void start(struct threads *s, const struct tokenizer *t, int threads)
{
    *s = (struct threads){.t = t, .pool = pool_create(threads), .one = tok_work_create(t)};
    for (int i = 0; i < pool_threads(s->pool); i++)
        s->work[i] = tok_work_create(t);
}

static void finish(struct threads *s)
{
    tok_work_destroy(s->one);
    for (int i = 0; i < pool_threads(s->pool); i++)
        tok_work_destroy(s->work[i]);
    pool_destroy(s->pool);
}

/* Whole, or, with `longest`, in parts of up to that many bytes. */
static int by_all(struct threads *s, const struct buf *text, size_t longest, struct tok_ids *ids,
                  struct err *e)
{
    int code = 0;
    if (!longest)
        return tok_encode_part_parallel(s->t, s->pool, s->work, text->data, text->len, true, ids,
                                        e);
    for (size_t at = 0, i = 0; (at < text->len || !i) && !code; i++) {
        size_t k = 1 + t_rand(longest, i) % longest, left = text->len - at;
        k = k < left ? k : left;
        code =
            tok_encode_part_parallel(s->t, s->pool, s->work, text->data + at, k, k == left, ids, e);
        at += k;
    }
    return code;
}

static uint64_t counts(const struct threads *s, bool all)
{
    uint64_t n = 0;
    for (int i = 0; i < (all ? pool_threads(s->pool) : 1); i++) {
        const struct tok_work *w = all ? s->work[i] : s->one;
        n += tok_work_specials(w) + 1000003 * tok_work_matched(w) + tok_work_invalid(w) * 999983;
    }
    return n;
}

static void same(struct threads *s, const struct buf *text, size_t longest)
{
    struct tok_ids want = {0}, ids = {0};
    struct err e;
    int refused = tok_encode(s->t, s->one, text->data, text->len, &want, &e);
    *tok_ids_reserve(&ids, 1) = -7;
    ids.n = 1;
    T_EQ(by_all(s, text, longest, &ids, &e), refused);
    if (!refused) {
        T_EQ(ids.n, want.n + 1);
        T_MEM(ids.id + 1, want.id, want.n * sizeof(*want.id));
        T_EQ(counts(s, true), counts(s, false));
    }
    T_EQ(ids.id[0], -7);
    tok_ids_finish(&want);
    tok_ids_finish(&ids);
}

static void texts(const struct tokenizer *t, uint64_t stream, int n)
{
    struct buf text = {0};
    for (int threads = 2; threads <= MOST; threads += 3) {
        struct threads s;
        start(&s, t, threads);
        for (int i = 0; i < n; i++) {
            make_long(&text, stream * 1000 + (uint64_t)i, 40000 + (size_t)i * 30000);
            same(&s, &text, 0);
            if (i % 3 == 0)
                same(&s, &text, 100000);
        }
        finish(&s);
    }
    buf_finish(&text);
}

static void byte_level(void)
{
    static const char *const norm[] = {NULL, "{\"type\":\"NFC\"}"};
    for (int mode = 0; mode < 4; mode++) {
        struct tokenizer *t;
        struct err e;
        struct hf_make m = {
            .pre = HF_LEVEL("false"),
            .norm = norm[mode & 1],
            .added = HF_TOKEN("<s>", "") "," HF_TOKEN("</s>", "") "," HF_TOKEN("[TOK] ", "")};
        T_OK(hf_open(&m, mode & 2 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT, &t, &e), &e);
        texts(t, 1 + (uint64_t)mode, 12);
        tok_close(t);
    }
}

#define METASPACE                                                                                  \
    "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\","                                          \
    "\"prepend_scheme\":\"always\",\"split\":true}"

/* White space and words next to a token, at the ends of parts and elsewhere; the text is in fact
 * cut into parts, which threads then share as they come. */
static void tokens_that_look_round_themselves(void)
{
#define LOOKS(text, word, left, right, normal, special)                                            \
    "{\"id\":0,\"content\":\"" text "\",\"single_word\":" word ",\"lstrip\":" left                 \
    ",\"rstrip\":" right ",\"normalized\":" normal ",\"special\":" special "}"
    static const char *const added[] = {
        LOOKS("<s>", "false", "true", "true", "false", "true") "," LOOKS(
            "word", "true", "false", "false", "false", "false") "," LOOKS("</s>", "false", "false",
                                                                          "true", "false", "true"),
        LOOKS("<s>", "false", "true", "false", "false",
              "true") "," LOOKS("it's", "false", "true", "true", "false",
                                "false") "," LOOKS("12", "true", "true", "false", "false", "false"),
        LOOKS("<s>", "false", "false", "true", "true",
              "true") "," LOOKS("ab ", "false", "true", "true", "true",
                                "false") "," LOOKS("x", "true", "false", "true", "true", "false")};
    static const char *const pre[] = {HF_LEVEL("false"), HF_LEVEL("true"), METASPACE,
                                      "{\"type\":\"WhitespaceSplit\"}"};
    static const char model[] = HF_BPE("\"unk_token\":\"<unk>\",");
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < 3; i++) {
            struct tokenizer *t;
            struct threads s;
            struct err e;
            struct buf text = {0};
            struct hf_make m = {.pre = pre[k], .added = added[i], .model = model};
            T_OK(hf_open(&m, i == 1 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT, &t, &e), &e);
            texts(t, 300 + k * 10 + i, 4);
            start(&s, t, 4);
            for (uint64_t n = 0; text.len < 400000; n++)
                buf_adds(&text, (const char *const[]){" ab", " <s>", "word", "\n", " x", "<s>",
                                                      "  ", " abc"}[t_rand(k, n) % 8]);
            same(&s, &text, 0);
            bool parts = s.work[0]->part && s.work[0]->part[0].end < text.len;
            T_CHECK(parts || i == 1 || k == 1);
            finish(&s);
            tok_close(t);
            buf_finish(&text);
        }
}

static void open_model(struct tokenizer **t, const struct buf *b, enum tok_type type,
                       enum tok_specials mode)
{
    struct err e;
    const char *path = t_path("made.model");
    struct tok_options o = {.type = type, .path = path, .specials = mode};
    T_OK(file_replace(path, b->data, b->len, &e), &e);
    T_OK(tok_open(&o, t, &e), &e);
}

static void sentencepiece(void)
{
    for (uint64_t n = 0; n < 24; n++) {
        struct tokenizer *t;
        struct buf b = {0};
        make_random(&b, n * 173 & 4095,
                    n % 6 == 5   ? SP_UNIGRAM
                    : n % 5 == 4 ? SP_WORD
                    : n % 5 == 3 ? SP_CHAR
                                 : SP_BPE);
        open_model(&t, &b, TOK_AUTO, n % 2 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT);
        texts(t, 100 + n, 3);
        tok_close(t);
        buf_finish(&b);
    }
}

/* Unigram: the ids after a split point depend on the sum of all scores before it. */
static void sums(void)
{
    for (uint64_t n = 0; n < 10; n++) {
        struct tokenizer *t;
        struct threads s;
        struct buf b = {0}, text = {0};
        make_random(&b, n * 131 & 2047, SP_UNIGRAM);
        open_model(&t, &b, n % 3 ? TOK_AUTO : TOK_JAPANESE_SP,
                   n % 4 == 3 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT);
        start(&s, t, 2 + (int)n % 3);
        for (uint64_t i = 0; text.len < 700000; i++)
            buf_adds(&text, make_part[(n * 5 + t_rand(n, i) % (4 + n)) % MAKE_PARTS]);
        same(&s, &text, 0);
        same(&s, &text, 300000);
        text.len = 90000; /* another text, with a warm cache */
        same(&s, &text, 0);
        finish(&s);
        tok_close(t);
        buf_finish(&b);
        buf_finish(&text);
    }
}

/* JapaneseSentencePiece: the result of the plain wrapper for the text with LF in place of CR LF. */
static void carriage_returns(void)
{
    static const char *const part[] = {"\r", "\r\n", "\n", "ab", " c", "<s>", "\r\r\n", "x"};
    for (uint64_t n = 0; n < 12; n++) {
        struct tokenizer *t, *plain;
        struct buf b = {0}, text = {0}, want = {0};
        struct threads s, first, p;
        struct tok_ids a = {0}, c = {0};
        struct err e;
        make_random(&b, n * 173 & 4095, n % 2 ? SP_BPE : SP_UNIGRAM);
        enum tok_specials mode = n % 4 > 1 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT;
        open_model(&t, &b, TOK_JAPANESE_SP, mode);
        open_model(&plain, &b, TOK_GPT_SENTENCEPIECE, mode);
        start(&s, t, 3);
        start(&first, t, 1);
        start(&p, plain, 1);
        for (uint64_t i = 0; text.len < 70000; i++)
            buf_adds(&text, part[t_rand(n, i) % 8]);
        for (size_t i = 0; i < text.len; i++)
            if (text.data[i] != '\r' || i + 1 == text.len || text.data[i + 1] != '\n')
                buf_addc(&want, text.data[i]);
        T_OK(tok_encode(t, first.one, text.data, text.len, &a, &e), &e);
        T_OK(tok_encode(plain, p.one, want.data, want.len, &c, &e), &e);
        T_EQ(a.n, c.n);
        T_MEM(a.id, c.id, a.n * sizeof(*a.id));
        same(&s, &text, 0);
        same(&s, &text, 3);
        finish(&s);
        finish(&first);
        finish(&p);
        tok_close(t);
        tok_close(plain);
        buf_finish(&b);
        buf_finish(&text);
        buf_finish(&want);
        tok_ids_finish(&a);
        tok_ids_finish(&c);
    }
}

struct decoding {
    struct threads *s;
    struct tok_ids ids;
    struct buf text[MOST];
    struct err err[MOST];
};

static void decode_one(void *arg, int task, int thread)
{
    struct decoding *d = arg;
    (void)task;
    tok_decode(d->s->t, d->s->work[thread], d->ids.id, d->ids.n, &d->text[thread], &d->err[thread]);
}

/* What decoding needs is created for the first text: here by all threads at once. */
static void first_texts_are_decoded_at_once(void)
{
    for (int kind = 0; kind < 2; kind++) {
        struct tokenizer *t;
        struct threads s;
        struct decoding d = {.s = &s};
        struct err e;
        struct buf b = {0};
        if (kind == 0) {
            struct hf_make m = {.pre = HF_LEVEL("false"), .dec = HF_LEVEL("false")};
            T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
        } else {
            make_random(&b, 1, SP_BPE);
            open_model(&t, &b, TOK_AUTO, TOK_SPECIALS_TEXT);
        }
        start(&s, t, 4);
        T_OK(tok_encode(t, s.one, "ab ab", 5, &d.ids, &e), &e);
        pool_run(s.pool, 4, decode_one, &d);
        struct buf want = {0};
        T_OK(tok_decode(t, s.one, d.ids.id, d.ids.n, &want, &e), &e);
        T_CHECK(want.len >= 5);
        for (int i = 0; i < 4; i++) {
            T_STR(buf_str(&d.text[i]), buf_str(&want));
            buf_finish(&d.text[i]);
        }
        finish(&s);
        tok_close(t);
        tok_ids_finish(&d.ids);
        buf_finish(&want);
        buf_finish(&b);
    }
}

static void real(const char *name)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.path = t_data(name), .specials = TOK_SPECIALS_PARSE};
    T_OK(tok_open(&o, &t, &e), &e);
    texts(t, 50, 6);
    tok_close(t);
}

static void real_gpt2(void)
{
    real("tokenizers/gpt2/tokenizer.json");
}

static void real_mistral(void)
{
    real("tokenizers/mistral-7b/tokenizer.model");
}

static void failures_are_those_of_one_thread(void)
{
    struct tokenizer *t;
    struct threads s;
    struct buf text = {0};
    struct tok_ids ids = {0};
    struct err e;
    struct hf_make m = {.pre = HF_LEVEL("false"), .added = HF_TOKEN("<s>", "")};
    T_OK(hf_open(&m, TOK_SPECIALS_ERROR, &t, &e), &e);
    start(&s, t, 4);
    while (text.len < 400000)
        buf_adds(&text, "ab abc b");
    T_OK(by_all(&s, &text, 0, &ids, &e), &e);
    size_t n = ids.n;
    memcpy(text.data + 200000, "<s>", 3);
    memcpy(text.data + 390000, "<s>", 3);
    T_ERR(by_all(&s, &text, 0, &ids, &e), &e, ERR_DATA, "in the part of the text from byte 1");
    T_EQ(ids.n, n);
    T_ERR(by_all(&s, &text, 70000, &ids, &e), &e, ERR_DATA, "special token");
    finish(&s);
    tok_close(t);

    struct tok_options o = {.path = t_path("tokenizer.json"), .strict = true};
    T_OK(tok_open(&o, &t, &e), &e);
    start(&s, t, 4);
    T_OK(by_all(&s, &text, 0, &ids, &e), &e);
    text.data[333333] = text.data[222222] = (char)0xff;
    T_ERR(by_all(&s, &text, 0, &ids, &e), &e, ERR_DATA, "byte 222222 of the text");
    T_ERR(by_all(&s, &text, 90000, &ids, &e), &e, ERR_DATA, "byte 222222 of the text");
    finish(&s);
    tok_close(t);
    buf_finish(&text);
    tok_ids_finish(&ids);
}

/* Every pre-token is removed: no thread has anything to copy. */
static void no_ids(void)
{
    struct tokenizer *t;
    struct threads s;
    struct buf text = {0};
    struct tok_ids ids = {0};
    struct err e;
    struct hf_make m = {.pre = "{\"type\":\"Split\",\"pattern\":{\"String\":\"\xe6\xbc\xa2\"},"
                               "\"behavior\":\"Removed\",\"invert\":true}"};
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    start(&s, t, 4);
    while (text.len < 400000)
        buf_adds(&text, "ab abc b\n");
    T_OK(by_all(&s, &text, 0, &ids, &e), &e);
    T_EQ(ids.n, 0);
    finish(&s);
    tok_close(t);
    buf_finish(&text);
    tok_ids_finish(&ids);
}

T_MAIN(T_CASE(byte_level), T_CASE(tokens_that_look_round_themselves), T_CASE(sentencepiece),
       T_CASE(sums), T_CASE(carriage_returns), T_CASE(first_texts_are_decoded_at_once),
       T_CASE(real_gpt2), T_CASE(real_mistral), T_CASE(failures_are_those_of_one_thread),
       T_CASE(no_ids))
