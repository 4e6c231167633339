/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/slab.h"

#include "base/core/bytes.h"

enum { ALIGN = 256, UNBOUND = 1 << 20 };

void slab_init(struct slab *s, const char *name, enum place place)
{
    *s = (struct slab){.name = name, .place = place};
}

void *slab_bytes(struct slab *s, size_t bytes)
{
    size_t at = s->used;
    s->used = align_up(at + bytes, ALIGN);
    if (s->used > s->peak)
        s->peak = s->used;
    BUG_ON(s->base && s->used > s->size, "slab %s: %zu bytes taken of %zu bound", s->name, s->used,
           s->size);
    return s->base ? s->base + at : (void *)(uintptr_t)(UNBOUND + at);
}

struct tensor slab_take(struct slab *s, enum dtype d, int rank, const int64_t *size)
{
    struct tensor t = tensor_nd(NULL, d, rank, size);
    t.data = slab_bytes(s, tensor_bytes(t));
    return t;
}

struct tensor slab_1d(struct slab *s, enum dtype d, int64_t n)
{
    return slab_take(s, d, 1, &n);
}

struct tensor slab_2d(struct slab *s, enum dtype d, int64_t rows, int64_t cols)
{
    return slab_take(s, d, 2, (const int64_t[]){rows, cols});
}

int slab_bind(struct slab *s, struct dev *d, struct err *e)
{
    BUG_ON(s->base, "slab %s is bound already", s->name);
    void *p = NULL;
    size_t bytes = s->peak ? s->peak : ALIGN;
    int code = d->fn->alloc(d, s->place, bytes, &p, e);
    if (code)
        return err_wrap(e, "slab %s", s->name);
    d->fn->zero(d, STREAM_COMPUTE, p, bytes);
    s->base = p;
    s->size = bytes;
    s->used = 0;
    return 0;
}

void slab_release(struct slab *s, struct dev *d)
{
    if (s->base)
        d->fn->release(d, s->place, s->base);
    s->base = NULL;
    s->size = s->used = s->peak = 0;
}
