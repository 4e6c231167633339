/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tok/tokenizer/tokenizer.h"

static struct tokenizer *open_null(int64_t n)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.type = TOK_NULL, .vocab_size = n};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

static void ids_are_decimal(void)
{
    struct err e;
    struct tokenizer *t = open_null(100);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    struct buf text = {0};
    T_OK(tok_encode(t, w, "0 17 99 100\n", 12, &ids, &e), &e);
    T_EQ(ids.n, 4);
    T_EQ(ids.id[1], 17);
    T_EQ(ids.id[3], 100);
    T_OK(tok_decode(t, w, ids.id, ids.n, &text, &e), &e);
    T_STR(buf_str(&text), "0 17 99 100");
    T_OK(tok_encode(t, w, "", 0, &ids, &e), &e);
    T_EQ(ids.n, 4);
    T_EQ(tok_info(t)->vocab_size, 101);
    T_EQ(tok_info(t)->eod, 100);
    T_STR(tok_info(t)->eod_piece, "100");
    T_EQ(tok_find(t, "12"), 12);
    T_EQ(tok_find(t, "101"), -1);
    tok_ids_finish(&ids);
    buf_finish(&text);
    tok_work_destroy(w);
    tok_close(t);
}

static void other_words_are_refused(void)
{
    static const char *const bad[] = {"1 x 2", "101", "-1", "1,2", "99999999999999999999999",
                                      "1.5"};
    struct err e;
    struct tokenizer *t = open_null(100);
    struct tok_work *w = tok_work_create(t);
    struct tok_ids ids = {0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        T_ERR(tok_encode(t, w, bad[i], strlen(bad[i]), &ids, &e), &e, ERR_DATA,
              "is not an id from 0 to 100");
        T_EQ(ids.n, 0);
    }
    int32_t outside = 101;
    struct buf text = {0};
    T_ERR(tok_decode(t, w, &outside, 1, &text, &e), &e, ERR_DATA, "outside the vocabulary of 101");
    tok_ids_finish(&ids);
    tok_work_destroy(w);
    tok_close(t);
}

static void the_size_is_needed(void)
{
    struct tokenizer *t;
    struct err e;
    struct tok_options o = {.type = TOK_NULL};
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "--vocab-size");
    o.vocab_size = INT32_MAX;
    T_ERR(tok_open(&o, &t, &e), &e, ERR_USAGE, "--vocab-size");
}

T_MAIN(T_CASE(ids_are_decimal), T_CASE(other_words_are_refused), T_CASE(the_size_is_needed))
