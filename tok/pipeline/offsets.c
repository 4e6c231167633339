/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/offsets.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/text/byte_alphabet.h"
#include "tok/unicode/unicode.h"

/* A text through all steps, with offsets. */

struct run {
    const struct pipe *p;
    struct pipe_work *w;
    struct tok_ids *ids;
    struct tok_spans *spans;
    struct tok_spans piece;   /* spans within the current pre-token */
    struct tok_unknown *said; /* collects the text of unknown ids; NULL: not wanted */
};

typedef int part_encode(struct run *r, struct aligned *a, struct err *e);

/* ---- added tokens ---------------------------------------------------------------------------- */

static void put_token(struct run *r, const struct aligned *a, const struct added_at *at)
{
    struct tok_span *s = tok_spans_add(r->spans);
    *tok_ids_reserve(r->ids, 1) = at->token->id;
    r->ids->n++;
    s->begin = a->at[at->start].begin;
    s->end = a->at[at->end - 1].end;
    if (r->p->spec.ntrims)
        span_spaces(s, a->text.data + at->start, at->end - at->start);
}

static int encode_part(struct run *r, const struct aligned *a, size_t begin, size_t end,
                       part_encode *encode, struct err *e)
{
    struct aligned part = {0};
    if (begin == end)
        return 0;
    aligned_slice(&part, a, begin, end);
    int code = encode(r, &part, e);
    aligned_finish(&part);
    return code;
}

static int encode_between(struct run *r, const struct added *added, const struct aligned *a,
                          part_encode *encode, struct err *e)
{
    struct added_at at = {0};
    uint64_t skipped = 0;
    bool skip = r->p->mode != TOK_SPECIALS_PARSE;
    size_t done = 0;
    int code = 0;
    while (!code && added && added_next(added, a->text.data, a->text.len, skip, &at, &skipped)) {
        code = encode_part(r, a, done, at.start < done ? done : at.start, encode, e);
        put_token(r, a, &at);
        done = at.done = at.end;
    }
    added_end(&at);
    return code ? code : encode_part(r, a, done, a->text.len, encode, e);
}

/* ---- pre-tokenizers -------------------------------------------------------------------------- */

static bool starts_with(const char *text, size_t n, const char *with, size_t length)
{
    return n >= length && !memcmp(text, with, length);
}

static void add_letters(struct aligned *to, const char *text, const struct place *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char letter[4];
        aligned_add(to, letter, letter_put(letter, (uint8_t)text[i]), at[i]);
    }
}

/* Adds a space to each pre-token that lacks it, then perhaps converts to byte letters. */
static void follow_level(const struct pre_step *s, bool letters, const struct aligned *a,
                         const struct pretoken *piece, size_t n, struct aligned *to)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = a->text.data + piece[i].at;
        const struct place *at = a->at + piece[i].at;
        if (s->prefix_space && *text != ' ') {
            if (letters)
                add_letters(to, " ", at, 1);
            else
                aligned_add(to, " ", 1, at[0]);
        }
        if (letters)
            add_letters(to, text, at, piece[i].n);
        else
            for (size_t k = 0; k < piece[i].n; k++)
                aligned_add(to, text + k, 1, at[k]);
    }
}

/* Replaces spaces by marks; `now` is the resulting text, which shows where one was prepended. */
static void follow_marks(const struct pre_step *s, const struct buf *now, const struct aligned *a,
                         const struct pretoken *piece, size_t n, struct aligned *to)
{
    const char *mark = s->content.p;
    size_t length = s->content.n;
    for (size_t i = 0; i < n; i++) {
        const char *text = a->text.data + piece[i].at;
        const struct place *at = a->at + piece[i].at;
        bool has = *text == ' ' || starts_with(text, piece[i].n, mark, length);
        if (!has && starts_with(now->data + to->text.len, now->len - to->text.len, mark, length))
            aligned_add(to, mark, length, at[0]);
        for (size_t k = 0; k < piece[i].n; k++)
            if (text[k] == ' ')
                aligned_add(to, mark, length, at[k]);
            else
                aligned_add(to, text + k, 1, at[k]);
    }
}

/* One step; `a` is the text of all pre-tokens, w->text, before and after. */
static int pre_step(struct run *r, size_t i, struct aligned *a, struct err *e)
{
    const struct pre_step *s = &r->p->spec.pre[i];
    struct pipe_work *w = r->w;
    bool letters = s->kind == PRE_BYTE_LEVEL && !(i + 1 == r->p->spec.npre && r->p->letters);
    if (!letters && s->kind != PRE_METASPACE && !(s->kind == PRE_BYTE_LEVEL && s->prefix_space))
        return pipe_pre_step(r->p, w, i, false, e);
    size_t n = w->npretokens;
    struct pretoken *piece = mem_new(n + 1, sizeof(*piece));
    struct aligned to = {.base = a->base};
    if (n)
        memcpy(piece, w->pretoken, n * sizeof(*piece));
    int code = pipe_pre_step(r->p, w, i, false, e);
    if (!code) {
        if (s->kind == PRE_METASPACE)
            follow_marks(s, &w->text, a, piece, n, &to);
        else
            follow_level(s, letters, a, piece, n, &to);
        BUG_ON(to.text.len != w->text.len || memcmp(to.text.data, w->text.data, to.text.len) != 0,
               "pre-tokenizer %d gives a different text of %zu bytes", (int)s->kind, to.text.len);
    }
    free(piece);
    aligned_finish(a);
    *a = to;
    return code;
}

/* ---- pre-tokens ------------------------------------------------------------------------------ */

/* Maps the spans of a pre-token's ids to the text; a lost one stays what the model counted. */
static void place_spans(struct run *r, const struct aligned *a, const struct pretoken *piece)
{
    for (size_t i = 0; i < r->piece.n; i++) {
        struct tok_span *s = tok_spans_add(r->spans);
        *s = r->piece.at[i];
        if (s->lost || s->begin >= s->end)
            continue;
        s->end = a->at[piece->at + s->end - 1].end;
        s->begin = a->at[piece->at + s->begin].begin;
    }
}

static void say_piece(struct run *r, const char *text, size_t n)
{
    const int32_t *id = r->ids->id + r->ids->n - r->piece.n;
    for (size_t i = 0; i < r->piece.n; i++) {
        const struct tok_span *s = &r->piece.at[i];
        if (id[i] == r->p->unk && s->begin <= s->end && s->end <= n)
            tok_unknown_add(r->said, text + s->begin, s->end - s->begin);
    }
}

static int encode_plain(struct run *r, struct aligned *a, struct err *e)
{
    struct pipe_work *w = r->w;
    int code = 0;
    pipe_pre_begin(w, a->text.data, a->text.len, aligned_zero(a));
    for (size_t i = 0; i < r->p->spec.npre && !code; i++)
        code = pre_step(r, i, a, e);
    for (size_t i = 0; i < w->npretokens && !code; i++) {
        const struct pretoken *piece = &w->pretoken[i];
        r->piece.n = 0;
        code = pipe_model_spans(r->p, w, w->text.data + piece->at, piece->n, r->ids, &r->piece, e);
        if (!code && r->said)
            say_piece(r, w->text.data + piece->at, piece->n);
        if (!code)
            place_spans(r, a, piece);
    }
    return code;
}

size_t pipe_zero(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                 unsigned edge)
{
    bool asked = false;
    for (size_t i = 0; i < s->npre; i++)
        asked |= s->pre[i].kind == PRE_METASPACE && s->pre[i].scheme == META_FIRST;
    if (!asked || !(edge & EDGE_ZERO))
        return 0;
    struct pipe_spec left = *s; /* spaces are stripped already */
    while (edge & EDGE_STRIPPED && left.nnorm && left.norm->kind == NORM_STRIP)
        left.norm++, left.nnorm--;
    struct aligned a = {0};
    struct err ignored;
    aligned_set(&a, text, n, s->own_bytes);
    size_t zero = aligned_normalize(&left, w, &a, &ignored) ? 0 : aligned_zero(&a);
    aligned_finish(&a);
    return zero;
}

static int encode_raw(struct run *r, struct aligned *a, struct err *e)
{
    int code = aligned_normalize(&r->p->spec, r->w, a, e);
    return code ? code : encode_between(r, r->p->normal, a, encode_plain, e);
}

static int encode_whole(struct run *r, const char *text, size_t n, struct err *e)
{
    struct aligned a = {0};
    if (n > TEXT_MAX / 3) /* each byte may become U+FFFD */
        return err_set(e, ERR_RESOURCE, "a text of %zu bytes is too long for offsets", n);
    if (r->p->random)
        r->w->draws.n = 0; /* the key was set when the text was encoded before */
    aligned_set(&a, text, n, r->p->spec.own_bytes);
    int code = encode_between(r, r->p->raw, &a, encode_raw, e);
    aligned_finish(&a);
    tok_spans_finish(&r->piece);
    return code;
}

void pipe_say_unknown(const void *state, void *scratch, const char *text, size_t n,
                      const int32_t *id, size_t nids, struct tok_unknown *ret)
{
    struct tok_ids ids = {0};
    struct tok_spans spans = {0};
    struct err ignored;
    struct run r = {.p = state, .w = scratch, .ids = &ids, .spans = &spans, .said = ret};
    if (encode_whole(&r, text, n, &ignored) || ids.n != nids ||
        (nids && memcmp(ids.id, id, nids * sizeof(*id)) != 0))
        tok_unknown_finish(ret);
    tok_ids_finish(&ids);
    tok_spans_finish(&spans);
}

int pipe_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                      struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    struct run r = {.p = state, .w = scratch, .ids = ids, .spans = spans};
    return encode_whole(&r, text, n, e);
}
