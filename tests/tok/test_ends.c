/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/ends.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tests/t.h"

enum { PIECES = 200, LONGEST = 6, TEXTS = 150, ROOM = 9000, MOST = LONGEST * 4 };

struct made {
    char text[PIECES][MOST];
    struct trie_key key[PIECES];
    size_t n;
    struct ends ends;
};

/* A character of one to four bytes, or of one; returns its bytes. */
static size_t put_char(char *to, uint32_t letter, bool wide)
{
    static const uint32_t c[] = {'a', 0xe9, 0x3042, 0x1f600, 0x7ff, 0xffff, 0x10ffff};
    return utf8_put(to, wide ? c[letter] : 'a' + letter);
}

static bool has(const struct made *m, const char *text, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->key[i].length == n && memcmp(m->key[i].text, text, n) == 0)
            return true;
    return false;
}

/* Random pieces over a few letters; each fifth is left out. */
static void make(struct made *m, uint64_t seed, uint32_t letters, bool wide)
{
    struct trie_key sorted[PIECES];
    struct trie t;
    struct ends_piece *piece = mem_new(PIECES + 1, sizeof(*piece));
    m->n = 0;
    for (uint64_t i = 0; i < PIECES; i++) {
        char *p = m->text[m->n];
        size_t n = 0;
        for (size_t k = 0; k < 1 + t_rand(seed, i) % LONGEST; k++)
            n += put_char(p + n, t_rand(seed + i, k) % letters, wide);
        if (has(m, p, n))
            continue;
        m->key[m->n] = (struct trie_key){p, n, (int32_t)m->n};
        m->n++;
        piece[m->n] = (struct ends_piece){-(float)m->n, m->n % 5 == 4 ? 0 : (uint32_t)n, 0};
    }
    memcpy(sorted, m->key, sizeof(sorted));
    trie_init(&t, sorted, m->n); /* for the order */
    trie_finish(&t);
    ends_init(&m->ends, sorted, m->n, piece);
}

/* The pieces that end behind text[n - 1], found by trying all. */
static void check(const struct made *m, const char *text, size_t n, uint32_t piece)
{
    for (size_t length = MOST; length > 0; length--)
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

static void check_texts(const struct made *m, const char *text, const uint32_t *start)
{
    uint32_t last[ROOM], plain[ROOM];
    ends_walk(&m->ends, text, start, TEXTS, last);
    ends_walk_plain(&m->ends, text, start, TEXTS, plain);
    for (size_t i = 0; i < TEXTS; i++) {
        uint32_t state = ENDS_ROOT;
        for (size_t at = start[i], k; at < start[i + 1]; at += k) {
            k = utf8_char(text + at, text + start[i + 1]);
            state = ends_step(&m->ends, state, utf8_code(text + at, k));
            T_EQ(last[at + k - 1], m->ends.unit[state].piece);
            T_EQ(plain[at + k - 1], last[at + k - 1]);
            check(m, text + start[i], at + k - start[i], last[at + k - 1]);
        }
    }
}

static void lists_hold_all_pieces(void)
{
    static struct made m;
    char text[ROOM + 3] = {0};
    uint32_t start[TEXTS + 1];
    for (uint32_t n = 2; n < 14; n++) {
        uint32_t letters = n / 2, at = 0;
        make(&m, n, letters, n % 2);
        for (uint32_t i = 0; i < TEXTS; i++) { /* some of them empty, one long */
            uint32_t chars = t_rand(n, i) % 4 ? t_rand(n + 1, i) % 24 : 0;
            start[i] = at;
            for (uint32_t k = 0; k < (i == 70 ? 300 : chars); k++) /* one that no piece has */
                at +=
                    (uint32_t)put_char(text + at, t_rand(i, k) % (letters + (letters < 6)), n % 2);
        }
        start[TEXTS] = at;
        T_CHECK(at <= ROOM);
        check_texts(&m, text, start);
        ends_finish(&m.ends);
    }
}

static void no_pieces(void)
{
    struct ends a;
    uint32_t last[3] = {1, 1, 1};
    const uint32_t start[2] = {0, 3};
    ends_init(&a, NULL, 0, mem_new(1, sizeof(*a.piece)));
    ends_walk(&a, "a\xc3\xbf\0\0\0", start, 1, last);
    T_EQ(last[0], 0);
    T_EQ(last[2], 0);
    ends_finish(&a);
}

/* Many characters, of which most begin a piece, so that units lie far apart. */
static void many_characters(void)
{
    enum { MANY = 20000 };
    struct trie_key *key = mem_new(MANY, sizeof(*key));
    struct ends_piece *piece = mem_new(MANY + 1, sizeof(*piece));
    char(*text)[8] = mem_new(MANY, 8);
    struct trie t;
    struct ends a;
    for (uint32_t i = 0; i < MANY; i++) { /* a character, or two or so */
        size_t k = utf8_put(text[i], 0x3000 + i % 9000);
        if (i >= 9000)
            k += utf8_put(text[i] + k, 0x3000 + i * 7 % 9001);
        key[i] = (struct trie_key){text[i], k, (int32_t)i};
        piece[i + 1] = (struct ends_piece){-1, (uint32_t)k, 0};
    }
    trie_init(&t, key, MANY);
    trie_finish(&t);
    ends_init(&a, key, MANY, piece);
    for (uint32_t i = 0; i < MANY; i++) {
        size_t k = utf8_char(text[i], text[i] + 8);
        uint32_t state = ends_step(&a, ENDS_ROOT, utf8_code(text[i], k));
        T_EQ(a.unit[state].piece, i % 9000 + 1);
        if (i < 9000)
            continue;
        state = ends_step(&a, state, utf8_code(text[i] + k, 3));
        T_EQ(a.unit[state].piece, i + 1);
    }
    ends_finish(&a);
    free(key);
    free(text);
}

T_MAIN(T_CASE(lists_hold_all_pieces), T_CASE(no_pieces), T_CASE(many_characters))
