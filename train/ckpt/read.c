/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/each.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/merge.h"
#include "train/ckpt/open.h"
#include "train/ckpt/place.h"

/* ---- opening: the manifest ----------------------------------------------------------------- */

static int bad_folder_name(const char *manifest, int64_t named, int64_t recorded, struct err *e)
{
    err_set(e, ERR_INTEGRITY, "%s: holds iteration %lld, its folder is named for iteration %lld",
            manifest, (long long)recorded, (long long)named);
    err_hint(e, "if the folder was renamed, name it iter_%07lld; else copy it again",
             (long long)recorded);
    return ERR_INTEGRITY;
}

static int read_manifest(struct ckpt *c, struct err *e)
{
    struct buf text = {0};
    int64_t iteration;
    char *path = path_join(c->path, "manifest.json");
    int code = 0;
    if (!file_is_dir(c->path))
        code = file_exists(c->path) ? err_set(e, ERR_INTEGRITY, "%s: is not a folder", c->path)
                                    : err_set(e, ERR_IO, "%s: no such checkpoint", c->path);
    else if (!file_exists(path))
        code = err_set(e, ERR_INTEGRITY, "%s: is missing", path);
    if (!code)
        code = file_read_plain(path, MANIFEST_MAX, &text, e);
    if (!code)
        code = ckpt_manifest_parse(&c->m, path, text.data, text.len, e);
    if (!code && place_iteration(c->path, &iteration) && iteration != c->m.meta.iteration)
        code = bad_folder_name(path, iteration, c->m.meta.iteration, e);
    buf_finish(&text);
    free(path);
    return code;
}

static int check_file(const struct ckpt *c, const struct ckpt_file *f, struct err *e)
{
    struct stat st;
    char *path = path_join(c->path, f->name);
    int code = 0;
    if (stat(path, &st))
        code = errno == ENOENT ? err_set(e, ERR_INTEGRITY, "%s: is missing", path)
                               : err_sys(e, errno, "%s: cannot open", path);
    else if (!S_ISREG(st.st_mode))
        code = err_set(e, ERR_INTEGRITY, "%s: is not a regular file", path);
    else if ((uint64_t)st.st_size != f->size)
        code = err_set(e, ERR_INTEGRITY, "%s: has %llu bytes, %llu were written%s", path,
                       (unsigned long long)st.st_size, (unsigned long long)f->size,
                       (uint64_t)st.st_size < f->size ? ": cut short" : "");
    free(path);
    return code;
}

/* ---- opening: tensors ---------------------------------------------------------------------- */

static int read_open_files(struct ckpt *c, struct err *e)
{
    int code = 0;
    c->file = mem_new(c->m.files + 1, sizeof(*c->file));
    c->seen = mem_new(c->m.files + 1, sizeof(*c->seen));
    c->header = mem_new(c->m.files + 1, sizeof(*c->header));
    for (size_t i = 0; i < c->m.files; i++)
        c->file[i].fd = -1;
    for (size_t i = 0; !code && i < c->m.files; i++) {
        code = check_file(c, &c->m.file[i], e);
        if (code || !c->m.file[i].tensors)
            continue;
        char *path = path_join(c->path, c->m.file[i].name);
        code = st_open(&c->file[i], path, e);
        c->seen[i] = mem_new(c->m.file[i].pieces + 1, sizeof(**c->seen));
        if (!code && c->file[i].data_at <= CKPT_PIECE) {
            c->header[i] = c->file[i].data_at;
            c->seen[i][0] = (struct ckpt_seen){c->header[i], c->file[i].header};
        }
        if (code == ERR_DATA && e)
            e->code = ERR_INTEGRITY; /* what we wrote was well formed */
        if (code == ERR_DATA)
            code = ERR_INTEGRITY;
        free(path);
    }
    return code;
}

static int lost(const struct ckpt *c, const char *file, const char *entry, const char *why,
                struct err *e)
{
    return err_set(e, ERR_INTEGRITY, "%s/%s: entry '%.300s' %s", c->path, file, entry, why);
}

static int open_part(struct ckpt *c, const struct ckpt_manifest_tensor *t, size_t i, struct err *e)
{
    const struct ckpt_manifest_part *p = &c->m.part[i];
    const char *file = c->m.file[p->file].name;
    struct ckpt_part *ret = &c->part[i];
    ret->file = p->file;
    ret->entry = st_find(&c->file[p->file], p->entry);
    if (!ret->entry)
        return lost(c, file, p->entry, "is not there", e);
    if (ret->entry->dtype < 0 || ret->entry->rank != t->rank)
        return lost(c, file, p->entry, "has another type or rank than its tensor", e);
    ret->box = box_whole(t->rank, ret->entry->size);
    ret->box.begin[0] = p->begin[0];
    ret->box.begin[1] = p->begin[1];
    if (c->m.version > 1 && (ret->box.count[0] != p->count[0] || ret->box.count[1] != p->count[1] ||
                             ret->entry->dtype != (int)t->dtype))
        return lost(c, file, p->entry, "has another shape or type than the manifest says", e);
    if (!box_inside(ret->box, box_whole(t->rank, t->size)))
        return lost(c, file, p->entry, "lies outside of its tensor", e);
    return 0;
}

static int check_cover(const struct ckpt *c, const struct ckpt_manifest_tensor *t, struct err *e)
{
    size_t at;
    struct box *box = mem_new(t->parts, sizeof(*box));
    for (size_t i = 0; i < t->parts; i++)
        box[i] = c->part[t->part + i].box;
    enum box_flaw flaw = box_cover(box_whole(t->rank, t->size), box, t->parts, &at);
    free(box);
    if (flaw == BOX_COVERED)
        return 0;
    return err_set(e, ERR_INTEGRITY, "%s: the parts of %s '%.300s' %s", c->path, t->group, t->name,
                   ckpt_flaw_text(flaw));
}

static int open_tensor(struct ckpt *c, size_t i, struct err *e)
{
    const struct ckpt_manifest_tensor *t = &c->m.tensor[i];
    int code = 0;
    for (size_t k = 0; !code && k < t->parts; k++)
        code = open_part(c, t, t->part + k, e);
    for (size_t k = 1; !code && k < t->parts; k++)
        if (c->part[t->part + k].entry->dtype != c->part[t->part].entry->dtype)
            code = lost(c, c->m.file[c->m.part[t->part + k].file].name,
                        c->m.part[t->part + k].entry, "has another type than its neighbours", e);
    if (!code)
        code = check_cover(c, t, e);
    if (!code)
        c->tensor[i] = (struct ckpt_tensor){t->name,
                                            t->group,
                                            t->rank,
                                            {t->size[0], t->size[1]},
                                            (enum dtype)c->part[t->part].entry->dtype,
                                            t->has_sum,
                                            t->sum};
    return code;
}

static int by_entry(const void *a, const void *b)
{
    const struct ckpt_part *x = *(struct ckpt_part *const *)a, *y = *(struct ckpt_part *const *)b;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* No entry of a file is used twice or not at all. */
static int check_used(const struct ckpt *c, struct err *e)
{
    size_t entries = 0, n = c->m.nparts;
    struct ckpt_part **part = mem_new(n + 1, sizeof(*part));
    for (size_t i = 0; i < n; i++)
        part[i] = &c->part[i];
    qsort(part, n, sizeof(struct ckpt_part *), by_entry);
    int code = 0;
    for (size_t i = 1; !code && i < n; i++)
        if (part[i]->entry == part[i - 1]->entry)
            code = err_set(e, ERR_INTEGRITY, "%s: entry '%.300s' is a part of two tensors", c->path,
                           part[i]->entry->name);
    for (size_t i = 0; i < c->m.files; i++)
        entries += c->file[i].n;
    if (!code && entries != n)
        code = err_set(e, ERR_INTEGRITY, "%s: %zu entries in its files, %zu in the manifest",
                       c->path, entries, n);
    free(part);
    return code;
}

int ckpt_open(const char *path, struct ckpt **ret, struct err *e)
{
    struct ckpt *c = mem_new(1, sizeof(*c));
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    c->path = mem_strndup(path, n);
    pthread_mutex_init(&c->lock, NULL);
    int code = read_manifest(c, e);
    if (!code)
        code = read_open_files(c, e);
    if (!code) {
        c->part = mem_new(c->m.nparts + 1, sizeof(*c->part));
        c->tensor = mem_new(c->m.tensors + 1, sizeof(*c->tensor));
    }
    for (size_t i = 0; !code && i < c->m.tensors; i++)
        code = open_tensor(c, i, e);
    if (!code)
        code = check_used(c, e);
    if (code)
        ckpt_close(c);
    else
        *ret = c;
    return code;
}

void ckpt_close(struct ckpt *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->file && i < c->m.files; i++)
        st_close(&c->file[i]);
    for (size_t i = 0; c->seen && i < c->m.files; i++)
        free(c->seen[i]);
    free(c->seen);
    free(c->header);
    free(c->file);
    free(c->part);
    free(c->tensor);
    ckpt_manifest_finish(&c->m);
    pthread_mutex_destroy(&c->lock);
    free(c->path);
    free(c);
}

/* ---- reading ------------------------------------------------------------------------------- */

const char *ckpt_path(const struct ckpt *c)
{
    return c->path;
}

int ckpt_version(const struct ckpt *c)
{
    return c->m.version;
}

const struct json *ckpt_must_know(const struct ckpt *c)
{
    return c->m.must_know;
}

const struct ckpt_meta *ckpt_meta(const struct ckpt *c)
{
    return &c->m.meta;
}

const char *ckpt_state(const struct ckpt *c, const char *key)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    for (size_t i = 0; i < m->nstate; i++)
        if (!strcmp(m->state[i].key, key))
            return m->state[i].value;
    return NULL;
}

const struct json *ckpt_model(const struct ckpt *c)
{
    return c->m.model;
}

size_t ckpt_tensors(const struct ckpt *c)
{
    return c->m.tensors;
}

const struct ckpt_tensor *ckpt_tensor_at(const struct ckpt *c, size_t i)
{
    BUG_ON(i >= c->m.tensors, "tensor %zu of %zu", i, c->m.tensors);
    return &c->tensor[i];
}

size_t ckpt_files(const struct ckpt *c)
{
    return c->m.files;
}

const struct ckpt_file *ckpt_file_at(const struct ckpt *c, size_t i)
{
    BUG_ON(i >= c->m.files, "file %zu of %zu", i, c->m.files);
    return &c->m.file[i];
}

const struct ckpt_tensor *ckpt_find(const struct ckpt *c, const char *group, const char *name)
{
    size_t low = 0, high = c->m.tensors;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = ckpt_manifest_order(c->tensor[mid].group, c->tensor[mid].name, group, name);
        if (order == 0)
            return &c->tensor[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static int misfit(const struct ckpt *c, const struct ckpt_tensor *t, const int64_t *size, int rank,
                  struct err *e)
{
    char have[64], want[64];
    snprintf(have, sizeof(have), t->rank == 2 ? "[%lld, %lld]" : "[%lld]", (long long)t->size[0],
             (long long)t->size[1]);
    snprintf(want, sizeof(want), rank == 2 ? "[%lld, %lld]" : "[%lld]", (long long)size[0],
             (long long)(rank == 2 ? size[1] : 1));
    return err_set(e, ERR_USAGE, "%s: %s '%.300s' is %s, the model wants %s", c->path, t->group,
                   t->name, have, want);
}

/* The overlap of a part with the wanted box, in runs of whole rows. */
struct part_read {
    struct ckpt *c;
    const struct ckpt_part *part;
    struct box box;
    struct box_mem to;
    char *rows; /* where types or strides differ */
};

static void note_rows(const struct part_read *r, int64_t row, int64_t rows, const char *p)
{
    const struct ckpt_part *t = r->part;
    const struct st_file *s = &r->c->file[t->file];
    size_t width = dtype_size((enum dtype)t->entry->dtype);
    uint64_t whole = (uint64_t)t->box.count[1] * width, run = (uint64_t)r->box.count[1] * width;
    uint64_t at = s->data_at + t->entry->begin + (uint64_t)(row - t->box.begin[0]) * whole +
                  (uint64_t)(r->box.begin[1] - t->box.begin[1]) * width;
    if (run == whole)
        ckpt_saw(r->c, t->file, at, p, (size_t)(run * (uint64_t)rows));
    else
        for (int64_t i = 0; i < rows; i++)
            ckpt_saw(r->c, t->file, at + (uint64_t)i * whole, p + (size_t)i * run, (size_t)run);
}

static int read_rows(const struct part_read *r, int64_t row, int64_t rows, struct err *e)
{
    const struct ckpt_part *t = r->part;
    enum dtype type = (enum dtype)t->entry->dtype;
    int64_t size[2], cols = r->box.count[1];
    bool direct = type == r->to.dtype && r->to.stride == cols && r->to.box.count[1] == cols;
    struct box_mem raw = {r->rows, type, {{row, r->box.begin[1]}, {rows, cols}}, cols};
    if (direct)
        raw.data =
            (char *)r->to.data + (size_t)((row - r->to.box.begin[0]) * cols) * dtype_size(type);
    struct box_mem local = raw; /* the box as the entry has it, whose rank may be 1 */
    local.box.begin[0] -= t->box.begin[0];
    local.box.begin[1] -= t->box.begin[1];
    st_matrix(t->entry, size);
    int code = st_read(&r->c->file[t->file], t->entry, local, e);
    if (code)
        return code;
    note_rows(r, row, rows, raw.data);
    if (!direct)
        box_copy(r->to, raw);
    return 0;
}

static int read_part(struct part_read *r, struct err *e)
{
    enum { STEP = 1 << 20 };
    size_t row = (size_t)r->box.count[1] * dtype_size((enum dtype)r->part->entry->dtype);
    int64_t most = row < STEP ? (int64_t)(STEP / row) : 1;
    int64_t end = r->box.begin[0] + r->box.count[0];
    int code = 0;
    if (most > r->box.count[0])
        most = r->box.count[0];
    if (r->box.count[1] == r->part->box.count[1])
        st_soon(&r->c->file[r->part->file], r->part->entry, r->box.begin[0] - r->part->box.begin[0],
                r->box.count[0]);
    r->rows = mem_new((size_t)most, row);
    for (int64_t at = r->box.begin[0]; !code && at < end; at += most)
        code = read_rows(r, at, end - at < most ? end - at : most, e);
    free(r->rows);
    return code;
}

int ckpt_read_box(struct ckpt *c, const char *group, const char *name, int rank,
                  const int64_t *size, struct box_mem to, struct err *e)
{
    const struct ckpt_tensor *t = ckpt_find(c, group, name);
    if (!t)
        return err_set(e, ERR_USAGE, "%s: has no %s '%.300s'", c->path, group, name);
    struct box whole = box_whole(rank, size);
    if (t->rank != rank || !box_equal(whole, box_whole(t->rank, t->size)))
        return misfit(c, t, size, rank, e);
    BUG_ON(!box_inside(to.box, whole), "a box outside of '%s'", name);
    if (!box_can_cast(t->dtype, to.dtype))
        return err_set(e, ERR_USAGE, "%s: %s '%.300s' is %s, which cannot become %s", c->path,
                       group, name, dtype_name(t->dtype), dtype_name(to.dtype));
    const struct ckpt_manifest_tensor *mt = &c->m.tensor[t - c->tensor];
    int64_t copied = 0;
    int code = 0;
    for (size_t i = 0; !code && i < mt->parts; i++) {
        struct part_read r = {.c = c, .part = &c->part[mt->part + i], .to = to};
        if (!box_intersect(to.box, r.part->box, &r.box))
            continue;
        code = read_part(&r, e);
        copied += box_count(r.box);
    }
    BUG_ON(!code && copied != box_count(to.box), "%lld of %lld elements of '%s'", (long long)copied,
           (long long)box_count(to.box), name);
    return code;
}

/* ---- many boxes ------------------------------------------------------------------------------ */

struct read_unit {
    size_t want;
    int64_t row, rows;
};

struct read_all {
    struct ckpt *c;
    const struct ckpt_want *want;
    struct read_unit *unit;
};

static int run_unit(void *arg, size_t i, struct err *e)
{
    const struct read_all *a = arg;
    const struct read_unit *u = &a->unit[i];
    const struct ckpt_want *w = &a->want[u->want];
    struct box_mem to = w->to;
    to.data = (char *)to.data + (size_t)(u->row * to.stride) * dtype_size(to.dtype);
    to.box.begin[0] += u->row;
    to.box.count[0] = u->rows;
    return ckpt_read_box(a->c, w->group, w->name, w->rank, w->size, to, e);
}

int ckpt_read_all(struct ckpt *c, const struct ckpt_want *want, size_t n, int threads,
                  struct err *e)
{
    enum { UNIT = 4 << 20 };
    struct read_all a = {.c = c, .want = want};
    size_t units = 0;
    for (size_t i = 0; i < n; i++) {
        const struct box_mem *to = &want[i].to;
        size_t row = (size_t)to->box.count[1] * dtype_size(to->dtype);
        int64_t most = row && row < UNIT ? (int64_t)(UNIT / row) : 1, at = 0;
        do { /* also of an empty box: its tensor must be there */
            int64_t left = to->box.count[0] - at;
            a.unit = mem_grow(a.unit, units + 1, sizeof(*a.unit));
            a.unit[units++] = (struct read_unit){i, at, left < most ? left : most};
            at += most;
        } while (at < to->box.count[0]);
    }
    int code = each_run(units, threads, run_unit, &a, e);
    free(a.unit);
    return code;
}
