/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/maps.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "dataset/maps_plan.h"
#include "dataset/mt19937.h"

/* An array of `n`; large pages, since shuffles go all over it. */
static int room(size_t n, size_t size, const char *what, void **ret, struct err *e)
{
    int code = mem_try(n, size, what, ret, e);
    if (!code)
        mem_large_pages(*ret, n * size);
    return code;
}

static int make_room(struct maps *m, const struct shard *s, struct err *e)
{
    char *what =
        mem_printf("memory for the index maps of %s (%" PRIu64 " documents, %" PRIu64 " samples)",
                   s->prefix, m->ndoc, m->nsample);
    int code = room(m->ndoc, sizeof(int32_t), what, &m->own[MAPS_DOC], e);
    if (!code)
        code = room(m->nsample + 1, m->wide_sample ? 16 : 8, what, &m->own[MAPS_SAMPLE], e);
    if (!code)
        code = room(m->nsample, m->wide_shuffle ? 8 : 4, what, &m->own[MAPS_SHUFFLE], e);
    free(what);
    m->doc = m->own[MAPS_DOC];
    m->sample = m->own[MAPS_SAMPLE];
    m->shuffle = m->own[MAPS_SHUFFLE];
    return code;
}

static void put_row(const struct maps *m, void *sample, uint64_t r, const struct walk *w)
{
    if (m->wide_sample) {
        int64_t row[2] = {(int64_t)w->place, w->token};
        memcpy((int64_t *)sample + 2 * r, row, sizeof(row));
    } else {
        int32_t row[2] = {(int32_t)w->place, (int32_t)w->token};
        memcpy((int32_t *)sample + 2 * r, row, sizeof(row));
    }
}

static void build_doc(const struct maps_spec *q, const struct maps_plan *p, struct mt19937 *rng,
                      uint32_t *doc)
{
    uint64_t k = 0;
    for (uint64_t epoch = 0; epoch < p->epochs; epoch++)
        for (uint64_t i = q->first; i < q->end; i++)
            doc[k++] = (uint32_t)i;
    uint64_t cut = p->separate ? p->ndoc - p->nseq : p->ndoc;
    mt_shuffle32(rng, doc, cut);
    mt_shuffle32(rng, doc + cut, p->ndoc - cut);
}

static void build_sample(const struct maps_spec *q, const struct shard *s, struct maps *m)
{
    struct walk w = walk_start(q, s, m);
    put_row(m, m->own[MAPS_SAMPLE], 0, &w);
    for (uint64_t r = 1; r <= m->nsample; r++) {
        bool whole = walk_sample(&w);
        BUG_ON(!whole && !q->keep_last, "sample %" PRIu64 " of %" PRIu64 " has no end", r,
               m->nsample);
        put_row(m, m->own[MAPS_SAMPLE], r, &w);
    }
}

static void fill_shuffle(struct maps *m)
{
    if (m->wide_shuffle)
        for (uint64_t i = 0; i < m->nsample; i++)
            ((uint64_t *)m->own[MAPS_SHUFFLE])[i] = i;
    else
        for (uint64_t i = 0; i < m->nsample; i++)
            ((uint32_t *)m->own[MAPS_SHUFFLE])[i] = (uint32_t)i;
}

static void build_shuffle(const struct maps_plan *p, struct mt19937 *rng, struct maps *m)
{
    uint64_t cut = p->separate ? p->split : p->nsample, rest = p->nsample - cut;
    if (m->wide_shuffle) {
        uint64_t *a = m->own[MAPS_SHUFFLE];
        mt_shuffle64(rng, a, cut);
        mt_shuffle64(rng, a + cut, rest);
    } else {
        uint32_t *a = m->own[MAPS_SHUFFLE];
        mt_shuffle32(rng, a, cut);
        mt_shuffle32(rng, a + cut, rest);
    }
}

/*
 * The draws of a map follow one another, but the .idx can be looked at while the document map is
 * shuffled, and the documents walked over while the shuffle map is: two threads.
 */
struct builder {
    const struct maps_spec *spec;
    const struct shard *shard;
    struct maps *maps;
    int code;
    struct err e;
};

static void *check_idx(void *arg)
{
    struct builder *b = arg;
    struct shard_stats stats;
    b->code = shard_check_idx(b->shard, &stats, &b->e);
    if (!b->code)
        fill_shuffle(b->maps);
    return NULL;
}

static void *walk_all(void *arg)
{
    struct builder *b = arg;
    build_sample(b->spec, b->shard, b->maps);
    return NULL;
}

/* Runs `work` beside what follows; at once where there is no thread to be had. */
static bool beside(void *(*work)(void *), struct builder *b, pthread_t *ret)
{
    bool runs = !thread_start(ret, work, b);
    if (!runs)
        work(b);
    return runs;
}

static int build_all(struct builder *b, const struct maps_plan *p, struct err *e)
{
    struct maps *m = b->maps;
    struct mt19937 rng;
    pthread_t thread;
    bool runs = beside(check_idx, b, &thread);
    mt_seed(&rng, b->spec->seed);
    build_doc(b->spec, p, &rng, m->own[MAPS_DOC]);
    if (runs)
        pthread_join(thread, NULL);
    if (b->code) {
        if (e)
            *e = b->e;
        return b->code;
    }
    runs = beside(walk_all, b, &thread);
    build_shuffle(p, &rng, m);
    if (runs)
        pthread_join(thread, NULL);
    return map_check(&b->shard->idx, e);
}

/* Tokens of the share, by lengths and by offsets: what both say may be built on before all of the
 * .idx was looked at. */
static int count_tokens(const struct maps_spec *spec, const struct shard *s, uint64_t *ret,
                        struct err *e)
{
    uint64_t told;
    struct shard_stats stats;
    int code = maps_tokens(s, spec->first, spec->end, ret, e);
    if (!code && !maps_tokens_told(s, spec->first, spec->end, &told, NULL) && told == *ret)
        return 0;
    code = shard_check_idx(s, &stats, e);
    BUG_ON(!code, "%s: tokens are not what its offsets say", s->prefix);
    return code;
}

int maps_build(const struct maps_spec *spec, const struct shard *s, struct maps *ret, struct err *e)
{
    struct maps_plan p;
    struct builder b = {.spec = spec, .shard = s, .maps = ret};
    uint64_t tokens = 0;
    *ret = (struct maps){0};
    int code = count_tokens(spec, s, &tokens, e);
    if (!code)
        code = maps_plan_make(spec, s->prefix, tokens, &p, e);
    if (code)
        return code;
    maps_take_plan(ret, &p);
    ret->wide_sample = spec->wide || p.ndoc > INT32_MAX;
    ret->wide_shuffle = p.nsample >= UINT32_MAX - 1;
    code = make_room(ret, s, e);
    if (!code)
        code = build_all(&b, &p, e);
    if (code)
        maps_close(ret);
    return code;
}

/* ---- maps of files --------------------------------------------------------------------------- */

/* They come when the arrays are first asked for, by whichever thread is first. */
struct maps_late {
    pthread_mutex_t lock;
    atomic_bool touched;
};

struct maps_late *maps_late_create(void)
{
    struct maps_late *l = mem_new(1, sizeof(*l));
    pthread_mutex_init(&l->lock, NULL);
    return l;
}

bool maps_touched(const struct maps *m)
{
    return !m->late || atomic_load_explicit(&m->late->touched, memory_order_acquire);
}

static int map_all(struct maps *m, struct err *e)
{
    int code = 0;
    for (int i = 0; i < MAPS_FILES && !code; i++)
        code = npy_touch(&m->file[i], e);
    if (code)
        return code;
    m->doc = (const int32_t *)(const void *)m->file[MAPS_DOC].data;
    m->sample = m->file[MAPS_SAMPLE].data;
    m->shuffle = m->file[MAPS_SHUFFLE].data;
    atomic_store_explicit(&m->late->touched, true, memory_order_release);
    return 0;
}

int maps_touch(const struct maps *m, struct err *e)
{
    if (maps_touched(m))
        return 0;
    pthread_mutex_lock(&m->late->lock);
    /* the caller's struct is his own memory, and no thread looks at these fields before */
    int code = maps_touched(m) ? 0 : map_all((struct maps *)(uintptr_t)m, e);
    pthread_mutex_unlock(&m->late->lock);
    return code;
}

void maps_leave(struct maps *m)
{
    if (!m->late)
        return;
    atomic_store_explicit(&m->late->touched, false, memory_order_relaxed);
    m->doc = NULL;
    m->sample = m->shuffle = NULL;
    for (int i = 0; i < MAPS_FILES; i++)
        npy_leave(&m->file[i]);
}

void maps_close(struct maps *m)
{
    if (m->late)
        pthread_mutex_destroy(&m->late->lock);
    free(m->late);
    for (int i = 0; i < MAPS_FILES; i++) {
        free(m->own[i]);
        npy_close(&m->file[i]);
    }
    *m = (struct maps){0};
}
