/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/split_open.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pretok/regex_open.h"

enum { STEPS_MAX = 32, LETTER_MAX = 4, PART = 1 << 14 };

struct split_step;

/* Takes more of a piece that the step before made. */
typedef int split_take(struct split_step *s, const char *text, size_t n, bool ends);

struct split_step {
    struct split_open *all;
    split_take *take;
    enum pre_behavior behavior;
    bool invert, carried;
    struct regex_open *pattern;
    split_open_test *test;
    const void *arg;
    split_open_kind *kind;
    split_open_letter *letter;
    struct split_marks marks;
    size_t length;

    /* of the piece taken: */
    bool begun;   /* some of it was */
    bool gap;     /* text between matches is begun */
    int run;      /* kind of the characters before */
    size_t chars; /* of the piece passed on */
    struct buf out;
    /* of the span that was taken last, where several may be one piece: */
    bool inside;        /* it has not ended */
    bool held;          /* it has ended, but its piece has not */
    bool match, before; /* it was a match; it was one after `invert` */
    bool open;          /* part of a piece is passed on */
};

struct split_open {
    struct split_step step[STEPS_MAX];
    size_t n;
    uint64_t work;
    split_open_piece *put;
    void *arg;
    struct err *e;
};

struct split_open *split_open_create(void)
{
    return mem_new(1, sizeof(struct split_open));
}

void split_open_destroy(struct split_open *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        regex_open_destroy(s->step[i].pattern);
        buf_finish(&s->step[i].out);
    }
    free(s);
}

/* Part of a piece to the next step; empty ones are dropped. */
static int split_pass(struct split_step *s, const char *text, size_t n, bool ends)
{
    struct split_open *all = s->all;
    if (!n && !(ends && s->open))
        return 0;
    s->open = !ends;
    text = n ? text : "";
    if (s + 1 == all->step + all->n)
        return all->put(all->arg, text, n, ends, all->e);
    return s[1].take(s + 1, text, n, ends);
}

/* ---- matches --------------------------------------------------------------------------------- */

/* Whether a span belongs to the piece of the one before it. */
static bool joins(const struct split_step *s, bool match, bool is)
{
    switch (s->behavior) {
    case SPLIT_WITH_PREVIOUS:
        return is && !s->before;
    case SPLIT_WITH_NEXT:
        return s->before && !is;
    case SPLIT_CONTIGUOUS: /* an empty match parts the text around it */
        return is == s->before && (match || s->match);
    default:
        return false;
    }
}

static int split_span(void *arg, const char *text, size_t n, bool match, bool ends, struct err *e)
{
    struct split_step *s = arg;
    bool is = match != s->invert;
    int code = 0;
    (void)e;
    if (s->behavior == SPLIT_REMOVED && is)
        return 0;
    if (s->behavior == SPLIT_REMOVED || s->behavior == SPLIT_ISOLATED)
        return split_pass(s, text, n, ends);
    if (!s->inside && s->held && !joins(s, match, is))
        code = split_pass(s, "", 0, true);
    s->inside = !ends;
    s->held = ends;
    s->match = match;
    s->before = is;
    return code ? code : split_pass(s, text, n, false);
}

/* After the last span of a piece. */
static int end_spans(struct split_step *s)
{
    bool held = s->held;
    s->held = false;
    return held ? split_pass(s, "", 0, true) : 0;
}

static int take_pattern(struct split_step *s, const char *text, size_t n, bool ends)
{
    int code = regex_open_put(s->pattern, text, n, ends, split_span, s, s->all->e);
    return code || !ends ? code : end_spans(s);
}

static int take_chars(struct split_step *s, const char *text, size_t n, bool ends)
{
    size_t done = 0;
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        if (!s->test(s->arg, utf8_at(text + i, &k)))
            continue;
        if (i > done || s->gap)
            code = split_span(s, text + done, i - done, false, true, s->all->e);
        code = code ? code : split_span(s, text + i, k, true, true, s->all->e);
        s->gap = false;
        done = i + k;
    }
    if (!code && (done < n || (ends && s->gap)))
        code = split_span(s, text + done, n - done, false, ends, s->all->e);
    s->gap = !ends && (s->gap || done < n);
    s->all->work += n;
    return code || !ends ? code : end_spans(s);
}

/* ---- other splits ---------------------------------------------------------------------------- */

static int take_runs(struct split_step *s, const char *text, size_t n, bool ends)
{
    size_t done = 0;
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        int kind = s->kind(utf8_at(text + i, &k));
        if (kind == s->run || (!kind && s->carried))
            continue;
        if (s->run)
            code = split_pass(s, text + done, i - done, true);
        s->run = kind;
        done = i;
    }
    if (!code && s->run)
        code = split_pass(s, text + done, n - done, ends);
    s->run = ends ? 0 : s->run;
    s->all->work += n;
    return code;
}

static int take_lengths(struct split_step *s, const char *text, size_t n, bool ends)
{
    size_t done = 0;
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        utf8_at(text + i, &k);
        if (s->chars++ < s->length)
            continue;
        code = split_pass(s, text + done, i - done, true);
        done = i;
        s->chars = 1;
    }
    s->chars = ends ? 0 : s->chars;
    s->all->work += n;
    return code ? code : split_pass(s, text + done, n - done, ends);
}

/* ---- rewriting ------------------------------------------------------------------------------- */

static int take_marks(struct split_step *s, const char *text, size_t n, bool ends)
{
    const struct split_marks *m = &s->marks;
    struct buf *b = &s->out;
    int code = 0;
    buf_reset(b);
    for (size_t i = 0, k; i < n && !code; i += k) {
        utf8_at(text + i, &k);
        bool space = text[i] == ' ', is = space || (k == m->n && !memcmp(text + i, m->mark, k));
        if (!s->begun && !is && m->always)
            buf_add(b, m->mark, m->n);
        if (is && m->split) {
            code = split_pass(s, b->data, b->len, true);
            buf_reset(b);
        }
        s->begun = true;
        buf_add(b, space ? m->mark : text + i, space ? m->n : k);
        if (!code && b->len >= PART) {
            code = split_pass(s, b->data, b->len, false);
            buf_reset(b);
        }
    }
    s->begun &= !ends;
    s->all->work += n;
    return code ? code : split_pass(s, b->data, b->len, ends);
}

static int take_space(struct split_step *s, const char *text, size_t n, bool ends)
{
    int code = n && !s->begun && *text != ' ' ? split_pass(s, " ", 1, false) : 0;
    s->begun = !ends && (s->begun || n);
    return code ? code : split_pass(s, text, n, ends);
}

static int take_letters(struct split_step *s, const char *text, size_t n, bool ends)
{
    char *to = buf_reserve(&s->out, LETTER_MAX * PART), *at = to;
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        at += s->letter(at, (uint8_t)text[i]);
        if (i % PART < PART - 1)
            continue;
        code = split_pass(s, to, (size_t)(at - to), false);
        at = to;
    }
    s->all->work += n;
    return code ? code : split_pass(s, to, (size_t)(at - to), ends);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool split_add_step(struct split_open *s, struct split_step step)
{
    if (s->n == STEPS_MAX)
        return false;
    step.all = s;
    s->step[s->n++] = step;
    return true;
}

bool split_open_add(struct split_open *s, const struct regex *r, bool invert, enum pre_behavior b)
{
    struct regex_open *o = regex_open_create(r);
    bool added =
        o &&
        split_add_step(s, (struct split_step){
                              .take = take_pattern, .pattern = o, .invert = invert, .behavior = b});
    if (!added)
        regex_open_destroy(o);
    return added;
}

void split_open_limit(struct split_open *s, size_t most)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->step[i].pattern)
            regex_open_limit(s->step[i].pattern, most);
}

bool split_open_add_chars(struct split_open *s, split_open_test *test, const void *arg,
                          enum pre_behavior b)
{
    return split_add_step(
        s, (struct split_step){.take = take_chars, .test = test, .arg = arg, .behavior = b});
}

bool split_open_add_runs(struct split_open *s, split_open_kind *kind, bool carried)
{
    return split_add_step(s,
                          (struct split_step){.take = take_runs, .kind = kind, .carried = carried});
}

bool split_open_add_lengths(struct split_open *s, size_t chars)
{
    return split_add_step(s, (struct split_step){.take = take_lengths, .length = chars});
}

bool split_open_add_marks(struct split_open *s, struct split_marks m)
{
    return split_add_step(s, (struct split_step){.take = take_marks, .marks = m});
}

bool split_open_add_space(struct split_open *s)
{
    return split_add_step(s, (struct split_step){.take = take_space});
}

bool split_open_add_letters(struct split_open *s, split_open_letter *put)
{
    return split_add_step(s, (struct split_step){.take = take_letters, .letter = put});
}

int split_open_put(struct split_open *s, const char *text, size_t n, bool last,
                   split_open_piece *put, void *arg, struct err *e)
{
    if (!s->n)
        return put(arg, text, n, last, e);
    s->put = put;
    s->arg = arg;
    s->e = e;
    return s->step[0].take(&s->step[0], text, n, last);
}

void split_open_reset(struct split_open *s)
{
    for (size_t i = 0; i < s->n; i++) {
        struct split_step *t = &s->step[i];
        if (t->pattern)
            regex_open_reset(t->pattern);
        t->begun = t->gap = t->inside = t->held = t->open = false;
        t->run = 0;
        t->chars = 0;
    }
}

uint64_t split_open_take_work(struct split_open *s)
{
    uint64_t work = s->work;
    for (size_t i = 0; i < s->n; i++)
        work += s->step[i].pattern ? regex_open_take_work(s->step[i].pattern) : 0;
    s->work = 0;
    return work;
}
