/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dataset/shard/ids.h"
#include "dataset/shard/pack.h"
#include "prep/encode/encoder_internal.h"

enum { PIECE = 64 << 10 }; /* bytes of a long text at a time */

/* So many bytes of the record are encoded. */
static void advance(const struct encoder *c, struct item *it, size_t n)
{
    n = c->plan->ids ? n / 4 : n; /* an id has eight bytes here, and at least two in its file */
    it->under_way += n;
    if (c->plan->under_way)
        atomic_fetch_add_explicit(c->plan->under_way, n, memory_order_relaxed);
}

/* Moves the current ids to the column, and the end of document after the last of them. */
static int put_long(struct encoder *c, struct long_column *col, bool last, struct err *e)
{
    const struct encode_plan *p = c->plan;
    c->tokens += c->ids.n;
    if (p->known_eod >= 0)
        c->eods += ids_count(c->ids.id, c->ids.n, p->known_eod);
    if (!col->tokens)
        encoder_put_bos(c, &c->ids, 0);
    if (last && p->eod >= 0 && col->tokens + c->ids.n)
        encoder_put_eod(c, &c->ids);
    size_t bytes = c->ids.n * shard_dtype_width(p->dtype);
    int code =
        shard_pack(p->dtype, p->vocab_size, c->ids.id, c->ids.n, buf_reserve(&c->packed, bytes), e);
    if (!code)
        code = spill_add(&col->packed, c->packed.data, bytes, e);
    col->tokens += c->ids.n;
    c->ids.n = 0;
    if (!code && col->tokens > INT32_MAX)
        code = err_set(e, ERR_DATA,
                       "more than %d tokens in one document, the .idx counts no "
                       "further",
                       INT32_MAX);
    return !code && last ? spill_flush(&col->packed, e) : code;
}

/* The sequences of a long record. */
struct long_run {
    uint64_t from; /* tokens before the current one */
    uint32_t held; /* length of the previous one, written once it cannot grow any more */
};

/* Ends one sequence of a long record, or the last of them. */
static int put_long_sequence(struct encoder *c, struct long_column *col, bool last,
                             struct long_run *run, struct err *e)
{
    int code = put_long(c, col, last, e);
    uint32_t more = (uint32_t)(col->tokens - run->from);
    run->from = col->tokens;
    if (last)
        run->held += more;
    if (!code && run->held && (last || more))
        code = spill_add(&col->sentence, &run->held, sizeof(run->held), e);
    if (more)
        run->held = more;
    return !code && last ? spill_flush(&col->sentence, e) : code;
}

struct long_ids {
    struct encoder *c;
    struct long_column *col;
};

/* Ids of a text of which more come. */
static int take_long(void *arg, struct tok_ids *ids, struct err *e)
{
    const struct long_ids *t = arg;
    (void)ids; /* c->ids */
    return put_long(t->c, t->col, false, e);
}

static int encode_long_sentences(struct encoder *c, struct item *it, const struct spill *in,
                                 struct long_column *col, struct err *e)
{
    enum { MOST = 4 * SENTENCES_PIECE };
    char *text = buf_reserve(&c->piece, MOST);
    struct long_run run = {0};
    int code = 0;
    c->ids.n = 0;
    for (uint64_t at = 0; at < in->size && !code;) {
        size_t n = in->size - at < MOST ? (size_t)(in->size - at) : MOST;
        code = spill_read(in, at, text, n, e);
        if (code)
            break;
        n = sentences_piece(text, n);
        sentences_split(c->plan->split, text, n, &c->split);
        for (size_t i = 0; i < punkt_count(&c->split) && !code; i++) {
            const struct punkt_span *s = punkt_span(&c->split, i);
            code = tok_encode(c->plan->tok, c->work, text + s->at, s->end - s->at, &c->ids, e);
            if (!code)
                code = put_long_sequence(c, col, false, &run, e);
        }
        at += n;
        advance(c, it, n);
    }
    return code ? code : put_long_sequence(c, col, true, &run, e);
}

/* The strings of an array, each with JSONL_STRING_END. */
static int encode_long_strings(struct encoder *c, struct item *it, const struct spill *in,
                               struct long_column *col, struct err *e)
{
    char *piece = buf_reserve(&c->piece, PIECE);
    struct long_run run = {0};
    int code = 0;
    c->ids.n = 0;
    for (uint64_t at = 0; at < in->size && !code; at += PIECE) {
        size_t n = in->size - at < PIECE ? (size_t)(in->size - at) : PIECE;
        code = spill_read(in, at, piece, n, e);
        for (const char *p = piece, *end = piece + n; p < end && !code;) {
            const char *stop = memchr(p, JSONL_STRING_END, (size_t)(end - p));
            size_t k = (size_t)((stop ? stop : end) - p);
            code = tok_encode_part(c->plan->tok, c->work, p, k, stop != NULL, &c->ids, e);
            if (!code && stop)
                code = put_long_sequence(c, col, false, &run, e);
            else if (!code && c->ids.n > PIECE)
                code = put_long(c, col, false, e);
            p += k + (stop != NULL);
        }
        advance(c, it, n);
    }
    return code ? code : put_long_sequence(c, col, true, &run, e);
}

/* The lists of an array of ids, each with JSONL_LIST_END. */
static int encode_long_lists(struct encoder *c, struct item *it, const struct spill *in,
                             struct long_column *col, struct err *e)
{
    char *piece = buf_reserve(&c->piece, PIECE);
    const int64_t *id = (const int64_t *)(const void *)piece;
    struct long_run run = {0};
    int code = 0;
    c->ids.n = 0;
    for (uint64_t at = 0; at < in->size && !code; at += PIECE) {
        size_t n = in->size - at < PIECE ? (size_t)(in->size - at) : PIECE, m = n / sizeof(*id);
        code = spill_read(in, at, piece, n, e);
        for (size_t i = 0, k; i < m && !code; i += k + 1) {
            k = encoder_list_length(id + i, m - i);
            code = encoder_take_ids(c->plan, id + i, k, at / sizeof(*id) + i, &c->ids, e);
            if (!code && i + k < m)
                code = put_long_sequence(c, col, false, &run, e);
            else if (!code && c->ids.n > PIECE)
                code = put_long(c, col, false, e);
        }
        advance(c, it, n);
    }
    return code ? code : put_long_sequence(c, col, true, &run, e);
}

/* A string, or a list of ids. */
static int encode_long_text(struct encoder *c, struct item *it, const struct spill *in,
                            struct long_column *col, struct err *e)
{
    const struct encode_plan *p = c->plan;
    int code = 0;
    bool last = false;
    char *piece = buf_reserve(&c->piece, PIECE);
    c->ids.n = 0;
    for (uint64_t at = 0; !code && !last; at += PIECE) {
        size_t n = in->size - at < PIECE ? (size_t)(in->size - at) : PIECE;
        last = at + n == in->size;
        code = spill_read(in, at, piece, n, e);
        if (!code && c->plan->ids)
            code = encoder_take_ids(p, (const int64_t *)(const void *)piece, n / sizeof(int64_t),
                                    at / sizeof(int64_t), &c->ids, e);
        else if (!code)
            code = tok_encode_part(c->plan->tok, c->work, piece, n, last, &c->ids, e);
        if (!code && (last || c->ids.n > PIECE))
            code = put_long(c, col, last, e);
        advance(c, it, n);
    }
    return code;
}

static int encode_long(struct encoder *c, struct item *it, size_t k, struct err *e)
{
    const struct jscan_value *v = &it->large->scan.value[k];
    const struct spill *in = &v->spill;
    struct long_column *col = &it->large->column[k];
    if (v->kind == JSONL_ID_LISTS)
        return encode_long_lists(c, it, in, col, e);
    struct long_ids ids = {c, col};
    const struct tok_sink sink = {col->packed.beside, take_long, &ids};
    if (c->work)
        tok_work_sink(c->work, &sink);
    int code = (v->kind != JSONL_STRING && !c->plan->ids ? encode_long_strings
                : c->plan->split                         ? encode_long_sentences
                                                         : encode_long_text)(c, it, in, col, e);
    if (c->work)
        tok_work_sink(c->work, NULL);
    return code;
}

void encoder_run_long(struct encoder *c, struct item *it)
{
    const struct encode_plan *p = c->plan;
    struct long_record *r = it->large;
    struct err *e = &it->err;
    int code = 0;
    it->lines = 1;
    if (item_bads(it))
        return; /* found bad while it was read */
    for (size_t k = 0; k < p->nkeys && !code; k++)
        code = encoder_check(p, k, r->scan.value[k].kind, r->scan.value[k].spill.size, e);
    for (size_t k = 0; k < p->nkeys && !code && !p->ids; k++)
        code = filter_bytes(&p->filter, r->scan.value[k].spill.size) ? 0 : FILTERED;
    for (size_t k = 0; k < p->nkeys && !code; k++) {
        c->tokens = 0;
        code = encode_long(c, it, k, e);
        if (!code && !filter_tokens(&p->filter, c->tokens))
            code = FILTERED;
    }
    c->added = 0; /* long records are not counted when stored */
    if (code)
        c->eods = 0;
    if (code == ERR_DATA)
        item_add_bad(it, 0, NULL, 0, e);
    else if (code == FILTERED)
        item_add_filtered(it, 0);
    else if (code)
        it->code = code;
    else
        it->docs = 1;
}
