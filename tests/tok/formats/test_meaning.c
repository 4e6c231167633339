/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/meaning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/letters.h"

/* What a tokenizer.json does, as text. */
static const char *meaning_of(const struct hf_make *m, char ret[TOK_MEANING])
{
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(m, TOK_SPECIALS_TEXT, &t, &e), &e);
    memcpy(ret, tok_info(t)->meaning, TOK_MEANING);
    tok_close(t);
    return ret;
}

/* The fields that are in both but differ, or in one alone. */
static const char *differing(const char *a, const char *b, struct buf *ret)
{
    const char *const side[] = {a, b};
    buf_reset(ret);
    for (int k = 0; k < 2; k++)
        for (const char *p = side[k]; *p; p += strcspn(p, " "), p += *p == ' ') {
            char field[64], name[64];
            int n = (int)strcspn(p, " "), m = (int)strcspn(p, "=");
            snprintf(field, sizeof(field), " %.*s ", n, p);
            snprintf(name, sizeof(name), "%.*s ", m, p);
            char *other = mem_printf(" %s ", side[!k]);
            if (!strstr(other, field) && !strstr(buf_str(ret), name))
                buf_adds(ret, name);
            free(other);
        }
    return buf_str(ret);
}

static void what_changes_no_ids_has_no_word(void)
{
    char plain[TOK_MEANING], got[TOK_MEANING];
    const struct hf_make was = {.pre = HF_LEVEL("false")};
    meaning_of(&was, plain);
    const struct hf_make same[] = {
        {.pre = HF_LEVEL("false"),
         .model = HF_BPE("\"byte_fallback\":false,\"ignore_merges\":false,\"dropout\":null,")},
        {.pre = HF_LEVEL("false"), .model = HF_BPE("\"byte_fallback\":true,")}, /* has no <0x00> */
        {.pre = HF_LEVEL("false"), .dec = "{\"type\":\"Fuse\"}"},
        {.pre = HF_LEVEL("false"), .post = HF_LEVEL("true")},
        {.pre = HF_LEVEL("false"),
         .norm = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\",\"strip_left\":"
                 "false,\"strip_right\":false}]}"},
        {.pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
                "\"Regex\":\"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| "
                "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Removed\","
                "\"invert\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                "\"trim_offsets\":true,\"use_regex\":false}]}"},
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        T_STR(meaning_of(&same[i], got), plain);
}

static void what_may_change_ids_is_named(void)
{
    static const struct {
        struct hf_make make;
        const char *field;
    } other[] = {
        {{.norm = "{\"type\":\"NFC\"}"}, "normalizer "},
        {{.pre = HF_LEVEL("true")}, "pre-tokenizer "},
        {{.model = HF_BPE("\"unk_token\":\"<unk>\",")}, "options "},
        {{.model = HF_BPE("\"ignore_merges\":true,")}, "entries options "},
        {{.model = HF_BPE("\"dropout\":0.5,")}, "options "},
        {{.model = "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"ab\":4,"
                   "\"\\u0120a\":5,\"abc\":6,\"bc\":7,\"<unk>\":8,\"\\u0120ab\":9,\"\\u00c3\":10,"
                   "\"\\u00a9\":11},\"merges\":[\"b c\",\"a b\",\"\\u0120 a\",\"ab c\",\"\\u0120a "
                   "b\"]}"},
         "merges "},
        {{.added = HF_TOKEN("<unk>", "")}, "added-tokens "},
        {{.added = HF_TOKEN("<more>", "")}, "size tokens added-tokens "},
        {{.post = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"a\","
                  "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{"
                  "\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\","
                  "\"type_id\":0}}],\"special_tokens\":{\"a\":{\"id\":\"a\",\"ids\":[0],"
                  "\"tokens\":[\"a\"]}}}"},
         "template "},
    };
    char plain[TOK_MEANING], got[TOK_MEANING];
    struct buf named = {0};
    meaning_of(&(struct hf_make){0}, plain);
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++) {
        const char *is = differing(plain, meaning_of(&other[i].make, got), &named);
        T_CHECK(strlen(is) == strlen(other[i].field));
        for (const char *p = other[i].field; *p; p += strcspn(p, " ") + 1) {
            char *name = mem_strndup(p, strcspn(p, " ") + 1);
            T_CHECK(strstr(is, name));
            free(name);
        }
    }
    buf_finish(&named);
}

/* The digests are in manifests and checkpoints: a weft that makes others for the same files would
 * not know its own data. */
static void the_text_stays_what_it_was(void)
{
    char got[TOK_MEANING];
    const struct hf_make m = {.norm = "{\"type\":\"NFC\"}",
                              .pre = HF_LEVEL("true"),
                              .added = HF_TOKEN("<unk>", ""),
                              .model = HF_BPE("\"dropout\":0.5,")};
    T_STR(meaning_of(&m, got),
          "model=BPE normalizer=024d0ad1c5f1b77d pre-tokenizer=e692df04a97f9f8c "
          "options=a3afe548a45fb2d6 merges=c3ed2fa88b515932 size=12 tokens=fcc51dddd6d5c732 "
          "added-tokens=daf8f01373083986 end-of-document=-1");
}

static void the_same_in_another_format_is_the_same(void)
{
    static const char pieces[] = "{\"ab\":0,\"\u0120a\":1,\"abc\":2}";
    static const char list[] = "#version: 0.2\na b\n\u0120 a\nab c\n";
    const char *vocab = t_path("vocab.json"), *merges = t_path("merges.txt");
    struct tok_options o = {.path = vocab, .type = TOK_GPT2_BPE};
    struct buf all = {0}, model = {0};
    char json[TOK_MEANING];
    struct tokenizer *t;
    struct err e;
    put_letters_vocab(&all, pieces, 3);
    buf_addf(&model,
             "{\"type\":\"BPE\",\"unk_token\":\"ab\",\"fuse_unk\":true,\"vocab\":%s,"
             "\"merges\":[\"a b\",\"\u0120 a\",\"ab c\"]}",
             buf_str(&all));
    T_OK(file_replace(vocab, all.data, all.len, &e), &e);
    T_OK(file_replace(merges, list, sizeof(list) - 1, &e), &e);
    T_OK(tok_open(&o, &t, &e), &e);
    const struct hf_make same = {.pre = HF_LEVEL("false"), .model = buf_str(&model)};
    T_STR(tok_info(t)->meaning, meaning_of(&same, json));
    T_CHECK(strcmp(tok_info(t)->digest, ""));
    tok_close(t);
    o.no_digest = true;
    T_OK(tok_open(&o, &t, &e), &e);
    T_STR(tok_info(t)->meaning, "");
    tok_close(t);
    buf_finish(&all);
    buf_finish(&model);
}

T_MAIN(T_CASE(what_changes_no_ids_has_no_word), T_CASE(what_may_change_ids_is_named),
       T_CASE(the_text_stays_what_it_was), T_CASE(the_same_in_another_format_is_the_same))
