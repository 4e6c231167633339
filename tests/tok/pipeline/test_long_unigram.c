/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/tok/hf_make.h"

/*
 * A long pre-token of a Unigram model has the same ids as a stream and as a whole, in whatever
 * parts it comes, with a sink or without: below 1 MiB the whole is not a stream.
 */

enum { LONG = 1000000 };

#define VOCAB(options, list) "{\"type\":\"Unigram\",\"unk_id\":0," options "\"vocab\":[" list "]}"
#define LETTERS "[\"a\",-2],[\"aa\",-3.25],[\"aaa\",-5],[\"b\",-2.5],[\"ab\",-4],[\"abab\",-7]"

/* What the texts are made of; the last ones are unknown to most models. */
static const char *const what[] = {"a", "b",      "ab",         "<unk>", "\u00e9",
                                   "x", "\u6f22", "\U0001f600", "xyz",   "xyzx"};
enum { WHAT = sizeof(what) / sizeof(*what) };

/* With tokens of bytes, all but those below `from`. */
static const char *with_bytes(struct buf *b, int from)
{
    buf_reset(b);
    buf_adds(b, "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\","
                "0]," LETTERS);
    for (int i = from; i < 256; i++)
        buf_addf(b, ",[\"<0x%02X>\",-9]", i);
    buf_adds(b, "]}");
    return buf_str(b);
}

/* Runs of one thing, or of some. */
static void put_text(struct buf *b, uint64_t seed)
{
    buf_reset(b);
    for (uint64_t i = 0; b->len < LONG; i++) {
        uint64_t kind = t_rand(seed, 3 * i) % 8, one = t_rand(seed, 3 * i + 1) % WHAT;
        uint64_t n = 1 + t_rand(seed, 3 * i + 2) % (kind ? 50 : 60000);
        for (uint64_t k = 0; k < n && b->len < LONG; k++)
            buf_adds(b, what[kind % 2 ? t_rand(seed + i, k) % WHAT : one]);
    }
}

static int take(void *arg, struct tok_ids *ids, struct err *e)
{
    struct tok_ids *all = arg;
    (void)e;
    tok_ids_add(all, ids->id, ids->n);
    ids->n = 0;
    return 0;
}

static void put_parts(struct tok_work *w, const struct tokenizer *t, const struct buf *text,
                      uint64_t seed, struct tok_ids *got)
{
    struct tok_ids part = {0};
    const struct tok_sink sink = {t_path("beside"), take, got};
    struct err e;
    got->n = 0;
    tok_work_sink(w, seed % 2 ? &sink : NULL);
    for (size_t at = 0, n; at < text->len; at += n) {
        n = 1 + t_rand(seed, at) % 300000;
        n = n < text->len - at ? n : text->len - at;
        T_OK(tok_encode_part(t, w, text->data + at, n, at + n == text->len, &part, &e), &e);
        take(got, &part, &e);
    }
    tok_work_sink(w, NULL);
    tok_ids_finish(&part);
}

static void as_a_stream(const struct hf_make *m)
{
    struct tok_ids want = {0}, got = {0};
    struct buf text = {0};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(m, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t), *whole = tok_work_create(t);
    for (uint64_t seed = 0; seed < 4; seed++) {
        put_text(&text, seed);
        want.n = 0;
        T_OK(tok_encode(t, whole, text.data, text.len, &want, &e), &e);
        T_EQ(tok_work_steps(whole), 0);
        put_parts(w, t, &text, seed, &got);
        T_CHECK(tok_work_steps(w) > text.len / 2);
        T_EQ(got.n, want.n);
        T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    }
    tok_work_destroy(w);
    tok_work_destroy(whole);
    tok_close(t);
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    buf_finish(&text);
}

static void runs_of_unknown(void)
{
    static const struct hf_make made[] = {
        {.model = VOCAB("", "[\"<unk>\",0]," LETTERS)},
        {.model = VOCAB("", "[\"\\u6f22\",0]," LETTERS ",[\"x\\u6f22\",-1]")},
        /* unknown characters are more than what they spell, which becomes one token after all */
        {.model = VOCAB("", "[\"<unk>\",50],[\"xyz\",40],[\"a\",41],[\"aa\",44],[\"b\",40]")},
    };
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        as_a_stream(&made[i]);
}

static void unknown_as_bytes(void)
{
    struct buf b = {0};
    for (int from = 0; from <= 'x' + 1; from += 'x' + 1) {
        const struct hf_make m = {.model = with_bytes(&b, from)};
        as_a_stream(&m);
    }
    buf_finish(&b);
}

/* Above 1 MiB the whole is a stream, too; it is that of two halves, as nothing spans a "b". */
static void long_wholes(void)
{
    const struct hf_make m = {
        .model = VOCAB("", "[\"<unk>\",0],[\"a\",-2],[\"aa\",-3.25],[\"aaa\",-5],[\"b\",-3]")};
    struct tok_ids want = {0}, got = {0};
    struct buf text = {0};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    for (int i = 0; i < 2; i++) {
        size_t from = text.len;
        for (size_t k = 0; k < 999990 + (size_t)i; k++)
            buf_addc(&text, 'a');
        buf_addc(&text, 'b');
        T_OK(tok_encode(t, w, text.data + from, text.len - from, &want, &e), &e);
    }
    T_OK(tok_encode(t, w, text.data, text.len, &got, &e), &e);
    T_EQ(got.n, want.n);
    T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    tok_work_destroy(w);
    tok_close(t);
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    buf_finish(&text);
}

#define PRE(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"
#define FIRST "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\"}"

/* Steps that need the text whole: it takes some 10 bytes for each of its bytes, or 40. */
static void what_is_kept_is_limited(void)
{
    static const struct {
        struct hf_make make;
        const char *by;
        int mb;
        const char *text;
    } kept[] = {
        {{.pre = PRE("{\"type\":\"Digits\"}," FIRST), .model = VOCAB("", LETTERS)},
         "Metaspace",
         13,
         "a"},
        {{.norm = "{\"type\":\"NFC\"}", .model = VOCAB("", LETTERS)}, "NFC", 26, "\u0301"},
        {{.norm = "{\"type\":\"NFC\"}",
          .pre = PRE("{\"type\":\"WhitespaceSplit\"}," FIRST),
          .model = VOCAB("", LETTERS)},
         "Metaspace",
         6,
         "a"},
    };
    struct buf text = {0};
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        struct tokenizer *t;
        struct tok_ids ids = {0};
        struct err e;
        int code = 0, mb = 0;
        for (buf_reset(&text); text.len < LONG;)
            buf_adds(&text, kept[i].text);
        T_OK(hf_open(&kept[i].make, TOK_SPECIALS_TEXT, &t, &e), &e);
        struct tok_work *w = tok_work_create(t);
        for (; mb < kept[i].mb && !code; mb++)
            code = tok_encode_part(t, w, text.data, text.len, mb + 1 == kept[i].mb, &ids, &e);
        T_ERR(code, &e, ERR_DATA, kept[i].by);
        T_EQ(mb, kept[i].mb);
        tok_work_destroy(w);
        tok_ids_finish(&ids);
        tok_close(t);
    }
    buf_finish(&text);
}

T_MAIN(T_CASE(runs_of_unknown), T_CASE(unknown_as_bytes), T_CASE(long_wholes),
       T_CASE(what_is_kept_is_limited))
