/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn_segment.h"

#include <string.h>

#include "tests/tok/learn_make.h"

static void set(struct learn_sentences *s, const uint32_t *ch, const uint64_t *start,
                const uint64_t *count, size_t n)
{
    *s = (struct learn_sentences){.ch = mem_new(start[n] + 1, sizeof(*ch)),
                                  .start = mem_new(n + 1, sizeof(*start)),
                                  .count = mem_new(n, sizeof(*count)),
                                  .n = n};
    memcpy(s->ch, ch, start[n] * sizeof(*ch));
    memcpy(s->start, start, (n + 1) * sizeof(*start));
    memcpy(s->count, count, n * sizeof(*count));
}

static void cuts(void)
{
    static const uint32_t ch[] = {0x2581, 'a', 'b', ',', 0x2581, 'a', 'b',   'a',
                                  0x2585, 'b', ',', 'b', 'a',    '5', 0x2581};
    static const uint64_t start[] = {0, 4, 7, 15}, count[] = {3, 10, 100};
    struct learn_sentences from;
    set(&from, ch, start, count, 3);
    struct learn_valid v = usual_valid(16);
    struct learn_segments s;
    struct err e;
    T_OK(learn_segment(&s, &from, &v, &e), &e);
    /* _ab , a b ba 5 _ */
    static const uint32_t sym[] = {6, 3, 4, 0, 1, 0, 3, 0, 4, 0, 4, 3, 0, 2, 0, 6, 0};
    static const uint64_t weight[] = {13, 103, 100, 100, 100, 100, 100};
    T_EQ(s.symbols, 6);
    T_EQ(s.n, 7);
    T_EQ(s.longest, 3);
    T_EQ(s.total, 13 * 3 + 103 + 100 * 6);
    for (size_t i = 0; i < s.n; i++)
        T_EQ(s.count[i], weight[i]);
    T_EQ(s.places, sizeof(sym) / sizeof(*sym));
    static const uint32_t chars[] = {0, ',', '5', 'a', 'b', 0x2581};
    for (size_t i = 0; i < s.places; i++)
        T_EQ(s.ch[s.sym[i]], sym[i] == 6 ? 0x2581 : chars[sym[i]]);
    T_EQ(s.ch_count[3], 13 + 200);
    T_EQ(s.word[s.begin[4]], 4);
    learn_segments_finish(&s);
    learn_sentences_finish(&from);
}

/* With nothing but U+2585 there is nothing. */
static void nothing(void)
{
    static const uint32_t ch[] = {0x2585, 0x2585};
    static const uint64_t start[] = {0, 2}, count[] = {5};
    struct learn_sentences from;
    set(&from, ch, start, count, 1);
    struct learn_valid v = usual_valid(16);
    struct learn_segments s;
    struct err e;
    T_OK(learn_segment(&s, &from, &v, &e), &e);
    T_EQ(s.n, 0);
    T_EQ(s.symbols, 1);
    learn_segments_finish(&s);
    learn_sentences_finish(&from);
}

/* Characters and their weights stay, whatever is cut. */
static void sums(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct learn_sentences from;
        make_words(&from, seed, 3000, 12, 14, false);
        uint64_t total = 0;
        for (size_t i = 0; i < from.n; i++)
            for (uint64_t k = from.start[i]; k < from.start[i + 1]; k++)
                total += from.ch[k] == 0x2585 ? 0 : from.count[i];
        struct learn_valid v = usual_valid(16);
        v.split_words = seed % 2;
        v.split_digits = seed % 3 == 0;
        struct learn_segments s;
        struct err e;
        T_OK(learn_segment(&s, &from, &v, &e), &e);
        T_EQ(s.total, total);
        uint64_t places = 0, sum = 0;
        for (size_t i = 0; i < s.n; i++) {
            T_EQ(s.sym[s.begin[i + 1] - 1], 0);
            places += s.begin[i + 1] - s.begin[i];
            sum += s.count[i] * (s.begin[i + 1] - s.begin[i] - 1);
        }
        T_EQ(places, s.places);
        T_EQ(sum, total);
        learn_segments_finish(&s);
        learn_sentences_finish(&from);
    }
}

T_MAIN(T_CASE(cuts), T_CASE(nothing), T_CASE(sums))
