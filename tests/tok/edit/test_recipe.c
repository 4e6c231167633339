/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/io/path.h"
#include "tests/tok/hf_make.h"
#include "tests/tok/make.h"
#include "tok/edit/recipe_bpe.h"
#include "tok/edit/recipe_edit.h"
#include "tok/edit/recipe_json.h"

static struct tokenizer *open_made(const struct hf_make *m, struct recipe *ret)
{
    struct tok_options o = {0};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(m, TOK_SPECIALS_TEXT, &t, &e), &e);
    T_OK(recipe_read(ret, t, &o, &e), &e);
    return t;
}

static void numbers_as_rust_writes_them(void)
{
    static const struct {
        double v;
        const char *text;
    } is[] = {{0, "0.0"},
              {-1.5, "-1.5"},
              {1e-5, "0.00001"},
              {1.5e-5, "0.000015"},
              {1e-6, "1e-6"},
              {-2.5e-7, "-2.5e-7"},
              {0.1, "0.1"},
              {-7.2089972496032715, "-7.2089972496032715"},
              {123456, "123456.0"},
              {1e300, "1e300"},
              {3, "3.0"}};
    for (size_t i = 0; i < sizeof(is) / sizeof(*is); i++) {
        struct buf b = {0};
        recipe_put_real(&b, is[i].v);
        T_STR(buf_str(&b), is[i].text);
        T_CHECK(strtod(buf_str(&b), NULL) == is[i].v);
        buf_finish(&b);
    }
}

static void a_file_is_written_as_it_was_read(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false"),
                        .norm = "{\"type\":\"NFC\"}",
                        .added = HF_TOKEN("<e>", ""),
                        .model = HF_BPE("\"unk_token\":\"<unk>\",\"fuse_unk\":true,")};
    struct recipe r;
    struct tokenizer *t = open_made(&m, &r);
    struct buf b = {0};
    struct json_doc *doc;
    struct err e;
    write_hf(&r, &b);
    T_OK(json_parse("written", b.data, b.len, &doc, &e), &e);
    const struct json *j = json_root(doc), *model = json_get(j, "model");
    T_STR(json_get(json_get(j, "normalizer"), "type")->string, "NFC");
    T_EQ(json_get(j, "added_tokens")->child[0].child[0].integer, 12);
    T_STR(json_get(model, "unk_token")->string, "<unk>");
    T_CHECK(json_get(model, "fuse_unk")->boolean && !json_get(model, "byte_fallback")->boolean);
    T_EQ(json_get(model, "vocab")->length, 12);
    T_EQ(json_get(model, "merges")->length, 5);
    T_STR(json_get(model, "merges")->child[2].child[0].string, "ab");
    json_close(doc);
    buf_finish(&b);
    recipe_finish(&r);
    tok_close(t);
}

struct walked {
    char text[64];
};

static void walk(void *arg, int32_t id)
{
    char *s = ((struct walked *)arg)->text;
    snprintf(s + strlen(s), 16, "%d ", id);
}

static void merging_is_followed(void)
{
    struct hf_make m = {.pre = HF_LEVEL("false")};
    struct recipe r;
    struct tokenizer *t = open_made(&m, &r);
    struct recipe_bpe *b = recipe_bpe_create(&r);
    struct walked w = {""};
    T_CHECK(recipe_bpe_walk(b, 6, walk, &w)); /* a b c: ab, abc */
    T_STR(w.text, "0 1 2 4 6 ");
    T_CHECK(recipe_bpe_reaches(b, 7));
    T_CHECK(!recipe_bpe_reaches(b, 8)); /* <unk> */
    T_CHECK(recipe_bpe_has(b, 4, 2) && !recipe_bpe_has(b, 2, 4));
    recipe_bpe_destroy(b);
    recipe_finish(&r);
    tok_close(t);
}

static void pruning_keeps_the_way(void)
{
    struct hf_make m = {.added = HF_TOKEN("<e>", "")};
    struct recipe r;
    struct recipe_rows w = {0};
    struct err e;
    struct tokenizer *t = open_made(&m, &r);
    uint64_t count[13] = {[6] = 1};
    T_OK(recipe_prune(&r, t, count, 0, &w, &e), &e);
    /* abc needs a, b, c and ab; <e> is special */
    static const int32_t left[] = {0, 1, 2, 4, 6, 12};
    T_EQ(w.n, 6);
    T_MEM(w.old, left, sizeof(left));
    T_EQ(r.nmerges, 2);
    T_EQ(r.merge[1].id, 4);
    T_EQ(r.token[0].id, 5);
    struct buf b = {0};
    recipe_rows_put(&w, &b);
    T_STR(buf_str(&b), "weft-rows 1 13 6\n0 0\n1 1\n2 2\n3 4\n4 6\n5 12\n");
    buf_finish(&b);
    recipe_rows_finish(&w);
    recipe_finish(&r);
    tok_close(t);
}

/* The ids of a model's pieces that prune keeps when only `used` is used. */
static void prune_model(const struct buf *model, int64_t used, const char *left)
{
    struct tok_options o = {.path = t_path("made.model")};
    struct tokenizer *t;
    struct recipe r;
    struct recipe_rows w = {0};
    struct buf got = {0};
    struct err e;
    uint64_t count[16] = {0};
    count[used] = 1;
    T_OK(file_replace(o.path, model->data, model->len, &e), &e);
    T_OK(tok_open(&o, &t, &e), &e);
    T_OK(recipe_read(&r, t, &o, &e), &e);
    T_OK(recipe_prune(&r, t, count, 0, &w, &e), &e);
    for (size_t i = 0; i < w.n; i++)
        buf_addf(&got, "%d ", w.old[i]);
    T_STR(buf_str(&got), left);
    buf_finish(&got);
    recipe_rows_finish(&w);
    recipe_finish(&r);
    tok_close(t);
}

static void pruning_keeps_what_characters_without_pieces_become(void)
{
    static const struct {
        const char *text;
        float score;
        int type;
    } piece[] = {{"<unk>", 0, SP_UNKNOWN}, {"xy", -1, SP_NORMAL}, {"yz", -2, SP_NORMAL},
                 {"xyz", -3, SP_NORMAL},   {"ab", -4, SP_UNUSED}, {"abcd", -5, SP_UNUSED},
                 {"tz", -1, SP_NORMAL},    {"zt", -1, SP_NORMAL}, {"ztz", -1, SP_NORMAL}};
    struct buf b = {0};
    for (size_t i = 0; i < sizeof(piece) / sizeof(*piece); i++)
        make_piece(&b, piece[i].text, piece[i].score, piece[i].type);
    make_trainer(&b, SP_BPE, false);
    make_normalizer(&b, NULL, 0);
    prune_model(&b, 3, "0 1 3 4 "); /* xy, z; a and b are merged and split again, c d never */
    prune_model(&b, 8, "0 4 7 8 "); /* of equal scores the leftmost */
    buf_finish(&b);
}

static void pruning_keeps_the_scores_that_others_follow_from(void)
{
    for (int user = 0; user < 2; user++) {
        struct buf b = {0};
        make_piece(&b, "<unk>", 0, SP_UNKNOWN);
        make_piece(&b, "a", -1, SP_NORMAL);
        make_piece(&b, "b", -9, SP_NORMAL);
        make_piece(&b, "c", -2, SP_NORMAL);
        make_piece(&b, "d", -3, SP_NORMAL);
        make_piece(&b, "<u>", 0, user ? SP_USER : SP_CONTROL);
        make_trainer(&b, SP_UNIGRAM, false);
        make_normalizer(&b, NULL, 0);
        prune_model(&b, 4, user ? "0 1 2 4 5 " : "0 2 4 5 ");
        buf_finish(&b);
    }
}

static void tokens_behind_holes_keep_their_ids(void)
{
    struct hf_make m = {.model = "{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":5},"
                                 "\"unk_token\":\"a\"}",
                        .pre = "{\"type\":\"Whitespace\"}"};
    static const char *const text[] = {"<x>", "b"};
    struct recipe r;
    struct recipe_rows w = {0};
    struct err e;
    struct tokenizer *t = open_made(&m, &r);
    T_OK(recipe_extend(&r, t, text, 2, 1, &w, &e), &e);
    T_EQ(w.n, 7);
    T_EQ(r.npieces, 7); /* moved into the pieces, otherwise it would be 2 */
    T_STR(r.piece[6].text, "<x>");
    T_EQ(r.ntokens, 2);
    T_CHECK(r.token[1].special && !r.token[0].special && r.token[0].id == 5);
    recipe_rows_finish(&w);
    recipe_finish(&r);
    tok_close(t);
}

static int refuse(void *arg, const struct recipe_file *staged, size_t n, struct err *e)
{
    struct buf b;
    T_EQ(n, 2);
    T_OK(file_read(staged[1].path, 100, &b, e), e);
    T_STR(buf_str(&b), "two");
    buf_finish(&b);
    return *(bool *)arg ? err_set(e, ERR_INTEGRITY, "no") : 0;
}

static void files_appear_together_or_not_at_all(void)
{
    struct recipe_file f[2] = {{.path = strdup(t_path("one"))}, {.path = strdup(t_path("two"))}};
    struct err e;
    bool no = true;
    buf_adds(&f[0].content, "one");
    buf_adds(&f[1].content, "two");
    T_EQ(recipe_save(f, 2, refuse, &no, &e), ERR_INTEGRITY);
    T_CHECK(!file_exists(t_path("one")) && !file_exists(t_path("two")));
    no = false;
    T_OK(recipe_save(f, 2, refuse, &no, &e), &e);
    T_CHECK(file_exists(t_path("one")) && file_exists(t_path("two")));
    recipe_files_finish(f, 2);
}

T_MAIN(T_CASE(numbers_as_rust_writes_them), T_CASE(a_file_is_written_as_it_was_read),
       T_CASE(merging_is_followed), T_CASE(pruning_keeps_the_way),
       T_CASE(pruning_keeps_what_characters_without_pieces_become),
       T_CASE(pruning_keeps_the_scores_that_others_follow_from),
       T_CASE(tokens_behind_holes_keep_their_ids), T_CASE(files_appear_together_or_not_at_all))
