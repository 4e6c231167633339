/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tok/pipeline/open_text.h"
#include "tok/unicode/unicode.h"

/*
 * A text that is normalized to a normal form and split by patterns while it is read: added tokens
 * in raw text, the normal form of what is between them, added tokens in that, its pre-tokens.
 */

/* Encodes the words that are complete, and one that is open and has `least` bytes as far as it is
 * sure. */
static int open_flush(const struct run *r, size_t least)
{
    struct pipe_open *o = r->o;
    size_t from = o->nwords ? r->w->start[o->nwords] : 0, rest = o->words.len - from;
    int code = 0;
    if (o->nwords) {
        memset(buf_reserve(&o->words, TEXT_SLACK), 0, TEXT_SLACK);
        r->w->start[0] = 0;
        code = open_words(r, o->words.data, r->w->start, o->nwords);
    }
    if (!code && rest >= least) {
        code = rest ? open_feed(r, o->words.data + from, rest, false) : 0;
        o->feeding = true;
        rest = 0;
    }
    if (from)
        memmove(o->words.data, o->words.data + from, rest);
    o->words.len = rest;
    o->nwords = 0;
    r->tally->steps += rest;
    return code;
}

static int open_piece(void *arg, const char *text, size_t n, bool ends, struct err *e)
{
    const struct run *r = arg;
    struct pipe_open *o = r->o;
    (void)e;
    int code = !o->feeding && n >= STREAMED ? open_flush(r, 0) : 0;
    if (code)
        return code;
    if (o->feeding) {
        o->feeding = !ends;
        for (; !code && n > STREAMED; text += STREAMED, n -= STREAMED)
            code = open_feed(r, text, STREAMED, false);
        return code ? code : open_feed(r, text, n, ends);
    }
    size_t from = o->nwords ? r->w->start[o->nwords] : 0;
    buf_add(&o->words, text, n);
    open_make_room(r->w, o->words.len + TEXT_SLACK);
    if (ends && o->words.len > from)
        r->w->start[++o->nwords] = (uint32_t)o->words.len;
    bool is_long = !ends && o->words.len - from >= LONG;
    return is_long || o->words.len >= ENOUGH ? open_flush(r, LONG) : 0;
}

/* Normalized text between added tokens; `ends`: all of it. */
static int split_gap(const struct run *r, const char *text, size_t n, bool ends, size_t *ret_used)
{
    struct pipe_open *o = r->o;
    int code = split_open_put(o->split, text, n, ends, open_piece, (void *)r, r->e);
    r->tally->steps += split_open_take_work(o->split);
    *ret_used = n;
    return code ? code : open_flush(r, LONG);
}

/* Searches what is in b from *seen on, and drops what is not needed again. */
static int split_text(const struct run *r, struct buf *b, size_t *seen, struct between what,
                      bool last)
{
    size_t used = 0;
    what.text = b->data;
    what.at.from = *seen;
    what.n = last || !what.added
                 ? b->len
                 : added_border(what.added, b->data, *seen, b->len, &r->tally->steps);
    int code = open_between(r, what, last, &used);
    open_drop(b, used);
    r->tally->steps += b->len;
    *seen = what.n - used;
    return code;
}

/* More of the normalized text between added tokens that are found in raw text. */
static int split_normal(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    size_t used;
    if (!r->p->normal)
        return split_gap(r, text, n, ends, &used);
    buf_add(&o->normal, text, n);
    if (!ends && o->normal.len < o->enough_normal)
        return 0;
    const struct between what = {.added = r->p->normal, .gap = split_gap};
    int code = split_text(r, &o->normal, &o->seen_normal, what, ends);
    o->enough_normal = open_enough(o->normal.len);
    return code;
}

/* Raw text between added tokens: normalized up to the last character that does not act on what is
 * before it. */
static int split_raw(const struct run *r, const char *text, size_t n, bool ends, size_t *ret_used)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    const struct pipe_spec *s = &r->p->spec;
    size_t k, at = n;
    *ret_used = n;
    if (!s->nnorm)
        return split_normal(r, text, n, ends);
    while (!ends && at) {
        at = utf8_before(text, at);
        if (!uni_acts_before(form[s->norm[0].kind - NORM_NFC], utf8_at(text + at, &k)))
            break;
    }
    *ret_used = at;
    r->tally->steps += n - at;
    int code = pipe_normalize(s, r->w, text, at, &r->w->norm, r->e);
    return code ? code : split_normal(r, r->w->norm.data, r->w->norm.len, ends);
}

int open_split_take(const struct run *r, bool last)
{
    struct pipe_open *o = r->o;
    const struct between what = {.added = r->p->raw, .gap = split_raw};
    if (!o->split)
        o->split = pipe_split_open(&r->p->spec);
    int code = split_text(r, &o->text, &o->seen, what, last);
    o->enough = open_enough(o->text.len);
    return code;
}
