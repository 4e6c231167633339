/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/io/path.h"
#include "tok/cmd_out.h"

enum {
    SPELT_MOST = 1 << 20, /* most ids whose spellings are cached */
    COPIED = 1 << 17      /* bytes at a time */
};

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
                       "n-best segmentations are of whole texts, which --specials parse "
                       "would split");
    if (many && (c->truncation || c->padding || c->append_eod))
        return err_set(e, ERR_USAGE,
                       "--truncation, --padding and --append-eod do not go with --output_format "
                       "nbest_id and nbest_piece");
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
                       "%lld: use u32",
                       (long long)i->vocab_size);
    if (c->append_eod && c->format == CMD_DOCS)
        return err_set(e, ERR_USAGE,
                       "--format docs carries documents without their end: prep "
                       "build --append-eod adds it");
    if (c->append_eod && i->eod < 0)
        return err_set(e, ERR_USAGE,
                       "the tokenizer has no end of document: name one with "
                       "--eod-token");
    if (cmd_pieces(c) && c->format != CMD_TEXT && c->format != CMD_JSON)
        return err_set(e, ERR_USAGE,
                       "--output_format piece goes with --format text and json "
                       "only");
    int code = check_nbest(c, e);
    return code ? code : cmd_offsets_check(c, e);
}

/* ---- output -------------------------------------------------------------------------------- */

static void put_number(struct buf *b, uint32_t v)
{
    char digit[10];
    int n = 0;
    do
        digit[n++] = (char)('0' + v % 10);
    while (v /= 10);
    char *p = buf_reserve(b, 10);
    for (int i = 0; i < n; i++)
        p[i] = digit[n - 1 - i];
    b->len += (size_t)n;
}

void cmd_out_id(const struct cmd_out *o, int32_t id, struct buf *b)
{
    size_t n;
    const char *piece = cmd_pieces(o->cli) ? tok_piece(o->tok, id, &n) : NULL;
    if (!piece)
        put_number(b, (uint32_t)id);
    else if (o->cli->format == CMD_JSON)
        jsonw_string(b, piece, n);
    else
        buf_add(b, piece, n);
}

/* Appends an id's spelling, after the separator. */
static void put_one(struct buf *b, const struct cmd_out *o, int32_t id)
{
    buf_addc(b, o->cli->format == CMD_JSON ? ',' : ' ');
    cmd_out_id(o, id, b);
}

/* Precomputes all spellings, unless there are too many. */
static void make_spelling(struct cmd_out *o)
{
    struct buf b = {0};
    id_bytes_init(&o->spelling, (size_t)tok_info(o->tok)->vocab_size);
    for (int32_t id = 0; id < tok_info(o->tok)->vocab_size; id++) {
        buf_reset(&b);
        put_one(&b, o, id);
        id_bytes_set(&o->spelling, (size_t)id, b.data, b.len, 0);
    }
    buf_finish(&b);
}

static void put_list(struct buf *b, const struct cmd_out *o, const struct tok_ids *ids, bool first)
{
    size_t i = 0;
    if (!ids->n)
        return;
    if (first) {
        size_t from = b->len;
        put_one(b, o, ids->id[i++]);
        b->len--;
        memmove(b->data + from, b->data + from + 1, b->len - from);
    }
    if (o->spelling.of)
        id_bytes_append(&o->spelling, ids->id + i, ids->n - i, b);
    else
        for (; i < ids->n; i++)
            put_one(b, o, ids->id[i]);
}

static void put_bare(struct buf *b, const struct tok_ids *ids, size_t width)
{
    char *p = buf_reserve(b, ids->n * width);
    if (width == 4 && ids->n)
        memcpy(p, ids->id, ids->n * 4);
    for (size_t i = 0; width == 2 && i < ids->n; i++) {
        uint16_t v = (uint16_t)ids->id[i];
        memcpy(p + 2 * i, &v, 2);
    }
    b->len += ids->n * width;
}

void cmd_out_before(const struct cmd_out *o, uint64_t n, struct buf *b)
{
    if (o->cli->format == CMD_JSON)
        buf_adds(b, cmd_pieces(o->cli) ? "{\"pieces\":[" : "{\"ids\":[");
    else if (o->cli->format == CMD_DOCS)
        docstream_put_count(b, n);
}

void cmd_out_part(const struct cmd_out *o, const struct tok_ids *ids, bool first, struct buf *b)
{
    switch (o->cli->format) {
    case CMD_TEXT:
    case CMD_JSON:
        put_list(b, o, ids, first);
        break;
    case CMD_DOCS:
        docstream_put_ids(b, &o->header, ids->id, ids->n);
        break;
    default:
        put_bare(b, ids, o->cli->format == CMD_U16 ? 2 : 4);
    }
}

void cmd_out_after(const struct cmd_out *o, struct buf *b)
{
    if (o->cli->format == CMD_TEXT)
        buf_addc(b, '\n');
    else if (o->cli->format == CMD_JSON)
        buf_adds(b, "]}\n");
}

void cmd_out_open(struct cmd_out *o, const struct cli *c, const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    *o = (struct cmd_out){.cli = c, .tok = t};
    o->header = (struct docstream_header){.vocab_size = (uint64_t)i->vocab_size,
                                          .eod = i->eod,
                                          .width = i->vocab_size <= 65536 ? 2 : 4};
    memcpy(o->header.digest, i->digest, sizeof(o->header.digest));
    snprintf(o->header.type, sizeof(o->header.type), "%s", i->type_name);
    if (i->path && strlen(i->path) < sizeof(o->header.path))
        strcpy(o->header.path, i->path);
    if ((c->format == CMD_TEXT || c->format == CMD_JSON) && i->vocab_size <= SPELT_MOST)
        make_spelling(o);
}

void cmd_out_close(struct cmd_out *o)
{
    id_bytes_finish(&o->spelling);
}

/* Appends ids or pieces with separators; `said` has the text of unknown ones, NULL: print the
 * unknown piece. */
static void encode_out_put_ids(struct buf *b, const struct tokenizer *t, const struct cli *c,
                               const int32_t *id, size_t n, const struct tok_unknown *said,
                               size_t gone)
{
    bool json = c->format == CMD_JSON, pieces = cmd_pieces(c);
    int64_t unk = tok_info(t)->unk;
    for (size_t i = 0, k = gone; i < n; i++) {
        if (i)
            buf_addc(b, json ? ',' : ' ');
        if (!pieces) {
            buf_addf(b, "%d", id[i]);
            continue;
        }
        size_t length;
        const char *piece = tok_piece(t, id[i], &length);
        if (said && id[i] == unk && k < said->n) {
            size_t from = k ? said->end[k - 1] : 0;
            piece = said->text.data + from;
            length = said->end[k++] - from;
        }
        if (json)
            jsonw_string(b, piece, length);
        else
            buf_add(b, piece, length);
    }
}

void cmd_out_said(const struct cmd_out *o, const struct tok_ids *ids,
                  const struct tok_unknown *said, size_t gone, struct buf *b)
{
    encode_out_put_ids(b, o->tok, o->cli, ids->id, ids->n, said, gone);
}

void cmd_put_nbest(struct buf *b, const struct tokenizer *t, const struct cli *c,
                   struct tok_work *w, const char *text, size_t n, const struct tok_nbest *list)
{
    bool json = c->format == CMD_JSON;
    struct tok_unknown said = {0};
    if (json)
        buf_adds(b, "{\"nbest\":[");
    for (size_t i = 0, from = 0; i < list->n; from = list->end[i++]) {
        const int32_t *id = list->ids.id + from;
        size_t nids = list->end[i] - from;
        if (json)
            buf_addf(b, "%s{\"score\":%.9g,\"%s\":[", i ? "," : "", (double)list->score[i],
                     cmd_pieces(c) ? "pieces" : "ids");
        if (cmd_pieces(c))
            tok_say_unknown(t, w, text, n, id, nids, &said);
        encode_out_put_ids(b, t, c, id, nids, &said, 0);
        buf_adds(b, json ? "]}" : "\n");
    }
    if (json)
        buf_adds(b, "]}\n");
    tok_unknown_finish(&said);
}

/* ---- long documents ------------------------------------------------------------------------ */

int cmd_out_copy(struct sink *to, const struct spill *from, struct err *e)
{
    struct buf b = {0};
    char *p = buf_reserve(&b, COPIED);
    int code = 0;
    for (uint64_t at = 0; at < from->size && !code; at += b.len) {
        b.len = from->size - at < COPIED ? (size_t)(from->size - at) : COPIED;
        code = spill_read(from, at, p, b.len, e);
        if (!code)
            code = sink_write(to, b.data, b.len, e);
    }
    buf_finish(&b);
    return code;
}

char *cmd_temporary_place(void)
{
    const char *dir = getenv("TMPDIR");
    return path_join(dir && *dir ? dir : "/var/tmp", "tok-encode");
}
