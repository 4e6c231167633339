/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/packed_feed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/epochs.h"

/* ---- the order ------------------------------------------------------------------------------ */

const struct packed *packed_order(const struct packed_part *p, uint64_t k, uint64_t *ret_sequence)
{
    const struct packed_share *s = p->share;
    uint64_t at;
    if (p->which) {
        s += p->which[k];
        at = epochs_order(p->seed, p->part, s->n, (uint64_t)p->turn[k]);
    } else {
        at = epochs_order(p->seed, p->part, p->n, k);
        for (; at >= s->n; s++)
            at -= s->n;
    }
    *ret_sequence = s->first + at;
    return s->set;
}

uint64_t packed_once(const struct packed_part *p)
{
    for (uint64_t k = 0; p->which && k < p->samples; k++)
        if ((uint64_t)p->turn[k] >= p->share[p->which[k]].n)
            return k;
    return p->which ? p->samples : p->n;
}

/* ---- one row -------------------------------------------------------------------------------- */

static void packed_feed_lay_out(const struct packed_sequence *s, uint32_t length,
                                struct feed_row *ret)
{
    uint32_t t = 0;
    ret->nends = s->nends;
    for (uint32_t i = 0; i < s->nends; i++) {
        uint32_t begin = t, end = s->end[i];
        ret->ends[i] = (int32_t)end;
        for (; t < end; t++) {
            bool last = t + 1 == end;
            ret->tokens[t] = s->token[t];
            ret->labels[t] = last ? 0 : s->token[t + 1];
            ret->loss_mask[t] = !last && s->learn[t + 1] ? 1.0f : 0.0f;
            ret->position[t] = (int32_t)(t - begin);
        }
    }
    ret->used = t;
    if (t < length)
        ret->ends[ret->nends++] = (int32_t)length;
    for (uint32_t begin = t; t < length; t++) {
        ret->tokens[t] = ret->labels[t] = 0;
        ret->loss_mask[t] = 0;
        ret->position[t] = (int32_t)(t - begin);
    }
}

static int row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    const struct packed_part *p = self;
    BUG_ON(k >= p->samples, "sample %" PRIu64 " of %" PRIu64, k, p->samples);
    uint64_t sequence;
    const struct packed *set = packed_order(p, k, &sequence);
    size_t room = set->seq_length;
    struct packed_sequence s = {.token = mem_new(room, sizeof(*s.token)),
                                .learn = mem_new(room, 1),
                                .end = mem_new(room, sizeof(*s.end))};
    int code = packed_sequence(set, sequence, p->limit, &s, e);
    if (!code)
        packed_feed_lay_out(&s, p->seq_length, ret);
    free(s.token);
    free(s.learn);
    free(s.end);
    return code;
}

struct feed packed_feed(const struct packed_data *d, enum part p)
{
    const struct packed_part *part = &d->part[p];
    return (struct feed){.self = part,
                         .row = row,
                         .count = part->samples,
                         .seq_length = part->seq_length,
                         .pad = -1,
                         .name = part->nshares > 1 ? "the blend" : part->share->set->shard.prefix,
                         .part = part_name(p)};
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_set(struct packed *set, const char *prefix, uint32_t seq_length, struct err *e)
{
    int code = packed_open(set, prefix, e);
    if (!code && !packed_learns(set)) {
        code = err_set(e, ERR_DATA, "%s: no token of the set is to be learnt", set->map.path);
        packed_close(set);
    }
    if (code || set->seq_length <= seq_length)
        return code;
    code = err_set(e, ERR_USAGE,
                   "%s: was packed into sequences of %u tokens, and those of the run have %u",
                   prefix, set->seq_length, seq_length);
    packed_close(set);
    return err_hint(e, "--seq-length is to be the same here and for prep sft");
}

/* The sets of a list, after those that are open. */
static int open_list(struct packed_data *d, const struct packed_config *c,
                     const struct blend_list *l, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < l->n && !code; i++) {
        code = open_set(&d->set[d->nsets], l->prefix[i], c->seq_length, e);
        d->nsets += !code;
        if (code == ERR_IO && !l->weight && blend_is_number(l->prefix[i]))
            err_hint(e,
                     "a number is a weight where each prefix has one before it: count the words");
    }
    return code;
}

/* Which share is at each place. */
static int weave(struct packed_part *p, const double *weight, struct err *e)
{
    void *which, *turn = NULL;
    char *what = mem_printf("the blend of %" PRIu64 " %s samples", p->samples, part_name(p->part));
    int code = mem_try(p->samples, sizeof(*p->which), what, &which, e);
    p->which = code ? NULL : which;
    if (!code)
        code = mem_try(p->samples, sizeof(*p->turn), what, &turn, e);
    p->turn = turn;
    if (!code) {
        double *share = mem_new(p->nshares, sizeof(*share));
        uint64_t *taken = mem_new(p->nshares, sizeof(*taken));
        blend_normalize(weight, p->nshares, share);
        blend_weave(share, p->nshares, p->samples, p->which, p->turn, taken);
        free(share);
        free(taken);
    }
    free(what);
    return code;
}

/* The shares of a part, of sets that are open from `first` on. */
static int cut_part(struct packed_data *d, const struct packed_config *c,
                    const struct blend_list *l, const struct split *split, size_t first,
                    enum part p, struct err *e)
{
    struct packed_part *part = &d->part[p];
    part->share = mem_new(l->n, sizeof(*part->share));
    for (size_t i = 0; i < l->n; i++) {
        struct packed_share *s = &part->share[part->nshares++];
        s->set = &d->set[first + i];
        uint64_t end = s->set->shard.nseq;
        bool some = !c->shared || split_range(split, p, s->set->shard.nseq, &s->first, &end);
        s->n = some ? end - s->first : 0;
        part->n += s->n;
        if (some && !s->n && part->samples && !d->empty[p])
            d->empty[p] = s->set;
    }
    if (d->empty[p])
        part->n = 0;
    if (!l->weight || l->n < 2 || !part->n || !part->samples)
        return 0;
    if (part->samples == SAMPLES_ALL)
        return err_set(e, ERR_USAGE, "weights need a number of %s samples", part_name(p));
    return weave(part, l->weight, e);
}

static int open_parts(struct packed_data *d, const struct packed_config *c, struct err *e)
{
    static const struct blend_list none;
    struct split split = {0};
    int code = c->shared ? split_parse(c->split, &split, e) : 0;
    if (!code && c->shared)
        code = open_list(d, c, c->shared, e);
    for (enum part p = 0; p < PARTS && !code; p++) {
        const struct blend_list *l = c->shared ? c->shared : c->own[p] ? c->own[p] : &none;
        size_t first = c->shared ? 0 : d->nsets;
        d->part[p] = (struct packed_part){.part = p,
                                          .samples = c->samples[p],
                                          .seq_length = c->seq_length,
                                          .seed = c->seed,
                                          .limit = c->limit};
        if (!c->shared)
            code = open_list(d, c, l, e);
        if (!code && l->n)
            code = cut_part(d, c, l, &split, first, p, e);
    }
    return code;
}

int packed_data_open(struct packed_data *d, const struct packed_config *c, struct err *e)
{
    size_t n = c->shared ? c->shared->n : 0;
    for (int p = 0; p < PARTS; p++)
        n += c->own[p] && !c->shared ? c->own[p]->n : 0;
    *d = (struct packed_data){.split = c->shared ? c->split : NULL,
                              .set = mem_new(n + 1, sizeof(*d->set))};
    int code = open_parts(d, c, e);
    if (code)
        packed_data_close(d);
    return code;
}

void packed_data_close(struct packed_data *d)
{
    for (size_t i = 0; i < d->nsets; i++)
        packed_close(&d->set[i]);
    for (int p = 0; p < PARTS; p++) {
        free(d->part[p].share);
        free(d->part[p].which);
        free(d->part[p].turn);
    }
    free(d->set);
    *d = (struct packed_data){0};
}

int packed_mixed(const char *found, const char *plain, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "%s is a packed set (.pack) and %s is none: packed sets can be mixed with each "
                   "other alone",
                   found, plain);
}

int packed_need(const struct packed_data *d, enum part p, struct err *e)
{
    const struct packed_part *part = &d->part[p];
    if (part->n && part->samples)
        return 0;
    const struct packed *set = d->empty[p] ? d->empty[p] : part->nshares ? part->share->set : NULL;
    uint64_t n = set ? set->shard.nseq : 0;
    struct split split;
    char other[16];
    err_set(e, ERR_USAGE,
            "%s: the %s share is empty: the split leaves it none of %" PRIu64
            " sequences, or no samples of it were requested",
            set ? set->shard.prefix : "the data", part_name(p), n);
    if (d->split && !split_parse(d->split, &split, NULL) && split.share[p] > 0 &&
        split_suggest(&split, n, other))
        return err_hint(e, "--split %s works here", other);
    return err_hint(e, "choose another --split, or do not evaluate on it");
}
