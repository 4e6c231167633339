/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/framed_stream.h"

#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"

/* tok/FORMAT.md */
static const char magic[8] = {'W', 'E', 'F', 'T', 'D', 'O', 'C', 'S'};

enum { PLAIN = 1, NAMED = 2, HEADER = 64, DOC_MAX = 0x7fffffff, END_MARK = -1 };

/* ---- writer ------------------------------------------------------------------------------ */

static int stream_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void stream_put_text(struct buf *out, const char *text)
{
    size_t n = strlen(text);
    store_u16(buf_reserve(out, 2), (uint16_t)n);
    out->len += 2;
    buf_add(out, text, n);
}

void docstream_put_header(struct buf *out, const struct docstream_header *h)
{
    char *p = buf_reserve(out, HEADER);
    memcpy(p, magic, sizeof(magic));
    store_u32(p + 8, h->type[0] ? NAMED : PLAIN);
    store_u32(p + 12, h->width);
    store_u64(p + 16, h->vocab_size);
    store_u64(p + 24, (uint64_t)h->eod);
    for (int i = 0; i < 32; i++) {
        int high = stream_hex(h->digest[2 * i]),
            low = high < 0 ? -1 : stream_hex(h->digest[2 * i + 1]);
        BUG_ON(low < 0, "digest '%.64s' is not hexadecimal", h->digest);
        p[32 + i] = (char)(high << 4 | low);
    }
    out->len += HEADER;
    if (h->type[0]) {
        stream_put_text(out, h->type);
        stream_put_text(out, h->path);
    }
}

void docstream_put_count(struct buf *out, uint64_t n)
{
    BUG_ON(n > DOC_MAX, "a document of %llu ids", (unsigned long long)n);
    store_u32(buf_reserve(out, 4), (uint32_t)n);
    out->len += 4;
}

void docstream_put_ids(struct buf *out, const struct docstream_header *h, const int32_t *id,
                       size_t n)
{
    size_t width = h->width;
    char *p = buf_reserve(out, n * width);
    if (width == 4 && n)
        memcpy(p, id, n * 4);
    else if (width == 2)
        for (size_t i = 0; i < n; i++)
            store_u16(p + 2 * i, (uint16_t)id[i]);
    out->len += n * width;
}

void docstream_put_end(struct buf *out, uint64_t docs, uint64_t ids)
{
    char *p = buf_reserve(out, 20);
    store_u32(p, (uint32_t)END_MARK);
    store_u64(p + 4, docs);
    store_u64(p + 12, ids);
    out->len += 20;
}

/* ---- reader ------------------------------------------------------------------------------ */

static int stream_bad(const struct docstream *d, struct err *e, const char *what)
{
    return err_set(e, ERR_DATA, "%s: damaged stream of documents: at byte %llu %s", zin_name(d->in),
                   (unsigned long long)d->offset, what);
}

/* Exactly n bytes. */
static int stream_take(struct docstream *d, void *p, size_t n, struct err *e)
{
    for (size_t done = 0; done < n;) {
        size_t k;
        int code = zin_read(d->in, (char *)p + done, n - done, &k, e);
        if (code)
            return code;
        d->offset += k;
        if (!k)
            return stream_bad(d, e, "it ends before its end mark: the writer was stopped");
        done += k;
    }
    return 0;
}

/* A string of at most size - 1 bytes, none of them NUL. */
static int stream_take_text(struct docstream *d, char *ret, size_t size, struct err *e)
{
    char length[2];
    int code = stream_take(d, length, 2, e);
    size_t n = code ? 0 : load_u16(length);
    if (n >= size)
        return stream_bad(d, e, "the header names a tokenizer at too great a length");
    if (!code)
        code = stream_take(d, ret, n, e);
    if (!code && memchr(ret, '\0', n))
        return stream_bad(d, e, "the header names a tokenizer with a zero byte");
    ret[n] = '\0';
    return code;
}

int docstream_open(struct docstream *d, struct zin *in, struct err *e)
{
    *d = (struct docstream){.in = in};
    unsigned char p[HEADER];
    int code = stream_take(d, p, HEADER, e);
    if (code)
        return code;
    if (memcmp(p, magic, sizeof(magic)) != 0)
        return err_set(e, ERR_DATA,
                       "%s: not a stream of documents: it does not begin with "
                       "WEFTDOCS",
                       zin_name(in));
    struct docstream_header *h = &d->header;
    h->width = load_u32(p + 12);
    h->vocab_size = load_u64(p + 16);
    h->eod = load_i64(p + 24);
    for (int i = 0; i < 32; i++) {
        h->digest[2 * i] = "0123456789abcdef"[p[32 + i] >> 4];
        h->digest[2 * i + 1] = "0123456789abcdef"[p[32 + i] & 15];
    }
    uint32_t version = load_u32(p + 8);
    if (version != PLAIN && version != NAMED)
        return err_set(e, ERR_DATA,
                       "%s: a stream of documents of version %u, but 1 and 2 are read here",
                       zin_name(in), version);
    if (h->width != 2 && h->width != 4)
        return stream_bad(d, e, "the header gives ids a width other than 2 or 4 bytes");
    if (h->vocab_size == 0 || h->vocab_size > (h->width == 2 ? 65536u : 0x7fffffffu))
        return stream_bad(d, e, "the header states a vocabulary size that does not fit the width");
    if (h->eod < -1 || h->eod >= (int64_t)h->vocab_size)
        return stream_bad(d, e, "the header states an end of document outside the vocabulary");
    if (version == NAMED)
        code = stream_take_text(d, h->type, sizeof(h->type), e);
    if (version == NAMED && !code)
        code = stream_take_text(d, h->path, sizeof(h->path), e);
    return code;
}

/* Appends the next k ids to those in d->buf, as int32, checked. */
static int stream_take_ids(struct docstream *d, size_t k, struct err *e)
{
    size_t width = d->header.width;
    char *p = buf_reserve(&d->buf, k * 4), *raw = p + k * (4 - width);
    uint64_t offset = d->offset;
    int code = stream_take(d, raw, k * width, e);
    if (code)
        return code;
    for (size_t i = 0; i < k; i++) {
        uint32_t v = width == 2 ? load_u16(raw + 2 * i) : load_u32(raw + 4 * i);
        if (v >= d->header.vocab_size)
            return err_set(e, ERR_DATA, "%s: at byte %llu: id %u is outside the vocabulary of %llu",
                           zin_name(d->in), (unsigned long long)(offset + i * width), v,
                           (unsigned long long)d->header.vocab_size);
        store_u32(p + 4 * i, v);
    }
    d->buf.len += k * 4;
    d->ids += k;
    d->left -= k;
    return 0;
}

static int take_end(struct docstream *d, struct err *e)
{
    char p[16], extra;
    size_t k = 0;
    int code = stream_take(d, p, sizeof(p), e);
    if (code)
        return code;
    if (load_u64(p) != d->docs || load_u64(p + 8) != d->ids)
        return stream_bad(d, e, "the end mark counts other documents or ids than there were");
    code = zin_read(d->in, &extra, 1, &k, e);
    return !code && k ? stream_bad(d, e, "something follows the end mark") : code;
}

int docstream_begin(struct docstream *d, uint64_t *ret_n, bool *ret_more, struct err *e)
{
    char p[4];
    BUG_ON(d->left, "%llu ids were not taken", (unsigned long long)d->left);
    *ret_more = false;
    if (d->ended)
        return 0;
    int code = stream_take(d, p, sizeof(p), e);
    if (code)
        return code;
    uint32_t n = load_u32(p);
    if (n == (uint32_t)END_MARK) {
        d->ended = true;
        return take_end(d, e);
    }
    if (n > DOC_MAX)
        return stream_bad(d, e, "a document has more than 2^31 - 1 ids");
    d->docs++;
    *ret_n = d->left = n;
    *ret_more = true;
    return 0;
}

static size_t part_of(const struct docstream *d)
{
    return d->left < DOCSTREAM_PART ? (size_t)d->left : DOCSTREAM_PART;
}

int docstream_part(struct docstream *d, const int32_t **ret_id, size_t *ret_n, struct err *e)
{
    size_t n = part_of(d);
    buf_reset(&d->buf);
    int code = stream_take_ids(d, n, e);
    *ret_id = (const int32_t *)(const void *)d->buf.data;
    *ret_n = n;
    return code;
}

int docstream_next(struct docstream *d, const int32_t **ret_id, size_t *ret_n, bool *ret_more,
                   struct err *e)
{
    uint64_t n = 0;
    int code = docstream_begin(d, &n, ret_more, e);
    buf_reset(&d->buf);
    while (!code && d->left) /* in blocks, so that a false count allocates nothing */
        code = stream_take_ids(d, part_of(d), e);
    *ret_id = (const int32_t *)(const void *)d->buf.data;
    *ret_n = (size_t)n;
    *ret_more = *ret_more && !code;
    return code;
}

void docstream_close(struct docstream *d)
{
    buf_finish(&d->buf);
    *d = (struct docstream){0};
}
