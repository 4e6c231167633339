/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/trie.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/mem.h"
#include "tests/t.h"

/* The value of a string, -1 if it is not a key. */
static int32_t find(const struct trie *t, const char *text, size_t n)
{
    uint32_t at = TRIE_ROOT;
    for (size_t i = 0; i < n; i++)
        if (!trie_step(t, &at, text[i]))
            return -1;
    return trie_value(t, at);
}

static int32_t look(const struct trie_key *key, size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (key[i].length == length && memcmp(key[i].text, text, length) == 0)
            return key[i].value;
    return -1;
}

/*
 * Random keys over `letters` byte values: all are found, and random strings only if they are keys.
 */
static void check(size_t n, uint32_t letters, uint32_t longest)
{
    struct arena a = {0};
    struct trie t;
    struct trie_key *key = mem_new(n, sizeof(*key));
    size_t have = 0;
    char text[64];
    for (uint64_t i = 0; have < n; i++) {
        size_t length = 1 + t_rand(1, i) % longest;
        for (size_t k = 0; k < length; k++)
            text[k] = (char)(t_rand(i + 2, k) % letters + (letters < 256 ? 'a' : 0));
        if (look(key, have, text, length) < 0) {
            key[have] = (struct trie_key){arena_strndup(&a, text, length), length, (int32_t)have};
            have++;
        }
    }
    trie_init(&t, key, n);
    for (size_t i = 0; i < n; i++)
        T_EQ(find(&t, key[i].text, key[i].length), key[i].value);
    for (uint64_t i = 0; i < 3000; i++) {
        size_t length = 1 + t_rand(7, i) % longest;
        for (size_t k = 0; k < length; k++)
            text[k] = (char)(t_rand(i + 9, k) % letters + (letters < 256 ? 'a' : 0));
        T_EQ(find(&t, text, length), look(key, n, text, length));
    }
    trie_finish(&t);
    free(key);
    arena_finish(&a);
}

static void random_keys(void)
{
    check(1, 2, 1);
    check(50, 2, 8);
    check(2000, 4, 12);
    check(2000, 26, 9);
    check(2000, 256, 3);
    check(256, 256, 2);
}

static void every_byte_at_the_root(void)
{
    struct trie t;
    struct trie_key key[256];
    char text[256];
    for (int i = 0; i < 256; i++) {
        text[i] = (char)i;
        key[i] = (struct trie_key){&text[i], 1, i};
    }
    trie_init(&t, key, 256);
    for (int i = 0; i < 256; i++) {
        T_EQ(find(&t, &text[i], 1), i);
        char two[2] = {(char)i, (char)i};
        T_EQ(find(&t, two, 2), -1);
    }
    trie_finish(&t);
}

static void no_keys(void)
{
    struct trie t;
    trie_init(&t, NULL, 0);
    T_EQ(find(&t, "", 0), -1);
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        T_EQ(find(&t, &c, 1), -1);
    }
    trie_finish(&t);
}

T_MAIN(T_CASE(random_keys), T_CASE(every_byte_at_the_root), T_CASE(no_keys))
