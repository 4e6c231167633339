/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pipeline/offsets.h"
#include "tok/pipeline/open_text.h"

/*
 * A text that is normalized and split while it is read: added tokens in raw text, what is between
 * them normalized, added tokens in that, its pre-tokens.
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

/* Text that is pre-tokenized, but for a mark or a space before it. */
static int split_more(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    int code = split_open_put(o->split, n ? text : "", n, ends, open_piece, (void *)r, r->e);
    r->tally->steps += split_open_take_work(o->split);
    return code;
}

/* Metaspace: marks instead of spaces, with `first` one before the text, and a pre-token that begins
 * at each of them. */
static int split_marked(const struct run *r, const char *text, size_t n, bool first, bool ends)
{
    const struct pre_step *s = r->p->spec.pre;
    struct buf *b = &r->o->marked;
    const char *mark = s->content.p;
    size_t length = s->content.n, done = 0;
    int code = 0;
    buf_reset(b);
    buf_reserve(b, length + TEXT_SLACK); /* not NULL if the text is empty */
    if (first && *text != ' ' && (n < length || memcmp(text, mark, length)) &&
        (s->scheme == META_ALWAYS || (s->scheme == META_FIRST && r->o->zero)))
        buf_add(b, mark, length);
    for (size_t i = 0, k; i < n && !code; i += k) {
        utf8_at(text + i, &k);
        bool space = text[i] == ' ', is_mark = space || (k == length && !memcmp(text + i, mark, k));
        if (s->split && is_mark && (b->len || !first)) {
            code = split_more(r, b->data + done, b->len - done, true);
            done = b->len;
        }
        first = false;
        buf_add(b, space ? mark : text + i, space ? length : k);
    }
    return code ? code : split_more(r, b->data + done, b->len - done, ends);
}

/* Normalized text between added tokens. */
static int split_gap(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    const struct pre_step *s = r->p->spec.npre ? r->p->spec.pre : NULL;
    bool first = n && !o->piece, bare = o->cut;
    int code = 0;
    if (s && s->kind == PRE_METASPACE) {
        code = split_marked(r, text, n, first && !bare, ends);
    } else {
        if (s && s->prefix_space && first && !bare && *text != ' ')
            code = split_more(r, " ", 1, false);
        code = code ? code : split_more(r, text, n, ends);
    }
    o->piece = !ends && (o->piece || n);
    if (ends)
        o->cut = o->zero = false;
    return code ? code : open_flush(r, LONG);
}

static int split_sink(void *arg, const char *text, size_t n, bool last)
{
    const struct run *r = arg;
    return open_find(r, r->o->found_normal, (struct open_part){text, n, last}, split_gap);
}

/* The beginning of text between raw added tokens. */
static void split_begin(const struct run *r, const char *text, size_t n)
{
    struct pipe_open *o = r->o;
    o->gap = true;
    o->cut = o->begun;
    o->zero = !o->later && !o->begun && pipe_zero(&r->p->spec, r->w, text, n, EDGE_ZERO) > 0;
    if (r->p->spec.nnorm)
        norm_open_begin(o->norm, o->cut);
}

int open_split_take(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    const struct open_part t = {text, n, ends};
    int code = 0;
    if (!o->split)
        o->split = pipe_split_open(&r->p->spec);
    if (!o->norm)
        o->norm = norm_open_create(&r->p->spec);
    if (n && !o->gap)
        split_begin(r, text, n <= ENOUGH ? n : whole_chars(text, ENOUGH));
    if (o->gap && r->p->spec.nnorm)
        code = norm_open_put(o->norm, r->w, t, split_sink, (void *)r, r->e);
    else if (o->gap)
        code = split_sink((void *)r, text, n, ends);
    if (ends) {
        o->gap = o->begun = false;
        o->later = true;
    }
    return code;
}

int pipe_encode_by_parts(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                         struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    struct pipe_open *open = w->open; /* of a text that is read, perhaps */
    const struct tok_sink *sink = w->sink;
    int code = 0;
    w->open = NULL;
    w->sink = NULL;
    for (size_t at = 0, k; at < n && !code; at += k) {
        k = n - at < ENOUGH ? n - at : ENOUGH;
        code = pipe_encode_open(p, w, text + at, k, at + k == n, ids, tally, e);
    }
    pipe_open_destroy(w->open);
    w->open = open;
    w->sink = sink;
    return code;
}

/* ---- texts that are kept ------------------------------------------------------------------- */

/* The first step for which a text is kept. */
static void say_step(const struct pipe *p, struct buf *b)
{
    struct pipe_spec s = p->spec;
    for (s.nnorm = 1; s.nnorm <= p->spec.nnorm; s.nnorm++) {
        struct norm_open *norm = norm_open_create(&s);
        if (!norm)
            return pipe_say_norm(&p->spec, s.nnorm - 1, b);
        norm_open_destroy(norm);
    }
    s.nnorm = p->spec.nnorm;
    for (s.npre = 1; s.npre <= p->spec.npre; s.npre++) {
        struct split_open *split = pipe_split_open(&s);
        if (!split)
            return pipe_say_pre(&p->spec, s.npre - 1, b);
        split_open_destroy(split);
    }
    if (p->spec.npre && p->spec.pre->kind == PRE_METASPACE && p->spec.pre->scheme == META_FIRST)
        pipe_say_pre(&p->spec, 0, b); /* of a normalized text, before an added token */
}

void pipe_find_keeper(struct pipe *p)
{
    static const char *const model[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    struct buf b = {0};
    bool whole = p->random || p->mode == TOK_SPECIALS_ERROR;
    bool affix = p->spec.prefix.n || p->spec.suffix.n;
    bool dear = p->streams || p->samples || affix;
    for (size_t i = 0; i < p->spec.npre && p->spec.nnorm; i++) /* places of normalized text */
        dear |= p->spec.pre[i].kind == PRE_METASPACE && p->spec.pre[i].scheme == META_FIRST;
    p->keeps_most = dear ? p->spec.limits.kept_dear : p->spec.limits.kept;
    if (p->random)
        buf_adds(&b, p->samples ? "sampling" : "the dropout of merges");
    else if (p->mode == TOK_SPECIALS_ERROR)
        buf_adds(&b, "--specials error");
    else if (!p->streams)
        say_step(p, &b);
    if (!b.len && !whole)
        buf_addf(&b, "the model, %s%s,", model[p->spec.model],
                 affix && p->bpe ? " with an affix within words" : "");
    p->keeps = mem_strdup(buf_str(&b));
    buf_finish(&b);
}
