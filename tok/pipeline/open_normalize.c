/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pipeline/open_text.h"
#include "tok/pipeline/precompiled.h"
#include "tok/pretok/regex_open.h"
#include "tok/unicode/space_run.h"
#include "tok/unicode/unicode.h"

/*
 * The normalizer over a text that comes in parts. Each step passes on what no later byte can
 * change, in parts of bounded length, and keeps the rest: for a normal form the characters that a
 * mark may still follow, for Replace what may begin a match, for Strip the white space that may end
 * the text, for Precompiled a grapheme cluster that may be looked up.
 */

enum {
    PART = 1 << 16 /* bytes that a step passes on at a time, and a little more */
};

struct norm_part {
    struct buf kept, out;
    struct regex_open *pattern; /* of Replace, unless it is a literal */
    bool begun;
    struct space_run space;            /* of Strip: what may end the text */
    struct uni_cluster_so_far cluster; /* of Precompiled: the one that is kept, */
    bool wide;                         /* or has too many bytes to be looked up, and is not */
    uint64_t made;                     /* bytes passed on */
};

struct norm_open {
    const struct pipe_spec *spec;
    struct pipe_work *w;
    struct norm_part *part;
    bool cut;
    uint64_t taken;
    norm_open_sink *sink;
    void *arg;
    struct err *e;
};

static bool norm_open_step(struct norm_part *part, const struct norm_step *s)
{
    size_t n;
    if (s->kind != NORM_REPLACE)
        return true;
    if (regex_literal_text(s->pattern, &n))
        return n > 0;
    part->pattern = regex_open_create(s->pattern);
    if (part->pattern)
        regex_open_pass_empty(part->pattern);
    return part->pattern;
}

struct norm_open *norm_open_create(const struct pipe_spec *s)
{
    struct norm_open *o = mem_new(1, sizeof(*o));
    bool good = true;
    o->spec = s;
    o->part = mem_new(s->nnorm + 1, sizeof(*o->part));
    for (size_t i = 0; i < s->nnorm && good; i++)
        good = norm_open_step(&o->part[i], &s->norm[i]);
    for (size_t i = 0; i < s->nnorm; i++)
        if (o->part[i].pattern)
            regex_open_limit(o->part[i].pattern, pipe_open_share(s));
    if (good)
        return o;
    norm_open_destroy(o);
    return NULL;
}

void norm_open_destroy(struct norm_open *o)
{
    for (size_t i = 0; o && i < o->spec->nnorm; i++) {
        buf_finish(&o->part[i].kept);
        buf_finish(&o->part[i].out);
        space_run_finish(&o->part[i].space);
        regex_open_destroy(o->part[i].pattern);
    }
    if (o)
        free(o->part);
    free(o);
}

void norm_open_begin(struct norm_open *o, bool cut)
{
    for (size_t i = 0; i < o->spec->nnorm; i++) {
        struct norm_part *part = &o->part[i];
        buf_reset(&part->kept);
        part->begun = part->wide = false;
        part->cluster = (struct uni_cluster_so_far){0};
        part->made = 0;
        space_run_reset(&part->space);
        if (part->pattern)
            regex_open_reset(part->pattern);
    }
    o->cut = cut;
    o->taken = 0;
}

static int open_step(struct norm_open *o, size_t i, const char *text, size_t n, bool last);

/* What step i made, to the next one. */
static int open_pass(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    struct norm_part *part = &o->part[i];
    part->made += n;
    if (norm_grows_too_much(o->spec, o->taken, part->made, last))
        return norm_refuse_growth(o->spec, i, o->taken, part->made, o->e);
    return open_step(o, i + 1, text, n, last);
}

/* Appends to what step i passes on next. */
static int open_make(struct norm_open *o, size_t i, const char *text, size_t n)
{
    struct buf *out = &o->part[i].out;
    buf_add(out, text, n);
    if (out->len < PART)
        return 0;
    int code = open_pass(o, i, out->data, out->len, false);
    buf_reset(out);
    return code;
}

static int open_made(struct norm_open *o, size_t i, bool last)
{
    struct buf *out = &o->part[i].out;
    int code = open_pass(o, i, out->data, out->len, last);
    buf_reset(out);
    return code;
}

/* ---- steps that change each character by itself, and normal forms -----------------------------
 */

/* Whether the step gives the same for both sides of a position before c as for the whole. */
static bool parts_before(const struct norm_step *s, uint32_t c)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    if (s->kind <= NORM_NFKD)
        return !uni_acts_before(form[s->kind - NORM_NFC], c);
    if (s->kind == NORM_BERT && s->accents)
        return !uni_acts_before(UNI_NFD, c) && !(s->clean && norm_is_dirt(c));
    return true;
}

/* The bytes of text[0 .. n) before the last such position after `from`; 0: there is none. */
static size_t sure_bytes(const struct norm_step *s, const char *text, size_t from, size_t n)
{
    size_t k;
    if (s->kind > NORM_NFKD && s->kind != NORM_BERT)
        return n;
    while (n > from) {
        n = utf8_before(text, n);
        if (parts_before(s, utf8_at(text + n, &k)))
            return n;
    }
    return 0;
}

static int refuse_marks(const struct norm_open *o, size_t i)
{
    struct buf b = {0};
    pipe_say_norm(o->spec, i, &b);
    int code = err_set(
        o->e, ERR_DATA,
        "more than %zu MiB of combining marks in a row, but %s needs them in one piece, because a "
        "later one may come first: split the line or raise --long-text-memory",
        o->spec->limits.marks >> 20, buf_str(&b));
    buf_finish(&b);
    return code;
}

static int open_chars(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    struct norm_part *part = &o->part[i];
    size_t before = part->kept.len;
    if (before) {
        buf_add(&part->kept, text, n);
        text = part->kept.data;
        n = part->kept.len;
    }
    size_t used = last ? n : sure_bytes(&o->spec->norm[i], text, before, n);
    buf_reset(&part->out);
    buf_add(&part->out, text, used);
    int code = pipe_norm_step(o->spec, i, o->w, 0, &part->out, o->e);
    if (before)
        open_drop(&part->kept, used);
    else
        buf_add(&part->kept, text + used, n - used);
    if (!code && part->kept.len > o->spec->limits.marks)
        code = refuse_marks(o, i);
    return code ? code : open_made(o, i, last);
}

static int open_prepend(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    struct norm_part *part = &o->part[i];
    int code = 0;
    if (n && !part->begun && !o->cut)
        code = open_pass(o, i, o->spec->norm[i].content.p, o->spec->norm[i].content.n, false);
    part->begun |= n > 0;
    return code ? code : open_pass(o, i, text, n, last);
}

/* ---- Replace ----------------------------------------------------------------------------------
 */

/* The first position from which a match may begin that needs more text. */
static size_t open_beginning(const char *text, size_t done, size_t n, size_t length)
{
    size_t at = n < length ? 0 : n - length + 1;
    while (at < n && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at < done ? done : at;
}

static int open_literal(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    const struct norm_step *s = &o->spec->norm[i];
    struct norm_part *part = &o->part[i];
    size_t length, done = 0, before = part->kept.len;
    const char *literal = regex_literal_text(s->pattern, &length), *found;
    int code = 0;
    if (before) {
        buf_add(&part->kept, text, n);
        text = part->kept.data;
        n = part->kept.len;
    }
    while (!code && (found = memmem(text + done, n - done, literal, length))) {
        size_t at = (size_t)(found - text);
        code = open_make(o, i, text + done, at - done);
        code = code ? code : open_make(o, i, s->content.p, s->content.n);
        done = at + length;
    }
    size_t used = last ? n : open_beginning(text, done, n, length);
    code = code ? code : open_make(o, i, text + done, used - done);
    if (before)
        open_drop(&part->kept, used);
    else
        buf_add(&part->kept, text + used, n - used);
    return code ? code : open_made(o, i, last);
}

struct replaced {
    struct norm_open *o;
    size_t i;
};

static int open_span(void *arg, const char *text, size_t n, bool match, bool ends, struct err *e)
{
    const struct replaced *r = arg;
    const struct norm_step *s = &r->o->spec->norm[r->i];
    (void)e;
    if (!match)
        return open_make(r->o, r->i, text, n);
    return ends ? open_make(r->o, r->i, s->content.p, s->content.n) : 0;
}

static int open_pattern(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    struct replaced r = {o, i};
    int code = regex_open_put(o->part[i].pattern, text, n, last, open_span, &r, o->e);
    o->w->steps += regex_open_take_work(o->part[i].pattern);
    return code ? code : open_made(o, i, last);
}

/* ---- Strip ------------------------------------------------------------------------------------
 */

/* Keeps white space, which may end the text. */
static int space_keep(struct norm_open *o, size_t i, const char *text, size_t n)
{
    struct space_run *space = &o->part[i].space;
    space_run_add(space, text, n);
    size_t most = pipe_open_share(o->spec);
    if (space->kept.len <= most)
        return 0;
    return err_set(o->e, ERR_DATA,
                   "%s: normalizer %zu of %zu, Strip, needs to keep more than %d MiB of mixed "
                   "white space, because the text may end after it; --long-text-memory raises that",
                   o->spec->path, i + 1, o->spec->nnorm, (int)(most >> 20));
}

/* Passes on the white space kept. */
static int space_pass(struct norm_open *o, size_t i)
{
    struct space_run *space = &o->part[i].space;
    struct space_run_at at = {0};
    size_t n = 0;
    int code = 0;
    while (!code && space->kept.len) {
        const char *part = space_run_take(space, &at, &n);
        code = open_make(o, i, part, n);
    }
    return code;
}

static int open_strip(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    const struct norm_step *s = &o->spec->norm[i];
    struct norm_part *part = &o->part[i];
    size_t at = 0, end = n, k;
    int code = 0;
    while (s->left && !part->begun && at < n && uni_space(utf8_at(text + at, &k)))
        at += k;
    part->begun |= at < n;
    while (s->right && end > at) {
        size_t before = utf8_before(text, end);
        if (!uni_space(utf8_at(text + before, &k)))
            break;
        end = before;
    }
    if (end > at) {
        code = space_pass(o, i);
        code = code ? code : open_make(o, i, text + at, end - at);
    }
    if (!code && !last)
        code = space_keep(o, i, text + end, n - end);
    return code ? code : open_made(o, i, last);
}

/* ---- Precompiled ------------------------------------------------------------------------------
 */

/* Appends what is kept of a cluster. */
static void put_cluster(struct norm_part *part, const char *rules, bool whole)
{
    precompiled_put(rules, part->kept.data, part->kept.len, whole, &part->out);
    buf_reset(&part->kept);
}

static int open_precompiled(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    struct norm_part *part = &o->part[i];
    const char *rules = o->spec->norm[i].content.p;
    int code = 0;
    for (size_t at = 0, k; at < n && !code; at += k) {
        if (uni_cluster_begins(&part->cluster, utf8_at(text + at, &k))) {
            put_cluster(part, rules, true);
            part->wide = false;
        }
        if (part->kept.len + k > PRECOMPILED_CLUSTER && !FAULT("cluster_kept")) {
            put_cluster(part, rules, false);
            part->wide = true;
        }
        if (part->wide)
            precompiled_put(rules, text + at, k, false, &part->out);
        else
            buf_add(&part->kept, text + at, k);
        if (part->out.len >= PART)
            code = open_made(o, i, false);
    }
    if (!code && last)
        put_cluster(part, rules, true);
    return code ? code : open_made(o, i, last);
}

/* ---- all steps --------------------------------------------------------------------------------
 */

static int open_step(struct norm_open *o, size_t i, const char *text, size_t n, bool last)
{
    if (!n && !last)
        return 0;
    text = n ? text : "";
    if (i == o->spec->nnorm)
        return o->sink(o->arg, text, n, last);
    switch (o->spec->norm[i].kind) {
    case NORM_STRIP:
        return open_strip(o, i, text, n, last);
    case NORM_PRECOMPILED:
        return open_precompiled(o, i, text, n, last);
    case NORM_PREPEND:
        return open_prepend(o, i, text, n, last);
    case NORM_REPLACE:
        return (o->part[i].pattern ? open_pattern : open_literal)(o, i, text, n, last);
    default:
        return open_chars(o, i, text, n, last);
    }
}

int norm_open_put(struct norm_open *o, struct pipe_work *w, struct open_part t,
                  norm_open_sink *sink, void *arg, struct err *e)
{
    int code = 0;
    o->w = w;
    o->sink = sink;
    o->arg = arg;
    o->e = e;
    w->norm_most = TEXT_MAX;
    do {
        size_t k = t.n;
        if (k > PART)
            for (k = PART; ((unsigned char)t.text[k] & 0xc0) == 0x80;)
                k--;
        o->taken += k;
        w->steps += k * (o->spec->nnorm + 1);
        code = open_step(o, 0, t.text, k, t.last && k == t.n);
        t.text += k;
        t.n -= k;
    } while (!code && t.n);
    return code;
}
