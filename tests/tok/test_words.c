/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/words.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "tests/t.h"

static void words_of_every_length_are_found(void)
{
    struct arena a = {0};
    struct words w;
    words_init(&w, 4000);
    for (int i = 0; i < 4000; i++) {
        size_t n = 1 + (size_t)i % 40;
        char text[64];
        snprintf(text, sizeof(text), "%040d", i);
        char *word = arena_strndup(&a, text + 40 - n, n);
        bool fresh = words_find(&w, word, n) < 0;
        T_EQ(words_add(&w, word, n, i), fresh);
        T_CHECK(words_find(&w, word, n) >= 0);
    }
    for (size_t i = 0; i <= w.mask; i++)
        if (w.slot[i].at) {
            struct words_text t = w.text[w.slot[i].at - 1];
            T_EQ(words_find(&w, t.p, t.n), w.slot[i].id);
        }
    words_finish(&w);
    arena_finish(&a);
}

/* Every pair of words that differ in one byte, in every place, is told apart. */
static void one_byte_tells_words_apart(void)
{
    char text[48][48];
    for (size_t n = 1; n < 48; n++) {
        struct words w;
        words_init(&w, n + 1);
        for (size_t i = 0; i <= n; i++) {
            memset(text[i], 'a', n);
            if (i)
                text[i][i - 1] = 'b';
            T_CHECK(words_add(&w, text[i], n, (int32_t)i));
        }
        for (size_t i = 0; i <= n; i++)
            T_EQ(words_find(&w, text[i], n), i);
        T_EQ(words_find(&w, text[0], n - 1), -1);
        words_finish(&w);
    }
}

static void a_second_word_changes_nothing(void)
{
    struct words w;
    words_init(&w, 2);
    T_CHECK(words_add(&w, "one", 3, 1));
    T_CHECK(!words_add(&w, "one", 3, 2));
    T_EQ(words_find(&w, "one", 3), 1);
    T_EQ(words_find(&w, "", 0), -1);
    words_finish(&w);
}

T_MAIN(T_CASE(words_of_every_length_are_found), T_CASE(one_byte_tells_words_apart),
       T_CASE(a_second_word_changes_nothing))
