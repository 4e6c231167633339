/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "train/engine/device_io.h"
#include "train/engine/all_ranks.h"
#include "train/zero/gather.h"

enum { BOXES = 3 }; /* that a range of a tensor has at most */

/* The groups of a checkpoint that training needs, and the slabs that hold them. */
static int groups_of(const struct rank *r)
{
    return 1 + r->optim.rule->states;
}

/* NULL: the parameter has none. */
static const char *group_name(const struct rank *r, int g, const struct param *p)
{
    if (g == groups_of(r))
        return STATE_COPIES;
    return g == 0 ? CKPT_PARAM : optim_state_name(r->optim.rule, p, g - 1);
}

static struct tensor group_of(const struct rank *r, int g)
{
    if (g == groups_of(r))
        return r->zero.weights;
    return g == 0 ? rank_master(r) : r->optim.state[g - 1];
}

/* What of a source a piece of the slab holds. */
static void add_piece(struct state_entries *out, const struct rank *r, int g, const struct param *p,
                      const struct param_source *s, struct zero_piece piece)
{
    int64_t cols = p->rank == 2 ? p->size[1] : 1, first = p->offset + s->row * cols;
    struct box whole = {{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}}, part[BOXES];
    if (!zero_cut(&piece, first, first + box_count(whole)))
        return;
    size_t n = box_of_range(whole, piece.begin - first, piece.end - first, part);
    for (size_t i = 0; i < n; piece.at += box_count(part[i++])) {
        struct tensor at = tensor_rows(group_of(r, g), piece.at, 0);
        ARRAY_GROW(out->at, out->n, out->capacity);
        out->at[out->n++] = (struct state_entry){
            group_name(r, g, p),
            s,
            {.data = at.data, .dtype = at.dtype, .stride = cols, .box = part[i]}};
    }
}

/* Whether this rank writes what it holds of a source: of ranks that hold the same, one does. */
static bool is_saved(const struct rank *r, int g, const struct param_source *s)
{
    bool shared_out = zero_pieces_of(&r->zero.split, group_of(r, g).size[0]) > 1 ||
                      group_of(r, g).size[0] < r->zero.split.elements;
    return shared_out ? s->counts && comm_index(&r->comm, GROUP_REPLICA) == 0 : s->saves;
}

/* Numbers of the optimizer that are not of single elements. */
static void add_numbers(struct state_entries *out, const struct rank *r, bool saved)
{
    const struct optim *o = &r->optim;
    struct optim_number x;
    for (int i = 0; i < r->params.n && o->rule->number; i++) {
        if (!o->rule->number(o, i, &x) || (saved && !x.source->saves))
            continue;
        struct box box = {{x.source->begin[0], 0}, {1, 1}};
        ARRAY_GROW(out->at, out->n, out->capacity);
        out->at[out->n++] = (struct state_entry){
            x.group, x.source, {.data = x.at.data, .dtype = DTYPE_F64, .stride = 1, .box = box}};
    }
}

static void add_group(struct state_entries *out, const struct rank *r, int g, bool saved)
{
    for (int i = 0; i < r->params.n; i++)
        for (int k = 0; k < r->params.at[i].sources; k++) {
            const struct param *p = &r->params.at[i];
            int64_t numbers = group_of(r, g).size[0];
            if (!group_name(r, g, p) || (saved && !is_saved(r, g, &p->source[k])))
                continue;
            for (size_t j = 0; j < zero_pieces_of(&r->zero.split, numbers); j++)
                add_piece(out, r, g, p, &p->source[k], zero_piece_of(&r->zero.split, numbers, j));
        }
}

/* All that the rank holds, weights alone or the optimizer's state with them, or of it what it
 * saves. */
static struct state_entries list_entries(const struct rank *r, bool optimizer, bool saved)
{
    struct state_entries out = {0};
    int n = optimizer ? groups_of(r) : 1;
    if (optimizer)
        add_numbers(&out, r, saved);
    for (int g = 0; g < n; g++)
        add_group(&out, r, g, saved);
    return out;
}

struct state_entries state_held(const struct rank *r)
{
    struct state_entries out = {0};
    for (int g = 0; g < groups_of(r); g++)
        add_group(&out, r, g, false);
    if (rank_master(r).data != r->zero.weights.data)
        add_group(&out, r, groups_of(r), false);
    add_numbers(&out, r, false);
    return out;
}

void state_cursor(const struct rank *r, uint64_t ret[STATE_NUMBERS])
{
    const struct cursor *c = &r->at;
    const int64_t all[STATE_NUMBERS] = {c->iteration,  c->consumed,   c->steps, c->scheduled,
                                        c->scale.good, c->scale.left, 0};
    memcpy(ret, all, sizeof(all));
    memcpy(&ret[STATE_NUMBERS - 1], &c->scale.scale, sizeof(*ret));
}

struct state_entries state_entries(const struct rank *r, bool saved)
{
    return list_entries(r, !saved || !r->config.weights_only, saved);
}

static const char *const pair_names[STATE_PAIRS] = {"optimizer_steps", "scheduled_samples",
                                                    "loss_scale_good_steps",
                                                    "loss_scale_hysteresis", "loss_scale"};

void state_pairs(const struct rank *r, struct state_pairs *ret)
{
    const struct loss_scale_state *s = &r->at.scale;
    const int64_t values[STATE_PAIRS] = {r->at.steps, r->at.scheduled, s->good, s->left};
    ret->n = r->config.scale.dynamic ? STATE_PAIRS : 2;
    for (int i = 0; i < STATE_PAIRS; i++) {
        snprintf(ret->text[i], sizeof(ret->text[i]), "%lld", (long long)values[i]);
        ret->pair[i] = (struct ckpt_pair){pair_names[i], ret->text[i]};
    }
    snprintf(ret->text[4], sizeof(ret->text[4]), "%.17g", s->scale);
}

void state_pairs_add(struct state_pairs *p, const char *key, const char *value)
{
    BUG_ON(p->n == STATE_PAIRS + STATE_PAIRS_MORE, "no place for the state %s", key);
    p->pair[p->n++] = (struct ckpt_pair){key, value};
}

static int read_pair(const struct ckpt *c, const char *name, bool negative, int64_t *ret,
                     struct err *e)
{
    const char *text = ckpt_state(c, name);
    if (!text)
        return err_set(e, ERR_DATA, "%s: the state '%s' is missing", ckpt_path(c), name);
    char *end;
    long long v = strtoll(text, &end, 10);
    if (*end || end == text || (v < 0 && !negative))
        return err_set(e, ERR_DATA, "%s: state '%s' is '%s': expected a count", ckpt_path(c), name,
                       text);
    *ret = v;
    return 0;
}

int state_count(const struct ckpt *c, const char *key, int64_t *ret, struct err *e)
{
    *ret = 0;
    return ckpt_state(c, key) ? read_pair(c, key, false, ret, e) : 0;
}

/* A run whose scale is not dynamic, or whose checkpoint has none, keeps that of its start. */
static int read_scale(const struct rank *r, const struct ckpt *c, struct loss_scale_state *ret,
                      struct err *e)
{
    const char *text = ckpt_state(c, pair_names[4]);
    char *end;
    *ret = loss_scale_begin(&r->config.scale);
    if (!r->config.scale.dynamic || !text || FAULT("resume_scale"))
        return 0;
    double v = strtod(text, &end);
    if (*end || end == text || !(v >= 1) || !isfinite(v))
        return err_set(e, ERR_DATA,
                       "%s: state '%s' is '%s': expected a finite number of at least 1",
                       ckpt_path(c), pair_names[4], text);
    ret->scale = v;
    int code = read_pair(c, pair_names[2], false, &ret->good, e);
    return code ? code : read_pair(c, pair_names[3], true, &ret->left, e);
}

struct want_from {
    struct ckpt *ckpt;
    const struct ckpt_want *want;
};

static int read_want(void *arg, struct box_mem to, struct err *e)
{
    const struct want_from *f = arg;
    const struct ckpt_want *w = f->want;
    return ckpt_read_box(f->ckpt, w->group, w->name, w->rank, w->size, to, e);
}

/* The optimizer's state must be there, before anything is read. */
static int check_groups(const struct ckpt *c, const struct ckpt_want *want, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(want[i].group, CKPT_PARAM) || ckpt_find(c, want[i].group, want[i].name))
            continue;
        err_set(e, ERR_USAGE, "%s holds the state of another optimizer: there is no %s of '%.300s'",
                ckpt_path(c), want[i].group, want[i].name);
        return err_hint(e, "give the --optimizer of the run that saved it, or --no-load-optim, "
                           "which begins the optimizer anew");
    }
    return 0;
}

static int load_groups(struct rank *r, struct ckpt *c, bool optimizer, struct err *e)
{
    gather_wait(&r->zero); /* or what is still gathered comes after what is read */
    struct state_entries list = list_entries(r, optimizer, false);
    struct ckpt_want *want = mem_new(list.n + 1, sizeof(*want));
    for (size_t i = 0; i < list.n; i++) {
        const struct state_entry *t = &list.at[i];
        const struct param_source *s = t->source;
        want[i] = (struct ckpt_want){t->group, s->name, s->rank, s->size, t->mem};
    }
    int code = check_groups(c, want, list.n, e);
    if (!code && r->dev.desc.host)
        code = ckpt_read_all(c, want, list.n, 0, e);
    for (size_t i = 0; i < list.n && !code && !r->dev.desc.host; i++) {
        struct want_from from = {c, &want[i]};
        code = device_io_load(&r->dev, want[i].to, read_want, &from, e);
    }
    free(want);
    free(list.at);
    code =
        all_ranks_agree(&r->comm, code, e); /* of the weights ranks gather what others have read */
    if (code)
        return code;
    rank_spread_master(r);
    return all_ranks_agree(&r->comm, ckpt_check(c, e), e);
}

int state_load(struct rank *r, struct ckpt *c, bool optimizer, struct err *e)
{
    struct cursor at = {0};
    int code = load_groups(r, c, optimizer && !FAULT("resume_moments"), e);
    if (code || !optimizer)
        return code;
    code = read_pair(c, pair_names[0], false, &at.steps, e);
    if (!code)
        code = read_pair(c, pair_names[1], false, &at.scheduled, e);
    if (!code)
        code = read_scale(r, c, &at.scale, e);
    if (code)
        return code;
    at.iteration = ckpt_meta(c)->iteration;
    at.consumed = ckpt_meta(c)->consumed_samples;
    if (FAULT("resume_cursor"))
        at.consumed += 1;
    r->at = at;
    return 0;
}

struct foreign {
    state_read *read;
    const void *from;
    const struct param_source *source;
};

static int read_foreign(void *arg, struct box_mem to, struct err *e)
{
    const struct foreign *f = arg;
    return f->read(f->from, f->source->name, f->source->rank, f->source->size, to, e);
}

int state_load_weights(struct rank *r, state_read *read, const void *from, struct err *e)
{
    int code = 0;
    gather_wait(&r->zero);
    struct state_entries list = list_entries(r, false, false);
    for (size_t i = 0; !code && i < list.n; i++) {
        struct foreign f = {read, from, list.at[i].source};
        struct box_mem to = list.at[i].mem;
        code = r->dev.desc.host ? read_foreign(&f, to, e)
                                : device_io_load(&r->dev, to, read_foreign, &f, e);
    }
    free(list.at);
    code = all_ranks_agree(&r->comm, code, e);
    if (!code)
        rank_spread_master(r);
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

static void fetch_for_report(void *rank, void *to, struct tensor from)
{
    rank_fetch(rank, to, from);
}

void state_report_optimizer(struct rank *r)
{
    if (r->optim.rule->report)
        r->optim.rule->report(&r->optim, fetch_for_report, r);
}
