/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/lattice.h"

#include <math.h>
#include <string.h>

#include "tests/tok/learn_make.h"

/* A lattice over random words with pieces of random scores. */
struct world {
    struct learn_sentences from;
    struct learn_valid valid;
    struct learn_segments text;
    struct learn_suffix suffix;
    struct learn_lattice *l;
    uint32_t *at, *length; /* by piece */
    float *score, *prob;
    size_t n;
};

static bool is_wanted(const void *arg, const uint32_t *sym, uint32_t n)
{
    const struct world *w = arg;
    uint8_t kind[LEARN_LONGEST];
    for (uint32_t i = 0; i < n; i++)
        kind[i] = w->text.kind[sym[i]];
    return learn_valid(&w->valid, kind, n);
}

static void number(struct world *w, uint64_t seed, uint32_t *symbol, uint32_t *repeat)
{
    size_t most = w->text.symbols + w->suffix.nrepeat + 1;
    w->at = mem_new(most, sizeof(*w->at));
    w->length = mem_new(most, sizeof(*w->length));
    for (uint32_t p = 0; p < w->text.places; p++)
        if (w->text.sym[p] >= w->text.ends) {
            uint32_t k = w->text.sym[p] - w->text.ends;
            symbol[w->text.sym[p]] = k;
            w->at[k] = p;
            w->length[k] = 1;
        }
    w->n = w->text.symbols - w->text.ends;
    for (size_t i = 0; i < w->suffix.nrepeat; i++) {
        repeat[i] = t_rand(seed, i) % 4 ? (uint32_t)w->n : LEARN_NONE;
        if (repeat[i] == LEARN_NONE)
            continue;
        w->at[w->n] = w->suffix.at[w->suffix.repeat[i].first];
        w->length[w->n++] = w->suffix.repeat[i].length;
    }
}

static void score(struct world *w, uint64_t seed)
{
    double sum = 0;
    for (size_t i = 0; i < w->n; i++)
        sum += w->prob[i] = (float)(1 + t_rand(seed, i) % 1000);
    for (size_t i = 0; i < w->n; i++) {
        w->prob[i] /= (float)sum;
        w->score[i] = logf(w->prob[i]);
    }
}

static void open_world(struct world *w, uint64_t seed, size_t words, uint32_t most,
                       struct pool *pool)
{
    make_words(&w->from, seed, words, most, 3 + (uint32_t)(seed % 11), false);
    w->valid = usual_valid(6);
    w->valid.split_words = most < 100;
    struct err e;
    T_OK(learn_segment(&w->text, &w->from, &w->valid, &e), &e);
    struct learn_text t = learn_segments_text(&w->text);
    learn_suffix(&w->suffix, &t, w->valid.longest, is_wanted, w, pool);
    uint32_t *symbol = mem_new(w->text.symbols, sizeof(*symbol));
    uint32_t *repeat = mem_new(w->suffix.nrepeat + 1, sizeof(*repeat));
    number(w, seed, symbol, repeat);
    w->score = mem_new(w->n, sizeof(*w->score));
    w->prob = mem_new(w->n, sizeof(*w->prob));
    score(w, seed);
    w->l = learn_lattice_create(&w->text, &w->suffix, symbol, repeat, pool);
    free(symbol);
    free(repeat);
}

static void close_world(struct world *w)
{
    learn_lattice_destroy(w->l);
    learn_suffix_finish(&w->suffix);
    learn_segments_finish(&w->text);
    learn_sentences_finish(&w->from);
    free(w->at);
    free(w->length);
    free(w->score);
    free(w->prob);
}

static struct lattice_scores scores_of(const struct world *w)
{
    return (struct lattice_scores){w->score, w->prob, w->n, -18};
}

/* ---- the slow twin: pieces are searched one by one, in long doubles ------------------------ */

struct twin {
    const struct world *w;
    double *expected;
    long double likelihood, best;
};

static bool stands(const struct world *w, size_t piece, uint32_t at, uint32_t end)
{
    uint32_t n = w->length[piece];
    return at + n <= end &&
           memcmp(w->text.sym + w->at[piece], w->text.sym + at, n * sizeof(uint32_t)) == 0;
}

/* Whether the character at a position has a piece. */
static bool is_bare(const struct world *w, uint32_t at)
{
    for (size_t k = 0; k < w->n; k++)
        if (w->length[k] == 1 && stands(w, k, at, at + 1))
            return false;
    return true;
}

static void twin_segment(struct twin *t, uint32_t begin, uint32_t end, double count)
{
    const struct world *w = t->w;
    uint32_t n = end - begin;
    long double *a = mem_new(n + 1, sizeof(*a)), *b = mem_new(n + 1, sizeof(*b));
    double *best = mem_new(n + 1, sizeof(*best));
    a[0] = b[n] = 1;
    for (uint32_t i = 1; i <= n; i++)
        best[i] = -HUGE_VAL;
    for (uint32_t i = 0; i < n; i++) {
        bool bare = is_bare(w, begin + i);
        a[i + 1] += bare ? a[i] * expl(-18) : 0;
        best[i + 1] = bare ? fmax(best[i + 1], best[i] - 18) : best[i + 1];
        for (size_t k = 0; k < w->n; k++) {
            if (!stands(w, k, begin + i, end))
                continue;
            uint32_t to = i + w->length[k];
            a[to] += a[i] * w->prob[k];
            best[to] = fmax(best[to], best[i] + (double)w->score[k]);
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        b[i] = is_bare(w, begin + i) ? b[i + 1] * expl(-18) : 0;
        t->expected[w->n] += count * (double)(a[i] * b[i] / a[n]);
        for (size_t k = 0; k < w->n; k++) {
            if (!stands(w, k, begin + i, end))
                continue;
            long double v = w->prob[k] * b[i + w->length[k]];
            b[i] += v;
            t->expected[k] += count * (double)(a[i] * v / a[n]);
        }
    }
    t->likelihood += count * logl(a[n]);
    t->best += count * best[n];
    free(a);
    free(b);
    free(best);
}

static void compare(struct world *w)
{
    struct twin t = {.w = w, .expected = mem_new(w->n + 1, sizeof(double))};
    for (size_t i = 0; i < w->text.n; i++)
        twin_segment(&t, w->text.begin[i], w->text.begin[i + 1] - 1, (double)w->text.count[i]);
    double *expected = mem_new(w->n + 1, sizeof(*expected));
    uint64_t *count = mem_new(w->n + 1, sizeof(*count)), sum = 0;
    struct lattice_scores s = scores_of(w);
    T_NEAR(learn_lattice_expect(w->l, &s, expected), (double)t.likelihood, 1e-6);
    for (size_t k = 0; k <= w->n; k++)
        T_NEAR(expected[k], t.expected[k], 1e-6);
    uint64_t tokens = learn_lattice_best(w->l, &s, count);
    double best = 0;
    for (size_t k = 0; k < w->n; k++) {
        best += (double)count[k] * (double)w->score[k];
        sum += count[k];
    }
    T_EQ(tokens - sum, count[w->n]);
    T_NEAR(best - 18 * (double)count[w->n], (double)t.best, 1e-5);
    free(t.expected);
    free(expected);
    free(count);
}

/* Some pieces are removed, characters among them. */
static void thin_out(struct world *w, uint64_t seed)
{
    uint32_t *to = mem_new(w->n, sizeof(*to)), n = 0;
    for (size_t k = 0; k < w->n; k++) {
        to[k] = t_rand(seed, k) % 3 ? n : LEARN_NONE;
        if (to[k] == LEARN_NONE)
            continue;
        w->at[n] = w->at[k];
        w->length[n] = w->length[k];
        w->prob[n] = w->prob[k];
        w->score[n++] = w->score[k];
    }
    w->n = n;
    learn_lattice_renumber(w->l, to);
    free(to);
}

static void expectation(void)
{
    struct pool *pool = pool_create(2);
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct world w;
        open_world(&w, seed, 120, 12, pool);
        compare(&w);
        for (uint64_t i = 0; i < 3; i++) {
            thin_out(&w, 100 * seed + i);
            compare(&w);
        }
        close_world(&w);
    }
    pool_destroy(pool);
}

/* Segments whose probability underflows a double. */
static void long_segments(void)
{
    struct pool *pool = pool_create(1);
    for (uint64_t seed = 22; seed < 25; seed++) {
        struct world w;
        open_world(&w, seed * 11, 6, 1500, pool); /* three kinds of characters: never split */
        T_CHECK(w.text.longest > 500);
        compare(&w);
        thin_out(&w, seed);
        compare(&w);
        close_world(&w);
    }
    pool_destroy(pool);
}

/* The best path without the piece: all others are tried. */
static double without(const struct world *w, uint32_t at, uint32_t end, size_t but)
{
    if (at == end)
        return 0;
    double best = is_bare(w, at) ? -18 + without(w, at + 1, end, but) : -HUGE_VAL;
    for (size_t k = 0; k < w->n; k++)
        if (k != but && stands(w, k, at, end))
            best = fmax(best, (double)w->score[k] + without(w, at + w->length[k], end, but));
    return best;
}

static void other_ways(void)
{
    struct pool *pool = pool_create(1);
    struct world w;
    open_world(&w, 3, 60, 10, pool);
    for (int round = 0; round < 2; round++) {
        struct lattice_scores s = scores_of(&w);
        for (size_t k = 0; k < w.n; k++) {
            float work[LEARN_LONGEST + 1];
            uint32_t way[LEARN_LONGEST], n;
            if (w.length[k] == 1)
                continue;
            float v = learn_lattice_way(w.l, &s, w.at[k], w.length[k], (uint32_t)k, work, way, &n);
            T_NEAR((double)v, without(&w, w.at[k], w.at[k] + w.length[k], k), 1e-5);
            double sum = 0;
            uint32_t at = w.at[k] + w.length[k];
            for (uint32_t i = 0; i < n; i++) {
                sum += way[i] == LEARN_NONE ? -18 : (double)w.score[way[i]];
                at -= way[i] == LEARN_NONE ? 1 : w.length[way[i]];
                T_CHECK(way[i] == LEARN_NONE || stands(&w, way[i], at, w.at[k] + w.length[k]));
            }
            T_EQ(at, w.at[k]);
            T_NEAR(sum, (double)v, 1e-5);
        }
        thin_out(&w, 77);
    }
    close_world(&w);
    pool_destroy(pool);
}

/* EM: the text never becomes less likely. */
static void never_falls(void)
{
    struct pool *pool = pool_create(2);
    for (uint64_t seed = 30; seed < 33; seed++) {
        struct world w;
        open_world(&w, seed, 3000, 14, pool);
        double *expected = mem_new(w.n + 1, sizeof(*expected)), before = -HUGE_VAL;
        for (int step = 0; step < 15; step++) {
            struct lattice_scores s = scores_of(&w);
            s.unknown = -60;
            double now = learn_lattice_expect(w.l, &s, expected), sum = 0;
            T_CHECK(now >= before - 1e-7 * fabs(now));
            before = now;
            for (size_t k = 0; k < w.n; k++)
                sum += expected[k];
            for (size_t k = 0; k < w.n; k++) {
                w.prob[k] = (float)fmax(expected[k] / sum, 1e-30);
                w.score[k] = logf(w.prob[k]);
            }
        }
        free(expected);
        close_world(&w);
    }
    pool_destroy(pool);
}

T_MAIN(T_CASE(expectation), T_CASE(long_segments), T_CASE(other_ways), T_CASE(never_falls))
