/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/segment.h"

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
    static const struct {
        uint32_t ch[3], end; /* 1 to 5 for , 5 a b _ and 6 for U+2585 */
        uint64_t count;
    } want[] = {{{0x2581, 'a', 'b'}, 1, 3},
                {{','}, 0, 3},
                {{0x2581, 'a', 'b'}, 0, 10},
                {{'a'}, 6, 100},
                {{'b'}, 1, 100},
                {{','}, 4, 100},
                {{'b', 'a'}, 2, 100},
                {{'5'}, 5, 100},
                {{0x2581}, 0, 100}};
    T_EQ(s.ends, 7);
    T_EQ(s.symbols, 12);
    T_EQ(s.n, sizeof(want) / sizeof(*want));
    T_EQ(s.longest, 3);
    T_EQ(s.total, 13 * 3 + 103 + 100 * 6);
    T_EQ(s.unknown, 100);
    for (size_t i = 0; i < s.n; i++) {
        T_EQ(s.count[i], want[i].count);
        uint32_t k = s.begin[i];
        for (size_t c = 0; c < 3 && want[i].ch[c]; c++)
            T_EQ(s.ch[s.sym[k++]], want[i].ch[c]);
        T_EQ(s.sym[k++], want[i].end);
        T_EQ(k, s.begin[i + 1]);
    }
    T_EQ(s.ch[s.sym[1]], 'a');
    T_EQ(s.ch_count[s.sym[1]], 13 + 200);
    T_EQ(s.kind[3], LEARN_NEVER);
    T_EQ(s.word[s.begin[4]], 4);
    learn_segments_finish(&s);
    learn_sentences_finish(&from);
}

/* A text of U+2585 alone gives nothing. */
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
    T_EQ(s.symbols, s.ends);
    T_EQ(s.unknown, 10);
    learn_segments_finish(&s);
    learn_sentences_finish(&from);
}

/* Characters and their weights are the same, however words are split. */
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
            T_CHECK(s.sym[s.begin[i + 1] - 1] < s.ends);
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
