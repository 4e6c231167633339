/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/unigram_internal.h"

#include <math.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/bpe/split_ascii.h"

/*
 * Raw text is split, before it is normalized, where neither a rule nor a piece spans the position,
 * and its segments are cached by their bytes. Of the 32 bits of a cached id, the lowest thirty
 * minus those that ids need hold the limit on the preceding sum; the highest of the thirty marks
 * the first id of a segment, which alone has a limit. A segment that becomes nothing has the id
 * `none`.
 */

enum {
    AHEAD = UNIGRAM_REST / 2, /* readable bytes after a segment, for the cache */
    TOLD_BITS = 30,           /* of an id with its limit */
    MARK = 0x2581
};

/* ---- places -------------------------------------------------------------------------------- */

static bool is_space(const char *p, size_t n)
{
    return n && (p[n - 1] == ' ' || (n >= 3 && !memcmp(p + n - 3, "\xe2\x96\x81", 3)));
}

/* The last character of what `c` becomes (`last`), or the first. Returns its bytes; 0: it becomes
 * nothing. */
static size_t put_side(const struct unigram *u, uint32_t c, bool last, char *to)
{
    char text[4];
    size_t n, k = utf8_put(text, c), at = 0;
    const char *p = sp_norm_char(&u->norm, text, k, &n);
    if (!n)
        return 0;
    for (at = last ? n - 1 : 0; at && ((unsigned char)p[at] & 0xc0) == 0x80;)
        at--;
    if (p[at] == ' ') {
        memcpy(to, u->norm.space, u->norm.space_length);
        return u->norm.space_length;
    }
    k = utf8_char(p + at, p + n);
    memcpy(to, p + at, k);
    return k;
}

/* May text be split between `a` and `b`? Unless both are ASCII, the caller must check whether a
 * rule matches `b` together with what follows. */
static bool may_part(const struct unigram *u, uint32_t a, uint32_t b)
{
    char text[12];
    if (a == MARK || b == MARK || !sp_is_apart(&u->plain, a) || !sp_is_apart(&u->plain, b))
        return false;
    if (u->ascii_joins && b < 128 && !(b == ' ' ? u->norm.blank : u->norm.copy[b]))
        return false;
    /* either may be unchanged, in a user-defined piece, beside what the other becomes */
    char left[2][4], right[2][4];
    size_t nleft[2] = {utf8_put(left[0], a), put_side(u, a, true, left[1])};
    size_t nright[2] = {utf8_put(right[0], b), put_side(u, b, false, right[1])};
    if (!nleft[1] || !nright[1] || (u->norm.remove_extra && is_space(left[1], nleft[1])))
        return false;
    for (int i = 0; i < 4; i++) {
        size_t at = nleft[i / 2], n = nright[i % 2];
        memcpy(text, left[i / 2], at);
        memcpy(text + at, right[i % 2], n);
        if (!cut_here(&u->cut, text, at, at + n))
            return false;
    }
    return true;
}

void unigram_segments_open(struct unigram *u)
{
    u->segments = word_table_create(WORD_CACHE_BYTES);
    u->space = u->ends.number[utf8_code(u->norm.space, u->norm.space_length)];
    for (uint32_t c = 0; c < 128; c++)
        u->ascii_joins |= !sp_is_apart(&u->plain, c);
    for (uint32_t a = 0; a < 128; a++)
        for (uint32_t b = 0; b < 128; b++)
            u->apart[a][b >> 3] |= (unsigned char)(may_part(u, a, b) << (b & 7));
    for (int c = 0; c < 128; c++) {
        char text = (char)c;
        uint32_t at = TRIE_ROOT;
        size_t n;
        const char *to = sp_norm_char(&u->norm, &text, 1, &n);
        u->spaces[c] = n == 1 && *to == ' ' && !trie_step(&u->norm.user, &at, text);
        u->stays[c / 32] |= (uint32_t)(u->plain.ascii[c] && !u->spaces[c]) << c % 32;
    }
}

static inline bool part_between(const struct unigram *u, struct unigram_state *s, uint32_t a,
                                uint32_t b)
{
    if ((a | b) < 0x80)
        return u->apart[a][b >> 3] >> (b & 7) & 1;
    uint64_t key = char_pairs_key(a, b);
    uint64_t *at = char_pairs_entry(&s->pairs, key);
    if (!char_pairs_is(at, key))
        char_pairs_set(at, key, may_part(u, a, b));
    return char_pairs_number(at);
}

static void segment_make_room(const struct unigram *u, struct unigram_state *s)
{
    if (s->cache)
        return;
    s->cache = word_cache_create(u->segments, ids_form_for(1 << TOLD_BITS));
    s->lanes = unigram_lanes_create(s->level);
    s->start = mem_new(UNIGRAM_CHUNK + 16, sizeof(*s->start));
    char_pairs_init(&s->pairs);
}

/* For inert characters of three bytes, the first of which follows another: returns how many bytes
 * are done. */
static size_t find_plain(const struct unigram *u, const char *p, size_t at, size_t n,
                         uint32_t *start, size_t *k)
{
    size_t first = at;
    for (; at + 4 <= n; at += 3) {
        if (at == first + 3) /* after two of them */
            at = split_point4_find(&u->near, u->plain.bits, p, at, n, start, k);
        uint32_t w = load_u32(p + at);
        uint32_t c = (w & 0xf) << 12 | (w >> 2 & 0xfc0) | (w >> 16 & 0x3f);
        if ((w & 0xc0c0f0) != 0x8080e0 || c < 0x1000 || c >> 11 == 0xd800 >> 11 ||
            !sp_is_plain(&u->plain, c))
            break;
        start[*k] = (uint32_t)at;
        *k += cut_wide(&u->cut, p + at);
    }
    return at;
}

/* May a rule match the character at p together with what precedes it? It is complete, or not a
 * character. */
static bool joins(const struct unigram *u, const char *p)
{
    size_t n = utf8_char(p, p + 4);
    return n && !sp_is_apart(&u->plain, utf8_code(p, n));
}

/*
 * The split points in text that begins at one, up to invalid UTF-8; start[0] is 0. Returns how many
 * follow it. None is before a character that the next one joins. AHEAD bytes after the text belong
 * to the buffer.
 */
static size_t find_segments(const struct unigram *u, struct unigram_state *s, const char *text,
                            size_t n, uint32_t *start)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t k = 1, length = utf8_char(text, text + n), at = length,
           last = 0; /* the character before */
    uint32_t before = utf8_code(text, length ? length : 1);
    start[0] = 0;
    while (length && at < n) {
        if (at + 8 <= n && before < 0x80 && !(load_u64(p + at) & 0x8080808080808080u)) {
            size_t end = cut_ascii(u->apart, NULL, text, at, n, start, &k);
            if (end == at) {
                split_ascii_eight(u->apart, NULL, p, at, start, &k);
                end += 8;
            }
            at = end;
            before = p[at - 1];
            last = at - 1;
            continue;
        }
        length = utf8_char(text + at, text + n);
        if (!length)
            break;
        uint32_t c = utf8_code(text + at, length);
        k -= k > 1 && start[k - 1] == last && !sp_is_apart(&u->plain, c);
        start[k] = (uint32_t)at;
        k += part_between(u, s, before, c);
        before = c;
        last = at;
        at += length;
        if (length == 3 && sp_is_plain(&u->plain, c)) {
            size_t end = find_plain(u, text, at, n, start, &k);
            before = end > at ? utf8_code(text + end - 3, 3) : before;
            last = end - 3;
            at = end;
        }
    }
    k -= k > 1 && start[k - 1] == last && joins(u, text + at);
    return k - 1;
}

/* The next split point after text[0]; n: none. */
static size_t unigram_next_cut(const struct unigram *u, struct unigram_state *s, const char *text,
                               size_t n)
{
    segment_make_room(u, s);
    size_t length = utf8_char(text, text + n), at = length ? length : 1;
    uint32_t before = utf8_code(text, at);
    for (bool good = length; at < n; at += length ? length : 1) {
        length = utf8_char(text + at, text + n);
        uint32_t c = utf8_code(text + at, length ? length : 1);
        if (good && length && at + length + 4 <= n && part_between(u, s, before, c) &&
            !joins(u, text + at + length))
            return at;
        good = length;
        before = c;
    }
    return n;
}

/* ---- segments ------------------------------------------------------------------------------ */

/* A segment of inert characters, with spaces only before them; false if it is not. */
static bool segment_put_plain(const struct unigram *u, const char *text, size_t n, struct buf *out)
{
    const struct sp_norm *norm = &u->norm;
    size_t at = 0, length = norm->space_length;
    char *start = buf_reserve(out, n * length), *to = start;
    for (; at < n && !(text[at] & 0x80) && u->spaces[(unsigned char)text[at]]; at++) {
        if (at && norm->remove_extra)
            continue;
        memcpy(to, norm->space, length);
        to += length;
    }
    if (at == n)
        return false;
    while (at < n) {
        unsigned char c = (unsigned char)text[at];
        size_t k = c < 0x80 ? 1 : utf8_char(text + at, text + n);
        if (c < 0x80 ? u->spaces[c] || !u->plain.ascii[c]
                     : !k || !sp_is_plain(&u->plain, utf8_code(text + at, k)))
            return false;
        while (k--)
            *to++ = text[at++];
    }
    out->len += (size_t)(to - start);
    return true;
}

void unigram_normalize(const struct unigram *u, struct unigram_state *s, const char *text, size_t n)
{
    struct sp_norm_state norm = {.begun = true};
    if (!segment_put_plain(u, text, n, &s->text))
        sp_norm_put(&u->norm, &norm, text, n, true, SIZE_MAX, &s->text);
    s->norm.invalid += norm.invalid;
}

#define FIRST ((uint32_t)1 << (TOLD_BITS - 1)) /* marks the first id of a segment */
#define LIMIT (FIRST - 1)

/* The magnitude of a sum below 2^17, to 2^-6, in the bits below FIRST; of a larger one, FIRST or
 * more. */
static inline uint32_t size_bits(float sum)
{
    float size = fabsf(sum) + 0x1p17f;
    uint32_t bits;
    memcpy(&bits, &size, sizeof(bits));
    return bits << 6;
}

/* An id that holds for sums of a magnitude below a limit. */
static int32_t limited(const struct unigram *u, int32_t id, float limit)
{
    uint32_t bits = size_bits(fmaxf(limit - 0x1p-4f, 0)); /* because size_bits rounds */
    return (int32_t)((bits & LIMIT & ~u->id_mask) | (uint32_t)id | FIRST);
}

/* Encodes segments, each with a limit. */
static int miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                struct err *e)
{
    const struct unigram *u = state;
    struct unigram_state *s = scratch;
    (void)e;
    unigram_learn_list(u, s, list);
    for (size_t i = 0; i < list->count; i++) {
        size_t at = ids->n;
        float limit = unigram_learnt(u, s, i, ids);
        ids->id[at] = limited(u, ids->id[at], limit);
        for (size_t k = at + 1; k < ids->n; k++)
            ids->id[k] |= (int32_t)(~u->id_mask & LIMIT);
        list->end[i] = ids->n;
    }
    return 0;
}

static void find_ids(const struct unigram *u, struct unigram_state *s, const char *text,
                     const uint32_t *start, size_t n, struct tok_ids *ids)
{
    struct err never;
    word_cache_encode(s->cache, text, start, n, miss, u, s, ids, &never);
}

/* Emits ids up to the first whose limit does not hold; returns it, or the end. */
static const uint32_t *segment_put_ids(const struct unigram *u, struct unigram_state *s,
                                       const uint32_t *p, const uint32_t *end, struct tok_ids *ids)
{
    const uint32_t mask = u->id_mask, none = u->none;
    int32_t *to = ids->id + ids->n, *from = to;
    float sum = s->score;
    for (; p < end; p++) {
        uint32_t id = *p & mask, limit = *p & ~mask & LIMIT;
        if (__builtin_expect(size_bits(sum) >= limit, 0) && *p & FIRST)
            break;
        *to = (int32_t)id;
        to += id != none;
        sum += u->score[id];
    }
    s->after_unknown &= to == from;
    s->score = sum;
    ids->n += (size_t)(to - from);
    return p;
}

/* The same for segments: one whose limit does not hold is encoded again. */
static void put_stream(const struct unigram *u, struct unigram_state *s, const char *text,
                       const uint32_t *start, const uint32_t *p, size_t n, struct tok_ids *ids)
{
    const uint32_t *end = p + n, *stop;
    for (size_t i = 0;; i++) {
        tok_ids_reserve(ids, (size_t)(end - p) + 1);
        stop = segment_put_ids(u, s, p, end, ids);
        if (stop == end)
            return;
        for (; p < stop; p++)
            i += (*p & FIRST) != 0;
        unigram_normalize(u, s, text + start[i], start[i + 1] - start[i]);
        unigram_settle_all(u, s, ids);
        while (++p < end && !(*p & FIRST))
            ;
    }
}

/* Encodes n bytes, up to UNIGRAM_CHUNK, with AHEAD readable bytes after them; returns the bytes
 * used. */
static size_t put_some(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                       struct tok_ids *ids)
{
    size_t k = find_segments(u, s, text, n, s->start);
    if (!k)
        return 0;
    s->stream.n = 0;
    find_ids(u, s, text, s->start, k, &s->stream);
    put_stream(u, s, text, s->start, (const uint32_t *)s->stream.id, s->stream.n, ids);
    return s->start[k];
}

/* Encodes raw segments of text that begins at a split point, except the text's last one; returns
 * the bytes used. */
static size_t unigram_put_segments(const struct unigram *u, struct unigram_state *s,
                                   const char *text, size_t n, bool last, struct tok_ids *ids)
{
    size_t used = 0, k = 1;
    segment_make_room(u, s);
    while (k && n - used > 2 * AHEAD) {
        size_t most = n - used - AHEAD < UNIGRAM_CHUNK ? n - used - AHEAD : UNIGRAM_CHUNK;
        k = put_some(u, s, text + used, most, ids);
        used += k;
    }
    if (last && n - used <= 2 * AHEAD) {
        char end[3 * AHEAD] = {0};
        memcpy(end, text + used, n - used);
        used += put_some(u, s, end, n - used, ids);
    }
    return used;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Normalizes up to the next split point of the raw text and encodes that; or all there is. Returns
 * the bytes used. */
static size_t put_slowly(const struct unigram *u, struct unigram_state *s, const char *text,
                         size_t n, bool last, struct tok_ids *ids)
{
    size_t most = n < UNIGRAM_CHUNK ? n : UNIGRAM_CHUNK, used;
    size_t cut = unigram_next_cut(u, s, text, most);
    if (cut < most) {
        used = sp_norm_put(&u->norm, &s->norm, text, cut, true, SIZE_MAX, &s->text);
        s->at_cut = s->norm.begun;
        unigram_advance(u, s, s->at_cut, ids);
        return used;
    }
    s->at_cut = false;
    used = sp_norm_put(&u->norm, &s->norm, text, most, last && most == n, SIZE_MAX, &s->text);
    if (!used && most < n)
        used =
            sp_norm_put(&u->norm, &s->norm, text, n, last, s->text.len + UNIGRAM_CHUNK, &s->text);
    if (s->text.len >= UNIGRAM_CHUNK)
        unigram_advance(u, s, false, ids);
    return used;
}

/* Returns the bytes used. */
static size_t put_unigram(const struct unigram *u, struct unigram_state *s, const char *text,
                          size_t n, bool last, struct tok_ids *ids)
{
    size_t used = 0, k = 1;
    while (k && used < n) {
        if (s->at_cut && !s->text.len && !u->samples) {
            used += unigram_put_segments(u, s, text + used, n - used, last, ids);
            if (!last && n - used <= UNIGRAM_REST)
                break; /* together with what follows */
        }
        k = put_slowly(u, s, text + used, n - used, last, ids);
        used += k;
    }
    return used;
}

void unigram_put(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                 bool last, struct tok_ids *ids)
{
    size_t used = 0;
    if (s->rest.len) {
        buf_add(&s->rest, text, n);
        used = put_unigram(u, s, s->rest.data, s->rest.len, last, ids);
        s->rest.len -= used;
        memmove(s->rest.data, s->rest.data + used, s->rest.len);
    } else {
        used = put_unigram(u, s, text, n, last, ids);
        buf_add(&s->rest, text + used, n - used);
    }
    if (!last)
        return;
    BUG_ON(s->rest.len, "%zu bytes of a text were left", s->rest.len);
    sp_norm_end(&u->norm, &s->norm, &s->text);
    unigram_advance(u, s, true, ids);
    s->ended = s->score;
    unigram_reset(s);
}

void unigram_begin_sum(struct unigram_state *s, float from, bool at_cut)
{
    s->score = from;
    s->norm.begun = s->at_cut = at_cut;
}

void unigram_begin_after(struct unigram_state *s, bool unknown)
{
    s->after_unknown = unknown;
}

float unigram_ended(const struct unigram_state *s)
{
    return s->ended;
}

/* Ends a part that the next part follows at a split point. */
static void unigram_end_at_cut(const struct unigram *u, struct unigram_state *s,
                               struct tok_ids *ids)
{
    size_t used = put_unigram(u, s, s->rest.data, s->rest.len, true, ids);
    BUG_ON(used < s->rest.len || s->norm.held, "%zu bytes of a text were left", s->rest.len - used);
    unigram_advance(u, s, true, ids);
    s->ended = s->score;
    unigram_reset(s);
}

/* ---- parts for several threads --------------------------------------------------------------- */

size_t unigram_cut(const struct unigram *u, const char *text, size_t n)
{
    for (size_t at = n > 8 ? n - 8 : 0; at; at--) {
        unsigned char a = (unsigned char)text[at - 1], b = (unsigned char)text[at];
        if ((a | b) < 0x80) {
            if (u->apart[a][b >> 3] >> (b & 7) & 1 && !joins(u, text + at + 1))
                return at;
            continue;
        }
        size_t from = at - 1, k = utf8_char(text + at, text + n);
        while (from && at - from < 4 && ((unsigned char)text[from] & 0xc0) == 0x80)
            from--;
        if (k && utf8_char(text + from, text + at) == at - from &&
            may_part(u, utf8_code(text + from, at - from), utf8_code(text + at, k)) &&
            !joins(u, text + at + k))
            return at;
    }
    return 0;
}

/* Appends space for n 32-bit numbers, to be read in the same order. */
static uint32_t *room_for(struct tok_ids *to, size_t n)
{
    uint32_t *p = (uint32_t *)tok_ids_reserve(to, n);
    to->n += n;
    return p;
}

/* Text between split points that find_segments does not see: one segment, to be encoded later.
 * Returns its bytes; 0: no split point is near. */
static size_t look_slowly(const struct unigram *u, struct unigram_state *s, const char *text,
                          size_t n, struct tok_ids *ret)
{
    size_t most = n < UNIGRAM_CHUNK ? n : UNIGRAM_CHUNK;
    size_t cut = unigram_next_cut(u, s, text, most);
    if (cut == most)
        return 0;
    uint32_t *p = room_for(ret, 5);
    p[0] = p[1] = 1;
    p[2] = 0;
    p[3] = (uint32_t)cut;
    p[4] = (uint32_t)limited(u, (int32_t)u->none, 0);
    return cut;
}

/* For each chunk: the number of its segments and of its ids with limits; the starts of the segments
 * and the end of the last; the ids. */
void unigram_look(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  struct tok_ids *ret)
{
    segment_make_room(u, s);
    for (size_t used = 0, k; n - used > 2 * AHEAD; used += k) {
        size_t most = n - used - AHEAD < UNIGRAM_CHUNK ? n - used - AHEAD : UNIGRAM_CHUNK;
        uint32_t count = (uint32_t)find_segments(u, s, text + used, most, s->start);
        if (!count) {
            if (!(k = look_slowly(u, s, text + used, n - used, ret)))
                break;
            continue;
        }
        uint32_t *head = room_for(ret, 2 + count + 1);
        head[0] = count;
        memcpy(head + 2, s->start, (count + 1) * sizeof(*s->start));
        size_t at = ret->n;
        find_ids(u, s, text + used, s->start, count, ret);
        ((uint32_t *)ret->id)[at - count - 2] = (uint32_t)(ret->n - at);
        k = s->start[count];
    }
}

void unigram_put_looked(const struct unigram *u, struct unigram_state *s, const char *text,
                        size_t n, const struct tok_ids *looked, bool last, struct tok_ids *ids)
{
    const uint32_t *p = (const uint32_t *)looked->id, *end = looked->n ? p + looked->n : p;
    size_t used = 0;
    segment_make_room(u, s);
    while (p < end) {
        const uint32_t *start = p + 2, *stream = start + p[0] + 1;
        put_stream(u, s, text + used, start, stream, p[1], ids);
        used += start[p[0]];
        p = stream + p[1];
    }
    unigram_put(u, s, text + used, n - used, last, ids);
    if (!last)
        unigram_end_at_cut(u, s, ids);
}
