/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Under ignore_merges a pre-token that is itself a token becomes that id, even if merging does not
 * produce it. For all tokens but some hundreds it does. So pre-tokens are merged and split like
 * those of any other vocabulary, and only these few tokens are looked up first.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/pipeline/pipeline_internal.h"

struct reach {
    const struct pipe *p;
    uint8_t *missed; /* by id: merging does not produce it */
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
    for (uint32_t id = 0; id < s->vocab.npieces && s->merges.unreached; id++)
        note(r, id, !s->merges.unreached[id]);
    if (s->merges.unreached)
        return;
    for (uint32_t id = 0; id < s->vocab.npieces; id++) {
        buf_reset(&b);
        if (!pipe_piece_bytes(&b, s->vocab.piece[id].p, s->vocab.piece[id].n))
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

void pipe_open_ignore_merges(struct pipe *p)
{
    struct reach r = {.p = p, .missed = mem_new(p->spec.vocab.npieces + 1, 1)};
    p->by_merges = p->all_bytes;
    if (!p->by_merges) {
        pipe_open_whole(p, NULL);
    } else {
        find_missed(&r);
        pipe_open_cuts(p, r.missed);
        if (r.nmissed) {
            pipe_open_whole(p, r.missed);
            cut_around(&p->cut, &p->whole);
        }
    }
    free(r.missed);
}
