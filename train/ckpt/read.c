/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/pool.h"
#include "base/thread/thread.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/manifest.h"
#include "train/ckpt/place.h"
#include "train/ckpt/safetensors.h"

struct part {
    const struct st_file *file;
    const struct st_entry *entry;
    struct box_mem mem;
};

struct ckpt {
    char *path;
    struct ckpt_manifest m;
    struct st_file *file; /* as m.file; open where that has tensors */
    struct part *part;    /* as m.part */
    struct ckpt_tensor *tensor;
};

/* ---- opening: the manifest ----------------------------------------------------------------- */

static int read_manifest(struct ckpt *c, struct err *e)
{
    struct buf text = {0};
    int64_t iteration;
    char *path = path_join(c->path, "manifest.json");
    int code = 0;
    if (!file_is_dir(c->path))
        code = file_exists(c->path) ? err_set(e, ERR_INTEGRITY, "%s: is no folder", c->path)
                                    : err_set(e, ERR_IO, "%s: no such checkpoint", c->path);
    else if (!file_exists(path))
        code = err_set(e, ERR_INTEGRITY, "%s: is missing", path);
    if (!code)
        code = file_read(path, MANIFEST_MAX, &text, e);
    if (!code)
        code = ckpt_manifest_parse(&c->m, path, text.data, text.len, e);
    if (!code && place_iteration(c->path, &iteration) && iteration != c->m.meta.iteration)
        code = err_set(e, ERR_INTEGRITY, "%s: is of iteration %lld, the folder's name is another",
                       path, (long long)c->m.meta.iteration);
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
        code = err_set(e, ERR_INTEGRITY, "%s: is no file", path);
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
    for (size_t i = 0; !code && i < c->m.files; i++) {
        code = check_file(c, &c->m.file[i], e);
        if (code || !c->m.file[i].tensors)
            continue;
        char *path = path_join(c->path, c->m.file[i].name);
        code = st_open(&c->file[i], path, e);
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
    struct part *ret = &c->part[i];
    ret->file = &c->file[p->file];
    ret->entry = st_find(ret->file, p->entry);
    if (!ret->entry)
        return lost(c, file, p->entry, "is not there", e);
    if (ret->entry->dtype < 0 || ret->entry->rank != t->rank)
        return lost(c, file, p->entry, "has another type or rank than its tensor", e);
    ret->mem = st_mem(ret->file, ret->entry, p->begin[0], p->begin[1]);
    if (!box_inside(ret->mem.box, box_whole(t->rank, t->size)))
        return lost(c, file, p->entry, "lies outside of its tensor", e);
    return 0;
}

static int check_cover(const struct ckpt *c, const struct ckpt_manifest_tensor *t, struct err *e)
{
    static const char *const flaws[] = {
        [BOX_OUTSIDE] = "lie outside of it",
        [BOX_OVERLAP] = "overlap",
        [BOX_HOLE] = "leave a hole",
        [BOX_TOO_MANY] = "are too many",
    };
    size_t at;
    struct box *box = mem_new(t->parts, sizeof(*box));
    for (size_t i = 0; i < t->parts; i++)
        box[i] = c->part[t->part + i].mem.box;
    enum box_flaw flaw = box_cover(box_whole(t->rank, t->size), box, t->parts, &at);
    free(box);
    if (flaw == BOX_COVERED)
        return 0;
    return err_set(e, ERR_INTEGRITY, "%s: the parts of %s '%.300s' %s", c->path, t->group, t->name,
                   flaws[flaw]);
}

static int open_tensor(struct ckpt *c, size_t i, struct err *e)
{
    const struct ckpt_manifest_tensor *t = &c->m.tensor[i];
    int code = 0;
    for (size_t k = 0; !code && k < t->parts; k++)
        code = open_part(c, t, t->part + k, e);
    for (size_t k = 1; !code && k < t->parts; k++)
        if (c->part[t->part + k].mem.dtype != c->part[t->part].mem.dtype)
            code = lost(c, c->m.file[c->m.part[t->part + k].file].name,
                        c->m.part[t->part + k].entry, "has another type than its neighbours", e);
    if (!code)
        code = check_cover(c, t, e);
    if (!code)
        c->tensor[i] = (struct ckpt_tensor){
            t->name, t->group, t->rank, {t->size[0], t->size[1]}, c->part[t->part].mem.dtype};
    return code;
}

static int by_entry(const void *a, const void *b)
{
    const struct part *x = *(struct part *const *)a, *y = *(struct part *const *)b;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

/* No entry of a file is used twice, and none is left over. */
static int check_used(const struct ckpt *c, struct err *e)
{
    size_t entries = 0, n = c->m.nparts;
    struct part **part = mem_new(n + 1, sizeof(*part));
    for (size_t i = 0; i < n; i++)
        part[i] = &c->part[i];
    qsort(part, n, sizeof(struct part *), by_entry);
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
    free(c->file);
    free(c->part);
    free(c->tensor);
    ckpt_manifest_finish(&c->m);
    free(c->path);
    free(c);
}

/* ---- verifying ----------------------------------------------------------------------------- */

static int hash_file(const char *path, uint64_t *ret_size, char ret[XXH_TEXT], struct err *e)
{
    enum { CHUNK = 1 << 20 };
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    struct xxh *h = xxh_create();
    char *chunk = mem_new(CHUNK, 1);
    *ret_size = 0;
    for (;;) {
        ssize_t n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = err_sys(e, errno, "%s: cannot read", path);
        if (n <= 0)
            break;
        xxh_add(h, chunk, (size_t)n);
        *ret_size += (uint64_t)n;
    }
    xxh_text(h, ret);
    xxh_destroy(h);
    free(chunk);
    close(fd);
    return code;
}

static int verify_file(const struct ckpt *c, const struct ckpt_file *f, struct err *e)
{
    char digest[XXH_TEXT], *path = path_join(c->path, f->name);
    uint64_t size = 0;
    int code = hash_file(path, &size, digest, e);
    if (!code && (size != f->size || strcmp(digest, f->xxh3_128) != 0))
        code = err_set(e, ERR_INTEGRITY,
                       "%s: its bytes are not those that were written "
                       "(XXH3-128 %s instead of %s)",
                       path, digest, f->xxh3_128);
    free(path);
    return code;
}

/* All files, each by the thread that comes to it first. */
struct verification {
    const struct ckpt *c;
    atomic_size_t next;
    int *code;        /* by file */
    struct err **why; /* by file; NULL where the code is 0 */
};

static void *verify_main(void *arg)
{
    struct verification *v = arg;
    for (size_t i; (i = atomic_fetch_add(&v->next, 1)) < v->c->m.files;) {
        struct err e;
        v->code[i] = verify_file(v->c, &v->c->m.file[i], &e);
        if (!v->code[i])
            continue;
        v->why[i] = mem_new(1, sizeof(e));
        *v->why[i] = e;
    }
    return NULL;
}

/* As many as there are processors and files that are worth one; this thread is the last of them. */
static void verify_by_threads(struct verification *v)
{
    enum { MOST = 16, LARGE = 1 << 20 };
    pthread_t thread[MOST];
    int n = 0, want = -1, cpus = pool_cpus();
    for (size_t i = 0; i < v->c->m.files; i++)
        want += v->c->m.file[i].size >= LARGE;
    while (n < want && n < cpus - 1 && n < MOST && !thread_start(&thread[n], verify_main, v))
        n++;
    verify_main(v);
    while (n)
        pthread_join(thread[--n], NULL);
}

/* The first failure, and the names of all other files that failed. */
static int report_damage(const struct verification *v, struct err *e)
{
    enum { NAMED = 8 };
    const struct ckpt *c = v->c;
    size_t first = 0, others = 0;
    struct buf names = {0};
    while (first < c->m.files && !v->code[first])
        first++;
    if (first == c->m.files)
        return 0;
    for (size_t i = first + 1; i < c->m.files; i++)
        if (v->code[i] && others++ < NAMED)
            buf_addf(&names, "%s%s", others > 1 ? ", " : "; also damaged: ", c->m.file[i].name);
    if (others > NAMED)
        buf_addf(&names, " and %zu more", others - NAMED);
    if (e) {
        *e = *v->why[first];
        size_t n = strlen(e->msg);
        snprintf(e->msg + n, sizeof(e->msg) - n, "%s", buf_str(&names));
    }
    buf_finish(&names);
    return v->code[first];
}

int ckpt_verify(const struct ckpt *c, struct err *e)
{
    struct verification v = {.c = c};
    atomic_init(&v.next, 0);
    v.code = mem_new(c->m.files + 1, sizeof(*v.code));
    v.why = mem_new(c->m.files + 1, sizeof(*v.why));
    verify_by_threads(&v);
    int code = report_damage(&v, e);
    for (size_t i = 0; i < c->m.files; i++)
        free(v.why[i]);
    free(v.why);
    free(v.code);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------- */

const char *ckpt_path(const struct ckpt *c)
{
    return c->path;
}

const struct ckpt_meta *ckpt_meta(const struct ckpt *c)
{
    return &c->m.meta;
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

int ckpt_read_box(const struct ckpt *c, const char *group, const char *name, int rank,
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
        const struct part *p = &c->part[mt->part + i];
        int64_t n = box_copy(to, p->mem);
        copied += n;
        if (n)
            code = map_check(&p->file->map, e);
    }
    BUG_ON(!code && copied != box_count(to.box), "%lld of %lld elements of '%s'", (long long)copied,
           (long long)box_count(to.box), name);
    return code;
}
