/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"
#include "tests/tok/piece.h"
#include "tok/tokenizer/tokenizer.h"

static const char vocab[] =
    "{\"<unk>\": 0, \"a\": 1, \"bb\": 2, \"\\u6f22\\u5b57\": 3, \"<|endoftext|>\": 4, "
    "\"a-word-of-more-than-sixteen-bytes\": 5}";
enum { WORDS = 6 };

static const char *write_vocab(const char *text)
{
    struct err e;
    const char *path = t_path("vocab.json");
    T_OK(file_replace(path, text, strlen(text), &e), &e);
    return path;
}

static struct tokenizer *open_ws(enum tok_specials mode)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.path = write_vocab(vocab), .specials = mode};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

/* The obvious twin: splits at the white space of str.split(), looks the word up. */
static size_t space_at(const char *p)
{
    static const char *const wide[] = {
        "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
        "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
        "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
        "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
    if (strchr("\t\n\v\f\r\x1c\x1d\x1e\x1f ", *p))
        return 1;
    for (size_t i = 0; i < sizeof(wide) / sizeof(*wide); i++)
        if (strncmp(p, wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    return 0;
}

static void twin(const struct tokenizer *t, const char *p, struct tok_ids *ids)
{
    while (*p) {
        size_t k = space_at(p), n = 0;
        if (k) {
            p += k;
            continue;
        }
        while (p[n] && !space_at(p + n))
            n++;
        char *word = strndup(p, n);
        int64_t id = tok_find(t, word);
        free(word);
        *tok_ids_reserve(ids, 1) = id < 0 ? 0 : (int32_t)id;
        ids->n++;
        p += n;
    }
}

static void same_as_the_twin(const struct tokenizer *t, struct tok_work *w, const char *text)
{
    struct err e;
    struct tok_ids a = {0}, b = {0};
    T_OK(tok_encode(t, w, text, strlen(text), &a, &e), &e);
    twin(t, text, &b);
    T_EQ(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        T_EQ(a.id[i], b.id[i]);
    tok_ids_finish(&a);
    tok_ids_finish(&b);
}

static void random_text_is_cut_as_by_the_twin(void)
{
    static const char *const part[] = {"a",
                                       "bb",
                                       "\xe6\xbc\xa2\xe5\xad\x97",
                                       " ",
                                       "  ",
                                       "\t",
                                       "\n",
                                       "\xe3\x80\x80",
                                       "\xe2\x80\x83",
                                       "\xc2\xa0",
                                       "\xc2\x85",
                                       "\xe2\x81\x9f",
                                       "\x1f",
                                       "a-word-of-more-than-sixteen-bytes",
                                       "\xe3\x81\x82",
                                       "\xc2\xa1",
                                       "\xe2\x80\x8b",
                                       "\x0e",
                                       "\xe1\x9a\x80",
                                       "\xe2\x80\xa8",
                                       "x",
                                       "\x08",
                                       "!"};
    struct tokenizer *t = open_ws(TOK_SPECIALS_PARSE);
    struct tok_work *w = tok_work_create(t);
    struct buf b = {0};
    for (uint64_t round = 0; round < 3000; round++) {
        buf_reset(&b);
        size_t n = t_rand(1, round) % 60;
        for (size_t i = 0; i < n; i++)
            buf_adds(&b, part[t_rand(round + 2, i) % (sizeof(part) / sizeof(*part))]);
        same_as_the_twin(t, w, buf_str(&b));
    }
    buf_finish(&b);
    tok_work_destroy(w);
    tok_close(t);
}

/* A space of several bytes, at every position in a block. */
static void wide_space_at_every_place(void)
{
    struct tokenizer *t = open_ws(TOK_SPECIALS_PARSE);
    struct tok_work *w = tok_work_create(t);
    for (size_t i = 0; i < 140; i++) {
        char text[160];
        memset(text, 'a', sizeof(text));
        memcpy(text + i, "\xe3\x80\x80 bb", 6);
        text[i + 6] = 0;
        same_as_the_twin(t, w, text);
        memcpy(text + i, "\xe2\x80", 3); /* truncated by the end of the text */
        same_as_the_twin(t, w, text);
    }
    tok_work_destroy(w);
    tok_close(t);
}

static void the_end_of_document_inside_a_text(void)
{
    struct err e;
    for (int mode = TOK_SPECIALS_TEXT; mode <= TOK_SPECIALS_ERROR; mode++) {
        struct tokenizer *t = open_ws((enum tok_specials)mode);
        struct tok_work *w = tok_work_create(t);
        struct tok_ids ids = {0};
        const char *text = "a <|endoftext|> bb";
        int code = tok_encode(t, w, text, strlen(text), &ids, &e);
        if (mode == TOK_SPECIALS_ERROR) {
            T_ERR(code, &e, ERR_DATA, "byte 2 of the text");
            T_EQ(ids.n, 0);
        } else {
            T_OK(code, &e);
            T_EQ(ids.id[1], mode == TOK_SPECIALS_PARSE ? 4 : 0);
            T_EQ(tok_work_specials(w), mode == TOK_SPECIALS_TEXT);
        }
        tok_ids_finish(&ids);
        tok_work_destroy(w);
        tok_close(t);
    }
}

static void facts_and_round_trip(void)
{
    struct err e;
    struct tokenizer *t = open_ws(TOK_SPECIALS_TEXT);
    struct tok_work *w = tok_work_create(t);
    const struct tok_info *i = tok_info(t);
    T_EQ(i->type, TOK_WHITESPACE);
    T_EQ(i->vocab_size, WORDS);
    T_EQ(i->eod, 4);
    T_STR(i->eod_piece, "<|endoftext|>");
    T_EQ(i->unk, 0);
    T_PIECE(t, 3, "\xe6\xbc\xa2\xe5\xad\x97");
    T_PIECE(t, 6, "");
    int32_t id[] = {1, 3, 5};
    struct buf b = {0};
    T_OK(tok_decode(t, w, id, 3, &b, &e), &e);
    T_STR(buf_str(&b), "a \xe6\xbc\xa2\xe5\xad\x97 a-word-of-more-than-sixteen-bytes");
    struct tok_ids ids = {0};
    T_OK(tok_encode(t, w,
                    "a\xff\xfe"
                    "b",
                    4, &ids, &e),
         &e);
    T_EQ(ids.id[0], 0);
    T_EQ(tok_work_invalid(w), 2);
    tok_ids_finish(&ids);
    buf_finish(&b);
    tok_work_destroy(w);
    tok_close(t);
}

static void words_with_a_nul(void)
{
    struct err e;
    struct tok_options o = {
        .path = write_vocab("{\"<unk>\": 0, \"a\": 1, \"a\\u0000b\": 2, \"\\u0000\": 3}")};
    struct tokenizer *t;
    T_OK(tok_open(&o, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct buf b = {0};
    T_OK(tok_encode(t, w, "a a\0b \0", 7, &ids, &e), &e);
    T_EQ(ids.n, 3);
    T_MEM(ids.id, ((int32_t[]){1, 2, 3}), 12);
    T_OK(tok_decode(t, w, ids.id, 3, &b, &e), &e);
    T_EQ(b.len, 7);
    T_MEM(b.data, "a a\0b \0", 7);
    T_PIECE(t, 2, "a\0b");
    buf_finish(&b);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void refuse(const char *text, int want, const char *words)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.path = write_vocab(text)};
    T_ERR(tok_open(&o, &t, &e), &e, want, words);
}

static void bad_vocabularies_are_refused(void)
{
    refuse("{\"a\": 0}", ERR_DATA, "needs the word <unk>");
    refuse("{\"<unk>\": 0, \"a\": 2}", ERR_DATA, "not a vocabulary: the word \"a\" has id 2");
    refuse("{\"<unk>\": 0, \"a\": 0}", ERR_DATA, "the same id 0");
    refuse("{\"<unk>\": 0, \"a\": -1}", ERR_DATA, "has id -1");
    refuse("{\"<unk>\": 0, \"a\": \"b\"}", ERR_DATA,
           "not a tokenizer: neither a tokenizer.json nor a vocabulary");
    refuse("{\"<unk>\": 0, \"a\": 1.5}", ERR_DATA,
           "not a tokenizer: neither a tokenizer.json nor a vocabulary");
    refuse("{}", ERR_DATA, "not a JSON object of words");
    refuse("{\"<unk>\": 0", ERR_DATA, "vocab.json");
    refuse("{\"model\": {}, \"added_tokens\": []}", ERR_DATA, "model.vocab is missing");
    refuse("[1]", ERR_DATA, "neither a tokenizer.json");
    refuse("", ERR_DATA, "is empty");
}

static void types_and_files_must_fit(void)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.path = write_vocab(vocab), .type = TOK_SENTENCEPIECE};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "holds JSON");
    o.type = TOK_WHITESPACE;
    o.eod_token = "none";
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "no piece 'none'");
    o.eod_token = "a";
    T_OK(tok_open(&o, &t, &e), &e);
    T_EQ(tok_info(t)->eod, 1);
    tok_close(t);
    o.path = t_path("missing");
    T_ERR(tok_open(&o, &t, &e), &e, ERR_IO, "missing");
}

T_MAIN(T_CASE(random_text_is_cut_as_by_the_twin), T_CASE(wide_space_at_every_place),
       T_CASE(the_end_of_document_inside_a_text), T_CASE(facts_and_round_trip),
       T_CASE(words_with_a_nul), T_CASE(bad_vocabularies_are_refused),
       T_CASE(types_and_files_must_fit))
