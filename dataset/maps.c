/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/maps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dataset/maps_plan.h"
#include "dataset/mt19937.h"

static int make_room(struct maps *m, const struct shard *s, struct err *e)
{
    char *what =
        mem_printf("memory for the index maps of %s (%" PRIu64 " documents, %" PRIu64 " samples)",
                   s->prefix, m->ndoc, m->nsample);
    int code = mem_try(m->ndoc, sizeof(int32_t), what, &m->own[MAPS_DOC], e);
    if (!code)
        code = mem_try(m->nsample + 1, m->wide_sample ? 16 : 8, what, &m->own[MAPS_SAMPLE], e);
    if (!code)
        code = mem_try(m->nsample, m->wide_shuffle ? 8 : 4, what, &m->own[MAPS_SHUFFLE], e);
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

static void build_shuffle(const struct maps_plan *p, struct mt19937 *rng, struct maps *m)
{
    uint64_t cut = p->separate ? p->split : p->nsample, rest = p->nsample - cut;
    if (m->wide_shuffle) {
        uint64_t *a = m->own[MAPS_SHUFFLE];
        for (uint64_t i = 0; i < p->nsample; i++)
            a[i] = i;
        mt_shuffle64(rng, a, cut);
        mt_shuffle64(rng, a + cut, rest);
    } else {
        uint32_t *a = m->own[MAPS_SHUFFLE];
        for (uint64_t i = 0; i < p->nsample; i++)
            a[i] = (uint32_t)i;
        mt_shuffle32(rng, a, cut);
        mt_shuffle32(rng, a + cut, rest);
    }
}

int maps_build(const struct maps_spec *spec, const struct shard *s, struct maps *ret, struct err *e)
{
    struct maps_plan p;
    struct shard_stats stats;
    uint64_t tokens = 0;
    *ret = (struct maps){0};
    int code = shard_check_idx(s, &stats, e);
    if (!code)
        code = maps_tokens(s, spec->first, spec->end, &tokens, e);
    if (!code)
        code = maps_plan_make(spec, s->prefix, tokens, &p, e);
    if (code)
        return code;
    maps_take_plan(ret, &p);
    ret->wide_sample = p.ndoc > INT32_MAX;
    ret->wide_shuffle = p.nsample >= UINT32_MAX - 1;
    code = make_room(ret, s, e);
    if (!code) {
        struct mt19937 rng;
        mt_seed(&rng, spec->seed);
        build_doc(spec, &p, &rng, ret->own[MAPS_DOC]);
        build_sample(spec, s, ret);
        build_shuffle(&p, &rng, ret);
        code = map_check(&s->idx, e);
    }
    if (code)
        maps_close(ret);
    return code;
}

void maps_close(struct maps *m)
{
    for (int i = 0; i < MAPS_FILES; i++) {
        free(m->own[i]);
        npy_close(&m->file[i]);
    }
    *m = (struct maps){0};
}
