/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/learn_queue.h"

#define TAIL 0x80000000u
#define GONE 0xffffffffu
#define EDGE 0x7fffffffu
#define HEAVY 0x80000000u /* a weight that stands in `heavy` */

enum { GRID = 1024, PLACES = 1 << 20 };

struct slot {
    uint32_t sym, weight;
};

/* A symbol beside the places of a merge: what its pairs gain and lose. */
struct beside {
    int64_t sum;
    uint32_t n;     /* places */
    uint32_t first; /* the event at which it was met */
    uint32_t *at;
};

struct event {
    uint32_t id, at;
};

struct side {
    struct beside *beside; /* by id */
    uint32_t *id;          /* those with n > 0, in the order met */
    size_t nid, id_cap;
    struct event *event;
    size_t nevent, event_cap;
};

/* Blocks of places that live until the end. */
struct places {
    uint32_t **block;
    size_t nblock, left;
    uint32_t *next;
};

struct learn_merge {
    struct slot *slot;
    size_t n, cap;
    uint64_t *heavy;
    size_t nheavy;

    uint32_t *span; /* by id */
    size_t nid;     /* ids that the arrays by id have room for */
    uint32_t ids;   /* above all ids of words */
    struct side left, right;
    uint32_t nevent; /* of this merge, on both sides */

    struct learn_counts counts;
    struct learn_queue queue;
    struct places places;
};

/* ---- memory ------------------------------------------------------------------------------ */

static uint32_t *take_places(struct places *p, size_t n)
{
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
    m->slot[m->n++] = (struct slot){EDGE, 0};
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
    free(m->heavy);
    free(m->span);
    free(m);
}

void learn_merge_word(struct learn_merge *m, const uint32_t *id, size_t n, uint64_t count)
{
    if (!n || !count)
        return;
    BUG_ON(n >= m->cap - m->n, "%zu more symbols than were announced", n);
    uint32_t weight = (uint32_t)count;
    if (count >= HEAVY) {
        m->heavy = mem_grow(m->heavy, m->nheavy + 1, sizeof(*m->heavy));
        m->heavy[m->nheavy] = count;
        weight = HEAVY | (uint32_t)m->nheavy++;
    }
    for (size_t i = 0; i < n; i++) {
        need_id(m, id[i]);
        m->span[id[i]] = 1;
        m->ids = id[i] >= m->ids ? id[i] + 1 : m->ids;
        m->slot[m->n++] = (struct slot){id[i], weight};
    }
    m->slot[m->n++] = (struct slot){EDGE, 0};
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

static inline int64_t weight(const struct learn_merge *m, size_t at)
{
    uint32_t w = m->slot[at].weight;
    return (int64_t)(w & HEAVY ? m->heavy[w & ~HEAVY] : w);
}

/* ---- the first pairs --------------------------------------------------------------------- */

struct cell {
    struct learn_pair pair;
    int64_t sum;
    uint32_t n;
    uint32_t *at;
};

/* Cells by pair: a square of all, or slots found by a hash. */
struct cells {
    struct cell *cell;
    size_t n, used, side; /* side 0: hashed */
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

static void grow_cells(struct cells *c)
{
    struct cells old = *c;
    c->n = 2 * old.n;
    c->cell = mem_new(c->n, sizeof(*c->cell));
    for (size_t i = 0; i < old.n; i++)
        if (old.cell[i].n)
            *find_cell(c, old.cell[i].pair.left, old.cell[i].pair.right) = old.cell[i];
    free(old.cell);
}

static void count_cells(const struct learn_merge *m, struct cells *c)
{
    for (size_t i = 1; i + 1 < m->n; i++) {
        uint32_t l = m->slot[i].sym, r = m->slot[i + 1].sym;
        if (l == EDGE || r == EDGE)
            continue;
        struct cell *x = find_cell(c, l, r);
        if (!x->n) {
            x->pair = (struct learn_pair){l, r};
            c->used++;
        }
        x->n++;
        x->sum += weight(m, i);
        if (!c->side && c->used > c->n / 2)
            grow_cells(c);
    }
}

static void place_cells(struct learn_merge *m, struct cells *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->cell[i].n) {
            c->cell[i].at = take_places(&m->places, c->cell[i].n);
            c->cell[i].n = 0;
        }
    for (size_t i = 1; i + 1 < m->n; i++) {
        uint32_t l = m->slot[i].sym, r = m->slot[i + 1].sym;
        if (l == EDGE || r == EDGE)
            continue;
        struct cell *x = c->side ? &c->cell[l * c->side + r] : NULL;
        if (!x) { /* n is 0 for those not placed yet, so a look-up goes by the list */
            size_t k = (size_t)learn_pair_hash((uint64_t)l << 32 | r) & (c->n - 1);
            while (c->cell[k].pair.left != l || c->cell[k].pair.right != r || !c->cell[k].at)
                k = (k + 1) & (c->n - 1);
            x = &c->cell[k];
        }
        x->at[x->n++] = (uint32_t)i;
    }
}

/* A pair that has places from now on. */
static void enter(struct learn_merge *m, const struct learn_rule *rule, struct learn_pair p,
                  bool first, int64_t sum, uint32_t *at, uint32_t n)
{
    uint64_t tie = (uint64_t)p.left << 32 | p.right;
    if (rule->may && !rule->may(rule->arg, p, first, &tie))
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

/* Only the cells that hold something, in the order of their first places. */
static void sort_cells(struct cells *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (c->cell[i].at)
            c->cell[n++] = c->cell[i];
    c->n = n;
    qsort(c->cell, n, sizeof(*c->cell), by_first_place);
}

static void first_pairs(struct learn_merge *m, const struct learn_rule *rule)
{
    struct cells c = {.side = m->ids <= GRID ? m->ids : 0};
    c.n = c.side ? c.side * c.side : 1 << 16;
    c.cell = mem_new(c.n, sizeof(*c.cell));
    mem_large_pages(c.cell, c.n * sizeof(*c.cell));
    count_cells(m, &c);
    place_cells(m, &c);
    if (rule->as_they_come)
        sort_cells(&c);
    for (size_t i = 0; i < c.n; i++)
        if (c.cell[i].at)
            enter(m, rule, c.cell[i].pair, true, c.cell[i].sum, c.cell[i].at, c.cell[i].n);
    free(c.cell);
}

/* ---- one merge --------------------------------------------------------------------------- */

static inline void add_event(struct learn_merge *m, struct side *s, uint32_t id, size_t at,
                             int64_t w)
{
    if (s->nevent == s->event_cap) {
        s->event_cap = s->event_cap ? 2 * s->event_cap : 4096;
        s->event = mem_grow(s->event, s->event_cap, sizeof(*s->event));
    }
    s->event[s->nevent++] = (struct event){id, (uint32_t)at};
    struct beside *b = &s->beside[id];
    if (!b->n++) {
        if (s->nid == s->id_cap) {
            s->id_cap = s->id_cap ? 2 * s->id_cap : 1024;
            s->id = mem_grow(s->id, s->id_cap, sizeof(*s->id));
        }
        s->id[s->nid++] = id;
        b->first = m->nevent;
    }
    m->nevent++;
    b->sum += w;
}

/* Merges the pair at this place if it still stands there. */
static inline bool merge_at(struct learn_merge *m, struct learn_pair p, uint32_t id, size_t at)
{
    struct slot *s = m->slot;
    uint32_t sl = m->span[p.left], sr = m->span[p.right];
    if (s[at].sym != p.left || s[at + sl].sym != p.right)
        return false;
    size_t mid = at + sl, end = mid + sr;
    int64_t w = weight(m, at);
    if (s[at - 1].sym != EDGE) {
        uint32_t x = s[at - 1].sym & ~TAIL;
        add_event(m, &m->left, x, at - m->span[x], w);
    }
    if (s[end].sym != EDGE)
        add_event(m, &m->right, s[end].sym, at, w);
    s[mid - 1].sym = GONE;
    s[mid].sym = GONE;
    s[at].sym = id;
    s[end - 1].sym = id | TAIL;
    return true;
}

static void merge_word(struct learn_merge *m, struct learn_pair p, uint32_t id, size_t at)
{
    while (m->slot[at].sym != EDGE) {
        merge_at(m, p, id, at);
        at += m->span[m->slot[at].sym];
    }
}

/* In all words of the places, at all places. */
static void merge_words(struct learn_merge *m, const struct learn_entry *t, uint32_t id)
{
    size_t done = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        size_t at = t->at[i];
        if (at < done)
            continue;
        while (m->slot[at - 1].sym != EDGE)
            at--;
        merge_word(m, t->pair, id, at);
        for (done = t->at[i]; m->slot[done].sym != EDGE;)
            done++;
    }
}

static void merge_places(struct learn_merge *m, const struct learn_entry *t, uint32_t id)
{
    enum { AHEAD = 16 };
    uint32_t span = m->span[t->pair.left] + m->span[t->pair.right];
    for (uint32_t i = 0; i < t->n; i++) {
        if (i + AHEAD < t->n) { /* what merge_at reads: from one slot before to one behind */
            const struct slot *s = &m->slot[t->at[i + AHEAD]];
            __builtin_prefetch(s - 1, 1);
            __builtin_prefetch(s + span, 1);
        }
        merge_at(m, t->pair, id, t->at[i]);
    }
}

/* Each event's place goes to the list of its symbol. */
static void sort_events(struct learn_merge *m, struct side *s)
{
    uint32_t *p = take_places(&m->places, s->nevent);
    for (size_t i = 0; i < s->nid; i++) {
        struct beside *b = &s->beside[s->id[i]];
        b->at = p;
        p += b->n;
        b->n = 0;
    }
    for (size_t i = 0; i < s->nevent; i++) {
        struct beside *b = &s->beside[s->event[i].id];
        b->at[b->n++] = s->event[i].at;
    }
    s->nevent = 0;
}

/* Pairs that may not be merged have no count; those of the new symbol have none as yet, when a run
 * of one symbol makes and unmakes them in one go. */
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

/* (id, id) met from both sides, which takes an id that existed before: one list for both. */
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
        enter(m, rule, p, false, b->sum, b->at, b->n);
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
    sort_events(m, &m->left);
    sort_events(m, &m->right);
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

void learn_merge_run(struct learn_merge *m, const struct learn_rule *rule)
{
    m->queue.rule = rule;
    first_pairs(m, rule);
    struct learn_entry top;
    while (learn_queue_pop(&m->queue, &m->counts, &top)) {
        uint32_t id = rule->choose(rule->arg, top.pair, top.count);
        if (id == LEARN_STOP)
            return;
        if (id == LEARN_PASS)
            continue;
        need_id(m, id);
        uint32_t span = m->span[top.pair.left] + m->span[top.pair.right];
        BUG_ON(m->span[id] && m->span[id] != span, "symbol %u spans %u and %u", id, m->span[id],
               span);
        m->span[id] = span;
        if (top.again)
            merge_words(m, &top, id);
        else
            merge_places(m, &top, id);
        update(m, rule, top.pair, id);
    }
}
