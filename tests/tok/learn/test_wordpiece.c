/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "tests/t.h"

static void split(struct learn_wordpiece *w, struct learn_table *t, const char *text, size_t n)
{
    struct buf b = {0};
    buf_add(&b, text, n);
    memset(buf_reserve(&b, 64), 'x', 64);
    learn_wordpiece_split(w, 0, t, b.data, n, 1);
    buf_finish(&b);
}

static uint64_t count_of(const struct learn_table *t, const char *word)
{
    for (size_t i = 0; i <= t->mask; i++) {
        size_t n;
        if (!t->slot[i].count)
            continue;
        const char *p = learn_slot_text(t, &t->slot[i], &n);
        if (n == strlen(word) && memcmp(p, word, n) == 0)
            return t->slot[i].count;
    }
    return 0;
}

/* The words and nothing else, each as often as listed. */
static void expect(struct learn_bert o, const char *text, size_t n, const char *const *word)
{
    struct learn_wordpiece *w = learn_wordpiece_create(&o, 1);
    struct learn_table t;
    learn_table_init(&t);
    split(w, &t, text, n);
    size_t words = 0;
    for (; word[words]; words++)
        T_EQ(count_of(&t, word[words]), 1);
    T_EQ(t.used, words);
    learn_table_finish(&t);
    learn_wordpiece_destroy(w);
}

static const struct learn_bert lower = {true, true, true, true}, cased = {true, true, false, false};

static void steps_of_bert(void)
{
    static const char text[] = "H\xc3\xa9llo, W\xc3\x96RLD!\tna\xc3\xafve\n\xe7\x8c\xab\xe7\x8a\xac"
                               "x\000y \xe2\x89\xa0 \xea\xb0\x80";
    expect(lower, text, sizeof(text) - 1,
           (const char *const[]){"hello", ",", "world", "!", "naive", "\xe7\x8c\xab",
                                 "\xe7\x8a\xac", "xy", "=", "\xe1\x84\x80\xe1\x85\xa1", NULL});
    expect(cased, text, sizeof(text) - 1,
           (const char *const[]){"H\xc3\xa9llo", ",", "W\xc3\x96RLD", "!", "na\xc3\xafve",
                                 "\xe7\x8c\xab", "\xe7\x8a\xac", "xy", "\xe2\x89\xa0",
                                 "\xea\xb0\x80", NULL});
}

/* U+1D165 is of class 216, U+1D16D of 226; both are spacing and are kept, in canonical order, even
 * with a removed mark between them. */
static void marks_that_stay_are_ordered(void)
{
    static const char text[] = "a\xf0\x9d\x85\xad\xcc\x81\xf0\x9d\x85\xa5z \xf0\x9d\x85\xad";
    expect(lower, text, sizeof(text) - 1,
           (const char *const[]){"a\xf0\x9d\x85\xa5\xf0\x9d\x85\xadz", "\xf0\x9d\x85\xad", NULL});
}

static void nothing_and_little(void)
{
    expect(lower, "", 0, (const char *const[]){NULL});
    expect(lower, " \n\t", 3, (const char *const[]){NULL});
    expect(lower, "a", 1, (const char *const[]){"a", NULL});
    expect(lower, "A\xff", 2, (const char *const[]){"a", NULL});
}

/* A text of many slices has the words of its lines. */
static void long_texts_are_cut_alike(void)
{
    static const char *const part[] = {"a",
                                       "B",
                                       " ",
                                       "\n",
                                       ",",
                                       "\xc3\xa9",
                                       "\xe3\x81\x8c",
                                       "\xe7\x8c\xab",
                                       "\xf0\x9d\x85\xad",
                                       "\xf0\x9d\x85\xa5",
                                       "\xcc\x81",
                                       "\xc2\xa0",
                                       "abcdefghijklmnopqrstuvwxyz"};
    struct buf b = {0};
    for (uint64_t i = 0; i < 100000; i++)
        buf_adds(&b, part[t_rand(9, i) % (sizeof(part) / sizeof(*part))]);
    buf_adds(&b, "\n");
    for (int i = 0; i < 60000; i++)
        buf_adds(&b, i % 2 ? "\xc3\xa9" : "q"); /* one word */
    struct learn_wordpiece *w = learn_wordpiece_create(&lower, 1);
    struct learn_table whole, lines;
    learn_table_init(&whole);
    learn_table_init(&lines);
    split(w, &whole, b.data, b.len);
    for (const char *p = b.data, *end = p + b.len; p < end;) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        size_t n = feed ? (size_t)(feed + 1 - p) : (size_t)(end - p);
        split(w, &lines, p, n);
        p += n;
    }
    T_EQ(whole.used, lines.used);
    for (size_t i = 0; i <= whole.mask; i++) {
        size_t n;
        if (!whole.slot[i].count)
            continue;
        const char *p = learn_slot_text(&whole, &whole.slot[i], &n);
        char *word = strndup(p, n);
        T_EQ(count_of(&lines, word), whole.slot[i].count);
        free(word);
    }
    T_EQ(learn_wordpiece_invalid(w), 0);
    learn_table_finish(&whole);
    learn_table_finish(&lines);
    learn_wordpiece_destroy(w);
    buf_finish(&b);
}

T_MAIN(T_CASE(steps_of_bert), T_CASE(marks_that_stay_are_ordered), T_CASE(nothing_and_little),
       T_CASE(long_texts_are_cut_alike))
