/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/bpe/split_ascii.h"
#include "tok/pipeline/look_across.h"
#include "tok/pipeline/segment_internal.h"
#include "tok/unicode/unicode.h"

/*
 * Splits raw text into segments, at positions across which no step of the tokenizer looks. Each
 * segment goes through all steps by itself, and the cache has its ids under its raw bytes. Nearly
 * every segment of a text has occurred before, and then normalizing, pre-tokenizing and the model
 * cost nothing.
 *
 * Whether the text may be split between two characters depends on these two alone:
 *
 *   normalizer      no step lets one side change the other (a combining mark would), and nothing
 *                   further away changes either of the two characters
 *   added tokens    none of those matched in normalized text contains the pair
 *   pre-tokenizer   the first step that concerns the position splits there; or no step concerns it
 *   model           no token spans the position (tok/bpe/split_point.h)
 *
 * With two exceptions: a combining mark after the second character may compose with it, so the
 * split before the character that the mark follows is withdrawn; and after a character that
 * Precompiled combines with any following one, the next position is not a split point either.
 *
 * A pair of ASCII characters is one bit of a table. Other characters are classified when they first
 * occur, and looked up by character from then on.
 */

enum {
    LOOK_AHEAD = 16, /* removed characters after one before it counts as unsettled */
    CHUNK = 1 << 15,
    PIECE_KEPT = 256,
    ODDS_LOG = 12,
    PIECE = 1 << 20 /* bytes of a pre-token above which scores are summed in parts */
};

/* ---- text ---------------------------------------------------------------------------------- */

/* The kind of the position between two characters (enum place), with ACTS and GRASPS. */
static inline unsigned place_between(const struct pipe *p, struct pipe_work *w, uint32_t a,
                                     uint32_t b)
{
    uint64_t key = char_pairs_key(a, b);
    uint64_t *at = char_pairs_entry(&w->segments->pairs, key);
    if (!char_pairs_is(at, key)) { /* zeroed: two NULs, INSIDE */
        struct sides before = segments_sides_of(p, w, a), behind = segments_sides_of(p, w, b);
        unsigned k = segments_place_of(p, before, behind);
        k |= (behind.first & SIDE_FREE ? 0 : ACTS) | (before.last & SIDE_GRASPS ? GRASPS : 0);
        char_pairs_set(at, key, k);
    }
    return char_pairs_number(at);
}

/* Whether the text from `at` on may change the character before it; `more`: the text continues
 * beyond n. */
static bool is_unsettled(const struct pipe *p, struct pipe_work *w, const char *text, size_t at,
                         size_t n, bool more)
{
    for (size_t i = 0, k; i < LOOK_AHEAD; i++, at += k) {
        if (at >= n)
            return more;
        uint32_t first = segments_sides_of(p, w, utf8_at(text + at, &k)).first;
        if (first != SIDE_KNOWN)
            return !(first & SIDE_FREE);
    }
    return true;
}

/* The number of splits, without the last one if the text after it is unsettled. */
static size_t drop_unsettled(const struct pipe *p, struct pipe_work *w, const char *text,
                             const uint32_t *start, size_t count, size_t n, bool more)
{
    size_t k;
    if (count < 2)
        return count;
    utf8_at(text + start[count - 1], &k);
    return count - is_unsettled(p, w, text, start[count - 1] + k, n, more);
}

/* Many split points from `at` on at once, after `run` plain characters of three bytes or after
 * ASCII, in the terms of find_cuts. Returns the position reached. */
static size_t find_many(const struct pipe *p, struct pipe_work *w, const char *text, size_t at,
                        size_t n, size_t run, enum place least, uint32_t *start, size_t *k)
{
    if (run)
        return run == 2 && least == BETWEEN && p->segments->nears
                   ? split_point4_find(&p->near, w->segments->plain, text, at, n, start, k)
                   : at;
    return cut_ascii(least == BOUNDARY ? p->segments->boundary : p->segments->cut, NULL, text, at,
                     n, start, k);
}

/* Length of the run of plain three-byte characters, with one more. */
static size_t run_with(const struct pipe_work *w, size_t run, uint32_t c, size_t length)
{
    return length == 3 && w->segments->plain[c / 64] >> c % 64 & 1 ? run + 1 : 0;
}

/* The split points in text[0 .. n), which begins at one; start[0] is 0. Returns their number, the
 * first included. `least`: the kinds that count. */
static size_t find_cuts(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        enum place least, uint32_t *start)
{
    const unsigned char *u = (const unsigned char *)text;
    const unsigned char(*cut)[16] = least == BOUNDARY ? p->segments->boundary : p->segments->cut;
    size_t k = 1, at, length, run = 0, end;
    uint32_t before = utf8_at(text, &at);
    bool held = false;
    start[0] = 0;
    while (at < n) {
        if ((run == 2 || before < 0x80) && !held &&
            (end = find_many(p, w, text, at, n, run, least, start, &k)) > at) {
            at = end;
            before = utf8_at(text + utf8_before(text, at), &length);
            run = 0; /* not again at the end of the run */
            continue;
        }
        if (at + 8 <= n && before < 0x80 && !held && !(load_u64(u + at) & 0x8080808080808080u)) {
            split_ascii_eight(cut, NULL, u, at, start, &k);
            at += 8;
            before = u[at - 1];
            continue;
        }
        uint32_t c = utf8_at(text + at, &length);
        unsigned v = 0;
        start[k] = (uint32_t)at;
        if ((before | c) < 0x80) {
            k += cut[before][c >> 3] >> (c & 7) & !held;
        } else {
            v = place_between(p, w, before, c);
            k += (v & PLACE) >= least && !held;
            if (v & ACTS)
                k = drop_unsettled(p, w, text, start, k, at + length, true);
        }
        held = v & GRASPS;
        before = c;
        at += length;
        run = run_with(w, run, c, length);
    }
    return k;
}

/* Does a pre-token begin at the split point `at`? */
static bool is_boundary(const struct pipe *p, struct pipe_work *w, const char *text, size_t at)
{
    size_t k;
    uint32_t before = utf8_at(text + utf8_before(text, at), &k);
    return (place_between(p, w, before, utf8_at(text + at, &k)) & PLACE) == BOUNDARY;
}

struct job {
    const struct pipe *p;
    struct pipe_work *w;
    struct tok_ids *ids;
    struct tok_tally *tally;
    struct err *e;
    bool inside; /* where the rest begins a pre-token goes on; if t->wholes */
};

/* Some of the segments of a text: s.text[s.start[i] .. s.start[i + 1]), i < s.n. */
struct segments {
    const char *text;
    const uint32_t *start;
    size_t n;
    unsigned edge; /* EDGE_INSIDE, EDGE_GOES_ON: of all of it; if t->wholes */
};

/* An optional space, then one pre-token; only ' ' separates pre-tokens without being one itself. */
static bool make_word(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    const struct pipe_segments *t = p->segments;
    size_t from = *text == ' ', k;
    char *to = w->text.data + w->text.len;
    for (size_t i = from; i < n; i += k) {
        uint32_t c = utf8_at(text + i, &k);
        bool same =
            c < 0x80 ? t->becomes[c]
                     : !t->others && !uni_space(c) && segments_sides_of(p, w, c).first & SIDE_SAME;
        if (!same || (t->punctuation && n - from > k && pre_punctuation(c)))
            return false;
        memcpy(to, text + i, k);
        if (c < 0x80)
            *to = (char)t->becomes[c];
        to += k;
    }
    w->text.len = (size_t)(to - w->text.data);
    return from < n;
}

/* Appends a segment as the model sees it to w->text; false: it needs all steps. */
static bool make_direct(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    const struct pipe_segments *t = p->segments;
    struct buf *b = &w->text;
    if (!t->direct && !t->words)
        return false;
    buf_reserve(b, n * 4 + TEXT_SLACK);
    if (t->words)
        return make_word(p, w, text, n);
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = utf8_at(text + i, &k);
        if (c == ' ') {
            if (!t->space.n || (i && !t->spaces))
                return false;
            buf_add(b, t->space.p, t->space.n);
        } else {
            if (!(segments_sides_of(p, w, c).first & SIDE_SAME) || (i && c == t->parting))
                return false;
            buf_add(b, text + i, k);
        }
    }
    return true;
}

static uint64_t hash_of(const char *text, size_t n)
{
    uint64_t head = load_u64(text); /* bytes after a segment are readable */
    head &= n < 8 ? ((uint64_t)1 << 8 * n) - 1 : UINT64_MAX;
    return (head ^ n) * 0x9E3779B97F4A7C15u;
}

static void note_odd(struct pipe_segments_work *w, const char *text, size_t n)
{
    uint64_t hash = hash_of(text, n);
    if (!w->odds)
        w->odds = mem_new((size_t)1 << ODDS_LOG, sizeof(*w->odds));
    w->odds[hash >> (64 - ODDS_LOG)] = hash;
    w->near[(unsigned char)*text] = true;
}

/* A false positive is encoded with its pre-token, which is slower but gives the same ids. */
static inline bool was_odd(const struct pipe_segments_work *w, const char *text, size_t n)
{
    uint64_t hash;
    if (!w->near[(unsigned char)*text])
        return false;
    hash = hash_of(text, n);
    return w->odds[hash >> (64 - ODDS_LOG)] == hash;
}

/* Merges segments side by side, from the first on; *ret_count: up to one that needs the steps. */
static int merge_direct(const struct pipe *p, struct pipe_work *w, struct word_list *list,
                        size_t first, struct tok_ids *ids, size_t *ret_count, struct err *e)
{
    enum { BLOCK = 1 << 20 };
    struct word_list part = {.count = 0};
    buf_reset(&w->text);
    for (; first + part.count < list->count && w->text.len < BLOCK; part.count++) {
        size_t at = w->text.len, i = first + part.count;
        if (!make_direct(p, w, list->text + list->at[i], list->n[i]))
            break;
        part.at[part.count] = (uint32_t)at;
        part.n[part.count] = (uint32_t)(w->text.len - at);
    }
    part.text = w->text.data;
    *ret_count = part.count;
    int code = part.count ? pipe_model_words(p, w, &part, ids, e) : 0;
    memcpy(list->end + first, part.end, part.count * sizeof(*part.end));
    return code;
}

/*
 * Some segments are not cached: those with the string of a special token, which is counted each
 * time, those of a pre-token with scores so close that the sum before them may decide, and those
 * with a pre-token that is a token although merging does not make it: it may be only a part of one.
 */
static int miss_part(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct tok_ids *ids, struct err *e)
{
    struct tok_tally tally = {0};
    w->near = false;
    buf_reset(&w->text);
    int code = make_direct(p, w, text, n)
                   ? pipe_model_encode(p, w, w->text.data, w->text.len, ids, e)
                   : pipe_encode_run(p, w, text, n, EDGE_CUT | EDGE_STRIPPED, ids, &tally, e);
    w->near &= p->segments->wholes || p->segments->sums;
    w->near &= !(p->segments->fresh && *text == ' '); /* no sum precedes it */
    if (!tally.specials && (code || !w->near))
        return code;
    if (!tally.specials)
        note_odd(w->segments, text, n);
    w->segments->odd = text;
    return ERR_DATA;
}

static int miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                struct err *e)
{
    const struct pipe *p = state;
    int code = 0;
    for (size_t i = 0, count; i < list->count && !code; i += count) {
        count = 0;
        code = p->bpe ? merge_direct(p, scratch, list, i, ids, &count, e) : 0;
        if (code || count)
            continue;
        code = miss_part(p, scratch, list->text + list->at[i], list->n[i], ids, e);
        list->end[i] = ids->n;
        count = 1;
    }
    return code;
}

static int put_part(const struct job *j, const char *text, size_t n, unsigned edge)
{
    return pipe_encode_run(j->p, j->w, text, n, edge | EDGE_STRIPPED, j->ids, j->tally, j->e);
}

static int put_kept(const struct job *j, const char *text, const uint32_t *start, size_t n)
{
    j->w->segments->odd = NULL;
    return word_cache_encode(j->w->segments->cache, text, start, n, miss, j->p, j->w, j->ids, j->e);
}

/* The edges of segments `from` to `end`, if t->wholes. */
static unsigned edges_of(const struct job *j, const struct segments *s, size_t from, size_t end)
{
    unsigned edge = EDGE_CUT;
    if (!j->p->segments->wholes)
        return edge;
    if (from ? !is_boundary(j->p, j->w, s->text, s->start[from]) : s->edge & EDGE_INSIDE)
        edge |= EDGE_INSIDE;
    if (end < s->n ? !is_boundary(j->p, j->w, s->text, s->start[end]) : s->edge & EDGE_GOES_ON)
        edge |= EDGE_GOES_ON;
    return edge;
}

/* Encodes segments `done` to n; the pre-token around an odd one is encoded whole, if scores are
 * summed. The odd one found need not be the first. */
static int put_run(const struct job *j, const struct segments *s, size_t done, size_t n)
{
    const char *text = s->text;
    const uint32_t *start = s->start;
    int code = 0;
    while (done < n && !code) {
        code = put_kept(j, text, start + done, n - done);
        const char *odd = j->w->segments->odd;
        if (!odd)
            return code;
        size_t from = done, end;
        for (end = done; text + start[end] <= odd; end++)
            if (end > done && (!j->p->segments->sums || is_boundary(j->p, j->w, text, start[end])))
                from = end;
        while (j->p->segments->sums && end < n && !is_boundary(j->p, j->w, text, start[end]))
            end++;
        code = put_run(j, s, done, from);
        if (!code)
            code = put_part(j, text + start[from], start[end] - start[from],
                            edges_of(j, s, from, end));
        done = end;
    }
    return code;
}

static uint32_t *room_for(struct pipe_segments_work *w, size_t n)
{
    if (w->room < n) {
        w->room = n + n / 2;
        w->start = mem_grow(w->start, w->room, sizeof(*w->start));
    }
    return w->start;
}

/* Encodes whole pre-tokens, before which there is no sum. */
static int miss_piece(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                      struct err *e)
{
    struct pipe_work *w = scratch;
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        struct tok_tally tally = {0};
        code = pipe_encode_run(state, w, list->text + list->at[i], list->n[i],
                               EDGE_CUT | EDGE_STRIPPED, ids, &tally, e);
        list->end[i] = ids->n;
        if (!code && tally.specials) {
            w->segments->odd = list->text;
            code = ERR_DATA;
        }
    }
    return code;
}

static int segment_put_piece(const struct job *j, const char *text, size_t n)
{
    struct pipe_segments_work *w = j->w->segments;
    const uint32_t at[] = {0, (uint32_t)n};
    if (n > PIECE_KEPT)
        return put_part(j, text, n, EDGE_CUT);
    if (!w->pieces)
        w->pieces = word_cache_create(j->p->segments->kept_pieces, ids_form_for(j->p->size));
    w->odd = NULL;
    int code = word_cache_encode(w->pieces, text, at, 1, miss_piece, j->p, j->w, j->ids, j->e);
    return w->odd ? put_part(j, text, n, EDGE_CUT) : code;
}

/* Encodes segments from boundary to boundary; one that is likely to be odd, or the pre-token around
 * it if scores are summed, is encoded separately. */
static int put_parts(const struct job *j, const struct segments *s)
{
    const struct pipe_segments *t = j->p->segments;
    const char *text = s->text;
    const uint32_t *start = s->start;
    int code = 0;
    size_t done = 0, i = 0;
    for (; i < s->n && !code && (t->sums || t->wholes); i++) {
        if (!was_odd(j->w->segments, text + start[i], start[i + 1] - start[i]))
            continue;
        size_t from = i, end = i + 1;
        while (t->sums && from > done && !is_boundary(j->p, j->w, text, start[from]))
            from--;
        while (t->sums && end < s->n && !is_boundary(j->p, j->w, text, start[end]))
            end++;
        code = put_run(j, s, done, from);
        if (!code && t->sums)
            code = segment_put_piece(j, text + start[from], start[end] - start[from]);
        else if (!code)
            code = put_part(j, text + start[from], start[end] - start[from],
                            edges_of(j, s, from, end));
        done = end;
        i = end - 1;
    }
    return code ? code : put_run(j, s, done, s->n);
}

/*
 * Encodes text that begins at a split point and has readable bytes after it. *ret_used: all of it,
 * or the part before its last split point. Where scores are summed that is the last boundary, and
 * more than PIECE bytes without one are not split.
 */
static int put_chunk(struct job *j, const char *text, size_t n, bool last, size_t *ret_used)
{
    const struct pipe_segments *t = j->p->segments;
    uint32_t *start = room_for(j->w->segments, n + 16);
    size_t k = find_cuts(j->p, j->w, text, n, t->sums && n > PIECE ? BOUNDARY : BETWEEN, start);
    start[k] = (uint32_t)n;
    if (!last)
        k = drop_unsettled(j->p, j->w, text, start, k, n, true) - 1;
    while (!last && t->sums && k && !is_boundary(j->p, j->w, text, start[k]))
        k--;
    *ret_used = start[k];
    if (!k)
        return 0;
    struct segments s = {text, start, k, j->inside ? EDGE_INSIDE : 0};
    j->inside = t->wholes && !last && !is_boundary(j->p, j->w, text, start[k]);
    s.edge |= j->inside ? EDGE_GOES_ON : 0;
    return put_parts(j, &s);
}

/* A start of a character not far after `at`. */
static size_t chunk_end(const char *text, size_t at, size_t n)
{
    while (at < n && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

/* All but the first segment. */
static int put_rest(struct job *j, const char *text, size_t n)
{
    size_t at = 0, used = 1, most = CHUNK;
    int code = 0;
    while (!code && n - at > most + TEXT_SLACK) {
        code = put_chunk(j, text + at, chunk_end(text, at + most, n) - at, false, &used);
        at += used;
        most = used ? CHUNK : most * 2;
    }
    if (code || at == n)
        return code;
    struct buf *b = &j->w->segments->tail;
    buf_reset(b);
    memcpy(buf_reserve(b, n - at + TEXT_SLACK), text + at, n - at);
    memset(b->data + n - at, 0, TEXT_SLACK);
    return put_chunk(j, b->data, n - at, true, &used);
}

static void segment_strip(const struct pipe_segments *t, const char **text, size_t *n)
{
    size_t k, before;
    while (t->strip_left && *n && uni_space(utf8_at(*text, &k)))
        *text += k, *n -= k;
    while (t->strip_right && *n) {
        before = utf8_before(*text, *n);
        if (!uni_space(utf8_at(*text + before, &k)))
            break;
        *n = before;
    }
}

/* The first position after the beginning where the text may be split, or n. */
static size_t first_cut(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    enum place least = p->segments->sums ? BOUNDARY : BETWEEN;
    size_t at, k;
    uint32_t before = utf8_at(text, &at), c;
    unsigned v = 0;
    for (; at < n; at += k, before = c) {
        bool held = v & GRASPS;
        c = utf8_at(text + at, &k);
        v = place_between(p, w, before, c);
        if ((v & PLACE) >= least && !held && !is_unsettled(p, w, text, at + k, n, false))
            return at;
    }
    return n;
}

size_t segments_cut(const struct pipe *p, const char *text, size_t n)
{
    const struct pipe_spec *s = &p->spec;
    const unsigned char *u = (const unsigned char *)text;
    const struct pipe_segments *t = p->segments;
    const unsigned char(*cut)[16] = t->merges && !t->wholes ? t->cut : t->boundary;
    enum { TRIES = 1 << 12 };
    for (size_t i = 0; i < s->nnorm; i++)
        if (s->norm[i].kind == NORM_STRIP || s->norm[i].kind == NORM_PREPEND)
            return 0;
    for (size_t at = n - 2; n > 2 && at > 1 && n - at < TRIES; at--)
        if ((u[at - 2] | u[at - 1] | u[at] | u[at + 1]) < 0x80 && p->segments->settles[u[at + 1]] &&
            (!p->segments->prefixes || text[at] == ' ') &&
            cut[u[at - 1]][u[at] >> 3] >> (u[at] & 7) & 1 &&
            (!p->raw || added_parts(p->raw, text, at, n)))
            return at;
    return 0;
}

bool segments_free(const struct pipe *p, struct pipe_work *w, const char *text, size_t at, size_t n)
{
    size_t k, before = utf8_before(text, at);
    uint32_t a = utf8_at(text + before, &k), b = utf8_at(text + at, &k);
    bool held =
        before &&
        place_between(p, w, utf8_at(text + utf8_before(text, before), &(size_t){0}), a) & GRASPS;
    return segments_sides_of(p, w, a).last & segments_sides_of(p, w, b).first & SIDE_FREE &&
           !held && !is_unsettled(p, w, text, at + k, n, true);
}

size_t segments_last(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    enum place least = p->segments->sums || p->segments->wholes ? BOUNDARY : BETWEEN;
    if (!w->segments)
        w->segments = segments_work_create(p);
    for (size_t at = n, k; at && (at = utf8_before(text, at)) > 0;) {
        uint32_t a = utf8_at(text + utf8_before(text, at), &k), b = utf8_at(text + at, &k);
        if ((place_between(p, w, a, b) & PLACE) >= least && segments_free(p, w, text, at, n))
            return at;
    }
    return 0;
}

int segments_rest(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    struct job j = {p, w, ids, tally, e, false};
    return put_rest(&j, text, n);
}

int segments_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    struct job j = {p, w, ids, tally, e, false};
    if (!w->segments)
        w->segments = segments_work_create(p);
    const char *begin = text;
    segment_strip(p->segments, &text, &n);
    if (!n)
        return 0;
    if (text > begin)
        edge &= ~(unsigned)EDGE_ZERO;
    size_t first = first_cut(p, w, text, n);
    j.inside = p->segments->wholes && first < n && !is_boundary(p, w, text, first);
    int code = put_part(&j, text, first, edge | (j.inside ? EDGE_GOES_ON : 0));
    return code || first == n ? code : put_rest(&j, text + first, n - first);
}
