/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/tok/hf_make.h"
#include "tok/text/byte_alphabet.h"

/*
 * Any pre-tokenizer and model over a long text that comes in parts: the ids of the whole, and most
 * of them before its end.
 */

#define CHARS                                                                                      \
    "\"<unk>\":0,\"\\u2581\":1,\"a\":2,\"b\":3,\"ab\":4,\"aa\":5,\"1\":6,\",\":7,\"\\u6f22\":8,"   \
    "\"##a\":9,\"##b\":10,\"##aa\":11,\"a</w>\":12,\"b</w>\":13,\"ab</w>\":14,\"1</w>\":15,"       \
    "\"12\":16,\"2\":17,\"##12\":18,\"##1\":19,\"##2\":20,\"aab\":21,\" \":22,\"a##b\":23"
#define BPE(more, merges)                                                                          \
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\"," more "\"vocab\":{" CHARS "},\"merges\":[" merges  \
    "]}"

static const char *const model[] = {
    BPE("\"fuse_unk\":true,", "\"a a\",\"a b\",\"1 2\""),
    BPE("\"ignore_merges\":true,", "\"a a\",\"1 2\""),
    BPE("\"end_of_word_suffix\":\"</w>\",", "\"a a\",\"a b</w>\",\"1 2\""),
    BPE("\"continuing_subword_prefix\":\"##\",", "\"a ##a\",\"##a ##a\",\"##1 ##2\""),
    "{\"type\":\"WordPiece\",\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":\"##\","
    "\"max_input_chars_per_word\":100,\"vocab\":{" CHARS "}}",
    "{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":{" CHARS "}}",
    ("{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\",-3],"
     "[\"b\",-3.1],[\"ab\",-4],[\"aa\",-4.5],[\"1\",-3],[\"12\",-5],[\",\",-3]]}")};
enum { MODELS = sizeof(model) / sizeof(*model) };

#define SPLIT(p) "{\"type\":\"Split\",\"pattern\":{" p "},\"invert\":%s,\"behavior\":\"%s\"}"
static const char *const pre[] = {
    "{\"type\":\"Whitespace\"}",
    "{\"type\":\"WhitespaceSplit\"}",
    "{\"type\":\"BertPreTokenizer\"}",
    "{\"type\":\"UnicodeScripts\"}",
    "{\"type\":\"CharDelimiterSplit\",\"delimiter\":\",\"}",
    "{\"type\":\"Digits\",\"individual_digits\":true}",
    "{\"type\":\"Digits\",\"individual_digits\":false}",
    "{\"type\":\"FixedLength\",\"length\":7}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"always\"}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"never\",\"split\":"
    "false}",
    HF_LEVEL("true"),
    SPLIT("\"String\":\",\""),
    SPLIT("\"Regex\":\"\\\\s+|1\""),
    SPLIT("\"Regex\":\"(?<=ab)[ab]|\\\\p{N}{1,3}\""),
    SPLIT("\"Regex\":\"(.)\\\\1{3}\""),
    "{\"type\":\"Punctuation\",\"invert\":%s,\"behavior\":\"%s\"}"};
enum { PRES = sizeof(pre) / sizeof(*pre), PLAIN = 10 };

static void put_pre(struct buf *b, uint64_t seed)
{
    static const char *const behavior[] = {"Removed", "Isolated", "MergedWithPrevious",
                                           "MergedWithNext", "Contiguous"};
    const char *text = pre[t_rand(seed, 0) % (WEFT_PCRE2 ? PRES : PLAIN)];
    const char *at = strstr(text, "%s"), *next = at ? strstr(at + 2, "%s") : NULL;
    if (!at) {
        buf_adds(b, text);
        return;
    }
    bool invert = !strstr(text, "Punctuation") && t_rand(seed, 1) % 3 == 0;
    buf_add(b, text, (size_t)(at - text));
    buf_adds(b, invert ? "true" : "false");
    buf_add(b, at + 2, (size_t)(next - at - 2));
    buf_adds(b, behavior[t_rand(seed, 2) % 5]);
    buf_adds(b, next + 2);
}

/* A run that no step may split for long, then anything. */
static void make_text(struct buf *b, uint64_t seed)
{
    static const char *const run[] = {"a", "ab", "1", " ", ",", "12", "\u6f22", "b"};
    static const char *const one[] = {"a", "b", "ab", " ", "1", "2", ",", "\n", "\u6f22", "\u00e9"};
    buf_reset(b);
    for (const char *of = run[seed % 8]; b->len < 290000;)
        buf_adds(b, of);
    while (b->len < 470000) {
        const char *of = one[t_rand(seed, b->len) % 10];
        for (uint64_t k = t_rand(seed, b->len + 1) % 64 ? 1 : 200; k; k--)
            buf_adds(b, of);
    }
}

/* Unigram keeps a run of a letter that has pieces. */
static void compare(const struct tokenizer *t, const struct buf *text, uint64_t seed)
{
    bool keeps = seed % MODELS == MODELS - 1;
    struct tok_ids want = {0}, got = {0};
    struct tok_work *w = tok_work_create(t);
    struct err e;
    size_t early = 0, fed = 0;
    T_OK(tok_encode(t, w, text->data, text->len, &want, &e), &e);
    for (size_t at = 0, n; at < text->len; at += n) {
        n = at ? 1 + t_rand(seed, at) % 90000 : 280000;
        n = n < text->len - at ? n : text->len - at;
        T_OK(tok_encode_part(t, w, text->data + at, n, at + n == text->len, &got, &e), &e);
        if (at + n < text->len)
            early = got.n, fed = at + n;
    }
    T_EQ(got.n, want.n);
    T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    T_CHECK(keeps || early > 0 || fed < 410000 || want.n < text->len / 8);
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    tok_work_destroy(w);
}

static void ids_are_those_of_the_whole(void)
{
    struct buf b = {0}, text = {0};
    for (uint64_t seed = 1; seed <= (getenv("WEFT_FULL") ? 600U : 28U); seed++) {
        struct hf_make make = {.model = model[seed % MODELS]};
        struct tokenizer *t;
        struct err e;
        buf_reset(&b);
        buf_adds(&b, "{\"type\":\"Sequence\",\"pretokenizers\":[");
        for (uint64_t i = 0, n = 1 + t_rand(seed, 0) % 3; i < n; i++) {
            buf_adds(&b, i ? "," : "");
            put_pre(&b, seed * 8 + i);
        }
        buf_adds(&b, "]}");
        make.pre = buf_str(&b);
        T_OK(hf_open(&make, TOK_SPECIALS_TEXT, &t, &e), &e);
        make_text(&text, seed);
        printf("# %llu %s\n", (unsigned long long)seed, make.pre);
        compare(t, &text, seed);
        tok_close(t);
    }
    buf_finish(&b);
    buf_finish(&text);
}

#define UNDECIDED                                                                                  \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a*b|a\"},\"behavior\":\"Isolated\",\"invert\":"  \
    "false}"

/* Three patterns share what one alone may keep of a text: 48 MiB. */
static void patterns_share_a_limit(void)
{
    enum { MB = 1 << 20 };
    struct tokenizer *t;
    struct err e;
    struct tok_ids ids = {0};
    int code = 0, i = 0;
    struct hf_make m = {.pre = "{\"type\":\"Sequence\",\"pretokenizers\":[" UNDECIDED "," UNDECIDED
                               "," UNDECIDED "]}"};
    if (hf_open(&m, TOK_SPECIALS_TEXT, &t, &e))
        t_skip("built without PCRE2");
    struct tok_work *w = tok_work_create(t);
    char *text = mem_new(MB, 1);
    memset(text, 'a', MB);
    for (; !code && i < 20; i++)
        code = tok_encode_part(t, w, text, MB, false, &ids, &e);
    T_ERR(code, &e, ERR_DATA, "needs more than 16 MiB of text to decide a match");
    T_EQ(i, 17);
    free(text);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

/* Bytes of mixed white space in MiB until a text is refused. */
static int space_refused(const struct hf_make *m, const char *why)
{
    enum { MB = 1 << 20 };
    struct tokenizer *t;
    struct err e;
    struct tok_ids ids = {0};
    int code = 0, i = 0;
    T_OK(hf_open(m, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    char *text = mem_new(MB, 1);
    for (int k = 0; k < MB; k++)
        text[k] = k % 2 ? ' ' : '\t';
    T_OK(tok_encode_part(t, w, "a", 1, false, &ids, &e), &e);
    for (; !code && i < 20; i++)
        code = tok_encode_part(t, w, text, MB, false, &ids, &e);
    T_ERR(code, &e, ERR_DATA, why);
    free(text);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
    return i;
}

#define STRIP "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"

/* Four Strips share 48 MiB; an added token with lstrip has 12. */
static void white_space_is_limited(void)
{
    const struct hf_make strips = {.pre = HF_LEVEL("true"),
                                   .norm = "{\"type\":\"Sequence\",\"normalizers\":[" STRIP
                                           "," STRIP "," STRIP "," STRIP "]}"};
    const struct hf_make token = {
        .pre = HF_LEVEL("true"),
        .added = "{\"id\":0,\"content\":\"<m>\",\"single_word\":false,\"lstrip\":true,"
                 "\"rstrip\":false,\"normalized\":false,\"special\":false}"};
    T_EQ(space_refused(&strips, "Strip, needs to keep more than 12 MiB of mixed white space"), 13);
    T_EQ(space_refused(&token, "more than 12 MiB of mixed white space needs to be kept"), 13);
}

struct taken {
    struct tok_ids ids;
    size_t most; /* of a call */
};

static int take(void *arg, struct tok_ids *ids, struct err *e)
{
    struct taken *t = arg;
    (void)e;
    t->most = t->most > ids->n ? t->most : ids->n;
    tok_ids_add(&t->ids, ids->id, ids->n);
    ids->n = 0;
    return 0;
}

/* White space that Strip keeps, and then passes on at once: its ids do not come in one list. */
static void ids_come_in_parts(void)
{
    enum { SPACES = 2 << 20, MOST = 1 << 17 };
    struct tokenizer *t;
    struct err e;
    struct tok_ids want = {0}, ids = {0};
    struct taken got = {0};
    const struct tok_sink sink = {t_path("beside"), take, &got};
    struct hf_make m = {
        .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
               "\"String\":\"\\t\"},\"behavior\":\"Isolated\",\"invert\":false},"
               "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}",
        .norm = "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"};
    struct buf text = {0};
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    buf_adds(&text, "a");
    for (int i = 0; i < SPACES; i++)
        buf_add(&text, &" \t"[t_rand(1, (uint64_t)i) % 2], 1);
    buf_adds(&text, "b");
    T_OK(tok_encode(t, w, text.data, text.len, &want, &e), &e);
    tok_work_sink(w, &sink);
    T_OK(tok_encode_part(t, w, text.data, text.len - 1, false, &ids, &e), &e);
    T_CHECK(got.ids.n + ids.n < 10);
    T_OK(tok_encode_part(t, w, "b", 1, true, &ids, &e), &e);
    T_OK(take(&got, &ids, &e), &e);
    T_CHECK(got.most < MOST && want.n > 4 * MOST);
    T_EQ(got.ids.n, want.n);
    T_MEM(got.ids.id, want.id, want.n * sizeof(*want.id));
    tok_work_sink(w, NULL);
    tok_ids_finish(&want);
    tok_ids_finish(&ids);
    tok_ids_finish(&got.ids);
    tok_work_destroy(w);
    tok_close(t);
    buf_finish(&text);
}

T_MAIN(T_CASE(ids_are_those_of_the_whole), T_CASE(patterns_share_a_limit),
       T_CASE(ids_come_in_parts), T_CASE(white_space_is_limited))
