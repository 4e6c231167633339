/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/maps.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "dataset/index/maps_plan.h"
#include "dataset/index/maps_walk.h"
#include "dataset/index/mt19937.h"

/* An array of `n`; huge pages, since shuffles access it at random. */
static int room(size_t n, size_t size, const char *what, void **ret, struct err *e)
{
    int code = mem_try(n, size, what, ret, e);
    if (!code)
        mem_large_pages(*ret, n * size);
    return code;
}

static int maps_make_room(struct maps *m, const struct shard *s, struct err *e)
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
 * Two threads: one shuffles the documents, the other skips the random numbers of that and shuffles
 * the samples. Whichever is done first starts the walk over the documents, once they are complete.
 */
struct builder {
    const struct maps_spec *spec;
    const struct maps_plan *plan;
    struct maps *maps;
    struct maps_walk walk;
};

static void *build_beside(void *arg)
{
    struct builder *b = arg;
    const struct maps_plan *p = b->plan;
    uint64_t last = p->separate ? p->nseq : 0;
    struct mt19937 rng;
    maps_walk_lengths(&b->walk);
    mt_seed(&rng, b->spec->seed);
    mt_skip(&rng, p->ndoc - last);
    mt_skip(&rng, last);
    fill_shuffle(b->maps);
    build_shuffle(p, &rng, b->maps);
    maps_walk_run(&b->walk);
    return NULL;
}

static int build_all(const struct maps_spec *q, const struct maps_plan *p, const struct shard *s,
                     struct maps *m, struct err *e)
{
    struct builder b = {.spec = q, .plan = p, .maps = m};
    struct mt19937 rng;
    pthread_t thread;
    b.walk = (struct maps_walk){.spec = q, .shard = s, .maps = m, .to = m->own[MAPS_SAMPLE]};
    int code = maps_walk_init(&b.walk, e);
    if (code)
        return code;
    bool runs = !thread_start(&thread, build_beside, &b);
    mt_seed(&rng, q->seed);
    build_doc(q, p, &rng, m->own[MAPS_DOC]);
    maps_walk_documents(&b.walk);
    if (runs) {
        maps_walk_run(&b.walk);
        pthread_join(thread, NULL);
    } else
        build_beside(&b);
    bool whole = maps_walk_finish(&b.walk);
    code = map_check(&s->idx, e); /* a file that was truncated meanwhile has other lengths */
    BUG_ON(!code && !whole, "%" PRIu64 " samples have no end", m->nsample);
    return code;
}

int maps_build(const struct maps_spec *spec, const struct shard *s, struct maps *ret, struct err *e)
{
    struct maps_plan p;
    struct shard_stats stats;
    uint64_t tokens = 0;
    *ret = (struct maps){0};
    int code = spec->first < spec->end ? shard_check_idx(s, &stats, e) : 0;
    if (!code)
        code = maps_tokens_between(s, spec->first, spec->end, &tokens, e);
    if (!code)
        code = maps_plan_make(spec, s->prefix, tokens, &p, e);
    if (code)
        return code;
    maps_take_plan(ret, &p);
    ret->wide_sample = spec->wide || p.ndoc > INT32_MAX;
    ret->wide_shuffle = p.nsample >= UINT32_MAX - 1;
    code = maps_make_room(ret, s, e);
    if (!code)
        code = build_all(spec, &p, s, ret, e);
    if (code)
        maps_close(ret);
    return code;
}

/* ---- maps of files --------------------------------------------------------------------------- */

/* Files are mapped on first use, by whichever thread is first. */
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

static bool maps_touched(const struct maps *m)
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
    /* the caller's struct is not really const, and no thread reads these fields before */
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
