/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tests/tok/piece.h"
#include "tok/tokenizer/tokenizer.h"

/* A model over a to e, with <EOD> as a user-defined piece or not at all. */
static const char *write_model(bool eod)
{
    struct err e;
    struct buf b = {0};
    const char *path = t_path(eod ? "eod.model" : "plain.model");
    make_pieces(&b);
    if (eod)
        make_piece(&b, "<EOD>", 0, SP_USER);
    make_trainer(&b, SP_UNIGRAM, false);
    make_normalizer(&b, NULL, 0);
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    buf_finish(&b);
    return path;
}

static struct tokenizer *open_sp(const char *path, enum tok_type type, enum tok_specials mode)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.type = type, .path = path, .specials = mode};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

static void encode(const struct tokenizer *t, struct tok_work *w, const char *text,
                   const char *want)
{
    struct err e;
    struct tok_ids ids = {0};
    struct buf got = {0};
    T_OK(tok_encode(t, w, text, strlen(text), &ids, &e), &e);
    for (size_t i = 0, n; i < ids.n; i++)
        buf_addf(&got, "%s%s", i ? " " : "", tok_piece(t, ids.id[i], &n));
    T_STR(buf_str(&got), want);
    buf_finish(&got);
    tok_ids_finish(&ids);
}

#define SP "\xe2\x96\x81"

static void the_type_follows_the_piece(void)
{
    struct tokenizer *t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_TEXT);
    T_EQ(tok_info(t)->type, TOK_SENTENCEPIECE);
    tok_close(t);
    t = open_sp(write_model(false), TOK_AUTO, TOK_SPECIALS_TEXT);
    T_EQ(tok_info(t)->type, TOK_GPT_SENTENCEPIECE);
    tok_close(t);
}

/* Megatron's order: <CLS> <SEP> <EOD> <MASK>, pad, bos, eos; what the model has keeps its id. */
static void megatron_adds_what_is_missing(void)
{
    struct tokenizer *t = open_sp(write_model(false), TOK_SENTENCEPIECE, TOK_SPECIALS_TEXT);
    const struct tok_info *i = tok_info(t);
    T_EQ(i->vocab_size, 14 + 5);
    T_EQ(tok_find(t, "<CLS>"), 14);
    T_EQ(tok_find(t, "<SEP>"), 15);
    T_EQ(i->eod, 16);
    T_STR(i->eod_piece, "<EOD>");
    T_EQ(tok_find(t, "<MASK>"), 17);
    T_EQ(i->pad, 18);
    T_PIECE(t, 18, "<PAD>");
    T_EQ(i->bos, 1);
    T_EQ(i->eos, 2);
    T_EQ(i->unk, 0);
    T_PIECE(t, 19, "");
    tok_close(t);
    t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_TEXT);
    T_EQ(tok_info(t)->eod, 14);
    T_EQ(tok_info(t)->vocab_size, 15 + 4);
    tok_close(t);
}

static void gpt_is_the_bare_model(void)
{
    struct tokenizer *t = open_sp(write_model(true), TOK_GPT_SENTENCEPIECE, TOK_SPECIALS_TEXT);
    T_EQ(tok_info(t)->vocab_size, 15);
    T_EQ(tok_info(t)->eod, 2);
    T_STR(tok_info(t)->eod_piece, "</s>");
    T_EQ(tok_info(t)->pad, -1);
    tok_close(t);
    struct err e;
    struct tok_options o = {.path = write_model(true), .eod_token = "nothing"};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "no piece 'nothing'");
    o.eod_token = "c";
    T_OK(tok_open(&o, &t, &e), &e);
    T_PIECE(t, tok_info(t)->eod, "c");
    tok_close(t);
}

static void special_strings_are_text_by_default(void)
{
    struct tokenizer *t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_TEXT);
    struct tok_work *w = tok_work_create(t);
    encode(t, w, "ab<MASK>c<EOD>d<s>", SP "a b <unk> c <EOD> d <unk>");
    T_EQ(tok_work_specials(w), 2); /* <MASK> and <s>; <EOD> is user-defined and matches anyway */
    T_EQ(tok_work_matched(w), 1);
    tok_work_destroy(w);
    tok_close(t);
}

/* As in Megatron, every part between specials is a text of its own, with its own dummy space. */
static void special_strings_are_parsed_on_demand(void)
{
    struct tokenizer *t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_PARSE);
    struct tok_work *w = tok_work_create(t);
    encode(t, w, "ab<MASK>c<EOD><s>", SP "a b <MASK> " SP "c <EOD> <s>");
    encode(t, w, "<CLS>", "<CLS>");
    T_EQ(tok_work_specials(w), 0);
    tok_work_destroy(w);
    tok_close(t);
}

static void special_strings_are_errors_on_demand(void)
{
    struct err e;
    struct tok_ids ids = {0};
    struct tokenizer *t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_ERROR);
    struct tok_work *w = tok_work_create(t);
    T_ERR(tok_encode(t, w, "ab<EOD>", 7, &ids, &e), &e, ERR_DATA, "byte 2 of the text");
    T_EQ(ids.n, 0);
    T_OK(tok_encode(t, w, "ab<EO", 5, &ids, &e), &e);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void bytes_that_are_no_utf8_are_counted(void)
{
    struct tokenizer *t = open_sp(write_model(true), TOK_AUTO, TOK_SPECIALS_TEXT);
    struct tok_work *w = tok_work_create(t);
    encode(t, w,
           "a\xff"
           "b",
           SP "a <unk> b");
    encode(t, w, "\xe2\x96 aaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9",
           SP " <unk> " SP "a a a a a a a a a a a a a a a a a "
              "a a a a a a a a a a <unk>");
    T_EQ(tok_work_invalid(w), 3);
    tok_work_destroy(w);
    tok_close(t);
}

static void decoding_spells_added_pieces(void)
{
    struct err e;
    struct buf text = {0};
    struct tokenizer *t = open_sp(write_model(false), TOK_SENTENCEPIECE, TOK_SPECIALS_TEXT);
    struct tok_work *w = tok_work_create(t);
    int32_t id[] = {4, 5, 1, 16, 6, 7};
    T_OK(tok_decode(t, w, id, 6, &text, &e), &e);
    T_STR(buf_str(&text), "ab<EOD>b"
                          "c");
    T_OK(tok_decode(t, w, id, 0, &text, &e), &e);
    id[0] = 19;
    T_ERR(tok_decode(t, w, id, 6, &text, &e), &e, ERR_DATA, "id 19 is outside");
    buf_finish(&text);
    tok_work_destroy(w);
    tok_close(t);
}

static void digest_is_of_the_file(void)
{
    struct err e;
    const char *path = write_model(true);
    char digest[SHA_TEXT];
    struct tokenizer *t = open_sp(path, TOK_AUTO, TOK_SPECIALS_TEXT);
    T_OK(sha_file(path, digest, &e), &e);
    T_STR(tok_info(t)->digest, digest);
    T_STR(tok_info(t)->path, path);
    tok_close(t);
    const struct tok_options o = {.path = path, .no_digest = true};
    T_OK(tok_open(&o, &t, &e), &e);
    T_STR(tok_info(t)->digest, "");
    tok_close(t);
}

T_MAIN(T_CASE(the_type_follows_the_piece), T_CASE(megatron_adds_what_is_missing),
       T_CASE(gpt_is_the_bare_model), T_CASE(special_strings_are_text_by_default),
       T_CASE(special_strings_are_parsed_on_demand), T_CASE(special_strings_are_errors_on_demand),
       T_CASE(bytes_that_are_no_utf8_are_counted), T_CASE(decoding_spells_added_pieces),
       T_CASE(digest_is_of_the_file))
