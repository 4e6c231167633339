/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/piece.h"
#include "tok/inspect/token_bytes.h"

/* Expected ids are those of Hugging Face's tokenizers 0.23.3 on the same file. */

static void becomes(const struct tokenizer *t, const int32_t *id, size_t n, const char *want)
{
    struct tok_work *w = tok_work_create(t);
    struct buf b = {0};
    struct err e;
    T_OK(tok_decode(t, w, id, n, &b, &e), &e);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    tok_work_destroy(w);
}

static struct tokenizer *open_made(const struct hf_make *m, enum tok_specials mode)
{
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(m, mode, &t, &e), &e);
    return t;
}

static void bytes_are_merged(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false"), .dec = HF_LEVEL("false")};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    T_EQ(tok_info(t)->type, TOK_HUGGINGFACE);
    T_EQ(tok_info(t)->vocab_size, 12);
    T_EQ(tok_info(t)->eod, -1);
    T_PIECE(t, 9, "\u0120ab");
    T_EQ(tok_find(t, "abc"), 6);
    gives(t, "abc", "6");
    gives(t, "abcab", "6 4");
    gives(t, "a abc", "0 3 6");
    gives(t, " \u00e9", "3 10 11");
    gives(t, "xabcx", "6"); /* no unknown token: characters without a token are dropped */
    gives(t, "", "");
    becomes(t, (int32_t[]){6, 9, 10, 11}, 4, "abc ab\u00e9");
    becomes(t, (int32_t[]){10, 6}, 2, "\ufffdabc");
    tok_close(t);
    m.model = HF_BPE("\"ignore_merges\":true,");
    m.pre = HF_LEVEL("true");
    t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t, "ab ab", "9 9");
    tok_close(t);
}

static void unknown_characters(void)
{
    struct hf_make m = {.model = HF_BPE("\"unk_token\":\"<unk>\",\"fuse_unk\":true,")};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t, "xxabyz", "8 4 8");
    becomes(t, (int32_t[]){4, 8}, 2, "ab <unk>");
    tok_close(t);
    m.model = HF_BPE("\"unk_token\":\"<unk>\",");
    t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t, "xxabyz", "8 8 4 8 8");
    tok_close(t);
}

static void tokens_are_found(void)
{
    struct hf_make m = {
        .pre = HF_LEVEL("false"),
        .dec = HF_LEVEL("false"),
        .added = HF_TOKEN("<s>", "") "," HF_TOKEN("<s>x", "") "," HF_TOKEN(
            "abc", ",\"x\":0") ",{\"id\":1,\"content\":\"word\",\"single_word\":true,"
                               "\"lstrip\":true,\"rstrip\":true,\"normalized\":true,"
                               "\"special\":false}"};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    T_EQ(tok_info(t)->vocab_size, 15);
    gives(t, "a<s>b<s>xc", "0 12 1 13 2");
    gives(t, "abcab", "6 4");
    gives(t, "a  word \tb", "0 14 1");
    gives(t, "awordb", "4");
    gives(t, "word word", "14 14");
    tok_close(t);
    t = open_made(&m, TOK_SPECIALS_TEXT);
    gives(t, "a<s>b word", "0 1 14");
    tok_close(t);
    struct err e;
    struct tok_ids ids = {0};
    t = open_made(&m, TOK_SPECIALS_ERROR);
    struct tok_work *w = tok_work_create(t);
    T_ERR(tok_encode(t, w, "a<s>", 4, &ids, &e), &e, ERR_DATA, "special token");
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
}

#define SPECIAL(id) "{\"SpecialToken\":{\"id\":\"" id "\",\"type_id\":0}}"
#define TEXT(id) "{\"Sequence\":{\"id\":\"" id "\",\"type_id\":0}}"
#define TEMPLATE(single, pair)                                                                     \
    "{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair                     \
    "],\"special_tokens\":{\"X\":{\"id\":\"X\",\"ids\":[10],\"tokens\":[\"x\"]},"                  \
    "\"Y\":{\"id\":\"Y\",\"ids\":[11,9],\"tokens\":[\"y\",\"z\"]}}}"
#define SEQUENCE(a, b) "{\"type\":\"Sequence\",\"processors\":[" a "," b "]}"

/* The template's text is different text to the post-processor after it. */
static void processors_in_a_row(void)
{
    static const char *const is[][2] = {
        {TEMPLATE(SPECIAL("Y") "," TEXT("A") "," SPECIAL("X"), ""), "11 9 4 10"},
        {SEQUENCE(TEMPLATE(SPECIAL("X") "," TEXT("A"), ""),
                  TEMPLATE("", SPECIAL("Y") "," TEXT("B") "," TEXT("A"))),
         "11 9 4 10"},
        {SEQUENCE(TEMPLATE(SPECIAL("X") "," TEXT("A"), ""),
                  "{\"type\":\"BertProcessing\",\"sep\":[\"s\",8],\"cls\":[\"c\",7]}"),
         "7 10 8 4 8"},
        {SEQUENCE(TEMPLATE(TEXT("A") "," SPECIAL("Y"), ""),
                  "{\"type\":\"RobertaProcessing\",\"sep\":[\"s\",8],\"cls\":[\"c\",7],"
                  "\"trim_offsets\":true,\"add_prefix_space\":true}"),
         "7 4 8 8 11 9 8"},
        {SEQUENCE("{\"type\":\"BertProcessing\",\"sep\":[\"s\",8],\"cls\":[\"c\",7]}",
                  TEMPLATE(SPECIAL("X") "," TEXT("A"), "")),
         "10 7 4 8"},
    };
    for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
        struct hf_make m = {.post = is[i][0]};
        struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
        gives(t, "ab", is[i][1]);
        tok_close(t);
    }
    struct hf_make m = {.post = SEQUENCE(TEMPLATE(SPECIAL("X") "," TEXT("A"), ""),
                                         TEMPLATE(TEXT("A"), SPECIAL("Y") "," TEXT("A")))};
    struct tokenizer *t;
    struct err e;
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "pair is not a template with the");
    m.post = TEMPLATE(TEXT("B"), "");
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "a template of one text");
    m.post = SEQUENCE(TEMPLATE(SPECIAL("X") "," TEXT("A") "," SPECIAL("X"), ""),
                      TEMPLATE(TEXT("A"), TEXT("A")));
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "after one of 3 parts");
}

/* It is needed where no token of several characters gives a better path. */
static void no_unknown_piece(void)
{
    struct hf_make m = {.model = "{\"type\":\"Unigram\",\"unk_id\":null,\"byte_fallback\":false,"
                                 "\"vocab\":[[\"a\",-1.0],[\"ab\",-2.0],[\"<unk>\",-3.0]]}"};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    struct tok_ids ids = {0};
    struct tok_work *w = tok_work_create(t);
    struct err e;
    gives(t, "aab", "0 1");
    T_ERR(tok_encode(t, w, "ba", 2, &ids, &e), &e, ERR_DATA, "needs the unknown token");
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
}

static void refused_at(const struct tokenizer *t, const char *text, const char *place)
{
    struct err e;
    struct tok_ids ids = {0};
    struct tok_work *w = tok_work_create(t);
    T_ERR(tok_encode(t, w, text, strlen(text), &ids, &e), &e, ERR_DATA, place);
    T_EQ(ids.n, 0);
    T_EQ(tok_work_specials(w), 0);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
}

#define NORMALIZED(text)                                                                           \
    "{\"id\":0,\"content\":\"" text "\",\"single_word\":false,\"lstrip\":false,"                   \
    "\"rstrip\":false,\"normalized\":true,\"special\":true}"

/* The position in raw text, whatever normalizing and replacing invalid bytes make of it before. */
static void special_strings_are_refused_where_they_stand(void)
{
    static const char *const pre[] = {
        HF_LEVEL("false"), "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":"
                           "\"never\",\"split\":true}"};
    for (size_t i = 0; i < 2; i++) {
        struct hf_make m = {.pre = pre[i],
                            .norm = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},"
                                    "{\"type\":\"Lowercase\"}]}",
                            .added = HF_TOKEN("<s>", "") "," NORMALIZED("<end>"),
                            .model = HF_BPE("\"unk_token\":\"<unk>\",")};
        struct tokenizer *t = open_made(&m, TOK_SPECIALS_ERROR);
        refused_at(t, "ab<s>", "byte 2 of the text: the string of the special token '<s>'");
        refused_at(t, "a\xff\xff\xe3\x80 c<s><END>",
                   "byte 7 of the text: the string of the "
                   "special token '<s>'");
        refused_at(t, "<END>", "byte 0 of the text: the string of the special token '<end>'");
        refused_at(t, "ABC ab \xef\xac\x81\xe3\x8c\x96 c\xff <END> c <eNd>",
                   "byte 17 of the text: the string of the special token '<end>'");
        refused_at(t,
                   "a b <e\xef\xbd\x8e"
                   "d>b<s>",
                   "byte 4 of the text: the string of the special token '<end>'");
        tok_close(t);
    }
}

static void templates_go_round(void)
{
    struct hf_make m = {
        .pre = HF_LEVEL("false"),
        .post = "{\"type\":\"Sequence\",\"processors\":[" HF_LEVEL(
            "false") ","
                     "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>"
                     "\","
                     "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{"
                     "\"SpecialToken\":"
                     "{\"id\":\"</"
                     "s>\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{\"<s>\":{\"id\":"
                     "\"<s>\",\"ids\":[1,2],\"tokens\":[\"b\",\"c\"]},\"</s>\":{\"id\":\"</s>\","
                     "\"ids\":[7],\"tokens\":[\"bc\"]}}}]}"};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t, "ab", "1 2 4 7");
    gives(t, "", "1 2 7");
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct err e;
    T_OK(tok_encode_part(t, w, "a", 1, false, &ids, &e), &e);
    T_OK(tok_encode_part(t, w, "b", 1, true, &ids, &e), &e);
    T_EQ(ids.n, 4);
    T_MEM(ids.id, ((int32_t[]){1, 2, 4, 7}), 16);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
    struct tok_options o = {.path = t_dir(), .no_template = true}; /* the folder */
    T_OK(tok_open(&o, &t, &e), &e);
    gives(t, "ab", "4");
    tok_close(t);
}

static void invalid_bytes_are_replaced(void)
{
    struct hf_make m = {.model = HF_BPE("\"unk_token\":\"<unk>\",")};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t,
          "a\xff"
          "b\xe3\x81"
          "c",
          "0 8 1 8 2");
    tok_close(t);
}

static void refused(const struct hf_make *m, const char *words)
{
    struct tokenizer *t;
    struct err e;
    T_ERR(hf_open(m, TOK_SPECIALS_TEXT, &t, &e), &e, ERR_DATA, words);
    T_CHECK(strstr(e.msg, "tokenizer.json"));
}

static void bad_files_are_refused(void)
{
#define BPE(vocab, merges)                                                                         \
    &(struct hf_make){.model = "{\"type\":\"BPE\",\"vocab\":" vocab ",\"merges\":" merges "}"}
    refused(BPE("{\"a\":0,\"b\":0}", "[]"), "same id 0");
    refused(BPE("{\"a\":0,\"a\":1}", "[]"), "twice");
    refused(BPE("{\"a\":-1}", "[]"), "id -1, but ids are 0 to 0");
    refused(BPE("{\"a\":4000000000}", "[]"), "id 4000000000 is out of range");
    refused(BPE("{\"a\":2000000}", "[]"), "far above the number");
    refused(BPE("{\"a\":\"x\"}", "[]"), "is not an integer");
    refused(BPE("{\"a\":0}", "[\"a b\"]"), "merge 0 has \"b\"");
    refused(BPE("{\"a\":0}", "[\"a a\"]"), "merge 0 has \"aa\"");
    refused(BPE("{\"a\":0}", "[\"a a a\"]"), "not two pieces");
    refused(BPE("{\"a\":0}", "[\"a\"]"), "not two pieces");
    refused(BPE("{\"a\":0}", "[[\"a\"]]"), "second half");
    refused(BPE("{\"a\":0}", "{}"), "an array of merges");
    refused(BPE("[]", "[]"), "model.vocab is not an object");
#undef BPE
#define PART(part, text, words) refused(&(struct hf_make){.part = text}, words)
    PART(model, "{\"type\":\"Maze\",\"vocab\":{}}", "unknown model \"Maze\"");
    PART(model, "{\"type\":\"BPE\",\"vocab\":{}}", "model.merges is not there");
    PART(model, HF_BPE("\"dropout\":1.5,"), "model.dropout is not a number from 0 to 1");
    PART(model, HF_BPE("\"dropout\":\"x\","), "model.dropout is not a number");
    PART(norm, "{\"type\":\"Spell\"}", "normalizer: unknown normalizer \"Spell\"");
    PART(norm, "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{}]}",
         "normalizer.normalizers[1].type is not a string");
    PART(pre, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"X\"}]}",
         "pre_tokenizer.pretokenizers[0]: unknown pre-tokenizer \"X\"");
    PART(pre, "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{}}", "pattern");
    PART(pre, "{\"type\":\"Split\",\"behavior\":\"Odd\",\"pattern\":{\"String\":\"a\"}}",
         "behavior is not one of");
    PART(pre, "{\"type\":\"Metaspace\",\"replacement\":\"ab\"}", "one character");
    PART(dec, "{\"type\":\"Guess\"}", "decoder: unknown decoder \"Guess\"");
    PART(post, "{\"type\":\"Guess\"}", "post_processor: unknown post-processor \"Guess\"");
    PART(post, "{\"type\":\"TemplateProcessing\",\"single\":[]}", "the text in it once");
    PART(added, "{\"id\":1}", "added_tokens[0].content");
    PART(norm, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AA==\"}",
         "normalizer: the normalizer's rules");
#undef PART
}

static void like_normalized_tokens_are_refused(void)
{
    struct hf_make m = {.norm = "{\"type\":\"Lowercase\"}",
                        .added = "{\"content\":\"X\",\"normalized\":true},"
                                 "{\"content\":\"x\",\"normalized\":true}"};
    refused(&m, "both \"x\" once normalized");
}

static void merges_are_dropped(void)
{
    const char *path = t_path("tokenizer.json");
    struct hf_make m = {.pre = HF_LEVEL("false"),
                        .model = HF_BPE("\"dropout\":1.0,\"ignore_merges\":true,")};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    struct err e;
    gives(t, "abc ab", "0 1 2 3 0 1");
    tok_close(t);
    struct tok_options o = {.path = path, .dropout = -1};
    T_OK(tok_open(&o, &t, &e), &e);
    gives(t, "abc ab", "6 9");
    tok_close(t);
    size_t whole = 0, n = 400; /* "ab" stays whole unless its only merge is dropped */
    for (size_t seed = 0; seed < n; seed++) {
        struct tok_ids ids = {0};
        o = (struct tok_options){.path = path, .dropout = 0.25, .seed = seed};
        T_OK(tok_open(&o, &t, &e), &e);
        struct tok_work *w = tok_work_create(t);
        T_OK(tok_encode(t, w, "ab", 2, &ids, &e), &e);
        whole += ids.n == 1;
        ids.n = 0;
        T_OK(tok_encode(t, w, "abcabcabc", 9, &ids, &e), &e);
        size_t first = ids.n;
        T_OK(tok_encode(t, w, "abcabcabc", 9, &ids, &e), &e);
        T_EQ(ids.n, 2 * first);
        T_MEM(ids.id, ids.id + first, first * sizeof(*ids.id));
        tok_ids_finish(&ids);
        tok_work_destroy(w);
        tok_close(t);
    }
    T_CHECK(whole > n * 65 / 100 && whole < n * 85 / 100);
    m.model = "{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}";
    t = open_made(&m, TOK_SPECIALS_PARSE);
    tok_close(t);
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "no merges to drop");
}

static void scripts_are_parted(void)
{
    struct hf_make m = {.pre = "{\"type\":\"UnicodeScripts\"}",
                        .model = "{\"type\":\"WordLevel\",\"unk_token\":\"<unk>\",\"vocab\":"
                                 "{\"<unk>\":0,\"ab \":1,\"\u304b\u6f22\":2,\"\u03b1\":3}}"};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    gives(t, "  ab \u304b\u6f22\u03b1", "1 2 3"); /* blanks before the first script are dropped */
    gives(t, "  ", "");
    gives(t, "1ab ", "0 1");
    tok_close(t);
}

static void too_many_parts_are_refused(void)
{
    struct tokenizer *t;
    struct err e;
    struct buf b = {0};
    buf_adds(&b, "{\"model\":{},\"normalizer\":[");
    for (int i = 0; i < 600000; i++)
        buf_adds(&b, "1,");
    buf_adds(&b, "1]}");
    T_ERR(hf_open_text(b.data, b.len, TOK_SPECIALS_TEXT, &t, &e), &e, ERR_DATA,
          "tokenizer.json: normalizer has 1200003 JSON tokens");
    b.len--;
    b.data[b.len - 1] = ',';
    for (int i = 600000; i < 17000000; i++)
        buf_adds(&b, "1,");
    buf_adds(&b, "1]}");
    T_ERR(hf_open_text(b.data, b.len, TOK_SPECIALS_TEXT, &t, &e), &e, ERR_DATA,
          "more than any tokenizer");
    buf_finish(&b);
}

static void deep_and_cut_files_are_refused(void)
{
    struct tokenizer *t;
    struct err e;
    struct buf b = {0};
    buf_adds(&b, "{\"model\":{\"vocab\":");
    for (int i = 0; i < 100000; i++)
        buf_addc(&b, '[');
    T_ERR(hf_open_text(b.data, b.len, TOK_SPECIALS_TEXT, &t, &e), &e, ERR_DATA, "tokenizer.json");
    buf_reset(&b);
    struct hf_make m = {.pre = HF_LEVEL("false"), .added = HF_TOKEN("<s>", "")};
    hf_text(&b, &m);
    for (size_t n = 200; n < b.len; n += 7) { /* after {"model":{, so that it is recognised */
        int code = hf_open_text(b.data, n, TOK_SPECIALS_TEXT, &t, &e);
        T_CHECK(code == ERR_DATA);
    }
    buf_finish(&b);
}

/* One pre-token, many times: each path as often as its score says. */
static void unigram_at_random(void)
{
    struct hf_make m = {
        .pre = "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"never\","
               "\"split\":true}",
        .model =
            "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"b\",-2],"
            "[\"ab\",-2.5],[\"ba\",-4],[\"c\",-3]]}"};
    /* "abac" as 1 2 1 5, 3 1 5, 1 4 5; "?" is unknown, and two of them are one */
    static const char *const way[] = {"1 2 1 5 0", "3 1 5 0", "1 4 5 0"};
    double score[] = {-7, -6.5, -8}, share[3], all = 0, alpha = 0.8, chi = 0;
    size_t seen[3] = {0}, draws = 20000;
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    tok_close(t);
    const char *path = t_path("tokenizer.json");
    struct tok_options o = {.path = path, .sample = true, .alpha = alpha, .nbest = -1, .seed = 4};
    T_OK(tok_open(&o, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    for (uint64_t i = 0; i < draws; i++) {
        struct buf b = {0};
        ids.n = 0;
        tok_work_number(w, i);
        T_OK(tok_encode(t, w, "abac??", 6, &ids, &e), &e);
        for (size_t k = 0; k < ids.n; k++)
            buf_addf(&b, "%s%d", k ? " " : "", ids.id[k]);
        for (size_t k = 0; k < 3; k++)
            seen[k] += strcmp(buf_str(&b), way[k]) == 0;
        buf_finish(&b);
    }
    T_EQ(seen[0] + seen[1] + seen[2], draws);
    for (size_t k = 0; k < 3; k++)
        all += share[k] = exp(alpha * score[k]);
    for (size_t k = 0; k < 3; k++) {
        double want = (double)draws * share[k] / all, off = (double)seen[k] - want;
        chi += off * off / want;
    }
    T_CHECK(chi < 14);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
    o.nbest = 5;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "cannot sample from its n best");
}

/* The letter of a byte that the vocabulary lacks falls back to two bytes. */
static void letters_fall_back_to_their_bytes(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false"),
                        .model = "{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,"
                                 "\"<0xC4>\":1,\"<0x81>\":2},\"merges\":[]}"};
    enum { LONG = 20000 };
    struct tokenizer *t;
    struct tok_ids ids = {0};
    struct err e;
    char *text = mem_new(LONG, 1);
    memset(text, 1, LONG);
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    gives(t, "a\x01", "0 1 2");
    T_OK(tok_encode(t, w, text, LONG, &ids, &e), &e);
    T_EQ(ids.n, 2 * LONG);
    for (size_t i = 0; i < ids.n; i++)
        T_EQ(ids.id[i], 1 + i % 2);
    free(text);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void put_beside(const char *name, const char *text)
{
    struct err e;
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
}

/* In the order of the decoder's ids, then by role; nothing if the file has another name. */
static void files_beside_add_tokens(void)
{
    struct hf_make m = {.added = HF_TOKEN("<s>", "")};
    struct tokenizer *t;
    struct err e;
    put_beside(
        "tokenizer_config.json",
        "{\"added_tokens_decoder\":{\"30\":{\"content\":\"<y>\"},\"4\":{\"content\":\"<x>\"}},"
        "\"eos_token\":\"<e>\",\"bos_token\":{\"content\":\"<s>\"},"
        "\"additional_special_tokens\":[\"<e>\",\"<z>\"]}");
    put_beside("added_tokens.json", "{\"<unseen>\":12}");
    T_OK(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e);
    gives(t, "<s>ab<y><e><z><x>", "12 4 14 15 16 13");
    T_EQ(tok_info(t)->vocab_size, 17);
    T_EQ(tok_info(t)->eod, 15);
    tok_close(t);
    put_beside("tokenizer_config.json", "{\"eos_token\":\"<e>\"}");
    put_beside("special_tokens_map.json", "{\"eos_token\":{\"content\":\"<f>\"}}");
    put_beside("added_tokens.json", "{\"<v>\":14,\"<u>\":13}");
    T_OK(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e);
    gives(t, "<f><v><u><e>", "15 14 13"); /* the map takes precedence */
    T_EQ(tok_info(t)->eod, 15);
    tok_close(t);
    put_beside("added_tokens.json", "{\"<v>\":[]}");
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "\"<v>\" has no id");
    put_beside("tokenizer_config.json", "{\"added_tokens_decoder\":{\"x\":{\"content\":\"a\"}}}");
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "\"x\" is not an id with a token");
    put_beside("tokenizer_config.json", "{");
    T_ERR(hf_open(&m, TOK_SPECIALS_PARSE, &t, &e), &e, ERR_DATA, "tokenizer_config.json");
    static const char *const name[] = {"tokenizer_config.json", "special_tokens_map.json",
                                       "added_tokens.json"};
    for (int i = 0; i < 3; i++)
        remove(t_path(name[i]));
}

static void pieces_with_a_nul(void)
{
    struct hf_make m = {.added = HF_TOKEN("x\\u0000y", ""),
                        .model = "{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,"
                                 "\"a\\u0000b\":1,\"\\u0000\":2}}"};
    struct tokenizer *t = open_made(&m, TOK_SPECIALS_PARSE);
    struct token_bytes s;
    size_t n;
    T_PIECE(t, 0, "a");
    T_PIECE(t, 1, "a\0b");
    T_PIECE(t, 2, "\0");
    T_PIECE(t, 3, "x\0y");
    token_bytes_init(&s, t);
    T_MEM(token_bytes_of(&s, 1, &n), "a\0b", 3);
    T_EQ(n, 3);
    token_bytes_finish(&s);
    tok_close(t);
}

T_MAIN(T_CASE(files_beside_add_tokens), T_CASE(letters_fall_back_to_their_bytes),
       T_CASE(unigram_at_random), T_CASE(bytes_are_merged), T_CASE(unknown_characters),
       T_CASE(tokens_are_found), T_CASE(processors_in_a_row), T_CASE(no_unknown_piece),
       T_CASE(special_strings_are_refused_where_they_stand), T_CASE(templates_go_round),
       T_CASE(invalid_bytes_are_replaced), T_CASE(bad_files_are_refused),
       T_CASE(like_normalized_tokens_are_refused), T_CASE(merges_are_dropped),
       T_CASE(scripts_are_parted), T_CASE(too_many_parts_are_refused),
       T_CASE(deep_and_cut_files_are_refused), T_CASE(pieces_with_a_nul))
