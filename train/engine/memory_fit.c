/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/memory_fit.h"

#include <pthread.h>
#include <string.h>

#include "train/comm/footprint.h"

/* What is small and not counted one by one: the program itself, buffers of files, tables, the
 * allocator's own. */
enum { SMALL_TOUCHED = 14 << 20, SMALL_MAPPED = 18 << 20, THREADS_TO_COME = 2 };

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t stack_size(void)
{
    pthread_attr_t a;
    size_t n = 8 << 20;
    if (!pthread_attr_init(&a)) {
        pthread_attr_getstacksize(&a, &n);
        pthread_attr_destroy(&a);
    }
    return n;
}

static uint64_t slabs(const struct rank *r, int from, int to)
{
    uint64_t sum = 0;
    for (int i = from; i <= to; i++)
        sum = plus(sum, r->slab[i].peak);
    return sum;
}

static uint64_t device_slabs(const struct rank *r)
{
    uint64_t sum = 0;
    for (int i = 0; i < SLAB_COUNT; i++)
        sum = plus(sum, r->slab[i].place == PLACE_DEVICE ? r->slab[i].peak : 0);
    return sum;
}

uint64_t memory_fit_communication(const struct rank *r)
{
    struct mesh m = r->config.layout.mesh;
    if (!r->dev.desc.host)
        return comm_nccl_bytes(m, r->config.rank, nccl_buffers());
    return r->plan.staging.most;
}

/* What a device with memory of its own is to hold. */
static uint64_t device_need(const struct rank *r)
{
    return plus(device_slabs(r), memory_fit_communication(r));
}

struct memory_fit_need memory_fit_need(const struct rank *r)
{
    struct memory_fit_need n;
    uint64_t elsewhere = r->dev.desc.host ? 0 : device_slabs(r);
    n.touched =
        plus(slabs(r, 0, SLAB_COUNT - 1) - elsewhere, plus(r->config.beside, SMALL_TOUCHED));
    n.touched = plus(n.touched, rank_fill_bytes(r));
    if (r->dev.desc.host)
        n.touched = plus(n.touched, memory_fit_communication(r));
    n.mapped = plus(n.touched, plus(r->config.mapped, SMALL_MAPPED));
    n.mapped = plus(n.mapped, THREADS_TO_COME * stack_size());
    return n;
}

/* "512.0 MiB", "1.23 GiB" */
static void add_bytes(struct buf *b, uint64_t bytes)
{
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes / 1024;
    int u = 0;
    for (; v >= 1000 && u < 4; u++)
        v /= 1024;
    buf_addf(b, v < 10 ? "%.2f %s" : "%.1f %s", v, unit[u]);
}

static uint64_t touched(const struct rank *r)
{
    return memory_fit_need(r).touched;
}

static uint64_t mapped(const struct rank *r)
{
    return memory_fit_need(r).mapped;
}

/* What of a rank's need a limit is compared with. */
typedef uint64_t need_fn(const struct rank *r);

bool memory_fit_lower_batch(struct rank_config *c, int64_t from)
{
    int64_t now = c->micro_batch, b = now - 1;
    while (b > 0 && from % b)
        b--;
    if (b < 1)
        return false;
    c->micro_batch = b;
    c->micros = c->micros * now / b;
    c->beside = c->beside / (uint64_t)now * (uint64_t)b;
    c->merge_tokens = 0;
    return true;
}

/* The largest smaller micro-batch with which a plan of the rank fits; 0 if none does. */
static int64_t smaller_batch(const struct rank *r, need_fn *need, const struct mem_limit *l)
{
    struct rank_config c = r->config;
    bool fits = false;
    while (!fits && memory_fit_lower_batch(&c, r->config.micro_batch)) {
        struct rank one;
        fits = !rank_plan(&one, &c, &r->dev.desc, NULL) && need(&one) <= l->free;
        rank_close(&one);
    }
    return fits ? c.micro_batch : 0;
}

static void advise(const struct rank *r, need_fn *need, const struct mem_limit *l, struct err *e)
{
    const struct rank_config *c = &r->config;
    bool batch = c->use != MODEL_DECODE;
    int64_t b = batch ? smaller_batch(r, need, l) : 0;
    uint64_t grows = plus(slabs(r, SLAB_ACTIVATIONS, SLAB_STAGING), c->beside);
    bool model_fits = need(r) - grows <= l->free;
    struct buf all = {0};
    if (b)
        buf_addf(&all, "lower --micro-batch-size from %lld to %lld", (long long)c->micro_batch,
                 (long long)b);
    else if (batch && model_fits && c->micro_batch > 1)
        buf_addf(&all, "lower --micro-batch-size (%lld) and --seq-length (%lld)",
                 (long long)c->micro_batch, (long long)c->seq_length);
    else if (batch && model_fits)
        buf_addf(&all, "lower --seq-length (%lld)", (long long)c->seq_length);
    else if (c->use == MODEL_TRAIN)
        buf_addf(&all, "lower --num-layers (%lld) or --hidden-size (%lld)",
                 (long long)c->spec.layers, (long long)c->spec.hidden);
    else
        buf_adds(&all, "this model needs a larger machine");
    if (l->name[0] == 'u')
        buf_addf(&all, ", or raise `%s`", l->name);
    err_hint(e, "%s", buf_str(&all));
    buf_finish(&all);
}

static int too_large(const struct rank *r, need_fn *need, const struct mem_limit *l, struct err *e)
{
    if (!e)
        return ERR_RESOURCE;
    struct buf b = {0};
    buf_adds(&b, "not enough memory: ");
    add_bytes(&b, need(r));
    buf_adds(&b, " are needed (");
    for (int i = 0; i < SLAB_STAGING; i++) {
        buf_addf(&b, "%s%s ", i ? ", " : "", r->slab[i].name);
        add_bytes(&b, r->slab[i].peak);
    }
    if (memory_fit_communication(r)) {
        buf_adds(&b, ", communication ");
        add_bytes(&b, memory_fit_communication(r));
    }
    buf_adds(&b, "), and ");
    add_bytes(&b, l->free);
    buf_adds(&b, " of ");
    add_bytes(&b, l->total);
    buf_addf(&b, " are free under the limit of %s", l->name);
    err_set(e, ERR_RESOURCE, "%s", buf_str(&b));
    buf_finish(&b);
    advise(r, need, l, e);
    return ERR_RESOURCE;
}

/* The slabs of a device with memory of its own. */
static int fit_device(const struct rank *r, struct err *e)
{
    const struct dev_desc *d = &r->dev.desc;
    struct mem_limit l = {.total = d->memory, .free = d->memory_free};
    memcpy(l.name, d->name, sizeof(l.name));
    return device_need(r) > l.free ? too_large(r, device_need, &l, e) : 0;
}

void memory_fit_describe(const struct rank *r, struct buf *out)
{
    const struct dev_desc *d = &r->dev.desc;
    uint64_t before = d->host ? 0 : d->memory - d->memory_free;
    if (!before)
        return;
    add_bytes(out, before);
    buf_addf(out, " of %s are taken by the driver and other programs; with the slabs%s ", d->name,
             memory_fit_communication(r) ? " and communication" : "");
    add_bytes(out, plus(before, device_need(r)));
    buf_adds(out, " of ");
    add_bytes(out, d->memory);
}

int memory_fit_check(const struct rank *r, const struct mem_limit *limit, int n, struct err *e)
{
    struct memory_fit_need need = memory_fit_need(r);
    const struct mem_limit *l = NULL;
    int code = r->dev.desc.host ? 0 : fit_device(r, e);
    if (code)
        return code;
    for (int i = 0; i < n; i++) {
        uint64_t wanted = limit[i].addresses ? need.mapped : need.touched;
        if (wanted > limit[i].free && (!l || limit[i].free < l->free))
            l = &limit[i];
    }
    return l ? too_large(r, l->addresses ? mapped : touched, l, e) : 0;
}
