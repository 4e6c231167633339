/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/sp/kernels.h"

/*
 * The best paths through segments of text, many at a time: texts are sorted by length, the longest
 * first, and sixteen of them are side by side in rows, a row for each character and a lane for each
 * text. Plain C of the kernels (kernels.h), and what surrounds them on every processor.
 */

enum { LANES = AHO_CORASICK_LANES, LENGTHS = 64 /* longer texts are not sorted */ };

_Static_assert((int)WORD_LIST <= (int)AHO_CORASICK_TEXTS, "a list is walked in one call");

struct unigram_lanes *unigram_lanes_create(enum simd_level level)
{
    struct unigram_lanes *w = mem_new(1, sizeof(*w));
    w->kernels = &sp_kernels[level];
    w->walk = text_kernels[level].walk;
    return w;
}

void unigram_lanes_destroy(struct unigram_lanes *w)
{
    if (!w)
        return;
    free(w->number);
    free(w->piece);
    free(w->gap);
    free(w->sum);
    free(w);
}

/* ---- characters ------------------------------------------------------------------------------ */

size_t unigram_spread_plain(const char *text, size_t n, uint32_t *to)
{
    size_t k = 0;
    for (size_t at = 0; at < n; k++) {
        unsigned char lead = (unsigned char)text[at];
        memcpy(&to[k], text + at, sizeof(*to));
        at += 1u + (lead >= 0xc0) + (lead >= 0xe0) + (lead >= 0xf0);
    }
    return k;
}

static uint32_t code_of(uint32_t x)
{
    uint32_t tail = (x >> 8 & 0x3f) << 12 | (x >> 16 & 0x3f) << 6 | (x >> 24 & 0x3f);
    x &= 0xff;
    return x < 0x80   ? x
           : x < 0xe0 ? (x & 0x1f) << 6 | tail >> 12
           : x < 0xf0 ? (x & 0x0f) << 12 | tail >> 6
                      : (x & 0x07) << 18 | tail;
}

/* Whether a character of raw text stays what it is. A space does not: put_spaces handles those at
 * the beginning, the only ones in a segment. */
static bool stays(const struct unigram *u, uint32_t c)
{
    return c < 0x80 ? u->stays[c / 32] >> c % 32 & 1 : sp_is_plain(&u->plain, c);
}

bool unigram_number_plain(const struct unigram *u, uint32_t *number, size_t n, bool raw)
{
    uint32_t rough = 0;
    for (size_t i = 0; i < n; i++) {
        if ((number[i] & 0xff) == UNIGRAM_MARK) {
            number[i] = u->space;
            continue;
        }
        uint32_t c = code_of(number[i]);
        number[i] = u->ends.number[c] | (raw && !stays(u, c) ? UNIGRAM_ROUGH : 0);
        rough |= number[i];
    }
    return rough & UNIGRAM_ROUGH;
}

static void lanes_make_room(struct unigram_lanes *w, size_t more)
{
    if (w->number_room - w->nnumber >= more + LANES)
        return;
    w->number_room = w->nnumber * 2 + more + LANES;
    w->number = mem_grow(w->number, w->number_room, sizeof(*w->number));
}

/* Marks for the spaces before raw text; returns their bytes. */
static size_t put_spaces(const struct unigram *u, struct unigram_lanes *w, const char *text,
                         size_t n)
{
    size_t at = 0;
    for (; at < n && !(text[at] & 0x80) && u->spaces[(unsigned char)text[at]]; at++)
        if (!at || !u->norm.remove_extra)
            w->number[w->nnumber++] = UNIGRAM_MARK;
    return at;
}

/* Reads the raw texts of a list; those that must be normalized are rough. Returns whether there are
 * any. */
static bool read_list(const struct unigram *u, struct unigram_lanes *w,
                      const struct word_list *list)
{
    bool rough = false;
    w->nnumber = 0;
    for (size_t i = 0; i < list->count; i++) {
        const char *p = list->text + list->at[i];
        size_t n = list->n[i];
        lanes_make_room(w, n);
        w->begin[i] = (uint32_t)w->nnumber;
        size_t at = put_spaces(u, w, p, n);
        w->nnumber += w->kernels->spread(p + at, n - at, w->number + w->nnumber);
        w->end[i] = (uint32_t)w->nnumber;
        w->rough[i] = at == n;
        rough |= at == n;
    }
    if (!w->kernels->number(u, w->number, w->nnumber, true))
        return rough;
    for (size_t i = 0; i < list->count; i++)
        for (uint32_t k = w->begin[i]; k < w->end[i]; k++)
            w->rough[i] |= w->number[k] >> 31;
    return true;
}

/* Reads text i of the list once it is normalized. */
static void read_rough(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                       size_t i)
{
    struct unigram_lanes *w = s->lanes;
    unigram_normalize(u, s, text, n);
    n = s->text.len;
    buf_reserve(&s->text, UNIGRAM_AHEAD);
    lanes_make_room(w, n);
    w->begin[i] = (uint32_t)w->nnumber;
    w->nnumber += w->kernels->spread(s->text.data, n, w->number + w->nnumber);
    w->end[i] = (uint32_t)w->nnumber;
    w->kernels->number(u, w->number + w->begin[i], w->nnumber - w->begin[i], false);
    s->text.len = 0;
}

/* ---- texts in rows --------------------------------------------------------------------------- */

static void make_rows(struct unigram_lanes *w, size_t rows)
{
    if (rows <= w->room)
        return;
    w->room = rows + rows / 2;
    w->piece = mem_grow(w->piece, w->room * LANES, sizeof(*w->piece));
    w->gap = mem_grow(w->gap, w->room * LANES, sizeof(*w->gap));
    w->sum = mem_grow(w->sum, w->room * LANES, sizeof(*w->sum));
}

/* Sixteen texts have one row more than the longest of them has characters. */
static void place_texts(struct unigram_lanes *w)
{
    uint32_t rows = 0;
    for (size_t i = 0; i < w->texts.n; i += LANES) {
        uint32_t most = 0;
        for (uint32_t k = 0; k < LANES && i + k < w->texts.n; k++) {
            w->texts.to[i + k] = rows * LANES + k;
            most = w->chars[i + k] > most ? w->chars[i + k] : most;
        }
        rows += most + 1;
    }
    make_rows(w, rows);
}

static size_t rank_of(const struct unigram_lanes *w, size_t i)
{
    uint32_t chars = w->end[i] - w->begin[i];
    return chars < LENGTHS ? LENGTHS - chars : 0;
}

static void sort_texts(struct unigram_lanes *w)
{
    uint32_t place[LENGTHS + 2] = {0};
    for (size_t i = 0; i < w->count; i++)
        place[rank_of(w, i) + 1]++;
    for (size_t k = 1; k <= LENGTHS; k++)
        place[k] += place[k - 1];
    w->texts.n = place[LENGTHS];
    for (size_t i = 0; i < w->count; i++) {
        uint32_t to = place[rank_of(w, i)]++;
        w->place[i] = to;
        w->chars[to] = w->end[i] - w->begin[i];
        w->texts.begin[to] = w->begin[i];
        w->texts.end[to] = w->end[i];
    }
    memset(w->chars + w->texts.n, 0, LANES * sizeof(*w->chars));
    place_texts(w);
}

/* ---- paths ----------------------------------------------------------------------------------- */

size_t unigram_paths_plain(const struct unigram *u, struct unigram_lanes *w)
{
    (void)u, (void)w;
    return 0;
}

void unigram_learn_list(const struct unigram *u, struct unigram_state *s,
                        const struct word_list *list)
{
    struct unigram_lanes *w = s->lanes;
    w->count = list->count;
    if (u->longest >= AHO_CORASICK_CHARS_MOST)
        return;
    if (read_list(u, w, list))
        for (size_t i = 0; i < w->count; i++)
            if (w->rough[i])
                read_rough(u, s, list->text + list->at[i], list->n[i], i);
    sort_texts(w);
    w->walk(&u->ends, w->number, &w->texts, w->piece);
    w->done = w->kernels->paths(u, w);
}

float unigram_learnt(const struct unigram *u, struct unigram_state *s, size_t i,
                     struct tok_ids *ids)
{
    const struct unigram_lanes *w = s->lanes;
    if (u->longest >= AHO_CORASICK_CHARS_MOST || w->begin[i] == w->end[i]) {
        *tok_ids_reserve(ids, 1) = (int32_t)u->none, ids->n++;
        return u->longest >= AHO_CORASICK_CHARS_MOST ? 0 : UNIGRAM_MOST;
    }
    uint32_t at = w->place[i], count = w->ids[at];
    if (at >= w->done)
        return unigram_learn(u, s, w->piece + w->texts.to[at], w->chars[at], ids);
    int32_t *to = tok_ids_reserve(ids, count);
    const uint32_t *from = w->sum + w->texts.to[at];
    for (size_t k = 0; k < count; k++)
        to[k] = (int32_t)from[(count - 1 - k) * LANES];
    ids->n += count;
    return w->limit[at];
}
