/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/fault.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "train/engine/state.h"
#include "train/engine/device_io.h"
#include "train/engine/all_ranks.h"
#include "train/tensor/fingerprint.h"
#include "train/zero/gather.h"

/* A box as ranks tell each other of it. */
struct told {
    uint64_t key; /* of group and tensor */
    struct box box;
};

/* A box, or a part of one, that a rank holds. */
struct part {
    struct told t;
    int rank;
    size_t entry; /* of those that the rank has told of */
};

/* What several ranks hold: so many of `holder` from `first` on, in the order of ranks. */
struct shared {
    size_t first;
    int holders;
    size_t entry; /* the first holder's number of it */
};

struct copies {
    struct state_entries held;
    uint64_t cursor[STATE_NUMBERS]; /* as it was compared last; the entry after those held */
    struct shared *at;              /* in the order in which their first holders have them */
    size_t n;
    int *holder;
    struct box_mem *own; /* of those that this rank holds, likewise ordered */
    size_t *entry;
    size_t nown;
    uint64_t bytes;
};

/* ---- what the ranks hold ----------------------------------------------------------------- */

static const struct box one = {{0, 0}, {1, 1}};

static uint64_t tensor_key(const char *group, const char *name)
{
    char text[XXH_TEXT], both[128];
    int n = snprintf(both, sizeof(both), "%s %s", group, name);
    BUG_ON(n >= (int)sizeof(both), "a name of %d bytes", n);
    xxh_once(both, (size_t)n, text);
    text[16] = 0;
    return strtoull(text, NULL, 16);
}

/* What this rank has: the entries, then the cursor. */
static struct told *tell(const struct state_entries *held)
{
    struct told *ret = mem_new(held->n + 1, sizeof(*ret));
    for (size_t i = 0; i < held->n; i++) {
        const struct state_entry *s = &held->at[i];
        ret[i] = (struct told){tensor_key(s->group, s->source->name), s->mem.box};
    }
    ret[held->n] = (struct told){tensor_key("cursor", ""), one};
    return ret;
}

struct parts {
    struct part *at;
    size_t n, capacity;
};

static void add_part(struct parts *p, struct part part, struct box box)
{
    if (!box_count(box))
        return;
    ARRAY_GROW(p->at, p->n, p->capacity);
    part.t.box = box;
    p->at[p->n++] = part;
}

/* A number before the other: -1, 0 or 1. */
static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* By tensor, box and rank. */
static int by_box_place(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int c = order(x->t.key, y->t.key);
    for (int d = 0; d < 2 && !c; d++)
        c = order((uint64_t)x->t.box.begin[d], (uint64_t)y->t.box.begin[d]);
    for (int d = 0; d < 2 && !c; d++)
        c = order((uint64_t)x->t.box.count[d], (uint64_t)y->t.box.count[d]);
    return c ? c : x->rank - y->rank;
}

static int64_t end_of(const struct part *p, int d)
{
    return p->t.box.begin[d] + p->t.box.count[d];
}

/* Whether two boxes of a tensor overlap and are not equal; `p` is in order. */
static bool is_crossed(const struct part *p, size_t n)
{
    struct box common;
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n && p[k].t.box.begin[0] < end_of(&p[i], 0); k++)
            if (!box_equal(p[i].t.box, p[k].t.box) &&
                box_intersect(p[i].t.box, p[k].t.box, &common))
                return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    return order((uint64_t)(*(const int64_t *)a), (uint64_t)(*(const int64_t *)b));
}

/* Ascending, each once; returns how many are left. */
static size_t unique(int64_t *cut, size_t n)
{
    size_t k = 0;
    qsort(cut, n, sizeof(*cut), by_number);
    for (size_t i = 0; i < n; i++)
        if (k == 0 || cut[i] != cut[k - 1])
            cut[k++] = cut[i];
    return k;
}

/* The rows [begin, end) of all boxes that have them, cut where the columns of one of these begin or
 * end. */
static void cut_columns(const struct part *p, size_t n, int64_t begin, int64_t end, int64_t *cut,
                        struct parts *out)
{
    size_t cuts = 0;
    for (size_t i = 0; i < n && p[i].t.box.begin[0] <= begin; i++)
        if (end_of(&p[i], 0) >= end) {
            cut[cuts++] = p[i].t.box.begin[1];
            cut[cuts++] = end_of(&p[i], 1);
        }
    cuts = unique(cut, cuts);
    for (size_t i = 0; i < n && p[i].t.box.begin[0] <= begin; i++) {
        struct box whole = p[i].t.box, b;
        for (size_t k = 0; k + 1 < cuts; k++)
            if (box_intersect(
                    whole, (struct box){{begin, cut[k]}, {end - begin, cut[k + 1] - cut[k]}}, &b))
                add_part(out, p[i], b);
    }
}

/* The boxes of a tensor in parts of which any two are equal or apart, the same ones on all ranks.
 * (The tied embedding under ZeRO: its shares are cut otherwise on each end of a pipeline.) */
static void cut_boxes(const struct part *p, size_t n, struct parts *out)
{
    int64_t *row = mem_new(4 * n, sizeof(*row)), *column = row + 2 * n;
    size_t rows = 0, from = 0;
    for (size_t i = 0; i < n; i++) {
        row[rows++] = p[i].t.box.begin[0];
        row[rows++] = end_of(&p[i], 0);
    }
    rows = unique(row, rows);
    for (size_t i = 0; i + 1 < rows; i++) {
        while (from < n && end_of(&p[from], 0) <= row[i])
            from++;
        cut_columns(p + from, n - from, row[i], row[i + 1], column, out);
    }
    free(row);
}

/* The parts of all ranks' boxes, in order. */
static struct parts cut_all(const struct told *told, const size_t *size, int world)
{
    struct parts whole = {0}, ret = {0};
    size_t at = 0;
    for (int k = 0; k < world; k++)
        for (size_t i = 0; i < size[k] / sizeof(*told); i++, at++)
            add_part(&whole, (struct part){told[at], k, i}, told[at].box);
    qsort(whole.at, whole.n, sizeof(*whole.at), by_box_place);
    for (size_t i = 0, next; i < whole.n; i = next) {
        for (next = i + 1; next < whole.n && whole.at[next].t.key == whole.at[i].t.key;)
            next++;
        if (is_crossed(whole.at + i, next - i))
            cut_boxes(whole.at + i, next - i, &ret);
        else
            for (size_t k = i; k < next; k++)
                add_part(&ret, whole.at[k], whole.at[k].t.box);
    }
    free(whole.at);
    qsort(ret.at, ret.n, sizeof(*ret.at), by_box_place);
    return ret;
}

static bool same_place(const struct part *a, const struct part *b)
{
    return a->t.key == b->t.key && box_equal(a->t.box, b->t.box);
}

/* A run of parts that are the same one. */
struct run {
    const struct part *at;
    size_t n;
};

static int by_entry(const void *a, const void *b)
{
    const struct part *x = ((const struct run *)a)->at, *y = ((const struct run *)b)->at;
    int c = x->rank - y->rank;
    c = c ? c : order(x->entry, y->entry);
    return c ? c : by_box_place(x, y);
}

static struct box_mem mem_of(struct copies *c, const struct part *p)
{
    if (p->entry == c->held.n)
        return (struct box_mem){c->cursor, DTYPE_F64, {{0, 0}, {STATE_NUMBERS, 1}}, 1};
    struct box_mem m = c->held.at[p->entry].mem;
    int64_t at =
        (p->t.box.begin[0] - m.box.begin[0]) * m.stride + p->t.box.begin[1] - m.box.begin[1];
    m.data = (char *)m.data + (size_t)at * dtype_size(m.dtype);
    m.box = (struct box){{0, 0}, {p->t.box.count[0], p->t.box.count[1]}};
    return m;
}

/* Keeps what more than one rank holds. */
static void keep_shared(struct copies *c, const struct parts *p, int rank)
{
    struct run *run = mem_new(p->n + 1, sizeof(*run));
    size_t runs = 0, holders = 0;
    for (size_t i = 0, next; i < p->n; i = next) {
        for (next = i + 1; next < p->n && same_place(&p->at[i], &p->at[next]);)
            next++;
        if (next - i > 1)
            run[runs++] = (struct run){&p->at[i], next - i};
    }
    qsort(run, runs, sizeof(*run), by_entry);
    c->at = mem_new(runs + 1, sizeof(*c->at));
    c->holder = mem_new(p->n + 1, sizeof(*c->holder));
    c->own = mem_new(runs + 1, sizeof(*c->own));
    c->entry = mem_new(runs + 1, sizeof(*c->entry));
    for (size_t i = 0; i < runs; i++) {
        c->at[c->n++] = (struct shared){holders, (int)run[i].n, run[i].at->entry};
        for (size_t k = 0; k < run[i].n; k++) {
            const struct part *q = &run[i].at[k];
            c->holder[holders++] = q->rank;
            if (q->rank != rank)
                continue;
            c->entry[c->nown] = q->entry;
            c->own[c->nown] = mem_of(c, q);
            c->bytes +=
                (uint64_t)box_count(c->own[c->nown].box) * dtype_size(c->own[c->nown].dtype);
            c->nown++;
        }
    }
    free(run);
}

int copies_find(struct rank *r, struct copies **ret, struct err *e)
{
    struct copies *c = mem_new(1, sizeof(*c));
    struct buf all = {0};
    size_t *size = mem_new((size_t)r->comm.world, sizeof(*size));
    c->held = state_held(r);
    struct told *told = tell(&c->held);
    int code = all_ranks_gather(&r->comm, told, (c->held.n + 1) * sizeof(*told), &all, size, e);
    if (!code) {
        struct told *of_all = mem_new(all.len / sizeof(*told) + 1, sizeof(*told));
        memcpy(of_all, all.data, all.len);
        struct parts p = cut_all(of_all, size, r->comm.world);
        keep_shared(c, &p, r->comm.rank);
        free(p.at);
        free(of_all);
    }
    free(told);
    free(size);
    buf_finish(&all);
    *ret = code ? NULL : c;
    if (code)
        copies_destroy(c);
    return code;
}

void copies_destroy(struct copies *c)
{
    if (!c)
        return;
    free(c->held.at);
    free(c->at);
    free(c->holder);
    free(c->own);
    free(c->entry);
    free(c);
}

uint64_t copies_bytes(const struct copies *c)
{
    return c->bytes;
}

/* ---- comparison -------------------------------------------------------------------------- */

struct sums {
    const struct copies *c;
    struct fingerprint *at; /* [nown] */
};

static void sum_one(void *arg, int task, int thread)
{
    struct sums *s = arg;
    const struct box_mem *m = &s->c->own[task];
    (void)thread;
    fingerprint_add_box(&s->at[task], m->box.count[1], *m);
}

static int sum_piece(void *arg, size_t entry, uint64_t at, const void *bytes, size_t n,
                     struct err *e)
{
    struct sums *s = arg;
    (void)e;
    fingerprint_add(&s->at[entry], at, bytes, n);
    return 0;
}

/* Over the bytes of each part without what is between its rows. */
static int take_sums(struct rank *r, struct sums *s, struct err *e)
{
    const struct copies *c = s->c;
    if (r->dev.desc.host) {
        pool_run(r->dev.pool, (int)c->nown, sum_one, s);
        return 0;
    }
    struct box_mem *mem = mem_new(c->nown + 1, sizeof(*mem));
    memcpy(mem, c->own, c->nown * sizeof(*mem));
    for (size_t i = 0; i < c->nown; i++)
        if (c->entry[i] == c->held.n) { /* in host memory */
            sum_one(s, (int)i, 0);
            mem[i].box.count[0] = 0;
        }
    int code = device_io_rows(&r->dev, mem, NULL, c->nown, sum_piece, s, e);
    free(mem);
    return code;
}

/* The ranks that hold something, and their sums of it. */
struct held {
    const int *rank;
    const uint64_t *sum;
    int n;
};

/* The holder whose sum most have; the first of several such. */
static int most_common(const struct held *h)
{
    int best = 0, most = 0;
    for (int k = 0; k < h->n; k++) {
        int same = 0;
        for (int j = 0; j < h->n; j++)
            same += h->sum[j] == h->sum[k];
        if (same > most) {
            most = same;
            best = k;
        }
    }
    return best;
}

static bool is_equal(const struct held *h)
{
    for (int k = 1; k < h->n; k++)
        if (h->sum[k] != h->sum[0])
            return false;
    return true;
}

/* "exp_avg of layers.0.attn_norm.weight" */
static void name_entry(const struct copies *c, size_t entry, struct buf *out)
{
    if (entry == c->held.n) {
        buf_addf(out, "the count of steps and samples");
        return;
    }
    const struct state_entry *s = &c->held.at[entry];
    if (strcmp(s->group, CKPT_PARAM) != 0)
        buf_addf(out, "%s of ", s->group);
    buf_addf(out, "%s", s->source->name);
}

enum { NAMED = 32 };

/* Names those that differ from the most common sum. */
static void name_ranks(const struct held *h, struct buf *out)
{
    int best = most_common(h), others = 0;
    for (int k = 0; k < h->n; k++)
        others += h->sum[k] != h->sum[best];
    buf_addf(out, " differs between replicas: rank%s ", others > 1 ? "s" : "");
    for (int k = 0, n = 0; k < h->n; k++)
        if (h->sum[k] != h->sum[best] && n++ < NAMED)
            buf_addf(out, "%s%d", n > 1 ? ", " : "", h->rank[k]);
    buf_addf(out, "%s %s other values than rank %d", others > NAMED ? ", ..." : "",
             others > 1 ? "have" : "has", h->rank[best]);
}

/* On all ranks, by the first of those that hold it. */
static int tell_all(struct rank *r, const struct copies *c, const struct shared *s,
                    const struct held *h, struct err *e)
{
    struct buf why = {0}, all = {0};
    size_t *size = mem_new((size_t)r->comm.world, sizeof(*size));
    if (h->rank[0] == r->comm.rank) {
        name_entry(c, s->entry, &why);
        name_ranks(h, &why);
    }
    int code = all_ranks_gather(&r->comm, why.data, why.len, &all, size, e);
    if (!code)
        code = err_set(e, ERR_FAULT, "%s", buf_str(&all));
    buf_finish(&why);
    buf_finish(&all);
    free(size);
    return code;
}

/* `all`: each rank's sums of what it holds, in order. */
static int compare_sums(struct rank *r, const struct copies *c, const uint64_t *all,
                        const size_t *size, struct err *e)
{
    size_t world = (size_t)r->comm.world, first = 0;
    size_t *next = mem_new(world, sizeof(*next));
    uint64_t *sum = mem_new(world * 2, sizeof(*sum)); /* a rank holds nothing more than twice */
    int code = 0;
    for (size_t k = 0; k < world; first += size[k++] / sizeof(*all))
        next[k] = first;
    for (size_t i = 0; i < c->n && !code; i++) {
        const struct shared *s = &c->at[i];
        struct held h = {c->holder + s->first, sum, s->holders};
        BUG_ON(s->holders > 2 * r->comm.world, "%d holders", s->holders);
        for (int k = 0; k < h.n; k++)
            sum[k] = all[next[h.rank[k]]++];
        if (!is_equal(&h) && !FAULT("copies"))
            code = tell_all(r, c, s, &h, e);
    }
    free(next);
    free(sum);
    return code;
}

int copies_compare(struct rank *r, struct copies *c, struct err *e)
{
    struct sums s = {c, mem_new(c->nown + 1, sizeof(*s.at))};
    uint64_t *own = mem_new(c->nown + 1, sizeof(*own));
    size_t *size = mem_new((size_t)r->comm.world, sizeof(*size));
    struct buf all = {0};
    gather_wait(&r->zero);
    state_cursor(r, c->cursor);
    int code = take_sums(r, &s, e);
    for (size_t i = 0; i < c->nown; i++)
        own[i] = s.at[i].low;
    code = all_ranks_agree(&r->comm, code, e);
    if (!code)
        code = all_ranks_gather(&r->comm, own, c->nown * sizeof(*own), &all, size, e);
    if (!code) {
        uint64_t *of_all = mem_new(all.len / sizeof(*of_all) + 1, sizeof(*of_all));
        memcpy(of_all, all.data, all.len);
        code = compare_sums(r, c, of_all, size, e);
        free(of_all);
    }
    free(s.at);
    free(own);
    free(size);
    buf_finish(&all);
    return code;
}
