/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/aho_corasick.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/text/kernels.h"

enum { PIECES = 200, LONGEST = 6, TEXTS = 150, ROOM = 9000, MOST = LONGEST * 4 };

struct made {
    char text[PIECES][MOST];
    struct trie_key key[PIECES];
    size_t n;
    struct aho_corasick ends;
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

/* Random pieces over a few letters; one in five is left out. */
static void make(struct made *m, uint64_t seed, uint32_t letters, bool wide)
{
    struct trie_key sorted[PIECES];
    struct trie t;
    struct aho_corasick_piece *piece = mem_new(PIECES + 1, sizeof(*piece));
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
        piece[m->n] = (struct aho_corasick_piece){.score = -(float)m->n,
                                                  .length = m->n % 5 == 4 ? 0 : (uint32_t)n};
    }
    memcpy(sorted, m->key, sizeof(sorted));
    trie_init(&t, sorted, m->n); /* for the order */
    trie_finish(&t);
    aho_corasick_init(&m->ends, sorted, m->n, piece);
}

static size_t count_chars(const char *text, size_t n)
{
    size_t chars = 0;
    for (size_t at = 0; at < n; at += utf8_char(text + at, text + n))
        chars++;
    return chars;
}

/* The pieces that end after text[n - 1], by brute force. */
static void check(const struct made *m, const char *text, size_t n, uint32_t piece)
{
    for (size_t length = MOST; length > 0; length--)
        for (size_t i = 0; i < m->n; i++) {
            const struct aho_corasick_piece *p = &m->ends.piece[i + 1];
            if (m->key[i].length != length || length > n || !p->length ||
                memcmp(text + n - length, m->key[i].text, length) != 0)
                continue;
            T_EQ(piece, i + 1);
            T_EQ(p->length, length);
            T_EQ(p->score, -(float)(i + 1));
            T_EQ(p->more >> AHO_CORASICK_CHARS, count_chars(m->key[i].text, length));
            piece = p->more & AHO_CORASICK_NEXT;
        }
    T_EQ(piece, 0);
}

static void check_texts(const struct made *m, const char *text, const uint32_t *start)
{
    static uint32_t number[ROOM], last[ROOM * AHO_CORASICK_LANES], plain[ROOM * AHO_CORASICK_LANES];
    static struct aho_corasick_texts t;
    uint32_t n = 0;
    t.n = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        t.begin[t.n] = n;
        t.to[t.n] = n * AHO_CORASICK_LANES + (uint32_t)t.n % AHO_CORASICK_LANES;
        for (size_t at = start[i], k; at < start[i + 1]; at += k) {
            k = utf8_char(text + at, text + start[i + 1]);
            number[n++] = m->ends.number[utf8_code(text + at, k)];
        }
        t.end[t.n] = n;
        t.n += start[i] < start[i + 1];
    }
    text_kernels[simd_best()].walk(&m->ends, number, &t, last);
    aho_corasick_walk_plain(&m->ends, number, &t, plain);
    for (size_t i = 0, k = 0; i < TEXTS; i++) {
        uint32_t state = AHO_CORASICK_ROOT, to = t.to[k];
        for (size_t at = start[i]; at < start[i + 1]; to += AHO_CORASICK_LANES) {
            size_t one = utf8_char(text + at, text + start[i + 1]);
            state = aho_corasick_step(&m->ends, state, m->ends.number[utf8_code(text + at, one)]);
            at += one;
            T_EQ(last[to], m->ends.unit[state].piece);
            T_EQ(plain[to], last[to]);
            check(m, text + start[i], at - start[i], last[to]);
        }
        k += start[i] < start[i + 1];
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
            for (uint32_t k = 0; k < (i == 70 ? 300 : chars);
                 k++) /* a character that is in no piece */
                at +=
                    (uint32_t)put_char(text + at, t_rand(i, k) % (letters + (letters < 6)), n % 2);
        }
        start[TEXTS] = at;
        T_CHECK(at <= ROOM);
        check_texts(&m, text, start);
        aho_corasick_finish(&m.ends);
    }
}

static void no_pieces(void)
{
    struct aho_corasick a;
    uint32_t last[2 * AHO_CORASICK_LANES] = {1};
    static const struct aho_corasick_texts t = {.n = 1, .end = {2}};
    aho_corasick_init(&a, NULL, 0, mem_new(1, sizeof(*a.piece)));
    last[AHO_CORASICK_LANES] = 1;
    text_kernels[simd_best()].walk(&a, (const uint32_t[]){'a' + 1, 0}, &t, last);
    T_EQ(last[0], 0);
    T_EQ(last[AHO_CORASICK_LANES], 0);
    aho_corasick_finish(&a);
}

/* Many characters, of which most begin a piece, so that units lie far apart. */
static void many_characters(void)
{
    enum { MANY = 20000 };
    struct trie_key *key = mem_new(MANY, sizeof(*key));
    struct aho_corasick_piece *piece = mem_new(MANY + 1, sizeof(*piece));
    char(*text)[8] = mem_new(MANY, 8);
    struct trie t;
    struct aho_corasick a;
    for (uint32_t i = 0; i < MANY; i++) { /* a character, or two or so */
        size_t k = utf8_put(text[i], 0x3000 + i % 9000);
        if (i >= 9000)
            k += utf8_put(text[i] + k, 0x3000 + i * 7 % 9001);
        key[i] = (struct trie_key){text[i], k, (int32_t)i};
        piece[i + 1] = (struct aho_corasick_piece){.score = -1, .length = (uint32_t)k};
    }
    trie_init(&t, key, MANY);
    trie_finish(&t);
    aho_corasick_init(&a, key, MANY, piece);
    for (uint32_t i = 0; i < MANY; i++) {
        size_t k = utf8_char(text[i], text[i] + 8);
        uint32_t state = aho_corasick_step(&a, AHO_CORASICK_ROOT, a.number[utf8_code(text[i], k)]);
        T_EQ(a.unit[state].piece, i % 9000 + 1);
        if (i < 9000)
            continue;
        state = aho_corasick_step(&a, state, a.number[utf8_code(text[i] + k, 3)]);
        T_EQ(a.unit[state].piece, i + 1);
    }
    aho_corasick_finish(&a);
    free(key);
    free(text);
}

T_MAIN(T_CASE(lists_hold_all_pieces), T_CASE(no_pieces), T_CASE(many_characters))
