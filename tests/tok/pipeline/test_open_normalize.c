/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/mem.h"
#include "tests/tok/charsmap.h"
#include "tests/tok/hf_make.h"
#include "tok/text/base64.h"

/*
 * Normalizers over a long line without split points: the ids are those of the whole text, in
 * whatever parts it comes, and most of them come before its end.
 */

enum { LONG = 600000 };

/* What texts are made of. */
static const char *const piece[] = {"a",
                                    "\u0301",
                                    "ab",
                                    "a\u0301",
                                    "\u6f22",
                                    " ",
                                    "\r\n",
                                    "1",
                                    "\u1100\u1161",
                                    "\U0001f1e9",
                                    "b",
                                    "\u200d",
                                    "\U0001f468\u200d",
                                    "\u0e33"};
enum { PIECES = sizeof(piece) / sizeof(*piece) };

/* Runs of one piece, or of any. */
static void put_text(struct buf *b, uint64_t seed)
{
    buf_reset(b);
    for (uint64_t i = 0; b->len < LONG; i++) {
        uint64_t kind = t_rand(seed, 3 * i) % 8, one = t_rand(seed, 3 * i + 1) % PIECES;
        uint64_t n = 1 + t_rand(seed, 3 * i + 2) % (kind ? 40 : 100000);
        for (uint64_t k = 0; k < n && b->len < LONG; k++)
            buf_adds(b, piece[kind % 2 ? t_rand(seed + i, k) % PIECES : one]);
    }
}

/* Of characters, those without a piece by bytes. */
static void open_with(const char *norm, struct tokenizer **t)
{
    struct buf b = {0};
    struct err e;
    buf_adds(&b,
             "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"vocab\":{"
             "\"<unk>\":256,\"a\":257,\"b\":258,\"aa\":259,\"ab\":260,\"x\":261,\"\\u0301\":262");
    for (int i = 0; i < 256; i++)
        buf_addf(&b, ",\"<0x%02X>\":%d", i, i);
    buf_adds(&b, "},\"merges\":[\"a a\",\"a b\"]}");
    const struct hf_make make = {.norm = norm, .model = buf_str(&b)};
    T_OK(hf_open(&make, TOK_SPECIALS_TEXT, t, &e), &e);
    buf_finish(&b);
}

/* Returns the number of ids that came before the last part. */
static size_t by_parts(const struct tokenizer *t, struct tok_work *w, const struct buf *text,
                       uint64_t seed, struct tok_ids *ids)
{
    struct err e;
    size_t early = 0;
    ids->n = 0;
    for (size_t at = 0, n; at < text->len; at += n) {
        n = 1 + t_rand(seed, at) % 100000;
        n = n < text->len - at ? n : text->len - at;
        early = ids->n;
        T_OK(tok_encode_part(t, w, text->data + at, n, at + n == text->len, ids, &e), &e);
    }
    return early;
}

/* Adds the ids, and those that came early. */
static void same_ids(const struct tokenizer *t, const struct buf *text, uint64_t seed,
                     size_t count[2])
{
    struct tok_ids want = {0}, got = {0};
    struct tok_work *w = tok_work_create(t);
    struct err e;
    T_OK(tok_encode(t, w, text->data, text->len, &want, &e), &e);
    count[0] += by_parts(t, w, text, seed, &got);
    count[1] += want.n;
    T_EQ(got.n, want.n);
    T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    tok_work_destroy(w);
}

static void same_with(const char *norm, uint64_t rounds)
{
    struct buf text = {0};
    struct tokenizer *t;
    size_t count[2] = {0};
    open_with(norm, &t);
    for (uint64_t seed = 0; seed < rounds; seed++) {
        put_text(&text, seed);
        same_ids(t, &text, seed, count);
    }
    T_CHECK(count[0] > count[1] / 4);
    tok_close(t);
    buf_finish(&text);
}

static void precompiled(void)
{
    static const char *const rule[][2] = {{"a\u0301", "\u00e1"}, {"\u6f22", "ab"},
                                          {"\r", " "},           {"b", ""},
                                          {"\u0301\u0301", "!"}, {"\u200d", "x"}};
    struct buf raw = {0}, norm = {0}, text = {0};
    struct tok_ids ids = {0};
    struct tokenizer *t;
    make_charsmap(&raw, rule, sizeof(rule) / sizeof(*rule));
    buf_adds(&norm, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    base64_put(&norm, raw.data, raw.len);
    buf_adds(&norm, "\"}");
    same_with(buf_str(&norm), 6);
    open_with(buf_str(&norm), &t); /* one cluster */
    buf_adds(&text, "a");
    while (text.len < 2 * LONG)
        buf_adds(&text, "\u0301");
    struct tok_work *w = tok_work_create(t);
    T_CHECK(by_parts(t, w, &text, 1, &ids) > LONG / 2);
    tok_work_destroy(w);
    tok_close(t);
    tok_ids_finish(&ids);
    buf_finish(&raw);
    buf_finish(&norm);
    buf_finish(&text);
}

/* With groups, alternatives and anchors, and matches of nothing. */
static void replace(void)
{
    static const char *const pattern[] = {"a*",      "(a|b)+",  "^",    "$",   "a|\\\\s",
                                          "(?:ab)?", "\\\\s*1", "(a)b", "b|$", "^a|b",
                                          "(?=a)",   "a??",     "x*|b"};
    if (!WEFT_PCRE2)
        t_skip("no PCRE2");
    for (size_t i = 0; i < sizeof(pattern) / sizeof(*pattern); i++) {
        struct buf norm = {0};
        buf_addf(&norm, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"%s\"},\"content\":\"%s\"}",
                 pattern[i], i % 3 ? "x" : "");
        same_with(buf_str(&norm), 1);
        buf_finish(&norm);
    }
}

T_MAIN(T_CASE(precompiled), T_CASE(replace))
