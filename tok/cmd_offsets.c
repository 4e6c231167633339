/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "tok/cmd.h"

/* Ids with their places, which only lines and JSON can hold. */

int cmd_offsets_check(const struct cli *c, struct err *e)
{
    if (!c->offsets)
        return 0;
    if (c->format != CMD_TEXT && c->format != CMD_JSON)
        return err_set(e, ERR_USAGE, "--offsets goes with --format text and json only");
    if (cmd_shape(c) != CMD_BEST)
        return err_set(e, ERR_USAGE, "--offsets goes with --output_format id and piece only");
    if (c->truncation)
        return err_set(e, ERR_USAGE, "--offsets does not go with --truncation");
    if (c->padding)
        return err_set(e, ERR_USAGE, "--offsets does not go with --padding");
    return 0;
}

static void put_id(const struct cli *c, const struct tokenizer *t, int32_t id, struct buf *out)
{
    const char *piece = cmd_pieces(c) ? tok_piece(t, id) : NULL;
    if (!piece)
        buf_addf(out, "%d", id);
    else if (c->format == CMD_JSON)
        jsonw_string(out, piece, strlen(piece));
    else
        buf_adds(out, piece);
}

static void put_line(const struct cli *c, const struct tokenizer *t, const struct tok_ids *ids,
                     const struct tok_ranges *r, struct buf *out)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (i)
            buf_addc(out, ' ');
        put_id(c, t, ids->id[i], out);
        buf_addf(out, ":%zu-%zu", r->at[i].begin, r->at[i].end);
    }
    buf_addc(out, '\n');
}

static void put_json(const struct cli *c, const struct tokenizer *t, const struct tok_ids *ids,
                     const struct tok_ranges *r, struct buf *out)
{
    buf_adds(out, cmd_pieces(c) ? "{\"pieces\":[" : "{\"ids\":[");
    for (size_t i = 0; i < ids->n; i++) {
        if (i)
            buf_addc(out, ',');
        put_id(c, t, ids->id[i], out);
    }
    buf_adds(out, "],\"offsets\":[");
    for (size_t i = 0; i < ids->n; i++)
        buf_addf(out, "%s[%zu,%zu]", i ? "," : "", r->at[i].begin, r->at[i].end);
    buf_adds(out, "]}\n");
}

int cmd_offsets_put(const struct cli *c, const struct tokenizer *t, struct tok_work *w,
                    const char *text, size_t n, struct tok_ids *ids, struct buf *out, struct err *e)
{
    struct tok_ranges r = {0};
    int code =
        tok_encode_offsets(t, w, text, n, c->offsets == 1 ? TOK_CHARS : TOK_BYTES, ids, &r, e);
    if (!code && c->append_eod) {
        *tok_ids_reserve(ids, 1) = (int32_t)tok_info(t)->eod;
        ids->n++;
        tok_ranges_add(&r);
    }
    if (!code)
        (c->format == CMD_JSON ? put_json : put_line)(c, t, ids, &r, out);
    tok_ranges_finish(&r);
    return code;
}
