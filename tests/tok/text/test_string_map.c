/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/string_map.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/arena.h"
#include "tests/t.h"

static void words_of_every_length_are_found(void)
{
    struct arena a = {0};
    struct string_map w;
    string_map_init(&w, 4000);
    for (int i = 0; i < 4000; i++) {
        size_t n = 1 + (size_t)i % 40;
        char text[64];
        snprintf(text, sizeof(text), "%040d", i);
        char *word = arena_strndup(&a, text + 40 - n, n);
        bool fresh = string_map_find(&w, word, n) < 0;
        T_EQ(string_map_add(&w, word, n, i), fresh);
        T_CHECK(string_map_find(&w, word, n) >= 0);
    }
    for (size_t i = 0; i <= w.mask; i++)
        if (w.slot[i].at) {
            struct string_ref t = w.text[w.slot[i].at - 1];
            T_EQ(string_map_find(&w, t.p, t.n), w.slot[i].id);
        }
    string_map_finish(&w);
    arena_finish(&a);
}

/* Any two words that differ in one byte, at any position, are distinguished. */
static void one_byte_tells_words_apart(void)
{
    char text[48][48];
    for (size_t n = 1; n < 48; n++) {
        struct string_map w;
        string_map_init(&w, n + 1);
        for (size_t i = 0; i <= n; i++) {
            memset(text[i], 'a', n);
            if (i)
                text[i][i - 1] = 'b';
            T_CHECK(string_map_add(&w, text[i], n, (int32_t)i));
        }
        for (size_t i = 0; i <= n; i++)
            T_EQ(string_map_find(&w, text[i], n), i);
        T_EQ(string_map_find(&w, text[0], n - 1), -1);
        string_map_finish(&w);
    }
}

static void a_second_word_changes_nothing(void)
{
    struct string_map w;
    string_map_init(&w, 2);
    T_CHECK(string_map_add(&w, "one", 3, 1));
    T_CHECK(!string_map_add(&w, "one", 3, 2));
    T_EQ(string_map_find(&w, "one", 3), 1);
    T_EQ(string_map_find(&w, "", 0), -1);
    string_map_finish(&w);
}

/* Words with eight bytes in common, the first or the last, that share a slot. */
static size_t crowded(uint64_t common, bool first, size_t n, unsigned shift)
{
    enum { WORDS = 2048 };
    unsigned char seen[4 * WORDS] = {0};
    size_t same = 0;
    for (uint64_t i = 0; i < WORDS; i++) {
        uint64_t other = i << shift;
        char text[16];
        memcpy(text + (first ? 0 : n - 8), &common, 8);
        memcpy(text + (first ? 8 : 0), &other, n - 8);
        same += seen[string_key(text, n).hash % sizeof(seen)]++ > 0;
    }
    return same;
}

/* Even for a constant of the hash, or with one bit changed: the other bytes count. */
static void no_bytes_hide_others(void)
{
    static const uint64_t constant[] = {0, 0x9E3779B97F4A7C15u, 0xD1B54A32D192ED03u};
    for (size_t i = 0; i < 3 * 65; i++) {
        uint64_t common = constant[i / 65] ^ (i % 65 ? (uint64_t)1 << (i % 65 - 1) : 0);
        for (int first = 0; first < 2; first++)
            for (size_t n = 12; n <= 16; n += 4) {
                T_CHECK(crowded(common, first, n, 0) < 512);
                T_CHECK(crowded(common, first, n, 16) < 512);
            }
    }
}

T_MAIN(T_CASE(words_of_every_length_are_found), T_CASE(one_byte_tells_words_apart),
       T_CASE(a_second_word_changes_nothing), T_CASE(no_bytes_hide_others))
