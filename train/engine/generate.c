/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"

void decoder_init(struct decoder *d, struct rank *r)
{
    size_t v = (size_t)r->config.spec.vocab;
    BUG_ON(r->config.use != MODEL_DECODE, "a decoder needs a rank opened for decoding");
    *d = (struct decoder){.rank = r};
    d->logits = slab_2d(&r->slab[SLAB_WORKSPACE], r->config.real, 1, (int64_t)v);
    d->host = mem_new(v, sizeof(*d->host));
    d->order = mem_new(v, sizeof(*d->order));
    d->seen = mem_new((size_t)r->config.seq_length, sizeof(*d->seen));
}

void decoder_finish(struct decoder *d)
{
    free(d->host);
    free(d->order);
    free(d->seen);
    *d = (struct decoder){0};
}

int64_t decoder_room(const struct decoder *d)
{
    return d->rank->config.seq_length - d->past;
}

/* Ids, their positions, and one sequence whose queries stand behind what the cache holds. */
static void stage(struct decoder *d, const int32_t *id, int64_t n)
{
    struct rank *r = d->rank;
    struct acts *a = &r->model.a;
    int32_t *position = mem_new((size_t)n, sizeof(*position));
    const int32_t q_start[2] = {0, (int32_t)n}, k_start = 0, k_len = (int32_t)(d->past + n);
    for (int64_t i = 0; i < n; i++)
        position[i] = (int32_t)(d->past + i);
    size_t bytes = (size_t)n * sizeof(*id);
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, a->id.data, id, bytes);
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, a->position.data, position, bytes);
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, a->q_start.data, q_start, sizeof(q_start));
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, a->k_start.data, &k_start, sizeof(k_start));
    r->dev.fn->copy(&r->dev, STREAM_COMPUTE, a->k_len.data, &k_len, sizeof(k_len));
    r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
    free(position);
}

/* Whether rotary positions change with the next n ids, those of the cache, too: longrope's once,
 * those of dynamic scaling with each id. */
static bool turns_long(const struct decoder *d, int64_t n)
{
    const struct spec *s = &d->rank->config.spec;
    bool once = s->rope_scaling == SPEC_ROPE_LONG;
    return spec_rope_by_length(s) && d->past + n > s->rope_old_length &&
           (!once || d->past <= s->rope_old_length);
}

int decoder_feed(struct decoder *d, const int32_t *id, int64_t n, struct err *e)
{
    struct rank *r = d->rank;
    int64_t vocab = r->config.spec.vocab;
    if (n < 1 || n > decoder_room(d))
        return err_set(e, ERR_USAGE, "%lld tokens, but the model has room for %lld more",
                       (long long)n, (long long)decoder_room(d));
    for (int64_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= vocab)
            return err_set(e, ERR_DATA, "token id %d is outside the model's vocabulary of %lld",
                           id[i], (long long)vocab);
    memcpy(d->seen + d->past, id, (size_t)n * sizeof(*id));
    if (turns_long(d, n)) { /* as without a cache: the whole text anew */
        n += d->past;
        d->past = 0;
        id = d->seen;
    }
    struct model_pass p = {.n = n, .sequences = 1, .max_len = n, .past = d->past};
    if (!d->past && spec_rope_by_length(&r->config.spec))
        model_fill_tables(&r->model, n);
    stage(d, id, n);
    model_forward(&r->model, &p);
    model_logits(&r->model, n - 1, 1, d->logits);
    d->past += n;
    rank_fetch(r, d->host, d->logits);
    if (r->config.real == DTYPE_F32) /* widen in place, from the end */
        for (int64_t i = vocab; i-- > 0;)
            d->host[i] = (double)((const float *)(const void *)d->host)[i];
    return dev_fault(&r->dev, e);
}

/* ---- sampling ---------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b, void *arg)
{
    const double *logits = arg;
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    if (logits[i] != logits[k])
        return logits[i] > logits[k] ? -1 : 1;
    return i < k ? -1 : 1; /* of equal ones the smaller id, so that the order is one */
}

/* exp(logit / temperature) in place of the logit, for the first n of the order; returns
 * their sum. */
static double generate_weigh(double *logits, const int32_t *order, int64_t n, double temperature)
{
    double top = logits[order[0]], sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += logits[order[i]] = exp((logits[order[i]] - top) / temperature);
    return sum;
}

int32_t sample_id(double *logits, int64_t n, int32_t *order, const struct sampling *s,
                  uint64_t position)
{
    for (int64_t i = 0; i < n; i++)
        order[i] = (int32_t)i;
    qsort_r(order, (size_t)n, sizeof(*order), larger_first, logits);
    if (s->temperature <= 0)
        return order[0];
    int64_t kept = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double sum = generate_weigh(logits, order, kept, s->temperature);
    if (s->top_p < 1) { /* the fewest of the likeliest that together reach top_p */
        double want = s->top_p * sum, have = 0;
        int64_t k = 0;
        while (k < kept && have < want)
            have += logits[order[k++]];
        kept = k > 0 ? k : 1;
        sum = have > 0 ? have : logits[order[0]];
    }
    double u = rng_uniform(s->seed, RNG_SAMPLE, 0, position) * sum;
    for (int64_t i = 0; i < kept; i++) {
        u -= logits[order[i]];
        if (u < 0)
            return order[i];
    }
    return order[kept - 1];
}

int32_t decoder_sample(struct decoder *d, const struct sampling *s, uint64_t position)
{
    return sample_id(d->host, d->rank->config.spec.vocab, d->order, s, position);
}
