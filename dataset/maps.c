/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/maps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/file.h"
#include "base/mem.h"
#include "dataset/mt19937.h"

/* ---- how many ----------------------------------------------------------------------------- */

/*
 * What follows from spec and token count alone. L = seq_length, e = extra, T = tokens of an epoch.
 */
struct plan {
    uint64_t nseq;   /* sequences of the share */
    uint64_t tokens; /* T */
    uint64_t epochs; /* E */
    bool separate;
    uint64_t split;   /* samples in the first E - 1 epochs, if separate */
    uint64_t ndoc;    /* E * nseq */
    uint64_t nsample; /* S */
};

int maps_tokens(const struct shard *s, uint64_t first, uint64_t end, uint64_t *ret, struct err *e)
{
    BUG_ON(first > end || end > s->nseq, "sequences %" PRIu64 "..%" PRIu64 " of %" PRIu64, first,
           end, s->nseq);
    uint64_t sum = 0;
    for (uint64_t i = first; i < end; i++) {
        int32_t n = shard_length(s, i);
        if (n < 0)
            return err_set(e, ERR_DATA, "%s: sequence %" PRIu64 " has %" PRId32 " tokens",
                           s->idx.path, i, n);
        sum += (uint64_t)n;
    }
    *ret = sum;
    return map_check(&s->idx, e);
}

static int too_large(const struct maps_spec *q, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "%" PRIu64 " %s samples of %" PRIu32 " tokens are more than can be counted",
                   q->samples, part_name(q->part), q->seq_length);
}

/* A last epoch of which less than 80 % is used is shuffled by itself. */
static void plan_separate(const struct maps_spec *q, struct plan *p)
{
    uint64_t length = q->seq_length;
    p->split = ((p->epochs - 1) * p->tokens - q->extra) / length;
    int64_t last = (int64_t)(q->samples - p->split);
    uint64_t whole = (p->tokens - q->extra) / length;
    p->separate = last < (int64_t)(0.80 * (double)whole);
}

static int plan_make(const struct maps_spec *q, const struct shard *s, struct plan *p,
                     struct err *e)
{
    uint64_t need, total;
    BUG_ON(!q->seq_length || q->extra > 1, "seq_length %" PRIu32 ", extra %" PRIu32, q->seq_length,
           q->extra);
    *p = (struct plan){.nseq = q->end - q->first, .epochs = 1};
    int code = maps_tokens(s, q->first, q->end, &p->tokens, e);
    if (code)
        return code;
    if (!p->tokens)
        return err_set(e, ERR_USAGE,
                       "%s: the %s share, sequences %" PRIu64 " to %" PRIu64 ", has no tokens",
                       s->prefix, part_name(q->part), q->first, q->end);
    if (!q->one_epoch) {
        if (!checked_mul(q->samples, q->seq_length, &need) || !checked_add(need, q->extra, &need) ||
            !checked_add(need, p->tokens, &total) || total > INT64_MAX)
            return too_large(q, e);
        p->epochs = need > p->tokens ? (need - 1) / p->tokens + 1 : 1;
    }
    if (p->epochs > 1)
        plan_separate(q, p);
    if (!checked_mul(p->epochs, p->nseq, &p->ndoc) || p->ndoc > INT64_MAX / 16)
        return too_large(q, e);
    uint64_t used = p->epochs * p->tokens - q->extra;
    p->nsample = used / q->seq_length;
    if (q->keep_last)
        p->nsample = (uint64_t)ceilf((float)(int64_t)used / (float)q->seq_length);
    return 0;
}

/* ---- the walk over the documents ----------------------------------------------------------- */

struct walk {
    const struct shard *shard;
    const int32_t *doc;
    uint64_t ndoc;
    uint32_t need; /* tokens of a sample, extra included */
    uint32_t extra;
    uint64_t place; /* in doc */
    int64_t token;
};

/* Moves on by one sample; false when the documents end before it does. */
static bool walk_sample(struct walk *w)
{
    int64_t need = w->need;
    for (;;) {
        int64_t length = shard_length(w->shard, (uint64_t)w->doc[w->place]);
        int64_t left = length - w->token;
        if (FAULT("map_walk") ? need < left : need <= left) {
            w->token += need - w->extra;
            return true;
        }
        if (w->place + 1 == w->ndoc) {
            w->token = length - w->extra;
            return false;
        }
        need -= left;
        w->place++;
        w->token = 0;
    }
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

static struct walk walk_start(const struct maps_spec *q, const struct shard *s,
                              const struct maps *m)
{
    return (struct walk){s, m->doc, m->ndoc, q->seq_length + q->extra, q->extra, 0, 0};
}

/* ---- building ----------------------------------------------------------------------------- */

static void take_plan(struct maps *m, const struct plan *p)
{
    m->tokens = p->tokens;
    m->epochs = p->epochs;
    m->separate = p->separate;
    m->ndoc = p->ndoc;
    m->nsample = p->nsample;
}

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

static void build_doc(const struct maps_spec *q, const struct plan *p, struct mt19937 *rng,
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

static void build_shuffle(const struct plan *p, struct mt19937 *rng, struct maps *m)
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
    struct plan p;
    struct shard_stats stats;
    *ret = (struct maps){0};
    int code = shard_check_idx(s, &stats, e);
    if (!code)
        code = plan_make(spec, s, &p, e);
    if (code)
        return code;
    take_plan(ret, &p);
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

/* ---- files -------------------------------------------------------------------------------- */

char *maps_path(const struct maps_spec *spec, const char *prefix, enum maps_file f)
{
    static const char *const kind[MAPS_FILES] = {"doc", "sample", "shuffle"};
    BUG_ON(spec->one_epoch || !spec->extra || spec->keep_last, "such maps of %s have no name",
           prefix);
    return mem_printf("%s_%s_indexmap_%" PRIu64 "ns_%" PRIu32 "sl_%" PRIu32 "s_%s_idx.npy", prefix,
                      part_name(spec->part), spec->samples, spec->seq_length, spec->seed, kind[f]);
}

int maps_save(const struct maps *m, const struct maps_spec *spec, const char *prefix, struct err *e)
{
    const struct {
        enum npy_dtype dtype;
        int ndim;
        uint64_t shape[2];
        const void *data;
    } f[MAPS_FILES] = {
        {NPY_I4, 1, {m->ndoc}, m->doc},
        {m->wide_sample ? NPY_I8 : NPY_I4, 2, {m->nsample + 1, 2}, m->sample},
        {m->wide_shuffle ? NPY_I8 : NPY_U4, 1, {m->nsample}, m->shuffle},
    };
    int code = 0;
    for (int i = 0; i < MAPS_FILES && !code; i++) {
        char *path = maps_path(spec, prefix, (enum maps_file)i);
        code = npy_write(path, f[i].dtype, f[i].ndim, f[i].shape, f[i].data, e);
        free(path);
    }
    return code;
}

/* ---- holding files against the .idx --------------------------------------------------------- */

static int unfit(const struct npy *a, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: %s", a->map.path, why);
}

static int check_shapes(struct maps *m, struct err *e)
{
    const struct npy *doc = &m->file[MAPS_DOC], *sample = &m->file[MAPS_SAMPLE],
                     *shuffle = &m->file[MAPS_SHUFFLE];
    if (doc->dtype != NPY_I4 || doc->ndim != 1 || doc->shape[0] != m->ndoc)
        return unfit(doc, "is not one i4 for each document of each epoch", e);
    if ((sample->dtype != NPY_I4 && sample->dtype != NPY_I8) || sample->ndim != 2 ||
        sample->shape[0] != m->nsample + 1 || sample->shape[1] != 2)
        return unfit(sample, "is not two i4 or i8 for each sample and one more", e);
    if ((shuffle->dtype != NPY_U4 && shuffle->dtype != NPY_I8) || shuffle->ndim != 1 ||
        shuffle->shape[0] != m->nsample)
        return unfit(shuffle, "is not one u4 or i8 for each sample", e);
    for (int i = 0; i < MAPS_FILES; i++)
        if ((uintptr_t)m->file[i].data % npy_width(m->file[i].dtype))
            return unfit(&m->file[i], "its elements are not aligned", e);
    m->wide_sample = sample->dtype == NPY_I8;
    m->wide_shuffle = shuffle->dtype == NPY_I8;
    m->doc = (const int32_t *)(const void *)doc->data;
    m->sample = sample->data;
    m->shuffle = shuffle->data;
    return 0;
}

/* Spreads a number over 64 bits, so that sums tell one set of numbers from another. */
static uint64_t spread(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t range_sum(uint64_t first, uint64_t end)
{
    uint64_t sum = 0;
    for (uint64_t i = first; i < end; i++)
        sum += spread(i);
    return sum;
}

static int check_doc(const struct maps_spec *q, const struct plan *p, const struct maps *m,
                     struct err *e)
{
    uint64_t cut = p->separate ? p->ndoc - p->nseq : p->ndoc, sum[2] = {0};
    for (uint64_t i = 0; i < p->ndoc; i++) {
        uint64_t v = (uint64_t)(int64_t)m->doc[i];
        if (v < q->first || v >= q->end)
            return unfit(&m->file[MAPS_DOC], "names a document of another share", e);
        sum[i >= cut] += spread(v);
    }
    uint64_t epoch = range_sum(q->first, q->end);
    if (sum[0] != epoch * (p->epochs - p->separate) || sum[1] != epoch * p->separate)
        return unfit(&m->file[MAPS_DOC], "does not name each document once in each epoch", e);
    return 0;
}

static int check_sample(const struct maps_spec *q, const struct shard *s, const struct maps *m,
                        struct err *e)
{
    struct walk w = walk_start(q, s, m);
    for (uint64_t r = 0; r <= m->nsample; r++) {
        int64_t place, token;
        if (r && !walk_sample(&w) && !q->keep_last)
            return unfit(&m->file[MAPS_SAMPLE], "has more samples than the documents", e);
        maps_row(m, r, &place, &token);
        if (place != (int64_t)w.place || token != w.token)
            return unfit(&m->file[MAPS_SAMPLE], "does not follow the lengths of the documents", e);
    }
    return 0;
}

static int check_shuffle(const struct plan *p, const struct maps *m, struct err *e)
{
    uint64_t cut = p->separate ? p->split : p->nsample, sum[2] = {0};
    for (uint64_t i = 0; i < p->nsample; i++)
        sum[i >= cut] += spread((uint64_t)maps_order(m, i));
    if (sum[0] != range_sum(0, cut) || sum[1] != range_sum(cut, p->nsample))
        return unfit(&m->file[MAPS_SHUFFLE], "does not name each sample once", e);
    return 0;
}

static int check_all(const struct maps_spec *q, const struct shard *s, struct maps *m,
                     struct err *e)
{
    struct plan p;
    int code = plan_make(q, s, &p, e);
    if (code)
        return code;
    take_plan(m, &p);
    code = check_shapes(m, e);
    if (!code)
        code = check_doc(q, &p, m, e);
    if (!code)
        code = check_sample(q, s, m, e);
    if (!code)
        code = check_shuffle(&p, m, e);
    for (int i = 0; i < MAPS_FILES; i++)
        if (map_check(&m->file[i].map, NULL))
            code = map_check(&m->file[i].map, e);
    return code;
}

int maps_open(const struct maps_spec *spec, const struct shard *s, struct maps *ret, struct err *e)
{
    *ret = (struct maps){0};
    int code = 0;
    for (int i = 0; i < MAPS_FILES && !code; i++) {
        char *path = maps_path(spec, s->prefix, (enum maps_file)i);
        code = npy_open(&ret->file[i], path, e);
        free(path);
    }
    if (!code)
        code = check_all(spec, s, ret, e);
    if (code)
        maps_close(ret);
    return code;
}

static bool any_there(const struct maps_spec *spec, const char *prefix)
{
    bool there = false;
    for (int i = 0; i < MAPS_FILES; i++) {
        char *path = maps_path(spec, prefix, (enum maps_file)i);
        there |= file_exists(path);
        free(path);
    }
    return there;
}

int maps_obtain(const struct maps_spec *spec, const struct shard *s, struct maps_wish wish,
                struct maps *ret, bool *ret_reused, char why[256], struct err *e)
{
    struct err misfit = {0};
    *ret_reused = !wish.rebuild && !maps_open(spec, s, ret, &misfit);
    if (why)
        snprintf(why, 256, "%s", any_there(spec, s->prefix) ? misfit.msg : "");
    if (*ret_reused)
        return 0;
    int code = maps_build(spec, s, ret, e);
    if (!code && wish.save)
        code = maps_save(ret, spec, s->prefix, e);
    if (code)
        maps_close(ret);
    return code;
}
