/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/text.h"

#include "base/core/array.h"
#include "base/core/utf8.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void add_run(struct jinja_context *c, size_t begin, uint32_t tag)
{
    ARRAY_GROW(c->run, c->nruns, c->runs_cap);
    c->run[c->nruns++] = (struct text_run){begin, tag};
}

bool text_write(struct jinja_context *c, const char *p, size_t n, uint32_t tag)
{
    if (!n)
        return true;
    if (n > JINJA_MAX_OUTPUT - c->out.len)
        return jinja_fail(c, "the text is longer than %d MiB", JINJA_MAX_OUTPUT >> 20);
    tag |= c->generated;
    if (!c->nruns || c->run[c->nruns - 1].tag != tag)
        add_run(c, c->out.len, tag);
    buf_add(&c->out, p, n);
    return n < 64 || jinja_step(c, n / 64);
}

bool text_write_value(struct jinja_context *c, const struct value *v)
{
    if (!(v->flags & VALUE_RUNS))
        return text_write(c, v->text, v->n, v->tag);
    const struct text_runs r = c->set[v->tag];
    for (size_t i = 0; i < r.n; i++) {
        size_t to = i + 1 < r.n ? r.run[i + 1].begin : v->n;
        if (!text_write(c, v->text + r.run[i].begin, to - r.run[i].begin, r.run[i].tag))
            return false;
    }
    return jinja_step(c, r.n);
}

struct text_mark text_begin(struct jinja_context *c)
{
    struct text_mark m = {c->out.len, c->generated};
    c->generated = 0;
    return m;
}

void text_drop(struct jinja_context *c, struct text_mark m)
{
    c->out.len = m.at;
    c->generated = m.generated;
    while (c->nruns && c->run[c->nruns - 1].begin >= m.at)
        c->nruns--;
}

static void set_runs(struct jinja_context *c, struct value *v, const struct text_run *run, size_t n)
{
    ARRAY_GROW(c->set, c->nsets, c->sets_cap);
    c->set[c->nsets] = (struct text_runs){run, n};
    v->flags |= VALUE_RUNS;
    v->tag = (uint32_t)c->nsets++;
}

/* The runs of the collected text: the first one may have begun before it. */
static void take_runs(struct jinja_context *c, size_t from, struct value *v)
{
    size_t first = c->nruns - 1;
    while (first && c->run[first].begin > from)
        first--;
    size_t n = c->nruns - first;
    if (n == 1) {
        v->tag = c->run[first].tag;
        return;
    }
    struct text_run *run = pool_take(&c->runs, n * sizeof(*run));
    for (size_t i = 0; i < n; i++) {
        run[i] = c->run[first + i];
        run[i].begin -= i ? from : run[i].begin;
    }
    set_runs(c, v, run, n);
}

bool text_end(struct jinja_context *c, struct text_mark m, struct value *ret)
{
    size_t n = c->out.len - m.at;
    *ret = value_text("", n, c->tag);
    if (c->failed || !jinja_step(c, n / 64) || !jinja_need(c, n))
        return false;
    if (n) {
        char *text = pool_take(&c->values, n);
        memcpy(text, c->out.data + m.at, n);
        ret->text = text;
        take_runs(c, m.at, ret);
    }
    text_drop(c, m);
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

uint32_t text_tag(const struct jinja_context *c, const struct value *v, size_t at, size_t *cursor)
{
    if (!(v->flags & VALUE_RUNS))
        return v->tag;
    const struct text_runs *r = &c->set[v->tag];
    while (*cursor && r->run[*cursor].begin > at)
        --*cursor;
    while (*cursor + 1 < r->n && r->run[*cursor + 1].begin <= at)
        ++*cursor;
    return r->run[*cursor].tag;
}

uint32_t text_tag_of(const struct jinja_context *c, const struct value *v)
{
    if (v->kind == V_STRING)
        return v->flags & VALUE_RUNS ? c->set[v->tag].run[0].tag : v->tag;
    return v->flags & VALUE_DATA ? v->tag : c->tag;
}

/* The run that has byte `at`, by halves. */
static size_t run_at(const struct text_runs *r, size_t at)
{
    size_t low = 0, high = r->n;
    while (high - low > 1) {
        size_t half = (low + high) / 2;
        if (r->run[half].begin <= at)
            low = half;
        else
            high = half;
    }
    return low;
}

struct value text_slice(struct jinja_context *c, const struct value *v, size_t from, size_t to)
{
    struct value s = *v;
    s.text += from;
    s.n = to - from;
    if (!(v->flags & VALUE_RUNS))
        return s;
    const struct text_runs r = c->set[v->tag];
    size_t first = run_at(&r, from), last = to > from ? run_at(&r, to - 1) : first;
    s.flags &= (uint8_t)~VALUE_RUNS;
    s.tag = r.run[first].tag;
    if (last == first)
        return s;
    size_t n = last - first + 1;
    struct text_run *run = pool_take(&c->runs, n * sizeof(*run));
    for (size_t i = 0; i < n; i++) {
        run[i] = r.run[first + i];
        run[i].begin -= i ? from : run[i].begin;
    }
    set_runs(c, &s, run, n);
    return s;
}

static size_t count_runs(const struct jinja_context *c, const struct value *v)
{
    return v->flags & VALUE_RUNS ? c->set[v->tag].n : 1;
}

static void copy_runs(const struct jinja_context *c, const struct value *v, size_t begin,
                      struct text_run *to)
{
    const struct text_run one = {0, v->tag};
    const struct text_run *run = v->flags & VALUE_RUNS ? c->set[v->tag].run : &one;
    for (size_t i = 0; i < count_runs(c, v); i++)
        to[i] = (struct text_run){begin + run[i].begin, run[i].tag};
}

/* The runs of a string that b was appended to, those of `a` in place if they were made last. */
static void append_runs(struct jinja_context *c, const struct value *a, const struct value *b,
                        struct value *ret)
{
    size_t na = count_runs(c, a), nb = count_runs(c, b);
    struct text_run *run = NULL;
    if (a->flags & VALUE_RUNS) {
        const struct text_run *have = c->set[a->tag].run;
        if (pool_extend(&c->runs, (const char *)(have + na), nb * sizeof(*have)))
            run = (struct text_run *)(uintptr_t)have;
    }
    if (!run) {
        run = pool_take(&c->runs, (na + nb) * sizeof(*run));
        copy_runs(c, a, 0, run);
    }
    copy_runs(c, b, a->n, run + na);
    set_runs(c, ret, run, na + nb);
}

/* Appends b to a string that was made last, so that texts which grow in a loop are not copied each
 * time; false: it was not. */
static bool extend(struct jinja_context *c, const struct value *a, const struct value *b,
                   struct value *ret)
{
    if ((a->flags | b->flags) & VALUE_SAFE || !pool_extend(&c->values, a->text + a->n, b->n))
        return false;
    memcpy((char *)(uintptr_t)(a->text + a->n), b->text, b->n);
    *ret = *a;
    ret->n += b->n;
    if ((a->flags | b->flags) & VALUE_RUNS || a->tag != b->tag)
        append_runs(c, a, b, ret);
    return true;
}

static bool concat_runs(struct jinja_context *c, const struct value *a, const struct value *b,
                        struct value *ret)
{
    struct text_mark m = text_begin(c);
    return text_write_value(c, a) && text_write_value(c, b) && text_end(c, m, ret);
}

bool text_concat(struct jinja_context *c, const struct value *left, const struct value *right,
                 struct value *ret)
{
    struct value a = *left, b = *right; /* `ret` may be one of them */
    uint8_t safe = (a.flags | b.flags) & VALUE_SAFE;
    if (safe && !(a.flags & VALUE_SAFE) && !text_escape(c, &a, &a))
        return false;
    if (safe && !(b.flags & VALUE_SAFE) && !text_escape(c, &b, &b))
        return false;
    if (!jinja_need(c, a.n + b.n))
        return false;
    if (!a.n || !b.n)
        *ret = a.n ? a : b;
    else if (!extend(c, &a, &b, ret) && !concat_runs(c, &a, &b, ret))
        return false;
    ret->flags |= safe;
    return true;
}

bool text_escape(struct jinja_context *c, const struct value *v, struct value *ret)
{
    struct text_mark m = text_begin(c);
    size_t cursor = 0, from = 0;
    static const char odd[] = "&<>'\"";
    static const char *const as[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < v->n; i++) {
        const char *is = v->text[i] ? strchr(odd, v->text[i]) : NULL;
        if (!is)
            continue;
        const char *with = as[is - odd];
        struct value before = text_slice(c, v, from, i);
        if (!text_write_value(c, &before) ||
            !text_write(c, with, strlen(with), text_tag(c, v, i, &cursor)))
            return false;
        from = i + 1;
    }
    struct value rest = text_slice(c, v, from, v->n);
    if (!text_write_value(c, &rest) || !text_end(c, m, ret))
        return false;
    ret->flags |= VALUE_SAFE;
    return true;
}

size_t text_length(const struct value *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += (v->text[i] & 0xc0) != 0x80;
    return n;
}

size_t text_byte(const struct value *v, size_t k)
{
    size_t at = 0;
    for (; k && at < v->n; k--) {
        size_t bytes;
        utf8_at(v->text + at, &bytes);
        at += bytes;
    }
    return at;
}

size_t text_find(const struct value *v, const struct value *what, size_t from, size_t to)
{
    if (what->n > to - from)
        return SIZE_MAX;
    if (!what->n)
        return from;
    const char *p = memmem(v->text + from, to - from, what->text, what->n);
    return p ? (size_t)(p - v->text) : SIZE_MAX;
}

size_t text_find_last(const struct value *v, const struct value *what, size_t from, size_t to)
{
    if (what->n > to - from)
        return SIZE_MAX;
    for (size_t at = to - what->n + 1; at-- > from;)
        if (!memcmp(v->text + at, what->text, what->n))
            return at;
    return SIZE_MAX;
}
