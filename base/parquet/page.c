/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/format/thrift.h"
#include "base/parquet/meta.h"

enum {
    IN = 64 << 10,
    OUT = 64 << 10,
    HEADER_FIRST = 4 << 10, /* bytes read for a header at first; statistics may make it longer */
    HEADER_MOST = 16 << 20,
    WINDOW_LOG_MAX = 27
};

int pq_page_bad(const struct pq_file *f, uint64_t page, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: the page at byte %" PRIu64 " %s", f->name, page, why);
}

/* n bytes at `at`, all before the footer. */
static int page_read_at(const struct pq_file *f, uint64_t at, void *p, size_t n, struct err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(f->fd, (char *)p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, errno, "%s: cannot read at byte %" PRIu64, f->name, at + done);
        if (!k)
            return err_set(e, ERR_IO, "%s: ends at byte %" PRIu64 ": the file shrank", f->name,
                           at + done);
        done += (size_t)k;
    }
    return 0;
}

/* ---- headers -------------------------------------------------------------------------------- */

static uint32_t page_count(struct thrift *t, const struct thrift_field *f)
{
    int64_t v = thrift_int(t, f);
    if (v < 0 || v > INT32_MAX)
        t->state = t->state == THRIFT_GOOD ? THRIFT_BAD : t->state;
    return v < 0 || v > INT32_MAX ? 0 : (uint32_t)v;
}

/* The header of a data page or of a dictionary. */
static void read_data(struct thrift *t, bool dictionary, struct pq_header *h)
{
    for (struct thrift_field f = {0}; thrift_next(t, &f);) {
        if (f.id == 1)
            h->values = page_count(t, &f);
        else if (f.id == 2)
            h->encoding = (int)page_count(t, &f);
        else if (f.id == 3 && !dictionary)
            h->levels = (int)page_count(t, &f);
        else
            thrift_skip(t, &f);
    }
}

static void read_data_v2(struct thrift *t, struct pq_header *h)
{
    h->levels = PQ_ENC_RLE;
    for (struct thrift_field f = {0}; thrift_next(t, &f);) {
        if (f.id == 1)
            h->values = page_count(t, &f);
        else if (f.id == 4)
            h->encoding = (int)page_count(t, &f);
        else if (f.id == 5)
            h->def_bytes = page_count(t, &f);
        else if (f.id == 6)
            h->rep_bytes = page_count(t, &f);
        else if (f.id == 7)
            h->compressed = thrift_bool(t, &f);
        else
            thrift_skip(t, &f);
    }
}

static void page_parse(struct thrift *t, struct pq_header *h)
{
    *h = (struct pq_header){.type = -1, .encoding = -1, .levels = PQ_ENC_RLE, .compressed = true};
    for (struct thrift_field f = {0}; thrift_next(t, &f);) {
        bool inner = f.id == 5 || f.id == 7 || f.id == 8;
        if (inner)
            thrift_struct(t, &f);
        if (f.id == 1)
            h->type = (int)page_count(t, &f);
        else if (f.id == 2)
            h->bytes = page_count(t, &f);
        else if (f.id == 3)
            h->packed = page_count(t, &f);
        else if (f.id == 4)
            h->crc = (uint32_t)thrift_int(t, &f);
        else if (f.id == 8)
            read_data_v2(t, h);
        else if (inner)
            read_data(t, f.id == 7, h);
        else
            thrift_skip(t, &f);
        h->has_crc |= f.id == 4;
    }
}

int pq_header_read(const struct pq_file *f, uint64_t at, uint64_t end, struct pq_header *ret,
                   struct err *e)
{
    struct thrift t = {.state = THRIFT_SHORT};
    unsigned char *p = NULL;
    int code = 0;
    for (uint64_t n = HEADER_FIRST; !code && t.state == THRIFT_SHORT; n *= 16) {
        uint64_t most = n < end - at ? n : end - at;
        if (t.n == most || n > HEADER_MOST)
            break;
        p = mem_grow(p, most, 1);
        code = page_read_at(f, at, p, most, e);
        t = (struct thrift){.p = p, .n = most};
        if (!code)
            page_parse(&t, ret);
    }
    free(p);
    if (code)
        return code;
    if (t.state != THRIFT_GOOD)
        return pq_page_bad(f, at, "has an invalid header", e);
    ret->at = at + t.at;
    if (ret->packed > end - ret->at)
        return pq_page_bad(f, at, "is longer than its column", e);
    return 0;
}

int pq_header_check(const struct pq_file *f, const struct pq_header *h, struct err *e)
{
    if (!h->has_crc)
        return 0;
    unsigned char *p = mem_new(IN, 1);
    uLong crc = 0;
    int code = 0;
    for (uint64_t done = 0; done < h->packed && !code;) {
        size_t n = h->packed - done < IN ? (size_t)(h->packed - done) : IN;
        code = page_read_at(f, h->at + done, p, n, e);
        crc = crc32(crc, p, (uInt)n);
        done += n;
    }
    free(p);
    if (!code && (uint32_t)crc != h->crc)
        code = pq_page_bad(f, h->at, "does not match its checksum", e);
    return code;
}

/* ---- contents ------------------------------------------------------------------------------- */

static int damaged(const struct pq_stream *s, const char *why, struct err *e)
{
    return pq_page_bad(s->f, s->page, why, e);
}

static int begin_codec(struct pq_stream *s, struct err *e)
{
    if (s->codec == PQ_ZSTD) {
        if (!s->zstd && !(s->zstd = ZSTD_createDCtx()))
            return err_set(e, ERR_RESOURCE, "%s: no memory for the zstd decoder", s->f->name);
        ZSTD_DCtx_reset(s->zstd, ZSTD_reset_session_only);
        ZSTD_DCtx_setParameter(s->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
    } else if (s->codec == PQ_GZIP && s->gzip_open) {
        inflateReset(&s->gzip);
    } else if (s->codec == PQ_GZIP) {
        if (inflateInit2(&s->gzip, MAX_WBITS + 32) != Z_OK) /* + 32: gzip's header, or zlib's */
            return err_set(e, ERR_RESOURCE, "%s: no memory for the gzip decoder", s->f->name);
        s->gzip_open = true;
    }
    s->snappy = (struct snappy){0};
    return 0;
}

int pq_stream_begin(struct pq_stream *s, const struct pq_file *f, int codec, uint64_t at,
                    uint64_t packed, uint64_t bytes, struct err *e)
{
    size_t cap = OUT;
    if (codec == PQ_SNAPPY) /* twice the history, so that it moves seldom */
        cap = (bytes < SNAPPY_HISTORY ? (size_t)bytes : (size_t)2 * SNAPPY_HISTORY) +
              2 * SNAPPY_SLACK;
    s->f = f;
    s->codec = codec;
    s->page = s->at = at;
    s->left = packed;
    s->want = bytes;
    s->in_pos = s->in_len = s->pos = s->len = 0;
    s->ended = !packed && !bytes;
    if (!s->in)
        s->in = mem_new(IN, 1);
    if (cap > s->cap) {
        free(s->out);
        s->out = mem_new(cap, 1);
        s->cap = cap;
    }
    return begin_codec(s, e);
}

void pq_stream_close(struct pq_stream *s)
{
    free(s->in);
    free(s->out);
    ZSTD_freeDCtx(s->zstd);
    if (s->gzip_open)
        inflateEnd(&s->gzip);
    *s = (struct pq_stream){0};
}

static int refill(struct pq_stream *s, struct err *e)
{
    if (s->in_pos < s->in_len || !s->left)
        return 0;
    size_t n = s->left < IN ? (size_t)s->left : IN;
    int code = page_read_at(s->f, s->at, s->in, n, e);
    s->at += n;
    s->left -= n;
    s->in_pos = 0;
    s->in_len = n;
    return code;
}

static int run_zstd(struct pq_stream *s, struct err *e)
{
    ZSTD_inBuffer in = {s->in, s->in_len, s->in_pos};
    ZSTD_outBuffer out = {s->out, s->cap, s->len};
    size_t r = ZSTD_decompressStream(s->zstd, &out, &in);
    s->in_pos = in.pos;
    s->len = out.pos;
    if (ZSTD_isError(r))
        return damaged(s, "is damaged: its zstd frame cannot be decoded", e);
    s->ended = r == 0 && s->in_pos == s->in_len && !s->left;
    return 0;
}

static int run_gzip(struct pq_stream *s, struct err *e)
{
    s->gzip.next_in = s->in + s->in_pos;
    s->gzip.avail_in = (uInt)(s->in_len - s->in_pos);
    s->gzip.next_out = s->out + s->len;
    s->gzip.avail_out = (uInt)(s->cap - s->len);
    int r = inflate(&s->gzip, Z_NO_FLUSH);
    s->in_pos = s->in_len - s->gzip.avail_in;
    s->len = s->cap - s->gzip.avail_out;
    if (r == Z_STREAM_END) {
        s->ended = s->in_pos == s->in_len && !s->left;
        inflateReset(&s->gzip);
    } else if (r != Z_OK && r != Z_BUF_ERROR) {
        return damaged(s, "is damaged: its gzip member cannot be decoded", e);
    }
    return 0;
}

static int run_snappy(struct pq_stream *s, struct err *e)
{
    size_t used = 0;
    const char *why = snappy_run(&s->snappy, s->in + s->in_pos, s->in_len - s->in_pos, &used,
                                 s->out, &s->len, s->cap);
    s->in_pos += used;
    if (why) {
        damaged(s, "is damaged: ", e);
        size_t n = strlen(e->msg);
        snprintf(e->msg + n, sizeof(e->msg) - n, "%s", why);
        return ERR_DATA;
    }
    s->ended =
        s->snappy.began && s->snappy.done == s->snappy.total && s->in_pos == s->in_len && !s->left;
    return 0;
}

static int run_plain(struct pq_stream *s)
{
    size_t n = s->in_len - s->in_pos;
    n = n < s->cap - s->len ? n : s->cap - s->len;
    memcpy(s->out + s->len, s->in + s->in_pos, n);
    s->in_pos += n;
    s->len += n;
    s->ended = s->in_pos == s->in_len && !s->left;
    return 0;
}

/* Makes space for more output; all decoded bytes were taken. */
static void slide(struct pq_stream *s)
{
    size_t keep = 0;
    if (s->codec == PQ_SNAPPY && s->cap - s->len >= 2 * SNAPPY_SLACK)
        return;
    if (s->codec == PQ_SNAPPY)
        keep = s->len < SNAPPY_HISTORY ? s->len : SNAPPY_HISTORY;
    memmove(s->out, s->out + s->len - keep, keep);
    s->pos = s->len = keep;
}

/* One step of the decoder. *ret_dry: the input is used up. */
static int step(struct pq_stream *s, bool *ret_dry, struct err *e)
{
    *ret_dry = s->in_pos == s->in_len && !s->left;
    int code = refill(s, e);
    if (code)
        return code;
    switch (s->codec) {
    case PQ_ZSTD:
        return run_zstd(s, e);
    case PQ_GZIP:
        return run_gzip(s, e);
    case PQ_SNAPPY:
        return run_snappy(s, e);
    default:
        return run_plain(s);
    }
}

/* Decodes some more; it is an error if there is nothing. */
static int decode(struct pq_stream *s, struct err *e)
{
    bool dry = s->ended;
    slide(s);
    size_t before = s->len;
    while (s->len == before) {
        int code = s->ended ? 0 : step(s, &dry, e);
        if (code)
            return code;
        if (s->len == before && (s->ended || dry))
            return damaged(s, "is damaged: it is shorter than its header says", e);
    }
    if (s->len - before > s->want)
        return damaged(s, "is damaged: it is longer than its header says", e);
    s->want -= s->len - before;
    return 0;
}

uint64_t pq_stream_left(const struct pq_stream *s)
{
    return s->want + (s->len - s->pos);
}

int pq_stream_read(struct pq_stream *s, void *p, uint64_t n, struct err *e)
{
    if (n > pq_stream_left(s))
        return damaged(s, "is damaged: a value goes beyond its end", e);
    for (unsigned char *to = p; n;) {
        if (s->pos == s->len) {
            int code = decode(s, e);
            if (code)
                return code;
        }
        size_t k = n < s->len - s->pos ? (size_t)n : s->len - s->pos;
        if (to)
            memcpy(to, s->out + s->pos, k);
        to = to ? to + k : NULL;
        s->pos += k;
        n -= k;
    }
    return 0;
}

int pq_stream_end(struct pq_stream *s, struct err *e)
{
    bool dry = false;
    int code = pq_stream_read(s, NULL, pq_stream_left(s), e);
    while (!code && !s->ended) { /* only the end of the compressed data is left */
        slide(s);
        size_t before = s->len;
        code = step(s, &dry, e);
        if (!code && s->len > before)
            code = damaged(s, "is damaged: it is longer than its header says", e);
        if (!code && !s->ended && dry)
            code = damaged(s, "is damaged: its compressed data are truncated", e);
    }
    return code;
}
