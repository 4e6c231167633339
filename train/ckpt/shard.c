/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/shard.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/each.h"
#include "train/ckpt/manifest.h"
#include "train/ckpt/safetensors.h"
#include "train/tensor/fingerprint.h"

/* A range of rows of an entry, in one file. */
struct slice {
    size_t entry, file, item;
    int64_t row, rows;
    const char *name;
};

struct entry {
    const char *group, *name;
    int rank;
    int64_t size[2];
    enum dtype dtype;
    struct box box;
    size_t slice, slices; /* in the order of rows */
    uint64_t written;
    struct fingerprint sum;
};

struct shard_file {
    const char *name, *group;
    struct st_out *out;
    struct fingerprint *piece;
    size_t first, n; /* slices, by the shard's `sorted` */
};

struct ckpt_shard {
    char *folder;
    struct ckpt_shard_options o;
    struct arena arena;
    struct entry *entry;
    size_t n;
    struct slice *slice;
    size_t nslices;
    size_t *order; /* entries in file order */
    struct shard_file *file;
    size_t nfiles;
    bool begun;
    pthread_mutex_t lock; /* of all sums and of `written` */
};

void ckpt_shard_create(const char *folder, const struct ckpt_shard_options *o,
                       struct ckpt_shard **ret)
{
    struct ckpt_shard *s = mem_new(1, sizeof(*s));
    BUG_ON(o->rank < 0 || o->rank > 99999, "rank %d", o->rank);
    s->folder = mem_strdup(folder);
    s->o = *o;
    if (!s->o.max_file_size)
        s->o.max_file_size = CKPT_FILE_SIZE;
    pthread_mutex_init(&s->lock, NULL);
    *ret = s;
}

void ckpt_shard_destroy(struct ckpt_shard *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->nfiles; i++) {
        st_out_destroy(s->file[i].out);
        free(s->file[i].piece);
    }
    free(s->file);
    free(s->slice);
    free(s->order);
    free(s->entry);
    free(s->folder);
    arena_finish(&s->arena);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- plan ---------------------------------------------------------------------------------- */

size_t ckpt_shard_add(struct ckpt_shard *s, const char *group, const char *name, int rank,
                      const int64_t *size, enum dtype dtype, struct box box)
{
    struct box whole = box_whole(rank, size);
    BUG_ON(s->begun, "a tensor after ckpt_shard_begin");
    BUG_ON(!box_inside(box, whole), "a box outside of '%s'", name);
    BUG_ON(!*name || strlen(name) > ST_NAME_MAX - 128, "tensor name '%s'", name);
    BUG_ON(!ckpt_manifest_group_name(group), "group '%s'", group);
    s->entry = mem_grow(s->entry, s->n + 1, sizeof(*s->entry));
    s->entry[s->n] = (struct entry){.group = arena_strdup(&s->arena, group),
                                    .name = arena_strdup(&s->arena, name),
                                    .rank = rank,
                                    .size = {whole.count[0], whole.count[1]},
                                    .dtype = dtype,
                                    .box = box};
    return s->n++;
}

static uint64_t row_bytes(const struct entry *t)
{
    return (uint64_t)t->box.count[1] * dtype_size(t->dtype);
}

static uint64_t entry_bytes(const struct entry *t)
{
    return (uint64_t)box_count(t->box) * dtype_size(t->dtype);
}

static const char *entry_name(struct arena *a, const struct entry *t, const struct slice *s)
{
    long long r0 = t->box.begin[0] + s->row, r1 = r0 + s->rows, c0 = t->box.begin[1];
    long long c1 = c0 + t->box.count[1];
    if (s->rows == t->size[0] && t->box.count[1] == t->size[1])
        return t->name;
    return t->rank == 1 ? arena_printf(a, "%s[%lld:%lld]", t->name, r0, r1)
                        : arena_printf(a, "%s[%lld:%lld,%lld:%lld]", t->name, r0, r1, c0, c1);
}

/* An entry that is larger than a file is cut by rows. */
static void cut(struct ckpt_shard *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct entry *t = &s->entry[i];
        uint64_t row = row_bytes(t), most = row ? s->o.max_file_size / row : 0;
        int64_t rows = most && most < (uint64_t)t->box.count[0] ? (int64_t)most : t->box.count[0];
        if (!most && row)
            rows = 1;
        t->slice = s->nslices;
        int64_t at = 0;
        do {
            int64_t k = t->box.count[0] - at < rows ? t->box.count[0] - at : rows;
            s->slice = mem_grow(s->slice, s->nslices + 1, sizeof(*s->slice));
            s->slice[s->nslices] = (struct slice){.entry = i, .row = at, .rows = k};
            s->slice[s->nslices].name = entry_name(&s->arena, t, &s->slice[s->nslices]);
            s->nslices++;
            t->slices++;
            at += k;
        } while (at < t->box.count[0]);
    }
}

static int slice_order(const void *a, const void *b, void *arg)
{
    const struct ckpt_shard *s = arg;
    const struct slice *x = &s->slice[*(const size_t *)a], *y = &s->slice[*(const size_t *)b];
    const struct entry *p = &s->entry[x->entry], *q = &s->entry[y->entry];
    int order = ckpt_manifest_order(p->group, "", q->group, "");
    if (!order)
        order = st_order(p->dtype, p->name, q->dtype, q->name);
    if (!order && x->entry != y->entry)
        order = x->entry < y->entry ? -1 : 1;
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static const char *shard_file_name(struct ckpt_shard *s, const char *group, size_t k)
{
    return k ? arena_printf(&s->arena, "%s-%05d-%05zu.safetensors", group, s->o.rank, k)
             : arena_printf(&s->arena, "%s-%05d.safetensors", group, s->o.rank);
}

/* The slices of one group after another, as many in a file as it may hold. */
static size_t *fill_files(struct ckpt_shard *s)
{
    size_t *sorted = mem_new(s->nslices + 1, sizeof(*sorted)), k = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->nslices; i++)
        sorted[i] = i;
    qsort_r(sorted, s->nslices, sizeof(*sorted), slice_order, s);
    for (size_t i = 0; i < s->nslices; i++) {
        struct slice *c = &s->slice[sorted[i]];
        const struct entry *t = &s->entry[c->entry];
        uint64_t n = (uint64_t)c->rows * row_bytes(t);
        bool other = !s->nfiles || strcmp(s->file[s->nfiles - 1].group, t->group) != 0;
        if (other || n > s->o.max_file_size - bytes) {
            k = other ? 0 : k + 1;
            s->file = mem_grow(s->file, s->nfiles + 1, sizeof(*s->file));
            s->file[s->nfiles++] = (struct shard_file){
                .name = shard_file_name(s, t->group, k), .group = t->group, .first = i};
            bytes = 0;
        }
        bytes += n < s->o.max_file_size - bytes ? n : s->o.max_file_size - bytes;
        c->file = s->nfiles - 1;
        c->item = s->file[c->file].n++;
    }
    return sorted;
}

/* ---- files --------------------------------------------------------------------------------- */

static size_t pieces_of(uint64_t size)
{
    return (size_t)((size + CKPT_PIECE - 1) / CKPT_PIECE);
}

/* Adds bytes of a file to the sums of its pieces. */
static void add_to_pieces(struct ckpt_shard *s, struct shard_file *f, uint64_t at, const char *p,
                          size_t n)
{
    while (n) {
        struct fingerprint sum = {0};
        size_t k = (size_t)(at / CKPT_PIECE), left = (size_t)(CKPT_PIECE - at % CKPT_PIECE);
        size_t part = n < left ? n : left;
        fingerprint_add(&sum, at, p, part);
        pthread_mutex_lock(&s->lock);
        fingerprint_join(&f->piece[k], sum);
        pthread_mutex_unlock(&s->lock);
        at += part;
        p += part;
        n -= part;
    }
}

static int begin_file(struct ckpt_shard *s, struct shard_file *f, const size_t *sorted,
                      struct err *e)
{
    static const struct st_pair pt = {"format", "pt"};
    struct st_plan *item = mem_new(f->n, sizeof(*item));
    for (size_t i = 0; i < f->n; i++) {
        const struct slice *c = &s->slice[sorted[f->first + i]];
        const struct entry *t = &s->entry[c->entry];
        item[i] = (struct st_plan){c->name, t->dtype, t->rank, {c->rows, t->box.count[1]}};
    }
    char *path = path_join(s->folder, f->name);
    int code = st_out_begin(path, s->folder, item, f->n, &pt, 1, &f->out, e);
    if (!code) {
        const struct buf *header = st_out_header(f->out);
        f->piece = mem_new(pieces_of(st_out_size(f->out)), sizeof(*f->piece));
        add_to_pieces(s, f, 0, header->data, header->len);
    }
    free(path);
    free(item);
    return code;
}

/* Entries by the place of their first slice. */
static void set_order(struct ckpt_shard *s, const size_t *sorted)
{
    size_t n = 0;
    s->order = mem_new(s->n + 1, sizeof(*s->order));
    for (size_t k = 0; k < s->nfiles; k++) {
        const size_t *order = st_out_order(s->file[k].out);
        for (size_t i = 0; i < s->file[k].n; i++) {
            const struct slice *c = &s->slice[sorted[s->file[k].first + order[i]]];
            if (!c->row)
                s->order[n++] = c->entry;
        }
    }
}

int ckpt_shard_begin(struct ckpt_shard *s, struct err *e)
{
    int code = 0;
    BUG_ON(s->begun, "a second ckpt_shard_begin");
    s->begun = true;
    cut(s);
    size_t *sorted = fill_files(s);
    for (size_t i = 0; !code && i < s->nfiles; i++)
        code = begin_file(s, &s->file[i], sorted, e);
    if (code)
        err_wrap(e, "%s: a shard of %d files", s->folder, (int)s->nfiles);
    else
        set_order(s, sorted);
    free(sorted);
    return code;
}

const size_t *ckpt_shard_order(const struct ckpt_shard *s, size_t *ret_n)
{
    *ret_n = s->n;
    return s->order;
}

size_t ckpt_shard_entries(const struct ckpt_shard *s)
{
    return s->n;
}

void ckpt_shard_entry(const struct ckpt_shard *s, size_t i, const char **ret_name,
                      enum dtype *ret_dtype, struct box *ret_box)
{
    BUG_ON(i >= s->n, "entry %zu of %zu", i, s->n);
    *ret_name = s->entry[i].name;
    *ret_dtype = s->entry[i].dtype;
    *ret_box = s->entry[i].box;
}

/* The bytes of all files, headers included, after ckpt_shard_begin. */
static uint64_t ckpt_shard_bytes(const struct ckpt_shard *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->nfiles; i++)
        sum += st_out_size(s->file[i].out);
    return sum;
}

/* What is lost with a file of it. */
static int shard_failed(const struct ckpt_shard *s, struct err *e)
{
    return err_wrap(e, "%s: a shard of %llu bytes", s->folder,
                    (unsigned long long)ckpt_shard_bytes(s));
}

/* ---- data ---------------------------------------------------------------------------------- */

/* Bytes of an entry, counted over its box, at their places in the whole tensor. */
static struct fingerprint sum_range(const struct entry *t, uint64_t at, const char *p, size_t n)
{
    struct fingerprint sum = {0};
    size_t width = dtype_size(t->dtype);
    uint64_t row = row_bytes(t), whole = (uint64_t)t->size[1] * width;
    while (n) {
        uint64_t r = at / row, c = at % row;
        uint64_t left = row == whole ? n : row - c;
        size_t k = n < left ? n : (size_t)left;
        uint64_t place =
            ((uint64_t)t->box.begin[0] + r) * whole + (uint64_t)t->box.begin[1] * width + c;
        fingerprint_add(&sum, place, p, k);
        at += k;
        p += k;
        n -= k;
    }
    return sum;
}

/* The overlap of [at, at + n) of an entry with a slice: first byte and length. */
static size_t slice_part(const struct ckpt_shard *s, const struct slice *c, uint64_t at, size_t n,
                         uint64_t *ret_from)
{
    uint64_t row = row_bytes(&s->entry[c->entry]);
    uint64_t begin = (uint64_t)c->row * row, end = begin + (uint64_t)c->rows * row;
    uint64_t from = at > begin ? at : begin, to = at + n < end ? at + n : end;
    *ret_from = from;
    return from < to ? (size_t)(to - from) : 0;
}

/* Adds bytes of an entry to the sums of the pieces that will contain them. */
static void sum_pieces(struct ckpt_shard *s, const struct entry *t, uint64_t at, const char *p,
                       size_t n)
{
    for (size_t i = 0; i < t->slices; i++) {
        const struct slice *c = &s->slice[t->slice + i];
        struct shard_file *f = &s->file[c->file];
        uint64_t from, begin = (uint64_t)c->row * row_bytes(t);
        size_t k = slice_part(s, c, at, n, &from);
        if (k)
            add_to_pieces(s, f, st_out_offset(f->out, c->item) + from - begin, p + (from - at), k);
    }
}

static int write_slices(struct ckpt_shard *s, const struct entry *t, uint64_t at, const char *p,
                        size_t n, struct err *e)
{
    int code = 0;
    for (size_t i = 0; !code && i < t->slices; i++) {
        const struct slice *c = &s->slice[t->slice + i];
        uint64_t from, begin = (uint64_t)c->row * row_bytes(t);
        size_t k = slice_part(s, c, at, n, &from);
        if (k)
            code = st_out_write(s->file[c->file].out, c->item, from - begin, p + (from - at), k, e);
    }
    return code;
}

static struct entry *entry_of(const struct ckpt_shard *s, size_t entry, uint64_t at, size_t n)
{
    BUG_ON(entry >= s->n, "entry %zu of %zu", entry, s->n);
    struct entry *t = &s->entry[entry];
    BUG_ON(at > entry_bytes(t) || n > entry_bytes(t) - at || at % dtype_size(t->dtype) ||
               n % dtype_size(t->dtype),
           "bytes %llu to %llu of '%s'", (unsigned long long)at, (unsigned long long)(at + n),
           t->name);
    return t;
}

void ckpt_shard_keep(struct ckpt_shard *s, size_t entry, uint64_t at, const void *p, size_t n)
{
    enum { STEP = 1 << 17 }; /* what is summed twice stays in the cache */
    struct entry *t = entry_of(s, entry, at, n);
    struct fingerprint sum = {0};
    for (size_t done = 0; done < n; done += STEP) {
        size_t k = n - done < STEP ? n - done : STEP;
        fingerprint_join(&sum, sum_range(t, at + done, (const char *)p + done, k));
        sum_pieces(s, t, at + done, (const char *)p + done, k);
    }
    pthread_mutex_lock(&s->lock);
    fingerprint_join(&t->sum, sum);
    t->written += n;
    pthread_mutex_unlock(&s->lock);
}

int ckpt_shard_write(struct ckpt_shard *s, size_t entry, uint64_t at, const void *p, size_t n,
                     struct err *e)
{
    const struct entry *t = entry_of(s, entry, at, n);
    if (write_slices(s, t, at, p, n, e))
        return shard_failed(s, e);
    ckpt_shard_keep(s, entry, at, p, n);
    return 0;
}

uint64_t ckpt_shard_place(const struct ckpt_shard *s, size_t entry, uint64_t at)
{
    const struct entry *t = entry_of(s, entry, at, 0);
    size_t i = 0;
    uint64_t row = row_bytes(t);
    while (i + 1 < t->slices && at >= (uint64_t)s->slice[t->slice + i + 1].row * row)
        i++;
    const struct slice *c = &s->slice[t->slice + i];
    return st_out_offset(s->file[c->file].out, c->item) + at - (uint64_t)c->row * row;
}

bool ckpt_shard_read(const struct ckpt_shard *s, size_t entry, uint64_t at, void *p, size_t n)
{
    const struct entry *t = entry_of(s, entry, at, n);
    bool there = true;
    for (size_t i = 0; there && i < t->slices; i++) {
        const struct slice *c = &s->slice[t->slice + i];
        uint64_t from, begin = (uint64_t)c->row * row_bytes(t);
        size_t k = slice_part(s, c, at, n, &from);
        if (k)
            there = st_out_read(s->file[c->file].out, c->item, from - begin,
                                (char *)p + (from - at), k);
    }
    return there;
}

struct unit {
    size_t entry;
    int64_t row, rows;
};

struct write_all {
    struct ckpt_shard *s;
    const struct box_mem *mem;
    struct unit *unit;
};

static int write_unit(void *arg, size_t i, struct err *e)
{
    const struct write_all *w = arg;
    const struct unit *u = &w->unit[i];
    const struct box_mem *m = &w->mem[u->entry];
    size_t width = dtype_size(m->dtype), row = (size_t)m->box.count[1] * width;
    const char *p = (const char *)m->data + (size_t)(u->row * m->stride) * width;
    uint64_t at = (uint64_t)u->row * row;
    if (m->stride == m->box.count[1])
        return ckpt_shard_write(w->s, u->entry, at, p, (size_t)u->rows * row, e);
    char *rows = mem_new((size_t)u->rows, row);
    for (int64_t r = 0; r < u->rows; r++)
        memcpy(rows + (size_t)r * row, p + (size_t)(r * m->stride) * width, row);
    int code = ckpt_shard_write(w->s, u->entry, at, rows, (size_t)u->rows * row, e);
    free(rows);
    return code;
}

int ckpt_shard_write_all(struct ckpt_shard *s, const struct box_mem *mem, int threads,
                         struct err *e)
{
    enum { UNIT = 4 << 20 };
    struct write_all w = {.s = s, .mem = mem};
    size_t n = 0;
    for (size_t k = 0; k < s->n; k++) {
        const struct entry *t = &s->entry[s->order[k]];
        uint64_t row = row_bytes(t);
        BUG_ON(mem[s->order[k]].dtype != t->dtype || !box_equal(mem[s->order[k]].box, t->box),
               "memory of another box or type for '%s'", t->name);
        int64_t rows = row && row < UNIT ? (int64_t)(UNIT / row) : 1;
        for (int64_t r = 0; row && r < t->box.count[0]; r += rows) {
            int64_t left = t->box.count[0] - r;
            w.unit = mem_grow(w.unit, n + 1, sizeof(*w.unit));
            w.unit[n++] = (struct unit){s->order[k], r, left < rows ? left : rows};
        }
    }
    int code = each_run(n, threads, write_unit, &w, e);
    free(w.unit);
    return code;
}

/* ---- the end ------------------------------------------------------------------------------- */

static void describe_file(struct ckpt_shard *s, const struct shard_file *f, struct ckpt_file *ret)
{
    *ret = (struct ckpt_file){.name = f->name, .size = st_out_size(f->out), .tensors = true};
    ckpt_manifest_sums(&s->arena, f->piece, pieces_of(ret->size), ret);
}

/* The shard as a separate manifest. */
static void describe(struct ckpt_shard *s, struct buf *fragment)
{
    struct ckpt_manifest m = {.meta = {.model = "{}", .eod = -1}, .version = 2};
    m.file = mem_new(s->nfiles + 1, sizeof(*m.file));
    m.tensor = mem_new(s->n + 1, sizeof(*m.tensor));
    m.part = mem_new(s->nslices + 1, sizeof(*m.part));
    m.files = s->nfiles;
    for (size_t i = 0; i < s->nfiles; i++)
        describe_file(s, &s->file[i], &m.file[i]);
    for (size_t i = 0; i < s->n; i++) {
        const struct entry *t = &s->entry[i];
        m.tensor[m.tensors++] = (struct ckpt_manifest_tensor){
            t->group, t->name, t->rank, {t->size[0], t->size[1]}, m.nparts, t->slices,
            t->dtype, true,    t->sum};
        for (size_t k = 0; k < t->slices; k++) {
            const struct slice *c = &s->slice[t->slice + k];
            m.part[m.nparts++] =
                (struct ckpt_manifest_part){c->file,
                                            c->name,
                                            {t->box.begin[0] + c->row, t->box.begin[1]},
                                            {c->rows, t->box.count[1]}};
        }
    }
    ckpt_manifest_write(&m, fragment);
    free(m.file);
    free(m.tensor);
    free(m.part);
}

int ckpt_shard_end(struct ckpt_shard *s, struct buf *fragment, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < s->n; i++)
        BUG_ON(s->entry[i].written != entry_bytes(&s->entry[i]), "%llu of %llu bytes of '%s'",
               (unsigned long long)s->entry[i].written,
               (unsigned long long)entry_bytes(&s->entry[i]), s->entry[i].name);
    for (size_t i = 0; !code && i < s->nfiles; i++)
        code = st_out_end(s->file[i].out, e);
    if (code)
        return shard_failed(s, e);
    describe(s, fragment);
    return 0;
}
