/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/formats/readers.h"

/*
 * Megatron-LM's NullTokenizer (core_v0.12.3): the text is its ids, in decimal, separated by single
 * spaces. --vocab-size N leaves ids 0 .. N-1 to the text; N ends a document, so the vocabulary has
 * N + 1. Blanks at either end and runs of spaces are accepted, not all of which int() and split('
 * ') accept there.
 */

struct null {
    int64_t size;    /* N + 1 */
    char digits[24]; /* of N */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static int bad_word(const struct null *s, const char *text, size_t n, size_t at, struct err *e)
{
    size_t end = at;
    while (end < n && !is_blank(text[end]) && end - at < 24)
        end++;
    return err_set(e, ERR_DATA, "byte %zu of the text: '%.*s' is not an id from 0 to %lld", at,
                   (int)(end - at), text + at, (long long)s->size - 1);
}

static int null_encode(const void *state, void *scratch, const char *text, size_t n,
                       struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct null *s = state;
    (void)scratch;
    (void)tally;
    for (size_t i = 0; i < n;) {
        if (is_blank(text[i])) {
            i++;
            continue;
        }
        size_t at = i;
        int64_t v = 0;
        for (; i < n && text[i] >= '0' && text[i] <= '9' && v < s->size; i++)
            v = v * 10 + (text[i] - '0');
        if (v >= s->size || (i < n && !is_blank(text[i])))
            return bad_word(s, text, n, at, e);
        *tok_ids_reserve(ids, 1) = (int32_t)v;
        ids->n++;
    }
    return 0;
}

static int null_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                             struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    size_t first = ids->n, at = 0;
    struct tok_tally ignored = {0};
    int code = null_encode(state, scratch, text, n, ids, &ignored, e);
    for (size_t i = first; i < ids->n && !code; i++) {
        struct tok_span *s = tok_spans_add(spans);
        while (is_blank(text[at]))
            at++;
        s->begin = at;
        while (at < n && !is_blank(text[at]))
            at++;
        s->end = at;
    }
    return code;
}

static int null_decode(const void *state, void *scratch, const int32_t *id, size_t n,
                       struct buf *text, struct err *e)
{
    (void)state;
    (void)scratch;
    (void)e;
    for (size_t i = 0; i < n; i++)
        buf_addf(text, "%s%d", i ? " " : "", id[i]);
    return 0;
}

/* Pieces are numbers, which exist only as written by the caller, except the end of document. */
static const char *null_piece(const void *state, int64_t id, size_t *ret_n)
{
    const struct null *s = state;
    const char *text = id == s->size - 1 ? s->digits : "";
    *ret_n = strlen(text);
    return text;
}

static int64_t null_find(const void *state, const char *piece)
{
    const struct null *s = state;
    char *end;
    long long v = strtoll(piece, &end, 10);
    return *piece >= '0' && *piece <= '9' && !*end && v < s->size ? v : -1;
}

int null_open(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
              struct tok_info *info, struct err *e)
{
    (void)p, (void)n;
    if (o->vocab_size <= 0 || o->vocab_size >= INT32_MAX)
        return err_set(e, ERR_USAGE,
                       "%s needs --vocab-size N, 1 to 2147483646, the number of ids "
                       "without the end of document",
                       tok_type_name(TOK_NULL));
    struct null *s = mem_new(1, sizeof(*s));
    s->size = o->vocab_size + 1;
    snprintf(s->digits, sizeof(s->digits), "%lld", (long long)o->vocab_size);
    struct tok_engine g = {.state = s,
                           .encode = null_encode,
                           .encode_spans = null_encode_spans,
                           .cut = tok_cut_blank,
                           .fuses = -1,
                           .decode = null_decode,
                           .piece = null_piece,
                           .find = null_find,
                           .destroy = free};
    info->type = TOK_NULL;
    info->vocab_size = s->size;
    info->eod = o->vocab_size;
    int code = tok_engine_eod(o, &g, info, e);
    if (code) {
        free(s);
        return code;
    }
    char what[64];
    int length = snprintf(what, sizeof(what), "NullTokenizer vocab_size=%s", s->digits);
    sha_once(what, (size_t)length, info->digest);
    *ret = g;
    return 0;
}
