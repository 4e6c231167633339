/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/tok/hf_make.h"

/* Expected offsets are those of Hugging Face's tokenizers 0.23.3 on the same file;
 * tests/interop/tok_offsets.py queries it for many more. */

static void places(const struct tokenizer *t, const char *text, enum tok_unit unit,
                   const char *want)
{
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0}, plain = {0};
    struct tok_ranges r = {0};
    struct buf b = {0};
    struct err e;
    T_OK(tok_encode_offsets(t, w, text, strlen(text), unit, &ids, &r, &e), &e);
    T_OK(tok_encode(t, w, text, strlen(text), &plain, &e), &e);
    T_EQ(ids.n, plain.n);
    T_EQ(r.n, plain.n);
    for (size_t i = 0; i < r.n && i < ids.n; i++) {
        T_EQ(ids.id[i], plain.id[i]);
        buf_addf(&b, "%s%zu-%zu", i ? " " : "", r.at[i].begin, r.at[i].end);
    }
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    tok_ranges_finish(&r);
    tok_ids_finish(&ids);
    tok_ids_finish(&plain);
    tok_work_destroy(w);
}

static struct tokenizer *open_made(const struct hf_make *m)
{
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(m, TOK_SPECIALS_PARSE, &t, &e), &e);
    return t;
}

static void of_characters_and_bytes(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false")};
    struct tokenizer *t = open_made(&m);
    places(t, "", TOK_CHARS, "");
    places(t, "abc a", TOK_CHARS, "0-3 3-5");
    /* a token with part of a character spans all of it */
    places(t, "\u00e9 a", TOK_CHARS, "0-1 0-1 1-3");
    places(t, "\u00e9 a", TOK_BYTES, "0-2 0-2 2-4");
    tok_close(t);
}

static void white_space_is_left_out(void)
{
    struct hf_make m = {.pre = HF_LEVEL("true"), .post = HF_LEVEL("false")};
    struct tokenizer *t = open_made(&m);
    places(t, "a  a", TOK_CHARS, "1-1 2-2 3-4");
    tok_close(t);
    m.post = HF_LEVEL("true");
    t = open_made(&m);
    places(t, "a  a", TOK_CHARS, "0-1 2-2 3-4"); /* the first space was prepended */
    places(t, "\u00e9 a", TOK_BYTES, "0-0 0-2 0-2 3-4");
    tok_close(t);
}

static void of_normalized_text(void)
{
    struct hf_make m = {.model = HF_BPE("\"unk_token\":\"<unk>\","), .norm = "{\"type\":\"NFD\"}"};
    struct tokenizer *t = open_made(&m);
    places(t, "\u00e9ab", TOK_CHARS, "0-1 0-1 1-3");
    tok_close(t);
    m.norm = "{\"type\":\"NFC\"}";
    t = open_made(&m);
    places(t, "e\u0301ab", TOK_CHARS, "0-1 2-4");
    tok_close(t);
    m.norm = "{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}";
    t = open_made(&m);
    places(t, "  ab x ", TOK_BYTES, "2-4 4-5 5-6");
    tok_close(t);
    m.norm = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"xyz\"},\"content\":\"ab\"}";
    t = open_made(&m);
    places(t, "cxyzb", TOK_BYTES, "0-1 3-4 4-5");
    tok_close(t);
}

static void of_added_tokens_and_templates(void)
{
    struct hf_make m = {
        .added = "{\"id\":0,\"content\":\"[M]\",\"single_word\":false,\"lstrip\":true,"
                 "\"rstrip\":false,\"normalized\":false,\"special\":true}",
        .post = "{\"type\":\"BertProcessing\",\"sep\":[\"[M]\",1],\"cls\":[\"[M]\",2]}",
        .model = HF_BPE("\"unk_token\":\"<unk>\",\"fuse_unk\":true,")};
    struct tokenizer *t = open_made(&m);
    places(t, "ab  [M]xyz", TOK_CHARS, "0-0 0-2 2-7 7-10 0-0");
    tok_close(t);
}

static void of_bytes_that_are_no_text(void)
{
    struct hf_make m = {.model = HF_BPE("\"unk_token\":\"<unk>\",")};
    struct tokenizer *t = open_made(&m);
    places(t, "ab\xff\xe3\x81z", TOK_CHARS, "0-2 2-3 3-4 4-5");
    places(t, "ab\xff\xe3\x81z", TOK_BYTES, "0-2 2-3 3-5 5-6");
    tok_close(t);
}

T_MAIN(T_CASE(of_characters_and_bytes), T_CASE(white_space_is_left_out), T_CASE(of_normalized_text),
       T_CASE(of_added_tokens_and_templates), T_CASE(of_bytes_that_are_no_text))
