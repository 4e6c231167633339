/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tests/tok/charsmap.h"
#include "tests/tok/hf_make.h"
#include "tok/text/base64.h"

/*
 * Raw text split into segments has the ids of the whole: each tokenizer has a twin whose normalizer
 * has one more pattern, which matches nothing here and of which it is unknown how far it looks, so
 * that the twin takes the slow path.
 */

#define WORDS                                                                                      \
    "\"a\":0,\"b\":1,\"ab\":2,\"##b\":3,\"##ab\":4,\"<unk>\":5,\"\\u2581\":6,\"\\u2581a\":7,"      \
    "\"\\u6f22\":8,\"!\":9,\"9\":10,\"\\u2581ab\":11,\"\\u304b\":12,\"''\":13,\"bb\":14,"          \
    "\"e\":15,\"\\u00e9\":16,\"\\\"\":17,\".\":18,\"\\u2581\\u2581\":19,"                          \
    "\"b\\u00e9\":20,\"a!\":21,\">\":22,\"\\u0301\":23,\"E\":24,\"a\\u0308\":25,"                  \
    "\"\\u226e\":26,\"<\":27,\"a\\u226e\":28,\"\\u0308\":29"
#define BPE(options)                                                                               \
    "{\"type\":\"BPE\"," options "\"vocab\":{" WORDS "},\"merges\":[\"a b\",\"\\u2581 a\","        \
    "\"\\u2581 ab\",\"b b\",\"\\u2581 \\u2581\",\"b \\u00e9\",\"a !\",\"a \\u0308\","              \
    "\"a \\u226e\"]}"
#define PIECES(most)                                                                               \
    "{\"type\":\"WordPiece\",\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":\"##\","        \
    "\"max_input_chars_per_word\":" most ",\"vocab\":{" WORDS "}}"
#define PIECE PIECES("9")
#define WORD "{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{" WORDS "}}"
#define UNIGRAM                                                                                    \
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\",-3],"     \
    "[\"b\",-3.1],[\"ab\",-4],[\"\\u2581a\",-4.5],[\"bb\",-6],[\"\\u6f22\",-5],[\"\\u304b\",-5.5]" \
    ","                                                                                            \
    "[\"e\",-3],[\"\\u00e9\",-3.2],[\"aa\",-6],[\"!!\",-7],[\"!\",-3.5],[\"\\u6f22\\u304b\",-9],"  \
    "[\"b\\u00e9\",-4],[\"E\",-3],[\"\\u0301\",-3],[\">\",-3],[\"a!\",-4],[\"\\u00c9\",-4]]}"
#define META(scheme, split)                                                                        \
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"" scheme             \
    "\",\"split\":" split "}"
#define RUNS(regex, to)                                                                            \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"" regex "\"},\"content\":\"" to "\"}"
#define BLANKS RUNS(" {2,}", " ")
#define LITERAL(from, to)                                                                          \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"
#define BERT                                                                                       \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"              \
    "\"strip_accents\":true,\"lowercase\":true}"
#define TOKEN(text, flags)                                                                         \
    "{\"content\":\"" text "\",\"special\":false,\"normalized\":true" flags "}"

static const struct hf_make made[] = {
    {.norm = BERT, .pre = "{\"type\":\"BertPreTokenizer\"}", .model = PIECES("300")},
    {.norm = "{\"type\":\"NFC\"}", .pre = "{\"type\":\"WhitespaceSplit\"}", .model = PIECES("900")},
    {.norm = BERT, .pre = "{\"type\":\"BertPreTokenizer\"}", .model = PIECE},
    {.norm = BERT,
     .pre = "{\"type\":\"BertPreTokenizer\"}",
     .model = PIECE,
     .added =
         TOKEN("[A]", ",\"lstrip\":true,\"rstrip\":true") "," TOKEN("ab", ",\"single_word\":true")},
    {.norm = "{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"}," LITERAL(" ", "\\u2581"),
     .model = BPE("\"unk_token\":\"<unk>\",\"fuse_unk\":true,")},
    {.norm = "{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"}," LITERAL(" ", "\\u2581"),
     .model = BPE("\"unk_token\":\"<unk>\","),
     .added = TOKEN("[A]", "")},
    {.norm = LITERAL(" ", "\\u2581"),
     .pre = "{\"type\":\"Split\",\"pattern\":{\"String\":\" "
            "\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}",
     .model = BPE("")},
    {.norm = BLANKS, .pre = META("first", "false"), .model = BPE("\"unk_token\":\"<unk>\",")},
    {.norm = LITERAL("''", "\\\"") "," BLANKS,
     .pre = META("always", "false"),
     .model = BPE(""),
     .added = TOKEN("[A]", "")},
    {.norm = "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true},{\"type\":\"NFKC\"}"
             "," BLANKS,
     .pre = META("always", "true"),
     .model = UNIGRAM},
    {.norm = "{\"type\":\"NFC\"}",
     .pre = META("first", "true"),
     .model = UNIGRAM,
     .added = TOKEN("[A]", ",\"lstrip\":true")},
    {.norm = "{\"type\":\"NFD\"},{\"type\":\"StripAccents\"}",
     .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," META(
         "always", "true") "]}",
     .model = UNIGRAM},
    {.norm = "{\"type\":\"Lowercase\"}",
     .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},{\"type\":"
            "\"Digits\",\"individual_digits\":true}]}",
     .model = WORD},
    {.norm = "{\"type\":\"NFKC\"}", .pre = META("always", "true"), .model = UNIGRAM},
    {.norm = "{\"type\":\"NFC\"}",
     .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[" META(
         "always", "true") ",{\"type\":\"WhitespaceSplit\"}]}",
     .model = BPE("\"unk_token\":\"<unk>\","),
     .added = TOKEN("[A]", "")},
    {.norm = "{\"type\":\"Nmt\"},{\"type\":\"NFKC\"}",
     .pre = META("always", "true"),
     .model = UNIGRAM},
    {.norm = "{\"type\":\"NFC\"}", .pre = "{\"type\":\"BertPreTokenizer\"}", .model = PIECE},
    {.norm = "{\"type\":\"NFC\"}", .pre = "{\"type\":\"BertPreTokenizer\"}", .model = WORD},
    {.norm = BERT, .pre = "{\"type\":\"WhitespaceSplit\"}", .model = PIECE},
    {.norm = BERT,
     .pre = "{\"type\":\"BertPreTokenizer\"}",
     .model = PIECE,
     .added = TOKEN(" ab", "")},
    {.norm = "{\"type\":\"NFC\"}",
     .pre = "{\"type\":\"WhitespaceSplit\"}",
     .model = BPE(""),
     .added = TOKEN("\\u6f22a", "") "," TOKEN("b!", ",\"rstrip\":true")},
    {.norm = "{\"type\":\"Nmt\"},{\"type\":\"NFC\"}",
     .pre = META("always", "false"),
     .model = BPE("\"unk_token\":\"<unk>\",\"fuse_unk\":true,")},
    {.norm = "{\"type\":\"NFD\"}",
     .pre = META("always", "false"),
     .model = BPE("\"unk_token\":\"<unk>\",")},
    {.norm = "{\"type\":\"NFKD\"}", .pre = META("never", "true"), .model = UNIGRAM},
    {.norm = "{\"type\":\"NFC\"}",
     .pre = META("first", "false"),
     .model = BPE("\"unk_token\":\"<unk>\","),
     .added = TOKEN("b\\u00e9", "") "," TOKEN("[A]", "")},
    {.norm = RUNS(" {2,}", "!"),
     .pre = META("always", "false"),
     .model = BPE("\"unk_token\":\"<unk>\",")},
    {.norm = RUNS("\\\\s{2,}", " "), .pre = META("always", "true"), .model = UNIGRAM},
    {.norm = RUNS("\\\\s{2,}", "!"),
     .pre = META("never", "false"),
     .model = BPE("\"unk_token\":\"<unk>\",")},
    {.norm = BERT "," RUNS("[ ]{2,}", "\\u2581"), .pre = META("first", "true"), .model = UNIGRAM},
    {.norm = "{\"type\":\"NFKC\"}," RUNS("[ ]{2,}", "\\u2581"),
     .pre = META("always", "false"),
     .model = UNIGRAM},
    {.norm = "{\"type\":\"Nmt\"}",
     .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Punctuation\",\"behavior\":"
            "\"MergedWithNext\"},{\"type\":\"CharDelimiterSplit\",\"delimiter\":\" \"}]}",
     .model = WORD},
};

static const char *const item[] = {"a",
                                   "b",
                                   "ab",
                                   "abb",
                                   " ",
                                   "  ",
                                   " ",
                                   "\n",
                                   "\t",
                                   "!",
                                   "!!",
                                   "''",
                                   "'",
                                   "9",
                                   "99",
                                   "e\u0301",
                                   "\u00e9",
                                   "\u0301",
                                   "\u6f22",
                                   "\u304b",
                                   "\u304b\u3099",
                                   "\u6f22\u304b",
                                   "[A]",
                                   " [A] ",
                                   "[",
                                   "\u2581",
                                   "\u00a0",
                                   "\u3000",
                                   "\uff01",
                                   "x",
                                   "A",
                                   ".",
                                   "aaaaaaaaaaaaaaaaa",
                                   "\u200d",
                                   "\U0001f468",
                                   "\r\n",
                                   "\u0600",
                                   "\uac00",
                                   "\u11a8",
                                   " ab",
                                   " a",
                                   "\x01",
                                   "\x7f",
                                   "<unk>",
                                   "<unk><unk>",
                                   ">",
                                   "<",
                                   "<\u0338",
                                   "\u0338",
                                   "be\u0301",
                                   "E\uff9e\u0301a\u0308",
                                   "\uff9e",
                                   "\u0308",
                                   "\u0327",
                                   "\u1100",
                                   "\u1161",
                                   "b\x01",
                                   "e\x01\x01\x01\x01\x01\x01\x01\x01\x01\u0301",
                                   "\u00b4",
                                   "\ufb01",
                                   "\u3000 ",
                                   "\U0001d165",
                                   "\r",
                                   "\ra",
                                   "\u0600a",
                                   "\u0600",
                                   "\r\nb",
                                   "\u0903"};

static void random_text(struct buf *b, uint64_t seed, size_t n)
{
    buf_reset(b);
    for (size_t i = 0; i < n; i++) {
        struct rng4 r = rng_block(seed, RNG_TEST, 0, i);
        buf_adds(b, item[r.v[0] % (sizeof(item) / sizeof(*item))]);
        for (uint32_t k = r.v[1] % 16; k > 12; k--)
            buf_adds(b, item[r.v[2] % 8]);
    }
}

static struct tokenizer *open_made(const struct hf_make *m, bool plain)
{
    struct hf_make copy = *m;
    struct tokenizer *t;
    struct err e;
    char *norm = mem_printf(
        "{\"type\":\"Sequence\",\"normalizers\":[%s%s]}", m->norm,
        plain ? ",{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"QQ(?=Q)\"},\"content\":\"\"}"
              : "");
    copy.norm = norm;
    T_OK(hf_open(&copy, TOK_SPECIALS_TEXT, &t, &e), &e);
    free(norm);
    return t;
}

static void compare(const struct hf_make *m, size_t which)
{
    struct tokenizer *t = open_made(m, false), *twin = open_made(m, true);
    struct tok_work *w = tok_work_create(t), *v = tok_work_create(twin);
    struct tok_ids ids = {0}, want = {0};
    struct buf b = {0};
    struct err e;
    for (uint64_t seed = 0; seed < 400; seed++) {
        random_text(&b, seed * 100 + which, seed % 40 == 0 ? 20000 : seed % 7 * 9 + 1);
        ids.n = want.n = 0;
        T_OK(tok_encode(t, w, b.data, b.len, &ids, &e), &e);
        T_OK(tok_encode(twin, v, b.data, b.len, &want, &e), &e);
        T_EQ(ids.n, want.n);
        T_MEM(ids.id, want.id, ids.n * sizeof(*ids.id));
        ids.n = 0;
        for (size_t at = 0, k; at < b.len; at += k) {
            k = b.len - at < 5000 ? b.len - at : 5000;
            T_OK(tok_encode_part(t, w, b.data + at, k, at + k == b.len, &ids, &e), &e);
        }
        T_EQ(ids.n, want.n);
        T_MEM(ids.id, want.id, ids.n * sizeof(*ids.id));
    }
    buf_finish(&b);
    tok_ids_finish(&ids);
    tok_ids_finish(&want);
    tok_work_destroy(w);
    tok_work_destroy(v);
    tok_close(t);
    tok_close(twin);
}

static void parts_give_what_the_whole_gives(void)
{
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        compare(&made[i], i);
}

/* Runs of a few characters, some of them very long; no split point in the first. */
static void long_text(struct buf *b, uint64_t seed)
{
    static const char *const run[] = {"a",      "ab",       "x",       "9",
                                      "\u304b", "\u00e9",   "e\u0301", "\u0301",
                                      "\u6f22", "ba\u00e9", " ",       "\u304bx"};
    buf_reset(b);
    for (uint64_t i = 0; b->len < 600000; i++) {
        struct rng4 r = rng_block(seed, RNG_TEST, 1, i);
        size_t n = !i           ? 300000
                   : r.v[0] % 8 ? r.v[1] % 40
                   : r.v[1] % 3 ? r.v[1] % 4000
                                : r.v[1] % 150000;
        const char *what = run[(r.v[2] >> 8) % (i && seed % 3 ? 12 : 7)];
        for (size_t k = 0; k < n; k++)
            buf_adds(b, (r.v[2] & 1) && k % 7 == r.v[3] % 7 ? "ab" : what);
        if (r.v[3] % 60 == 0)
            buf_adds(b, "[S]");
    }
}

/* A text that goes to encode_open by parts of any size. */
static void long_texts_by_parts(void)
{
    enum { ALL = sizeof(made) / sizeof(*made) };
    struct tok_ids ids = {0}, want = {0};
    struct buf b = {0};
    struct err e;
    for (size_t i = 0; i < ALL; i++) {
        struct hf_make m = made[i];
        m.added = m.added ? m.added : HF_TOKEN("[S]", "");
        struct tokenizer *t = open_made(&m, false);
        struct tok_work *w = tok_work_create(t), *v = tok_work_create(t);
        long_text(&b, i);
        ids.n = want.n = 0;
        T_OK(tok_encode(t, v, b.data, b.len, &want, &e), &e);
        for (size_t at = 0, k; at < b.len; at += k) {
            k = 1 + t_rand(i, at) % 60000;
            k = k < b.len - at ? k : b.len - at;
            T_OK(tok_encode_part(t, w, b.data + at, k, at + k == b.len, &ids, &e), &e);
        }
        T_EQ(ids.n, want.n);
        T_MEM(ids.id, want.id, ids.n * sizeof(*ids.id));
        T_EQ(tok_work_specials(w), tok_work_specials(v));
        tok_work_destroy(w);
        tok_work_destroy(v);
        tok_close(t);
    }
    buf_finish(&b);
    tok_ids_finish(&ids);
    tok_ids_finish(&want);
}

/* A word that is unknown for its length stays so where only its end is kept. */
static void a_long_word_stays_unknown(void)
{
    enum { LONG = 270000 };
    struct tok_ids ids = {0};
    struct buf b = {0};
    struct err e;
    struct tokenizer *t = open_made(&made[0], false);
    struct tok_work *w = tok_work_create(t);
    for (size_t i = 0; i < LONG + 10; i++)
        buf_addc(&b, i ? 'b' : 'a');
    buf_adds(&b, " ab");
    T_OK(tok_encode_part(t, w, b.data, LONG, false, &ids, &e), &e);
    T_OK(tok_encode_part(t, w, b.data + LONG, b.len - LONG, true, &ids, &e), &e);
    T_EQ(ids.n, 2);
    T_EQ(ids.id[0], 5);
    T_EQ(ids.id[1], 2);
    T_CHECK(tok_work_steps(w) < 8 * LONG);
    tok_ids_finish(&ids);
    buf_finish(&b);
    tok_work_destroy(w);
    tok_close(t);
}

/* Rules that look at clusters, and characters that combine with their neighbours. */
static void clusters_are_kept_together(void)
{
    static const char *const rule[][2] = {{"\r\n", "!"},   {"e\u0301", "\u00e9"}, {"\u0600", "b"},
                                          {"\u3000", " "}, {"\u0327", "ab"},      {"\u200d", ""},
                                          {"\u00a0", ""},  {"<\u0338", "\u226e"}};
    static const char *const last[] = {"", "," BLANKS, ",{\"type\":\"NFC\"}",
                                       "," RUNS("\\\\s+", " ")};
    static const char *const model[] = {UNIGRAM, BPE("\"unk_token\":\"<unk>\","), WORD};
    for (size_t i = 0; i < 24; i++) {
        struct buf raw = {0}, text = {0}, norm = {0};
        make_charsmap(&raw, rule + (i & 1), 7);
        base64_put(&text, raw.data, raw.len);
        buf_addf(&norm, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"}%s",
                 buf_str(&text), last[i / 2 % 4]);
        compare(&(struct hf_make){.norm = buf_str(&norm),
                                  .pre = i / 8 == 2 ? "{\"type\":\"BertPreTokenizer\"}"
                                                    : META("always", "true"),
                                  .model = model[i / 8]},
                60 + i);
        buf_finish(&raw);
        buf_finish(&text);
        buf_finish(&norm);
    }
}

/* With tokens for all bytes; the unknown token's own string is unknown text as well. */
static void runs_of_unknown_text_are_one(void)
{
    struct buf b = {0};
    buf_adds(&b,
             "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],"
             "[\"\\u2581\",-2],[\"a\",-3],[\"b\",-3.1],[\"ab\",-4],[\"!\",-3.5]");
    for (unsigned i = 0; i < 256; i++)
        buf_addf(&b, ",[\"<0x%02X>\",0]", i);
    buf_adds(&b, "]}");
    struct hf_make m = {
        .norm = "{\"type\":\"NFC\"}," BLANKS, .pre = META("always", "true"), .model = buf_str(&b)};
    compare(&m, 50);
    m.model = UNIGRAM;
    compare(&m, 51);
    buf_finish(&b);
}

/* A segment with a special token's string is not cached, or the string would be counted once. */
static void specials_are_counted_each_time(void)
{
    struct hf_make m = {.norm = LITERAL(" ", "\\u2581"),
                        .pre = META("never", "true"),
                        .model = BPE(""),
                        .added = "{\"content\":\"[A]\",\"special\":true,\"normalized\":true}"};
    struct tokenizer *t = open_made(&m, false);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct err e;
    static const char text[] =
        "a ab [A] ab a [A] ab [A] ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab ab";
    T_OK(tok_encode(t, w, text, strlen(text), &ids, &e), &e);
    T_EQ(tok_work_specials(w), 3);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

T_MAIN(T_CASE(parts_give_what_the_whole_gives), T_CASE(long_texts_by_parts),
       T_CASE(a_long_word_stays_unknown), T_CASE(runs_of_unknown_text_are_one),
       T_CASE(clusters_are_kept_together), T_CASE(specials_are_counted_each_time))
