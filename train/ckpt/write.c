/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/manifest.h"
#include "train/ckpt/place.h"
#include "train/ckpt/safetensors.h"

struct put {
    const char *group;
    const char *name, *entry;
    int rank;
    int64_t size[2];
    struct box_mem data;
};

struct ckpt_writer {
    char *dir, *tmp, *final;
    int64_t iteration;
    struct put *put;
    size_t nput;
    struct ckpt_file *file;
    size_t nfile;
    struct arena arena;      /* names and hashes */
    struct outfile manifest; /* opened first and held to the end: its lock is the folder's */
    bool done;               /* commit was called */
};

int ckpt_writer_open(const char *dir, int64_t iteration, struct ckpt_writer **ret, struct err *e)
{
    BUG_ON(iteration < 0, "iteration %lld", (long long)iteration);
    struct ckpt_writer *w = mem_new(1, sizeof(*w));
    w->dir = mem_strdup(dir);
    w->iteration = iteration;
    w->manifest.fd = -1;
    w->final = place_final(dir, iteration);
    bool there = file_is_dir(dir);
    int code = file_mkdirs(dir, e);
    if (!code && !there) {
        char *parent = path_dir(dir);
        code = file_sync_dir(parent, e);
        free(parent);
    }
    if (!code) {
        char *manifest = path_join(w->final, "manifest.json");
        place_clean(dir);
        code = outdir_create(w->final, manifest, &w->manifest, &w->tmp, e);
        free(manifest);
    }
    if (code)
        ckpt_writer_close(w);
    else
        *ret = w;
    return code;
}

void ckpt_writer_close(struct ckpt_writer *w)
{
    if (!w)
        return;
    if (w->tmp && w->manifest.fd >= 0)
        file_remove_tree(w->tmp, NULL);
    outfile_leave(&w->manifest);
    free(w->dir);
    free(w->tmp);
    free(w->final);
    free(w->put);
    free(w->file);
    arena_finish(&w->arena);
    free(w);
}

/* ---- files --------------------------------------------------------------------------------- */

static void add_file(struct ckpt_writer *w, const char *name, uint64_t size, const struct xxh *hash,
                     bool tensors)
{
    char digest[XXH_TEXT];
    xxh_text(hash, digest);
    w->file = mem_grow(w->file, w->nfile + 1, sizeof(*w->file));
    w->file[w->nfile++] = (struct ckpt_file){arena_strdup(&w->arena, name), size,
                                             arena_strdup(&w->arena, digest), tensors};
}

static void check_new_file(const struct ckpt_writer *w, const char *name)
{
    BUG_ON(!ckpt_manifest_file_name(name) || !strcmp(name, "manifest.json"), "file name '%s'",
           name);
    for (size_t i = 0; i < w->nfile; i++)
        BUG_ON(!strcmp(w->file[i].name, name), "two files '%s' in a checkpoint", name);
}

/* Opens a file of the checkpoint, lets `fill` write it, commits it and notes its hash. */
static int write_file(struct ckpt_writer *w, const char *name, bool tensors,
                      int (*fill)(struct outfile *f, struct xxh *hash, void *arg, struct err *e),
                      void *arg, struct err *e)
{
    struct outfile f;
    char *path = path_join(w->tmp, name);
    struct xxh *hash = xxh_create();
    check_new_file(w, name);
    int code = outfile_open(&f, path, e);
    if (!code)
        code = fill(&f, hash, arg, e);
    uint64_t size = f.size;
    if (!code)
        code = outfile_commit(&f, e);
    if (code)
        outfile_abort(&f);
    else
        add_file(w, name, size, hash, tensors);
    xxh_destroy(hash);
    free(path);
    return code;
}

struct bytes {
    const void *p;
    size_t n;
};

static int fill_bytes(struct outfile *f, struct xxh *hash, void *arg, struct err *e)
{
    const struct bytes *b = arg;
    xxh_add(hash, b->p, b->n);
    f->expected = b->n;
    return outfile_write(f, b->p, b->n, e);
}

int ckpt_put_bytes(struct ckpt_writer *w, const char *name, const void *p, size_t n, struct err *e)
{
    struct bytes b = {p, n};
    return write_file(w, name, false, fill_bytes, &b, e);
}

static int fill_copy(struct outfile *f, struct xxh *hash, void *arg, struct err *e)
{
    enum { CHUNK = 1 << 20 };
    const char *source = arg;
    int fd = open(source, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", source);
    char *chunk = mem_new(CHUNK, 1);
    while (!code) {
        ssize_t n = read(fd, chunk, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = err_sys(e, errno, "%s: cannot read", source);
        if (n <= 0)
            break;
        xxh_add(hash, chunk, (size_t)n);
        code = outfile_write(f, chunk, (size_t)n, e);
    }
    free(chunk);
    close(fd);
    return code;
}

int ckpt_put_file(struct ckpt_writer *w, const char *name, const char *source, struct err *e)
{
    char *path = mem_strdup(source);
    int code = write_file(w, name, false, fill_copy, path, e);
    free(path);
    return code;
}

/* ---- tensors ------------------------------------------------------------------------------- */

static const char *entry_name(struct arena *a, const char *name, int rank, struct box whole,
                              struct box b)
{
    long long r0 = b.begin[0], r1 = r0 + b.count[0], c0 = b.begin[1], c1 = c0 + b.count[1];
    if (box_equal(b, whole))
        return name;
    return rank == 1 ? arena_printf(a, "%s[%lld:%lld]", name, r0, r1)
                     : arena_printf(a, "%s[%lld:%lld,%lld:%lld]", name, r0, r1, c0, c1);
}

void ckpt_put(struct ckpt_writer *w, const char *group, const char *name, int rank,
              const int64_t *size, struct box_mem data)
{
    struct box whole = box_whole(rank, size);
    BUG_ON(w->done, "a tensor after the commit");
    BUG_ON(!box_inside(data.box, whole), "a box outside of '%s'", name);
    BUG_ON(!*name || strlen(name) > ST_NAME_MAX - 128, "tensor name '%s'", name);
    BUG_ON(!ckpt_manifest_group_name(group), "group '%s'", group);
    struct put p = {.rank = rank, .size = {whole.count[0], whole.count[1]}, .data = data};
    p.group = arena_strdup(&w->arena, group);
    p.name = arena_strdup(&w->arena, name);
    p.entry = entry_name(&w->arena, p.name, rank, whole, data.box);
    w->put = mem_grow(w->put, w->nput + 1, sizeof(*w->put));
    w->put[w->nput++] = p;
}

static int put_order(const void *a, const void *b)
{
    const struct put *x = a, *y = b;
    int order = ckpt_manifest_order(x->group, x->name, y->group, y->name);
    for (int d = 0; !order && d < 2; d++)
        if (x->data.box.begin[d] != y->data.box.begin[d])
            order = x->data.box.begin[d] < y->data.box.begin[d] ? -1 : 1;
    return order;
}

/* How many puts from i on are boxes of one tensor. */
static size_t same_tensor(const struct ckpt_writer *w, size_t i)
{
    size_t j = i + 1;
    while (j < w->nput && !strcmp(w->put[j].group, w->put[i].group) &&
           !strcmp(w->put[j].name, w->put[i].name))
        j++;
    return j - i;
}

/* Every tensor whole, of one shape and type: whoever put them knows no other. */
static void check_puts(struct ckpt_writer *w)
{
    for (size_t i = 0, n; i < w->nput; i += n) {
        const struct put *p = &w->put[i];
        n = same_tensor(w, i);
        struct box *part = mem_new(n, sizeof(*part));
        for (size_t k = 0; k < n; k++) {
            BUG_ON(p[k].rank != p->rank || p[k].size[0] != p->size[0] ||
                       p[k].size[1] != p->size[1] || p[k].data.dtype != p->data.dtype,
                   "two shapes or types of '%s'", p->name);
            part[k] = p[k].data.box;
        }
        size_t at;
        enum box_flaw flaw = box_cover(box_whole(p->rank, p->size), part, n, &at);
        BUG_ON(flaw != BOX_COVERED, "the boxes of '%s' do not cover it once: flaw %d at %zu",
               p->name, (int)flaw, at);
        free(part);
    }
}

struct items {
    struct st_item *at;
    size_t n;
};

static int fill_items(struct outfile *f, struct xxh *hash, void *arg, struct err *e)
{
    struct items *t = arg;
    return st_write(f, t->at, t->n, hash, e);
}

static const char *group_file(struct ckpt_writer *w, const char *group)
{
    return arena_printf(&w->arena, "%s-00000.safetensors", group);
}

/* How many puts from i on are of one group. */
static size_t same_group(const struct ckpt_writer *w, size_t i)
{
    size_t j = i + 1;
    while (j < w->nput && !strcmp(w->put[j].group, w->put[i].group))
        j++;
    return j - i;
}

/* The group of n puts from i on. */
static int write_group(struct ckpt_writer *w, size_t i, size_t n, struct err *e)
{
    struct items t = {mem_new(n, sizeof(*t.at)), n};
    for (size_t k = 0; k < n; k++)
        t.at[k] = (struct st_item){w->put[i + k].entry, w->put[i + k].rank, w->put[i + k].data};
    int code = write_file(w, group_file(w, w->put[i].group), true, fill_items, &t, e);
    free(t.at);
    return code;
}

/* ---- commit -------------------------------------------------------------------------------- */

static size_t file_index(const struct ckpt_writer *w, const char *name)
{
    for (size_t i = 0; i < w->nfile; i++)
        if (strcmp(w->file[i].name, name) == 0)
            return i;
    BUG("no file %s", name);
}

static void fill_manifest(struct ckpt_writer *w, struct ckpt_manifest *m)
{
    m->file = w->file;
    m->files = w->nfile;
    m->part = mem_new(w->nput + 1, sizeof(*m->part));
    m->tensor = mem_new(w->nput + 1, sizeof(*m->tensor));
    for (size_t i = 0, n; i < w->nput; i += n) {
        const struct put *p = &w->put[i];
        size_t file = file_index(w, group_file(w, p->group));
        n = same_tensor(w, i);
        m->tensor[m->tensors++] = (struct ckpt_manifest_tensor){
            p->group, p->name, p->rank, {p->size[0], p->size[1]}, m->nparts, n};
        for (size_t k = 0; k < n; k++)
            m->part[m->nparts++] = (struct ckpt_manifest_part){
                file, p[k].entry, {p[k].data.box.begin[0], p[k].data.box.begin[1]}};
    }
}

static int write_manifest(struct ckpt_writer *w, const struct ckpt_meta *meta, struct err *e)
{
    struct ckpt_manifest m = {.meta = *meta};
    struct buf text = {0};
    fill_manifest(w, &m);
    ckpt_manifest_write(&m, &text);
    w->manifest.expected = text.len;
    int code = outfile_write(&w->manifest, text.data, text.len, e);
    if (!code)
        code = outfile_sync(&w->manifest, e);
    if (!code)
        code = file_sync_dir(w->tmp, e);
    buf_finish(&text);
    free(m.part);
    free(m.tensor);
    return code;
}

/* The folder gets its final name, and its lock may go. */
static int publish(struct ckpt_writer *w, struct err *e)
{
    if (!file_is_still(w->manifest.fd, w->manifest.tmp))
        return err_set(e, ERR_IO, "%s: another process took it away", w->tmp);
    int code = place_publish(w->dir, w->iteration, w->tmp, e);
    if (!code)
        outfile_leave(&w->manifest);
    return code;
}

static int write_hint(const struct ckpt_writer *w, struct err *e)
{
    char text[32], *path = path_join(w->dir, "latest_checkpointed_iteration.txt");
    int n = snprintf(text, sizeof(text), "%lld", (long long)w->iteration);
    int code = file_replace(path, text, (size_t)n, e);
    free(path);
    return code;
}

static uint64_t total_bytes(struct ckpt_writer *w)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w->nput; i++)
        sum += (uint64_t)box_count(w->put[i].data.box) * dtype_size(w->put[i].data.dtype);
    for (size_t i = 0; i < w->nfile; i++)
        sum += w->file[i].size;
    return sum;
}

int ckpt_commit(struct ckpt_writer *w, const struct ckpt_meta *meta, struct err *e)
{
    BUG_ON(w->done, "a second commit");
    BUG_ON(meta->iteration != w->iteration, "iteration %lld of %lld", (long long)meta->iteration,
           (long long)w->iteration);
    w->done = true;
    if (w->nput)
        qsort(w->put, w->nput, sizeof(*w->put), put_order);
    check_puts(w);
    uint64_t total = total_bytes(w);
    int code = 0;
    for (size_t i = 0, n; !code && i < w->nput; i += n) {
        n = same_group(w, i);
        code = write_group(w, i, n, e);
    }
    if (!code)
        code = write_manifest(w, meta, e);
    if (!code)
        code = publish(w, e);
    if (code)
        return err_wrap(e, "%s, a checkpoint of %llu bytes", w->final, (unsigned long long)total);
    code = file_sync_dir(w->dir, e);
    if (!code)
        place_replaced(w->dir, w->iteration, w->tmp);
    if (!code)
        code = write_hint(w, e);
    return code ? err_wrap(e, "%s is whole, but", w->final) : 0;
}
