/* SPDX-License-Identifier: Apache-2.0 */

/* Verifies that the files contain what was written. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/each.h"
#include "train/ckpt/open.h"

/* ---- what was read ------------------------------------------------------------------------- */

void ckpt_saw(struct ckpt *c, size_t file, uint64_t at, const void *p, size_t n)
{
    const char *s = p;
    bool sums = c->m.version > 1;
    while (n) {
        struct fingerprint sum = {0};
        size_t left = (size_t)(CKPT_PIECE - at % CKPT_PIECE), k = n < left ? n : left;
        if (sums)
            fingerprint_add(&sum, at, s, k);
        pthread_mutex_lock(&c->lock);
        struct ckpt_seen *seen = &c->seen[file][sums ? at / CKPT_PIECE : 0];
        fingerprint_join(&seen->sum, sum);
        seen->bytes += k;
        pthread_mutex_unlock(&c->lock);
        at += k;
        s += k;
        n -= k;
    }
}

static uint64_t piece_size(const struct ckpt_file *f, size_t k)
{
    uint64_t at = (uint64_t)k * CKPT_PIECE;
    return f->size - at < CKPT_PIECE ? f->size - at : CKPT_PIECE;
}

/* Whether all of a piece was read and is right. A byte that was read twice makes the sum wrong, and
 * the piece is read again. */
static bool seen_whole(const struct ckpt *c, size_t file, size_t k)
{
    const struct ckpt_file *f = &c->m.file[file];
    const struct ckpt_seen *s = &c->seen[file][k];
    return c->m.version > 1 && s->bytes == piece_size(f, k) &&
           fingerprint_equal(s->sum, f->piece[k]);
}

/* Whether data of a piece were read, or in version 1 of the file: more than the header. */
static bool seen_data(const struct ckpt *c, size_t file, size_t k)
{
    return c->seen[file] && c->seen[file][k].bytes > (k ? 0 : c->header[file]);
}

/* ---- reading a piece ------------------------------------------------------------------------ */

enum { CHUNK = 1 << 20 };

/* Hands [at, at + n) of a file to `take`, chunk by chunk; what a file lacks is passed over. */
static int read_range(const char *path, uint64_t at, uint64_t n,
                      void (*take)(void *arg, uint64_t at, const char *p, size_t n), void *arg,
                      struct err *e)
{
    int fd, code = file_open_plain(path, UINT64_MAX, &fd, NULL, e);
    if (code)
        return code;
    char *chunk = mem_new(CHUNK, 1);
    for (uint64_t end = at + n; at < end;) {
        size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t k = pread(fd, chunk, want, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            code = err_sys(e, errno, "%s: cannot read", path);
        if (k <= 0)
            break;
        take(arg, at, chunk, (size_t)k);
        posix_fadvise(fd, (off_t)at, k, POSIX_FADV_DONTNEED);
        at += (uint64_t)k;
    }
    free(chunk);
    close(fd);
    return code;
}

static void take_sum(void *arg, uint64_t at, const char *p, size_t n)
{
    fingerprint_add(arg, at, p, n);
}

static void take_xxh(void *arg, uint64_t at, const char *p, size_t n)
{
    (void)at;
    xxh_add(arg, p, n);
}

/* ---- verifying ----------------------------------------------------------------------------- */

/* A piece of a file; in version 1 the whole of it. */
struct piece {
    size_t file, k;
    int code;
    struct err *why; /* NULL where the code is 0 */
};

struct verification {
    struct ckpt *c;
    struct piece *piece;
    size_t n;
};

static int differs(const char *path, const char *kind, const char *is, const char *was,
                   struct err *e)
{
    return err_set(e, ERR_INTEGRITY,
                   "%s: its bytes are not those that were written (%s %s instead of %s)", path,
                   kind, is, was);
}

static int verify_whole(const struct ckpt_file *f, const char *path, struct err *e)
{
    char digest[XXH_TEXT];
    struct xxh *h = xxh_create();
    int code = read_range(path, 0, f->size, take_xxh, h, e);
    xxh_text(h, digest);
    xxh_destroy(h);
    if (!code && strcmp(digest, f->digest) != 0)
        code = differs(path, "XXH3-128", digest, f->digest, e);
    return code;
}

static int verify_sum(const struct ckpt_file *f, const char *path, size_t k, struct err *e)
{
    struct fingerprint sum = {0};
    char is[FINGERPRINT_TEXT], was[FINGERPRINT_TEXT], kind[64];
    int code = read_range(path, (uint64_t)k * CKPT_PIECE, piece_size(f, k), take_sum, &sum, e);
    if (code || fingerprint_equal(sum, f->piece[k]))
        return code;
    fingerprint_text(sum, is);
    fingerprint_text(f->piece[k], was);
    snprintf(kind, sizeof(kind), f->pieces > 1 ? "piece %zu of 64 MiB: sum" : "sum", k);
    return differs(path, kind, is, was, e);
}

static int verify_piece(void *arg, size_t i, struct err *e)
{
    struct verification *v = arg;
    struct piece *p = &v->piece[i];
    const struct ckpt_file *f = &v->c->m.file[p->file];
    char *path = path_join(v->c->path, f->name);
    struct err why;
    (void)e;
    p->code = v->c->m.version > 1 ? verify_sum(f, path, p->k, &why) : verify_whole(f, path, &why);
    if (p->code) {
        p->why = mem_new(1, sizeof(why));
        *p->why = why;
    }
    free(path);
    return 0;
}

static void add_piece(struct verification *v, size_t file, size_t k)
{
    v->piece = mem_grow(v->piece, v->n + 1, sizeof(*v->piece));
    v->piece[v->n++] = (struct piece){.file = file, .k = k};
}

static void add_file(struct verification *v, size_t file)
{
    size_t n = v->c->m.version > 1 ? v->c->m.file[file].pieces : 1;
    for (size_t k = 0; k < n; k++)
        add_piece(v, file, k);
}

/* ---- which tensors -------------------------------------------------------------------------- */

/* A part of the tensor has bytes in a piece that is damaged. */
static bool lies_there(const struct verification *v, const struct ckpt_part *p)
{
    const struct st_file *s = &v->c->file[p->file];
    uint64_t begin = s->data_at + p->entry->begin, end = s->data_at + p->entry->end;
    for (size_t i = 0; i < v->n; i++) {
        uint64_t at = (uint64_t)v->piece[i].k * CKPT_PIECE;
        if (v->piece[i].code && v->piece[i].file == p->file && begin < at + CKPT_PIECE && end > at)
            return true;
    }
    return false;
}

struct part_sum {
    const struct ckpt_part *part;
    uint64_t at; /* in the file, of the part */
    int64_t columns;
    struct fingerprint sum;
};

/* Bytes of a part at their places in the tensor. */
static void take_part(void *arg, uint64_t at, const char *p, size_t n)
{
    struct part_sum *s = arg;
    size_t width = dtype_size((enum dtype)s->part->entry->dtype);
    uint64_t row = (uint64_t)s->part->box.count[1] * width, i = at - s->at;
    uint64_t whole = (uint64_t)s->columns * width;
    while (n) {
        uint64_t left = row == whole ? n : row - i % row;
        size_t k = n < left ? n : (size_t)left;
        uint64_t place = ((uint64_t)s->part->box.begin[0] + i / row) * whole +
                         (uint64_t)s->part->box.begin[1] * width + i % row;
        fingerprint_add(&s->sum, place, p, k);
        i += k;
        p += k;
        n -= k;
    }
}

int ckpt_fingerprint(const struct ckpt *c, size_t tensor, struct fingerprint *ret, struct err *e)
{
    const struct ckpt_manifest_tensor *t = &c->m.tensor[tensor];
    int code = 0;
    *ret = (struct fingerprint){0};
    for (size_t i = 0; !code && i < t->parts; i++) {
        const struct ckpt_part *p = &c->part[t->part + i];
        const struct st_file *s = &c->file[p->file];
        struct part_sum sum = {p, s->data_at + p->entry->begin, t->size[1], {0}};
        code = read_range(s->path, sum.at, p->entry->end - p->entry->begin, take_part, &sum, e);
        fingerprint_join(ret, sum.sum);
    }
    return code;
}

/* Names the tensors whose fingerprints are not those of the manifest. */
static void name_tensors(const struct verification *v, struct buf *out)
{
    enum { NAMED = 4 };
    const struct ckpt *c = v->c;
    size_t n = 0;
    for (size_t i = 0; c->m.version > 1 && i < c->m.tensors; i++) {
        const struct ckpt_manifest_tensor *t = &c->m.tensor[i];
        struct fingerprint sum;
        bool there = false;
        for (size_t k = 0; !there && k < t->parts; k++)
            there = lies_there(v, &c->part[t->part + k]);
        if (!there || !t->has_sum || ckpt_fingerprint(c, i, &sum, NULL) ||
            fingerprint_equal(sum, t->sum))
            continue;
        if (n++ < NAMED)
            buf_addf(out, "%s %s '%.120s'", n > 1 ? "," : "; damaged:", t->group, t->name);
    }
    if (n > NAMED)
        buf_addf(out, " and %zu more", n - NAMED);
}

/* The first failure, the names of all other files that failed, and the tensors. */
static int report_damage(const struct verification *v, struct err *e)
{
    enum { NAMED = 8 };
    const struct ckpt *c = v->c;
    size_t first = 0, others = 0, last;
    struct buf names = {0};
    while (first < v->n && !v->piece[first].code)
        first++;
    if (first == v->n)
        return 0;
    last = v->piece[first].file;
    for (size_t i = first + 1; i < v->n; i++) {
        if (!v->piece[i].code || v->piece[i].file == last)
            continue;
        last = v->piece[i].file;
        if (others++ < NAMED)
            buf_addf(&names, "%s%s", others > 1 ? ", " : "; also damaged: ", c->m.file[last].name);
    }
    if (others > NAMED)
        buf_addf(&names, " and %zu more", others - NAMED);
    if (v->piece[first].code == ERR_INTEGRITY)
        name_tensors(v, &names);
    if (e) {
        *e = *v->piece[first].why;
        size_t n = strlen(e->msg);
        snprintf(e->msg + n, sizeof(e->msg) - n, "%s", buf_str(&names));
    }
    buf_finish(&names);
    return v->piece[first].code;
}

static int judge(struct verification *v, struct err *e)
{
    each_run(v->n, 0, verify_piece, v, NULL);
    int code = report_damage(v, e);
    for (size_t i = 0; i < v->n; i++)
        free(v->piece[i].why);
    free(v->piece);
    return code;
}

int ckpt_verify(struct ckpt *c, struct err *e)
{
    struct verification v = {.c = c};
    for (size_t i = 0; i < c->m.files; i++)
        add_file(&v, i);
    return judge(&v, e);
}

int ckpt_verify_further(struct ckpt *c, struct err *e)
{
    struct verification v = {.c = c};
    for (size_t i = 0; i < c->m.files; i++)
        if (!c->m.file[i].tensors)
            add_file(&v, i);
    return judge(&v, e);
}

int ckpt_check(struct ckpt *c, struct err *e)
{
    struct verification v = {.c = c};
    for (size_t i = 0; i < c->m.files; i++) {
        size_t n = c->m.version > 1 ? c->m.file[i].pieces : 1;
        for (size_t k = 0; c->seen[i] && k < n; k++)
            if (seen_data(c, i, k) && !seen_whole(c, i, k))
                add_piece(&v, i, k);
    }
    return judge(&v, e);
}
