/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp/unigram.h"

enum { WAYS = 600, LENGTH = 40 };

struct ways { /* all segmentations of a text, by hand */
    const struct sp_model *m;
    const char *text;
    int32_t now[LENGTH];
    size_t depth, n;
    int32_t id[WAYS][LENGTH];
    size_t count[WAYS];
    double score[WAYS];
};

static void walk(struct ways *w, const char *p, double score)
{
    if (!*p) {
        T_CHECK(w->n < WAYS);
        memcpy(w->id[w->n], w->now, w->depth * sizeof(*w->now));
        w->count[w->n] = w->depth;
        w->score[w->n++] = score;
        return;
    }
    bool single = false;
    for (size_t i = 0; i < w->m->npieces; i++) {
        const struct sp_piece *t = &w->m->piece[i];
        if (t->type != SP_NORMAL || strncmp(p, t->text, t->length) != 0)
            continue;
        single |= t->length == sp_char_length(p, strlen(p));
        w->now[w->depth++] = (int32_t)i;
        walk(w, p + t->length, score + (double)t->score);
        w->depth--;
    }
    if (single)
        return;
    w->now[w->depth++] = w->m->unk;
    walk(w, p + sp_char_length(p, strlen(p)), score - 19.0); /* the lowest score minus 10 */
    w->depth--;
}

static size_t find(const struct ways *w, const int32_t *id, size_t n)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->count[i] == n && memcmp(w->id[i], id, n * sizeof(*id)) == 0)
            return i;
    t_fail(__FILE__, __LINE__, "a segmentation of %zu ids that there is not", n);
    return 0;
}

struct made {
    struct buf bytes;
    struct sp_model m;
    struct unigram *u;
    struct unigram_state *s;
};

static void make(struct made *k)
{
    static const struct {
        const char *text;
        float score;
    } piece[] = {{"\xe2\x96\x81", -3},
                 {"a", -2},
                 {"b", -2.5f},
                 {"ab", -3},
                 {"ba", -4},
                 {"aba", -5.25f},
                 {"c", -3},
                 {"bc", -3.5f},
                 {"abc", -6},
                 {"\xe2\x96\x81"
                  "a",
                  -4},
                 {"\xe2\x96\x81"
                  "ab",
                  -5},
                 {"\xe3\x81\x82", -9}};
    struct err e;
    make_piece(&k->bytes, "<unk>", 0, SP_UNKNOWN);
    for (size_t i = 0; i < sizeof(piece) / sizeof(*piece); i++)
        make_piece(&k->bytes, piece[i].text, piece[i].score, SP_NORMAL);
    make_trainer(&k->bytes, SP_UNIGRAM, false);
    T_OK(sp_check("made", k->bytes.data, k->bytes.len, &k->m, &e), &e);
    k->u = unigram_create(&k->m);
    k->s = unigram_state_create();
    T_CHECK(k->u);
}

static void unmake(struct made *k)
{
    unigram_state_destroy(k->s);
    unigram_destroy(k->u);
    sp_model_finish(&k->m);
    buf_finish(&k->bytes);
}

/* With a mark before each text, and for each space. */
static const char *const text[][2] = {{"abcabab", "\xe2\x96\x81"
                                                  "abcabab"},
                                      {"a", "\xe2\x96\x81"
                                            "a"},
                                      {"ab ba abc", "\xe2\x96\x81"
                                                    "ab\xe2\x96\x81"
                                                    "ba\xe2\x96\x81"
                                                    "abc"},
                                      {"aax\xe3\x81\x82"
                                       "bab",
                                       "\xe2\x96\x81"
                                       "aax\xe3\x81\x82"
                                       "bab"}};

/* The sum over the segmentations of (seen - expected)^2 / expected has the mean n - 1. */
static void check_shares(const struct ways *w, const size_t *seen, size_t draws, double alpha)
{
    double all = 0, chi = 0;
    for (size_t i = 0; i < w->n; i++)
        all += exp(alpha * w->score[i]);
    for (size_t i = 0; i < w->n; i++) {
        double expected = (double)draws * exp(alpha * w->score[i]) / all;
        double off = (double)seen[i] - expected;
        chi += off * off / expected;
    }
    double free = (double)w->n - 1;
    if (w->n > 1 && !(chi < free + 5 * sqrt(2 * free) + 5))
        t_fail(__FILE__, __LINE__, "'%s', alpha %g: %g over %zu segmentations", w->text, alpha, chi,
               w->n);
}

static void shares_are_those_of_the_scores(void)
{
    static const double alpha[] = {0, 0.2, 1};
    struct ways *w = malloc(sizeof(*w));
    struct tok_ids ids = {0};
    for (size_t a = 0; a < 3; a++) {
        struct made k = {0};
        make(&k);
        unigram_set_alpha(k.u, alpha[a]);
        for (size_t i = 0; i < 4; i++) {
            size_t seen[WAYS] = {0}, draws = 40000, n = strlen(text[i][0]);
            *w = (struct ways){.m = &k.m, .text = text[i][1]};
            walk(w, w->text, 0);
            for (uint64_t d = 0; d < draws; d++) {
                ids.n = 0;
                unigram_state_key(k.s, d << 8 | i);
                unigram_put(k.u, k.s, text[i][0], n, true, &ids);
                seen[find(w, ids.id, ids.n)]++;
            }
            check_shares(w, seen, draws, alpha[a]);
        }
        unmake(&k);
    }
    tok_ids_finish(&ids);
    free(w);
}

static int by_score(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void the_best_come_in_order(void)
{
    struct made k = {0};
    struct ways *w = malloc(sizeof(*w));
    struct tok_nbest list = {0};
    struct err e;
    make(&k);
    for (size_t i = 0; i < 4; i++)
        for (size_t most = 2; most <= 512; most *= 4) {
            *w = (struct ways){.m = &k.m, .text = text[i][1]};
            walk(w, w->text, 0);
            T_OK(unigram_nbest(k.u, k.s, text[i][0], strlen(text[i][0]), most, &list, &e), &e);
            T_EQ(list.n, most < w->n ? most : w->n);
            double sorted[WAYS];
            memcpy(sorted, w->score, w->n * sizeof(*sorted));
            qsort(sorted, w->n, sizeof(*sorted), by_score);
            bool seen[WAYS] = {0};
            for (size_t j = 0, from = 0; j < list.n; from = list.end[j++]) {
                size_t at = find(w, list.ids.id + from, list.end[j] - from);
                T_CHECK(!seen[at]);
                seen[at] = true;
                T_CHECK(fabs((double)list.score[j] - sorted[j]) < 1e-4);
                T_CHECK(fabs(w->score[at] - sorted[j]) < 1e-4);
            }
            tok_nbest_finish(&list);
        }
    T_OK(unigram_nbest(k.u, k.s, "", 0, 4, &list, &e), &e);
    T_EQ(list.n, 1);
    T_EQ(list.end[0], 0);
    tok_nbest_finish(&list);
    unmake(&k);
    free(w);
}

/* One of the n best, in proportion to their shares. */
static void one_of_the_best(void)
{
    struct made k = {0};
    struct ways *w = malloc(sizeof(*w));
    struct tok_ids ids = {0};
    struct tok_nbest list = {0};
    struct err e;
    size_t draws = 20000, seen[WAYS] = {0};
    make(&k);
    T_OK(unigram_nbest(k.u, k.s, text[0][0], 7, 6, &list, &e), &e);
    *w = (struct ways){.m = &k.m, .text = text[0][1]};
    for (size_t j = 0, from = 0; j < list.n; from = list.end[j++]) {
        w->count[j] = list.end[j] - from;
        memcpy(w->id[j], list.ids.id + from, w->count[j] * sizeof(*w->id[j]));
        w->score[w->n++] = (double)list.score[j];
    }
    for (uint64_t d = 0; d < draws; d++) {
        ids.n = 0;
        unigram_state_key(k.s, d);
        T_OK(unigram_sample_nbest(k.u, k.s, text[0][0], 7, 6, 0.7, &ids, &e), &e);
        seen[find(w, ids.id, ids.n)]++;
    }
    check_shares(w, seen, draws, 0.7);
    tok_nbest_finish(&list);
    tok_ids_finish(&ids);
    unmake(&k);
    free(w);
}

/* A text in parts, of any size, takes the segmentation of the whole. */
static void parts_change_nothing(void)
{
    struct made k = {0};
    struct buf b = {0};
    struct tok_ids whole = {0}, parts = {0};
    make(&k);
    unigram_set_alpha(k.u, 0.3);
    for (uint64_t i = 0; b.len < 200000; i++)
        buf_adds(&b, (const char *const[]){"abc", "a", " ", "ba", "ab", "x", "\xe3\x81\x82",
                                           "\xff"}[t_rand(3, i) % 8]);
    unigram_state_key(k.s, 7);
    unigram_put(k.u, k.s, b.data, b.len, true, &whole);
    for (uint64_t most = 3; most < 100000; most *= 30) {
        parts.n = 0;
        unigram_state_key(k.s, 7);
        for (size_t at = 0, i = 0, n; at < b.len; at += n, i++) {
            n = 1 + t_rand(most, i) % most;
            n = n < b.len - at ? n : b.len - at;
            unigram_put(k.u, k.s, b.data + at, n, at + n == b.len, &parts);
        }
        T_EQ(parts.n, whole.n);
        T_MEM(parts.id, whole.id, whole.n * sizeof(*whole.id));
    }
    T_CHECK(whole.n > 60000);
    tok_ids_finish(&whole);
    tok_ids_finish(&parts);
    buf_finish(&b);
    unmake(&k);
}

/* Countless paths: the queue is pruned, and memory with it. */
static void many_ways(void)
{
    struct made k = {0};
    struct buf b = {0};
    struct tok_nbest list = {0};
    struct err e;
    make(&k);
    for (uint64_t i = 0; b.len < 3000; i++)
        buf_adds(&b, i % 3 ? "ab" : "aba");
    T_OK(unigram_nbest(k.u, k.s, b.data, b.len, 100, &list, &e), &e);
    T_EQ(list.n, 100);
    for (size_t i = 1; i < list.n; i++)
        T_CHECK(list.score[i] <= list.score[i - 1] + 0.5f);
    tok_nbest_finish(&list);
    buf_finish(&b);
    unmake(&k);
}

T_MAIN(T_CASE(shares_are_those_of_the_scores), T_CASE(the_best_come_in_order),
       T_CASE(one_of_the_best), T_CASE(parts_change_nothing), T_CASE(many_ways))
