/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/packed_feed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/epochs.h"

uint64_t packed_order(const struct packed_part *p, uint64_t k)
{
    return p->first + epochs_order(p->seed, p->part, p->n, k);
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
    size_t room = p->set->seq_length;
    struct packed_sequence s = {.token = mem_new(room, sizeof(*s.token)),
                                .learn = mem_new(room, 1),
                                .end = mem_new(room, sizeof(*s.end))};
    int code = packed_sequence(p->set, packed_order(p, k), p->limit, &s, e);
    if (!code)
        packed_feed_lay_out(&s, p->seq_length, ret);
    free(s.token);
    free(s.learn);
    free(s.end);
    return code;
}

struct feed packed_feed(const struct packed_data *d, enum part p)
{
    return (struct feed){.self = &d->part[p],
                         .row = row,
                         .count = d->part[p].samples,
                         .seq_length = d->part[p].seq_length,
                         .pad = -1,
                         .name = d->part[p].set->shard.prefix,
                         .part = part_name(p)};
}

/* ---- opening -------------------------------------------------------------------------------- */

static int open_set(struct packed *set, const char *prefix, uint32_t seq_length, struct err *e)
{
    int code = packed_open(set, prefix, e);
    if (code || set->seq_length <= seq_length)
        return code;
    code = err_set(e, ERR_USAGE,
                   "%s: was packed into sequences of %u tokens, and those of the run have %u",
                   prefix, set->seq_length, seq_length);
    return err_hint(e, "--seq-length is to be the same here and for prep sft");
}

static int open_sets(struct packed_data *d, const struct packed_config *c, struct err *e)
{
    int code = c->shared ? open_set(&d->set[0], c->shared, c->seq_length, e) : 0;
    for (int p = 0; p < PARTS && !code; p++)
        if (c->own[p] && !c->shared)
            code = open_set(&d->set[p], c->own[p], c->seq_length, e);
    return code;
}

static void cut_part(struct packed_data *d, const struct packed_config *c,
                     const struct split *split, enum part p)
{
    struct packed_part *part = &d->part[p];
    *part = (struct packed_part){.set = &d->set[c->shared ? 0 : p],
                                 .part = p,
                                 .samples = c->samples[p],
                                 .seq_length = c->seq_length,
                                 .seed = c->seed,
                                 .limit = c->limit};
    if (!c->shared && c->own[p]) {
        part->n = part->set->shard.nseq;
    } else if (c->shared) {
        uint64_t end;
        bool share = split_range(split, p, part->set->shard.nseq, &part->first, &end);
        part->n = share ? end - part->first : 0;
        d->empty[p] = share && part->samples && !part->n;
    }
}

int packed_data_open(struct packed_data *d, const struct packed_config *c, struct err *e)
{
    struct split split = {0};
    *d = (struct packed_data){.split = c->shared ? c->split : NULL};
    int code = c->shared ? split_parse(c->split, &split, e) : 0;
    if (!code)
        code = open_sets(d, c, e);
    if (code) {
        packed_data_close(d);
        return code;
    }
    for (int p = 0; p < PARTS; p++)
        cut_part(d, c, &split, (enum part)p);
    return 0;
}

void packed_data_close(struct packed_data *d)
{
    for (int p = 0; p < PARTS; p++)
        if (d->set[p].map.path)
            packed_close(&d->set[p]);
    *d = (struct packed_data){0};
}

int packed_need(const struct packed_data *d, enum part p, struct err *e)
{
    const struct packed_part *part = &d->part[p];
    if (part->n && part->samples)
        return 0;
    struct split split;
    char other[16];
    err_set(e, ERR_USAGE,
            "%s: the %s share is empty: the split leaves it none of %" PRIu64
            " sequences, or no samples of it were requested",
            part->set->map.path ? part->set->shard.prefix : "the data", part_name(p),
            part->set->shard.nseq);
    if (d->split && !split_parse(d->split, &split, NULL) && split.share[p] > 0 &&
        split_suggest(&split, part->set->shard.nseq, other))
        return err_hint(e, "--split %s works here", other);
    return err_hint(e, "choose another --split, or do not evaluate on it");
}
