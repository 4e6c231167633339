/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Under ignore_merges a piece that is a token is taken as it is, though merging need not get there.
 * Nearly always it does, for all tokens but a few special ones. Then pieces are merged, and cut,
 * like those of any other vocabulary, and only the few are looked up before: if none of them can
 * be a part that was cut out, nor a piece that would be cut.
 */

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tok/pipe_run.h"
#include "tok/unicode.h"

struct reach {
    const struct pipe *p;
    uint8_t *missed; /* by id: merging does not get there */
    size_t nmissed;
    uint32_t sym[BPE_SHORT][BPE_LANES], n[BPE_LANES], id[BPE_LANES];
    size_t count;
};

static void note(struct reach *r, uint32_t id, bool reached)
{
    r->missed[id] = !reached;
    r->nmissed += !reached;
}

static void merge_batch(struct reach *r)
{
    bpe_merge_short(r->p->bpe, r->sym, r->n, r->count);
    for (size_t k = 0; k < r->count; k++)
        note(r, r->id[k], r->n[k] == 1 && r->sym[0][k] == r->id[k]);
    r->count = 0;
}

static void merge_long(struct reach *r, uint32_t id, const struct buf *b)
{
    struct bpe_work w = {0};
    uint32_t *sym = mem_new(b->len, sizeof(*sym));
    for (size_t i = 0; i < b->len; i++)
        sym[i] = r->p->byte_sym[(uint8_t)b->data[i]];
    size_t n = bpe_merge(r->p->bpe, &w, sym, b->len);
    note(r, id, n == 1 && sym[0] == id);
    bpe_work_finish(&w);
    free(sym);
}

static void find_missed(struct reach *r)
{
    const struct pipe_spec *s = &r->p->spec;
    struct buf b = {0};
    for (uint32_t id = 0; id < s->npieces; id++) {
        buf_reset(&b);
        if (!pipe_piece_bytes(&b, s->piece[id].p, s->piece[id].n))
            continue;
        if (b.len > BPE_SHORT) {
            merge_long(r, id, &b);
            continue;
        }
        for (size_t i = 0; i < b.len; i++)
            r->sym[i][r->count] = r->p->byte_sym[(uint8_t)b.data[i]];
        r->n[r->count] = (uint32_t)b.len;
        r->id[r->count++] = id;
        if (r->count == BPE_LANES)
            merge_batch(r);
    }
    merge_batch(r);
    buf_finish(&b);
}

static bool has_space(const char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k)
        if (uni_space(char_at(text + i, &k)))
            return true;
    return false;
}

/* No part is this token, for it would have been cut; and if it is as long as pieces that are cut,
 * no piece is: its own text makes several, whatever stands round it. `b` has TEXT_SLACK. */
static bool stays_apart(const struct pipe *p, const struct buf *b)
{
    bool parts = false;
    if (utf8_good(b->data, b->len) < b->len)
        return false;
    for (size_t at = 1; at < b->len && !parts; at++)
        parts =
            ((unsigned char)b->data[at] & 0xc0) != 0x80 && cut_here(&p->cut, b->data, at, b->len);
    if (!parts || b->len <= CUT_ABOVE || p->family == SCAN_NONE)
        return parts;
    uint32_t *start = mem_new(b->len + 1, sizeof(*start));
    size_t pieces = scan_starts(p->family, b->data, b->len, start);
    free(start);
    return pieces > 1 && !has_space(b->data, b->len);
}

static bool all_stay_apart(const struct pipe *p, const uint8_t *missed)
{
    const struct pipe_spec *s = &p->spec;
    struct buf b = {0};
    bool all = true;
    for (size_t id = 0; id < s->npieces && all; id++) {
        buf_reset(&b);
        if (!missed[id] || !pipe_piece_bytes(&b, s->piece[id].p, s->piece[id].n))
            continue;
        memset(buf_reserve(&b, TEXT_SLACK), 0, TEXT_SLACK);
        all = stays_apart(p, &b);
    }
    buf_finish(&b);
    return all;
}

void pipe_open_reach(struct pipe *p)
{
    struct reach r = {.p = p, .missed = mem_new(p->spec.npieces + 1, 1)};
    if (p->all_bytes) {
        find_missed(&r);
        pipe_open_cuts(p, r.missed);
        p->by_merges = !r.nmissed || all_stay_apart(p, r.missed);
    }
    if (!p->by_merges || r.nmissed)
        pipe_open_whole(p, p->by_merges ? r.missed : NULL);
    free(r.missed);
}
