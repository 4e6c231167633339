/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/copy_files.h"

#include "base/core/mem.h"

/* ---- sources ------------------------------------------------------------------------------- */

static int read_safetensors(const struct copy_source *s, struct box_mem to, struct err *e)
{
    const struct st_file *f = s->file;
    return st_read(f, &f->entry[s->index], to, e);
}

int copy_from_safetensors(const struct st_file *s, const struct st_entry *t, const char *name,
                          struct copy_source *ret, struct err *e)
{
    *ret = (struct copy_source){
        .name = name, .read = read_safetensors, .file = s, .index = (size_t)(t - s->entry)};
    if (t->dtype < 0)
        return err_set(e, ERR_DATA, "%.300s has the type %s, which cannot be converted", name,
                       t->dtype_name);
    if (!st_matrix(t, ret->size))
        return err_set(e, ERR_DATA, "%.300s has more than 2^63 elements", name);
    ret->dtype = (enum dtype)t->dtype;
    return 0;
}

static int read_ckpt(const struct copy_source *s, struct box_mem to, struct err *e)
{
    struct ckpt *c = s->noted;
    const struct ckpt_tensor *t = ckpt_tensor_at(c, s->index);
    return ckpt_read_box(c, t->group, t->name, t->rank, t->size, to, e);
}

void copy_from_ckpt(struct ckpt *c, const struct ckpt_tensor *t, struct copy_source *ret)
{
    *ret = (struct copy_source){.name = t->name,
                                .size = {t->size[0], t->size[1]},
                                .dtype = t->dtype,
                                .read = read_ckpt,
                                .noted = c,
                                .index = (size_t)(t - ckpt_tensor_at(c, 0))};
}

/* ---- sinks --------------------------------------------------------------------------------- */

static int write_shard(void *arg, size_t target, uint64_t at, const void *p, size_t n,
                       struct err *e)
{
    return ckpt_shard_write(arg, target, at, p, n, e);
}

static uint64_t place_in_shard(void *arg, size_t target, uint64_t at)
{
    return ckpt_shard_place(arg, target, at);
}

static bool read_shard(void *arg, size_t target, uint64_t at, void *p, size_t n)
{
    return ckpt_shard_read(arg, target, at, p, n);
}

static void keep_shard(void *arg, size_t target, uint64_t at, const void *p, size_t n)
{
    ckpt_shard_keep(arg, target, at, p, n);
}

void copy_to_shard(struct ckpt_shard *s, struct copy_sink *ret, struct copy_target **ret_target)
{
    size_t n = ckpt_shard_entries(s), sorted;
    struct copy_target *t = mem_new(n + 1, sizeof(*t));
    for (size_t i = 0; i < n; i++) {
        struct box b;
        ckpt_shard_entry(s, i, &t[i].name, &t[i].dtype, &b);
        t[i].size[0] = b.count[0];
        t[i].size[1] = b.count[1];
    }
    *ret = (struct copy_sink){.target = t,
                              .n = n,
                              .order = ckpt_shard_order(s, &sorted),
                              .write = write_shard,
                              .place = place_in_shard,
                              .read = read_shard,
                              .keep = keep_shard,
                              .arg = s};
    *ret_target = t;
}

static int write_safetensors(void *arg, size_t target, uint64_t at, const void *p, size_t n,
                             struct err *e)
{
    return st_out_write(arg, target, at, p, n, e);
}

static uint64_t place_in_safetensors(void *arg, size_t target, uint64_t at)
{
    return st_out_offset(arg, target) + at;
}

static bool reread_safetensors(void *arg, size_t target, uint64_t at, void *p, size_t n)
{
    return st_out_read(arg, target, at, p, n);
}

static void keep_safetensors(void *arg, size_t target, uint64_t at, const void *p, size_t n)
{
    (void)arg, (void)target, (void)at, (void)p, (void)n; /* it keeps no sums */
}

void copy_to_safetensors(struct st_out *o, struct copy_sink *ret, struct copy_target **ret_target)
{
    size_t n = st_out_count(o);
    struct copy_target *t = mem_new(n + 1, sizeof(*t));
    for (size_t i = 0; i < n; i++) {
        const struct st_plan *p = st_out_item(o, i);
        int last = p->rank > 1 ? p->rank - 1 : 1;
        t[i] = (struct copy_target){
            .name = p->name, .size = {1, p->rank > 1 ? p->size[last] : 1}, .dtype = p->dtype};
        for (int d = 0; d < last && d < p->rank; d++)
            t[i].size[0] *= p->size[d];
    }
    *ret = (struct copy_sink){.target = t,
                              .n = n,
                              .order = st_out_order(o),
                              .write = write_safetensors,
                              .place = place_in_safetensors,
                              .read = reread_safetensors,
                              .keep = keep_safetensors,
                              .arg = o};
    *ret_target = t;
}
