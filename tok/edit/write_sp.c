/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/format/proto.h"
#include "tok/edit/recipe.h"

/*
 * sentencepiece_model.proto. Messages other than the pieces are those read from the model, or made
 * by recipe_to_sp; of the trainer's, only vocab_size and ids are rewritten.
 */

enum { PIECE_TEXT = 1, PIECE_SCORE, PIECE_TYPE };
enum { TRAINER = 2, VOCAB_SIZE = 4, UNK_ID = 40 /* bos, eos, pad follow */ };

static void write_sp_put_piece(struct buf *b, const struct recipe_piece *p, struct buf *m)
{
    buf_reset(m);
    protow_bytes(m, PIECE_TEXT, p->text, p->n);
    protow_float(m, PIECE_SCORE, (float)p->score);
    if (p->type != SP_NORMAL)
        protow_varint(m, PIECE_TYPE, (uint64_t)p->type);
    protow_bytes(b, 1, m->data, m->len);
}

/* Of a piece of the model that was read, which may have been renumbered. */
static int32_t new_id(const struct recipe *r, const struct sp_piece *p)
{
    return recipe_find(r, p->text, p->length);
}

static void put_trainer(const struct recipe *r, struct buf *b)
{
    struct buf m = {0};
    struct proto in;
    struct proto_field f;
    struct err e;
    bool more = true;
    proto_init(&in, r->path, r->fields[TRAINER], r->nfields[TRAINER]);
    for (const unsigned char *at = in.p;; at = in.p) {
        int code = proto_next(&in, &f, &more, &e);
        BUG_ON(code, "a trainer part that was read before: %s", e.msg);
        if (!more)
            break;
        if (f.number == VOCAB_SIZE)
            protow_varint(&m, VOCAB_SIZE, r->npieces);
        else if (f.number >= UNK_ID && f.number < UNK_ID + 4 && f.value < r->sp.npieces)
            protow_varint(&m, f.number, (uint64_t)(int64_t)new_id(r, &r->sp.piece[f.value]));
        else
            buf_add(&m, at, (size_t)(in.p - at));
    }
    protow_bytes(b, TRAINER, m.data, m.len);
    buf_finish(&m);
}

void write_sp(const struct recipe *r, struct buf *b)
{
    struct buf m = {0};
    for (size_t i = 0; i < r->npieces; i++)
        write_sp_put_piece(b, &r->piece[i], &m);
    if (r->fields[TRAINER])
        put_trainer(r, b);
    for (uint32_t k = 3; k < 6; k++)
        if (r->fields[k])
            protow_bytes(b, k, r->fields[k], r->nfields[k]);
    buf_finish(&m);
}
