/* SPDX-License-Identifier: Apache-2.0 */

/* The merges of a vocabulary of bytes that lie across two characters of three bytes, for sure.h. */

#include <stdlib.h>

#include "base/mem.h"
#include "tok/pipe_run.h"

enum { FIRST_CODE = 0x800, CODES = 1 << 16 };

/* By id: whether its first byte leads such a character. */
static uint8_t *find_leads(const struct pipe *p)
{
    uint8_t *leads = mem_new(p->spec.npieces + 1, sizeof(*leads));
    for (size_t id = 0; id < p->spec.npieces; id++) {
        const struct pipe_text *t = &p->spec.piece[id];
        size_t k;
        leads[id] = t->n > 1 && (byte_of_letter(t->p, t->n, &k) & 0xf0) == 0xe0;
    }
    return leads;
}

/* The bytes of the pieces that a pair joins. */
static bool get_sides(const struct pipe *p, const struct bpe_pair *x, struct buf *left,
                      struct buf *right)
{
    const struct pipe_text *a = &p->spec.piece[x->left], *b = &p->spec.piece[x->right];
    buf_reset(left);
    buf_reset(right);
    return pipe_piece_bytes(left, a->p, a->n) && pipe_piece_bytes(right, b->p, b->n);
}

void pipe_open_sure(struct pipe *p)
{
    const struct bpe_pair *pair = p->spec.pair, *end = pair + p->spec.npairs;
    uint8_t *leads = find_leads(p);
    struct buf left = {0}, right = {0};
    size_t count = 0;
    for (const struct bpe_pair *x = pair; x < end; x++)
        count += leads[x->right];
    p->sure = sure_create(count);
    for (uint32_t code = FIRST_CODE; code < CODES; code++) {
        uint32_t made = pipe_wide_made(p, code);
        if (made != UINT32_MAX)
            sure_add_char(p->sure, code, made);
    }
    for (const struct bpe_pair *x = pair; x < end; x++)
        if (leads[x->right] && get_sides(p, x, &left, &right))
            sure_add(p->sure, left.data, left.len, right.data, right.len, x->rank);
    sure_close(p->sure);
    buf_finish(&left);
    buf_finish(&right);
    free(leads);
}
