/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "dataset/sample/batch.h"
#include "dataset/shard/manifest.h"
#include "dataset/sample/blend_set.h"
#include "dataset/sample/packed_feed.h"
#include "dataset/shard/shard.h"
#include "prep/tools/same_tokenizer.h"

struct view {
    const struct sample_request *q;
    struct blend_set mix;
    bool packed; /* if so, `pack` is used */
    struct packed_data pack;
    struct batch_layout layout;
    int64_t limit;
    struct batch batch;
    struct tok_work *work;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* Vocabulary and end of document, of the tokenizer, else of the first dataset's manifest. */
static int sample_settle(struct view *v, const char *prefix, struct err *e)
{
    const struct sample_request *q = v->q;
    const struct tok_info *t = q->tok ? tok_info(q->tok) : NULL;
    bool wanted = q->eod_mask_loss || q->reset_position_ids || q->reset_attention_mask;
    struct manifest m;
    bool found;
    int code = manifest_read(prefix, &m, &found, e);
    if (code)
        return code;
    int64_t eod = t       ? t->eod
                  : found ? m.eod
                          : -1,
            size = t       ? t->vocab_size
                   : found ? m.vocab_size
                           : 0;
    v->limit = size > 0 && size < SHARD_ANY_ID ? size : SHARD_ANY_ID;
    if (t && found)
        code = same_tokenizer(&m, prefix, t, q->tokenizer_differs, e);
    manifest_close(&m);
    if (!code && wanted && eod < 0)
        code =
            err_set(e, ERR_USAGE,
                    "%s: neither a tokenizer nor a manifest says which id ends a document", prefix);
    v->layout = (struct batch_layout){.rows = 1,
                                      .ranks = 1,
                                      .eod = (int32_t)eod,
                                      .eod_mask_loss = q->eod_mask_loss,
                                      .reset_position_ids = q->reset_position_ids,
                                      .reset_attention_mask = q->reset_attention_mask};
    return code;
}

static int lists_of(const struct sample_request *q, struct data_lists *l, struct err *e)
{
    *l = (struct data_lists){0};
    return q->prefix ? blend_list_words("PREFIX", &q->prefix, 1, &l->shared, e)
                     : data_flags_lists(q->data, l, e);
}

/* The trainer's rules of packed sets. */
static int find_packed(struct view *v, const struct blend_list *mine, struct err *e)
{
    const struct sample_request *q = v->q;
    const char *found = NULL, *plain = NULL;
    for (size_t k = 0; k < mine->n; k++)
        *(packed_exists(mine->prefix[k]) ? &found : &plain) = mine->prefix[k];
    v->packed = found != NULL;
    if (found && plain)
        return packed_mixed(found, plain, e);
    if (found && (q->eod_mask_loss || q->reset_position_ids || q->reset_attention_mask))
        return err_set(e, ERR_USAGE,
                       "%s is a packed set and says itself what ends where: --eod-mask-loss, "
                       "--reset-position-ids and --reset-attention-mask are for other data",
                       found);
    return 0;
}

static int open_packed(struct view *v, const struct blend_list *mine, bool own, struct err *e)
{
    const struct sample_request *q = v->q;
    struct packed_part *part = &v->pack.part[q->part];
    struct packed_config c = {.shared = own ? NULL : mine,
                              .split = q->split,
                              .seq_length = q->seq_length,
                              .seed = q->seed,
                              .limit = v->limit};
    if (own)
        c.own[q->part] = mine;
    c.samples[q->part] = q->samples;
    int code = packed_data_open(&v->pack, &c, e);
    if (!code)
        code = packed_need(&v->pack, q->part, e);
    if (!code && q->samples == SAMPLES_ALL)
        part->samples = part->n;
    return code;
}

static struct feed feed_of(const struct view *v)
{
    return v->packed ? packed_feed(&v->pack, v->q->part) : blend_set_feed(&v->mix, v->q->part);
}

static int open_view(struct view *v, struct err *e)
{
    const struct sample_request *q = v->q;
    struct data_lists l;
    int code = lists_of(q, &l, e);
    const struct blend_list *mine = l.per_part ? &l.own[q->part] : &l.shared;
    if (!code && !mine->n)
        code = err_set(e, ERR_USAGE, "no data is named for the %s part", part_name(q->part));
    if (!code)
        code = find_packed(v, mine, e);
    if (!code)
        code = sample_settle(v, mine->prefix[0], e);
    if (!code && v->packed)
        code = open_packed(v, mine, l.per_part, e);
    if (!code && !v->packed) {
        struct blend_set_config c = {.shared = l.per_part ? NULL : mine,
                                     .split = q->split,
                                     .cache = q->data->cache,
                                     .rules = (enum data_rules)q->data->rules,
                                     .seq_length = q->seq_length,
                                     .seed = q->seed,
                                     .limit = v->limit,
                                     .pad = -1};
        if (l.per_part)
            c.own[q->part] = mine;
        c.samples[q->part] = q->samples;
        code = blend_set_open(&v->mix, &c, e);
    }
    if (!code && !v->packed)
        code = blend_set_need(&v->mix, q->part, e);
    data_lists_finish(&l);
    return code;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void json_ids(struct buf *out, const char *key, const int32_t *id, size_t n)
{
    buf_adds(out, ", ");
    jsonw_key(out, key);
    buf_adds(out, " [");
    for (size_t i = 0; i < n; i++)
        buf_addf(out, i ? ", %" PRId32 : "%" PRId32, id[i]);
    buf_addc(out, ']');
}

static void json_sample(const struct view *v, uint64_t k, const char *prefix, uint64_t at,
                        const struct buf *text, struct buf *out)
{
    const struct batch *b = &v->batch;
    buf_addf(out,
             "{\"part\": \"%s\", \"sample\": %" PRIu64 ", \"data_set\": ", part_name(v->q->part),
             k);
    jsonw_string(out, prefix, strlen(prefix));
    buf_addf(out, ", \"sample_of_data_set\": %" PRIu64, at);
    json_ids(out, "tokens", b->tokens, b->seq_length);
    json_ids(out, "labels", b->labels, b->seq_length);
    buf_adds(out, ", \"loss_mask\": [");
    for (uint32_t i = 0; i < b->seq_length; i++)
        buf_addf(out, i ? ", %g" : "%g", (double)b->loss_mask[i]);
    buf_addc(out, ']');
    json_ids(out, "position_ids", b->position, b->seq_length);
    json_ids(out, "starts", b->start, b->nstretch);
    if (v->work) {
        buf_adds(out, ", \"text\": ");
        jsonw_string(out, text->data ? text->data : "", text->len);
    }
    buf_adds(out, "}\n");
}

static void text_sample(const struct view *v, uint64_t k, const char *prefix, uint64_t at,
                        const struct buf *text, struct buf *out)
{
    const struct batch *b = &v->batch;
    const struct feed f = feed_of(v);
    uint32_t masked = 0;
    for (uint32_t i = 0; i < b->seq_length; i++)
        masked += !(b->loss_mask[i] > 0);
    buf_addf(out,
             "sample %" PRIu64 " of %" PRIu64 " for %s: %" PRIu32 " tokens, number %" PRIu64
             " of %s",
             k, f.count, part_name(v->q->part), b->seq_length, at, prefix);
    if (masked)
        buf_addf(out, ", %" PRIu32 " without loss", masked);
    buf_addc(out, '\n');
    if (b->nstretch > 1) {
        buf_adds(out, "  segments from");
        for (uint32_t s = 0; s < b->nstretch; s++)
            buf_addf(out, " %" PRId32, b->start[s]);
        buf_addc(out, '\n');
    }
    buf_adds(out, " ");
    for (uint32_t i = 0; i < b->seq_length; i++)
        buf_addf(out, b->loss_mask[i] > 0 ? " %" PRId32 : " (%" PRId32 ")", b->tokens[i]);
    buf_addf(out, " -> %" PRId32 "\n", b->labels[b->seq_length - 1]);
    if (!v->work)
        return;
    buf_add(out, text->data, text->len);
    buf_addc(out, '\n');
}

/* The dataset that sample k comes from, and which of its samples (or packed sequences) it is. */
static const char *origin(const struct view *v, uint64_t k, uint64_t *ret_at)
{
    if (!v->packed)
        return blend_set_at(&v->mix.part[v->q->part], k, ret_at)->shard->prefix;
    return packed_order(&v->pack.part[v->q->part], k, ret_at)->shard.prefix;
}

static int sample_show(struct view *v, uint64_t k, struct buf *out, struct err *e)
{
    const struct feed f = feed_of(v);
    struct buf text = {0};
    uint64_t at;
    const char *prefix = origin(v, k, &at);
    int code = batch_fill(&f, &v->layout, k, 0, &v->batch, e);
    if (!code && v->work)
        code = tok_decode(v->q->tok, v->work, v->batch.tokens, v->batch.seq_length, &text, e);
    if (!code && v->q->json)
        json_sample(v, k, prefix, at, &text, out);
    else if (!code)
        text_sample(v, k, prefix, at, &text, out);
    buf_finish(&text);
    return code;
}

static int show_range(struct view *v, const struct number_range *r, struct buf *out, struct err *e)
{
    char where[48];
    uint64_t last = 0;
    snprintf(where, sizeof(where), "the order for %s", part_name(v->q->part));
    int code = range_last(r, feed_of(v).count, "sample", where, &last, e);
    for (uint64_t k = r->first; !code && k <= last; k++)
        code = sample_show(v, k, out, e);
    return code;
}

int sample_run(const struct sample_request *q, struct buf *out, struct err *e)
{
    struct view v = {.q = q};
    int code = open_view(&v, e);
    if (!code) {
        batch_init(&v.batch, 1, q->seq_length);
        v.work = q->tok ? tok_work_create(q->tok) : NULL;
        for (size_t i = 0; i < q->n && !code; i++)
            code = show_range(&v, &q->sample[i], out, e);
        tok_work_destroy(v.work);
        batch_finish(&v.batch);
    }
    blend_set_close(&v.mix);
    packed_data_close(&v.pack);
    return code;
}
