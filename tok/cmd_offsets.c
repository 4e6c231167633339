/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cmd_out.h"

/* Output of ids with offsets, in lines or JSON only. */

int cmd_offsets_check(const struct cli *c, struct err *e)
{
    if (!c->offsets)
        return 0;
    if (c->format != CMD_TEXT && c->format != CMD_JSON)
        return err_set(e, ERR_USAGE, "--offsets goes with --format text and json only");
    if (cmd_shape(c) != CMD_BEST)
        return err_set(e, ERR_USAGE, "--offsets goes with --output_format id and piece only");
    if (c->padding)
        return err_set(e, ERR_USAGE, "--offsets does not go with --padding");
    return 0;
}

static void offsets_put_text(const struct cmd_out *o, const struct tok_ids *ids,
                             const struct tok_ranges *r, struct buf *b)
{
    for (size_t i = 0; i < ids->n; i++) {
        if (i)
            buf_addc(b, ' ');
        cmd_out_id(o, ids->id[i], b);
        if (r)
            buf_addf(b, ":%zu-%zu", r->at[i].begin, r->at[i].end);
    }
    buf_addc(b, '\n');
}

static void put_json(const struct cmd_out *o, const struct tok_ids *ids, const struct tok_ranges *r,
                     int64_t part, struct buf *b)
{
    buf_adds(b, cmd_pieces(o->cli) ? "{\"pieces\":[" : "{\"ids\":[");
    for (size_t i = 0; i < ids->n; i++) {
        if (i)
            buf_addc(b, ',');
        cmd_out_id(o, ids->id[i], b);
    }
    buf_addc(b, ']');
    if (r)
        buf_adds(b, ",\"offsets\":[");
    for (size_t i = 0; r && i < ids->n; i++)
        buf_addf(b, "%s[%zu,%zu]", i ? "," : "", r->at[i].begin, r->at[i].end);
    if (r)
        buf_addc(b, ']');
    if (part >= 0)
        buf_addf(b, ",\"part\":%lld", (long long)part);
    buf_adds(b, "}\n");
}

void cmd_out_line(const struct cmd_out *o, const struct tok_ids *ids, const struct tok_ranges *r,
                  int64_t part, struct buf *b)
{
    if (o->cli->format == CMD_JSON)
        put_json(o, ids, r, part, b);
    else
        offsets_put_text(o, ids, r, b);
}
