/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/lines.h"

#include <pthread.h>
#include <string.h>

#include "base/format/jsonl.h"

enum { READ_SIZE = 256 << 10 };

void lines_init(struct lines *l, struct zin *in)
{
    *l = (struct lines){.in = in, .sep = "\n", .nsep = 1};
}

void lines_init_array(struct lines *l, struct zin *in)
{
    lines_init(l, in);
    l->is_array = true;
}

void lines_init_text(struct lines *l, struct zin *in, const char *sep, size_t nsep)
{
    *l = (struct lines){.in = in, .plain = true, .sep = sep, .nsep = nsep};
}

void lines_finish(struct lines *l)
{
    buf_finish(&l->carry);
}

uint64_t lines_at(const struct lines *l)
{
    return l->taken - l->carry.len;
}

/* Passes new bytes, or the end (n = 0), through the JSON array. */
static int turn(struct lines *l, char *p, size_t n, struct err *e)
{
    if (!l->is_array)
        return 0;
    int code = n ? jsonarray_feed(&l->array, p, n, e) : jsonarray_end(&l->array, e);
    return code ? err_wrap(e, "%s", zin_name(l->in)) : 0;
}

int lines_skip(struct lines *l, uint64_t n, struct err *e)
{
    struct buf b = {0};
    int code = 0;
    while (!code && l->taken < n) {
        size_t k = 0, most = n - l->taken < READ_SIZE ? (size_t)(n - l->taken) : READ_SIZE;
        code = zin_read(l->in, buf_reserve(&b, READ_SIZE), most, &k, e);
        l->taken += k;
        if (!code)
            code = turn(l, b.data, k, e);
        if (!code && !k)
            code = err_set(e, ERR_DATA,
                           "%s: has %llu bytes of text, but %llu of them were read before",
                           zin_name(l->in), (unsigned long long)l->taken, (unsigned long long)n);
    }
    l->started = n > 0;
    buf_finish(&b);
    return code;
}

const char *sep_find(const char *p, const char *end, const char *sep, size_t nsep)
{
    size_t n = (size_t)(end - p);
    const char *s = nsep == 1 ? memchr(p, *sep, n) : memmem(p, n, sep, nsep);
    return s ? s : end;
}

const char *line_end(const char *p, const char *end)
{
    const char *s = memchr(p, '\n', (size_t)(end - p));
    return s ? s : end;
}

/* Appends the result of one read. The only place where fill may wait long, so it is cancellable
 * here. */
static int read_some(struct lines *l, struct buf *b, struct err *e)
{
    size_t n = 0;
    int old;
    size_t most = lines_share(READ_SIZE, l->growth);
    char *p = buf_reserve(b, most);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    int code = zin_read(l->in, p, most, &n, e);
    pthread_setcancelstate(old, NULL);
    b->len += n;
    l->taken += n;
    l->ended = !code && n == 0;
    return code ? code : turn(l, p, n, e);
}

/* Drops a byte order mark, which may take several reads. */
static int skip_mark(struct lines *l, struct buf *b, struct err *e)
{
    l->started = l->is_array; /* jsonarray handles it itself */
    while (!l->started && b->len < 3 && !l->ended) {
        int code = read_some(l, b, e);
        if (code)
            return code;
    }
    if (!l->started && b->len >= 3 && memcmp(b->data, "\xEF\xBB\xBF", 3) == 0) {
        b->len -= 3;
        memmove(b->data, b->data + 3, b->len);
    }
    l->started = true;
    return 0;
}

/* The length of `b` up to and including its last separator; 0 if there is none. */
static size_t last_separator(const struct lines *l, const struct buf *b)
{
    if (l->nsep == 1) {
        const char *s = b->len ? memrchr(b->data, *l->sep, b->len) : NULL;
        return s ? (size_t)(s - b->data) + 1 : 0;
    }
    const char *p = b->data, *end = p + b->len, *s;
    while (p < end && (s = sep_find(p, end, l->sep, l->nsep)) < end)
        p = s + l->nsep;
    return (size_t)(p - b->data);
}

/*
 * Where the block ends: after its last newline, but trailing white space is left to the next block,
 * as the stream may end there. 0 if there is no such place.
 */
static size_t cut_at(const struct lines *l, const struct buf *b)
{
    const char *end = b->data + b->len, *last = b->data + last_separator(l, b);
    if (last == b->data || l->plain || !jsonl_blank(last, end))
        return (size_t)(last - b->data);
    while (last > b->data && jsonl_blank(last - 1, last))
        last--;
    return last == b->data ? 0 : (size_t)(line_end(last, end) - b->data) + 1;
}

static void keep_rest(struct lines *l, struct buf *b, size_t cut)
{
    buf_reset(&l->carry);
    if (cut < b->len)
        buf_add(&l->carry, b->data + cut, b->len - cut);
    b->len = cut;
}

int lines_next(struct lines *l, struct buf *b, size_t padding, enum lines_kind *ret_kind,
               bool *ret_last, struct err *e)
{
    int code = 0;
    size_t cut = 0;
    struct buf spare = *b;
    *b = l->carry;
    l->carry = spare;
    buf_reset(&l->carry);
    if (!l->started)
        code = skip_mark(l, b, e);
    size_t block = lines_share(LINES_BLOCK, l->growth);
    while (!code && !l->ended && !cut && b->len <= lines_share(LINES_LONG, l->growth)) {
        cut = b->len < block ? 0 : cut_at(l, b);
        if (!cut)
            code = read_some(l, b, e);
    }
    if (code)
        return code;
    if (l->ended)
        cut = b->len;
    else if (!cut) /* a long line, or as much white space */
        cut = last_separator(l, b);
    *ret_kind = cut ? LINES_WHOLE : b->len ? LINES_PIECE : LINES_END;
    if (cut)
        keep_rest(l, b, cut);
    else if (b->len)
        keep_rest(l, b, b->len - (l->nsep - 1)); /* a separator may begin there */
    *ret_last = l->ended && !l->carry.len;
    buf_reserve(b, padding);
    return 0;
}

int lines_more(struct lines *l, struct buf *b, bool *ret_end, struct err *e)
{
    struct buf spare = *b;
    *b = l->carry;
    l->carry = spare;
    buf_reset(&l->carry);
    if (b->len < l->nsep && !l->ended) {
        int code = read_some(l, b, e);
        if (code)
            return code;
    }
    const char *end = b->data + b->len;
    const char *stop = b->len ? sep_find(b->data, end, l->sep, l->nsep) : end;
    l->met = stop < end;
    *ret_end = l->met || l->ended;
    if (l->met) {
        keep_rest(l, b, (size_t)(stop - b->data) + l->nsep);
        b->len -= l->nsep;
    } else if (!l->ended) { /* a separator may begin in the last bytes */
        keep_rest(l, b, b->len < l->nsep ? 0 : b->len - (l->nsep - 1));
    }
    return 0;
}

int lines_long(struct lines *l, uint64_t at, struct buf *b, struct err *e)
{
    bool end = false;
    int code = zin_seek(l->in, at, e);
    buf_reset(&l->carry);
    l->taken = at;
    l->started = true;
    l->ended = false;
    if (!code)
        code = lines_more(l, b, &end, e);
    return !code && end ? err_set(e, ERR_IO, "%s: was changed while it was read", zin_name(l->in))
                        : code;
}
