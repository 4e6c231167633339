/* SPDX-License-Identifier: Apache-2.0 */

/* safetensors files written by ranges. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "base/io/ranges.h"
#include "train/ckpt/safetensors.h"

struct st_out {
    struct outfile f;
    struct arena arena;
    struct st_plan *item;
    size_t n;
    size_t *order;     /* of the file */
    uint64_t *begin;   /* by item, of the data */
    struct buf header; /* with its length */
    uint64_t size;     /* of the file */
    bool in_folder;
};

int st_order(enum dtype a_type, const char *a, enum dtype b_type, const char *b)
{
    int order = dtype_rows[b_type].order - dtype_rows[a_type].order;
    return order ? order : strcmp(a, b);
}

static int item_order(const void *a, const void *b)
{
    const struct st_plan *x = *(const struct st_plan *const *)a;
    const struct st_plan *y = *(const struct st_plan *const *)b;
    return st_order(x->dtype, x->name, y->dtype, y->name);
}

uint64_t st_plan_bytes(const struct st_plan *t)
{
    uint64_t n = dtype_size(t->dtype);
    for (int d = 0; d < t->rank; d++)
        BUG_ON(t->size[d] < 0 || !checked_mul(n, (uint64_t)t->size[d], &n), "the size of '%s'",
               t->name);
    return n;
}

static void add_pairs(struct buf *b, const struct st_pair *pair, size_t n)
{
    if (!n)
        return;
    buf_adds(b, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        buf_adds(b, i ? "," : "");
        jsonw_key(b, pair[i].key);
        jsonw_string(b, pair[i].value, strlen(pair[i].value));
    }
    buf_addc(b, '}');
}

static void plan_header(struct st_out *o, const struct st_pair *pair, size_t npairs)
{
    struct buf *b = &o->header;
    uint64_t at = 0;
    buf_add(b, "\0\0\0\0\0\0\0", 8);
    buf_addc(b, '{');
    add_pairs(b, pair, npairs);
    for (size_t i = 0; i < o->n; i++) {
        const struct st_plan *t = &o->item[o->order[i]];
        buf_adds(b, i || npairs ? "," : "");
        jsonw_key(b, t->name);
        buf_addf(b, "{\"dtype\":\"%s\",\"shape\":[", dtype_name(t->dtype));
        for (int d = 0; d < t->rank; d++)
            buf_addf(b, d ? ",%lld" : "%lld", (long long)t->size[d]);
        o->begin[o->order[i]] = at;
        buf_addf(b, "],\"data_offsets\":[%llu,", (unsigned long long)at);
        at += st_plan_bytes(t);
        buf_addf(b, "%llu]}", (unsigned long long)at);
    }
    buf_addc(b, '}');
    while (b->len % 8)
        buf_addc(b, ' ');
    store_u64(b->data, b->len - 8);
    o->size = b->len + at;
}

static int plan(struct st_out *o, const char *path, const struct st_plan *item, size_t n,
                struct err *e)
{
    const struct st_plan **sorted = mem_new(n + 1, sizeof(*sorted));
    int code = 0;
    o->n = n;
    o->item = arena_take(&o->arena, n + 1, sizeof(*o->item));
    o->order = arena_take(&o->arena, n + 1, sizeof(*o->order));
    o->begin = arena_take(&o->arena, n + 1, sizeof(*o->begin));
    for (size_t i = 0; i < n; i++) {
        BUG_ON(item[i].rank < 0 || item[i].rank > ST_RANK_MAX, "rank %d", item[i].rank);
        o->item[i] = item[i];
        o->item[i].name = arena_strdup(&o->arena, item[i].name);
        sorted[i] = &o->item[i];
    }
    if (n)
        qsort(sorted, n, sizeof(*sorted), item_order);
    for (size_t i = 0; i < n; i++) {
        o->order[i] = (size_t)(sorted[i] - o->item);
        if (!code && i && !strcmp(sorted[i]->name, sorted[i - 1]->name))
            code = err_set(e, ERR_DATA, "%s: two tensors '%.200s'", path, sorted[i]->name);
    }
    free(sorted);
    return code;
}

/* Over what an earlier writer of the folder left of the file, if that is continued. */
static int open_in(struct st_out *o, const char *path, const char *folder, struct err *e)
{
    struct stat st;
    char *base = path_base(path), *tmp = path_join(folder, base);
    uint64_t size = stat(tmp, &st) ? 0 : (uint64_t)st.st_size;
    free(base);
    free(tmp);
    return outfile_resume(&o->f, path, folder, size < o->size ? size : o->size, e);
}

int st_out_begin(const char *path, const char *folder, const struct st_plan *item, size_t n,
                 const struct st_pair *pair, size_t npairs, struct st_out **ret, struct err *e)
{
    struct st_out *o = mem_new(1, sizeof(*o));
    o->f.fd = -1;
    o->in_folder = folder != NULL;
    int code = plan(o, path, item, n, e);
    if (!code) {
        plan_header(o, pair, npairs);
        code = folder ? open_in(o, path, folder, e) : outfile_open(&o->f, path, e);
    }
    if (!code)
        code = outfile_ranges(&o->f, o->size, e);
    if (!code) {
        code = outfile_write_at(&o->f, 0, o->header.data, o->header.len, e);
    }
    if (code)
        st_out_destroy(o);
    else
        *ret = o;
    return code;
}

int st_out_write(struct st_out *o, size_t i, uint64_t at, const void *p, size_t n, struct err *e)
{
    BUG_ON(i >= o->n || at > st_plan_bytes(&o->item[i]) || n > st_plan_bytes(&o->item[i]) - at,
           "bytes %llu to %llu of item %zu", (unsigned long long)at, (unsigned long long)(at + n),
           i);
    return outfile_write_at(&o->f, st_out_offset(o, i) + at, p, n, e);
}

bool st_out_read(const struct st_out *o, size_t i, uint64_t at, void *p, size_t n)
{
    uint64_t from = st_out_offset(o, i) + at;
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(o->f.fd, (char *)p + done, n - done, (off_t)(from + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        done += (size_t)k;
    }
    return true;
}

uint64_t st_out_offset(const struct st_out *o, size_t i)
{
    return o->header.len + o->begin[i];
}

uint64_t st_out_size(const struct st_out *o)
{
    return o->size;
}

const struct buf *st_out_header(const struct st_out *o)
{
    return &o->header;
}

size_t st_out_count(const struct st_out *o)
{
    return o->n;
}

const struct st_plan *st_out_item(const struct st_out *o, size_t i)
{
    BUG_ON(i >= o->n, "item %zu of %zu", i, o->n);
    return &o->item[i];
}

const size_t *st_out_order(const struct st_out *o)
{
    return o->order;
}

int st_out_end(struct st_out *o, struct err *e)
{
    int code = outfile_sync(&o->f, e);
    if (code)
        return code;
    posix_fadvise(o->f.fd, 0, 0, POSIX_FADV_DONTNEED); /* nobody reads it soon */
    if (!o->in_folder)
        return outfile_commit(&o->f, e);
    outfile_leave(&o->f);
    return 0;
}

void st_out_destroy(struct st_out *o)
{
    if (!o)
        return;
    outfile_abort(&o->f);
    buf_finish(&o->header);
    arena_finish(&o->arena);
    free(o);
}
