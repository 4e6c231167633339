/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/thread/pool.h"
#include "tests/t.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/make.h"
#include "tok/text/base64.h"
#include "tok/text/byte_alphabet.h"

/*
 * Long texts without split points: the ids of the whole, from any parts, and work that grows as the
 * text does. Work is counted in plain builds; with sanitizers the ids alone are compared.
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

enum { MB = 1000000 };

/* What texts are made of. */
static const char *const kind[] = {"a",   "ab",     "ACGT",   "0123456789",    " ",  "\n",
                                   " \n", "\u0301", "\u6f22", "\u6f22\u3042A", "aA", "./\n"};
enum { KINDS = sizeof(kind) / sizeof(*kind) };

/* WEFT_FULL=1 tries more texts, and longer ones. */
static bool full(void)
{
    return getenv("WEFT_FULL") != NULL;
}

/* `n` bytes and more of characters of a kind, in turn or at random. */
static void put_short_run(struct buf *b, size_t k, size_t n, uint64_t seed)
{
    const char *at[16];
    size_t chars = 0, from = b->len;
    for (const char *p = kind[k]; *p; p++)
        if (((unsigned char)*p & 0xc0) != 0x80)
            at[chars++] = p;
    at[chars] = kind[k] + strlen(kind[k]);
    for (uint64_t i = 0; b->len - from < n; i++) {
        size_t c = chars < 3 ? i % chars : t_rand(seed, i) % chars;
        buf_add(b, at[c], (size_t)(at[c + 1] - at[c]));
    }
}

/* The same, with a period in a long one: making the text is not to take longer than encoding it. */
static void put_run(struct buf *b, size_t k, size_t n, uint64_t seed)
{
    enum { PERIOD = 60 << 10 }; /* a multiple of each kind's bytes */
    size_t from = b->len, end = from + n;
    buf_reserve(b, n + PERIOD);
    put_short_run(b, k, n < PERIOD ? n : PERIOD, seed);
    for (size_t period = b->len - from; n > PERIOD && b->len + period <= end;)
        buf_add(b, b->data + from, period);
    if (b->len < end)
        put_short_run(b, k, end - b->len, seed);
}

/* Patterns of no known family. */
#define OTHER                                                                                      \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,4}| "                           \
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|"                                                              \
    "\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define LOOKS_FAR                                                                                  \
    "(?<=ab)[ab]|([AC])\\1T|(?>\\s{2,9})|\\p{N}{1,3}(?=(?:\\p{N}{3})?+\\D)|(?:\u6f22A)++"
#define OTHER_GAPS "(?i:b)+|[0-9]{3}(?=[0-9])|\\s\\s|\\u6f22?\\p{M}|'s\\b"

/* All bytes, then runs and pairs of what texts are made of, some of them by parts. */
static void open_ranks(const char *pattern, struct tokenizer **t)
{
    static const char *const more[] = {
        "aa",       "aaaa", "aaaaaaaa", "ab",  "ba",       "abab",     "AC",       "GT",
        "ACGT",     "TA",   "TAT",      "CA",  "00",       "12",       "123",      "  ",
        "    ",     "   ",  "\n\n",     " \n", "\n\n\n\n", "\xcc\x81", "\x81\xcc", "\u6f22",
        "\xa2\xe6", "aA",   "Aa",       "./",  "/\n",      "AAA"};
    struct buf b = {0};
    struct err e;
    for (int i = 0; i < 256; i++) {
        base64_put(&b, &(char){(char)i}, 1);
        buf_addf(&b, " %d\n", i);
    }
    for (int i = 0; i < (int)(sizeof(more) / sizeof(*more)); i++) {
        base64_put(&b, more[i], strlen(more[i]));
        buf_addf(&b, " %d\n", 256 + i);
    }
    const char *path = t_path("ranks");
    struct tok_options o = {.path = path, .pattern = pattern};
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    T_OK(tok_open(&o, t, &e), &e);
    buf_finish(&b);
}

static void open_sp(uint64_t n, int type, struct tokenizer **t)
{
    struct buf b = {0};
    struct err e;
    make_random(&b, n, type);
    const char *path = t_path("made.model");
    struct tok_options o = {.path = path};
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    T_OK(tok_open(&o, t, &e), &e);
    buf_finish(&b);
}

static void by_parts(const struct tokenizer *t, struct tok_work *w, struct pool *pool,
                     struct tok_work *const *work, const struct buf *text, uint64_t seed,
                     struct tok_ids *ids)
{
    struct err e;
    ids->n = 0;
    for (size_t at = 0, n; at < text->len; at += n) {
        n = seed ? 1 + t_rand(seed, at) % 200000 : 65536;
        n = n < text->len - at ? n : text->len - at;
        bool last = at + n == text->len;
        int code = pool ? tok_encode_part_parallel(t, pool, work, text->data + at, n, last, ids, &e)
                        : tok_encode_part(t, w, text->data + at, n, last, ids, &e);
        T_OK(code, &e);
    }
}

static void same_ids(const struct tokenizer *t, const struct buf *text, uint64_t seed)
{
    struct tok_ids want = {0}, got = {0};
    struct tok_work *w = tok_work_create(t), *work[] = {tok_work_create(t), tok_work_create(t)};
    struct pool *pool = pool_create(2);
    struct err e;
    T_OK(tok_encode(t, w, text->data, text->len, &want, &e), &e);
    for (int i = 0; i < 2; i++) {
        by_parts(t, w, i ? pool : NULL, work, text, seed, &got);
        T_EQ(got.n, want.n);
        T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    }
    T_EQ(tok_work_invalid(work[0]) + tok_work_invalid(work[1]), tok_work_invalid(w) / 2);
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    tok_work_destroy(w);
    tok_work_destroy(work[0]);
    tok_work_destroy(work[1]);
    pool_destroy(pool);
}

/* A few long runs, then ordinary text, special tokens and bytes that are not UTF-8. */
static void make_mixed(struct buf *b, uint64_t seed)
{
    buf_reset(b);
    if (seed % 3 == 0)
        buf_adds(b, "some words first, ");
    for (uint64_t i = 0; i < 3; i++)
        put_run(b, t_rand(seed, i) % KINDS,
                i ? t_rand(seed, 9 + i) % 200000 : (full() ? 2500000 : 500000) + seed,
                seed * 7 + i);
    for (uint64_t i = 0; i < 2000 && seed % 2; i++)
        buf_adds(b, (const char *const[]){" word", "it's ", "\n", "<|endoftext|>", "\xff", "12 34",
                                          "\u6f22\u5b57", "ab"}[t_rand(seed, 100 + i) % 8]);
    put_run(b, t_rand(seed, 5) % KINDS, 1 + t_rand(seed, 6) % 300000, seed);
}

static void ids_are_those_of_the_whole(void)
{
    static const char *const pattern[] = {"gpt2", "cl100k", "o200k", "llama3",   "qwen",
                                          "v1",   "v2",     OTHER,   OTHER_GAPS, LOOKS_FAR};
    enum { PATTERNS = WEFT_PCRE2 ? 10 : 7 };
    struct buf text = {0};
    struct tokenizer *t;
    uint64_t rounds = full() ? 40 : 1;
    for (uint64_t k = 0; k < PATTERNS + 4; k++) {
        if (k < PATTERNS)
            open_ranks(pattern[k], &t);
        else
            open_sp(k * 173 & 4095, k < PATTERNS + 2 ? SP_BPE : SP_UNIGRAM, &t);
        for (uint64_t i = 0; i < rounds; i++) {
            make_mixed(&text, k * 100 + i);
            same_ids(t, &text, i);
        }
        tok_close(t);
    }
    buf_finish(&text);
}

static void only_plain(void)
{
    if (SANITIZED)
        t_skip("work is counted in plain builds");
}

static int forget(void *arg, struct tok_ids *ids, struct err *e)
{
    (void)arg, (void)e;
    ids->n = 0;
    return 0;
}

/*
 * Work for a byte of a long text against that of a short one, of the first kinds of text, with a
 * sink for ids or without. Buffers and what is looked back at have at most 1 MiB, which is between
 * the two sizes.
 */
static void are_linear(struct tokenizer *t, size_t kinds, bool to_sink)
{
    const size_t size[] = {full() ? MB : MB / 2, full() ? 8 * MB : 2 * MB};
    const struct tok_sink sink = {t_path("beside"), forget, NULL};
    struct tok_work *w = tok_work_create(t);
    struct buf text = {0};
    struct tok_ids ids = {0};
    if (to_sink)
        tok_work_sink(w, &sink);
    for (size_t k = 0; k < kinds; k++) {
        double each[2];
        for (int i = 0; i < 2; i++) {
            uint64_t before = tok_work_steps(w);
            buf_reset(&text);
            put_run(&text, k, size[i], 1);
            by_parts(t, w, NULL, NULL, &text, 0, &ids);
            each[i] = (double)(tok_work_steps(w) - before + text.len) / (double)text.len;
        }
        if (each[1] > 1.5 * each[0])
            printf("# kind %zu: %.1f for each byte of %zu, %.1f of %zu\n", k, each[0], size[0],
                   each[1], size[1]);
        T_CHECK(each[1] <= 1.5 * each[0]);
    }
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    buf_finish(&text);
}

/* Kinds of text of which work is counted. */
static size_t counted(void)
{
    return full() ? KINDS : 5;
}

static int take(void *arg, struct tok_ids *ids, struct err *e)
{
    struct tok_ids *all = arg;
    (void)e;
    tok_ids_add(all, ids->id, ids->n);
    ids->n = 0;
    return 0;
}

static void open_pieces(int type, struct tokenizer **t);

/* With a sink, of a text that may begin with words, for one thread and for two. */
static void through_sink(const struct tokenizer *t, const struct buf *text)
{
    struct tok_ids want = {0}, got = {0}, part = {0};
    struct tok_work *w = tok_work_create(t), *work[] = {tok_work_create(t), tok_work_create(t)};
    struct pool *pool = pool_create(2);
    const struct tok_sink sink = {t_path("beside"), take, &got};
    struct err e;
    T_OK(tok_encode(t, w, text->data, text->len, &want, &e), &e);
    for (int i = 0; i < 2; i++) {
        size_t taken = 0, n;
        got.n = 0;
        tok_work_sink(i ? work[0] : w, &sink);
        for (size_t at = 0; at < text->len; at += n) {
            size_t before = got.n;
            n = text->len - at < 300000 ? text->len - at : 300000;
            bool last = at + n == text->len;
            T_OK(i ? tok_encode_part_parallel(t, pool, work, text->data + at, n, last, &part, &e)
                   : tok_encode_part(t, w, text->data + at, n, last, &part, &e),
                 &e);
            taken += got.n - before;
            T_CHECK(part.n < text->len / 4);
            take(&got, &part, &e);
        }
        T_CHECK(taken > want.n / 4);
        T_EQ(got.n, want.n);
        T_MEM(got.id, want.id, want.n * sizeof(*want.id));
    }
    tok_ids_finish(&want);
    tok_ids_finish(&got);
    tok_ids_finish(&part);
    tok_work_destroy(w);
    tok_work_destroy(work[0]);
    tok_work_destroy(work[1]);
    pool_destroy(pool);
}

static void open_unigram(struct tokenizer **t);

static void go_out_in_parts(struct tokenizer *t)
{
    struct buf text = {0};
    for (size_t k = 0; k < 2; k++) {
        buf_reset(&text);
        while (k && text.len < 2500000)
            buf_adds(&text, "ab C 01 \u6f22x ");
        put_run(&text, 0, 8 * MB + 1, 1);
        through_sink(t, &text);
    }
    tok_close(t);
    buf_finish(&text);
}

static void ids_go_out_in_parts(void)
{
    struct tokenizer *t;
    open_pieces(SP_UNIGRAM, &t);
    go_out_in_parts(t);
    open_unigram(&t);
    go_out_in_parts(t);
}

static void byte_level_is_linear(void)
{
    static const char *const pattern[] = {"gpt2", "cl100k", OTHER, "qwen", LOOKS_FAR};
    only_plain();
    for (int i = 0; i < (WEFT_PCRE2 ? 5 : 2); i++) {
        struct tokenizer *t;
        open_ranks(pattern[i], &t);
        are_linear(t, counted(), true);
        tok_close(t);
    }
}

static void open_pieces(int type, struct tokenizer **t)
{
    static const char *const piece[] = {
        "a", "b", "aa", "ab", "ba",     "abab",         "aaa",         "A",
        "C", "G", "T",  "AC", "GT",     "TA",           "CA",          "CAT",
        "0", "1", "01", "12", "\u2581", "\u2581\u2581", "\u6f22\u6f22"};
    struct buf b = {0};
    struct err e;
    make_piece(&b, "<unk>", 0, SP_UNKNOWN);
    make_piece(&b, "<s>", 0, SP_CONTROL);
    make_piece(&b, "</s>", 0, SP_CONTROL);
    for (size_t k = 0; k < sizeof(piece) / sizeof(*piece); k++)
        make_piece(&b, piece[k], -1 - (float)k / 8, SP_NORMAL);
    make_trainer(&b, type, false);
    make_normalizer(&b, NULL, 0);
    const char *path = t_path("linear.model");
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    struct tok_options o = {.path = path};
    T_OK(tok_open(&o, t, &e), &e);
    buf_finish(&b);
}

static void models_are_linear(void)
{
    static const int type[] = {SP_BPE, SP_UNIGRAM};
    only_plain();
    for (int i = 0; i < 2; i++) {
        struct tokenizer *t;
        open_pieces(type[i], &t);
        are_linear(t, counted(), true);
        are_linear(t, counted(), false);
        tok_close(t);
    }
}

/* Ids of a text that continues: of all but its last bytes. (Of a unigram model with pieces of one
 * letter, how a run of it is split may depend on its length.) */
static void come_early(const struct tokenizer *t, size_t k)
{
    struct buf text = {0};
    struct tok_ids ids = {0};
    struct tok_work *w = tok_work_create(t);
    struct err e;
    put_run(&text, k, MB, 1);
    T_OK(tok_encode_part(t, w, text.data, text.len, false, &ids, &e), &e);
    size_t early = ids.n;
    T_OK(tok_encode_part(t, w, "", 0, true, &ids, &e), &e);
    T_CHECK(early > 0 && ids.n - early < ids.n / 4);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    buf_finish(&text);
}

static void ids_come_early(void)
{
    static const char *const pattern[] = {"gpt2", "cl100k", OTHER, "qwen", LOOKS_FAR};
    for (int i = 0; i < (WEFT_PCRE2 ? 5 : 2) + 1; i++) {
        struct tokenizer *t;
        if (!i)
            open_pieces(SP_BPE, &t);
        else
            open_ranks(pattern[i - 1], &t);
        for (size_t k = 0; k < 3; k++)
            come_early(t, k);
        tok_close(t);
    }
}

#define CHARS                                                                                      \
    "\"<unk>\":0,\"\\u2581\":1,\"a\":2,\"b\":3,\"ab\":4,\"aa\":5,\"A\":6,\"C\":7,\"G\":8,\"T\":9," \
    "\"TA\":10,\"CA\":11,\"CAT\":12,\"0\":13,\"01\":14,\"1\":15,\"##a\":16,\"\\u2581\\u2581\":17"
#define LITERAL(from, to)                                                                          \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"
#define SEQUENCE(list) "{\"type\":\"Sequence\",\"normalizers\":[" list "]}"
#define META "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"always\"}"
#define WORDS "{\"type\":\"WhitespaceSplit\"}"
#define STEPS(list) "{\"type\":\"Sequence\",\"pretokenizers\":[" list "]}"
#define UNIGRAM                                                                                    \
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\",-3],"     \
    "[\"b\",-3.1],[\"ab\",-4],[\"aa\",-4.5],[\"A\",-3],[\"C\",-3],[\"CAT\",-5],[\"0\",-3]]}"
#define MODEL(type, more)                                                                          \
    "{\"type\":\"" type "\",\"unk_token\":\"<unk>\"," more "\"vocab\":{" CHARS "}"

/* A byte-level BPE that keeps the text, because of its normalizer. */
static const char *byte_level(struct buf *b)
{
    buf_adds(b, "{\"type\":\"BPE\",\"vocab\":{");
    for (int i = 0; i < 256; i++) {
        char letter[4];
        size_t n = letter_put(letter, (uint8_t)i);
        bool escaped = i == '"' || i == '\\';
        buf_addf(b, "\"%s%.*s\":%d,", escaped ? "\\" : "", (int)n, letter, i);
    }
    buf_adds(b, "\"aa\":256,\"ab\":257,\"aaaa\":258,\"AC\":259,\"12\":260},\"merges\":["
                "\"a a\",\"a b\",\"aa aa\",\"A C\",\"1 2\"]}");
    return buf_str(b);
}

#define STRIP "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"
#define MERGES                                                                                     \
    MODEL("BPE", "\"fuse_unk\":true,")                                                             \
    ",\"merges\":[\"a a\",\"a b\",\"T A\",\"C A\",\"CA T\",\"0 1\",\"\\u2581 \\u2581\"]}"

/* Added tokens that look around. */
#define TOKEN(text, flags) "{\"id\":0,\"content\":\"" text "\"," flags "}"
#define LOOK(left, right, word, normal)                                                            \
    "\"lstrip\":" left ",\"rstrip\":" right ",\"single_word\":" word ",\"normalized\":" normal     \
    ",\"special\":false"
#define LOOKING                                                                                    \
    TOKEN("<|endoftext|>", LOOK("true", "false", "false", "false"))                                \
    "," TOKEN("it's", LOOK("false", "true", "false", "false")) "," TOKEN(                          \
        "word", LOOK("false", "false", "true", "false"))
#define LOOKING_NORMAL                                                                             \
    TOKEN("it's", LOOK("true", "true", "false", "false"))                                          \
    "," TOKEN("<|endoftext|>", LOOK("true", "false", "false", "true")) "," TOKEN(                  \
        "word", LOOK("false", "true", "true", "true"))

/* Pipelines; `early`: ids come while a text without split points is read. */
struct made {
    struct hf_make make;
    bool early;
};

enum { MADE = 12, LINEAR = 10 };

static void make_pipelines(struct made *m, struct buf *bytes)
{
    const char *level = byte_level(bytes);
    const struct hf_make make[MADE] = {
        {.norm = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                 "\"strip_accents\":true,\"lowercase\":true}",
         .pre = "{\"type\":\"BertPreTokenizer\"}",
         .model = MODEL("WordPiece", "\"continuing_subword_prefix\":\"##\","
                                     "\"max_input_chars_per_word\":100,") "}"},
        {.norm = "{\"type\":\"NFC\"}", .pre = META, .model = UNIGRAM},
        {.pre = STEPS(WORDS ",{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\","
                            "\"prepend_scheme\":\"first\"}"), /* keeps words */
         .model = MODEL("WordLevel", "") "}"},
        {.norm =
             SEQUENCE("{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"}," LITERAL(" ", "\\u2581")),
         .model = MERGES},
        {.pre = META, .model = MERGES},
        {.norm = SEQUENCE(
             STRIP "," LITERAL("zz", "z") ",{\"type\":\"NFD\"},"
                                          "{\"type\":\"StripAccents\"},{\"type\":\"Lowercase\"}"),
         .pre = HF_LEVEL("false"),
         .model = level},
        {.pre = HF_LEVEL("true"), .model = level},
        {.pre = HF_LEVEL("false"), .model = level, .added = LOOKING},
        {.pre = STEPS(WORDS "," META), .model = UNIGRAM},
        {.pre = WORDS, .model = MERGES},
        {.norm = "{\"type\":\"NFC\"}",
         .pre = HF_LEVEL("false"),
         .model = level,
         .added = LOOKING_NORMAL},
        {.pre = META, .model = MERGES, .added = LOOKING_NORMAL},
    };
    for (size_t i = 0; i < MADE; i++)
        m[i] = (struct made){make[i], i > 2 || i == 1};
}

static void open_unigram(struct tokenizer **t)
{
    struct err e;
    const struct hf_make make = {.norm = "{\"type\":\"NFC\"}", .pre = META, .model = UNIGRAM};
    T_OK(hf_open(&make, TOK_SPECIALS_TEXT, t, &e), &e);
}

static void pipelines_are_linear(void)
{
    struct buf bytes = {0};
    struct made made[MADE];
    struct tokenizer *made_unigram;
    only_plain();
    open_unigram(&made_unigram);
    are_linear(made_unigram, 2, false);
    tok_close(made_unigram);
    make_pipelines(made, &bytes);
    for (size_t i = 0; i < LINEAR; i++) {
        struct tokenizer *t;
        struct err e;
        T_OK(hf_open(&made[i].make, TOK_SPECIALS_TEXT, &t, &e), &e);
        are_linear(t, counted(), true);
        tok_close(t);
    }
    buf_finish(&bytes);
}

/* Their ids come while a text is read, and are those of the whole: with white space at its ends,
 * and longer runs of it. */
static void pipelines_come_early(void)
{
    struct buf bytes = {0}, text = {0};
    struct made made[MADE];
    make_pipelines(made, &bytes);
    for (size_t i = 0; i < MADE; i++) {
        struct tokenizer *t;
        struct err e;
        if (!made[i].early || (i > 4 && !WEFT_PCRE2))
            continue;
        T_OK(hf_open(&made[i].make, TOK_SPECIALS_TEXT, &t, &e), &e);
        for (size_t k = strstr(made[i].make.model, "Unigram") ? 1 : 0; k < 3; k++)
            come_early(t, k);
        for (uint64_t seed = 0; seed < 2; seed++) {
            buf_reset(&text);
            put_run(&text, 6, seed ? 100000 : 0, seed);
            make_mixed(&bytes, seed + i);
            buf_add(&text, bytes.data, bytes.len);
            put_run(&text, 6 - 2 * seed, 300000, seed);
            same_ids(t, &text, seed);
        }
        tok_close(t);
        buf_reset(&bytes);
        make_pipelines(made, &bytes);
    }
    buf_finish(&bytes);
    buf_finish(&text);
}

/* A normalizer that makes too much of a text is refused while it is read, as in one whole. */
static void growth_is_limited(void)
{
    struct buf bytes = {0}, text = {0};
    struct tok_ids ids = {0};
    struct tokenizer *t;
    struct err e;
    const struct hf_make made = {.norm = LITERAL("a", "abababababababababababababababababababab"),
                                 .pre = HF_LEVEL("false"),
                                 .model = byte_level(&bytes)};
    int code = 0;
    if (!WEFT_PCRE2)
        t_skip("no PCRE2");
    T_OK(hf_open(&made, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    put_run(&text, 0, MB, 1);
    for (int i = 0; i < 4 && !code; i++, ids.n = 0)
        code = tok_encode_part(t, w, text.data, text.len, i == 3, &ids, &e);
    T_EQ(code, ERR_DATA);
    T_CHECK(strstr(e.msg, "normalizer 1 of 1") != NULL);
    tok_work_destroy(w);
    tok_close(t);
    tok_ids_finish(&ids);
    buf_finish(&text);
    buf_finish(&bytes);
}

#define OF_LINES                                                                                   \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"^(?>a+b)\"},\"behavior\":\"Isolated\","          \
    "\"invert\":false}"
#define DROPS                                                                                      \
    "{\"type\":\"BPE\",\"dropout\":0.5,\"vocab\":{\"a\":0,\"b\":1,\"aa\":2},\"merges\":[\"a a\"]}"

/* Texts that must be in memory whole are refused beyond a limit, with what needs them. */
static void what_is_kept_is_limited(void)
{
    static const struct {
        struct hf_make make;
        const char *by;
        size_t mb;
    } kept[] = {
        {{.model = DROPS}, "the dropout of merges", 13},
        {{.pre = OF_LINES, .model = MERGES}, "Split of \"^(?>a+b)\"", 13},
    };
    struct buf text = {0};
    put_run(&text, 0, MB, 1);
    for (size_t i = 0; i < 2U * (WEFT_PCRE2 ? 2 : 1); i++) {
        struct tokenizer *t;
        struct tok_ids ids = {0};
        struct err e;
        T_OK(hf_open(&kept[i / 2].make, TOK_SPECIALS_TEXT, &t, &e), &e);
        struct tok_work *work[] = {tok_work_create(t), tok_work_create(t)};
        struct pool *pool = pool_create(i % 2 ? 2 : 1);
        int code = 0;
        size_t mb = 0;
        for (; mb < kept[i / 2].mb && !code; mb++, ids.n = 0)
            code = tok_encode_part_parallel(t, pool, work, text.data, text.len,
                                            mb + 1 == kept[i / 2].mb, &ids, &e);
        T_ERR(code, &e, ERR_DATA, kept[i / 2].by);
        T_EQ(mb, kept[i / 2].mb);
        tok_ids_finish(&ids);
        pool_destroy(pool);
        tok_work_destroy(work[0]);
        tok_work_destroy(work[1]);
        tok_close(t);
    }
    buf_finish(&text);
}

T_MAIN(T_CASE(ids_are_those_of_the_whole), T_CASE(ids_go_out_in_parts),
       T_CASE(byte_level_is_linear), T_CASE(models_are_linear), T_CASE(pipelines_are_linear),
       T_CASE(ids_come_early), T_CASE(pipelines_come_early), T_CASE(growth_is_limited),
       T_CASE(what_is_kept_is_limited))
