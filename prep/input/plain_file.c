/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/plain_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "prep/input/lines.h"

enum {
    CHUNK = 16 << 10,  /* largest read when looking for the end of a block */
    LITTLE = 2 << 10,  /* first read; doubled each time */
    AGAIN = 256 << 10, /* read size for the digest only */
    AHEAD = 8 << 20,   /* read-ahead distance */
    ASKED = 1 << 20    /* read-ahead granularity */
};

struct plain_file {
    atomic_int holders;
    int fd;
    char *path;
    uint64_t size; /* when it was opened */
    struct xxh *hash;
    uint64_t hashed; /* bytes of it */
};

/* ---- the file ------------------------------------------------------------------------------- */

void plain_file_hold(struct plain_file *f)
{
    atomic_fetch_add_explicit(&f->holders, 1, memory_order_relaxed);
}

void plain_file_drop(struct plain_file *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->holders, 1, memory_order_acq_rel) > 1)
        return;
    close(f->fd);
    xxh_destroy(f->hash);
    free(f->path);
    free(f);
}

static int read_at(const struct plain_file *f, uint64_t at, char *p, size_t n, struct err *e)
{
    while (n) {
        ssize_t k = pread(f->fd, p, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, errno, "%s: cannot read at byte %" PRIu64, f->path, at);
        if (!k)
            return err_set(e, ERR_IO,
                           "%s: ends at byte %" PRIu64 "; it had %" PRIu64
                           " bytes when it was opened",
                           f->path, at, f->size);
        p += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return 0;
}

int plain_file_read(const struct plain_file *f, uint64_t at, size_t n, size_t padding,
                    struct buf *ret, struct err *e)
{
    buf_reset(ret);
    int code = read_at(f, at, buf_reserve(ret, n + padding), n, e);
    ret->len = code ? 0 : n;
    return code;
}

/* Hashes bytes that are not in memory. */
static int hash_up_to(struct plain_file *f, uint64_t end, struct err *e)
{
    struct buf b = {0};
    int code = 0;
    while (!code && f->hashed < end) {
        size_t n = end - f->hashed < AGAIN ? (size_t)(end - f->hashed) : AGAIN;
        code = plain_file_read(f, f->hashed, n, 0, &b, e);
        xxh_add(f->hash, b.data, b.len);
        f->hashed += b.len;
    }
    buf_finish(&b);
    return code;
}

int plain_file_hash(struct plain_file *f, const void *p, size_t n, uint64_t end, struct err *e)
{
    int code = hash_up_to(f, end - n, e);
    if (code)
        return code;
    xxh_add(f->hash, p, n);
    f->hashed += n;
    return 0;
}

void plain_file_digest(const struct plain_file *f, char ret[XXH_TEXT])
{
    *ret = '\0';
    if (f->hashed == f->size)
        xxh_text(f->hash, ret);
}

/* ---- opening -------------------------------------------------------------------------------- */

int plain_open(struct plain *p, const char *path, char sep, bool json, struct err *e)
{
    static const char mark[] = "\xEF\xBB\xBF";
    char first[sizeof(mark)];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    if (fstat(fd, &st)) {
        int why = errno;
        close(fd);
        return err_sys(e, why, "%s: cannot read its size", path);
    }
    struct plain_file *f = mem_new(1, sizeof(*f));
    f->fd = fd;
    f->path = mem_strdup(path);
    f->hash = xxh_create();
    f->size = (uint64_t)st.st_size;
    plain_file_hold(f);
    *p = (struct plain){.file = f, .sep = sep, .json = json, .end = f->size, .size = f->size};
    size_t n = f->size < 3 ? (size_t)f->size : 3;
    int code = read_at(f, 0, first, n, e);
    if (code)
        plain_close(p);
    else if (n == 3 && !memcmp(first, mark, 3))
        p->at = 3;
    return code;
}

void plain_close(struct plain *p)
{
    plain_file_drop(p->file);
    p->file = NULL;
}

/* ---- where lines end ------------------------------------------------------------------------ */

/*
 * Finds the end of the first separator in bytes [from, to), with `solid` of the first one after
 * something other than white space; `to` if there is none. *ret_found says which.
 */
static int plain_find(const struct plain *p, uint64_t from, uint64_t to, bool solid, uint64_t *ret,
                      bool *ret_found, struct err *e)
{
    char b[CHUNK];
    *ret_found = false;
    *ret = from;
    for (size_t most = LITTLE; *ret < to && !*ret_found; most += most < CHUNK ? most : 0) {
        size_t n = to - *ret < most ? (size_t)(to - *ret) : most, i = 0;
        int code = read_at(p->file, *ret, b, n, e);
        if (code)
            return code;
        while (solid && i < n && jsonl_white(b[i]))
            i++;
        solid = solid && i == n;
        const char *s = i < n ? memchr(b + i, p->sep, n - i) : NULL;
        *ret_found = s;
        *ret += s ? (size_t)(s - b) + 1 : n;
    }
    return 0;
}

/* The end of the last separator in bytes [from, to); `from` if there is none. */
static int find_last(const struct plain *p, uint64_t from, uint64_t to, uint64_t *ret,
                     struct err *e)
{
    char b[CHUNK];
    for (*ret = to; *ret > from;) {
        size_t n = *ret - from < CHUNK ? (size_t)(*ret - from) : CHUNK;
        int code = read_at(p->file, *ret - n, b, n, e);
        if (code)
            return code;
        const char *s = memrchr(b, p->sep, n);
        *ret -= n;
        if (s) {
            *ret += (size_t)(s - b) + 1;
            break;
        }
    }
    return 0;
}

/* Whether only white space follows `at`; it then belongs to the block before. */
static int blank_behind(const struct plain *p, uint64_t at, bool *ret, struct err *e)
{
    char b[CHUNK];
    int code = 0;
    *ret = true;
    while (!code && *ret && at < p->size) {
        size_t n = p->size - at < CHUNK ? (size_t)(p->size - at) : CHUNK;
        code = read_at(p->file, at, b, n, e);
        *ret = !code && jsonl_blank(b, b + n);
        at += n;
    }
    return code;
}

int plain_range(struct plain *p, uint64_t begin, uint64_t stop, struct err *e)
{
    bool found, blank = false;
    int code = 0;
    /* the line with the byte before a bound belongs to the range before it */
    if (begin)
        code = plain_find(p, begin - 1, p->size, false, &p->at, &found, e);
    if (!code && stop)
        code = plain_find(p, stop - 1, p->size, false, &p->end, &found, e);
    if (!code && p->json && p->end < p->size)
        code = blank_behind(p, p->end, &blank, e);
    if (blank)
        p->end = p->size;
    return code;
}

int plain_seek(struct plain *p, uint64_t at, struct err *e)
{
    if (at > p->size)
        return err_set(e, ERR_DATA,
                       "%s: has %" PRIu64 " bytes of text, but %" PRIu64
                       " of them were read before",
                       p->file->path, p->size, at);
    if (at)
        p->at = at;
    return 0;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Starts read-ahead, unless the data seem to be cached: the advice walks all pages, which takes a
 * twentieth of the time to read them. */
static void ask_ahead(struct plain *p)
{
    char c;
    struct iovec one = {&c, 1};
    uint64_t most = p->at + AHEAD, from = p->asked > p->at ? p->asked : most;
    if (from > most)
        return;
    p->asked = from + ASKED;
    if (preadv2(p->file->fd, &one, 1, (off_t)from, RWF_NOWAIT) < 0)
        posix_fadvise(p->file->fd, (off_t)from, ASKED, POSIX_FADV_WILLNEED);
}

int plain_next(struct plain *p, enum plain_kind *ret, uint64_t *ret_n, bool *ret_last,
               struct err *e)
{
    uint64_t left = p->at < p->end ? p->end - p->at : 0, cut = p->end;
    size_t block = lines_share(LINES_BLOCK, p->growth),
           longest = lines_share(LINES_LONG, p->growth);
    uint64_t most = p->at + (left < longest ? left : longest);
    int code = 0;
    if (left > block) {
        bool found;
        ask_ahead(p);
        code = plain_find(p, p->at + block, most, p->json, &cut, &found, e);
        if (!code && !found && most < p->end)
            code = find_last(p, p->at, most, &cut, e);
    }
    if (code)
        return code;
    *ret = !left ? PLAIN_END : cut > p->at ? PLAIN_LINES : PLAIN_LONG;
    *ret_n = left ? cut - p->at : 0;
    *ret_last = cut == p->size;
    if (*ret == PLAIN_LINES)
        p->at = cut;
    return 0;
}
