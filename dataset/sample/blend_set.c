/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/blend_set.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/deepspeed_name.h"
#include "dataset/index/cache_stamp.h"

static const char class[] = "BlendedDataset";

/* ---- sources -------------------------------------------------------------------------------- */

/* Samples to build of a dataset with that weight. */
static uint64_t with_margin(enum data_rules rules, uint64_t samples, double weight)
{
    return rules == RULES_CORE ? blend_margin(blend_target(samples, weight))
                               : blend_margin_old(samples, weight);
}

static void blend_set_normalize(enum data_rules rules, const double *weight, size_t n, double *ret)
{
    if (rules == RULES_CORE)
        blend_normalize(weight, n, ret);
    else
        blend_normalize_old(weight, n, ret);
}

/* Samples that source i of `l` needs for part p. */
static uint64_t wanted(enum data_rules rules, const struct blend_list *l, const double *weight,
                       bool alone, size_t i, uint64_t samples)
{
    if (!samples || (alone && l->n == 1))
        return samples;
    if (!weight)
        return SAMPLES_ALL;
    return with_margin(rules, samples, weight[i]);
}

/* What rules older than core's do not support. */
static int check_rules(const struct blend_set_config *c, const struct blend_list *l, struct err *e)
{
    enum { MOST = 254 };
    if (c->rules == RULES_CORE || !l)
        return 0;
    for (int p = 0; p < PARTS; p++)
        if (c->samples[p] == SAMPLES_ALL)
            return err_set(e, ERR_USAGE, "--data-rules: only core supports 'every sample once'");
    if (c->cache && c->rules != RULES_DEEPSPEED)
        return err_set(e, ERR_USAGE,
                       "--data-rules v1 and v2 keep maps next to the data, not in a "
                       "--data-cache-path");
    if (l->weight && c->rules == RULES_V1)
        return err_set(e, ERR_USAGE, "--data-rules v1 supports one dataset without a weight");
    if (l->n > 1 && !l->weight)
        return err_set(e, ERR_USAGE, "--data-rules: only core blends datasets without weights");
    if (l->n > MOST)
        return err_set(e, ERR_USAGE, "--data-rules: %zu datasets, at most %d before core", l->n,
                       MOST);
    return 0;
}

/*
 * Opens the sources of a list for the parts of `mask`. With a separate list for each part, the
 * weight of a single dataset is ignored, as in Megatron core.
 */
static int open_list(struct blend_set *m, const struct blend_set_config *c,
                     const struct blend_list *l, unsigned mask, struct err *e)
{
    double *weight = l->weight ? mem_new(l->n, sizeof(*weight)) : NULL;
    bool alone = !l->weight || (!c->shared && c->rules == RULES_CORE);
    int code = check_rules(c, l, e);
    if (weight)
        blend_set_normalize(c->rules, l->weight, l->n, weight);
    for (int p = 0; p < PARTS; p++)
        if (weight && (mask >> p & 1) && c->samples[p] == SAMPLES_ALL && (c->shared || l->n > 1))
            code = err_set(e, ERR_USAGE, "weights need a number of %s samples",
                           part_name((enum part)p));
    for (size_t i = 0; i < l->n && !code; i++) {
        struct gpt_config g = {.prefix = l->prefix[i],
                               .split = c->shared ? c->split : NULL,
                               .cache = c->cache,
                               .found = c->found,
                               .tokenizer = c->tokenizer,
                               .rules = c->rules,
                               .named_split = c->split ? c->split : "969, 30, 1",
                               .seq_length = c->seq_length,
                               .seed = c->seed,
                               .limit = c->limit,
                               .pad = c->pad,
                               .save = c->save,
                               .trial = c->trial,
                               .rebuild = c->rebuild,
                               .idx_only = c->idx_only,
                               .plan_only = c->plan_only};
        for (int p = 0; p < PARTS; p++)
            if (mask >> p & 1)
                g.samples[p] = wanted(c->rules, l, weight, alone, i, c->samples[p]);
        struct gpt_data *d = &m->source[m->nsource];
        code = gpt_open(d, &g, e);
        m->nsource += !code;
        if (code == ERR_IO && !l->weight && blend_is_number(l->prefix[i]))
            err_hint(e,
                     "a number is a weight where each prefix has one before it: count the words");
        for (int p = 0; p < PARTS && !code; p++)
            if (d->empty[p] && !m->empty[p])
                m->empty[p] = d->shard.prefix;
    }
    free(weight);
    return code;
}

/* ---- the blend of a part -------------------------------------------------------------------- */

static bool has_all(const struct blend_set_share *p, size_t i)
{
    return p->taken[i] <= gpt_count(p->set[i]);
}

/* ERR_USAGE unless every dataset has the samples that are taken of it. */
static int check_taken(const struct blend_set_share *p, struct err *e)
{
    for (size_t i = 0; i < p->n; i++)
        if (!has_all(p, i))
            return err_set(e, ERR_USAGE,
                           "%s: the %s blend takes %" PRIu64 " samples of it, which has %" PRIu64,
                           p->set[i]->shard->prefix, part_name(p->part), p->taken[i],
                           gpt_count(p->set[i]));
    return 0;
}

static void describe(const struct blend_set_share *p, enum data_rules rules, const double *weight,
                     const uint64_t *count, bool exhaustive, struct buf *ret)
{
    struct buf *text = mem_new(p->n, sizeof(*text));
    for (size_t i = 0; i < p->n; i++)
        text[i] = p->set[i]->at.text;
    const struct core_blend b = {.set = text,
                                 .n = p->n,
                                 .part = p->part,
                                 .weight = weight,
                                 .count = count,
                                 .exhaustive = exhaustive,
                                 .size = p->count};
    if (rules == RULES_DEEPSPEED)
        deepspeed_blend_text(text, p->n, weight, p->count, ret);
    else
        core_blend_text(&b, ret);
    free(text);
}

static void blend_set_name_files(struct blend_set_share *p, const struct blend_set_config *c,
                                 const struct buf *text)
{
    const char *folder = c->cache;
    char md5[MD5_TEXT];
    if (c->rules == RULES_DEEPSPEED) {
        p->path[0] = deepspeed_path(folder, text, "_index.npy");
        p->path[1] = deepspeed_path(folder, text, "_sample_index.npy");
        p->stamp = deepspeed_path(folder, text, "_seal.json");
        p->description = deepspeed_path(folder, text, ".dsc");
        return;
    }
    core_find(c->found, class, p->part, text, md5);
    p->path[0] = core_path(folder, md5, class, p->part, "dataset_index.npy");
    p->path[1] = core_path(folder, md5, class, p->part, "dataset_sample_index.npy");
    p->stamp = core_path(folder, md5, class, p->part, "seal.json");
    p->description = core_path(folder, md5, class, p->part, "description.txt");
}

/* Dataset of the sample at place k, unchecked. */
static int set_at(const struct blend_set_share *p, uint64_t k)
{
    return p->narrow ? p->narrow[k] : p->which[k];
}

/*
 * Before core a blend is longer than its run, and a dataset that is too short matters only where
 * its missing samples are read: the blend ends there, unless the run's own `samples` need more.
 */
static void end_early(struct blend_set_share *p, uint64_t samples)
{
    uint64_t k = 0;
    memset(p->taken, 0, p->n * sizeof(*p->taken));
    for (; k < p->count; k++) {
        size_t d = (size_t)set_at(p, k);
        if (d >= p->n || (p->taken[d]++ >= gpt_count(p->set[d]) && k < samples))
            return;
        if (!has_all(p, d)) {
            p->taken[d]--;
            break;
        }
    }
    p->count = k;
}

/* Counts samples without building indices. */
static void plan_weave(struct blend_set_share *p, const double *weight, uint64_t samples,
                       bool early)
{
    bool all = true;
    blend_weave(weight, p->n, p->count, NULL, NULL, p->taken);
    for (size_t i = 0; i < p->n; i++)
        all &= has_all(p, i);
    if (all || !early)
        return;
    p->count = samples;
    blend_weave(weight, p->n, p->count, NULL, NULL, p->taken);
}

/* Counts the samples of each dataset; ERR_DATA unless they are numbered consecutively. */
static int check_files(struct blend_set_share *p, struct err *e)
{
    memset(p->taken, 0, p->n * sizeof(*p->taken));
    for (uint64_t k = 0; k < p->count; k++) {
        int d = set_at(p, k);
        if (d < 0 || (size_t)d >= p->n)
            return err_set(e, ERR_DATA, "%s: names dataset %d of %zu at place %" PRIu64, p->path[0],
                           d, p->n, k);
        if (p->sample[k] != (int64_t)p->taken[d]++)
            return err_set(
                e, ERR_DATA,
                "%s: does not number the samples of dataset %d consecutively at place %" PRIu64,
                p->path[1], d, k);
    }
    return 0;
}

static int blend_set_open_files(struct blend_set_share *p, const struct blend_set_config *c,
                                struct err *e)
{
    bool narrow = c->rules == RULES_DEEPSPEED;
    enum cache_stamp_state stamp =
        cache_stamp_check(p->stamp, NULL, (const char *const *)p->path, 2);
    int code = npy_open(&p->file[0], p->path[0], e);
    if (!code)
        code = npy_open(&p->file[1], p->path[1], e);
    const struct npy *f = p->file;
    if (!code &&
        (f[0].dtype != (narrow ? NPY_U1 : NPY_I2) || f[0].ndim != 1 || f[0].shape[0] != p->count))
        code = err_set(e, ERR_DATA, "%s: is not one %s for each sample", p->path[0],
                       narrow ? "u1" : "i2");
    if (!code && (f[1].dtype != NPY_I8 || f[1].ndim != 1 || f[1].shape[0] != p->count))
        code = err_set(e, ERR_DATA, "%s: is not one i8 for each sample", p->path[1]);
    if (!code && ((!narrow && (uintptr_t)f[0].data % 2) || (uintptr_t)f[1].data % 8))
        code = err_set(e, ERR_DATA, "%s: its elements are not aligned", p->path[1]);
    p->which = narrow ? NULL : (const int16_t *)(const void *)f[0].data;
    p->narrow = narrow ? f[0].data : NULL;
    p->sample = (const int64_t *)(const void *)f[1].data;
    if (!code && stamp != CACHE_STAMP_HOLDS)
        code = check_files(p, e);
    if (!code && stamp != CACHE_STAMP_HOLDS && !c->trial)
        cache_stamp_write(p->stamp, NULL, (const char *const *)p->path, 2, NULL);
    if (!code)
        return 0;
    npy_close(&p->file[0]);
    npy_close(&p->file[1]);
    return code;
}

/* Builds the indices in memory: `count` samples by `weight`, or if NULL all of each dataset. */
static int weave(struct blend_set_share *p, const double *weight, const uint64_t *all,
                 struct err *e)
{
    char *what = mem_printf("the blend of %" PRIu64 " %s samples", p->count, part_name(p->part));
    int code = mem_try(p->count, sizeof(*p->which), what, &p->own[0], e);
    if (!code)
        code = mem_try(p->count, sizeof(*p->sample), what, &p->own[1], e);
    free(what);
    if (code)
        return code;
    p->which = p->own[0];
    p->narrow = NULL;
    p->sample = p->own[1];
    if (all)
        blend_weave_all(all, p->n, p->own[0], p->own[1]);
    else
        blend_weave(weight, p->n, p->count, p->own[0], p->own[1], p->taken);
    return 0;
}

static int save_narrow(const struct blend_set_share *p, struct err *e)
{
    void *narrow;
    int code = mem_try(p->count, 1, "the blend, a byte for each sample", &narrow, e);
    for (uint64_t k = 0; k < p->count && !code; k++)
        ((uint8_t *)narrow)[k] = (uint8_t)p->which[k];
    if (!code)
        code = npy_write(p->path[0], NPY_U1, 1, &p->count, narrow, e);
    free(narrow);
    return code;
}

static int save_blend(const struct blend_set_share *p, enum data_rules rules, const char *folder,
                      const struct buf *text, struct err *e)
{
    int code = file_mkdirs(folder, e);
    if (!code && rules == RULES_DEEPSPEED)
        code = save_narrow(p, e);
    else if (!code)
        code = npy_write(p->path[0], NPY_I2, 1, &p->count, p->which, e);
    if (!code)
        code = npy_write(p->path[1], NPY_I8, 1, &p->count, p->sample, e);
    if (!code && !file_exists(p->description))
        code = file_replace_remade(p->description, text->data, text->len, e);
    if (!code)
        code = cache_stamp_write(p->stamp, NULL, (const char *const *)p->path, 2, e);
    return code;
}

/* The cached files if valid; else built, by one rank while the others wait. */
static int obtain(struct blend_set_share *p, const struct blend_set_config *c, const double *weight,
                  const uint64_t *all, struct err *e)
{
    struct buf text = {0};
    describe(p, c->rules, weight, all, all != NULL, &text);
    blend_set_name_files(p, c, &text);
    p->reused = !c->rebuild && !blend_set_open_files(p, c, NULL);
    bool saves = c->save && !c->trial;
    int fd = p->reused || !saves ? -1 : open(c->cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = 0;
    if (fd >= 0 && !flock(fd, LOCK_EX))
        p->reused = !c->rebuild && !blend_set_open_files(p, c, NULL);
    if (!p->reused)
        code = weave(p, weight, all, e);
    if (!p->reused && !code && c->trial && c->save)
        code = file_try(p->path[0], e);
    if (!p->reused && !code && saves)
        code = save_blend(p, c->rules, c->cache, &text, e);
    if (fd >= 0)
        close(fd);
    buf_finish(&text);
    return code;
}

/* Sizes of all datasets; ERR_USAGE if one is empty. */
static int count_all(const struct blend_set_share *p, uint64_t *count, uint64_t *ret_sum,
                     struct err *e)
{
    *ret_sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        count[i] = gpt_count(p->set[i]);
        if (!p->set[i]->spec.seq_length) /* nothing of it was opened */
            return err_set(e, ERR_USAGE, "%s: its %s share is empty", p->set[i]->shard->prefix,
                           part_name(p->part));
        if (!count[i])
            return err_set(e, ERR_USAGE,
                           "%s: its %s share has %" PRIu64
                           " tokens, too few for one sample of %" PRIu32,
                           p->set[i]->shard->prefix, part_name(p->part), p->set[i]->maps.tokens,
                           p->set[i]->spec.seq_length);
        *ret_sum += count[i];
    }
    return 0;
}

static int blend(struct blend_set_share *p, const struct blend_set_config *c, struct err *e)
{
    uint64_t samples = c->samples[p->part], sum;
    uint64_t *count = mem_new(p->n, sizeof(*count));
    double *weight = mem_new(p->n, sizeof(*weight));
    bool all = samples == SAMPLES_ALL;
    int code = count_all(p, count, &sum, e);
    p->count = !p->weight && samples > sum ? sum : samples;
    for (size_t i = 0; p->weight && i < p->n; i++)
        p->count =
            (i ? p->count : 0) + (c->rules == RULES_CORE ? blend_target(samples, p->weight[i])
                                                         : blend_margin_old(samples, p->weight[i]));
    for (size_t i = 0; i < p->n; i++) {
        weight[i] = p->weight ? p->weight[i] : (double)count[i];
        p->taken[i] = all ? count[i] : 0;
    }
    blend_normalize(weight, p->n, weight);
    if (!code && c->plan_only && !all)
        plan_weave(p, weight, samples, c->rules != RULES_CORE);
    else if (!code && !c->plan_only && c->cache)
        code = obtain(p, c, weight, all ? count : NULL, e);
    else if (!code && !c->plan_only)
        code = weave(p, weight, all ? count : NULL, e);
    if (!code && !c->plan_only && c->rules != RULES_CORE)
        end_early(p, samples);
    if (!code)
        code = check_taken(p, e);
    free(count);
    free(weight);
    return code;
}

/* Part p of the sources of list l, which begin at `first`. */
static int open_part(struct blend_set *m, const struct blend_set_config *c,
                     const struct blend_list *l, size_t first, enum part part, struct err *e)
{
    struct blend_set_share *p = &m->part[part];
    *p = (struct blend_set_share){.part = part};
    if (!l->n || !c->samples[part] || m->empty[part] || !m->source[first].ready[part])
        return 0;
    p->n = l->n;
    p->set = mem_new(p->n, sizeof(struct gpt *));
    p->taken = mem_new(p->n, sizeof(*p->taken));
    for (size_t i = 0; i < p->n; i++)
        p->set[i] = &m->source[first + i].part[part];
    p->blended = p->n > 1 || (l->weight && (c->shared || c->rules != RULES_CORE));
    if (l->weight && p->blended) {
        p->weight = mem_new(p->n, sizeof(*p->weight));
        blend_set_normalize(c->rules, l->weight, l->n, p->weight);
    }
    p->count = gpt_count(p->set[0]);
    p->taken[0] = p->count;
    int code = p->blended ? blend(p, c, e) : 0;
    m->ready[part] = !code;
    if (code == ERR_USAGE && part == PART_TEST && c->spare_test) {
        m->lacking = *e;
        return 0;
    }
    return code;
}

/* Pools the maps if there are more files than may be mapped at once. */
static void limit_maps(struct blend_set *m, uint64_t most)
{
    uint64_t files = 0, all = map_most();
    most = most ? most : all > 2 * BLEND_SET_SPARE ? all - BLEND_SET_SPARE : all / 2;
    for (size_t i = 0; i < m->nsource; i++)
        files += gpt_files(&m->source[i]);
    if (files <= most)
        return;
    m->pool = map_pool_create(most, m->nsource * GPT_POOLED);
    for (size_t i = 0; i < m->nsource; i++)
        gpt_limit(&m->source[i], m->pool);
}

static int open_all(struct blend_set *m, const struct blend_set_config *c, struct err *e)
{
    size_t n = c->shared ? c->shared->n : 0, first = 0;
    int code = 0;
    for (int p = 0; p < PARTS; p++)
        n += c->own[p] ? c->own[p]->n : 0;
    m->source = mem_new(n, sizeof(*m->source));
    if (c->shared)
        code = open_list(m, c, c->shared, ~0u, e);
    for (int p = 0; p < PARTS && !code; p++) {
        const struct blend_list *l = c->shared ? c->shared : c->own[p];
        first = c->shared ? 0 : m->nsource;
        if (!c->shared && l && c->samples[p])
            code = open_list(m, c, l, 1u << p, e);
        if (!code && l)
            code = open_part(m, c, l, first, (enum part)p, e);
    }
    return code;
}

int blend_set_open(struct blend_set *m, const struct blend_set_config *c, struct err *e)
{
    struct blend_set_config with = *c;
    *m = (struct blend_set){.split = c->shared ? c->split : NULL};
    with.found = c->cache ? core_folder_create(c->cache) : NULL;
    int code = open_all(m, &with, e);
    core_folder_destroy(with.found);
    if (code)
        blend_set_close(m);
    else
        limit_maps(m, c->maps);
    return code;
}

void blend_set_close(struct blend_set *m)
{
    for (int i = 0; i < PARTS; i++) {
        struct blend_set_share *p = &m->part[i];
        for (int k = 0; k < 2; k++) {
            npy_close(&p->file[k]);
            free(p->own[k]);
            free(p->path[k]);
        }
        free(p->stamp);
        free(p->description);
        free(p->set);
        free(p->weight);
        free(p->taken);
    }
    map_pool_destroy(m->pool);
    for (size_t i = 0; i < m->nsource; i++)
        gpt_close(&m->source[i]);
    free(m->source);
    *m = (struct blend_set){0};
}

static int need_more(const struct blend_set *m, enum part p, struct err *e)
{
    const struct shard *s = NULL;
    struct split split;
    char other[16];
    for (size_t i = 0; i < m->nsource && !s; i++)
        if (!strcmp(m->source[i].shard.prefix, m->empty[p]))
            s = &m->source[i].shard;
    err_set(e, ERR_USAGE,
            "%s: the %s share is empty: --split %s leaves it none of %" PRIu64 " documents",
            m->empty[p], part_name(p), m->split ? m->split : "", s ? s->nseq : 0);
    if (m->split && s && !split_parse(m->split, &split, NULL) &&
        split_suggest(&split, s->nseq, other))
        return err_hint(e, "--split %s works here", other);
    return err_hint(e, "there are too few documents to split: --split 100,0,0");
}

int blend_set_need(const struct blend_set *m, enum part p, struct err *e)
{
    if (m->ready[p])
        return 0;
    if (m->empty[p])
        return need_more(m, p, e);
    if (p == PART_TEST && m->lacking.code)
        return (*e = m->lacking).code;
    err_set(e, ERR_USAGE, "%s: the split has no %s share, or no samples of it were requested",
            m->nsource ? m->source[0].shard.prefix : "the data", part_name(p));
    return err_hint(e, "choose another --split, or do not evaluate on it");
}

/* ---- samples -------------------------------------------------------------------------------- */

struct gpt *blend_set_at(const struct blend_set_share *p, uint64_t k, uint64_t *ret_sample)
{
    BUG_ON(k >= p->count, "sample %" PRIu64 " of %" PRIu64, k, p->count);
    *ret_sample = p->blended ? (uint64_t)p->sample[k] : k;
    size_t d = p->blended ? (size_t)set_at(p, k) : 0;
    return d < p->n ? p->set[d] : NULL;
}

static uint64_t one_epoch(const struct gpt *g)
{
    uint64_t length = g->spec.seq_length;
    return g->maps.tokens > length ? (g->maps.tokens - 1) / length : 0;
}

uint64_t blend_set_once(const struct blend_set_share *p)
{
    if (!p->blended)
        return one_epoch(p->set[0]);
    for (uint64_t k = 0; k < p->count; k++) {
        size_t d = (size_t)set_at(p, k);
        if (d >= p->n || (uint64_t)p->sample[k] >= one_epoch(p->set[d]))
            return k;
    }
    return p->count;
}

uint64_t blend_set_there(const struct blend_set_share *p)
{
    uint64_t once = blend_set_once(p), sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += one_epoch(p->set[i]);
    return p->blended && !p->weight && once == p->count ? sum : once;
}

/* Index files are checked again: they may have changed since. */
static int feed_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    const struct blend_set_share *p = self;
    uint64_t sample;
    const struct gpt *g = blend_set_at(p, k, &sample);
    for (int i = 0; i < 2; i++)
        if (p->file[i].map.path && map_check(&p->file[i].map, NULL))
            return map_check(&p->file[i].map, e);
    if (!g || sample >= gpt_count(g))
        return err_set(e, ERR_DATA, "%s: changed while it was read, at place %" PRIu64, p->path[0],
                       k);
    return gpt_sample(g, sample, ret, e);
}

static void feed_ahead(const void *self, uint64_t k, enum feed_step step)
{
    const struct blend_set_share *p = self;
    uint64_t sample;
    const struct gpt *g = blend_set_at(p, k, &sample);
    if (g && sample < gpt_count(g))
        gpt_ahead(g, sample, step);
}

struct feed blend_set_feed(const struct blend_set *m, enum part part)
{
    const struct blend_set_share *p = &m->part[part];
    BUG_ON(!m->ready[part], "the %s data is not ready", part_name(part));
    struct feed f = gpt_feed(p->set[0]);
    if (p->blended)
        f = (struct feed){.self = p,
                          .sample = feed_sample,
                          .ahead = feed_ahead,
                          .count = p->count,
                          .seq_length = f.seq_length,
                          .pad = f.pad,
                          .name = "the blend",
                          .part = f.part};
    return f;
}
