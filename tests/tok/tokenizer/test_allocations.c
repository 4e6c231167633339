/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/tok/hf_make.h"

/* Encoding and decoding allocate nothing once they are warm: counts calls of malloc and its
 * relatives. */

static size_t calls;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
    calls++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    calls++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    calls++;
    return __real_realloc(p, n);
}

static const char *const texts[] = {
    "a",
    "ab abc  bc a\n",
    "Abc, \u00e9\u00c9 e\u0301\u0323 \u6f22\u5b57 \ufb01 a\tb 12 a<s>b",
    "a b c ab bc abc abcabcabcabcabcabcabcabcabcabcabcabcabcabc \u3042\u3044\u3046 ab",
    "\xff bad \xe6\xbc bytes",
};

/* Encodes and decodes each text; returns the number of ids. */
static size_t round_trip(const struct tokenizer *t, struct tok_work *w, struct tok_ids *ids,
                         struct buf *text)
{
    struct err e;
    size_t n = 0;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        ids->n = 0;
        buf_reset(text);
        T_OK(tok_encode(t, w, texts[i], strlen(texts[i]), ids, &e), &e);
        T_OK(tok_decode(t, w, ids->id, ids->n, text, &e), &e);
        n += ids->n;
    }
    return n;
}

static void warm(const struct hf_make *m)
{
    struct tokenizer *t;
    struct err e;
    struct tok_ids ids = {0};
    struct buf text = {0};
    T_OK(hf_open(m, TOK_SPECIALS_PARSE, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    size_t n = round_trip(t, w, &ids, &text);
    T_EQ(round_trip(t, w, &ids, &text), n);
    size_t before = calls;
    T_CHECK(before > 0);
    T_EQ(round_trip(t, w, &ids, &text), n);
    T_EQ(calls - before, 0);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    buf_finish(&text);
    tok_close(t);
}

#define SPLIT                                                                                      \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":" \
    "false}"
#define META                                                                                       \
    "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"always\",\"split\":"  \
    "true}"
#define PIECES "\"vocab\":{\"[UNK]\":0,\"a\":1,\"b\":2,\"##b\":3,\"##c\":4,\"ab\":5,\"\u6f22\":6},"

static void byte_level(void)
{
    warm(&(struct hf_make){
        .added = HF_TOKEN("<s>", ""), .pre = HF_LEVEL("false"), .dec = HF_LEVEL("true")});
    warm(&(struct hf_make){
        .norm = "{\"type\":\"NFC\"}", .pre = HF_LEVEL("true"), .dec = HF_LEVEL("true")});
}

static void bert(void)
{
    warm(&(struct hf_make){
        .norm = "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
                "\"strip_accents\":null,\"lowercase\":true}",
        .pre = "{\"type\":\"BertPreTokenizer\"}",
        .post = "{\"type\":\"BertProcessing\",\"sep\":[\"a\",1],\"cls\":[\"b\",2]}",
        .dec = "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
        .model = "{\"type\":\"WordPiece\"," PIECES "\"unk_token\":\"[UNK]\","
                 "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100}",
    });
}

static void unigram(void)
{
    warm(&(struct hf_make){
        .norm = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"
                "\"StripAccents\"},{\"type\":\"Lowercase\"}]}",
        .pre = META,
        .dec = META,
        .model =
            "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"b\",-2],"
            "[\"\u2581\",-2.5],[\"\u2581ab\",-3],[\"bc\",-4]]}",
    });
}

static void pattern(void)
{
    warm(&(struct hf_make){.pre = SPLIT, .dec = "{\"type\":\"Fuse\"}"});
}

T_MAIN(T_CASE(byte_level), T_CASE(bert), T_CASE(unigram), T_CASE(pattern))
