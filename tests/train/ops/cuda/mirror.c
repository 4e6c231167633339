/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ops/cuda/mirror.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { ALIGN = 256 };

void mirror_open(struct mirror *m, size_t workspace)
{
    struct err e;
    *m = (struct mirror){0};
    if (dev_cuda_open(&m->dev, 0, &e))
        t_skip("%s", e.msg);
    slab_init(&m->workspace, "workspace", PLACE_DEVICE);
    slab_bytes(&m->workspace, workspace);
    T_OK(slab_bind(&m->workspace, &m->dev, &e), &e);
    T_OK(
        ops_cuda_open(&m->ops, &m->dev, &m->workspace, &(struct ops_config){.real = DTYPE_F32}, &e),
        &e);
}

void mirror_close(struct mirror *m)
{
    if (!m->dev.fn)
        return;
    ops_close(&m->ops);
    m->dev.fn->release(&m->dev, PLACE_DEVICE, m->memory);
    slab_release(&m->workspace, &m->dev);
    dev_close(&m->dev);
}

/* Where piece i of a world begins in device memory; the end of all for i = pieces. */
static size_t offset_of(const struct world *w, int i)
{
    size_t at = 0;
    for (int k = 0; k < i; k++)
        at += (w->piece[k].bytes + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

static void make_room(struct mirror *m, size_t bytes)
{
    struct err e;
    void *p;
    if (bytes <= m->size)
        return;
    m->dev.fn->release(&m->dev, PLACE_DEVICE, m->memory);
    m->memory = NULL;
    T_OK(m->dev.fn->alloc(&m->dev, PLACE_DEVICE, bytes, &p, &e), &e);
    m->memory = p;
    m->size = bytes;
}

void mirror_upload(struct mirror *m, const struct world *w)
{
    make_room(m, offset_of(w, w->pieces));
    for (int i = 0; i < w->pieces; i++)
        m->dev.fn->copy(&m->dev, STREAM_COMPUTE, m->memory + offset_of(w, i), w->piece[i].memory,
                        w->piece[i].bytes);
}

void mirror_download(struct mirror *m, struct world *w)
{
    struct err e;
    for (int i = 0; i < w->pieces; i++)
        m->dev.fn->copy(&m->dev, STREAM_COMPUTE, w->piece[i].memory, m->memory + offset_of(w, i),
                        w->piece[i].bytes);
    m->dev.fn->sync(&m->dev, STREAM_COMPUTE);
    T_OK(dev_fault(&m->dev, &e), &e);
}

/* The address in device memory of one in a piece of the world; NULL for any other. */
static void *moved(const struct mirror *m, const struct world *w, const void *p)
{
    for (int i = 0; i < w->pieces; i++) {
        size_t at = (uintptr_t)p - (uintptr_t)w->piece[i].memory;
        if ((uintptr_t)p >= (uintptr_t)w->piece[i].memory && at < w->piece[i].bytes)
            return m->memory + offset_of(w, i) + at;
    }
    return NULL;
}

struct tensor mirror_tensor(const struct mirror *m, const struct world *w, struct tensor t)
{
    t.data = t.data ? moved(m, w, t.data) : NULL;
    return t;
}

/* The arguments hold no other addresses than those of the world's tensors. */
static void move_args(const struct mirror *m, const struct world *w, struct call *c)
{
    char *args = (char *)&c->u;
    for (size_t i = 0; i + sizeof(void *) <= sizeof(c->u); i += sizeof(void *)) {
        void *p, *to;
        memcpy(&p, args + i, sizeof(p));
        to = p ? moved(m, w, p) : NULL;
        if (to)
            memcpy(args + i, &to, sizeof(to));
    }
}

void mirror_run(struct mirror *m, struct world *w, const struct call *c)
{
    struct call there = *c;
    const struct op_entry *entry = &m->ops.entry[c->op];
    size_t bytes = entry->scratch ? entry->scratch(&m->dev.desc, &c->u) : 0;
    T_CHECK(bytes <= m->workspace.size);
    mirror_upload(m, w);
    if (bytes)
        op_fill(&m->ops, &(struct fill_args){
                             .y = tensor_1d(m->workspace.base, DTYPE_F32, (int64_t)(bytes + 3) / 4),
                             .value = NAN});
    move_args(m, w, &there);
    call_run(&m->ops, &there);
    mirror_download(m, w);
    world_guarded(w);
}
