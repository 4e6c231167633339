/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/tok/charsmap.h"
#include "tests/tok/hf_make.h"
#include "tok/text/base64.h"
#include "tok/text/byte_alphabet.h"

/*
 * Metaspace with "first" puts its mark, 1, only where the text begins: results of tokenizers
 * 0.23.3. tests/interop/tok_pipe.py queries it for random pipelines.
 */

#define MODEL                                                                                      \
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"\\u2581\":1,\"a\":2,"      \
    "\"b\":3,\"c\":4,\"x\":5,\"e\":6},\"merges\":[]}"
#define FIRST "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\"}"
#define REPLACE(from, to)                                                                          \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"" from "\"},\"content\":\"" to "\"}"
#define PREPEND(text) "{\"type\":\"Prepend\",\"prepend\":\"" text "\"}"
#define KIND(name) "{\"type\":\"" name "\"}"
#define STRIP "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}"
#define BERT                                                                                       \
    "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"              \
    "\"strip_accents\":true,\"lowercase\":true}"

static void gives_behind(const char *norm, const char *pre, const char *text, const char *want)
{
    char *steps = mem_printf("{\"type\":\"Sequence\",\"normalizers\":[%s]}", norm);
    char *cuts = mem_printf("{\"type\":\"Sequence\",\"pretokenizers\":[%s]}", pre);
    struct hf_make m = {.norm = steps, .pre = cuts, .model = MODEL};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e);
    gives(t, text, want);
    tok_close(t);
    free(steps);
    free(cuts);
}

/* Four times a letter becomes a hundred: 100 MB of each. */
static void normalizers_may_not_explode(void)
{
    enum { LONG = 2 << 20 };
    struct buf step = {0}, norm = {0};
    struct tokenizer *t;
    struct tok_ids ids = {0};
    struct err e;
    buf_adds(&step, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"");
    for (int i = 0; i < 100; i++)
        buf_addc(&step, 'a');
    buf_adds(&step, "\"}");
    for (int i = 0; i < 4; i++)
        buf_addf(&norm, "%s%s", i ? "," : "{\"type\":\"Sequence\",\"normalizers\":[",
                 buf_str(&step));
    buf_adds(&norm, "]}");
    struct hf_make m = {.norm = buf_str(&norm), .pre = KIND("WhitespaceSplit"), .model = MODEL};
    T_OK(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    T_ERR(tok_encode(t, w, "b a", 3, &ids, &e), &e, ERR_DATA,
          "normalizer 4 of 4, Replace of \"a\",");
    T_OK(tok_encode(t, w, "b", 1, &ids, &e), &e);
    T_EQ(ids.n, 1);
    char *text = mem_new(LONG, 1); /* of which 64 for each would be 128 MiB */
    memset(text, 'a', LONG);
    T_ERR(tok_encode(t, w, text, LONG, &ids, &e), &e, ERR_DATA,
          "64 for each and 1 MiB are allowed, 96 MiB in all");
    free(text);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
    buf_finish(&step);
    buf_finish(&norm);
}

static void the_beginning_goes_with_what_stands_there(void)
{
    static const struct {
        const char *norm, *text, *want;
    } made[] = {
        {STRIP, "ab", "1 2 3"},
        {STRIP, " ab", "2 3"},
        {KIND("Nmt"),
         "\x01\x01"
         "ab",
         "2 3"},
        {KIND("StripAccents"), "\u0301ab", "2 3"},
        {KIND("NFD") "," KIND("StripAccents"), "\u00e1b", "1 2 3"},
        {BERT,
         "\x01"
         "ab",
         "2 3"},
        {REPLACE("a", ""), "ab", "3"},
        {REPLACE("a", ""), "bab", "1 3 3"},
        {REPLACE("a", "xc"), "ab", "1 5 4 3"},
        {REPLACE("ab", "x"), "abc", "5 4"},
        {REPLACE("ab", ""), "abc", "4"},
        {PREPEND("x") "," REPLACE("x", ""), "ab", "1 2 3"},
        {PREPEND("x") "," REPLACE("xa", "c"), "ab", "1 4 3"},
        {PREPEND("x") "," REPLACE("xa", ""), "ab", "3"},
        {PREPEND(" ") "," STRIP, "ab", "1 2 3"},
        {PREPEND(" ") "," STRIP, " ab", "2 3"},
        {KIND("NFC") "," REPLACE("\\u00e9", "e"), "e\u0301b", "1 6 3"},
        {KIND("NFD") "," REPLACE("a", ""), "\u00e1b", "1 0 3"},
        {KIND("NFD") "," REPLACE("a", ""), "a\u0301b", "0 3"},
        {KIND("NFKD") "," REPLACE("f", ""), "\ufb01b", "1 0 3"},
        {KIND("ByteLevel") "," REPLACE("\\u00c3\\u00a9", ""), "\u00e9b", "3"},
        {KIND("ByteLevel") "," REPLACE("\\u00c3", ""), "\u00e9b", "1 0 3"},
    };
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        gives_behind(made[i].norm, FIRST, made[i].text, made[i].want);
    gives_behind(KIND("NFKD"), KIND("WhitespaceSplit") "," FIRST, "ab ab", "1 2 3 2 3");
    gives_behind(KIND("NFD") "," REPLACE("\\u0301", "b"),
                 "{\"type\":\"Split\",\"pattern\":"
                 "{\"String\":\"a\"},\"behavior\":\"Removed\",\"invert\":false}," FIRST,
                 "\u00e1ab", "1 3 3");
}

static void rules_take_the_beginning_only_behind_a_character(void)
{
    static const char *const rule[][2] = {{"\u200b", ""}, {"e", "ac"}};
    struct buf raw = {0}, text = {0}, norm = {0};
    make_charsmap(&raw, rule, 2);
    base64_put(&text, raw.data, raw.len);
    buf_addf(&norm, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"%s\"},%s", buf_str(&text),
             REPLACE("x", ""));
    gives_behind(buf_str(&norm), FIRST,
                 "\u200b"
                 "ab",
                 "1 2 3");
    gives_behind(buf_str(&norm), FIRST,
                 "x\u200b"
                 "ab",
                 "2 3");
    gives_behind(buf_str(&norm), FIRST, "eb", "1 2 4 3");
    buf_finish(&raw);
    buf_finish(&text);
    buf_finish(&norm);
}

/* ---- texts that grow ------------------------------------------------------------------------- */

enum { GROWING = 200 << 10, THREADS = 4 };

struct grown {
    const struct tokenizer *t;
    const char *text;
    struct tok_ids ids;
    int code;
    struct err e;
};

static void *grow(void *arg)
{
    struct grown *g = arg;
    struct tok_work *w = tok_work_create(g->t);
    g->code = tok_encode(g->t, w, g->text, GROWING, &g->ids, &g->e);
    tok_work_destroy(w);
    return NULL;
}

/* The most memory that the process has had, in KiB; 0: unknown. */
static size_t memory_peak(void)
{
    char line[200];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "VmHWM: %zu", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* All bytes, and abc. */
static void put_model(struct buf *b)
{
    buf_adds(b,
             "{\"type\":\"BPE\",\"merges\":[\"a b\",\"ab c\"],\"vocab\":{\"ab\":256,\"abc\":257");
    for (int i = 0; i < 256; i++) {
        char letter[4];
        size_t n = letter_put(letter, (uint8_t)i);
        buf_addf(b, ",\"%s%.*s\":%d", i == '"' || i == '\\' ? "\\" : "", (int)n, letter, i);
    }
    buf_adds(b, "}}");
}

/* By threads side by side; appends the ids of the first. */
static void grow_together(const char *norm, enum tok_specials mode, struct tok_ids *ret)
{
    struct buf model = {0};
    put_model(&model);
    struct hf_make m = {.norm = norm, .pre = HF_LEVEL("false"), .model = buf_str(&model)};
    struct grown g[THREADS];
    pthread_t thread[THREADS];
    struct tokenizer *t;
    struct err e;
    char *text = mem_new(GROWING, 1);
    memset(text, 'a', GROWING);
    T_OK(hf_open(&m, mode, &t, &e), &e);
    for (int i = 0; i < THREADS; i++) {
        g[i] = (struct grown){.t = t, .text = text};
        T_EQ(pthread_create(&thread[i], NULL, grow, &g[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        T_OK(g[i].code, &g[i].e);
        T_EQ(g[i].ids.n, g[0].ids.n);
        T_MEM(g[i].ids.id, g[0].ids.id, g[0].ids.n * sizeof(*g[0].ids.id));
    }
    tok_ids_add(ret, g[0].ids.id, g[0].ids.n);
    for (int i = 0; i < THREADS; i++)
        tok_ids_finish(&g[i].ids);
    tok_close(t);
    free(text);
    buf_finish(&model);
}

/* 200 KiB become 12 MiB, by parts and in one piece. */
static void threads_share_the_memory_of_texts_that_grow(void)
{
    struct buf norm = {0};
    struct tok_ids parts = {0}, piece = {0};
    size_t before = memory_peak();
    buf_adds(&norm, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"");
    for (int i = 0; i < 20; i++)
        buf_adds(&norm, "abc");
    buf_adds(&norm, "\"}");
    grow_together(buf_str(&norm), TOK_SPECIALS_TEXT, &parts);
#ifndef __SANITIZE_ADDRESS__
    T_CHECK(memory_peak() - before < 160 << 10);
#endif
    grow_together(buf_str(&norm), TOK_SPECIALS_ERROR, &piece);
#ifndef __SANITIZE_ADDRESS__
    T_CHECK(memory_peak() - before < 256 << 10);
#endif
    T_EQ(parts.n, 20 * GROWING);
    T_EQ(piece.n, parts.n);
    T_MEM(piece.id, parts.id, parts.n * sizeof(*parts.id));
    tok_ids_finish(&parts);
    tok_ids_finish(&piece);
    buf_finish(&norm);
}

T_MAIN(T_CASE(normalizers_may_not_explode), T_CASE(threads_share_the_memory_of_texts_that_grow),
       T_CASE(the_beginning_goes_with_what_stands_there),
       T_CASE(rules_take_the_beginning_only_behind_a_character))
