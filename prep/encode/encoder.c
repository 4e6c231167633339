/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/encode/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "dataset/shard/ids.h"
#include "dataset/shard/write.h"
#include "prep/input/lines.h"
#include "prep/input/parquet_rows.h"

enum {
    IDS_KEPT = 4 << 20,
    PIECE = 64 << 10 /* bytes of a long text at a time */
};

struct encoder {
    const struct encode_plan *plan;
    struct jsonl *json;
    struct jsonl_value *value;
    struct tok_work *work;
    struct punkt_work split;
    uint64_t added; /* known_eod round the documents of the block */

    /* of a long record */
    struct tok_ids ids;
    struct buf piece, packed;
    uint64_t eods;
    uint64_t tokens; /* of a text so far, without those round it */
};

struct encoder *encoder_create(const struct encode_plan *p)
{
    struct encoder *c = mem_new(1, sizeof(*c));
    c->plan = p;
    c->json = jsonl_create(p->key, p->nkeys);
    c->value = mem_new(p->nkeys, sizeof(*c->value));
    if (!p->tok)
        return c;
    c->work = tok_work_create(p->tok);
    tok_work_utf8(c->work);
    return c;
}

void encoder_destroy(struct encoder *c)
{
    if (!c)
        return;
    jsonl_destroy(c->json);
    tok_work_destroy(c->work);
    tok_ids_finish(&c->ids);
    buf_finish(&c->piece);
    buf_finish(&c->packed);
    punkt_work_finish(&c->split);
    free(c->value);
    free(c);
}

/* ---- ids to columns ------------------------------------------------------------------------- */

/* Puts the beginning of text before a document, whose first ids are those from `from` on. */
static bool put_bos(struct encoder *c, struct tok_ids *ids, size_t from)
{
    int32_t bos = c->plan->bos;
    if (!c->plan->prepend_bos || ids->n == from || ids->id[from] == bos)
        return false;
    tok_ids_reserve(ids, 1);
    memmove(ids->id + from + 1, ids->id + from, (ids->n - from) * sizeof(*ids->id));
    ids->id[from] = bos;
    ids->n++;
    c->added += bos == c->plan->known_eod;
    return true;
}

static void put_eod(struct encoder *c, struct tok_ids *ids)
{
    *tok_ids_reserve(ids, 1) = c->plan->eod;
    ids->n++;
    c->added += c->plan->eod == c->plan->known_eod;
}

/* One token more in the sequence whose length lies at `at`. */
static void lengthen(struct column *col, size_t at)
{
    uint32_t n;
    if (!col->sentence.len)
        return; /* each document is one */
    memcpy(&n, col->sentence.data + at, sizeof(n));
    n++;
    memcpy(col->sentence.data + at, &n, sizeof(n));
}

/* Where a column ended. */
struct place {
    size_t ids, sentence;
};

/* The column's ids behind `from` are a document. They get the end of document behind them. */
static int put_document(struct encoder *c, struct column *col, struct place from, struct err *e)
{
    struct tok_ids *ids = &col->ids;
    if (put_bos(c, ids, from.ids))
        lengthen(col, from.sentence);
    if (ids->n > from.ids && c->plan->eod >= 0) {
        put_eod(c, ids);
        lengthen(col, col->sentence.len - sizeof(uint32_t));
    }
    size_t n = ids->n - from.ids;
    if (n > INT32_MAX)
        return err_set(e, ERR_DATA, "%zu tokens in one document; the .idx counts to %d", n,
                       INT32_MAX);
    uint32_t length = (uint32_t)n;
    buf_add(&col->length, &length, sizeof(length));
    return 0;
}

/* Appends ids as a record brings them; the first of them stands at `place` of its array. */
static int encoder_take_ids(const struct encode_plan *p, const int64_t *from, size_t n,
                            uint64_t place, struct tok_ids *ret, struct err *e)
{
    int32_t *id = tok_ids_reserve(ret, n);
    for (size_t i = 0; i < n; i++) {
        if (from[i] == INT64_MIN) /* of a Parquet list */
            return err_set(e, ERR_DATA, "there is no id at place %llu",
                           (unsigned long long)(place + i));
        if (from[i] < 0 || from[i] >= p->vocab_size)
            return err_set(e, ERR_DATA, "id %lld at place %llu is outside the vocabulary of %lld",
                           (long long)from[i], (unsigned long long)(place + i),
                           (long long)p->vocab_size);
        id[i] = (int32_t)from[i];
    }
    ret->n += n;
    return 0;
}

/* ---- one record ----------------------------------------------------------------------------- */

/* n: bytes of a text, or number of ids. An empty array may be one of texts. */
static int encoder_judge(const struct encode_plan *p, size_t k, enum jsonl_kind kind, uint64_t n,
                         struct err *e)
{
    if (kind == (p->ids ? JSONL_IDS : JSONL_STRING))
        return 0;
    if (!p->ids && (kind == JSONL_STRINGS || (kind == JSONL_IDS && !n)))
        return 0;
    if (kind == JSONL_MISSING)
        return err_set(e, ERR_DATA, "has no key \"%s\"", p->key[k]);
    return err_set(e, ERR_DATA, "the value of \"%s\" is not %s", p->key[k],
                   p->ids ? "an array of ids" : "a string or an array of strings");
}

/* The column's ids behind `before`, if there are any, are one sequence of several. */
static void encoder_put_sequence(struct column *col, size_t before)
{
    uint32_t n = (uint32_t)(col->ids.n - before);
    if (n)
        buf_add(&col->sentence, &n, sizeof(n));
}

/* Encodes each sentence of the text. */
static int encode_sentences(struct encoder *c, const char *text, size_t n, struct column *col,
                            struct err *e)
{
    int code = 0;
    for (size_t at = 0, piece; at < n && !code; at += piece) {
        piece = sentences_piece(text + at, n - at);
        sentences_split(c->plan->split, text + at, piece, &c->split);
        size_t count = punkt_count(&c->split);
        for (size_t i = 0; i < count && !code; i++) {
            const struct punkt_span *s = punkt_span(&c->split, i);
            size_t before = col->ids.n;
            code =
                tok_encode(c->plan->tok, c->work, text + at + s->at, s->end - s->at, &col->ids, e);
            encoder_put_sequence(col, before);
        }
    }
    return code;
}

/* Encodes each string of an array (JSONL_STRINGS). */
static int encode_strings(struct encoder *c, const char *text, size_t n, struct column *col,
                          struct err *e)
{
    const char *stop;
    int code = 0;
    for (const char *end = n ? text + n : text; text < end && !code; text = stop + 1) {
        size_t before = col->ids.n;
        stop = memchr(text, JSONL_STRING_END, (size_t)(end - text));
        code = tok_encode(c->plan->tok, c->work, text, (size_t)(stop - text), &col->ids, e);
        encoder_put_sequence(col, before);
    }
    return code;
}

/* The column's documents so far are one sequence each, the next one may be several. */
static void list_sequences(struct column *col)
{
    const uint32_t *n = (const uint32_t *)(const void *)col->length.data;
    if (col->sentence.len || !col->ids.n)
        return;
    for (size_t i = 0; i < col->length.len / sizeof(*n); i++)
        if (n[i])
            buf_add(&col->sentence, &n[i], sizeof(n[i]));
}

static int encode_value(struct encoder *c, struct item *it, size_t k, struct err *e)
{
    const struct jsonl_value *v = &c->value[k];
    struct column *col = &it->column[k];
    if (v->kind == JSONL_STRINGS)
        list_sequences(col);
    struct place from = {col->ids.n, col->sentence.len};
    int code;
    if (c->plan->ids)
        code = encoder_take_ids(c->plan, v->ids, v->length, 0, &col->ids, e);
    else if (v->kind != JSONL_STRING)
        code = encode_strings(c, v->text, v->length, col, e);
    else if (c->plan->split)
        code = encode_sentences(c, v->text, v->length, col, e);
    else
        code = tok_encode(c->plan->tok, c->work, v->text, v->length, &col->ids, e);
    if (v->kind == (c->plan->ids ? JSONL_IDS : JSONL_STRING) && !c->plan->split && from.sentence)
        encoder_put_sequence(col, from.ids);
    if (!code && !filter_tokens(&c->plan->filter, col->ids.n - from.ids))
        code = FILTERED;
    if (!code)
        code = put_document(c, col, from, e);
    if (code) {
        col->ids.n = from.ids;
        col->sentence.len = from.sentence;
    }
    if (code == ERR_DATA && c->plan->nkeys > 1)
        err_wrap(e, "\"%s\"", c->plan->key[k]);
    return code;
}

/* Takes the last document out again. */
static void take_back(struct column *col)
{
    uint32_t tokens, n;
    col->length.len -= sizeof(tokens);
    memcpy(&tokens, col->length.data + col->length.len, sizeof(tokens));
    col->ids.n -= tokens;
    for (; col->sentence.len && tokens; tokens -= n) {
        col->sentence.len -= sizeof(n);
        memcpy(&n, col->sentence.data + col->sentence.len, sizeof(n));
    }
}

/* The values at hand. ERR_DATA: the record is bad, and has left nothing behind, as one that is
 * FILTERED. */
static int encode_values(struct encoder *c, struct item *it, struct err *e)
{
    const struct encode_plan *plan = c->plan;
    uint64_t added = c->added;
    int code = 0;
    for (size_t k = 0; k < plan->nkeys && !code; k++)
        code = encoder_judge(plan, k, c->value[k].kind, c->value[k].length, e);
    for (size_t k = 0; k < plan->nkeys && !code && !plan->ids; k++)
        code = filter_bytes(&plan->filter, c->value[k].length) ? 0 : FILTERED;
    for (size_t k = 0; k < plan->nkeys && !code; k++) {
        code = encode_value(c, it, k, e);
        for (size_t i = 0; code && i < k; i++)
            take_back(&it->column[i]);
    }
    if (code)
        c->added = added;
    return code;
}

/* Adds to the reason the keys that the record has, if one that was asked for is missing. */
static void say_keys(const struct encoder *c, const char *p, size_t n, struct err *e)
{
    struct buf keys = {0};
    for (size_t k = 0; k < c->plan->nkeys; k++) {
        if (c->value[k].kind != JSONL_MISSING)
            continue;
        jsonl_keys(p, n, &keys);
        err_set(e, ERR_DATA, "has no key \"%s\"; %s%s", c->plan->key[k],
                keys.len ? "its keys are " : "it is empty", buf_str(&keys));
        break;
    }
    buf_finish(&keys);
}

/* The record at p, whose line has *ret_n bytes. */
static int encode_record(struct encoder *c, struct item *it, const char *p, const char *end,
                         size_t *ret_n, struct err *e)
{
    int code = jsonl_next(c->json, p, end, ret_n, c->value, e);
    if (code)
        return code;
    code = encode_values(c, it, e);
    if (code == ERR_DATA)
        say_keys(c, p, *ret_n, e);
    return code;
}

static int encode_text(struct encoder *c, struct item *it, const char *p, size_t n, struct err *e)
{
    c->value[0] = (struct jsonl_value){.kind = JSONL_STRING, .text = p, .length = n};
    int code = text_check(p, n, e);
    return code ? code : encode_values(c, it, e);
}

/* ---- a long record -------------------------------------------------------------------------- */

/* Moves the ids at hand to the column, and the end of document behind the last of them. */
static int put_long(struct encoder *c, struct long_column *col, bool last, struct err *e)
{
    const struct encode_plan *p = c->plan;
    c->tokens += c->ids.n;
    if (p->known_eod >= 0)
        c->eods += ids_count(c->ids.id, c->ids.n, p->known_eod);
    if (!col->tokens)
        put_bos(c, &c->ids, 0);
    if (last && p->eod >= 0 && col->tokens + c->ids.n)
        put_eod(c, &c->ids);
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

/* Where the sequences of a long record stand. */
struct long_run {
    uint64_t from; /* tokens before the one at hand */
    uint32_t held; /* of the one before, which is kept as soon as it cannot grow any more */
};

/* The end of one sequence of a long record, or of all of them. */
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

static int encode_long_sentences(struct encoder *c, const struct spill *in, struct long_column *col,
                                 struct err *e)
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
    }
    return code ? code : put_long_sequence(c, col, true, &run, e);
}

/* The strings of an array, each with its end. */
static int encode_long_strings(struct encoder *c, const struct spill *in, struct long_column *col,
                               struct err *e)
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
    }
    return code ? code : put_long_sequence(c, col, true, &run, e);
}

static int encode_long(struct encoder *c, enum jsonl_kind kind, const struct spill *in,
                       struct long_column *col, struct err *e)
{
    if (kind != JSONL_STRING && !c->plan->ids)
        return encode_long_strings(c, in, col, e);
    if (c->plan->split)
        return encode_long_sentences(c, in, col, e);

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
    }
    return code;
}

static void run_long(struct encoder *c, struct item *it)
{
    const struct encode_plan *p = c->plan;
    struct long_record *r = it->large;
    struct err *e = &it->err;
    int code = 0;
    it->lines = 1;
    if (item_bads(it))
        return; /* it was found so when it was read */
    for (size_t k = 0; k < p->nkeys && !code; k++)
        code = encoder_judge(p, k, r->scan.value[k].kind, r->scan.value[k].spill.size, e);
    for (size_t k = 0; k < p->nkeys && !code && !p->ids; k++)
        code = filter_bytes(&p->filter, r->scan.value[k].spill.size) ? 0 : FILTERED;
    for (size_t k = 0; k < p->nkeys && !code; k++) {
        c->tokens = 0;
        code = encode_long(c, r->scan.value[k].kind, &r->scan.value[k].spill, &r->column[k], e);
        if (!code && !filter_tokens(&p->filter, c->tokens))
            code = FILTERED;
    }
    c->added = 0; /* they are not counted when they are stored */
    if (code)
        c->eods = 0;
    if (code == ERR_DATA)
        item_add_bad(it, 0, NULL, 0, e->msg);
    else if (code == FILTERED)
        item_add_filtered(it, 0);
    else if (code)
        it->code = code;
    else
        it->docs = 1;
}

/* ---- a block -------------------------------------------------------------------------------- */

/* What became of the record p[0 .. n), the last one counted; false: the block ends with it. */
static bool encoder_settle(struct encoder *c, struct item *it, int code, const char *p, size_t n)
{
    if (!code)
        it->docs++;
    else if (code == ERR_DATA)
        item_add_bad(it, it->lines - 1, p, n, it->err.msg);
    else if (code == FILTERED)
        item_add_filtered(it, it->lines - 1);
    else
        it->code = code;
    return !code || code == FILTERED || (code == ERR_DATA && c->plan->on_bad != BAD_FAIL);
}

static void run_lines(struct encoder *c, struct item *it)
{
    const char *p = it->text.data, *end = p + it->text.len;
    while (p < end) {
        if (it->last && *p <= ' ' && jsonl_blank(p, end))
            break; /* white space at the end of the input is no record */
        it->lines++;
        size_t n;
        int code = encode_record(c, it, p, end, &n, &it->err);
        if (!encoder_settle(c, it, code, p, n))
            return;
        p += n + 1;
    }
}

static void run_text(struct encoder *c, struct item *it)
{
    const char *p = it->text.data, *end = p + it->text.len;
    for (size_t n;;) {
        const char *from = p;
        if (!text_next(&c->plan->text, &p, end, &n))
            return;
        it->lines++;
        if (!encoder_settle(c, it, encode_text(c, it, from, n, &it->err), from, n))
            return;
    }
}

/* One row, whose values are at hand. */
static int encode_row(struct encoder *c, struct item *it, struct err *e)
{
    const struct encode_plan *plan = c->plan;
    int code = 0;
    for (size_t k = 0; k < plan->nkeys && !code; k++) {
        code = c->value[k].kind == JSONL_STRING
                   ? text_check(c->value[k].text, c->value[k].length, e)
                   : 0;
        if (code && plan->nkeys > 1)
            err_wrap(e, "\"%s\"", plan->key[k]);
    }
    return code ? code : encode_values(c, it, e);
}

/* What is kept of a bad row stands behind the texts. */
static bool settle_row(struct encoder *c, struct item *it, int code, size_t from, const uint64_t *n)
{
    const struct encode_plan *plan = c->plan;
    size_t at = it->text.len;
    if (code == ERR_DATA && plan->on_bad == BAD_QUARANTINE) {
        struct buf line = {0};
        rows_json(&line, plan->key, plan->nkeys, plan->ids, it->text.data + from, n);
        buf_add(&it->text, line.data, line.len);
        buf_finish(&line);
    }
    return encoder_settle(c, it, code, it->text.data + at, it->text.len - at);
}

static struct jsonl_value row_value(const struct encoder *c, const char *p, size_t n, bool there)
{
    if (!there)
        return (struct jsonl_value){.kind = JSONL_OTHER};
    if (c->plan->ids)
        return (struct jsonl_value){.kind = JSONL_IDS,
                                    .ids = (const int64_t *)(const void *)p,
                                    .length = n / sizeof(int64_t)};
    return (struct jsonl_value){.kind = JSONL_STRING, .text = p, .length = n};
}

static void run_rows(struct encoder *c, struct item *it)
{
    size_t nkeys = c->plan->nkeys, from = 0;
    for (size_t at = 0; at < it->run.len; at += nkeys * sizeof(uint64_t)) {
        const uint64_t *n = (const uint64_t *)(const void *)(it->run.data + at);
        size_t end = from;
        for (size_t k = 0; k < nkeys; k++) {
            bool there = n[k] != PARQUET_NULL;
            c->value[k] = row_value(c, it->text.data + end, there ? n[k] : 0, there);
            end += there ? n[k] : 0;
        }
        it->lines++;
        if (!settle_row(c, it, encode_row(c, it, &it->err), from, n))
            return;
        from = end;
    }
}

static void run_ids(struct encoder *c, struct item *it)
{
    const int32_t *id = it->ids.id;
    struct column *col = &it->column[0];
    for (size_t at = 0; at < it->run.len && !it->code; at += sizeof(uint64_t)) {
        uint64_t n;
        memcpy(&n, it->run.data + at, sizeof(n));
        it->lines++;
        if (filter_tokens(&c->plan->filter, n)) {
            struct place from = {col->ids.n, 0};
            if (n)
                memcpy(tok_ids_reserve(&col->ids, n), id, n * sizeof(*id));
            col->ids.n += n;
            it->docs++;
            it->code = put_document(c, col, from, &it->err);
        } else {
            item_add_filtered(it, it->lines - 1);
        }
        id += n;
    }
}

void encoder_run(struct encoder *c, struct item *it)
{
    if (it->code)
        return;
    uint64_t specials = c->work ? tok_work_specials(c->work) : 0;
    c->eods = c->added = 0;
    if (it->kind == ITEM_LINES)
        run_lines(c, it);
    else if (it->kind == ITEM_TEXT)
        run_text(c, it);
    else if (it->kind == ITEM_ROWS)
        run_rows(c, it);
    else if (it->kind == ITEM_LONG)
        run_long(c, it);
    else
        run_ids(c, it);
    it->specials = c->work ? tok_work_specials(c->work) - specials : 0;
    it->eods = c->eods;
    it->added = c->added;
    if (c->ids.cap > IDS_KEPT)
        tok_ids_finish(&c->ids);
}
