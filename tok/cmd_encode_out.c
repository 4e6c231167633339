/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tok/cmd.h"

/* ---- options ------------------------------------------------------------------------------- */

static int check_nbest(const struct cli *c, struct err *e)
{
    bool many = cmd_shape(c) == CMD_NBEST;
    if (many && c->format != CMD_TEXT && c->format != CMD_JSON)
        return err_set(e, ERR_USAGE,
                       "--output_format nbest_id and nbest_piece go with --format text and json "
                       "only");
    if (many && c->tok.specials == TOK_SPECIALS_PARSE)
        return err_set(e, ERR_USAGE,
                       "the best segmentations are of a text, which --specials parse would part "
                       "into several");
    if (many && (c->truncation || c->append_eod))
        return err_set(e, ERR_USAGE,
                       "--truncation and --append-eod do not go with --output_format nbest_id and "
                       "nbest_piece");
    if (many && (c->tok.nbest < 1 || c->tok.nbest > TOK_NBEST))
        return err_set(e, ERR_USAGE,
                       "--nbest_size is from 1 to %d with --output_format nbest_id "
                       "and nbest_piece, not %lld",
                       TOK_NBEST, (long long)c->tok.nbest);
    return 0;
}

int cmd_check_encode(const struct cli *c, const struct tok_info *i, struct err *e)
{
    if (c->format == CMD_U16 && i->vocab_size > 65536)
        return err_set(e, ERR_USAGE,
                       "--format u16 holds ids below 65536, but the vocabulary has "
                       "%lld: take u32",
                       (long long)i->vocab_size);
    if (c->append_eod && c->format == CMD_DOCS)
        return err_set(e, ERR_USAGE,
                       "--format docs carries documents without their end: prep "
                       "build --append-eod adds it");
    if (c->append_eod && i->eod < 0)
        return err_set(e, ERR_USAGE,
                       "the tokenizer has no end of document: name one by "
                       "--eod-token");
    if (cmd_pieces(c) && c->format != CMD_TEXT && c->format != CMD_JSON)
        return err_set(e, ERR_USAGE,
                       "--output_format piece goes with --format text and json "
                       "only");
    int code = check_nbest(c, e);
    return code ? code : cmd_offsets_check(c, e);
}

/* ---- output -------------------------------------------------------------------------------- */

static void put_ids(struct buf *b, const struct tokenizer *t, const struct cli *c,
                    const int32_t *id, size_t n)
{
    bool json = c->format == CMD_JSON, pieces = cmd_pieces(c);
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_addc(b, json ? ',' : ' ');
        const char *piece = pieces ? tok_piece(t, id[i]) : "";
        if (!pieces)
            buf_addf(b, "%d", id[i]);
        else if (json)
            jsonw_string(b, piece, strlen(piece));
        else
            buf_adds(b, piece);
    }
}

void cmd_put_nbest(struct buf *b, const struct tokenizer *t, const struct cli *c,
                   const struct tok_nbest *list)
{
    bool json = c->format == CMD_JSON;
    if (json)
        buf_adds(b, "{\"nbest\":[");
    for (size_t i = 0, from = 0; i < list->n; from = list->end[i++]) {
        if (json)
            buf_addf(b, "%s{\"score\":%.9g,\"%s\":[", i ? "," : "", (double)list->score[i],
                     cmd_pieces(c) ? "pieces" : "ids");
        put_ids(b, t, c, list->ids.id + from, list->end[i] - from);
        buf_adds(b, json ? "]}" : "\n");
    }
    if (json)
        buf_adds(b, "]}\n");
}
