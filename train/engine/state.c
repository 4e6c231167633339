/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/ckpt/shard.h"

/* The groups of a checkpoint that training needs, and the slabs that hold them. */
enum { GROUPS = 3 };
static const char *const groups[GROUPS] = {CKPT_PARAM, CKPT_EXP_AVG, CKPT_EXP_AVG_SQ};

static struct tensor group_of(const struct rank *r, int g)
{
    return g == 0 ? r->weights : g == 1 ? r->optim.m : r->optim.v;
}

/* Where one source of a parameter lies in the flat slab of a group. */
static struct box_mem state_place(const struct rank *r, int g, const struct param *p,
                                  const struct param_source *s)
{
    int64_t cols = p->rank == 2 ? p->size[1] : 1;
    struct tensor at = tensor_rows(group_of(r, g), p->offset + s->row * cols, 0);
    return (struct box_mem){.data = at.data,
                            .dtype = at.dtype,
                            .stride = cols,
                            .box = {{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}}};
}

/* Plans this rank's boxes; where they lie goes to mem, of as many as the rank has sources. */
static void plan_shard(const struct rank *r, struct ckpt_shard *shard, struct box_mem *mem)
{
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < r->params.n; i++)
            for (int k = 0; k < r->params.at[i].sources; k++) {
                const struct param *p = &r->params.at[i];
                const struct param_source *s = &p->source[k];
                struct box_mem m = state_place(r, g, p, s);
                if (s->saves)
                    mem[ckpt_shard_add(shard, groups[g], s->name, s->rank, s->size, m.dtype,
                                       m.box)] = m;
            }
}

static size_t count_sources(const struct rank *r)
{
    size_t n = 0;
    for (int i = 0; i < r->params.n; i++)
        n += (size_t)r->params.at[i].sources;
    return n * GROUPS;
}

int state_save(const struct rank *r, struct ckpt_writer *w, int threads, struct err *e)
{
    struct ckpt_shard *shard;
    struct buf fragment = {0};
    struct box_mem *mem = mem_new(count_sources(r) + 1, sizeof(*mem));
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &shard);
    plan_shard(r, shard, mem);
    int code = ckpt_shard_begin(shard, e);
    if (!code)
        code = ckpt_shard_write_all(shard, mem, threads, e);
    if (!code)
        code = ckpt_shard_end(shard, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    buf_finish(&fragment);
    ckpt_shard_destroy(shard);
    free(mem);
    return code;
}

static const char *const pair_names[STATE_PAIRS] = {"optimizer_steps", "scheduled_samples"};

void state_pairs(const struct rank *r, struct state_pairs *ret)
{
    const int64_t values[STATE_PAIRS] = {r->at.steps, r->at.scheduled};
    for (int i = 0; i < STATE_PAIRS; i++) {
        snprintf(ret->text[i], sizeof(ret->text[i]), "%lld", (long long)values[i]);
        ret->pair[i] = (struct ckpt_pair){pair_names[i], ret->text[i]};
    }
}

static int read_pair(const struct ckpt *c, const char *name, int64_t *ret, struct err *e)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    for (size_t i = 0; i < m->nstate; i++)
        if (!strcmp(m->state[i].key, name)) {
            char *end;
            long long v = strtoll(m->state[i].value, &end, 10);
            if (*end || end == m->state[i].value || v < 0)
                return err_set(e, ERR_DATA, "%s: state '%s' is '%s': expected a count",
                               ckpt_path(c), name, m->state[i].value);
            *ret = v;
            return 0;
        }
    return err_set(e, ERR_DATA, "%s: the state '%s' is missing", ckpt_path(c), name);
}

static int load_groups(struct rank *r, struct ckpt *c, int n, struct err *e)
{
    struct ckpt_want *want = mem_new(count_sources(r) + 1, sizeof(*want));
    size_t wants = 0;
    for (int g = 0; g < n; g++)
        for (int i = 0; i < r->params.n; i++)
            for (int k = 0; k < r->params.at[i].sources; k++) {
                const struct param *p = &r->params.at[i];
                const struct param_source *s = &p->source[k];
                want[wants++] = (struct ckpt_want){groups[g], s->name, s->rank, s->size,
                                                   state_place(r, g, p, s)};
            }
    int code = ckpt_read_all(c, want, wants, 0, e);
    free(want);
    return code ? code : ckpt_check(c, e);
}

int state_load(struct rank *r, struct ckpt *c, bool optimizer, struct err *e)
{
    struct cursor at = {0};
    int code = load_groups(r, c, optimizer ? GROUPS : 1, e);
    if (code || !optimizer)
        return code;
    code = read_pair(c, pair_names[0], &at.steps, e);
    if (!code)
        code = read_pair(c, pair_names[1], &at.scheduled, e);
    if (code)
        return code;
    at.iteration = ckpt_meta(c)->iteration;
    at.consumed = ckpt_meta(c)->consumed_samples;
    if (FAULT("resume_cursor"))
        at.consumed += 1;
    r->at = at;
    return 0;
}

int state_load_weights(struct rank *r, state_read *read, const void *from, struct err *e)
{
    int code = 0;
    for (int i = 0; i < r->params.n; i++)
        for (int k = 0; !code && k < r->params.at[i].sources; k++) {
            const struct param *p = &r->params.at[i];
            const struct param_source *s = &p->source[k];
            code = read(from, s->name, s->rank, s->size, state_place(r, 0, p, s), e);
        }
    return code;
}

int state_same_model(const struct ckpt *c, const struct spec *ours, struct err *e)
{
    struct spec theirs;
    struct buf what = {0};
    int code = spec_from_manifest(ckpt_model(c), ckpt_must_know(c), ckpt_path(c), &theirs, e);
    if (!code && spec_differ(&theirs, ours, &what))
        code = err_set(e, ERR_USAGE, "%s holds another model than is asked for: %s", ckpt_path(c),
                       what.data);
    buf_finish(&what);
    return code;
}
