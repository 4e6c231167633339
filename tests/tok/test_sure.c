/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sure.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/utf8.h"
#include "tests/t.h"
#include "tok/cut.h"

/*
 * Merges as training makes them: again and again two neighbours of a text become a symbol, be they
 * characters, parts of these or more; in half the vocabularies ranks come in another order than
 * that, in some several have one. Words are merged whole and cut, one join after another.
 */
enum { SYMBOLS = 370, TEXT = 1500, WORDS = 300, MOST = 60, NONE = 1 << 20 };

struct made {
    char bytes[SYMBOLS][64];
    size_t n[SYMBOLS], count;
    uint32_t left[SYMBOLS], right[SYMBOLS], rank[SYMBOLS];
    uint32_t rank_of[SYMBOLS][SYMBOLS], id_of[SYMBOLS][SYMBOLS];
    struct sure *sure;
    struct cut cut;
};

static void add_char(struct buf *b, uint64_t random)
{
    static const uint32_t other[] = {'a', 0xe9, 0x1f600, 0x3002};
    char u[4];
    uint32_t c = random % 4 < 3 ? 0x3042 + (uint32_t)(random >> 8) % 9 * 7
                                : 0x4e00 + (uint32_t)(random >> 8) % 5 * 0x43;
    if (random >> 16 & 31)
        c = random >> 21 & 1 && random % 4 ? 0x3042 + (uint32_t)(random >> 8) % 3 * 7 : c;
    else
        c = other[random >> 22 & 3];
    buf_add(b, u, utf8_put(u, c));
}

static uint32_t symbol_of(struct made *m, const char *p, size_t n)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->n[i] == n && !memcmp(m->bytes[i], p, n))
            return i;
    memcpy(m->bytes[m->count], p, n);
    m->n[m->count] = n;
    return (uint32_t)m->count++;
}

static size_t symbols_of(struct made *m, const char *p, size_t n, uint32_t *sym)
{
    for (size_t i = 0; i < n; i++)
        sym[i] = symbol_of(m, p + i, 1);
    return n;
}

/* Joins all that are a pair, of the lowest rank first; the highest rank of these. */
static uint32_t merge(const struct made *m, uint32_t *sym, size_t *n)
{
    uint32_t highest = 0;
    for (;;) {
        size_t best = 0;
        uint32_t rank = NONE;
        for (size_t i = 0; i + 1 < *n; i++)
            if (m->rank_of[sym[i]][sym[i + 1]] < rank)
                rank = m->rank_of[sym[best = i]][sym[i + 1]];
        if (rank == NONE)
            return highest;
        highest = rank > highest ? rank : highest;
        sym[best] = m->id_of[sym[best]][sym[best + 1]];
        memmove(sym + best + 1, sym + best + 2, (--*n - best - 1) * sizeof(*sym));
    }
}

static void add_pairs(struct made *m, struct buf *text, uint64_t seed)
{
    uint32_t sym[TEXT + 8];
    for (int byte = 0; byte < 256; byte++)
        symbol_of(m, (const char[]){(char)byte}, 1);
    size_t n = symbols_of(m, text->data, text->len, sym);
    for (uint64_t i = 0; m->count < SYMBOLS - seed % 5 * 20 && i < 3 * SYMBOLS; i++) {
        size_t at = t_rand(seed + 5, i) % (n - 1);
        uint32_t a = sym[at], b = sym[at + 1], known = (uint32_t)m->count;
        char both[128];
        if (m->n[a] + m->n[b] > 15)
            continue;
        memcpy(both, m->bytes[a], m->n[a]);
        memcpy(both + m->n[a], m->bytes[b], m->n[b]);
        uint32_t id = symbol_of(m, both, m->n[a] + m->n[b]);
        if (id < known)
            continue;
        m->left[id] = a;
        m->right[id] = b;
        m->rank[id] = id;
        size_t k = 0;
        for (size_t from = 0; from < n; from++) {
            bool joins = from + 1 < n && sym[from] == a && sym[from + 1] == b;
            sym[k++] = joins ? id : sym[from];
            from += joins;
        }
        n = k;
    }
}

/* The characters of three bytes that merging makes, and all pairs. */
static void make_sure(struct made *m)
{
    m->sure = sure_create(t_rand(m->count, 1) % 2 ? m->count : 1);
    for (size_t i = 0; i < m->count; i++) {
        const char *p = m->bytes[i];
        uint32_t sym[3];
        size_t n = 3;
        if (m->n[i] != 3 || ((unsigned char)p[0] & 0xf0) != 0xe0)
            continue;
        symbols_of(m, p, n, sym);
        uint32_t made = merge(m, sym, &n);
        if (n == 1)
            sure_add_char(m->sure, utf8_code(p, 3), made);
    }
    for (size_t i = 0; i < m->count; i++)
        if (m->n[i] > 1)
            sure_add(m->sure, m->bytes[m->left[i]], m->n[m->left[i]], m->bytes[m->right[i]],
                     m->n[m->right[i]], m->rank[i]);
    sure_close(m->sure);
    cut_init(&m->cut, SYMBOLS * 15);
    for (size_t i = 0; i < m->count; i++)
        cut_add(&m->cut, m->bytes[i], m->n[i]);
}

static struct made *make(uint64_t seed)
{
    struct made *m = calloc(1, sizeof(*m));
    struct buf text = {0};
    for (uint64_t i = 0; text.len < TEXT; i++)
        add_char(&text, t_rand(seed, i));
    add_pairs(m, &text, seed);
    buf_finish(&text);
    for (size_t i = m->count - 1; i > 0 && seed % 2; i--) {
        size_t k = t_rand(seed + 9, i) % (i + 1);
        uint32_t was = m->rank[i];
        m->rank[i] = m->rank[k];
        m->rank[k] = was;
    }
    for (size_t i = 0; i < m->count && seed % 6 == 5; i++)
        m->rank[i] /= 8;
    for (size_t i = 0; i < SYMBOLS; i++)
        for (size_t k = 0; k < SYMBOLS; k++)
            m->rank_of[i][k] = NONE;
    for (uint32_t i = 0; i < m->count; i++)
        if (m->n[i] > 1) {
            m->rank_of[m->left[i]][m->right[i]] = m->rank[i];
            m->id_of[m->left[i]][m->right[i]] = i;
        }
    make_sure(m);
    return m;
}

static void finish(struct made *m)
{
    sure_destroy(m->sure);
    cut_finish(&m->cut);
    free(m);
}

/* Merging a word whole gives what merging its parts does. */
static void check_parts(struct made *m, const char *text, const uint32_t *part, size_t count)
{
    size_t n = part[count] - part[0], k = 0;
    uint32_t *whole = calloc(n + 1, sizeof(*whole)), *own = calloc(n + 1, sizeof(*own));
    symbols_of(m, text + part[0], n, whole);
    merge(m, whole, &n);
    for (size_t i = 0; i < count; i++) {
        size_t few = symbols_of(m, text + part[i], part[i + 1] - part[i], own + k);
        merge(m, own + k, &few);
        k += few;
    }
    T_CHECK(k == n && !memcmp(whole, own, n * sizeof(*own)));
    free(whole);
    free(own);
}

/* A word of which the characters from `from` on are asked about, n of them; how many cuts. */
static size_t check_word(struct made *m, uint64_t seed, size_t length, size_t from, size_t n)
{
    struct buf b = {0};
    uint32_t bytes[2 * MOST], at[2 * MOST + 1], part[2 * MOST + 1];
    uint64_t begins[2] = {from == 0, 0}, cut[2] = {0}, plain[2] = {0};
    size_t count = 1;
    for (size_t k = 0; k < length; k++) {
        at[k] = (uint32_t)b.len;
        add_char(&b, t_rand(seed, k));
    }
    at[length] = (uint32_t)b.len;
    buf_add(&b, "xxx", 3);
    for (size_t k = 0; k < n; k++)
        bytes[k] = load_u32(b.data + at[from + k]);
    sure_places(m->sure, bytes, begins, n, from + n == length, cut);
    sure_places_plain(m->sure, bytes, begins, n, from + n == length, plain);
    T_CHECK(cut[0] == plain[0] && cut[1] == plain[1]);
    part[0] = 0;
    for (size_t k = 0; k < n; k++)
        if (cut[k / 64] >> k % 64 & 1)
            part[count++] = at[from + k];
    part[count] = at[length];
    check_parts(m, b.data, part, count);
    buf_finish(&b);
    return count - 1;
}

static void characters_are_cut_where_nothing_joins(void)
{
    size_t cuts = 0, places = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct made *m = make(seed);
        for (uint64_t i = 0; i < WORDS; i++) {
            uint64_t random = t_rand(seed + 1, i);
            size_t length = 2 + random % (MOST - 2), from = 0, n = length;
            if (random >> 10 & 1) {
                from = (random >> 11) % (length - 1);
                n = 2 + (random >> 20) % (length - from - 1);
            }
            cuts += check_word(m, seed * WORDS + i, length + (random >> 30) % MOST, from, n);
            places += n;
        }
        finish(m);
    }
    T_CHECK(cuts > places / 20);
}

/* Words of a text, and all of it as one, which is longer than sure_places takes. */
static void parts_of_a_text_are_cut(void)
{
    size_t finer = 0, plain = 0;
    for (uint64_t seed = 101; seed <= 110; seed++) {
        struct made *m = make(seed);
        struct buf b = {0};
        uint32_t start[WORDS + 1];
        for (uint64_t i = 0; i < WORDS; i++) {
            start[i] = (uint32_t)b.len;
            for (uint64_t k = 1 + t_rand(seed + 1, i) % 20; k--;)
                add_char(&b, t_rand(seed + 2, i * MOST + k));
        }
        start[WORDS] = (uint32_t)b.len;
        const uint32_t all[2] = {0, (uint32_t)b.len};
        for (int i = 0; i < 64; i++)
            buf_add(&b, "x", 1);
        uint32_t *ret = calloc(b.len + 1, sizeof(*ret));
        plain += cut_parts(&m->cut, b.data, start, WORDS, 9, ret);
        size_t n = cut_parts_finer(&m->cut, m->sure, b.data, start, WORDS, 9, ret), at = 0;
        finer += n;
        for (size_t i = 0; i < WORDS; i++) {
            size_t from = at;
            while (ret[at] != start[i + 1])
                at++;
            check_parts(m, b.data, ret + from, at - from);
        }
        T_CHECK(at == n);
        n = cut_parts_finer(&m->cut, m->sure, b.data, all, 1, 9, ret);
        check_parts(m, b.data, ret, n);
        free(ret);
        buf_finish(&b);
        finish(m);
    }
    T_CHECK(finer >= plain && plain > WORDS * 10);
}

T_MAIN(T_CASE(characters_are_cut_where_nothing_joins), T_CASE(parts_of_a_text_are_cut))
