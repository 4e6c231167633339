/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "tok/tok.h"
#include "tok/tok_run.h"

/*
 * One text by many threads. Its parts end at cuts. The first thread takes them from the front and
 * writes to the caller's ids, the others from the back and into ids of their own, which are copied
 * behind when all are there: so of two threads' ids half are never moved.
 */

enum {
    WINDOW = 8 << 10, /* bytes in which a cut is looked for at once */
    PART_LEAST = 16 << 10,
    PART_MOST = 256 << 10,
    PARTS_EACH = 8,    /* parts for a thread, so that all end at about the same time */
    TOGETHER = 1 << 20 /* bytes for each thread of a text that comes in parts */
};

struct job {
    const struct tokenizer *t;
    struct tok_work *const *work;
    const char *text;
    uint64_t text_at; /* where it begins in the whole one */
    bool first, last; /* the whole one begins, ends here */
    struct tok_part *part;
    size_t nparts;
    struct tok_ids *ids;
    size_t start;           /* of this text's ids */
    pthread_mutex_t lock;   /* of the rest, where ids depend on a sum */
    size_t settled;         /* parts whose ids are the caller's, in order, */
    size_t reused;          /* and whose memory another has */
    float sum;              /* behind the last of them */
    bool settling;          /* a thread is at the next one */
    _Atomic uint64_t taken; /* parts left: from the low half on, below the high one */
};

/* ---- parts --------------------------------------------------------------------------------- */

/* The last cut in text[from .. to), of what begins at `begin`, which is one; 0 if there is none. */
static size_t find_cut(const struct tokenizer *t, const char *text, size_t begin, size_t from,
                       size_t to)
{
    size_t start = from - begin > TOK_CUT_LOOK ? from - TOK_CUT_LOOK : begin;
    while (start > begin && start < to && ((unsigned char)text[start] & 0xc0) == 0x80)
        start++;
    size_t k = t->engine.cut(t->engine.state, text + start, to - start);
    return k && (start == begin || k > TOK_CUT_LOOK) ? start + k : 0;
}

static size_t part_bytes(const struct pool *pool, size_t n)
{
    size_t size = n / ((size_t)pool_threads(pool) * PARTS_EACH);
    return size < PART_LEAST ? PART_LEAST : size > PART_MOST ? PART_MOST : size;
}

static void add_part(struct tok_work *w, size_t n, size_t end)
{
    if (n == w->part_cap) {
        w->part_cap = w->part_cap ? w->part_cap * 2 : 64;
        w->part = mem_grow(w->part, w->part_cap, sizeof(*w->part));
    }
    w->part[n] = (struct tok_part){.end = end};
}

/* Their number. */
static size_t find_parts(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                         size_t size)
{
    size_t count = 0, begin = 0;
    for (size_t to = size; to < n && n - begin > size; to += WINDOW) {
        size_t from = to - begin > WINDOW ? to - WINDOW : begin;
        size_t cut = find_cut(t, text, begin, from, to);
        if (cut <= begin)
            continue;
        add_part(w, count++, cut);
        begin = cut;
        to = begin + size - WINDOW;
    }
    add_part(w, count++, n);
    return count;
}

static size_t part_start(const struct job *j, size_t i)
{
    return i ? j->part[i - 1].end : 0;
}

/* ---- threads ------------------------------------------------------------------------------- */

static bool take(struct job *j, bool front, size_t *ret)
{
    uint64_t now = atomic_load_explicit(&j->taken, memory_order_relaxed), next;
    uint32_t low, high;
    do {
        low = (uint32_t)now;
        high = (uint32_t)(now >> 32);
        if (low >= high)
            return false;
        next = front ? now + 1 : now - ((uint64_t)1 << 32);
    } while (!atomic_compare_exchange_weak(&j->taken, &now, next));
    *ret = front ? low : high - 1;
    return true;
}

static void stop(struct job *j)
{
    atomic_store(&j->taken, 0);
}

static int fail(const struct job *j, struct tok_work *w, size_t i, int code)
{
    uint64_t at = j->text_at + part_start(j, i);
    if (at)
        err_wrap(&w->err, "in the part of the text from byte %llu on", (unsigned long long)at);
    w->failed = i;
    return w->code = code;
}

static int encode_part(const struct job *j, struct tok_work *w, size_t i, struct tok_ids *ids)
{
    const struct tok_engine *g = &j->t->engine;
    size_t from = part_start(j, i), n = j->part[i].end - from;
    bool first = j->first && i == 0, last = j->last && i + 1 == j->nparts;
    int code;
    if (g->encode_between)
        code = g->encode_between(g->state, w->scratch, j->text + from, n, first, last, ids,
                                 &w->tally, &w->err);
    else
        code = n ? g->encode(g->state, w->scratch, j->text + from, n, ids, &w->tally, &w->err) : 0;
    return code ? fail(j, w, i, code) : 0;
}

/* Of two ids that fuse where parts meet, one goes. */
static bool fuses(const struct job *j, int32_t before, int32_t id)
{
    return j->t->engine.fuses >= 0 && before == id && id == j->t->engine.fuses;
}

/* The caller's ids from `was` on are those of the next part. */
static void join_ids(struct job *j, size_t was)
{
    struct tok_ids *ids = j->ids;
    int32_t *last = &j->work[0]->last_id;
    if (ids->n > was && fuses(j, *last, ids->id[was])) {
        ids->n--;
        memmove(ids->id + was, ids->id + was + 1, (ids->n - was) * sizeof(*ids->id));
    }
    *last = ids->n > was ? ids->id[ids->n - 1] : *last;
}

static void encode_front(struct job *j)
{
    for (size_t i; take(j, true, &i);) {
        size_t was = j->ids->n;
        if (encode_part(j, j->work[0], i, j->ids)) {
            stop(j); /* all that is left stands behind */
            return;
        }
        join_ids(j, was);
        j->part[i].thread = 0;
    }
}

static void encode_back(struct job *j, int thread)
{
    struct tok_work *w = j->work[thread];
    w->ids.n = 0;
    for (size_t i; take(j, false, &i);) {
        struct tok_part *p = &j->part[i];
        p->thread = thread;
        p->first = w->ids.n;
        encode_part(j, w, i, &w->ids); /* after a failure, too: an earlier part may fail as well */
        p->count = w->ids.n - p->first;
    }
}

/* ---- parts behind sums ---------------------------------------------------------------------- */

/*
 * All threads take parts from the front, and find out what does not depend on the sum. The rest is
 * little, and done by one thread at a time, by the one that has just found out about the next part.
 */

static int look(struct job *j, struct tok_work *w, size_t i)
{
    const struct tok_engine *g = &j->t->engine;
    struct tok_part *p = &j->part[i];
    size_t from = part_start(j, i), n = p->end - from;
    pthread_mutex_lock(&j->lock);
    if (j->reused < j->settled) {
        p->looked = j->part[j->reused].looked;
        j->part[j->reused++].looked = (struct tok_ids){0};
    }
    pthread_mutex_unlock(&j->lock);
    p->looked.n = 0;
    if (j->first && i == 0)
        return 0;
    int code = g->look(g->state, w->scratch, j->text + from, n, &p->looked, &w->tally, &w->err);
    return code ? fail(j, w, i, code) : 0;
}

static int take_ids(struct job *j, struct tok_work *w, size_t i)
{
    const struct tok_engine *g = &j->t->engine;
    size_t from = part_start(j, i), n = j->part[i].end - from, was = j->ids->n;
    bool first = j->first && i == 0, last = j->last && i + 1 == j->nparts;
    int code = g->take(g->state, w->scratch, j->text + from, n, first, last, &j->part[i].looked,
                       &j->sum, j->ids, &w->tally, &w->err);
    if (code)
        return fail(j, w, i, code);
    join_ids(j, was);
    return 0;
}

/* Settles what can be, as the only one who does. */
static int settle(struct job *j, struct tok_work *w, size_t i)
{
    int code = 0;
    pthread_mutex_lock(&j->lock);
    j->part[i].done = true;
    while (!j->settling && !code && j->settled < j->nparts && j->part[j->settled].done) {
        size_t next = j->settled;
        j->settling = true;
        pthread_mutex_unlock(&j->lock);
        code = take_ids(j, w, next);
        pthread_mutex_lock(&j->lock);
        j->settling = false;
        j->settled += !code;
    }
    pthread_mutex_unlock(&j->lock);
    return code;
}

static void encode_sums(struct job *j, int thread)
{
    struct tok_work *w = j->work[thread];
    for (size_t i; !w->code && take(j, true, &i);)
        if (look(j, w, i) || settle(j, w, i))
            stop(j); /* all that is left stands behind */
}

static void encode_task(void *arg, int task, int thread)
{
    (void)task;
    if (((struct job *)arg)->t->engine.look)
        encode_sums(arg, thread);
    else if (thread == 0)
        encode_front(arg);
    else
        encode_back(arg, thread);
}

static void check_task(void *arg, int task, int thread)
{
    struct job *j = arg;
    struct tok_work *w = j->work[thread];
    struct strict s = {.at = j->text_at + part_start(j, (size_t)task)};
    size_t from = part_start(j, (size_t)task), n = j->part[task].end - from;
    if (!w->code && (w->code = tok_check_part(j->t, &s, j->text + from, n, true, &w->err)))
        w->failed = (size_t)task;
}

static void copy_task(void *arg, int task, int thread)
{
    struct job *j = arg;
    const struct tok_part *p = &j->part[task];
    (void)thread;
    if (p->thread)
        memcpy(j->ids->id + p->at, j->work[p->thread]->ids.id + p->first,
               p->count * sizeof(*j->ids->id));
}

/* ---- all together -------------------------------------------------------------------------- */

/* What failed in the first of the parts that did. */
static int find_failure(const struct job *j, int threads, struct err *e)
{
    const struct tok_work *bad = NULL;
    for (int i = 0; i < threads; i++)
        if (j->work[i]->code && (!bad || j->work[i]->failed < bad->failed))
            bad = j->work[i];
    if (!bad)
        return 0;
    *e = bad->err;
    return bad->code;
}

/* Where the ids of each part go; the caller's have room for all of them then. */
static void place(struct job *j)
{
    size_t n = j->ids->n;
    int32_t last = j->work[0]->last_id;
    for (size_t i = 0; i < j->nparts; i++) {
        struct tok_part *p = &j->part[i];
        if (!p->thread || !p->count)
            continue;
        const int32_t *id = j->work[p->thread]->ids.id + p->first;
        int32_t end = id[p->count - 1];
        if (fuses(j, last, id[0])) {
            p->first++;
            p->count--;
        }
        last = end;
        p->at = n;
        n += p->count;
    }
    tok_ids_reserve(j->ids, n - j->ids->n);
    j->ids->n = n;
    j->work[0]->last_id = last;
}

static int run(struct job *j, struct pool *pool, struct err *e)
{
    int threads = pool_threads(pool), code = 0;
    for (int i = 0; i < threads; i++)
        j->work[i]->code = 0;
    if (j->t->strict) {
        pool_run(pool, (int)j->nparts, check_task, j);
        code = find_failure(j, threads, e);
    }
    if (!code) {
        atomic_init(&j->taken, (uint64_t)j->nparts << 32);
        pool_run(pool, threads, encode_task, j);
        code = find_failure(j, threads, e);
    }
    if (!code) {
        place(j);
        pool_run(pool, (int)j->nparts, copy_task, j);
    }
    if (!code && j->ids->n - j->start > INT32_MAX)
        code = err_set(e, ERR_DATA, "a document gives %zu ids, more than 2^31 - 1",
                       j->ids->n - j->start);
    if (code)
        j->ids->n = j->start;
    return code;
}

static int encode_split(const struct tokenizer *t, struct pool *pool, struct tok_work *const *work,
                        const char *text, size_t n, bool first, bool last, struct tok_ids *ids,
                        struct err *e)
{
    struct tok_work *w = work[0];
    size_t size = part_bytes(pool, n);
    struct job j = {.t = t,
                    .sum = first ? 0 : w->sum,
                    .work = work,
                    .text = text,
                    .text_at = w->rest_at,
                    .first = first,
                    .last = last,
                    .ids = ids,
                    .start = ids->n,
                    .nparts = find_parts(t, w, text, n, size)};
    j.part = w->part;
    w->last_id = first ? -1 : w->last_id;
    pthread_mutex_init(&j.lock, NULL);
    int code = run(&j, pool, e);
    pthread_mutex_destroy(&j.lock);
    for (size_t i = 0; i < j.nparts; i++)
        tok_ids_finish(&j.part[i].looked);
    w->sum = j.sum;
    return code;
}

int tok_encode_parallel(const struct tokenizer *t, struct pool *pool, struct tok_work *const *work,
                        const char *text, size_t n, struct tok_ids *ids, struct err *e)
{
    size_t before = ids->n;
    if (pool_threads(pool) == 1 || n < 2 * PART_LEAST || !t->engine.cut)
        return tok_encode(t, work[0], text, n, ids, e);
    tok_put_ids(ids, t->engine.before, t->engine.nbefore);
    int code = encode_split(t, pool, work, text, n, true, true, ids, e);
    if (code)
        ids->n = before;
    else
        tok_put_ids(ids, t->engine.after, t->engine.nafter);
    return code;
}

/* The last cut of what waits, 0 if there is none. */
static size_t last_cut(const struct tokenizer *t, const struct buf *rest)
{
    for (size_t to = rest->len; to > 0; to -= to < WINDOW ? to : WINDOW) {
        size_t cut = find_cut(t, rest->data, 0, to > WINDOW ? to - WINDOW : 0, to);
        if (cut)
            return cut;
    }
    return 0;
}

int tok_encode_part_parallel(const struct tokenizer *t, struct pool *pool,
                             struct tok_work *const *work, const char *text, size_t n, bool last,
                             struct tok_ids *ids, struct err *e)
{
    struct tok_work *w = work[0];
    struct buf *rest = &w->rest;
    size_t least = TOGETHER * (size_t)pool_threads(pool), before = ids->n;
    if (pool_threads(pool) == 1 || !t->engine.cut)
        return tok_encode_part(t, w, text, n, last, ids, e);
    if (!w->begun) {
        tok_put_ids(ids, t->engine.before, t->engine.nbefore);
        w->enough = least;
    }
    w->begun = true;
    buf_add(rest, text, n);
    size_t k = last ? rest->len : rest->len >= w->enough ? last_cut(t, rest) : 0;
    int code = 0;
    if (k || last) {
        code = encode_split(t, pool, work, rest->data, k, w->rest_at == 0, last, ids, e);
        rest->len -= k;
        memmove(rest->data, rest->data + k, rest->len);
        w->rest_at += k;
    }
    w->enough = k || rest->len < least ? least : 2 * rest->len;
    if (code)
        ids->n = before;
    else if (last)
        tok_put_ids(ids, t->engine.after, t->engine.nafter);
    if (last || code) {
        buf_finish(rest);
        w->rest_at = 0;
        w->begun = false;
    }
    return code;
}
