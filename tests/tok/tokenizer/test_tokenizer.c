/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tests/tok/piece.h"
#include "tok/tokenizer/tokenizer.h"

static struct tokenizer *open_words(void)
{
    static const char vocab[] = "{\"<unk>\": 0, \"a\": 1, \"bb\": 2, \"\xE3\x81\x82\": 3}";
    struct err e;
    struct tokenizer *t;
    T_OK(file_replace(t_path("vocab.json"), vocab, strlen(vocab), &e), &e);
    const struct tok_options o = {.path = t_path("vocab.json")};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

static struct tokenizer *open_null(void)
{
    struct err e;
    struct tokenizer *t;
    const struct tok_options o = {.type = TOK_NULL, .vocab_size = 1000};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

/* n words out of `word`, now and then without a space for a while. */
static void fill(struct buf *b, const char *const *word, size_t nwords, size_t n)
{
    static const char *const space[] = {" ", "\n", "  ", "\t", "\r\n"};
    for (size_t i = 0; i < n; i++) {
        buf_adds(b, word[t_rand(1, i) % nwords]);
        if (i % 5000 > 500)
            buf_adds(b, space[t_rand(2, i) % 5]);
        else if (*word[0] < '0' || *word[0] > '9')
            buf_adds(b, "x");
        else
            buf_addc(b, ' ');
    }
}

/* In parts of random length up to `longest` the ids are those of the whole. */
static void check_parts(const struct tokenizer *t, const struct buf *text, size_t longest)
{
    struct err e;
    struct tok_work *w = tok_work_create(t);
    struct tok_ids whole = {0}, parts = {0};
    T_OK(tok_encode(t, w, text->data, text->len, &whole, &e), &e);
    size_t early = 0;
    for (size_t at = 0, i = 0; at < text->len; i++) {
        size_t n = 1 + t_rand(3, i) % longest;
        n = n < text->len - at ? n : text->len - at;
        T_OK(tok_encode_part(t, w, text->data + at, n, at + n == text->len, &parts, &e), &e);
        at += n;
        if (at < text->len)
            early = parts.n;
    }
    T_EQ(parts.n, whole.n);
    T_MEM(parts.id, whole.id, whole.n * sizeof(*whole.id));
    T_CHECK(early > whole.n / 2); /* not all at the end */
    tok_ids_finish(&whole);
    tok_ids_finish(&parts);
    tok_work_destroy(w);
}

static void words_in_parts(void)
{
    static const char *const word[] = {"a", "bb", "\xE3\x81\x82", "stranger", "\xE3\x80\x80"};
    struct tokenizer *t = open_words();
    struct buf b = {0};
    fill(&b, word, 5, 100000);
    check_parts(t, &b, 7);
    check_parts(t, &b, 1000);
    check_parts(t, &b, 100000);
    buf_finish(&b);
    tok_close(t);
}

static void ids_in_parts(void)
{
    static const char *const word[] = {"0", "1", "22", "333", "999", "1000"};
    struct tokenizer *t = open_null();
    struct buf b = {0};
    fill(&b, word, 6, 100000);
    check_parts(t, &b, 7);
    check_parts(t, &b, 100000);
    buf_finish(&b);
    tok_close(t);
}

static void an_empty_text_in_parts(void)
{
    struct err e;
    struct tokenizer *t = open_words();
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    T_OK(tok_encode_part(t, w, "", 0, true, &ids, &e), &e);
    T_EQ(ids.n, 0);
    T_OK(tok_encode_part(t, w, "b", 1, false, &ids, &e), &e);
    T_OK(tok_encode_part(t, w, "b", 1, false, &ids, &e), &e);
    T_EQ(ids.n, 0);
    T_OK(tok_encode_part(t, w, "", 0, true, &ids, &e), &e);
    T_EQ(ids.n, 1);
    T_EQ(ids.id[0], 2);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void a_failure_ends_the_text(void)
{
    struct err e;
    struct tokenizer *t = open_null();
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct buf b = {0};
    while (b.len < 200000)
        buf_adds(&b, "12 ");
    T_OK(tok_encode_part(t, w, b.data, b.len, false, &ids, &e), &e);
    T_ERR(tok_encode_part(t, w, "x", 1, true, &ids, &e), &e, ERR_DATA, "from byte 200001 on");
    size_t n = ids.n;
    T_OK(tok_encode_part(t, w, "7", 1, true, &ids, &e), &e);
    T_EQ(ids.n, n + 1);
    T_EQ(ids.id[n], 7);
    buf_finish(&b);
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static int open_bytes(const void *p, size_t n, enum tok_type type, struct tokenizer **ret,
                      struct err *e)
{
    const char *path = t_path("tokenizer");
    struct tok_options o = {.type = type, .path = path};
    T_OK(file_replace(path, p, n, e), e);
    return tok_open(&o, ret, e);
}

static void files_are_recognised_by_content(void)
{
    static const char json[] = "\xef\xbb\xbf\r\n {\"<unk>\": 0}";
    struct err e;
    struct tokenizer *t;
    struct buf b = {0};
    make_pieces(&b);
    T_OK(open_bytes(b.data, b.len, TOK_AUTO, &t, &e), &e);
    T_EQ(tok_info(t)->type, TOK_GPT_SENTENCEPIECE);
    T_STR(tok_info(t)->type_name, "GPTSentencePieceTokenizer");
    tok_close(t);
    T_ERR(open_bytes(b.data, b.len, TOK_WHITESPACE, &t, &e), &e, ERR_USAGE,
          "something other than JSON");
    T_OK(open_bytes(json + 3, sizeof(json) - 4, TOK_AUTO, &t, &e), &e);
    T_EQ(tok_info(t)->type, TOK_WHITESPACE);
    tok_close(t);
    T_ERR(open_bytes(json + 3, sizeof(json) - 4, TOK_GPT_SENTENCEPIECE, &t, &e), &e, ERR_USAGE,
          "holds JSON");
    T_ERR(open_bytes("#version: 0.2", 13, TOK_AUTO, &t, &e), &e, ERR_DATA, "neither");
    T_ERR(open_bytes("", 0, TOK_AUTO, &t, &e), &e, ERR_DATA, "is empty");
    T_ERR(open_bytes(b.data, b.len - 1, TOK_AUTO, &t, &e), &e, ERR_DATA, "tokenizer: ");
    struct tok_options o = {.type = TOK_SENTENCEPIECE};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "needs a file");
    buf_finish(&b);
}

static void ids_grow_and_keep(void)
{
    struct tok_ids ids = {0};
    for (int32_t i = 0; i < 100000; i++) {
        *tok_ids_reserve(&ids, 1) = i;
        ids.n++;
    }
    for (int32_t i = 0; i < 100000; i++)
        T_EQ(ids.id[i], i);
    tok_ids_finish(&ids);
    tok_ids_finish(&ids);
}

/* A failed text leaves the ids before it as they were. */
static void a_failure_takes_its_ids_back(void)
{
    struct err e;
    struct tokenizer *t;
    struct tok_ids ids = {0};
    struct tok_options o = {.type = TOK_NULL, .vocab_size = 10};
    T_OK(tok_open(&o, &t, &e), &e);
    struct tok_work *w = tok_work_create(t);
    T_OK(tok_encode(t, w, "1 2", 3, &ids, &e), &e);
    T_ERR(tok_encode(t, w, "3 4 x", 5, &ids, &e), &e, ERR_DATA, "byte 4");
    T_EQ(ids.n, 2);
    T_PIECE(t, -1, "");
    T_PIECE(t, 11, "");
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_work_destroy(NULL);
    tok_close(t);
    tok_close(NULL);
}

T_MAIN(T_CASE(words_in_parts), T_CASE(ids_in_parts), T_CASE(an_empty_text_in_parts),
       T_CASE(a_failure_ends_the_text), T_CASE(files_are_recognised_by_content),
       T_CASE(ids_grow_and_keep), T_CASE(a_failure_takes_its_ids_back))
