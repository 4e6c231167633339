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
    struct ends_piece *piece = mem_new(PIECES + 1, sizeof(*piece));
    m->n = 0;
    for (uint64_t i = 0; i < PIECES; i++) {
        char *p = m->text[m->n];
        size_t n = 1 + t_rand(seed, i) % LONGEST;
        for (size_t k = 0; k < n; k++)
            p[k] = (char)('a' + t_rand(seed + i, k) % letters);
        if (has(m, p, n))
            continue;
        m->key[m->n] = (struct trie_key){p, n, (int32_t)m->n};
        m->n++;
        piece[m->n] = (struct ends_piece){-(float)m->n, m->n % 5 == 4 ? 0 : (uint32_t)n, 0};
    }
    memcpy(sorted, m->key, sizeof(sorted));
    trie_init(&m->trie, sorted, m->n);
    ends_init(&m->ends, &m->trie, piece);
}

/* The pieces that end behind text[n - 1], found by trying all. */
static void check(const struct made *m, const char *text, size_t n, uint32_t piece)
{
    for (size_t length = LONGEST; length > 0; length--)
        for (size_t i = 0; i < m->n; i++) {
            const struct ends_piece *p = &m->ends.piece[i + 1];
            if (m->key[i].length != length || length > n || !p->length ||
                memcmp(text + n - length, m->key[i].text, length) != 0)
                continue;
            T_EQ(piece, i + 1);
            T_EQ(p->length, length);
            T_EQ(p->score, -(float)(i + 1));
            piece = p->next;
        }
    T_EQ(piece, 0);
}

static void lists_hold_all_pieces(void)
{
    static struct made m;
    char text[ROOM + 3] = {0};
    uint32_t start[TEXTS + 1], last[ROOM], plain[ROOM];
    for (uint32_t letters = 1; letters < 6; letters++) {
        make(&m, letters, letters);
        for (uint64_t i = 0; i < ROOM; i++)
            text[i] = (char)('a' + t_rand(99, i) % (letters + 1)); /* one that no piece has */
        for (uint32_t i = 0; i <= TEXTS; i++) /* some of them empty, one long */
            start[i] = i < TEXTS ? i * (i - i % 3) / 2 : ROOM;
        ends_walk(&m.ends, text, start, TEXTS, last);
        ends_walk_plain(&m.ends, text, start, TEXTS, plain);
        for (size_t i = 0; i < TEXTS; i++) {
            uint32_t state = TRIE_ROOT;
            for (size_t at = start[i]; at < start[i + 1]; at++) {
                state = ends_step(&m.ends, state, text[at]);
                T_EQ(last[at], m.ends.unit[state].piece);
                T_EQ(plain[at], last[at]);
                check(&m, text + start[i], at + 1 - start[i], last[at]);
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
    uint32_t last[3] = {1, 1, 1};
    const uint32_t start[2] = {0, 3};
    trie_init(&t, NULL, 0);
    ends_init(&a, &t, mem_new(1, sizeof(*a.piece)));
    ends_walk(&a, "a\xff\0\0\0", start, 1, last);
    for (size_t i = 0; i < 3; i++)
        T_EQ(last[i], 0);
    ends_finish(&a);
    trie_finish(&t);
}

T_MAIN(T_CASE(lists_hold_all_pieces), T_CASE(no_pieces))
