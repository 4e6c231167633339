/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/tokenizer/tokenizer_work.h"

/* Spans of ids: the engines' spans, in the requested unit and with the template. */

void tok_ranges_finish(struct tok_ranges *r)
{
    free(r->at);
    *r = (struct tok_ranges){0};
}

struct tok_range *tok_ranges_add(struct tok_ranges *r)
{
    ARRAY_GROW(r->at, r->n, r->cap);
    r->at[r->n] = (struct tok_range){0};
    return &r->at[r->n++];
}

/* The index of each byte's character; one more entry for the end. */
static uint32_t *number_chars(const char *text, size_t n)
{
    enum { RUN = 8 }; /* an invalid sequence has at most three bytes */
    uint32_t *number = mem_grow(NULL, n + 1, sizeof(*number)), chars = 0;
    for (size_t i = 0, k; i < n; i += k, chars++) {
        k = utf8_char(text + i, text + n);
        if (!k)
            k = utf8_before_mending(text + i, n - i < RUN ? n - i : RUN, 3);
        for (size_t j = 0; j < k; j++)
            number[i + j] = chars;
    }
    number[n] = chars;
    return number;
}

/* Offsets beyond the text become what the reference gives: an end inside a character is before it,
 * one too far is two after the beginning. */
static void lost_to_chars(struct tok_span *x, const uint32_t *number, size_t n)
{
    if (x->begin >= n)
        return;
    uint32_t begin = number[x->begin];
    if (x->end < n)
        x->end = number[x->end];
    else
        x->end = x->end == n ? number[n - 1] + 1 : begin + 2;
    x->begin = begin;
}

/* Widens spans to whole characters. */
static void to_chars(struct tok_spans *s, const uint32_t *number, size_t n)
{
    for (size_t i = 0; i < s->n; i++) {
        struct tok_span *x = &s->at[i];
        bool empty = x->begin >= x->end;
        if (x->lost) {
            lost_to_chars(x, number, n);
            continue;
        }
        if (x->begin > n || x->end > n)
            continue;
        x->end = empty ? number[x->begin] : number[x->end - 1] + 1;
        x->begin = number[x->begin];
    }
}

static void to_bytes(struct tok_spans *s, const uint32_t *number, size_t n)
{
    uint32_t chars = number[n];
    size_t *at = mem_new(chars + 1, sizeof(*at));
    for (size_t i = n + 1; i-- > 0;)
        at[number[i]] = i;
    for (size_t i = 0; i < s->n; i++) {
        struct tok_span *x = &s->at[i];
        if (x->begin > chars || x->end > chars)
            continue;
        x->begin = at[x->begin];
        x->end = at[x->end];
    }
    free(at);
}

/* process_offsets of tokenizers' byte_level.rs. */
static void trim(const struct tok_trim *t, struct tok_span *s, bool first)
{
    size_t lead = s->lead, trail = s->trail;
    if (lead == 1 && t->prefix_space && (first || s->begin == 0))
        lead = 0;
    if (lead)
        s->begin = s->begin + lead < s->end ? s->begin + lead : s->end;
    if (trail && s->end >= trail)
        s->end = s->end - trail > s->begin ? s->end - trail : s->begin;
}

/* In `first`, each as if it were the first of a text. */
static void trim_all(const struct tok_engine *g, struct tok_spans *s, struct tok_spans *first)
{
    for (size_t i = 0; i < s->n; i++)
        *tok_spans_add(first) = s->at[i];
    for (size_t k = 0; k < g->ntrims; k++)
        for (size_t i = 0; i < s->n; i++) {
            bool heads = !(g->nbefore && g->trim[k].before);
            trim(&g->trim[k], &s->at[i], i == 0 && heads);
            trim(&g->trim[k], &first->at[i], heads);
        }
}

static bool any_lost(const struct tok_spans *s)
{
    size_t i = 0;
    while (i < s->n && !s->at[i].lost)
        i++;
    return i < s->n;
}

/* White space is trimmed by characters, whatever the unit: it was counted so. */
static void finish_spans(const struct tokenizer *t, const char *text, size_t n, enum tok_unit unit,
                         struct tok_spans *s, struct tok_spans *first)
{
    if (unit == TOK_BYTES && !t->engine.ntrims && !any_lost(s)) {
        trim_all(&t->engine, s, first);
        return;
    }
    uint32_t *number = number_chars(text, n);
    to_chars(s, number, n);
    trim_all(&t->engine, s, first);
    if (unit == TOK_BYTES) {
        to_bytes(s, number, n);
        to_bytes(first, number, n);
    }
    free(number);
}

/* The slow path must give the ids of the fast one, id[0 .. n), and a span for each. */
static int check_same(const struct tok_ids *slow, size_t spans, const int32_t *id, size_t n,
                      struct err *e)
{
    size_t i = 0;
    while (i < n && i < slow->n && slow->id[i] == id[i])
        i++;
    if (i == n && i == slow->n && i == spans)
        return 0;
    return err_set(e, ERR_INTEGRITY,
                   "id %zu of %zu differs between the path with offsets and the plain one: "
                   "this is a bug in weft",
                   i, n);
}

int tok_encode_offsets(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       enum tok_unit unit, struct tok_ids *ids, struct tok_ranges *ranges,
                       struct err *e)
{
    size_t first = ids->n;
    struct tok_ids slow = {0};
    struct tok_spans spans = {0}, heads = {0};
    if (!t->engine.encode_spans)
        return err_set(e, ERR_USAGE, "a %s has no offsets", t->info.type_name);
    int code = tok_encode(t, w, text, n, ids, e);
    if (!code && n)
        code = t->engine.encode_spans(t->engine.state, w->scratch, text, n, &slow, &spans, e);
    if (!code && n)
        code = check_same(&slow, spans.n, ids->id + first + t->engine.nbefore,
                          ids->n - first - t->engine.nbefore - t->engine.nafter, e);
    tok_ids_finish(&slow);
    if (code) {
        ids->n = first;
        tok_spans_finish(&spans);
        return code;
    }
    finish_spans(t, text, n, unit, &spans, &heads);
    for (size_t i = 0; i < t->engine.nbefore; i++)
        tok_ranges_add(ranges);
    for (size_t i = 0; i < spans.n; i++)
        *tok_ranges_add(ranges) = (struct tok_range){spans.at[i].begin, spans.at[i].end,
                                                     heads.at[i].begin, heads.at[i].end};
    for (size_t i = 0; i < t->engine.nafter; i++)
        tok_ranges_add(ranges);
    tok_spans_finish(&heads);
    tok_spans_finish(&spans);
    return 0;
}
