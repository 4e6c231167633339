/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/unigram.h"

#include <string.h>

#include "tests/tok/learn_make.h"

static int by_count(const void *a, const void *b)
{
    const struct learn_char *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->c < y->c ? -1 : x->c > y->c;
}

/* Every character is required, and one that is not in the text. */
static void require(struct learn_sp *f)
{
    uint64_t *count = mem_new(0x10000, sizeof(*count));
    for (size_t i = 0; i < f->text.n; i++)
        for (uint64_t k = f->text.start[i]; k < f->text.start[i + 1]; k++)
            count[f->text.ch[k]] += f->text.count[i];
    f->required = mem_new(20, sizeof(*f->required));
    for (uint32_t c = 0; c < 0x10000; c++)
        if (count[c] && c != 0x2585)
            f->required[f->nrequired++] = (struct learn_char){c, count[c]};
    f->required[f->nrequired++] = (struct learn_char){0x1f600, 0};
    qsort(f->required, f->nrequired, sizeof(*f->required), by_count);
    free(count);
}

static void learn(struct learn_scores *u, const struct learn_unigram_options *o, uint64_t seed,
                  bool backwards, int threads)
{
    struct learn_sp f = {0};
    make_words(&f.text, seed, 20000, 10, 3 + (uint32_t)(seed % 12), backwards);
    require(&f);
    struct pool *pool = pool_create(threads);
    struct err e;
    struct learn_unigram_report r;
    *u = (struct learn_scores){0};
    T_OK(learn_unigram(o, &f, pool, u, &r, &e), &e);
    for (size_t i = 0; i < f.nrequired; i++) {
        char text[4];
        size_t n = utf8_put(text, f.required[i].c), found = 0;
        for (size_t k = 0; k < u->n; k++)
            found += u->piece[k].length == n && memcmp(u->piece[k].text, text, n) == 0;
        T_EQ(found, 1);
    }
    pool_destroy(pool);
    learn_sp_finish(&f);
}

static void same(const struct learn_scores *a, const struct learn_scores *b)
{
    T_EQ(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        T_EQ(a->piece[i].length, b->piece[i].length);
        T_MEM(a->piece[i].text, b->piece[i].text, a->piece[i].length);
        T_MEM(&a->piece[i].score, &b->piece[i].score, sizeof(float));
    }
}

static void check(const struct learn_scores *u, const struct learn_unigram_options *o)
{
    T_CHECK(u->n && u->n <= o->learnt);
    for (size_t i = 0; i < u->n; i++) {
        const struct learn_scored *p = &u->piece[i];
        uint8_t kind[600];
        uint32_t n = 0;
        for (size_t at = 0; at < p->length; n++) {
            size_t k = utf8_char(p->text + at, p->text + p->length);
            T_CHECK(k > 0);
            kind[n] = learn_valid_class(&o->valid, utf8_code(p->text + at, k));
            at += k;
        }
        T_CHECK(learn_valid(&o->valid, kind, n));
        T_CHECK(!i || p[-1].score >= p->score);
        T_CHECK(p->score < 0);
    }
}

/* A bounded number of pieces, by one thread. */
static void learn_few(struct learn_sp *f, uint64_t learnt, struct learn_scores *ret)
{
    struct learn_unigram_options o = {.valid = usual_valid(16),
                                      .vocab_size = 8,
                                      .learnt = learnt,
                                      .seeds = 1000,
                                      .shrink = 0.75,
                                      .steps = 2};
    struct pool *pool = pool_create(1);
    struct learn_unigram_report r;
    struct err e;
    *ret = (struct learn_scores){0};
    T_OK(learn_unigram(&o, f, pool, ret, &r, &e), &e);
    pool_destroy(pool);
}

static void any_threads(void)
{
    for (uint64_t seed = 1; seed < 9; seed++) {
        struct learn_unigram_options o = {.valid = usual_valid(seed % 2 ? 16 : 5),
                                          .vocab_size = 40 + 60 * seed,
                                          .learnt = 37 + 60 * seed,
                                          .seeds = seed % 3 ? 1000000 : 700,
                                          .shrink = 0.75,
                                          .steps = 2};
        o.valid.split_words = seed % 4 != 0;
        o.valid.split_digits = seed == 5;
        o.valid.only_marks = seed == 6;
        o.valid.mark_behind = seed == 7;
        struct learn_scores one, two, many;
        learn(&one, &o, seed, false, 1);
        learn(&two, &o, seed, true, 2);
        learn(&many, &o, seed, false, 7);
        check(&one, &o);
        same(&one, &two);
        same(&one, &many);
        learn_scores_finish(&one);
        learn_scores_finish(&two);
        learn_scores_finish(&many);
    }
}

/* "ab" and "cd" stay together whatever is around them. */
static void finds_words(void)
{
    static const char *const words[] = {"ab", "cd", "abcd", "cdab", "ababcd", "abe", "ecd"};
    struct learn_sp f = {.text = {.ch = mem_new(64, sizeof(uint32_t)),
                                  .start = mem_new(8, sizeof(uint64_t)),
                                  .count = mem_new(8, sizeof(uint64_t)),
                                  .n = 7}};
    for (size_t i = 0; i < 7; i++) {
        f.text.count[i] = 20;
        f.text.start[i + 1] = f.text.start[i];
        for (const char *p = words[i]; *p; p++)
            f.text.ch[f.text.start[i + 1]++] = (uint32_t)*p;
    }
    require(&f);
    struct learn_scores u;
    learn_few(&f, 8, &u);
    T_EQ(u.n, 8);
    size_t found = 0;
    for (size_t i = 0; i < 3; i++)
        found += strcmp(u.piece[i].text, "ab") == 0 || strcmp(u.piece[i].text, "cd") == 0;
    T_EQ(found, 2);
    learn_scores_finish(&u);
    learn_sp_finish(&f);
}

/* Texts without any character that may be a piece. */
static void nothing_to_learn(void)
{
    struct learn_sp f = {.text = {.ch = mem_new(2, sizeof(uint32_t)),
                                  .start = mem_new(2, sizeof(uint64_t)),
                                  .count = mem_new(1, sizeof(uint64_t)),
                                  .n = 1}};
    f.text.ch[0] = 0x2585;
    f.text.start[1] = 1;
    f.text.count[0] = 1;
    f.required = mem_new(1, sizeof(*f.required));
    f.required[0] = (struct learn_char){'x', 0};
    f.nrequired = 1;
    struct learn_scores u;
    learn_few(&f, 5, &u);
    T_EQ(u.n, 1);
    T_STR(u.piece[0].text, "x");
    learn_scores_finish(&u);
    learn_sp_finish(&f);
}

T_MAIN(T_CASE(any_threads), T_CASE(finds_words), T_CASE(nothing_to_learn))
