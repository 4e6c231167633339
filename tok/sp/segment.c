/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/segment.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/bpe/split_ascii.h"
#include "tok/sp/inert_chars.h"
#include "tok/cache/cache.h"

enum {
    CHUNK = 1 << 14,   /* bytes processed at a time; more than any rule or piece */
    AHEAD = 64,        /* readable bytes after a word, for the cache */
    STREAMED = 1 << 16 /* bytes of a segment that goes to a stream */
};

static const char space_mark[] = "\xe2\x96\x81";

struct sp_native {
    const struct sp_model *m;
    struct sp_norm norm;
    struct sp_merge *merge;
    bool words; /* a word model: pieces are whole words */
    struct sp_plain plain;
    unsigned char cut[128][16];  /* of ASCII: inert bytes between which the raw text may be split */
    struct word_table *segments; /* shared by threads: segments and their ids */
};

struct sp_native_state {
    struct sp_norm_state norm;
    struct buf rest; /* raw bytes that could not be normalized yet */
    struct buf text; /* normalized, not encoded yet */
    size_t enough;   /* bytes of it from which segments are looked for */
    uint64_t steps;
    struct bpe_stream *stream; /* a segment that is too long for a window; NULL: none so far */
    bool streaming;            /* inside one: its beginning is in the stream */
    size_t done;               /* bytes of `text` whose symbols are in the stream */
    bool at_cut;               /* the raw text may be split here, and all before is encoded */
    bool after_unknown;        /* the last id was the unknown piece */
    uint32_t *start;           /* of segments */
    size_t room;
    struct buf word; /* one segment, normalized */
    struct sp_merge_work work;
    struct word_cache *cache;
};

/* ---- the model ----------------------------------------------------------------------------- */

/* Invalid bytes of two items could join to a character that neither has. */
static bool is_odd(const struct sp_model *m)
{
    for (size_t i = 0; i < m->npieces; i++)
        if (m->piece[i].type == SP_USER && !sp_piece_is_utf8(&m->piece[i]))
            return true;
    return false;
}

/*
 * May the text be split between two inert characters, p[from .. at) and p[at .. end)? Not where a
 * piece has their normalized forms adjacent, nor a user-defined piece the characters themselves.
 */
static bool may_part(const struct sp_native *c, const char *p, size_t from, size_t at, size_t end)
{
    if (c->norm.remove_extra && p[at - 1] == ' ')
        return false; /* the space may be dropped, depending on what follows */
    if (c->merge->whole || !cut_here(&c->merge->cut, p, at, end))
        return false;
    if (c->words)
        return p[at] == ' ' && c->norm.space_length > 1;
    if (p[at - 1] != ' ' && p[at] != ' ')
        return true;
    char both[8];
    size_t left = p[at - 1] == ' ' ? c->norm.space_length : at - from;
    size_t right = p[at] == ' ' ? c->norm.space_length : end - at;
    memcpy(both, p[at - 1] == ' ' ? c->norm.space : p + from, left);
    memcpy(both + left, p[at] == ' ' ? c->norm.space : p + at, right);
    return cut_here(&c->merge->cut, both, left, left + right);
}

static void find_cuts(struct sp_native *c)
{
    for (int a = 0; a < 128; a++)
        for (int b = 0; b < 128; b++) {
            char pair[] = {(char)a, (char)b};
            if (c->plain.ascii[a] && c->plain.ascii[b] && may_part(c, pair, 0, 1, 2))
                c->cut[a][b >> 3] |= (unsigned char)(1 << (b & 7));
        }
}

struct sp_native *sp_native_create(const struct sp_model *m)
{
    if (m->kind == SP_UNIGRAM || is_odd(m) || m->npieces > BPE_SYMBOLS / 2)
        return NULL;
    struct sp_native *c = mem_new(1, sizeof(*c));
    c->m = m;
    c->words = m->kind == SP_WORD;
    sp_norm_init(&c->norm, m);
    c->merge = sp_merge_create(m);
    sp_plain_init(&c->plain, &c->norm);
    find_cuts(c);
    c->segments = word_table_create(WORD_CACHE_BYTES);
    return c;
}

void sp_native_drop(struct sp_native *c, double probability)
{
    sp_merge_drop(c->merge, probability);
}

void sp_native_destroy(struct sp_native *c)
{
    if (!c)
        return;
    sp_norm_finish(&c->norm);
    sp_merge_destroy(c->merge);
    sp_plain_finish(&c->plain);
    word_table_destroy(c->segments);
    free(c);
}

struct sp_native_state *sp_native_state_create(const struct sp_native *c)
{
    struct sp_native_state *s = mem_own(sizeof(*s));
    s->cache = word_cache_create(c->segments, ids_form_for((int64_t)c->m->npieces));
    return s;
}

void sp_native_state_destroy(struct sp_native_state *s)
{
    if (!s)
        return;
    buf_finish(&s->rest);
    buf_finish(&s->text);
    buf_finish(&s->word);
    free(s->start);
    sp_merge_work_finish(&s->work);
    word_cache_destroy(s->cache);
    bpe_stream_destroy(s->stream);
    free(s);
}

static void forget(void *arg, const uint32_t *sym, size_t n)
{
    (void)arg, (void)sym, (void)n;
}

void sp_native_reset(struct sp_native_state *s)
{
    s->norm = (struct sp_norm_state){.invalid = s->norm.invalid};
    s->at_cut = s->after_unknown = false;
    s->rest.len = s->text.len = s->enough = 0;
    if (s->streaming)
        bpe_stream_put(s->stream, NULL, 0, true, forget, NULL);
    s->streaming = false;
    s->done = 0;
    if (s->rest.cap > 16 * CHUNK)
        buf_finish(&s->rest);
    if (s->text.cap > 16 * CHUNK)
        buf_finish(&s->text);
}

void sp_native_key(struct sp_native_state *s, uint64_t key)
{
    s->work.draws = (struct bpe_draws){key, 0};
}

uint64_t sp_native_take_invalid(struct sp_native_state *s)
{
    uint64_t n = s->norm.invalid;
    s->norm.invalid = 0;
    return n;
}

uint64_t sp_native_take_steps(struct sp_native_state *s)
{
    uint64_t n = s->steps + (s->stream ? bpe_stream_take_work(s->stream) : 0);
    s->steps = 0;
    return n;
}

size_t sp_native_waiting(const struct sp_native_state *s)
{
    return s->rest.len + s->text.len;
}

/* ---- segments ------------------------------------------------------------------------------ */

struct job {
    const struct sp_native *c;
    struct sp_native_state *s;
    struct tok_ids *ids;
    struct err *e;
};

static int miss_normal(const void *state, void *scratch, struct word_list *list,
                       struct tok_ids *ids, struct err *e)
{
    const struct sp_native *c = state;
    struct sp_native_state *s = scratch;
    (void)e;
    sp_merge_words(c->merge, &s->work, list, ids);
    return 0;
}

/* Encodes segments of raw text, between two others. */
static int miss_raw(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                    struct err *e)
{
    const struct sp_native *c = state;
    struct sp_native_state *s = scratch;
    (void)e;
    for (size_t i = 0; i < list->count;) {
        enum { BLOCK = 1 << 20 };
        struct word_list part = {.count = 0};
        buf_reset(&s->word);
        for (; i + part.count < list->count && s->word.len < BLOCK; part.count++) {
            struct sp_norm_state norm = {.begun = true};
            size_t at = s->word.len;
            sp_norm_put(&c->norm, &norm, list->text + list->at[i + part.count],
                        list->n[i + part.count], true, SIZE_MAX, &s->word);
            part.at[part.count] = (uint32_t)at;
            part.n[part.count] = (uint32_t)(s->word.len - at);
        }
        part.text = s->word.data;
        sp_merge_words(c->merge, &s->work, &part, ids);
        memcpy(list->end + i, part.end, part.count * sizeof(*part.end));
        i += part.count;
    }
    return 0;
}

/* Fuses runs of unknown pieces into one id, across split points. */
static void fuse_unknown(const struct job *j, size_t from)
{
    if (j->c->m->byte_fallback)
        return;
    int32_t *id = j->ids->id, unk = j->c->m->unk;
    size_t k = from, n = j->ids->n;
    bool after = j->s->after_unknown;
    for (size_t i = from; i < n; i++) {
        bool unknown = id[i] == unk;
        id[k] = id[i];
        k += !(unknown && after);
        after = unknown;
    }
    j->ids->n = k;
    j->s->after_unknown = after;
}

static int put_segments(const struct job *j, const char *text, const uint32_t *start, size_t n,
                        word_miss *miss)
{
    size_t before = j->ids->n;
    int code = 0;
    if (!j->c->merge->drop)
        code = word_cache_encode(j->s->cache, text, start, n, miss, j->c, j->s, j->ids, j->e);
    for (size_t i = 0; i < n && j->c->merge->drop; i++) /* nothing is cached */
        sp_merge_encode(j->c->merge, &j->s->work, text + start[i], start[i + 1] - start[i], j->ids);
    if (!code)
        fuse_unknown(j, before);
    return code;
}

static uint32_t *starts(struct sp_native_state *s, size_t n)
{
    if (n > s->room) {
        s->room = n + n / 2;
        s->start = mem_grow(s->start, s->room, sizeof(*s->start));
    }
    return s->start;
}

/* ---- normalized text ----------------------------------------------------------------------- */

/* The first split point of the window from `from` on that text up to `sure` decides; `sure`: none.
 */
static size_t next_segment(const struct job *j, size_t from, size_t sure)
{
    struct buf *b = &j->s->text;
    const uint32_t ends[] = {0, (uint32_t)b->len};
    if (!b->len)
        return sure;
    memset(buf_reserve(b, AHEAD), 0, AHEAD);
    uint32_t *start = starts(j->s, b->len + 1);
    size_t n = cut_segments(&j->c->merge->cut, b->data, ends, 1, 0, start), i = 1;
    while (i < n && start[i] < from)
        i++;
    return i < n && start[i] < sure ? start[i] : sure;
}

/*
 * More of a segment that is in the stream: up to its end, if that is in the window, or as far as
 * the text is sure. s->streaming is false after the end.
 */
static void put_open(const struct job *j, bool all)
{
    struct sp_native_state *s = j->s;
    struct buf *b = &s->text;
    size_t n = b->len, beyond = AHEAD + j->c->merge->longest_user, before = j->ids->n;
    size_t sure = all ? n : n > beyond ? n - beyond : 0;
    if (s->done >= sure && !all)
        return;
    struct sp_merge_part part = {.end = next_segment(j, s->done + !s->done, sure), .done = s->done};
    part.text = b->data;
    part.last = part.end < sure || all;
    part.n = part.last ? part.end : n;
    s->steps += part.end - s->done;
    sp_merge_stream(j->c->merge, &s->work, s->stream, &part, j->ids);
    fuse_unknown(j, before);
    b->len -= part.used;
    s->done = part.done - part.used;
    s->steps += b->len;
    memmove(b->data, b->data + part.used, b->len);
    s->streaming = !part.last;
}

/* A segment that fills the window goes to the stream; false: it cannot. */
static bool open_stream(const struct job *j)
{
    struct sp_native_state *s = j->s;
    if (s->text.len < STREAMED || FAULT("sp_window") || !j->c->merge->stream || j->c->merge->drop ||
        j->c->words)
        return false;
    if (!s->stream)
        s->stream = bpe_stream_create(j->c->merge->stream);
    if (!s->stream)
        return false;
    s->streaming = true;
    s->done = 0;
    return true;
}

static size_t find_words(const char *p, size_t n, uint32_t *start)
{
    size_t k = 1;
    start[0] = 0;
    for (size_t at = 1; at < n; at++)
        if (p[at] == space_mark[0] && n - at >= 3 && memcmp(p + at, space_mark, 3) == 0)
            start[k++] = (uint32_t)at;
    start[k] = (uint32_t)n;
    return k;
}

/* Encodes the normalized text: all of it, or all but its last segment. */
static int put_window(const struct job *j, bool all)
{
    struct buf *b = &j->s->text;
    if (j->s->streaming)
        put_open(j, all);
    if (!b->len || j->s->streaming || (!all && b->len < j->s->enough))
        return 0;
    memset(buf_reserve(b, AHEAD), 0, AHEAD);
    if (j->c->merge->whole) {
        if (!all)
            return 0;
        size_t before = j->ids->n;
        sp_merge_encode(j->c->merge, &j->s->work, b->data, b->len, j->ids);
        fuse_unknown(j, before);
        b->len = 0;
        return 0;
    }
    uint32_t *start = starts(j->s, b->len + 1);
    const uint32_t ends[] = {0, (uint32_t)b->len};
    size_t n = j->c->words ? find_words(b->data, b->len, start)
                           : cut_segments(&j->c->merge->cut, b->data, ends, 1, 0, start);
    n -= !all;
    size_t used = start[n];
    int code = put_segments(j, b->data, start, n, miss_normal);
    j->s->steps += b->len;
    b->len -= used;
    memmove(b->data, b->data + used, b->len);
    j->s->enough = used || FAULT("sp_window") ? 0 : 2 * b->len;
    if (!code && !all && !used && open_stream(j))
        put_open(j, false);
    return code;
}

/* ---- raw text ------------------------------------------------------------------------------ */

/* Bytes of the inert character at `at`; 0: it is not inert. */
static size_t plain_at(const struct sp_native *c, const char *p, size_t at, size_t n)
{
    uint32_t u = (unsigned char)p[at];
    if (u < 0x80)
        return c->plain.ascii[u];
    size_t k = utf8_char(p + at, p + n);
    u &= 0x7fu >> k;
    for (size_t i = 1; i < k; i++)
        u = u << 6 | ((unsigned char)p[at + i] & 0x3f);
    return k && sp_is_plain(&c->plain, u) ? k : 0;
}

/* The inert character before `at`. */
static size_t segment_before(const char *p, size_t at)
{
    size_t k = 1;
    while (k < at && k < 4 && ((unsigned char)p[at - k] & 0xc0) == 0x80)
        k++;
    return k;
}

/* Is `at`, not the beginning, a split point? Both characters must be inert, and the next one, which
 * a rule may match together with the second. */
static bool is_cut(const struct sp_native *c, const char *p, size_t at, size_t n)
{
    unsigned char a = (unsigned char)p[at - 1], b = (unsigned char)p[at];
    size_t right = (b & 0xc0) == 0x80 ? 0 : plain_at(c, p, at, n), left = segment_before(p, at);
    if (!right || at + right >= n || !plain_at(c, p, at + right, n))
        return false;
    if ((a | b) < 0x80)
        return c->cut[a][b >> 3] >> (b & 7) & 1;
    return plain_at(c, p, at - left, at) == left && may_part(c, p, at - left, at, at + right);
}

/* Many split points from `at` on at once, after characters of `left` bytes and, before that,
 * `other`, in the terms of find_raw. Returns the position reached. */
static size_t find_many(const struct sp_native *c, const char *text, size_t at, size_t n,
                        size_t left, size_t other, uint32_t *start, size_t *k)
{
    size_t found = *k + 1, end = at;
    if (left == 1)
        end = cut_ascii(c->cut, c->plain.ascii, text, at, n, start, &found);
    else if (left == 3 && other == 3 && !c->words && !c->merge->whole)
        end = split_point4_find(&c->merge->near, c->plain.bits, text, at, n, start, &found);
    *k = found - 1;
    return end;
}

/*
 * The split points in the inert text that follows text[0], itself inert; start[0] is 0. Returns
 * the number of segments before the last split point.
 */
static size_t find_raw(const struct sp_native *c, const char *text, size_t n, uint32_t *start)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t k = 0, left = plain_at(c, text, 0, n), at = left, other = 0;
    start[0] = 0;
    while (left && at + 8 <= n) {
        size_t end = find_many(c, text, at, n, left, other, start, &k);
        if (end > at) {
            at = end;
            other = 0; /* not again at the end of the run */
            continue;
        }
        if (left == 1 && !(load_u64(p + at) & 0x8080808080808080u) &&
            split_ascii_eight(c->cut, c->plain.ascii, p, at, start + 1, &k)) {
            at += 8;
            continue;
        }
        size_t right = plain_at(c, text, at, n);
        if (!right)
            break;
        bool cut = (p[at - 1] | p[at]) < 0x80 ? c->cut[p[at - 1]][p[at] >> 3] >> (p[at] & 7) & 1
                                              : may_part(c, text, at - left, at, at + right);
        start[k + 1] = (uint32_t)at;
        k += cut;
        at += right;
        other = left;
        left = right;
    }
    return k - (k && start[k] == at - left); /* what follows may merge with the last character */
}

/* Encodes segments of n bytes of inert raw text; AHEAD bytes after them are readable. *ret_used are
 * the bytes of the segments, 0 if there are none. */
static int put_some(const struct job *j, const char *text, size_t n, size_t *ret_used)
{
    uint32_t *start = starts(j->s, n + 16);
    size_t k = find_raw(j->c, text, n, start);
    *ret_used = start[k];
    return k ? put_segments(j, text, start, k, miss_raw) : 0;
}

/* The same for any number of bytes, with nothing readable after them. */
static int put_raw(const struct job *j, const char *text, size_t n, bool last, size_t *ret_used)
{
    size_t used = 0, k = 1;
    int code = 0;
    while (!code && k && n - used > 2 * AHEAD) {
        size_t most = n - used - AHEAD < CHUNK ? n - used - AHEAD : CHUNK;
        code = put_some(j, text + used, most, &k);
        used += k;
    }
    if (!code && last && n - used <= 2 * AHEAD) {
        char end[3 * AHEAD] = {0};
        memcpy(end, text + used, n - used);
        code = put_some(j, end, n - used, &k);
        used += k;
    }
    *ret_used = used;
    return code;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* The next position after text[0] where the raw text may be split; n: none. */
static size_t next_cut(const struct sp_native *c, const char *text, size_t n)
{
    size_t at = 1;
    while (at < n && !is_cut(c, text, at, n))
        at++;
    return at < n ? at : n;
}

/* Normalizes up to the next split point of the raw text and encodes that; or all there is. */
static int put_slowly(const struct job *j, const char *text, size_t n, bool last, size_t *ret_used)
{
    struct sp_native_state *s = j->s;
    const struct sp_norm *norm = &j->c->norm;
    size_t most = n < CHUNK ? n : CHUNK, cut = next_cut(j->c, text, most);
    if (cut < most) {
        *ret_used = sp_norm_put(norm, &s->norm, text, cut, true, SIZE_MAX, &s->text);
        s->at_cut = s->norm.begun;
        return put_window(j, s->at_cut);
    }
    s->at_cut = false;
    *ret_used = sp_norm_put(norm, &s->norm, text, most, last && most == n, SIZE_MAX, &s->text);
    if (!*ret_used && most < n)
        *ret_used = sp_norm_put(norm, &s->norm, text, n, last, s->text.len + CHUNK, &s->text);
    return s->text.len >= CHUNK ? put_window(j, false) : 0;
}

/* *ret_used: bytes that the caller need not pass again. */
static int segment_put(const struct job *j, const char *text, size_t n, bool last, size_t *ret_used)
{
    size_t used = 0, k = 1;
    int code = 0;
    while (!code && k && used < n) {
        if (j->s->at_cut && !j->s->text.len && !j->c->merge->drop) {
            code = put_raw(j, text + used, n - used, last, &k);
            used += k;
            if (!last && n - used <= 2 * AHEAD)
                break; /* together with what follows */
        }
        if (!code)
            code = put_slowly(j, text + used, n - used, last, &k);
        used += code ? 0 : k;
    }
    *ret_used = used;
    return code;
}

int sp_native_put(const struct sp_native *c, struct sp_native_state *s, const char *text, size_t n,
                  bool last, struct tok_ids *ids, struct err *e)
{
    const struct job j = {c, s, ids, e};
    size_t used = 0;
    int code;
    if (s->rest.len) {
        buf_add(&s->rest, text, n);
        code = segment_put(&j, s->rest.data, s->rest.len, last, &used);
        s->rest.len -= used;
        memmove(s->rest.data, s->rest.data + used, s->rest.len);
    } else {
        code = segment_put(&j, text, n, last, &used);
        buf_add(&s->rest, text + used, n - used);
    }
    if (!code && last) {
        BUG_ON(s->rest.len, "%zu bytes of a text were left", s->rest.len);
        sp_norm_end(&c->norm, &s->norm, &s->text);
        code = put_window(&j, true);
    }
    if (code || last)
        sp_native_reset(s);
    return code;
}

/* ---- parts of one text for several threads --------------------------------------------------- */

size_t sp_native_cut(const struct sp_native *c, const char *text, size_t n)
{
    size_t at = n ? n - 1 : 0;
    while (at && !is_cut(c, text, at, n))
        at--;
    return at;
}

void sp_native_begin_at_cut(struct sp_native_state *s, bool unknown)
{
    s->norm.begun = s->at_cut = true;
    s->after_unknown = unknown;
}

int sp_native_end_at_cut(const struct sp_native *c, struct sp_native_state *s, struct tok_ids *ids,
                         struct err *e)
{
    const struct job j = {c, s, ids, e};
    size_t used = 0;
    int code = segment_put(&j, s->rest.data, s->rest.len, true, &used);
    BUG_ON(!code && (used < s->rest.len || s->norm.held), "%zu bytes of a text were left",
           s->rest.len - used);
    if (!code)
        code = put_window(&j, true);
    sp_native_reset(s);
    return code;
}
