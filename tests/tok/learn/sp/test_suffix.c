/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/suffix.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

/* ---- texts ------------------------------------------------------------------------------- */

struct made {
    uint32_t *sym, *word;
    uint64_t *count;
    struct learn_text text;
};

static void finish(struct made *m)
{
    free(m->sym);
    free(m->word);
    free(m->count);
}

/* `words` words of up to `most` of `letters` symbols, many of them equal. */
static void make(struct made *m, uint64_t seed, uint32_t words, uint32_t most, uint32_t letters,
                 uint32_t ends)
{
    *m = (struct made){.sym = mem_new((size_t)words * (most + 1) + 1, sizeof(uint32_t)),
                       .word = mem_new((size_t)words * (most + 1) + 1, sizeof(uint32_t)),
                       .count = mem_new(words + 1, sizeof(uint64_t))};
    size_t n = 0;
    uint64_t at = 0;
    for (uint32_t w = 0; w < words; w++) {
        uint32_t length = 1 + t_rand(seed, at++) % most;
        uint32_t kinds = t_rand(seed, at++) % 3 ? letters : 1;
        m->count[w] = t_rand(seed, at++) % 3 ? 1 : 1 + t_rand(seed, at++) % 1000;
        for (uint32_t i = 0; i <= length; i++) {
            m->word[n] = w;
            m->sym[n++] =
                i == length ? t_rand(seed, at++) % ends : ends + t_rand(seed, at++) % kinds;
        }
    }
    m->text = (struct learn_text){m->sym, m->word, m->count, n, letters + ends, ends};
}

/* ---- the slow twin ----------------------------------------------------------------------- */

static bool has(const struct learn_text *t, size_t at, const uint32_t *sym, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (t->sym[at + i] != sym[i]) /* the text's last is an end, and sym has none */
            return false;
    return true;
}

/* The weight of all positions of a substring, if it is a repeat; 0 otherwise. */
static uint64_t weigh(const struct learn_text *t, const uint32_t *sym, uint32_t n)
{
    uint64_t count = 0;
    uint32_t next = UINT32_MAX;
    bool differ = false;
    for (size_t i = 0; i < t->n; i++) {
        if (!has(t, i, sym, n))
            continue;
        uint32_t s = t->sym[i + n];
        differ |= s == 0 || (next != UINT32_MAX && next != s);
        next = s;
        count += t->count[t->word[i]];
    }
    return differ && count > 1 ? count : 0;
}

static bool earlier(const struct learn_text *t, size_t at, uint32_t n)
{
    for (size_t i = 0; i < at; i++)
        if (has(t, i, t->sym + at, n))
            return true;
    return false;
}

static bool inside(const struct learn_text *t, size_t at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (t->sym[at + i] < t->ends)
            return false;
    return true;
}

struct wish {
    uint32_t unwanted, ends;
};

static bool any(const void *arg, const uint32_t *sym, uint32_t n)
{
    const struct wish *w = arg;
    for (uint32_t i = 0; i < n; i++)
        if (sym[i] == w->unwanted || sym[i] < w->ends)
            return false;
    return true;
}

static void check_sorted(const struct learn_text *t, const struct learn_suffix *s, uint32_t most)
{
    size_t places = 0;
    for (size_t i = 0; i < t->n; i++)
        places += t->sym[i] >= t->ends;
    T_EQ(s->n, places);
    for (size_t i = 1; i < s->n; i++) {
        uint32_t k = 0, a = s->at[i - 1], b = s->at[i];
        while (k <= most && t->sym[a + k] >= t->ends && t->sym[a + k] == t->sym[b + k])
            k++;
        T_CHECK(k > most || t->sym[a + k] < t->sym[b + k] ||
                (t->sym[a + k] == t->sym[b + k] && a < b));
    }
}

static void check_repeats(const struct learn_text *t, const struct learn_suffix *s,
                          const struct wish *wish, uint32_t longest)
{
    size_t expected = 0;
    for (size_t i = 0; i < t->n; i++)
        for (uint32_t n = 2; n <= longest && inside(t, i, n); n++)
            expected +=
                any(wish, t->sym + i, n) && !earlier(t, i, n) && weigh(t, t->sym + i, n) > 0;
    T_EQ(s->nrepeat, expected);
    for (size_t part = 0, i = 0; i < s->nrepeat; i++) {
        const struct learn_repeat *r = &s->repeat[i];
        const uint32_t *sym = t->sym + s->at[r->first];
        T_EQ(r->count, weigh(t, sym, r->length));
        for (uint32_t k = r->first; k < r->last; k++)
            T_CHECK(has(t, s->at[k], sym, r->length));
        T_CHECK(!r->first || !has(t, s->at[r->first - 1], sym, r->length));
        T_CHECK(r->last == s->n || !has(t, s->at[r->last], sym, r->length));
        while (i >= s->part[part + 1])
            part++;
        if (i > s->part[part]) {
            const struct learn_repeat *before = r - 1;
            T_CHECK(before->last < r->last ||
                    (before->last == r->last && before->length > r->length));
        }
    }
}

static void run(uint64_t seed, uint32_t words, uint32_t most, uint32_t letters, uint32_t longest)
{
    struct made m;
    uint32_t ends = seed % 3 ? 1 : 4;
    make(&m, seed, words, most, letters, ends);
    struct wish wish = {seed % 2 ? letters : UINT32_MAX, ends};
    struct learn_suffix s, other;
    struct pool *pool = pool_create(1), *more = pool_create(3);
    learn_suffix(&s, &m.text, longest, any, &wish, pool);
    check_sorted(&m.text, &s, longest);
    check_repeats(&m.text, &s, &wish, longest);
    learn_suffix(&other, &m.text, longest, any, &wish, more);
    T_EQ(other.n, s.n);
    T_MEM(other.at, s.at, s.n * sizeof(*s.at));
    T_EQ(other.nrepeat, s.nrepeat);
    for (size_t i = 0; i < s.nrepeat; i++)
        T_CHECK(s.repeat[i].first == other.repeat[i].first &&
                s.repeat[i].count == other.repeat[i].count &&
                s.repeat[i].length == other.repeat[i].length);
    pool_destroy(pool);
    pool_destroy(more);
    learn_suffix_finish(&s);
    learn_suffix_finish(&other);
    finish(&m);
}

static void few_letters(void)
{
    for (uint64_t seed = 0; seed < 12; seed++)
        run(seed, 30, 12, 2, 2 + (uint32_t)seed);
}

static void many_letters(void)
{
    for (uint64_t seed = 20; seed < 26; seed++) {
        run(seed, 60, 9, 5, 4);
        run(seed, 40, 10, 300, 6);
        run(seed, 60, 16, 200, 20); /* keys of whole 64 bits */
        run(seed, 20, 8, 70000, 16);
    }
}

static void long_runs(void)
{
    run(40, 4, 120, 2, 16);
    run(41, 3, 150, 1, 60);
    run(42, 3, 100, 70000, 512);
}

static void nothing(void)
{
    uint32_t sym[1] = {0}, word[1] = {0};
    uint64_t count[1] = {3};
    struct learn_text t = {sym, word, count, 0, 1, 1};
    struct wish wish = {1, 1};
    struct pool *pool = pool_create(1);
    struct learn_suffix s;
    learn_suffix(&s, &t, 16, any, &wish, pool);
    T_EQ(s.n, 0);
    T_EQ(s.nrepeat, 0);
    learn_suffix_finish(&s);
    t.n = 1;
    learn_suffix(&s, &t, 16, any, &wish, pool);
    T_EQ(s.nrepeat, 0);
    learn_suffix_finish(&s);
    pool_destroy(pool);
}

T_MAIN(T_CASE(few_letters), T_CASE(many_letters), T_CASE(long_runs), T_CASE(nothing))
