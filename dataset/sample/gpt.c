/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/gpt.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "dataset/index/deepspeed_name.h"
#include "dataset/index/maps_plan.h"

int gpt_samples(uint64_t train_iters, uint64_t eval_interval, uint64_t eval_iters,
                uint64_t global_batch, uint64_t ret[PARTS], struct err *e)
{
    if (!eval_interval)
        return err_set(e, ERR_USAGE, "the evaluation interval is 0");
    uint64_t evals = train_iters / eval_interval + 1;
    if (!checked_mul(train_iters, global_batch, &ret[PART_TRAIN]) ||
        !checked_mul(evals, eval_iters, &ret[PART_VALID]) ||
        !checked_mul(ret[PART_VALID], global_batch, &ret[PART_VALID]) ||
        !checked_mul(eval_iters, global_batch, &ret[PART_TEST]))
        return err_set(e, ERR_USAGE,
                       "%" PRIu64 " iterations of %" PRIu64 " samples, evaluated every %" PRIu64
                       " for %" PRIu64 ", are more samples than can be counted",
                       train_iters, global_batch, eval_interval, eval_iters);
    return 0;
}

/* ---- one sample --------------------------------------------------------------------------- */

/* Tokens [from[0], to[1]) from place[0] to place[1] in the document map. */
struct stretch {
    uint64_t place[2];
    int64_t from, to;
};

static int bad_maps(const struct gpt *g, uint64_t k, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s: the index maps of the %s share do not match the .idx at sample %" PRIu64,
                   g->shard->prefix, part_name(g->spec.part), k);
}

static int gpt_find(const struct gpt *g, uint64_t k, struct stretch *ret, struct err *e)
{
    const struct maps *m = &g->maps;
    int64_t place[2], token[2], at = maps_order(m, k);
    if (at < 0 || (uint64_t)at >= m->nsample)
        return bad_maps(g, k, e);
    maps_row(m, (uint64_t)at, &place[0], &token[0]);
    maps_row(m, (uint64_t)at + 1, &place[1], &token[1]);
    if (place[0] < 0 || place[0] > place[1] || (uint64_t)place[1] >= m->ndoc)
        return bad_maps(g, k, e);
    *ret = (struct stretch){
        {(uint64_t)place[0], (uint64_t)place[1]}, token[0], token[1] + g->spec.extra};
    return 0;
}

static int gpt_gather(const struct gpt *g, uint64_t k, const struct stretch *w, int32_t *ret,
                      uint64_t *ret_n, struct err *e)
{
    uint64_t room = (uint64_t)g->spec.seq_length + g->spec.extra, n = 0;
    for (uint64_t place = w->place[0]; place <= w->place[1]; place++) {
        uint64_t seq = (uint64_t)(int64_t)g->maps.doc[place];
        if (seq >= g->shard->nseq)
            return bad_maps(g, k, e);
        int64_t from = place == w->place[0] ? w->from : 0;
        int64_t to = place == w->place[1] ? w->to : shard_length(g->shard, seq);
        if (from < 0 || from > to || (uint64_t)(to - from) > room - n)
            return bad_maps(g, k, e);
        int code =
            shard_read(g->shard, seq, (uint64_t)from, (uint64_t)(to - from), g->limit, ret + n, e);
        if (code)
            return code;
        n += (uint64_t)(to - from);
    }
    *ret_n = n;
    return 0;
}

static int check_files(const struct maps *m, struct err *e)
{
    int code = 0;
    for (int i = 0; i < MAPS_FILES && !code; i++)
        if (m->file[i].map.path)
            code = map_check(&m->file[i].map, e);
    return code;
}

/* Keeps the files mapped until `let_go`, if they are pooled. */
static int gpt_take(const struct gpt *g, struct err *e)
{
    if (!g->pool) {
        int code = shard_touch(g->shard, e);
        return code ? code : maps_touch(&g->maps, e);
    }
    int code = map_pool_acquire(g->pool, g->of_shard, e);
    if (code)
        return code;
    code = map_pool_acquire(g->pool, g->of_maps, e);
    if (code)
        map_pool_release(g->of_shard);
    return code;
}

static void let_go(const struct gpt *g)
{
    if (!g->pool)
        return;
    map_pool_release(g->of_maps);
    map_pool_release(g->of_shard);
}

static int read_sample(const struct gpt *g, uint64_t k, int32_t *ret, struct err *e)
{
    uint64_t room = (uint64_t)g->spec.seq_length + g->spec.extra, n = 0;
    struct stretch w = {0};
    int code = gpt_find(g, k, &w, e);
    if (!code)
        code = gpt_gather(g, k, &w, ret, &n, e);
    if (!code)
        code = check_files(&g->maps, e);
    if (!code && n < room && !g->spec.keep_last)
        code = bad_maps(g, k, e);
    for (; !code && n < room; n++)
        ret[n] = g->pad;
    return code;
}

int gpt_sample(const struct gpt *g, uint64_t k, int32_t *ret, struct err *e)
{
    BUG_ON(k >= g->maps.nsample, "sample %" PRIu64 " of %" PRIu64, k, g->maps.nsample);
    int code = gpt_take(g, e);
    if (code)
        return code;
    code = read_sample(g, k, ret, e);
    let_go(g);
    return code;
}

static void ahead_documents(const struct gpt *g, const struct stretch *w, enum shard_prefetch what)
{
    enum { MOST = 256 }; /* of many short documents the first ones suffice */
    uint64_t end = w->place[1] - w->place[0] < MOST ? w->place[1] : w->place[0] + MOST;
    for (uint64_t place = w->place[0]; place <= end; place++) {
        uint64_t seq = (uint64_t)(int64_t)g->maps.doc[place];
        if (seq >= g->shard->nseq)
            return;
        int64_t from = place == w->place[0] ? w->from : 0, to = w->to;
        if (what != SHARD_PREFETCH_ENTRY && place != w->place[1])
            to = shard_length(g->shard, seq);
        if (from >= 0 && from < to)
            shard_prefetch(g->shard, seq, (uint64_t)from, (uint64_t)(to - from), what);
    }
}

/* Nothing read here is trusted: files may have changed since they were checked. */
static void look_ahead(const struct gpt *g, uint64_t k, enum feed_step step)
{
    enum { LINE_ENTRIES = 16 };
    const struct maps *m = &g->maps;
    struct stretch w = {0};
    if (step == FEED_ROW) {
        uint64_t at = (uint64_t)maps_order(m, k), width = m->wide_sample ? 16 : 8;
        __builtin_prefetch((const char *)m->sample + (at < m->nsample ? at * width : 0));
        __builtin_prefetch((const char *)m->sample + (at < m->nsample ? (at + 1) * width : 0));
        return;
    }
    if (gpt_find(g, k, &w, NULL))
        return;
    if (step != FEED_DOC)
        ahead_documents(g, &w,
                        step == FEED_ENTRY    ? SHARD_PREFETCH_ENTRY
                        : step == FEED_TOKENS ? SHARD_PREFETCH_TOKENS
                                              : SHARD_PREFETCH_DISK);
    else
        for (uint64_t place = w.place[0]; place <= w.place[1]; place += LINE_ENTRIES)
            __builtin_prefetch(m->doc + place);
}

void gpt_ahead(const struct gpt *g, uint64_t k, enum feed_step step)
{
    if (gpt_take(g, NULL))
        return;
    look_ahead(g, k, step);
    let_go(g);
}

static void feed_ahead(const void *self, uint64_t k, enum feed_step step)
{
    gpt_ahead(self, k, step);
}

static int feed_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    return gpt_sample(self, k, ret, e);
}

struct feed gpt_feed(const struct gpt *g)
{
    BUG_ON(g->spec.extra != 1, "labels need overlapping samples");
    return (struct feed){.self = g,
                         .sample = feed_sample,
                         .ahead = feed_ahead,
                         .count = gpt_count(g),
                         .seq_length = g->spec.seq_length,
                         .pad = g->pad,
                         .name = g->shard->prefix,
                         .part = part_name(g->spec.part)};
}

/* ---- the three shares ---------------------------------------------------------------------- */

static int name_as_deepspeed(struct gpt *g, const struct gpt_config *c, uint64_t tokens,
                             struct err *e)
{
    struct maps_plan p;
    struct buf text = {0};
    int code = maps_plan_make(&g->spec, c->prefix, tokens, &p, e);
    if (code)
        return code;
    deepspeed_gpt_text(&(struct deepspeed_gpt){.path = c->prefix,
                                               .part = g->spec.part,
                                               .samples = g->spec.samples,
                                               .epochs = p.epochs,
                                               .seq_length = c->seq_length,
                                               .seed = c->seed,
                                               .split = c->named_split},
                       &text);
    maps_of_deepspeed(c->prefix, c->cache, &text, &g->at);
    buf_finish(&text);
    return 0;
}

static int gpt_name_files(struct gpt *g, const struct gpt_config *c, uint64_t tokens, struct err *e)
{
    if (c->rules == RULES_DEEPSPEED)
        return name_as_deepspeed(g, c, tokens, e);
    if (!c->cache && !g->spec.one_epoch) {
        maps_beside(&g->spec, c->prefix, &g->at);
        return 0;
    }
    const struct core_gpt name = {.path = c->prefix,
                                  .samples = c->samples[g->spec.part],
                                  .part = g->spec.part,
                                  .seed = c->seed,
                                  .seq_length = c->seq_length,
                                  .split = c->split,
                                  .tokenizer = c->tokenizer};
    struct buf text = {0};
    char *beside = mem_printf("%s/cache/GPTDataset_indices", c->prefix);
    struct core_folder *own = c->found ? NULL : core_folder_create(c->cache ? c->cache : beside);
    int code = core_gpt_text(&name, &text, e);
    if (!code)
        maps_in_cache(own ? own : c->found, g->spec.part, &text, &g->at);
    core_folder_destroy(own);
    free(beside);
    buf_finish(&text);
    return code;
}

/* Numbers only, no maps. */
static int plan_part(struct gpt *g, uint64_t tokens, struct err *e)
{
    struct maps_plan p;
    int code = maps_plan_make(&g->spec, g->shard->prefix, tokens, &p, e);
    if (!code)
        maps_take_plan(&g->maps, &p);
    return code;
}

static bool share_of(const struct gpt_config *c, const struct split *s, enum part p, uint64_t nseq,
                     uint64_t *ret_first, uint64_t *ret_end)
{
    return c->rules == RULES_CORE ? split_range(s, p, nseq, ret_first, ret_end)
                                  : split_range_old(s, p, nseq, ret_first, ret_end);
}

/* Core writes files for one epoch of an empty share, too; for a number of samples it counts epochs
 * without end. */
static bool leaves_empty_files(const struct gpt_config *c, enum part p)
{
    return c->rules == RULES_CORE && c->samples[p] == SAMPLES_ALL && c->save && !c->plan_only;
}

static int open_part(struct gpt_data *d, const struct gpt_config *c, const struct split *split,
                     enum part p, struct err *e)
{
    struct gpt *g = &d->part[p];
    uint64_t first = 0, end = d->shard.nseq, tokens;
    *g = (struct gpt){.shard = &d->shard, .limit = c->limit, .pad = c->pad};
    if (!c->samples[p] || (c->split && !share_of(c, split, p, d->shard.nseq, &first, &end)))
        return 0;
    int code = maps_tokens_between(&d->shard, first, end, &tokens, e);
    d->empty[p] = !code && !tokens;
    if (code || (!tokens && !leaves_empty_files(c, p)))
        return code;
    g->spec = (struct maps_spec){.part = p,
                                 .first = first,
                                 .end = end,
                                 .samples = c->samples[p],
                                 .one_epoch = c->samples[p] == SAMPLES_ALL,
                                 .seq_length = c->seq_length,
                                 .seed = c->seed,
                                 .extra = 1,
                                 .all_mixed = c->rules == RULES_V1,
                                 .wide = c->rules == RULES_DEEPSPEED};
    struct maps_wish wish = {.save = c->save, .rebuild = c->rebuild, .trial = c->trial};
    code = c->plan_only ? plan_part(g, tokens, e) : gpt_name_files(g, c, tokens, e);
    if (!code && !c->plan_only)
        code = maps_obtain_at(&g->spec, &d->shard, &g->at, wish, &g->maps, &g->found, e);
    d->ready[p] = !code && tokens;
    return code;
}

int gpt_open(struct gpt_data *d, const struct gpt_config *c, struct err *e)
{
    struct split split = {{0}};
    *d = (struct gpt_data){0};
    if (!c->seq_length)
        return err_set(e, ERR_USAGE, "a sequence length of 0 makes no samples");
    int code = c->split ? split_parse(c->split, &split, e) : 0;
    if (code)
        return code;
    code = shard_open_late(&d->shard, c->prefix, c->idx_only || c->plan_only, e);
    for (int p = 0; p < PARTS && !code; p++)
        code = open_part(d, c, &split, (enum part)p, e);
    if (code)
        gpt_close(d);
    else
        shard_leave(&d->shard); /* building or checking maps has read the .idx */
    return code;
}

static int touch_shard(void *self, struct err *e)
{
    return shard_touch(self, e);
}

static void leave_shard(void *self)
{
    shard_leave(self);
}

static int touch_maps(void *self, struct err *e)
{
    return maps_touch(self, e);
}

static void leave_maps(void *self)
{
    maps_leave(self);
}

static uint32_t map_files(const struct gpt *g)
{
    return g->maps.late ? MAPS_FILES : 0;
}

uint32_t gpt_files(const struct gpt_data *d)
{
    uint32_t n = d->shard.has_bin ? 2 : 1;
    for (int p = 0; p < PARTS; p++)
        n += map_files(&d->part[p]);
    return n;
}

void gpt_limit(struct gpt_data *d, struct map_pool *pool)
{
    pooled_maps_init(&d->pooled[0], d->shard.has_bin ? 2 : 1, &d->shard, touch_shard, leave_shard);
    for (int p = 0; p < PARTS; p++) {
        struct gpt *g = &d->part[p];
        pooled_maps_init(&d->pooled[1 + p], map_files(g), &g->maps, touch_maps, leave_maps);
        g->pool = pool;
        g->of_shard = &d->pooled[0];
        g->of_maps = &d->pooled[1 + p];
    }
}

void gpt_close(struct gpt_data *d)
{
    for (int p = 0; p < PARTS; p++) {
        maps_close(&d->part[p].maps);
        maps_at_finish(&d->part[p].at);
    }
    shard_close(&d->shard);
    *d = (struct gpt_data){0};
}
