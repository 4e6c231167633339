/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prep/encode/encoder_internal.h"

/* ---- ids to columns ------------------------------------------------------------------------- */

bool encoder_put_bos(struct encoder *c, struct tok_ids *ids, size_t from)
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

void encoder_put_eod(struct encoder *c, struct tok_ids *ids)
{
    *tok_ids_reserve(ids, 1) = c->plan->eod;
    ids->n++;
    c->added += c->plan->eod == c->plan->known_eod;
}

/* Adds a token to the sequence whose length is at `at`. */
static void lengthen(struct column *col, size_t at)
{
    uint32_t n;
    if (!col->sentence.len)
        return; /* each document is one sequence */
    memcpy(&n, col->sentence.data + at, sizeof(n));
    n++;
    memcpy(col->sentence.data + at, &n, sizeof(n));
}

int encoder_put_document(struct encoder *c, struct column *col, struct encoder_place from,
                         struct err *e)
{
    struct tok_ids *ids = &col->ids;
    if (encoder_put_bos(c, ids, from.ids))
        lengthen(col, from.sentence);
    if (ids->n > from.ids && c->plan->eod >= 0) {
        encoder_put_eod(c, ids);
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

int encoder_take_ids(const struct encode_plan *p, const int64_t *from, size_t n, uint64_t place,
                     struct tok_ids *ret, struct err *e)
{
    int32_t *id = tok_ids_reserve(ret, n);
    for (size_t i = 0; i < n; i++) {
        if (from[i] == INT64_MIN) /* a null in a Parquet list */
            return err_set(e, ERR_DATA, "there is a null instead of an id at place %llu",
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

int encoder_check(const struct encode_plan *p, size_t k, enum jsonl_kind kind, uint64_t n,
                  struct err *e)
{
    if (kind == (p->ids ? JSONL_IDS : JSONL_STRING))
        return 0;
    if (p->ids && kind == JSONL_ID_LISTS)
        return 0;
    if (!p->ids && (kind == JSONL_STRINGS || (kind == JSONL_IDS && !n)))
        return 0;
    if (kind == JSONL_MISSING)
        return err_set(e, ERR_DATA, "has no key \"%s\"", p->key[k]);
    return err_set(e, ERR_DATA, "the value of \"%s\" is not %s", p->key[k],
                   p->ids ? "an array of ids or of arrays of ids"
                          : "a string or an array of strings");
}

/* Makes the column's ids after `before`, if any, one of its document's sequences. */
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

size_t encoder_list_length(const int64_t *id, size_t n)
{
    size_t k = 0;
    while (k < n && id[k] != JSONL_LIST_END)
        k++;
    return k;
}

/* Takes each list of an array (JSONL_ID_LISTS). */
static int encode_lists(struct encoder *c, const int64_t *id, size_t n, struct column *col,
                        struct err *e)
{
    int code = 0;
    for (size_t at = 0, k; at < n && !code; at += k + 1) {
        size_t before = col->ids.n;
        k = encoder_list_length(id + at, n - at);
        code = encoder_take_ids(c->plan, id + at, k, at, &col->ids, e);
        encoder_put_sequence(col, before);
    }
    return code;
}

/* Lists the sequences of the documents so far, one each, as the next document may have several. */
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
    if (v->kind == JSONL_STRINGS || v->kind == JSONL_ID_LISTS)
        list_sequences(col);
    struct encoder_place from = {col->ids.n, col->sentence.len};
    int code;
    if (v->kind == JSONL_ID_LISTS)
        code = encode_lists(c, v->ids, v->length, col, e);
    else if (c->plan->ids)
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
        code = encoder_put_document(c, col, from, e);
    if (code) {
        col->ids.n = from.ids;
        col->sentence.len = from.sentence;
    }
    if (code == ERR_DATA && c->plan->nkeys > 1)
        err_wrap(e, "\"%s\"", c->plan->key[k]);
    return code;
}

/* Removes the last document. */
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

int encoder_put_values(struct encoder *c, struct item *it, struct err *e)
{
    const struct encode_plan *plan = c->plan;
    uint64_t added = c->added;
    int code = 0;
    for (size_t k = 0; k < plan->nkeys && !code; k++)
        code = encoder_check(plan, k, c->value[k].kind, c->value[k].length, e);
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
