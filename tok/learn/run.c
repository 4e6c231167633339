/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/text/count_table.h"

enum {
    HEAD = 12,
    WRITE = 1 << 20,
    READ = 1 << 18,
    READ_ALL = 16 << 20,
    READ_LEAST = 4096,
    PADDING = 24
};

void learn_runs_init(struct learn_runs *r, const char *beside)
{
    *r = (struct learn_runs){.fd = -1, .beside = mem_strdup(beside)};
}

void learn_runs_finish(struct learn_runs *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->beside);
    free(r->end);
    buf_finish(&r->out);
    *r = (struct learn_runs){.fd = -1};
}

int learn_word_compare(const char *a, size_t na, const char *b, size_t nb)
{
    int c = memcmp(a, b, na < nb ? na : nb);
    return c ? c : (na > nb) - (na < nb);
}

/* ---- writing ----------------------------------------------------------------------------- */

static int run_open_file(struct learn_runs *r, struct err *e)
{
    char *dir = path_dir(r->beside);
    r->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->fd < 0) { /* some file systems lack unnamed files */
        char *name = path_join(dir, ".weft-runs.XXXXXX");
        r->fd = mkostemp(name, O_CLOEXEC);
        int saved = errno;
        if (r->fd >= 0)
            unlink(name);
        free(name);
        errno = saved;
    }
    int saved = errno;
    free(dir);
    return r->fd >= 0 ? 0 : err_sys(e, saved, "%s: cannot create a file beside it", r->beside);
}

static int run_write_out(struct learn_runs *r, struct err *e)
{
    int code = r->fd < 0 ? run_open_file(r, e) : 0;
    const char *p = r->out.data;
    for (size_t n = r->out.len; n && !code;) {
        ssize_t k = write(r->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == ENOSPC || errno == EDQUOT)) {
            code = err_set(e, ERR_IO,
                           "%s: the disk is full (%" PRIu64 " bytes of counts were needed beside "
                           "it so far)",
                           r->beside, r->size);
            err_hint(e, "free some space there, or give a larger --memory");
        } else if (k < 0) {
            code = err_sys(e, errno, "%s: cannot write beside it", r->beside);
        } else {
            p += k;
            n -= (size_t)k;
        }
    }
    buf_reset(&r->out);
    return code;
}

int learn_runs_add(struct learn_runs *r, const char *word, uint32_t n, uint64_t count,
                   struct err *e)
{
    char *p = buf_reserve(&r->out, HEAD + (size_t)n);
    store_u32(p, n);
    store_u64(p + 4, count);
    memcpy(p + HEAD, word, n);
    r->out.len += HEAD + (size_t)n;
    r->size += HEAD + (uint64_t)n;
    return r->out.len >= WRITE ? run_write_out(r, e) : 0;
}

int learn_runs_end(struct learn_runs *r, struct err *e)
{
    r->end = mem_grow(r->end, r->n + 1, sizeof(*r->end));
    r->end[r->n++] = r->size;
    return run_write_out(r, e);
}

/* ---- merging ----------------------------------------------------------------------------- */

struct cursor {
    uint64_t at, end; /* in the file, of the part not yet read */
    size_t read;      /* bytes per read */
    struct buf buf;
    size_t pos; /* of the current record in the buffer */
    const char *word;
    uint64_t hash;
    uint32_t n;
    uint64_t count;
    bool done;
};

/* Makes `need` bytes from pos on available. */
static int pull(const struct learn_runs *r, struct cursor *c, size_t need, struct err *e)
{
    if (c->buf.len - c->pos >= need)
        return 0;
    if (c->pos)
        memmove(c->buf.data, c->buf.data + c->pos, c->buf.len - c->pos);
    c->buf.len -= c->pos;
    c->pos = 0;
    while (c->buf.len < need) {
        uint64_t left = c->end - c->at;
        size_t want = need > c->read ? need : c->read;
        want = want > left ? (size_t)left : want;
        ssize_t k = pread(r->fd, buf_reserve(&c->buf, want + PADDING), want, (off_t)c->at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, errno, "%s: cannot read what was written beside it", r->beside);
        if (k == 0)
            return err_set(e, ERR_IO, "%s: the counts written beside it were cut short", r->beside);
        c->buf.len += (size_t)k;
        c->at += (uint64_t)k;
    }
    return 0;
}

static int advance(const struct learn_runs *r, struct cursor *c, struct err *e)
{
    c->pos += c->word ? HEAD + (size_t)c->n : 0;
    if (c->at == c->end && c->pos == c->buf.len) {
        c->done = true;
        return 0;
    }
    int code = pull(r, c, HEAD, e);
    if (code)
        return code;
    c->n = load_u32(c->buf.data + c->pos);
    c->count = load_u64(c->buf.data + c->pos + 4);
    code = pull(r, c, HEAD + (size_t)c->n, e);
    c->word = c->buf.data + c->pos + HEAD;
    if (!code)
        c->hash = learn_word_hash(c->word, c->n);
    return code;
}

static bool run_before(const struct cursor *a, const struct cursor *b)
{
    if (a->done || b->done)
        return !a->done;
    if (a->hash != b->hash)
        return a->hash < b->hash;
    return learn_word_compare(a->word, a->n, b->word, b->n) < 0;
}

static void sift(struct cursor **heap, size_t n, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t k = 2 * i + 1; k < n && k <= 2 * i + 2; k++)
            if (run_before(heap[k], heap[least]))
                least = k;
        if (least == i)
            return;
        struct cursor *t = heap[i];
        heap[i] = heap[least];
        heap[least] = t;
        i = least;
    }
}

static int walk(const struct learn_runs *r, struct cursor **heap, learn_run_fn *fn, void *arg,
                struct err *e)
{
    struct buf word = {0};
    uint64_t count = 0, hash = 0;
    bool any = false;
    int code = 0;
    while (!code && !heap[0]->done) {
        struct cursor *c = heap[0];
        if (any &&
            (hash != c->hash || learn_word_compare(word.data, word.len, c->word, c->n) != 0)) {
            code = fn(arg, word.data, (uint32_t)word.len, count, e);
            any = false;
        }
        if (!any) {
            buf_reset(&word);
            buf_add(&word, c->word, c->n);
            hash = c->hash;
            count = 0;
            any = true;
        }
        count += c->count;
        if (!code)
            code = advance(r, c, e);
        sift(heap, r->n, 0);
    }
    if (!code && any)
        code = fn(arg, word.data, (uint32_t)word.len, count, e);
    buf_finish(&word);
    return code;
}

int learn_runs_walk(const struct learn_runs *r, learn_run_fn *fn, void *arg, struct err *e)
{
    if (!r->n)
        return 0;
    struct cursor *c = mem_new(r->n, sizeof(*c));
    struct cursor **heap = mem_new(r->n, sizeof(struct cursor *));
    int code = 0;
    for (size_t i = 0; i < r->n && !code; i++) {
        c[i].at = i ? r->end[i - 1] : 0;
        c[i].end = r->end[i];
        c[i].read = READ_ALL / r->n;
        c[i].read = c[i].read > READ ? READ : c[i].read < READ_LEAST ? READ_LEAST : c[i].read;
        code = advance(r, &c[i], e);
        heap[i] = &c[i];
    }
    if (!code) {
        for (size_t i = r->n; i-- > 0;)
            sift(heap, r->n, i);
        code = walk(r, heap, fn, arg, e);
    }
    for (size_t i = 0; i < r->n; i++)
        buf_finish(&c[i].buf);
    free(c);
    free(heap);
    return code;
}
