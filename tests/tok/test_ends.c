/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/ends.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/t.h"

enum { PIECES = 200, LONGEST = 6, TEXTS = 40, ROOM = 2000 };

struct made {
    char text[PIECES][LONGEST];
    struct trie_key key[PIECES];
    struct ends_piece piece[PIECES];
    size_t n;
    struct trie trie;
    struct ends ends;
};

static bool has(const struct made *m, const char *text, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->key[i].length == n && memcmp(m->key[i].text, text, n) == 0)
            return true;
    return false;
}

/* Random pieces over a few letters; each fifth is left out. */
static void make(struct made *m, uint64_t seed, uint32_t letters)
{
    struct trie_key sorted[PIECES];
    m->n = 0;
    for (uint64_t i = 0; i < PIECES; i++) {
        char *p = m->text[m->n];
        size_t n = 1 + t_rand(seed, i) % LONGEST;
        for (size_t k = 0; k < n; k++)
            p[k] = (char)('a' + t_rand(seed + i, k) % letters);
        if (has(m, p, n))
            continue;
        m->key[m->n] = (struct trie_key){p, n, (int32_t)m->n};
        m->piece[m->n] = (struct ends_piece){-(float)m->n, (uint32_t)1 << m->n % 32,
                                             m->n % 5 == 4 ? 0 : (uint32_t)n, n == 1};
        m->n++;
    }
    memcpy(sorted, m->key, sizeof(sorted));
    trie_init(&m->trie, sorted, m->n);
    ends_init(&m->ends, &m->trie, m->piece);
}

/* The list of what ends behind text[n - 1], found by trying all pieces. */
static void check(const struct made *m, const char *text, size_t n, uint32_t list)
{
    const struct ends_item *head = &m->ends.item[list];
    uint32_t ties = 0, count = 0;
    bool one = false;
    for (size_t length = LONGEST; length > 0; length--)
        for (size_t i = 0; i < m->n; i++) {
            const struct ends_piece *p = &m->piece[i];
            if (m->key[i].length != length || length > n || !p->length ||
                memcmp(text + n - length, m->key[i].text, length) != 0)
                continue;
            const struct ends_item *item = head + ++count;
            T_CHECK(count <= head->length);
            T_EQ(item->id, (int)i);
            T_EQ(item->length, length);
            T_CHECK(item->score >= p->score && item->score <= p->score);
            ties |= p->ties;
            one |= p->one;
        }
    T_EQ(head->length, count);
    T_EQ(head->ties, ties);
    T_EQ(head->id, one);
}

static void lists_hold_all_pieces(void)
{
    static struct made m;
    char text[ROOM];
    uint32_t start[TEXTS + 1], list[ROOM];
    for (uint32_t letters = 1; letters < 6; letters++) {
        make(&m, letters, letters);
        for (uint64_t i = 0; i < ROOM; i++)
            text[i] = (char)('a' + t_rand(99, i) % (letters + 1)); /* one that no piece has */
        for (uint32_t i = 0; i <= TEXTS; i++) /* some of them empty, one long */
            start[i] = i < TEXTS ? i * (i - i % 3) / 2 : ROOM;
        ends_walk(&m.ends, text, start, TEXTS, list);
        for (size_t i = 0; i < TEXTS; i++) {
            uint32_t state = TRIE_ROOT;
            for (size_t at = start[i]; at < start[i + 1]; at++) {
                state = ends_step(&m.ends, state, text[at]);
                T_EQ(list[at], m.ends.unit[state].list);
                check(&m, text + start[i], at + 1 - start[i], list[at]);
            }
        }
        ends_finish(&m.ends);
        trie_finish(&m.trie);
    }
}

static void no_pieces(void)
{
    struct trie t;
    struct ends a;
    uint32_t list[3] = {1, 1, 1};
    const uint32_t start[2] = {0, 3};
    trie_init(&t, NULL, 0);
    ends_init(&a, &t, NULL);
    ends_walk(&a, "a\xff", start, 1, list);
    for (size_t i = 0; i < 3; i++)
        T_EQ(a.item[list[i]].length, 0);
    ends_finish(&a);
    trie_finish(&t);
}

T_MAIN(T_CASE(lists_hold_all_pieces), T_CASE(no_pieces))
