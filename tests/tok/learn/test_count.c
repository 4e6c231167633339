/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/count.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "tests/t.h"

enum { WORDS = 20000 };

/* Words end at blanks and line feeds. */
static void split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                  uint64_t count)
{
    (void)arg, (void)thread;
    uint32_t start[2] = {0, 0};
    for (uint32_t i = 0; i < n; i++) {
        if (text[i] != ' ' && text[i] != '\n')
            continue;
        start[1] = i;
        learn_table_add(t, text, start, 1, count);
        start[0] = i + 1;
    }
}

/* Word k, of 1 to 40 bytes. */
static size_t put_word(char *p, uint32_t k)
{
    char digits[16];
    int n = snprintf(digits, sizeof(digits), "%u", k);
    size_t pad = k % 5 == 0 ? 30 : 0;
    memset(p, 'x', pad);
    memcpy(p + pad, digits, (size_t)n);
    return pad + (size_t)n;
}

static void make_text(struct buf *b, uint64_t *count)
{
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t k = t_rand(1, i) % (1 + t_rand(2, i) % WORDS);
        char *p = buf_reserve(b, 64);
        size_t n = put_word(p, k);
        p[n] = i % 9 ? ' ' : '\n';
        b->len += n + 1;
        count[k]++;
    }
    buf_addc(b, '\n');
}

static void count_with(int threads, uint64_t memory, bool lines, const struct buf *b,
                       const uint64_t *count, struct learn_report *report)
{
    struct pool *pool = pool_create(threads);
    struct learn_count *c = learn_count_create(pool, memory, t_path("out"), split, NULL);
    struct learn_words w;
    struct err e;
    for (size_t i = 0; i < b->len;) { /* in parts that end with a line */
        size_t n = b->len - i < 100000 ? b->len - i : 100000;
        while (b->data[i + n - 1] != '\n')
            n--;
        T_OK(lines ? learn_count_lines(c, b->data + i, n, &e)
                   : learn_count_add(c, b->data + i, n, 1, &e),
             &e);
        i += n;
    }
    T_OK(learn_count_finish(c, 0, &w, report, &e), &e);
    uint64_t *left = malloc(WORDS * sizeof(*left));
    memcpy(left, count, WORDS * sizeof(*left));
    for (size_t i = 0; i < w.n; i++) {
        const char *p = w.text + w.start[i];
        size_t n = w.start[i + 1] - w.start[i], skip = 0;
        while (p[skip] == 'x')
            skip++;
        char digits[16] = "";
        memcpy(digits, p + skip, n - skip);
        uint32_t k = (uint32_t)atoi(digits);
        T_EQ(skip, k % 5 == 0 ? 30 : 0);
        T_EQ(w.count[i], left[k]);
        left[k] = 0; /* each occurs once */
    }
    for (uint32_t k = 0; k < WORDS; k++)
        T_CHECK(!left[k] || count[k] < report->least);
    free(left);
    learn_words_finish(&w);
    learn_count_destroy(c);
    pool_destroy(pool);
}

static void all_words_are_counted_by_any_threads_and_memory(void)
{
    struct buf b = {0};
    uint64_t *count = calloc(WORDS, sizeof(*count));
    struct learn_report r;
    make_text(&b, count);
    for (int threads = 1; threads <= 7; threads += 3)
        for (int lines = 0; lines < 2; lines++) {
            count_with(threads, 0, lines, &b, count, &r);
            T_EQ(r.runs, 0);
            T_EQ(r.left_out, 0);
            count_with(threads, 2 << 20, lines, &b, count, &r);
            T_CHECK(r.runs > 1);
            T_EQ(r.left_out, 0);
        }
    free(count);
    buf_finish(&b);
}

static void the_rarest_go_when_memory_is_short(void)
{
    struct buf b = {0};
    uint64_t *count = calloc(WORDS, sizeof(*count));
    struct learn_report r;
    make_text(&b, count);
    count_with(2, 100000, true, &b, count, &r);
    T_CHECK(r.least > 1 && r.left_out > 0);
    uint64_t gone = 0;
    for (uint32_t k = 0; k < WORDS; k++)
        gone += count[k] && count[k] < r.least;
    T_EQ(r.left_out, gone);
    free(count);
    buf_finish(&b);
}

static void nothing_gives_nothing(void)
{
    struct pool *pool = pool_create(2);
    struct learn_count *c = learn_count_create(pool, 0, t_path("out"), split, NULL);
    struct learn_words w;
    struct learn_report r;
    struct err e;
    T_OK(learn_count_add(c, "", 0, 1, &e), &e);
    T_OK(learn_count_finish(c, 28, &w, &r, &e), &e);
    T_EQ(w.n, 0);
    T_EQ(w.start[0], 0);
    learn_words_finish(&w);
    learn_count_destroy(c);
    pool_destroy(pool);
}

T_MAIN(T_CASE(all_words_are_counted_by_any_threads_and_memory),
       T_CASE(the_rarest_go_when_memory_is_short), T_CASE(nothing_gives_nothing))
