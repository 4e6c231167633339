/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pipeline/decoder_steps.h"
#include "tok/text/id_bytes.h"
#include "tok/text/byte_alphabet.h"

/*
 * From ids to text: the strings of the ids go through the decoder's steps as a list, and the result
 * is concatenated; without a decoder, with spaces between.
 *
 * Most decoders change each string by itself, except the first or the last, and concatenate bytes
 * at the end. The result for each id is then precomputed when a text is first decoded.
 */

struct table {
    bool works;                 /* false: lists are needed */
    bool bytes;                 /* DEC_BYTE_LEVEL is the only step */
    bool first;                 /* the first string differs from the same one elsewhere, */
    bool last;                  /* or the last one */
    bool fall_back;             /* bytes are joined: ID_BYTES_RUN; unknown ids do not end a run */
    size_t nalone;              /* number of leading steps that take each string by itself */
    struct string_ref what, by; /* their effect: replace `what` by `by`; what.n: 0 if not */
    size_t strip;               /* index of the step that strips the whole text, 0 if none */
    struct id_bytes_table of;
};

struct decoder {
    _Atomic(struct table *) table; /* NULL until the first text */
};

/* ---- one id at a time ----------------------------------------------------------------------- */

static bool is_alone(enum dec_kind kind)
{
    return kind == DEC_STRIP || kind == DEC_REPLACE || kind == DEC_METASPACE || kind == DEC_BPE ||
           kind == DEC_WORDPIECE;
}

/* A step that replaces one string by another, as most do. */
static void plan_replacing(const struct pipe_spec *s, struct table *t)
{
    const struct dec_step *d = s->dec;
    if (t->nalone != 1 || s->no_decoder)
        return;
    t->by = (struct string_ref){" ", 1};
    if (d->kind == DEC_METASPACE)
        t->what = d->content;
    else if (d->kind == DEC_REPLACE)
        t->what.p = regex_literal_text(d->pattern, &t->what.n), t->by = d->content;
    t->what.n = t->what.p && t->by.n <= t->what.n ? t->what.n : 0;
}

/* Recognises decoders that need no lists: steps for each string, then DEC_BYTE_FALLBACK, then
 * DEC_FUSE followed by DEC_STRIP, each optional. */
static void plan(const struct pipe_spec *s, struct table *t)
{
    size_t i = 0;
    t->bytes = s->ndec == 1 && s->dec[0].kind == DEC_BYTE_LEVEL;
    t->last = s->no_decoder;
    for (; i < s->ndec && is_alone(s->dec[i].kind); i++) {
        t->first |= s->dec[i].kind == DEC_METASPACE || s->dec[i].kind == DEC_WORDPIECE;
        t->last |= s->dec[i].kind == DEC_BPE;
    }
    t->nalone = i;
    t->fall_back = i < s->ndec && s->dec[i].kind == DEC_BYTE_FALLBACK;
    i += t->fall_back;
    if (i < s->ndec && s->dec[i].kind == DEC_FUSE) {
        i++;
        if (i < s->ndec && s->dec[i].kind == DEC_STRIP)
            t->strip = i++;
    }
    t->works = t->bytes || (i == s->ndec && !(t->last && t->fall_back));
    plan_replacing(s, t);
}

/* An id's string after the steps that take it by itself; it is in the list of `w`. */
static int alone(struct pipe_work *w, const struct table *t, int32_t id, bool first, bool last,
                 struct string_ref *ret, struct err *e)
{
    const struct pipe *p = w->p;
    struct string_ref text = decoder_spelling(p, w, id);
    int code = 0;
    w->nends2 = 0;
    buf_reset(&w->list2);
    if (t->bytes)
        decoder_put_bytes(&w->list2, text.p, text.n);
    else
        buf_add(&w->list2, text.p, text.n);
    if (p->spec.no_decoder && !last)
        buf_addc(&w->list2, ' ');
    decoder_end(w);
    decoder_take(w);
    for (size_t i = 0; i < t->nalone && !code; i++) {
        code = decoder_step(w, &p->spec.dec[i], decoder_string(w, 0), first, last, e);
        decoder_take(w);
    }
    *ret = decoder_string(w, 0);
    return code;
}

/* An entry in the byte alphabet, as most are; false: it is not, or too long. */
static bool set_letters(const struct pipe *p, struct table *t, int32_t id)
{
    enum { LONGEST = 64 };
    char bytes[LONGEST + LETTERS_ROOM];
    struct string_ref text =
        (size_t)id < p->spec.vocab.npieces ? p->spec.vocab.piece[id] : (struct string_ref){0};
    if (p->token_of[id] >= 0 || !text.n || text.n > LONGEST)
        return false;
    size_t n = letters_bytes(text.p, text.n, bytes);
    if (n)
        id_bytes_set(&t->of, (size_t)id, bytes, n, 0);
    return n;
}

/* `to` must hold n bytes; returns the bytes written. */
static size_t replaced(const struct table *t, const char *p, size_t n, char *to)
{
    const char *end = p + n;
    char *at = to;
    while (p < end) {
        if (*p != *t->what.p || (size_t)(end - p) < t->what.n ||
            memcmp(p, t->what.p, t->what.n) != 0) {
            *at++ = *p++;
            continue;
        }
        for (size_t i = 0; i < t->by.n; i++)
            *at++ = t->by.p[i];
        p += t->what.n;
    }
    return (size_t)(at - to);
}

/* The string of an id after all steps that take it by itself. */
static int decoder_spell(const struct pipe *p, struct pipe_work *w, const struct table *t,
                         int32_t id, struct string_ref *ret, struct err *e)
{
    struct string_ref text = pipe_piece(p, id);
    if (!t->what.n || p->token_of[id] >= 0)
        return alone(w, t, id, false, false, ret, e);
    buf_reset(&w->list2);
    char *to = buf_reserve(&w->list2, text.n);
    *ret = (struct string_ref){to, replaced(t, text.p, text.n, to)};
    return 0;
}

/* What an id decodes to where it is neither first nor last. */
static int set_entry(const struct pipe *p, struct pipe_work *w, struct table *t, int32_t id,
                     struct err *e)
{
    struct string_ref text;
    int code = decoder_spell(p, w, t, id, &text, e);
    int byte = !code && t->fall_back ? decoder_byte(text) : -1;
    if (byte >= 0)
        id_bytes_set(&t->of, (size_t)id, &(char){(char)byte}, 1, ID_BYTES_RUN);
    else if (!code)
        id_bytes_set(&t->of, (size_t)id, text.p, text.n, 0);
    return code;
}

static struct table *make_table(const struct pipe *p, struct pipe_work *w)
{
    struct table *t = mem_new(1, sizeof(*t));
    struct err ignored;
    plan(&p->spec, t);
    if (!t->works)
        return t;
    id_bytes_init(&t->of, (size_t)p->size);
    for (int32_t id = 0; id < p->size && t->works; id++)
        if (t->bytes && set_letters(p, t, id))
            continue;
        else if (decoder_has(p, id))
            t->works = !set_entry(p, w, t, id, &ignored);
        else
            id_bytes_set(&t->of, (size_t)id, "", 0, ID_BYTES_RUN);
    return t;
}

static void drop_table(struct table *t)
{
    if (t)
        id_bytes_finish(&t->of);
    free(t);
}

/* Of threads that get here at once, one keeps its table. */
static const struct table *get_table(const struct pipe *p, struct pipe_work *w)
{
    struct decoder *d = p->decoder;
    struct table *t = atomic_load_explicit(&d->table, memory_order_acquire), *none = NULL;
    if (t)
        return t;
    t = make_table(p, w);
    if (atomic_compare_exchange_strong(&d->table, &none, t))
        return t;
    drop_table(t);
    return none;
}

void decoder_open(struct pipe *p)
{
    p->decoder = mem_new(1, sizeof(*p->decoder));
    atomic_init(&p->decoder->table, NULL);
}

void decoder_close(struct pipe *p)
{
    if (p->decoder)
        drop_table(atomic_load(&p->decoder->table));
    free(p->decoder);
}

/* A text in progress. */
struct joining {
    const struct pipe *p;
    struct pipe_work *w;
    const struct table *t;
    struct buf *text, *run; /* run: bytes of an incomplete character */
    unsigned seen;
};

/* A run of byte tokens is text if it is UTF-8, else one U+FFFD for each token. */
static void end_joined(struct joining *j)
{
    size_t n = j->run->len;
    if (n && utf8_good(j->run->data, n) == n)
        buf_add(j->text, j->run->data, n);
    else
        for (size_t i = 0; i < n; i++)
            buf_add(j->text, "\xef\xbf\xbd", 3);
    buf_reset(j->run);
}

/* Appends one id; bytes of byte tokens are held in the run. */
static void join_one(struct joining *j, int32_t id)
{
    size_t n;
    const char *p = id_bytes_text(&j->t->of, id, &n);
    bool run = id_bytes_tag(&j->t->of.of[id]) & ID_BYTES_RUN;
    if (!run)
        end_joined(j);
    buf_add(run ? j->run : j->text, p, n);
}

static void decoder_join(struct joining *j, const int32_t *id, size_t n)
{
    if (!j->t->fall_back) {
        j->seen |= id_bytes_append(&j->t->of, id, n, j->text);
        return;
    }
    for (size_t i = 0, odd; i < n;) {
        while (i < n && j->run->len)
            join_one(j, id[i++]);
        i += id_bytes_append_runs(&j->t->of, id + i, n - i, j->text, &odd);
        for (; odd; odd--)
            join_one(j, id[i++]);
    }
}

/* The first or the last id. */
static int join_end(struct joining *j, int32_t id, bool first, bool last, struct err *e)
{
    struct string_ref text;
    int code = alone(j->w, j->t, id, first, last, &text, e);
    int byte = !code && j->t->fall_back ? decoder_byte(text) : -1;
    if (byte >= 0) {
        buf_addc(j->run, (char)byte);
    } else if (!code) {
        end_joined(j);
        buf_add(j->text, text.p, text.n);
    }
    return code;
}

/* Strips the beginning of the text, at most s->start times. */
static void strip_start(const struct dec_step *s, struct buf *text, size_t from)
{
    size_t k = 0, n = text->len - from, one = s->content.n;
    for (size_t i = 0; i < s->start && n - k >= one; i++, k += one)
        if (memcmp(text->data + from + k, s->content.p, one) != 0)
            break;
    memmove(text->data + from, text->data + from + k, n - k);
    text->len -= k;
}

static void strip_stop(const struct dec_step *s, struct buf *text, size_t from)
{
    size_t one = s->content.n;
    for (size_t i = 0; i < s->stop && text->len - from >= one; i++, text->len -= one)
        if (memcmp(text->data + text->len - one, s->content.p, one) != 0)
            break;
}

static int join_ids(struct joining *j, const int32_t *id, size_t n, struct err *e)
{
    const struct table *t = j->t;
    const struct dec_step *strip = t->strip ? &j->p->spec.dec[t->strip] : NULL;
    size_t from = j->text->len, i = 0, end = n;
    int code = 0;
    while (i < n && !decoder_has(j->p, id[i]))
        i++;
    while (t->last && !j->p->spec.no_decoder && end > i && !decoder_has(j->p, id[end - 1]))
        end--;
    bool last = t->last && i < end && decoder_has(j->p, id[end - 1]);
    bool first = t->first && i < end;
    if (first)
        code = join_end(j, id[i], true, i + 1 == end, e);
    i += first;
    bool early = false; /* as soon as there is enough to strip */
    for (; strip && i < end - last && !early; i++) {
        join_one(j, id[i]);
        early = j->text->len - from >= strip->start * strip->content.n;
    }
    if (early)
        strip_start(strip, j->text, from);
    if (i < end && !code)
        decoder_join(j, id + i, end - i - last);
    if (i < end && last && !code)
        code = join_end(j, id[end - 1], false, true, e);
    end_joined(j);
    if (strip && !early)
        strip_start(strip, j->text, from);
    if (strip)
        strip_stop(strip, j->text, from);
    return code;
}

/* ---- all tokens ------------------------------------------------------------------------------ */

int decoder_run(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                struct buf *text, struct err *e)
{
    size_t from = text->len;
    const struct table *t = get_table(p, w);
    if (!t->works)
        return decoder_lists(p, w, id, n, text, e);
    struct joining j = {.p = p, .w = w, .t = t, .text = text, .run = &w->clean};
    buf_reset(j.run);
    int code = join_ids(&j, id, n, e);
    if (code)
        text->len = from;
    else if (t->bytes && j.seen & ID_BYTES_PART)
        decoder_mend(w, text, from);
    return code;
}
