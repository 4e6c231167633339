/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/tok/chat_make.h"

enum { MOST = 64 };

/* Marks with given ids, as if encoded. */
static void put_mark(struct tok_ids *to, const char *letters)
{
    for (; letters && *letters; letters++) {
        *tok_ids_reserve(to, 1) = (unsigned char)*letters;
        to->n++;
    }
}

/* Ids are letters; in `want` a dot is masked. */
static void masks(const char *answer, const char *question, const char *text, const char *want,
                  bool found)
{
    struct chat_marks m = {0};
    int32_t id[MOST];
    char mask[MOST], got[MOST + 1] = {0};
    size_t n = strlen(text);
    put_mark(&m.answer, answer);
    put_mark(&m.question, question);
    for (size_t i = 0; i < n; i++)
        id[i] = (unsigned char)text[i];
    T_EQ(chat_mask(&m, id, n, '_', mask), found);
    for (size_t i = 0; i < n; i++)
        got[i] = mask[i] ? text[i] : '.';
    T_STR(got, want);
    chat_marks_finish(&m);
}

static void learns_behind_the_last_answer(void)
{
    masks("AA", NULL, "hqAAxAAyz", ".......yz", true);
    masks("AA", NULL, "hqAAAy", ".....y", true); /* marks may overlap */
    masks("AA", NULL, "hqAxA", ".....", false);
    masks("AA", NULL, "hqAA", "....", true);
    masks("AA", NULL, "", "", false);
    masks("AA", NULL, "A", ".", false);
    masks("AA", NULL, "AAy__z", "..y..z", true); /* padding is not learnt */
    masks("A_", NULL, "A_y", "...", false);      /* nor found */
}

static void learns_each_answer(void)
{
    masks("A", "Q", "bQqAxyQqAzw", "....xy...zw", true);
    masks("A", "Q", "bQqAxyQqAzwQqq", "....xy...zw...", true); /* one more question */
    masks("A", "Q", "bqAxyQqAzw", "...xy...zw", true);         /* begins with an answer */
    masks("A", "Q", "bAxyQq", "..xy..", true);
    masks("A", "Q", "QqAxAy", "...xAy", true);         /* one more answer */
    masks("A", "Q", "QqQqAxQqAy", "..........", true); /* pairs cross: H = 0 2 6, R = 5 9 */
    masks("A", "Q", "QqQq", "....", false);
    masks("A", "Q", "qAx", "...", false);
    masks("A", "Q", "", "", false);
    masks("A", "Q", "QqAx_y", "...x.y", true);
}

/* The rule again, with explicit lists, as documented. */
static bool plain(const struct chat_marks *m, const int32_t *id, size_t n, char *mask)
{
    size_t r[MOST], h[MOST + 1], nr = 0, nh = 0, first;
    for (size_t at = 0; at + m->answer.n <= n; at++)
        if (!memcmp(id + at, m->answer.id, m->answer.n * sizeof(*id)))
            r[nr++] = at + m->answer.n;
    for (size_t at = 0; at + m->question.n <= n; at++)
        if (!memcmp(id + at, m->question.id, m->question.n * sizeof(*id)))
            h[1 + nh++] = at;
    memset(mask, 1, n);
    if (!nr || !nh) {
        memset(mask, 0, n);
        return false;
    }
    first = h[1] > r[0] ? 0 : 1;
    h[0] = 0;
    nh += 1 - first;
    for (size_t k = 0; k < nh && k < nr; k++)
        for (size_t i = k ? h[first + k] : 0; i < r[k]; i++)
            mask[i] = 0;
    for (size_t i = h[first + nh - 1]; nh > nr && i < n; i++)
        mask[i] = 0;
    return true;
}

static void agrees_with_the_rule(void)
{
    for (uint64_t k = 0; k < 20000; k++) {
        struct chat_marks m = {0};
        int32_t id[MOST];
        char got[MOST], want[MOST];
        size_t n = t_rand(k, 0) % MOST;
        uint32_t letters = 2 + t_rand(k, 1) % 4;
        for (size_t i = 0; i < 1 + t_rand(k, 2) % 3; i++, m.answer.n++)
            *tok_ids_reserve(&m.answer, 1) = (int32_t)(t_rand(k, 10 + i) % letters);
        for (size_t i = 0; i < 1 + t_rand(k, 3) % 3; i++, m.question.n++)
            *tok_ids_reserve(&m.question, 1) = (int32_t)(t_rand(k, 20 + i) % letters);
        for (size_t i = 0; i < n; i++)
            id[i] = (int32_t)(t_rand(k, 30 + i) % letters);
        bool found = plain(&m, id, n, want);
        T_EQ(chat_mask(&m, id, n, -1, got), found);
        T_MEM(got, want, n);
        chat_marks_finish(&m);
    }
}

static void drops_the_first_id_of_a_mark(void)
{
    struct err e;
    struct tokenizer *bare;
    struct chat_marks m;
    chat_make(&bare, false, false, TOK_SPECIALS_TEXT);
    T_OK(chat_marks_init(&m, bare, "#hi", "hi?!", &e), &e);
    T_EQ(m.answer.n, 1);
    T_EQ(m.answer.id[0], MADE_HI);
    T_EQ(m.question.n, 2);
    T_EQ(m.question.id[0], '?');
    chat_marks_finish(&m);
    T_OK(chat_marks_init(&m, bare, "#hi", NULL, &e), &e);
    T_EQ(m.question.n, 0);
    chat_marks_finish(&m);
    T_ERR(chat_marks_init(&m, bare, "hi", NULL, &e), &e, ERR_USAGE,
          "the string 'hi' that begins an answer needs two ids");
    T_ERR(chat_marks_init(&m, bare, "#hi", "", &e), &e, ERR_USAGE,
          "begins a question needs two ids");
    tok_close(bare);
}

T_MAIN(T_CASE(learns_behind_the_last_answer), T_CASE(learns_each_answer),
       T_CASE(agrees_with_the_rule), T_CASE(drops_the_first_id_of_a_mark))
