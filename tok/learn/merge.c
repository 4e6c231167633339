/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/learn/queue.h"
#include "tok/learn/weight.h"

#define TAIL 0x80000000u
#define GONE 0xffffffffu
#define EDGE 0x7fffffffu

enum { GRID = 1024, PLACES = 1 << 20, SLOWER = 8, SPARES = 64 };

/* A neighbour symbol of the merged pair: what its pairs gain and lose. */
struct beside {
    int64_t sum;
    uint32_t n;     /* positions */
    uint32_t first; /* the event at which it was first seen */
    uint32_t *at;
};

struct event {
    uint32_t id, at;
};

struct side {
    struct beside *beside; /* by id */
    uint32_t *id;          /* those with n > 0, in order of first event */
    size_t nid, id_cap;
    struct event *event;
    size_t nevent, event_cap;
};

struct spare {
    uint32_t *at;
    size_t n;
};

/* Blocks of positions; the longest finished lists are reused. */
struct places {
    uint32_t **block;
    size_t nblock, left;
    uint32_t *next;
    struct spare spare[SPARES];
};

struct learn_merge {
    uint32_t *slot;
    size_t n, cap;
    struct learn_weights weights;
    uint64_t floor; /* pairs with lower counts are not tracked */

    uint32_t *span; /* by id */
    size_t nid;     /* capacity of the arrays by id */
    uint32_t ids;   /* above all ids of words */
    struct side left, right;
    uint32_t nevent; /* of this merge, on both sides */

    struct learn_counts counts;
    struct learn_queue queue;
    struct places places;
};

/* ---- memory ------------------------------------------------------------------------------ */

static void spare_places(struct places *p, uint32_t *at, size_t n)
{
    struct spare *least = p->spare;
    for (size_t i = 1; i < SPARES; i++)
        if (p->spare[i].n < least->n)
            least = &p->spare[i];
    if (n > least->n)
        *least = (struct spare){at, n};
}

/* Continues in the longest spare list, if that has space for n. */
static void reuse_places(struct places *p, size_t n)
{
    struct spare *most = p->spare;
    for (size_t i = 1; i < SPARES; i++)
        if (p->spare[i].n > most->n)
            most = &p->spare[i];
    if (most->n < n)
        return;
    struct spare rest = {p->next, p->left};
    p->next = most->at;
    p->left = most->n;
    *most = rest;
}

static uint32_t *take_places(struct places *p, size_t n)
{
    if (p->left < n)
        reuse_places(p, n);
    if (p->left < n) {
        p->left = n > PLACES ? n : PLACES;
        p->block = mem_grow(p->block, p->nblock + 1, sizeof(*p->block));
        p->next = p->block[p->nblock++] = mem_grow(NULL, p->left, sizeof(uint32_t));
        mem_large_pages(p->next, p->left * sizeof(uint32_t));
    }
    uint32_t *r = p->next;
    p->next += n;
    p->left -= n;
    return r;
}

static void need_id(struct learn_merge *m, uint32_t id)
{
    if (id < m->nid)
        return;
    size_t n = m->nid ? m->nid : 1024;
    while (n <= id)
        n *= 2;
    struct side *side[2] = {&m->left, &m->right};
    for (int i = 0; i < 2; i++) {
        side[i]->beside = mem_grow(side[i]->beside, n, sizeof(struct beside));
        memset(side[i]->beside + m->nid, 0, (n - m->nid) * sizeof(struct beside));
    }
    m->span = mem_grow(m->span, n, sizeof(*m->span));
    memset(m->span + m->nid, 0, (n - m->nid) * sizeof(*m->span));
    m->nid = n;
}

int learn_merge_create(uint64_t symbols, uint64_t words, struct learn_merge **ret, struct err *e)
{
    if (symbols > UINT32_MAX / 2 || words > UINT32_MAX / 2 - 2)
        return err_set(e, ERR_RESOURCE,
                       "%llu symbols in %llu distinct words are too many to learn from",
                       (unsigned long long)symbols, (unsigned long long)words);
    struct learn_merge *m = mem_new(1, sizeof(*m));
    m->cap = (size_t)(symbols + words + 1);
    int code = mem_try(m->cap, sizeof(*m->slot), "memory for the words to learn from",
                       (void **)&m->slot, e);
    if (code) {
        free(m);
        return code;
    }
    mem_large_pages(m->slot, m->cap * sizeof(*m->slot));
    m->slot[m->n++] = EDGE;
    learn_counts_init(&m->counts);
    *ret = m;
    return 0;
}

static void finish_side(struct side *s)
{
    free(s->beside);
    free(s->id);
    free(s->event);
}

void learn_merge_destroy(struct learn_merge *m)
{
    if (!m)
        return;
    finish_side(&m->left);
    finish_side(&m->right);
    for (size_t i = 0; i < m->places.nblock; i++)
        free(m->places.block[i]);
    free(m->places.block);
    learn_counts_finish(&m->counts);
    learn_queue_finish(&m->queue);
    free(m->slot);
    learn_weights_finish(&m->weights);
    free(m->span);
    free(m);
}

void learn_merge_word(struct learn_merge *m, const uint32_t *id, size_t n, uint64_t count)
{
    if (!n || !count)
        return;
    BUG_ON(n >= m->cap - m->n, "%zu more symbols than were announced", n);
    learn_weights_add(&m->weights, m->n, count);
    for (size_t i = 0; i < n; i++) {
        need_id(m, id[i]);
        m->span[id[i]] = 1;
        m->ids = id[i] >= m->ids ? id[i] + 1 : m->ids;
        m->slot[m->n++] = id[i];
    }
    m->slot[m->n++] = EDGE;
}

uint32_t learn_merge_span(const struct learn_merge *m, uint32_t id)
{
    return id < m->nid ? m->span[id] : 0;
}

void learn_merge_set_span(struct learn_merge *m, uint32_t id, uint32_t span)
{
    need_id(m, id);
    m->span[id] = span;
}

/* ---- the first pairs --------------------------------------------------------------------- */

struct cell {
    struct learn_pair pair;
    int64_t sum;
    uint32_t n, placed;
    uint32_t *at; /* NULL: the count is too low */
};

/* Cells by pair: a matrix of all, or a hash table; only the pairs of one shard. */
struct cells {
    struct cell *cell;
    size_t n, used, side; /* side 0: hashed */
    size_t part, parts;
};

static struct cell *find_cell(const struct cells *c, uint32_t l, uint32_t r)
{
    if (c->side)
        return &c->cell[l * c->side + r];
    size_t i = (size_t)learn_pair_hash((uint64_t)l << 32 | r) & (c->n - 1);
    while (c->cell[i].n && (c->cell[i].pair.left != l || c->cell[i].pair.right != r))
        i = (i + 1) & (c->n - 1);
    return &c->cell[i];
}

static void new_cells(struct cells *c, size_t n)
{
    c->n = n;
    c->cell = mem_new(n, sizeof(*c->cell));
    mem_large_pages(c->cell, n * sizeof(*c->cell));
}

static void grow_cells(struct cells *c)
{
    struct cells old = *c;
    new_cells(c, 2 * old.n);
    for (size_t i = 0; i < old.n; i++)
        if (old.cell[i].n)
            *find_cell(c, old.cell[i].pair.left, old.cell[i].pair.right) = old.cell[i];
    free(old.cell);
}

/* Advances *at to the next pair of neighbours at or after it. */
static inline bool next_pair(const struct learn_merge *m, size_t *at, struct learn_pair *ret)
{
    while (*at < m->n) {
        uint32_t l = m->slot[*at];
        size_t next = *at + (l == EDGE ? 1 : m->span[l]);
        if (l != EDGE && m->slot[next] != EDGE) {
            *ret = (struct learn_pair){l, m->slot[next]};
            return true;
        }
        *at = next;
    }
    return false;
}

static bool is_in_part(struct learn_merge *m, const struct cells *c, struct learn_pair p)
{
    if (c->parts == 1 && !m->counts.used)
        return true;
    uint64_t hash = learn_pair_hash((uint64_t)p.left << 32 | p.right);
    return (hash >> 24) % c->parts == c->part && !learn_counts_get(&m->counts, p);
}

/* Counts the pairs that are not tracked yet. */
static void count_cells(struct learn_merge *m, struct cells *c)
{
    struct learn_pair p;
    for (size_t at = 1; next_pair(m, &at, &p); at += m->span[p.left]) {
        if (!is_in_part(m, c, p))
            continue;
        struct cell *x = find_cell(c, p.left, p.right);
        if (!x->n++) {
            x->pair = p;
            c->used++;
        }
        x->sum += learn_weight_at(&m->weights, at);
        if (!c->side && c->used > c->n / 2)
            grow_cells(c);
    }
}

static void place_cells(struct learn_merge *m, struct cells *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->cell[i].n && c->cell[i].sum >= (int64_t)m->floor)
            c->cell[i].at = take_places(&m->places, c->cell[i].n);
    struct learn_pair p;
    for (size_t at = 1; next_pair(m, &at, &p); at += m->span[p.left]) {
        struct cell *x = find_cell(c, p.left, p.right);
        if (x->at)
            x->at[x->placed++] = (uint32_t)at;
    }
}

static bool may(const struct learn_merge *m, const struct learn_rule *rule, struct learn_pair p,
                uint64_t *ret_tie)
{
    *ret_tie = (uint64_t)p.left << 32 | p.right;
    return !rule->may || rule->may(rule->arg, p, m->span[p.left] + m->span[p.right] == 2, ret_tie);
}

/* Starts to track a pair. */
static void enter(struct learn_merge *m, const struct learn_rule *rule, struct learn_pair p,
                  int64_t sum, uint32_t *at, uint32_t n)
{
    uint64_t tie;
    if (!may(m, rule, p, &tie))
        return;
    struct learn_count_of *c = learn_counts_put(&m->counts, p);
    c->count += sum;
    if (c->count > 0 || rule->as_they_come) {
        c->key |= c->key & LEARN_QUEUED ? LEARN_AGAIN : LEARN_QUEUED;
        learn_queue_push(&m->queue, p, c->count > 0 ? (uint64_t)c->count : 0, tie, at, n);
    }
}

static int by_first_place(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;
    return (x->at[0] > y->at[0]) - (x->at[0] < y->at[0]);
}

/* Keeps the non-empty cells, in the order of their first positions. */
static void sort_cells(struct cells *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->cell[i].at)
            c->cell[n++] = c->cell[i];
    c->n = n;
    qsort(c->cell, n, sizeof(*c->cell), by_first_place);
}

static void follow_part(struct learn_merge *m, const struct learn_rule *rule, struct cells *c)
{
    bool grid = c->parts == 1 && m->ids <= GRID && !m->counts.used;
    c->side = grid ? m->ids : 0;
    c->used = 0;
    new_cells(c, grid ? c->side * c->side : 1 << 16);
    count_cells(m, c);
    place_cells(m, c);
    if (rule->as_they_come)
        sort_cells(c);
    for (size_t i = 0; i < c->n; i++) {
        const struct cell *x = &c->cell[i];
        if (x->at)
            enter(m, rule, x->pair, x->sum, x->at, x->n);
    }
    free(c->cell);
}

/* Starts to track all pairs with at least this count. */
static void lower_floor(struct learn_merge *m, const struct learn_rule *rule, uint64_t floor)
{
    struct cells c = {.parts = 1 + (m->counts.used ? m->n >> 22 : 0)};
    m->floor = floor ? floor : 1;
    for (; c.part < c.parts; c.part++)
        follow_part(m, rule, &c);
}

/* ---- one merge --------------------------------------------------------------------------- */

static inline void add_event(struct learn_merge *m, struct side *s, uint32_t id, size_t at,
                             int64_t w)
{
    ARRAY_GROW(s->event, s->nevent, s->event_cap);
    s->event[s->nevent++] = (struct event){id, (uint32_t)at};
    struct beside *b = &s->beside[id];
    if (!b->n++) {
        ARRAY_GROW(s->id, s->nid, s->id_cap);
        s->id[s->nid++] = id;
        b->first = m->nevent;
    }
    m->nevent++;
    b->sum += w;
}

/* Merges the pair at this position if it is still there. */
static inline bool merge_at(struct learn_merge *m, struct learn_pair p, uint32_t id, size_t at)
{
    uint32_t *s = m->slot;
    uint32_t sl = m->span[p.left], sr = m->span[p.right];
    if (s[at] != p.left || s[at + sl] != p.right)
        return false;
    size_t mid = at + sl, end = mid + sr;
    int64_t w = learn_weight_at(&m->weights, at);
    if (s[at - 1] != EDGE) {
        uint32_t x = s[at - 1] & ~TAIL;
        add_event(m, &m->left, x, at - m->span[x], w);
    }
    if (s[end] != EDGE)
        add_event(m, &m->right, s[end], at, w);
    s[mid - 1] = GONE;
    s[mid] = GONE;
    s[at] = id;
    s[end - 1] = id | TAIL;
    return true;
}

static void merge_word(struct learn_merge *m, struct learn_pair p, uint32_t id, size_t at)
{
    while (m->slot[at] != EDGE) {
        merge_at(m, p, id, at);
        at += m->span[m->slot[at]];
    }
}

/* Merges the pair at all positions of the list. */
static void merge_words(struct learn_merge *m, const struct learn_entry *t, uint32_t id)
{
    size_t done = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t at = t->at[i];
        if (at < done)
            continue;
        while (m->slot[at - 1] != EDGE)
            at--;
        merge_word(m, t->pair, id, at);
        for (done = t->at[i]; m->slot[done] != EDGE;)
            done++;
    }
}

static void merge_places(struct learn_merge *m, const struct learn_entry *t, uint32_t id)
{
    enum { AHEAD = 16 };
    uint32_t span = m->span[t->pair.left] + m->span[t->pair.right];
    for (uint32_t i = 0; i < t->n; i++) {
        if (i + AHEAD < t->n) { /* what merge_at reads: from the slot before to the slot after */
            const uint32_t *s = &m->slot[t->at[i + AHEAD]];
            __builtin_prefetch(s - 1, 1);
            __builtin_prefetch(s + span, 1);
        }
        merge_at(m, t->pair, id, t->at[i]);
    }
}

/* Moves each event's position to the list of its symbol, if the count suffices. */
static void sort_events(struct learn_merge *m, struct side *s, uint64_t floor)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nid; i++) {
        const struct beside *b = &s->beside[s->id[i]];
        n += b->sum >= (int64_t)floor ? b->n : 0;
    }
    uint32_t *p = take_places(&m->places, n);
    for (size_t i = 0; i < s->nid; i++) {
        struct beside *b = &s->beside[s->id[i]];
        bool many = b->sum >= (int64_t)floor;
        b->at = many ? p : NULL;
        p += many ? b->n : 0;
        b->n = 0;
    }
    for (size_t i = 0; n && i < s->nevent; i++) {
        struct beside *b = &s->beside[s->event[i].id];
        if (b->at)
            b->at[b->n++] = s->event[i].at;
    }
    s->nevent = 0;
}

/* Pairs that may not be merged have no count; those of the new symbol have none yet, if a run of
 * one symbol creates and removes them in the same step. */
static void lose(struct learn_merge *m, uint32_t l, uint32_t r, int64_t sum, bool fresh)
{
    struct learn_pair p = {l, r};
    struct learn_count_of *c =
        fresh ? learn_counts_put(&m->counts, p) : learn_counts_get(&m->counts, p);
    if (c)
        c->count -= sum;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* (id, id) found from both sides, for an id that existed before: joins the two lists. */
static void join_sides(struct learn_merge *m, uint32_t id)
{
    struct beside *l = &m->left.beside[id], *r = &m->right.beside[id];
    if (!l->n || !r->n)
        return;
    uint32_t *at = take_places(&m->places, (size_t)l->n + r->n);
    memcpy(at, l->at, l->n * sizeof(*at));
    memcpy(at + l->n, r->at, r->n * sizeof(*at));
    qsort(at, (size_t)l->n + r->n, sizeof(*at), by_place);
    l->at = at;
    l->n += r->n;
    l->sum += r->sum;
    r->n = 0;
}

static void enter_beside(struct learn_merge *m, const struct learn_rule *rule, bool left,
                         uint32_t id, uint32_t other)
{
    struct beside *b = left ? &m->left.beside[other] : &m->right.beside[other];
    struct learn_pair p = left ? (struct learn_pair){other, id} : (struct learn_pair){id, other};
    if (b->n)
        enter(m, rule, p, b->sum, b->at, b->n);
    *b = (struct beside){0};
}

static bool left_first(const struct learn_merge *m, const struct learn_rule *rule, size_t l,
                       size_t r)
{
    return !rule->as_they_come ||
           m->left.beside[m->left.id[l]].first < m->right.beside[m->right.id[r]].first;
}

static void update(struct learn_merge *m, const struct learn_rule *rule, struct learn_pair p,
                   uint32_t id)
{
    enum { AHEAD = 8 };
    /* in a run of one symbol, pairs may lose counts that are only now created: count them first */
    bool run = m->left.beside[id].n || m->right.beside[id].n;
    sort_events(m, &m->left, run ? 0 : m->floor);
    sort_events(m, &m->right, run ? 0 : m->floor);
    for (size_t i = 0; i < m->left.nid; i++) {
        uint32_t x = m->left.id[i];
        if (i + AHEAD < m->left.nid)
            learn_counts_prefetch(&m->counts, m->left.id[i + AHEAD], p.left);
        lose(m, x, p.left, m->left.beside[x].sum, x == id);
    }
    for (size_t i = 0; i < m->right.nid; i++) {
        uint32_t y = m->right.id[i];
        if (i + AHEAD < m->right.nid)
            learn_counts_prefetch(&m->counts, p.right, m->right.id[i + AHEAD]);
        lose(m, p.right, y, m->right.beside[y].sum, y == id);
    }
    join_sides(m, id);
    size_t l = 0, r = 0;
    while (l < m->left.nid || r < m->right.nid)
        if (r == m->right.nid || (l < m->left.nid && left_first(m, rule, l, r))) {
            if (l + AHEAD < m->left.nid)
                learn_counts_prefetch(&m->counts, m->left.id[l + AHEAD], id);
            enter_beside(m, rule, true, id, m->left.id[l++]);
        } else {
            if (r + AHEAD < m->right.nid)
                learn_counts_prefetch(&m->counts, id, m->right.id[r + AHEAD]);
            enter_beside(m, rule, false, id, m->right.id[r++]);
        }
    m->left.nid = m->right.nid = 0;
    m->nevent = 0;
}

static void merge_apply(struct learn_merge *m, const struct learn_rule *rule,
                        const struct learn_entry *top, uint32_t id)
{
    need_id(m, id);
    uint32_t span = m->span[top->pair.left] + m->span[top->pair.right];
    BUG_ON(m->span[id] && m->span[id] != span, "symbol %u spans %u and %u", id, m->span[id], span);
    if (m->span[id] && m->floor > 1) /* its pairs may exist without being tracked */
        lower_floor(m, rule, 1);
    m->span[id] = span;
    if (top->again)
        merge_words(m, top, id);
    else
        merge_places(m, top, id);
    spare_places(&m->places, top->at, top->n);
    update(m, rule, top->pair, id);
}

/* The best pair of all, tracked or not. */
static bool next_best(struct learn_merge *m, const struct learn_rule *rule, struct learn_entry *ret)
{
    for (;;) {
        bool any = learn_queue_pop(&m->queue, &m->counts, ret);
        if (m->floor <= 1 || (any && ret->count >= m->floor))
            return any;
        uint64_t tie;
        if (any && may(m, rule, ret->pair, &tie))
            learn_queue_push(&m->queue, ret->pair, ret->count, tie, ret->at, ret->n);
        lower_floor(m, rule, m->floor / SLOWER);
    }
}

void learn_merge_run(struct learn_merge *m, const struct learn_rule *rule)
{
    m->queue.rule = rule;
    learn_weights_index(&m->weights, m->n);
    lower_floor(m, rule, rule->as_they_come ? 1 : rule->floor);
    struct learn_entry top;
    while (next_best(m, rule, &top)) {
        uint32_t id = rule->choose(rule->arg, top.pair, top.count);
        if (id == LEARN_STOP)
            return;
        if (id != LEARN_PASS)
            merge_apply(m, rule, &top, id);
    }
}
