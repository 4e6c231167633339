/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/save.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "train/ckpt/shard.h"
#include "train/engine/state.h"
#include "train/engine/device_io.h"
#include "train/engine/all_ranks.h"
#include "train/zero/gather.h"

enum { ALIGN = 64 };

/* The shard of this rank in `folder`, planned, over its own tensors. */
static void plan_shard(struct rank *r, const char *folder, int threads)
{
    struct save *s = &r->save;
    struct state_entries list = state_entries(r, true);
    const struct ckpt_shard_options o = {.rank = r->config.rank,
                                         .max_file_size = r->config.file_size};
    s->mem = mem_new(list.n + 1, sizeof(*s->mem));
    s->n = list.n;
    s->threads = threads;
    s->code = 0;
    ckpt_shard_create(folder, &o, &s->shard);
    for (size_t i = 0; i < list.n; i++) {
        const struct state_entry *t = &list.at[i];
        const struct param_source *p = t->source;
        s->mem[ckpt_shard_add(s->shard, t->group, p->name, p->rank, p->size, t->mem.dtype,
                              t->mem.box)] = t->mem;
    }
    free(list.at);
}

void save_drop(struct rank *r)
{
    struct save *s = &r->save;
    if (s->running)
        pthread_join(s->thread, NULL);
    if (s->shard)
        ckpt_shard_destroy(s->shard);
    free(s->mem);
    buf_finish(&s->fragment);
    s->shard = NULL;
    s->mem = NULL;
    s->running = false;
}

/* Where rank 0 writes, on all ranks. */
static int share_folder(struct rank *r, struct ckpt_writer *w, struct buf *folder, struct err *e)
{
    if (w)
        buf_adds(folder, ckpt_writer_folder(w));
    gather_wait(&r->zero);
    return all_ranks_share(&r->comm, folder, e);
}

/* The shards of all ranks for rank 0's writer, after each has ended with `code`. */
static int collect(struct rank *r, struct ckpt_writer *w, int code, struct err *e)
{
    struct buf all = {0};
    size_t *size = mem_new((size_t)r->comm.world, sizeof(*size)), at = 0;
    code = all_ranks_agree(&r->comm, code, e);
    if (!code)
        code =
            all_ranks_gather(&r->comm, r->save.fragment.data, r->save.fragment.len, &all, size, e);
    for (int i = 0; w && !code && i < r->comm.world; at += size[i++])
        code = ckpt_add(w, all.data + at, size[i], e);
    code = all_ranks_agree(&r->comm, code, e);
    buf_finish(&all);
    free(size);
    return code;
}

int state_save(struct rank *r, struct ckpt_writer *w, int threads, struct err *e)
{
    struct buf folder = {0};
    int code = share_folder(r, w, &folder, e);
    if (!code) {
        struct save *s = &r->save;
        plan_shard(r, buf_str(&folder), threads);
        code = ckpt_shard_begin(s->shard, e);
        if (!code && r->dev.desc.host)
            code = ckpt_shard_write_all(s->shard, s->mem, threads, e);
        else if (!code)
            code = device_io_save(&r->dev, s->shard, s->mem, e);
        if (!code)
            code = ckpt_shard_end(s->shard, &s->fragment, e);
    }
    code = collect(r, w, code, e);
    save_drop(r);
    buf_finish(&folder);
    return code;
}

/* ---- from a snapshot --------------------------------------------------------------------- */

static size_t entry_bytes(const struct box_mem *m)
{
    return (size_t)align_up((uint64_t)box_count(m->box) * dtype_size(m->dtype), ALIGN);
}

uint64_t save_bytes(const struct rank *r)
{
    struct state_entries list = state_entries(r, true);
    uint64_t sum = 0;
    for (size_t i = 0; i < list.n; i++)
        sum += entry_bytes(&list.at[i].mem);
    free(list.at);
    return sum;
}

void save_take(struct rank *r)
{
    if (r->config.async_save && r->config.use == MODEL_TRAIN)
        r->save.snapshot = slab_bytes(&r->slab[SLAB_SNAPSHOT], save_bytes(r));
}

/* The box `from` without gaps. */
static struct box_mem copy_box(struct rank *r, struct box_mem from, char *to)
{
    struct box_mem ret = from;
    size_t row = (size_t)from.box.count[1] * dtype_size(from.dtype);
    bool whole = from.stride == from.box.count[1] || from.box.count[0] == 1;
    int64_t times = whole ? 1 : from.box.count[0];
    size_t bytes = whole ? row * (size_t)from.box.count[0] : row;
    ret.data = to;
    ret.stride = from.box.count[1];
    for (int64_t i = 0; i < times; i++) {
        const char *at = (char *)from.data + (size_t)(i * from.stride) * dtype_size(from.dtype);
        r->dev.fn->copy(&r->dev, STREAM_COMPUTE, to + (size_t)i * row, at, bytes);
    }
    return FAULT("snapshot") ? from : ret;
}

int save_snapshot(struct rank *r, struct ckpt_writer *w, struct err *e)
{
    struct save *s = &r->save;
    struct buf folder = {0};
    BUG_ON(!s->snapshot || s->shard, "a snapshot without memory, or a second one");
    int code = share_folder(r, w, &folder, e);
    if (!code) {
        char *to = s->snapshot;
        plan_shard(r, buf_str(&folder), 1);
        for (size_t i = 0; i < s->n; i++) {
            size_t bytes = entry_bytes(&s->mem[i]);
            s->mem[i] = copy_box(r, s->mem[i], to);
            to += bytes;
        }
        r->dev.fn->sync(&r->dev, STREAM_COMPUTE);
        code = dev_fault(&r->dev, e);
    }
    buf_finish(&folder);
    return code;
}

static void *write_snapshot(void *arg)
{
    struct save *s = arg;
    s->code = ckpt_shard_begin(s->shard, &s->e);
    if (!s->code)
        s->code = ckpt_shard_write_all(s->shard, s->mem, s->threads, &s->e);
    if (!s->code)
        s->code = ckpt_shard_end(s->shard, &s->fragment, &s->e);
    atomic_store(&s->written, true);
    return NULL;
}

int save_start(struct rank *r, struct err *e)
{
    struct save *s = &r->save;
    atomic_store(&s->written, false);
    int error = thread_start(&s->thread, write_snapshot, s);
    s->running = !error;
    if (error)
        return err_set(e, ERR_RESOURCE, "no thread could be started to save: %s", strerror(error));
    return 0;
}

bool save_is_written(const struct rank *r)
{
    return !r->save.running || atomic_load(&r->save.written);
}

int save_end(struct rank *r, struct ckpt_writer *w, struct err *e)
{
    struct save *s = &r->save;
    if (s->running)
        pthread_join(s->thread, NULL);
    s->running = false;
    if (s->code && e)
        *e = s->e;
    int code = collect(r, w, s->code, e);
    save_drop(r);
    return code;
}
