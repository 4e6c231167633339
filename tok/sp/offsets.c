/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/offsets.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/sp/normalize.h"

struct sp_offsets {
    const struct sp_model *m;
    _Atomic(struct sp_norm *) norm; /* created for the first text */
};

struct sp_offsets *sp_offsets_create(const struct sp_model *m)
{
    struct sp_offsets *o = mem_new(1, sizeof(*o));
    o->m = m;
    return o;
}

static void destroy_norm(struct sp_norm *s)
{
    if (!s)
        return;
    sp_norm_finish(s);
    free(s);
}

void sp_offsets_destroy(struct sp_offsets *o)
{
    if (!o)
        return;
    destroy_norm(atomic_load(&o->norm));
    free(o);
}

/* Of threads that get here at once, one keeps its tables. */
static const struct sp_norm *get_norm(struct sp_offsets *o)
{
    struct sp_norm *s = atomic_load_explicit(&o->norm, memory_order_acquire), *none = NULL;
    if (s)
        return s;
    s = mem_new(1, sizeof(*s));
    sp_norm_init(s, o->m);
    if (atomic_compare_exchange_strong(&o->norm, &none, s))
        return s;
    destroy_norm(s);
    return none;
}

/* ---- normalized text ------------------------------------------------------------------------- */

static const char mark[] = "\xe2\x96\x81";

enum { MARK = 3 };

struct normal {
    struct buf text;
    size_t *from; /* by byte, where its item begins in the raw text; one more entry for the end */
    size_t cap;
};

static void offsets_put(struct normal *t, const char *p, size_t n, size_t from)
{
    if (t->cap < t->text.len + n + 1) {
        t->cap = t->text.len + n + t->cap / 2 + 256;
        t->from = mem_grow(t->from, t->cap, sizeof(*t->from));
    }
    for (size_t i = 0; i < n; i++)
        t->from[t->text.len + i] = from;
    buf_add(&t->text, p, n);
}

static void put_space(const struct sp_norm *s, struct normal *t, size_t from)
{
    offsets_put(t, s->space, s->space_length, from);
}

static size_t skip_spaces(const struct sp_norm *s, const char *text, size_t n)
{
    size_t at = 0;
    for (size_t k, length; s->remove_extra && at < n; at += k) {
        const char *to;
        k = sp_norm_item(s, text + at, n - at, &to, &length);
        if (length != 1 || *to != ' ')
            break;
    }
    return at;
}

static void offsets_normalize(const struct sp_norm *s, const char *text, size_t n, struct normal *t)
{
    size_t at = skip_spaces(s, text, n);
    bool after_space = s->remove_extra, any = at < n;
    if (any && s->prefix)
        put_space(s, t, at);
    for (size_t k, length; at < n; at += k) {
        const char *to;
        k = sp_norm_item(s, text + at, n - at, &to, &length);
        for (; after_space && length && *to == ' '; length--)
            to++;
        for (size_t i = 0; i < length; i++)
            if (to[i] == ' ')
                put_space(s, t, at);
            else
                offsets_put(t, to + i, 1, at);
        if (length)
            after_space = s->remove_extra && to[length - 1] == ' ';
    }
    size_t space = s->space_length;
    while (s->remove_extra && t->text.len >= space &&
           !memcmp(t->text.data + t->text.len - space, s->space, space)) {
        t->text.len -= space;
        at = t->from[t->text.len];
    }
    if (any && s->suffix)
        put_space(s, t, at);
    offsets_put(t, "", 0, 0);
    t->from[t->text.len] = at;
}

/* ---- matching ids to it ---------------------------------------------------------------------- */

/* An unknown id and where it ends; it may be extended. */
struct choice {
    size_t i, begin, end;
};

struct walk {
    const struct sp_offsets *o;
    const char *text;
    size_t n;
    const int32_t *id;
    size_t nids;
    struct tok_span *span;
    size_t i, at; /* ids placed so far, and the position after them */
    struct choice *choice;
    size_t nchoices, cap;
    size_t steps;
};

/* Bytes of the unit of unknown text at text + at: a character, or a word in a word model. */
static size_t unit(const struct walk *w, size_t at)
{
    const struct sp_model *m = w->o->m;
    size_t end = at + sp_char_length(w->text + at, w->n - at);
    if (m->kind != SP_WORD)
        return end - at;
    while (end < w->n && !(end + MARK <= w->n && !memcmp(w->text + end, mark, MARK)))
        end += sp_char_length(w->text + end, w->n - end);
    return end - at;
}

static bool may_be_unknown(const struct walk *w, size_t at)
{
    if (at >= w->n)
        return false;
    int32_t id = sp_model_find(w->o->m, w->text + at, unit(w, at));
    return id < 0 || (w->o->m->piece[id].type != SP_NORMAL && w->o->m->piece[id].type != SP_USER);
}

static bool place_piece(struct walk *w, const char *p, size_t n)
{
    if (w->n - w->at < n || memcmp(w->text + w->at, p, n) != 0)
        return false;
    w->span[w->i].begin = w->at;
    w->span[w->i++].end = w->at += n;
    return true;
}

/* Of the bytes of a character, the last spans it; the others are empty spans at its beginning. */
static bool place_bytes(struct walk *w)
{
    size_t n = w->at < w->n ? unit(w, w->at) : 0;
    if (!n || n > w->nids - w->i)
        return false;
    for (size_t k = 0; k < n; k++) {
        const struct sp_piece *p = &w->o->m->piece[w->id[w->i + k]];
        if (p->type != SP_BYTE ||
            strtol(p->text + 3, NULL, 16) != (unsigned char)w->text[w->at + k])
            return false;
        w->span[w->i + k].begin = w->at;
        w->span[w->i + k].end = k + 1 < n ? w->at : w->at + n;
    }
    w->i += n;
    w->at += n;
    return true;
}

static bool place_unknown(struct walk *w)
{
    if (!may_be_unknown(w, w->at))
        return false;
    ARRAY_GROW(w->choice, w->nchoices, w->cap);
    w->choice[w->nchoices++] = (struct choice){w->i, w->at, w->at + unit(w, w->at)};
    return place_piece(w, w->text + w->at, unit(w, w->at));
}

static bool place_next(struct walk *w)
{
    int32_t id = w->id[w->i];
    const struct sp_piece *p = (size_t)id < w->o->m->npieces ? &w->o->m->piece[id] : NULL;
    if (!p)
        return false;
    if (id == w->o->m->unk)
        return place_unknown(w);
    return p->type == SP_BYTE ? place_bytes(w) : place_piece(w, p->text, p->length);
}

/* Backtracks: extends the last unknown id that can be longer. */
static bool try_longer(struct walk *w)
{
    for (; w->nchoices; w->nchoices--) {
        struct choice *c = &w->choice[w->nchoices - 1];
        if (!may_be_unknown(w, c->end))
            continue;
        w->i = c->i;
        w->at = c->begin;
        c->end += unit(w, c->end);
        return place_piece(w, w->text + c->begin, c->end - c->begin);
    }
    return false;
}

static bool place_all(struct walk *w)
{
    enum { TRIES = 1000 }; /* for each byte, in case of texts crafted to be ambiguous */
    for (;;) {
        bool done = w->i == w->nids;
        if (done && w->at == w->n)
            return true;
        if (w->steps++ / TRIES > w->n + w->nids || ((done || !place_next(w)) && !try_longer(w)))
            return false;
    }
}

/* Appends the spans of a part's ids, which are known; with `said` not NULL also the text of the
 * unknown ones. */
static int find_part(struct sp_offsets *o, const char *text, size_t n, const int32_t *id,
                     size_t nids, struct tok_span *span, struct tok_unknown *said, struct err *e)
{
    struct normal t = {0};
    int code = 0;
    offsets_normalize(get_norm(o), text, n, &t);
    struct walk w = {
        .o = o, .text = t.text.data, .n = t.text.len, .id = id, .nids = nids, .span = span};
    if (!place_all(&w))
        code = err_set(e, ERR_INTEGRITY,
                       "%zu ids do not match a text of %zu bytes once it is normalized: id "
                       "%zu at byte %zu",
                       nids, t.text.len, w.i, w.at);
    for (size_t i = 0; i < nids && !code; i++) {
        if (said && id[i] == o->m->unk)
            tok_unknown_add(said, t.text.data + span[i].begin, span[i].end - span[i].begin);
        span[i].begin = t.from[span[i].begin];
        span[i].end = t.from[span[i].end];
    }
    free(w.choice);
    free(t.from);
    buf_finish(&t.text);
    return code;
}

static int encode_part(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                       size_t begin, size_t end, struct tok_ids *ids, struct tok_spans *spans,
                       struct err *e)
{
    size_t first = ids->n, nspans = spans->n, n = end - begin;
    int code = job->encode(job->state, job->scratch, text + begin, n, ids, e);
    for (size_t i = first; i < ids->n && !code; i++)
        tok_spans_add(spans);
    if (!code && ids->n > first)
        code = find_part(o, text + begin, n, ids->id + first, ids->n - first, spans->at + nspans,
                         NULL, e);
    for (; nspans < spans->n; nspans++) {
        spans->at[nspans].begin += begin;
        spans->at[nspans].end += begin;
    }
    return code;
}

static int encode_parts(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                        size_t n, struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    for (size_t i = 0;;) {
        size_t at = n;
        const struct special *s =
            job->specials ? specials_find(job->specials, text, n, i, &at) : NULL;
        int code = encode_part(o, job, text, i, s ? at : n, ids, spans, e);
        if (code || !s)
            return code;
        i = at + s->length;
        *tok_ids_reserve(ids, 1) = s->id;
        ids->n++;
        *tok_spans_add(spans) = (struct tok_span){.begin = at, .end = i};
    }
}

int sp_offsets_find(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    if (!job->crlf)
        return encode_parts(o, job, text, n, ids, spans, e);
    struct buf lines = {0};
    size_t first = spans->n, *from = sp_lines_from(text, n);
    sp_put_lines(&lines, text, n, false, true);
    int code = encode_parts(o, job, lines.data, lines.len, ids, spans, e);
    for (size_t i = first; i < spans->n && !code; i++) {
        spans->at[i].begin = from[spans->at[i].begin];
        spans->at[i].end = from[spans->at[i].end];
    }
    free(from);
    buf_finish(&lines);
    return code;
}

/* ---- unknown text ---------------------------------------------------------------------------- */

/* Ids of a part; only their number is used, and usually it equals what is left. */
static bool say_part(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                     size_t n, const int32_t *id, size_t nids, bool all, size_t *ret_n,
                     struct tok_unknown *ret)
{
    struct tok_ids ids = {0};
    struct err ignored;
    int code = 0;
    *ret_n = nids;
    if (!all) {
        code = job->encode(job->state, job->scratch, text, n, &ids, &ignored);
        *ret_n = ids.n;
        tok_ids_finish(&ids);
    }
    if (code || *ret_n > nids)
        return false;
    struct tok_span *span = mem_new(*ret_n + 1, sizeof(*span));
    if (n || *ret_n)
        code = find_part(o, text, n, id, *ret_n, span, ret, &ignored);
    free(span);
    return !code;
}

void sp_offsets_say(struct sp_offsets *o, const struct sp_offsets_job *job, const char *text,
                    size_t n, const int32_t *id, size_t nids, struct tok_unknown *ret)
{
    struct buf lines = {0};
    bool good = true;
    if (job->crlf) {
        sp_put_lines(&lines, text, n, false, true);
        text = buf_str(&lines);
        n = lines.len;
    }
    for (size_t i = 0, k = 0, some; good;) {
        size_t at = n;
        const struct special *s =
            job->specials ? specials_find(job->specials, text, n, i, &at) : NULL;
        good = say_part(o, job, text + i, (s ? at : n) - i, id + k, nids - k, !s, &some, ret);
        k += some;
        if (!s || k >= nids)
            break;
        k++;
        i = at + s->length;
    }
    if (!good)
        tok_unknown_finish(ret);
    buf_finish(&lines);
}
