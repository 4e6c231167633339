/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/pool.h"
#include "tok/tokenizer/tokenizer.h"
#include "tok/tokenizer/tokenizer_work.h"

/*
 * One text by many threads. Its parts end at split points; each thread takes the next one, and
 * encodes it into memory that is reused, so that it stays in the processor's cache. A thread that
 * has finished a part appends the next parts in order, if they are finished, to the caller's ids:
 * positions are assigned under a lock, and the ids are copied outside.
 *
 * If ids depend on a sum, a thread computes what does not depend on it. The rest is little, and
 * done by one thread at a time in order of the parts.
 */

enum {
    WINDOW = 8 << 10, /* bytes in which a split point is searched at a time */
    PART_LEAST = 16 << 10,
    PART_MOST = 128 << 10,
    PARTS_EACH = 8,         /* parts per thread, so that all end at about the same time */
    TOGETHER = 1 << 20,     /* bytes per thread of a text that comes in parts, */
    TOGETHER_MOST = 8 << 20 /* and for all of them */
};

struct job {
    const struct tokenizer *t;
    struct tok_work *const *work;
    const char *text;
    uint64_t text_at; /* its offset in the whole text */
    bool first, last; /* it is the beginning, the end of the whole text */
    struct tok_part *part;
    size_t nparts;
    atomic_size_t taken;  /* number of parts taken */
    pthread_mutex_t lock; /* for all below, and for `done` of parts */
    struct tok_ids *ids;
    size_t start;   /* of this text's ids */
    size_t settled; /* parts placed there, in order */
    int settling;   /* threads copying ids */
    float sum;      /* after the settled parts */
};

/* ---- parts --------------------------------------------------------------------------------- */

/* The last split point in text[from .. to), of text that begins at split point `begin`; 0: none. */
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
        w->spare = mem_grow(w->spare, w->part_cap, sizeof(*w->spare));
    }
    w->part[n] = (struct tok_part){.end = end};
}

/* Returns the number of parts. */
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

/* Reuses memory of a settled part, if there is any. */
static struct tok_ids take_spare(struct job *j)
{
    struct tok_work *w = j->work[0];
    struct tok_ids ids = {0};
    pthread_mutex_lock(&j->lock);
    if (w->nspare)
        ids = w->spare[--w->nspare];
    pthread_mutex_unlock(&j->lock);
    ids.n = 0;
    return ids;
}

static void put_spare(struct job *j, struct tok_part *p)
{
    struct tok_work *w = j->work[0];
    if (p->found.cap)
        w->spare[w->nspare++] = p->found;
    p->found = (struct tok_ids){0};
}

static int fail(const struct job *j, struct tok_work *w, size_t i, int code)
{
    uint64_t at = j->text_at + part_start(j, i);
    if (at)
        err_wrap(&w->err, "in the part of the text from byte %llu on", (unsigned long long)at);
    w->failed = i;
    return w->code = code;
}

/* The ids of a part, or what can be computed of them without the sum. */
static int find_ids(struct job *j, struct tok_work *w, size_t i)
{
    const struct tok_engine *g = &j->t->engine;
    struct tok_part *p = &j->part[i];
    const char *text = j->text + part_start(j, i);
    size_t n = p->end - part_start(j, i);
    bool first = j->first && i == 0, last = j->last && i + 1 == j->nparts;
    int code = 0;
    p->found = take_spare(j);
    if (g->look)
        code = first ? 0 : g->look(g->state, w->scratch, text, n, &p->found, &w->tally, &w->err);
    else if (g->encode_between)
        code = g->encode_between(g->state, w->scratch, text, n, first, last, &p->found, &w->tally,
                                 &w->err);
    else if (n)
        code = g->encode(g->state, w->scratch, text, n, &p->found, &w->tally, &w->err);
    return code ? fail(j, w, i, code) : 0;
}

/* ---- their ids in order --------------------------------------------------------------------- */

/* Of two ids that fuse where parts meet, one is dropped. */
static bool fuses(const struct job *j, int32_t before, int32_t id)
{
    return j->t->engine.fuses >= 0 && before == id && id == j->t->engine.fuses;
}

/* Appends the ids of the next part, which depend on the sum before it. */
static int parallel_take_ids(struct job *j, struct tok_work *w, size_t i)
{
    const struct tok_engine *g = &j->t->engine;
    struct tok_ids *ids = j->ids;
    size_t from = part_start(j, i), n = j->part[i].end - from, was = ids->n;
    bool first = j->first && i == 0, last = j->last && i + 1 == j->nparts;
    int32_t *last_id = &j->work[0]->last_id;
    int code = g->take(g->state, w->scratch, j->text + from, n, first, last, &j->part[i].found,
                       &j->sum, ids, &w->tally, &w->err);
    if (code)
        return fail(j, w, i, code);
    if (ids->n > was && fuses(j, *last_id, ids->id[was])) {
        ids->n--;
        memmove(ids->id + was, ids->id + was + 1, (ids->n - was) * sizeof(*ids->id));
    }
    *last_id = ids->n > was ? ids->id[ids->n - 1] : *last_id;
    return 0;
}

static bool has_room(const struct job *j, size_t n)
{
    return j->ids->cap - j->ids->n >= n;
}

/* Reserves space for the ids of the next part, and at the same rate for the rest of the text. */
static void parallel_make_room(struct job *j, size_t n)
{
    double ids = (double)(j->ids->n - j->start + n), bytes = (double)j->part[j->settled].end;
    double rest = (double)j->part[j->nparts - 1].end - bytes;
    tok_ids_reserve(j->ids, n + (size_t)(rest > 0 ? ids / bytes * rest * 1.02 : 0));
}

/* Reserves the next part's ids under the lock, and copies them without it. */
static void copy_ids(struct job *j, const struct tok_ids *found)
{
    int32_t *last_id = &j->work[0]->last_id;
    if (!has_room(j, found->n))
        parallel_make_room(j, found->n);
    size_t fused = found->n && fuses(j, *last_id, found->id[0]), n = found->n - fused;
    int32_t *to = n ? j->ids->id + j->ids->n : NULL;
    *last_id = found->n ? found->id[found->n - 1] : *last_id;
    j->ids->n += n;
    j->settled++;
    pthread_mutex_unlock(&j->lock);
    if (n)
        mem_copy_past(to, found->id + fused, n * sizeof(*to));
    pthread_mutex_lock(&j->lock);
}

/* The caller's list may be reallocated only while no thread copies into it. */
static bool can_settle(const struct job *j)
{
    const struct tok_part *p = &j->part[j->settled];
    if (j->settled == j->nparts || !p->done)
        return false;
    return !j->settling || (!j->t->engine.look && has_room(j, p->found.n));
}

/* Settles the next part; releases the lock meanwhile. */
static int settle_next(struct job *j, struct tok_work *w)
{
    size_t i = j->settled;
    struct tok_part *p = &j->part[i];
    int code = 0;
    j->settling++;
    if (j->t->engine.look) {
        pthread_mutex_unlock(&j->lock);
        code = parallel_take_ids(j, w, i);
        pthread_mutex_lock(&j->lock);
        p->done = !code;
        j->settled += !code;
    } else {
        copy_ids(j, &p->found);
    }
    j->settling--;
    put_spare(j, p);
    return code;
}

/* Marks a part as done, and settles what is next. */
static int parallel_settle(struct job *j, struct tok_work *w, size_t i)
{
    int code = 0;
    pthread_mutex_lock(&j->lock);
    j->part[i].done = true;
    while (!code && can_settle(j))
        code = settle_next(j, w);
    pthread_mutex_unlock(&j->lock);
    return code;
}

static void encode_task(void *arg, int task, int thread)
{
    struct job *j = arg;
    struct tok_work *w = j->work[thread];
    (void)task;
    for (size_t i; !w->code && (i = atomic_fetch_add(&j->taken, 1)) < j->nparts;)
        if (find_ids(j, w, i) || parallel_settle(j, w, i))
            atomic_store(&j->taken, j->nparts); /* the remaining parts come later */
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

/* ---- the whole text ------------------------------------------------------------------------ */

/* The failure of the first part that failed. */
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

static int parallel_run(struct job *j, struct pool *pool, struct err *e)
{
    int threads = pool_threads(pool), code = 0;
    for (int i = 0; i < threads; i++)
        j->work[i]->code = 0;
    if (j->t->strict) {
        pool_run(pool, (int)j->nparts, check_task, j);
        code = find_failure(j, threads, e);
    }
    if (!code) {
        pool_run(pool, threads, encode_task, j);
        code = find_failure(j, threads, e);
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
    int code = parallel_run(&j, pool, e);
    pthread_mutex_destroy(&j.lock);
    for (size_t i = 0; i < j.nparts; i++)
        put_spare(&j, &j.part[i]); /* after a failure */
    w->sum = j.sum;
    return code;
}

size_t tok_last_cut(const struct tokenizer *t, const char *text, size_t n)
{
    for (size_t to = t->engine.cut ? n : 0; to > 0; to -= to < WINDOW ? to : WINDOW) {
        size_t cut = find_cut(t, text, 0, to > WINDOW ? to - WINDOW : 0, to);
        if (cut)
            return cut;
    }
    return 0;
}

static int encode_own_rest(const struct tokenizer *t, struct tok_work *w, bool last,
                           struct tok_ids *ids, struct err *e)
{
    if (!w->open && w->rest_at)
        t->engine.resume(t->engine.state, w->scratch, w->sum, w->last_id);
    int code = t->engine.encode_part(t->engine.state, w->scratch, w->rest.data, w->rest.len, last,
                                     ids, &w->tally, e);
    if (code && w->rest_at)
        err_wrap(e, "in the part of the text from byte %llu on", (unsigned long long)w->rest_at);
    w->rest_at += w->rest.len;
    w->rest.len = 0;
    w->open = true;
    return code;
}

/* Does one thread alone have a way for a text, or the rest of one, without split points? */
static bool can_open(const struct tokenizer *t, const struct tok_work *w)
{
    return t->engine.encode_open || (t->engine.encode_part && (!w->rest_at || t->engine.resume));
}

/* The rest of a text without split points, by one thread. */
static int encode_open_part(const struct tokenizer *t, struct tok_work *w, bool last,
                            struct tok_ids *ids, size_t before, struct err *e)
{
    const struct tok_engine *g = &t->engine;
    if (!w->open)
        w->strict = (struct strict){.at = w->rest_at};
    int code = tok_check_part(t, &w->strict, w->rest.data, w->rest.len, last, e);
    bool checked = !code;
    if (checked && g->encode_open)
        code = tok_encode_open(t, w, last, ids, e);
    else
        code = checked ? encode_own_rest(t, w, last, ids, e) : code;
    if (code)
        ids->n = before;
    else if (last)
        tok_ids_add(ids, g->after, g->nafter);
    if (!checked) { /* end the text */
        struct err ignored;
        w->rest.len = 0;
        (g->encode_open ? tok_encode_open : encode_own_rest)(t, w, true, ids, &ignored);
        ids->n = before;
    }
    if (last || code) {
        buf_finish(&w->rest);
        w->rest_at = 0;
        w->begun = w->open = false;
        w->strict = (struct strict){0};
    }
    return code;
}

int tok_encode_part_parallel(const struct tokenizer *t, struct pool *pool,
                             struct tok_work *const *work, const char *text, size_t n, bool last,
                             struct tok_ids *ids, struct err *e)
{
    struct tok_work *w = work[0];
    struct buf *rest = &w->rest;
    size_t least = TOGETHER * (size_t)pool_threads(pool), before = ids->n;
    least = (least < TOGETHER_MOST ? least : TOGETHER_MOST) / tok_growth(t);
    if (pool_threads(pool) == 1 || !t->engine.cut)
        return tok_encode_part(t, w, text, n, last, ids, e);
    if (!w->begun) {
        tok_ids_add(ids, t->engine.before, t->engine.nbefore);
        w->enough = least;
    }
    w->begun = true;
    buf_add(rest, text, n);
    if (w->open)
        return encode_open_part(t, w, last, ids, before, e);
    bool full = tok_check_kept(t, 0, rest->len, e) != 0;
    size_t k = last && !full                    ? rest->len
               : full || rest->len >= w->enough ? tok_last_cut(t, rest->data, rest->len)
                                                : 0;
    int code = full ? tok_check_kept(t, w->rest_at + k, rest->len - k, e) : 0;
    k = last ? rest->len : k;
    if (!code && (k || last)) {
        code = encode_split(t, pool, work, rest->data, k, w->rest_at == 0, last, ids, e);
        rest->len -= k;
        memmove(rest->data, rest->data + k, rest->len);
        w->rest_at += k;
    }
    if (!code && !k && !last && rest->len >= w->enough && can_open(t, w))
        return encode_open_part(t, w, last, ids, before, e);
    w->enough = k || rest->len < least ? least : 2 * rest->len;
    if (code)
        ids->n = before;
    else if (last)
        tok_ids_add(ids, t->engine.after, t->engine.nafter);
    if (last || code) {
        buf_finish(rest);
        w->rest_at = 0;
        w->begun = false;
    }
    return code;
}
