/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cuda/attention_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "train/ops/cuda/attend.h"
#include "train/ops/cuda/flash.h"
#include "train/ops/cuda/flash_f32.h"
#include "train/ops/cuda/kernels.h"

/* ---- rows --------------------------------------------------------------------------------------
 */

static const char *tiles_lack(const struct attention_call *c)
{
    int64_t dim = c->fwd->q.size[2];
    if (dtype_size(c->fwd->q.dtype) != 2)
        return "fp32";
    if (dim % 8)
        return "heads that are no multiple of 8";
    if (dim > 128)
        return "heads wider than 128";
    bool taken = c->bwd ? flash_takes_bwd(c->bwd) : flash_takes(c->fwd);
    return taken ? NULL : "rows that do not begin at multiples of 16 bytes";
}

static const char *wgmma_lacks(const struct attention_call *c)
{
    if (c->fwd->cap > 0)
        return "cap";
    return flash_by_wgmma(c->desc, c->fwd) ? tiles_lack(c)
                                           : "GPU but those of compute capability 9.0";
}

/*
 * The deterministic backward of cuDNN does the work of full attention for any window; that of our
 * own kernels falls with it, and they win up to about a quarter of the sequence.
 */
static const char *cudnn_lacks(const struct attention_call *c)
{
    const struct attention_args *a = c->fwd;
    bool narrow = a->window && a->window * 4 <= a->max_len && !a->any_order;
    const char *lacks = attend_lacks(c->desc, a);
    return !lacks && narrow && !wgmma_lacks(c)
               ? "windows up to a quarter of the sequence but with --no-deterministic"
               : lacks;
}

static const char *f32_lacks(const struct attention_call *c, enum f32_products products)
{
    int64_t dim = c->fwd->q.size[2];
    if (c->fwd->q.dtype != DTYPE_F32)
        return "types of 16 bits";
    if (dim % 4)
        return "heads that are no multiple of 4";
    if (dim > 256)
        return "heads wider than 256";
    bool taken = c->bwd ? flash_f32_takes_bwd(c->desc, c->bwd, products)
                        : flash_f32_takes(c->desc, c->fwd, products);
    return taken ? NULL
                 : "rows that do not begin at multiples of 16 bytes, or heads so wide on this GPU";
}

static const char *own_tf32_lacks(const struct attention_call *c)
{
    const char *lacks = f32_lacks(c, F32_TF32);
    return !lacks && !c->tf32 ? "exact products" : lacks;
}

static const char *own_fp32_lacks(const struct attention_call *c)
{
    return f32_lacks(c, F32_EXACT);
}

static const char *nothing_lacks(const struct attention_call *c)
{
    (void)c;
    return NULL;
}

static void run_flash(struct ops *o, const void *args, void *scratch)
{
    (void)scratch;
    flash_attention(o->dev, args, FLASH_FASTEST);
}

static void run_flash_bwd(struct ops *o, const void *args, void *scratch)
{
    flash_attention_bwd(o->dev, args, FLASH_FASTEST, scratch);
}

static void run_tf32(struct ops *o, const void *args, void *scratch)
{
    (void)scratch;
    flash_f32_attention(o->dev, args, F32_TF32);
}

static void run_tf32_bwd(struct ops *o, const void *args, void *scratch)
{
    flash_f32_attention_bwd(o->dev, args, F32_TF32, scratch);
}

static void run_fp32(struct ops *o, const void *args, void *scratch)
{
    (void)scratch;
    flash_f32_attention(o->dev, args, F32_EXACT);
}

static void run_fp32_bwd(struct ops *o, const void *args, void *scratch)
{
    flash_f32_attention_bwd(o->dev, args, F32_EXACT, scratch);
}

/* Fastest first. Times: of tests/bench/RESULTS.md, "Ops on a GPU"; of those in fp32,
 * to cuDNN in bf16. */
static const struct attention_row rows[] = {
    [ATTENTION_CUDNN] = {"cuDNN", 1, false, cudnn_lacks, NULL, NULL},
    [ATTENTION_OWN] = {"own wgmma", 1.7, false, wgmma_lacks, run_flash, run_flash_bwd},
    {"own tensor cores", 4.5, false, tiles_lack, run_flash, run_flash_bwd},
    {"own TF32", 3.5, false, own_tf32_lacks, run_tf32, run_tf32_bwd},
    {"own fp32", 7, false, own_fp32_lacks, run_fp32, run_fp32_bwd},
    {"own plain loops", 300, true, nothing_lacks, cuda_attention, cuda_attention_bwd},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

const struct attention_row *attention_row_of(const struct attention_call *c, int first)
{
    int i = first;
    while (rows[i].lacks(c))
        i++;
    return &rows[i];
}

bool attention_row_is_cudnn(const struct attention_row *r)
{
    return r == &rows[ATTENTION_CUDNN];
}

size_t attention_own_scratch(const struct dev_desc *d, const struct attention_bwd_args *b)
{
    size_t loops = cuda_attention_bwd_scratch(d, b); /* of the 16-bit rows, too: a row's delta */
    size_t f32 = flash_f32_bwd_scratch(b);
    return f32 > loops ? f32 : loops;
}

/* ---- uses --------------------------------------------------------------------------------------
 */

struct attention_use {
    const struct attention_row *row;
    char by[48], form[96], lacks[256];
    bool *seen; /* [most] layers; those without a number are the first */
    int most, layers;
};

static void describe_call(const struct attention_call *c, char *ret, size_t size)
{
    const struct attention_args *a = c->fwd;
    bool window = a->window && a->window < a->max_len;
    struct buf b = {0};
    if (window)
        buf_addf(&b, "window %lld", (long long)a->window);
    else
        buf_adds(&b, "full");
    if (a->cap > 0)
        buf_adds(&b, ", capped");
    if (a->drop.p > 0)
        buf_addf(&b, ", dropout %g", (double)a->drop.p);
    if (!a->even)
        buf_adds(&b, ", rows of any length");
    snprintf(ret, size, "%s", buf_str(&b));
    buf_finish(&b);
}

/* Why the rows before this one do not take the call. */
static void tell_lacks(const struct attention_row *r, const struct attention_call *c,
                       const char *why, char *ret, size_t size)
{
    struct buf b = {0};
    for (const struct attention_row *p = rows; p < r; p++) {
        const char *lack = p->lacks(c);
        buf_adds(&b, b.len ? "; " : "");
        if (lack)
            buf_addf(&b, "%s takes no %s", p->name, lack);
        else
            buf_addf(&b, "%s: %s", p->name, why ? why : "not there");
    }
    snprintf(ret, size, "%s", buf_str(&b));
    buf_finish(&b);
}

static struct attention_use *use_of(struct attention_uses *u, const struct attention_use *like)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->at[i].row == like->row && !strcmp(u->at[i].form, like->form))
            return &u->at[i];
    u->at = mem_grow(u->at, u->n + 1, sizeof(*u->at));
    u->at[u->n] = *like;
    if (!strstr(u->names, like->by)) {
        size_t at = strlen(u->names);
        snprintf(u->names + at, sizeof(u->names) - at, "%s%s", at ? ", " : "", like->by);
    }
    return &u->at[u->n++];
}

static void see(struct attention_use *u, int layer)
{
    int most = u->most;
    if (layer < 0)
        layer = 0;
    if (layer >= most) {
        u->most = 2 * layer + 8;
        u->seen = mem_grow(u->seen, (size_t)u->most, sizeof(*u->seen));
        memset(u->seen + most, 0, (size_t)(u->most - most) * sizeof(*u->seen));
    }
    u->layers += !u->seen[layer];
    u->seen[layer] = true;
}

void attention_uses_add(struct attention_uses *u, const struct attention_row *r,
                        const struct attention_call *c, int layer, const char *version,
                        const char *why)
{
    struct attention_use one = {.row = r};
    if (attention_row_is_cudnn(r) && version)
        snprintf(one.by, sizeof(one.by), "%s", version);
    else
        snprintf(one.by, sizeof(one.by), "%s", r->name);
    describe_call(c, one.form, sizeof(one.form));
    tell_lacks(r, c, why, one.lacks, sizeof(one.lacks));
    see(use_of(u, &one), layer);
}

bool attention_uses_get(const struct attention_uses *u, size_t i, struct ops_served *ret)
{
    if (i >= u->n)
        return false;
    const struct attention_use *one = &u->at[i];
    *ret = (struct ops_served){.by = one->by,
                               .form = one->form,
                               .lacks = one->lacks,
                               .layers = one->layers,
                               .times = one->row->times,
                               .loops = one->row->loops};
    return true;
}

void attention_uses_finish(struct attention_uses *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->at[i].seen);
    free(u->at);
    *u = (struct attention_uses){0};
}
