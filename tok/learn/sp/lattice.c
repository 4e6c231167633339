/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/lattice.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* Positions per chunk; a segment belongs to the chunk where it begins. */
enum { GRID_BITS = 14 };

struct chunk {
    uint32_t place;       /* the first one */
    uint32_t first, last; /* segments */
    uint32_t *id;
    uint16_t *length; /* ascending at each position */
    bool over;        /* 2^32 edges or more */
};

/* Of one thread. */
struct scratch {
    double *back, *inverse, *ahead; /* by position of a segment, longest + 1 */
    int32_t *power;
    float *best;
    uint32_t *from;
    double *weight; /* by edge of a segment */
    size_t weights;
    int64_t *sum; /* by piece */
    size_t sums;
};

struct learn_lattice {
    const struct learn_segments *text;
    struct pool *pool;
    struct chunk *chunk;
    size_t nchunks;
    uint32_t *at; /* by position: its first edge; an end's is after the segment's last */
    struct scratch *scratch;
};

/* ---- making ------------------------------------------------------------------------------ */

struct making {
    struct learn_lattice *l;
    const struct learn_suffix *suffix;
    const uint32_t *symbol, *repeat;
    bool fill;
};

static struct chunk *chunk_of(const struct learn_lattice *l, uint32_t place)
{
    struct chunk *c = &l->chunk[place >> GRID_BITS];
    while (place < c->place)
        c--;
    return c;
}

static void make_chunks(struct learn_lattice *l)
{
    const struct learn_segments *t = l->text;
    l->nchunks = (t->places >> GRID_BITS) + 1;
    l->chunk = mem_new(l->nchunks, sizeof(*l->chunk));
    uint32_t w = 0;
    for (size_t i = 0; i < l->nchunks; i++) {
        l->chunk[i].first = w;
        l->chunk[i].place = t->begin[w];
        while (w < t->n && t->begin[w] >> GRID_BITS <= i)
            w++;
        l->chunk[i].last = w;
    }
}

/* Writes the pieces at one position: that of its character, and those of the repeats around it. */
static void put_place(const struct making *m, uint32_t place, const uint32_t *open, size_t top)
{
    struct learn_lattice *l = m->l;
    if (!m->fill) {
        l->at[place] += (uint32_t)top;
        return;
    }
    const struct chunk *c = chunk_of(l, place);
    for (size_t i = 0; i < top; i++) { /* after that of the character */
        c->id[l->at[place] + 1 + i] = m->repeat[open[i]];
        c->length[l->at[place] + 1 + i] = (uint16_t)m->suffix->repeat[open[i]].length;
    }
}

/* Processes the repeats of a part from the last position to the first, outer before inner. */
static void make_part(void *arg, int task, int thread)
{
    (void)thread;
    const struct making *m = arg;
    const struct learn_repeat *r = m->suffix->repeat;
    size_t begin = m->suffix->part[task], k = m->suffix->part[task + 1], top = 0;
    uint32_t open[LEARN_LONGEST], i = 0;
    while (k > begin || top) {
        if (!top)
            i = r[k - 1].last;
        for (; k > begin && r[k - 1].last >= i; k--)
            if (m->repeat[k - 1] != LEARN_NONE)
                open[top++] = (uint32_t)(k - 1);
        i--;
        if (top)
            put_place(m, m->suffix->at[i], open, top);
        while (top && r[open[top - 1]].first >= i)
            top--;
    }
}

static void lattice_make_room(void *arg, int task, int thread)
{
    (void)thread;
    const struct making *m = arg;
    struct learn_lattice *l = m->l;
    const struct learn_segments *t = l->text;
    struct chunk *c = &l->chunk[task];
    uint64_t sum = 0;
    for (uint32_t p = c->place; p < t->begin[c->last]; p++) {
        uint64_t n = l->at[p];
        l->at[p] = (uint32_t)sum;
        sum += t->sym[p] >= t->ends ? n + 1 : 0;
    }
    c->over = sum >= UINT32_MAX;
    if (c->over)
        return;
    c->id = mem_new(sum + 1, sizeof(*c->id));
    c->length = mem_new(sum + 1, sizeof(*c->length));
    for (uint32_t p = c->place; p < t->begin[c->last]; p++) {
        if (t->sym[p] < t->ends)
            continue;
        c->id[l->at[p]] = m->symbol[t->sym[p]];
        c->length[l->at[p]] = 1;
    }
}

struct learn_lattice *learn_lattice_create(const struct learn_segments *text,
                                           const struct learn_suffix *suffix,
                                           const uint32_t *symbol, const uint32_t *repeat,
                                           struct pool *pool)
{
    struct learn_lattice *l = mem_new(1, sizeof(*l));
    *l = (struct learn_lattice){.text = text, .pool = pool};
    make_chunks(l);
    l->at = mem_new(text->places + 1, sizeof(*l->at));
    struct making m = {.l = l, .suffix = suffix, .symbol = symbol, .repeat = repeat};
    pool_run(pool, (int)suffix->nparts, make_part, &m);
    pool_run(pool, (int)l->nchunks, lattice_make_room, &m);
    for (size_t i = 0; i < l->nchunks; i++)
        if (l->chunk[i].over) {
            learn_lattice_destroy(l);
            return NULL;
        }
    m.fill = true;
    pool_run(pool, (int)suffix->nparts, make_part, &m);
    l->scratch = mem_new((size_t)pool_threads(pool), sizeof(*l->scratch));
    for (int i = 0; i < pool_threads(pool); i++) {
        struct scratch *s = &l->scratch[i];
        size_t n = (size_t)text->longest + 1;
        s->back = mem_new(n, sizeof(*s->back));
        s->inverse = mem_new(n, sizeof(*s->inverse));
        s->ahead = mem_new(n, sizeof(*s->ahead));
        s->power = mem_new(n, sizeof(*s->power));
        s->best = mem_new(n, sizeof(*s->best));
        s->from = mem_new(n, sizeof(*s->from));
    }
    return l;
}

void learn_lattice_destroy(struct learn_lattice *l)
{
    if (!l)
        return;
    for (int i = 0; l->scratch && i < pool_threads(l->pool); i++) {
        struct scratch *s = &l->scratch[i];
        free(s->back);
        free(s->inverse);
        free(s->ahead);
        free(s->power);
        free(s->best);
        free(s->from);
        free(s->weight);
        free(s->sum);
    }
    free(l->scratch);
    for (size_t i = 0; i < l->nchunks; i++) {
        free(l->chunk[i].id);
        free(l->chunk[i].length);
    }
    free(l->chunk);
    free(l->at);
    free(l);
}

/* Writes the edges of a chunk. */
static uint32_t chunk_edges(const struct learn_lattice *l, const struct chunk *c)
{
    return c->first == c->last ? 0 : l->at[l->text->begin[c->last] - 1];
}

uint64_t learn_lattice_edges(const struct learn_lattice *l)
{
    uint64_t n = 0;
    for (size_t i = 0; i < l->nchunks; i++)
        n += chunk_edges(l, &l->chunk[i]);
    return n;
}

/* ---- expectation ------------------------------------------------------------------------- */

/* Scale of the exponent beside `back`, for segments too long for a double alone. */
#define POWER 0x1p400
#define LEAST 0x1p-200

struct step {
    struct learn_lattice *l;
    const struct lattice_scores *s;
    double unknown;     /* probability */
    double fixed;       /* fixed-point value of 1 in the sums */
    uint32_t plain;     /* longer segments need exponents */
    double *likelihood; /* by chunk */
    uint64_t *tokens;   /* by chunk */
    const uint32_t *to;
};

/* One segment during a step. */
struct row {
    const uint32_t *at, *id;
    const uint16_t *length;
    uint32_t n;
};

/* The position lacks the piece of its character, which may be passed as unknown. */
static inline bool is_bare(const struct row *r, uint32_t i)
{
    return r->at[i] == r->at[i + 1] || r->length[r->at[i]] != 1;
}

/*
 * Backward: back[i] is the probability of the text from position i on. Each edge's share of it goes
 * to `weight`, and 1 / back to `inverse`.
 */
static void go_back(const struct row *r, const struct step *t, struct scratch *s)
{
    const float *prob = t->s->prob;
    double *back = s->back;
    back[r->n] = 1;
    for (uint32_t i = r->n; i-- > 0;) {
        double sum = is_bare(r, i) ? t->unknown * back[i + 1] : 0;
        for (uint32_t k = r->at[i]; k < r->at[i + 1]; k++) {
            double v = (double)prob[r->id[k]] * back[i + r->length[k]];
            s->weight[k - r->at[0]] = v;
            sum += v;
        }
        back[i] = sum;
        s->inverse[i] = 1 / sum;
    }
}

/* 2^(400 k) for k <= 0. */
static double power_of(int32_t k)
{
    return k == 0 ? 1 : k == -1 ? 1 / POWER : k == -2 ? 1 / POWER / POWER : 0;
}

/* The same with an exponent beside each value. */
static void go_back_far(const struct row *r, const struct step *t, struct scratch *s)
{
    double *back = s->back;
    back[r->n] = 1;
    s->power[r->n] = 0;
    for (uint32_t i = r->n; i-- > 0;) {
        int32_t most = s->power[i + 1];
        for (uint32_t k = r->at[i]; k < r->at[i + 1]; k++)
            most = s->power[i + r->length[k]] > most ? s->power[i + r->length[k]] : most;
        double sum = 0;
        if (is_bare(r, i))
            sum = t->unknown * back[i + 1] * power_of(s->power[i + 1] - most);
        for (uint32_t k = r->at[i]; k < r->at[i + 1]; k++) {
            uint32_t to = i + r->length[k];
            double v = (double)t->s->prob[r->id[k]] * back[to] * power_of(s->power[to] - most);
            s->weight[k - r->at[0]] = v;
            sum += v;
        }
        s->inverse[i] = 1 / sum;
        for (; sum < LEAST && sum > 0; most--)
            sum *= POWER;
        for (; sum > 1 / LEAST; most++)
            sum /= POWER;
        back[i] = sum;
        s->power[i] = most;
    }
}

/* Forward: distributes what passes each position over its edges by their shares. */
static void go_ahead(const struct row *r, struct scratch *s, double count, size_t unknown)
{
    double *ahead = s->ahead;
    memset(ahead, 0, (r->n + 1) * sizeof(*ahead));
    ahead[0] = count;
    for (uint32_t i = 0; i < r->n; i++) {
        double here = ahead[i] * s->inverse[i], gone = 0;
        for (uint32_t k = r->at[i]; k < r->at[i + 1]; k++) {
            double v = here * s->weight[k - r->at[0]];
            s->sum[r->id[k]] += (int64_t)(v + 0.5);
            ahead[i + r->length[k]] += v;
            gone += v;
        }
        if (is_bare(r, i) && ahead[i] > gone) {
            ahead[i + 1] += ahead[i] - gone;
            s->sum[unknown] += (int64_t)(ahead[i] - gone + 0.5);
        }
    }
}

static struct row row_of(const struct learn_lattice *l, const struct chunk *c, uint32_t w)
{
    uint32_t begin = l->text->begin[w];
    return (struct row){l->at + begin, c->id, c->length, l->text->begin[w + 1] - begin - 1};
}

static void expect_chunk(void *arg, int task, int thread)
{
    const struct step *t = arg;
    struct learn_lattice *l = t->l;
    const struct chunk *c = &l->chunk[task];
    struct scratch *s = &l->scratch[thread];
    double likelihood = 0;
    for (uint32_t w = c->first; w < c->last; w++) {
        struct row r = row_of(l, c, w);
        if (r.at[r.n] - r.at[0] > s->weights) {
            s->weights = 2 * (size_t)(r.at[r.n] - r.at[0]);
            s->weight = mem_grow(s->weight, s->weights, sizeof(*s->weight));
        }
        double count = (double)l->text->count[w], far = 0;
        if (r.n <= t->plain) {
            go_back(&r, t, s);
        } else {
            go_back_far(&r, t, s);
            far = s->power[0] * log(POWER);
        }
        likelihood += count * (log(s->back[0]) + far);
        go_ahead(&r, s, count * t->fixed, t->s->n);
    }
    t->likelihood[task] = likelihood;
}

/* Zeroes the sums by piece of every thread. */
static void clear_sums(struct learn_lattice *l, size_t n)
{
    for (int i = 0; i < pool_threads(l->pool); i++) {
        struct scratch *s = &l->scratch[i];
        if (n > s->sums) {
            free(s->sum);
            s->sum = mem_new(n, sizeof(*s->sum));
            s->sums = n;
        } else {
            memset(s->sum, 0, n * sizeof(*s->sum));
        }
    }
}

double learn_lattice_expect(struct learn_lattice *l, const struct lattice_scores *s,
                            double *expected)
{
    struct step t = {.l = l, .s = s, .unknown = exp((double)s->unknown), .fixed = 1};
    for (double most = (double)l->text->total + 1; most * t.fixed < 0x1p61;)
        t.fixed *= 2;
    /* no probability is below the unknown's, so that of n characters is at least its n-th power */
    t.plain = (uint32_t)(650 / (1 - (double)s->unknown));
    t.likelihood = mem_new(l->nchunks, sizeof(*t.likelihood));
    clear_sums(l, s->n + 1);
    pool_run(l->pool, (int)l->nchunks, expect_chunk, &t);
    double likelihood = 0;
    for (size_t i = 0; i < l->nchunks; i++)
        likelihood += t.likelihood[i];
    free(t.likelihood);
    for (size_t k = 0; k <= s->n; k++) {
        int64_t sum = 0;
        for (int i = 0; i < pool_threads(l->pool); i++)
            sum += l->scratch[i].sum[k];
        expected[k] = (double)sum / t.fixed;
    }
    return likelihood;
}

/* ---- the best path ----------------------------------------------------------------------- */

/* Of equal paths, the one with the longer last piece, as in the library. */
static void best_way(const struct row *r, const struct lattice_scores *s, float *best,
                     uint32_t *from)
{
    for (uint32_t i = 1; i <= r->n; i++)
        best[i] = -FLT_MAX;
    best[0] = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (is_bare(r, i) && best[i] + s->unknown > best[i + 1]) {
            best[i + 1] = best[i] + s->unknown;
            from[i + 1] = LEARN_NONE;
        }
        for (uint32_t k = r->at[i]; k < r->at[i + 1]; k++) {
            float v = best[i] + s->score[r->id[k]];
            if (v > best[i + r->length[k]]) {
                best[i + r->length[k]] = v;
                from[i + r->length[k]] = k;
            }
        }
    }
}

static void best_chunk(void *arg, int task, int thread)
{
    const struct step *t = arg;
    struct learn_lattice *l = t->l;
    const struct chunk *c = &l->chunk[task];
    struct scratch *s = &l->scratch[thread];
    uint64_t tokens = 0;
    for (uint32_t w = c->first; w < c->last; w++) {
        struct row r = row_of(l, c, w);
        best_way(&r, t->s, s->best, s->from);
        for (uint32_t i = r.n; i > 0;) {
            uint32_t k = s->from[i];
            i -= k == LEARN_NONE ? 1 : r.length[k];
            tokens += l->text->count[w];
            s->sum[k == LEARN_NONE ? t->s->n : r.id[k]] += (int64_t)l->text->count[w];
        }
    }
    t->tokens[task] = tokens;
}

uint64_t learn_lattice_best(struct learn_lattice *l, const struct lattice_scores *s,
                            uint64_t *count)
{
    struct step t = {.l = l, .s = s};
    t.tokens = mem_new(l->nchunks, sizeof(*t.tokens));
    clear_sums(l, s->n + 1);
    pool_run(l->pool, (int)l->nchunks, best_chunk, &t);
    uint64_t tokens = 0;
    for (size_t i = 0; i < l->nchunks; i++)
        tokens += t.tokens[i];
    free(t.tokens);
    for (size_t k = 0; k <= s->n; k++) {
        count[k] = 0;
        for (int i = 0; i < pool_threads(l->pool); i++)
            count[k] += (uint64_t)l->scratch[i].sum[k];
    }
    return tokens;
}

/* ---- fewer pieces ------------------------------------------------------------------------ */

static void renumber_chunk(void *arg, int task, int thread)
{
    (void)thread;
    const struct step *t = arg;
    struct learn_lattice *l = t->l;
    struct chunk *c = &l->chunk[task];
    uint32_t n = 0;
    for (uint32_t p = l->text->begin[c->first], k = 0; p < l->text->begin[c->last]; p++) {
        uint32_t end = l->text->sym[p] >= l->text->ends ? l->at[p + 1] : k;
        l->at[p] = n;
        for (; k < end; k++) {
            uint32_t to = t->to[c->id[k]];
            if (to == LEARN_NONE)
                continue;
            c->id[n] = to;
            c->length[n++] = c->length[k];
        }
    }
    c->id = mem_grow(c->id, n + 1, sizeof(*c->id));
    c->length = mem_grow(c->length, n + 1, sizeof(*c->length));
}

void learn_lattice_renumber(struct learn_lattice *l, const uint32_t *to)
{
    struct step t = {.l = l, .to = to};
    pool_run(l->pool, (int)l->nchunks, renumber_chunk, &t);
}

float learn_lattice_way(const struct learn_lattice *l, const struct lattice_scores *s, uint32_t at,
                        uint32_t length, uint32_t but, float *work, uint32_t *way, uint32_t *ret_n)
{
    const struct chunk *c = chunk_of(l, at);
    struct row r = {l->at + at, c->id, c->length, length};
    uint32_t from[LEARN_LONGEST + 1];
    float *best = work;
    for (uint32_t i = 1; i <= length; i++)
        best[i] = -FLT_MAX;
    best[0] = 0;
    for (uint32_t i = 0; i < length; i++) {
        if (is_bare(&r, i) && best[i] + s->unknown > best[i + 1]) {
            best[i + 1] = best[i] + s->unknown;
            from[i + 1] = LEARN_NONE;
        }
        for (uint32_t k = r.at[i]; k < r.at[i + 1] && i + r.length[k] <= length; k++) {
            float v = best[i] + s->score[r.id[k]];
            if (v > best[i + r.length[k]] && r.id[k] != but) {
                best[i + r.length[k]] = v;
                from[i + r.length[k]] = k;
            }
        }
    }
    uint32_t n = 0;
    for (uint32_t i = length; i > 0;) {
        uint32_t k = from[i];
        way[n++] = k == LEARN_NONE ? LEARN_NONE : r.id[k];
        i -= k == LEARN_NONE ? 1 : r.length[k];
    }
    *ret_n = n;
    return best[length];
}
