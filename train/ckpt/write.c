/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/manifest.h"
#include "train/ckpt/merge.h"
#include "train/ckpt/place.h"

struct ckpt_writer {
    char *dir, *tmp, *final;
    int64_t iteration;
    struct ckpt_file *file; /* further ones */
    size_t nfile;
    struct ckpt_manifest *shard;
    size_t nshards;
    struct arena arena;      /* names and sums */
    struct outfile manifest; /* opened first and held to the end: its lock is the folder's */
    bool done;               /* commit was called */
    char *mark;              /* of one that can be continued: a file's name; NULL: none */
    bool keep;
    char *made; /* the first folder that was made for it; NULL: none */
};

/* The folder of all checkpoints. */
static int make_dir(const char *dir, struct err *e)
{
    bool there = file_is_dir(dir);
    int code = file_mkdirs(dir, e);
    if (!code && !there) {
        char *parent = path_dir(dir);
        code = file_sync_dir(parent, e);
        free(parent);
    }
    return code;
}

static struct ckpt_writer *new_writer(const char *dir, int64_t iteration)
{
    BUG_ON(iteration < 0, "iteration %lld", (long long)iteration);
    struct ckpt_writer *w = mem_new(1, sizeof(*w));
    w->dir = mem_strdup(dir);
    w->iteration = iteration;
    w->manifest.fd = -1;
    w->final = place_final(dir, iteration);
    w->made = file_first_missing(dir);
    return w;
}

int ckpt_writer_open(const char *dir, int64_t iteration, struct ckpt_writer **ret, struct err *e)
{
    struct ckpt_writer *w = new_writer(dir, iteration);
    int code = make_dir(dir, e);
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

int ckpt_writer_resume(const char *dir, int64_t iteration, const struct outdir_mark *mark,
                       enum outdir_left *ret_left, struct ckpt_writer **ret, struct err *e)
{
    struct ckpt_writer *w = new_writer(dir, iteration);
    int code = make_dir(dir, e);
    w->mark = mem_strdup(mark->name);
    if (!code) {
        char *manifest = path_join(w->final, "manifest.json");
        code = outdir_resume(w->final, manifest, mark, &w->manifest, &w->tmp, ret_left, e);
        free(manifest);
    }
    if (!code)
        place_clean(dir); /* the lock keeps it from the folder that is continued */
    if (code)
        ckpt_writer_close(w);
    else
        *ret = w;
    return code;
}

void ckpt_writer_keep(struct ckpt_writer *w)
{
    w->keep = w->mark != NULL;
}

void ckpt_writer_close(struct ckpt_writer *w)
{
    if (!w)
        return;
    if (w->tmp && w->manifest.fd >= 0 && !w->keep)
        file_remove_tree(w->tmp, NULL);
    outfile_leave(&w->manifest);
    if (!w->keep)
        file_prune(w->dir, w->made);
    free(w->made);
    free(w->mark);
    free(w->dir);
    free(w->tmp);
    free(w->final);
    for (size_t i = 0; i < w->nshards; i++)
        ckpt_manifest_finish(&w->shard[i]);
    free(w->shard);
    free(w->file);
    arena_finish(&w->arena);
    free(w);
}

/* ---- files --------------------------------------------------------------------------------- */

/* The sums of a file that is written front to back. */
struct sums {
    struct fingerprint *piece;
    size_t n;
    uint64_t at;
};

static void sums_add(struct sums *s, const char *p, size_t n)
{
    while (n) {
        size_t left = (size_t)(CKPT_PIECE - s->at % CKPT_PIECE), k = n < left ? n : left;
        if (s->at % CKPT_PIECE == 0) {
            s->piece = mem_grow(s->piece, s->n + 1, sizeof(*s->piece));
            s->piece[s->n++] = (struct fingerprint){0};
        }
        fingerprint_add(&s->piece[s->n - 1], s->at, p, k);
        s->at += k;
        p += k;
        n -= k;
    }
}

static void add_file(struct ckpt_writer *w, const char *name, uint64_t size, const struct sums *s)
{
    w->file = mem_grow(w->file, w->nfile + 1, sizeof(*w->file));
    struct ckpt_file *f = &w->file[w->nfile++];
    *f = (struct ckpt_file){.name = arena_strdup(&w->arena, name), .size = size};
    ckpt_manifest_sums(&w->arena, s->piece, s->n, f);
}

static void check_new_file(const struct ckpt_writer *w, const char *name)
{
    BUG_ON(!ckpt_manifest_file_name(name) || !strcmp(name, "manifest.json"), "file name '%s'",
           name);
    for (size_t i = 0; i < w->nfile; i++)
        BUG_ON(!strcmp(w->file[i].name, name), "two files '%s' in a checkpoint", name);
}

/* Opens a file of the checkpoint, lets `fill` write it, commits it and notes its sums. */
static int write_file(struct ckpt_writer *w, const char *name,
                      int (*fill)(struct outfile *f, struct sums *s, void *arg, struct err *e),
                      void *arg, struct err *e)
{
    struct outfile f;
    char *path = path_join(w->tmp, name);
    struct sums sums = {0};
    check_new_file(w, name);
    int code = outfile_open(&f, path, e);
    if (!code)
        code = fill(&f, &sums, arg, e);
    uint64_t size = f.size;
    if (!code)
        code = outfile_commit(&f, e);
    if (code)
        outfile_abort(&f);
    else
        add_file(w, name, size, &sums);
    free(sums.piece);
    free(path);
    return code;
}

struct bytes {
    const void *p;
    size_t n;
};

static int fill_bytes(struct outfile *f, struct sums *s, void *arg, struct err *e)
{
    const struct bytes *b = arg;
    sums_add(s, b->p, b->n);
    f->expected = b->n;
    return outfile_write(f, b->p, b->n, e);
}

int ckpt_put_bytes(struct ckpt_writer *w, const char *name, const void *p, size_t n, struct err *e)
{
    struct bytes b = {p, n};
    return write_file(w, name, fill_bytes, &b, e);
}

static int fill_copy(struct outfile *f, struct sums *s, void *arg, struct err *e)
{
    enum { CHUNK = 1 << 20 };
    const char *source = arg;
    uint64_t left;
    int fd, code = file_open_plain(source, FILE_BESIDE_MAX, &fd, &left, e);
    if (code)
        return code;
    char *chunk = mem_new(CHUNK, 1);
    while (!code) {
        ssize_t n = read(fd, chunk, left < CHUNK ? (size_t)left : CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = err_sys(e, errno, "%s: cannot read", source);
        if (n <= 0)
            break;
        sums_add(s, chunk, (size_t)n);
        code = outfile_write(f, chunk, (size_t)n, e);
        left -= (uint64_t)n;
    }
    free(chunk);
    close(fd);
    return code;
}

int ckpt_put_file(struct ckpt_writer *w, const char *name, const char *source, struct err *e)
{
    char *path = mem_strdup(source);
    int code = write_file(w, name, fill_copy, path, e);
    free(path);
    return code;
}

/* ---- tensors ------------------------------------------------------------------------------- */

const char *ckpt_writer_folder(const struct ckpt_writer *w)
{
    return w->tmp;
}

int ckpt_add(struct ckpt_writer *w, const char *fragment, size_t n, struct err *e)
{
    struct ckpt_manifest m;
    BUG_ON(w->done, "a shard after the commit");
    int code = ckpt_manifest_parse_fragment(&m, "the fragment of a shard", fragment, n, e);
    if (!code && m.version != 2) {
        ckpt_manifest_finish(&m);
        code = err_set(e, ERR_DATA, "the fragment of a shard has version %d", m.version);
    }
    if (code) {
        if (e)
            e->code = ERR_DATA;
        return ERR_DATA;
    }
    w->shard = mem_grow(w->shard, w->nshards + 1, sizeof(*w->shard));
    w->shard[w->nshards++] = m;
    return 0;
}

/* ---- commit -------------------------------------------------------------------------------- */

static void add_own_files(const struct ckpt_writer *w, struct ckpt_manifest *m)
{
    for (size_t i = 0; i < w->nfile; i++) {
        m->file = mem_grow(m->file, m->files + 1, sizeof(*m->file));
        m->file[m->files++] = w->file[i];
    }
}

/* The journal is not part of the checkpoint. */
static int remove_mark(struct ckpt_writer *w, struct err *e)
{
    char *path = path_join(w->tmp, w->mark);
    int code = unlink(path) ? err_sys(e, errno, "%s: cannot remove", path) : 0;
    free(path);
    free(w->mark);
    w->mark = NULL;
    return code;
}

static int write_manifest(struct ckpt_writer *w, const struct ckpt_manifest *m, struct err *e)
{
    struct buf text = {0};
    ckpt_manifest_write(m, &text);
    w->manifest.expected = text.len;
    int code = outfile_write(&w->manifest, text.data, text.len, e);
    if (!code)
        code = outfile_sync(&w->manifest, e);
    if (!code && w->mark)
        code = remove_mark(w, e);
    if (!code)
        code = file_sync_dir(w->tmp, e);
    buf_finish(&text);
    return code;
}

/* Renames the folder to its final name; its lock may be released. */
static int publish(struct ckpt_writer *w, struct err *e)
{
    if (!file_is_still(w->manifest.fd, w->manifest.tmp))
        return err_set(e, ERR_IO, "%s: another process took it away", w->tmp);
    int code = place_publish(w->dir, w->iteration, w->tmp, e);
    if (!code)
        outfile_leave(&w->manifest);
    return code;
}

/* The hint's new text, on disk under a temporary name: after the checkpoint is committed, a full
 * disk can no longer prevent the hint. */
static int prepare_hint(const struct ckpt_writer *w, struct outfile *hint, struct err *e)
{
    char text[32], *path = path_join(w->dir, "latest_checkpointed_iteration.txt");
    int n = snprintf(text, sizeof(text), "%lld", (long long)w->iteration);
    int code = outfile_open(hint, path, e);
    hint->expected = (uint64_t)n;
    if (!code)
        code = outfile_write(hint, text, (size_t)n, e);
    if (!code)
        code = outfile_sync(hint, e);
    free(path);
    return code;
}

static uint64_t total_bytes(const struct ckpt_manifest *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->files; i++)
        sum += m->file[i].size;
    return sum;
}

int ckpt_commit(struct ckpt_writer *w, const struct ckpt_meta *meta, struct err *e)
{
    struct ckpt_manifest m = {.version = 2, .meta = *meta};
    struct outfile hint = {.fd = -1};
    BUG_ON(w->done, "a second commit");
    BUG_ON(meta->iteration != w->iteration, "iteration %lld of %lld", (long long)meta->iteration,
           (long long)w->iteration);
    w->done = true;
    add_own_files(w, &m);
    int code = ckpt_merge(&m, w->shard, w->nshards, w->final, e);
    if (!code) {
        code = prepare_hint(w, &hint, e);
        if (!code)
            code = write_manifest(w, &m, e);
        if (!code)
            code = publish(w, e);
        if (code)
            err_wrap(e, "%s, a checkpoint of %llu bytes", w->final,
                     (unsigned long long)total_bytes(&m));
    }
    free(m.file);
    free(m.tensor);
    free(m.part);
    if (code) {
        outfile_abort(&hint);
        return code;
    }
    code = file_sync_dir(w->dir, e);
    if (!code)
        place_replaced(w->dir, w->iteration, w->tmp);
    if (!code)
        code = outfile_commit(&hint, e);
    outfile_abort(&hint);
    return code ? err_wrap(e, "%s is whole, but", w->final) : 0;
}
