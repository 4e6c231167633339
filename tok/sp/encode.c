/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "tok/sp/normalize.h"
#include "tok/sp/sp_internal.h"

/* Text to ids with a SentencePiece model: by the unigram or the merging engine, or by the library.
 */

enum { TEXT_MAX = 1 << 29 /* bytes of a text for the library */ };

static void set_key(struct sp_scratch *c, uint64_t key)
{
    c->key = key;
    unigram_state_key(c->unigram, key);
    if (c->native)
        sp_native_key(c->native, key);
}

void sp_number(const void *state, void *scratch, uint64_t number)
{
    const struct sp *s = state;
    struct rng4 r = rng_block(s->seed, RNG_SAMPLE, 0, number);
    set_key(scratch, (uint64_t)r.v[0] << 32 | r.v[1]);
}

void *sp_scratch_create(const void *state)
{
    const struct sp *s = state;
    struct sp_scratch *c = mem_own(sizeof(*c));
    c->room = sp_room_create();
    c->unigram = unigram_state_create();
    c->native = s->native ? sp_native_state_create(s->native) : NULL;
    sp_number(s, c, 0);
    return c;
}

void sp_scratch_destroy(void *scratch)
{
    struct sp_scratch *c = scratch;
    sp_room_destroy(c->room);
    unigram_state_destroy(c->unigram);
    sp_native_state_destroy(c->native);
    buf_finish(&c->hold);
    buf_finish(&c->lines);
    buf_finish(&c->whole);
    free(c);
}

static int encode_plain(const struct sp *s, struct sp_room *room, const char *text, size_t n,
                        struct tok_ids *ids, struct err *e)
{
    const int *id;
    size_t k;
    int code = n ? sp_lib_encode(s->lib, room, text, n, &id, &k, e) : 0;
    if (code || !n)
        return code;
    memcpy(tok_ids_reserve(ids, k), id, k * sizeof(*id));
    ids->n += k;
    return 0;
}

/* Counts the special strings, or finds that there are none. */
static int look_for_specials(const struct sp *s, const char *text, size_t n,
                             struct tok_tally *tally, struct err *e)
{
    size_t at = 0;
    const struct special *p;
    for (size_t i = 0; (p = specials_find(&s->specials, text, n, i, &at)); i = at + p->length) {
        if (s->mode == TOK_SPECIALS_ERROR)
            return special_refuse(p->text, at, e);
        if (p->always)
            tally->matched++;
        else
            tally->specials++;
    }
    return 0;
}

static int encode_parsed(const struct sp *s, struct sp_room *room, const char *text, size_t n,
                         struct tok_ids *ids, struct err *e)
{
    for (size_t i = 0;;) {
        size_t at = n;
        const struct special *p = specials_find(&s->specials, text, n, i, &at);
        int code = encode_plain(s, room, text + i, at - i, ids, e);
        if (code || !p)
            return code;
        *tok_ids_reserve(ids, 1) = p->id;
        ids->n++;
        i = at + p->length;
    }
}

/* Encodes a whole text by the library. */
static int sp_encode_whole(const void *state, void *scratch, const char *text, size_t n,
                           struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_room *room = ((struct sp_scratch *)scratch)->room;
    if (n > TEXT_MAX)
        return err_set(e, ERR_DATA, "a text of %zu bytes: SentencePiece takes at most %d", n,
                       TEXT_MAX);
    tally->invalid += utf8_invalid(text, n);
    if (s->crlf) {
        struct buf *lines = &((struct sp_scratch *)scratch)->lines;
        buf_reset(lines);
        sp_put_lines(lines, text, n, false, true);
        text = lines->data;
        n = lines->len;
    }
    if (s->mode == TOK_SPECIALS_PARSE)
        return encode_parsed(s, room, text, n, ids, e);
    int code = look_for_specials(s, text, n, tally, e);
    return code ? code : encode_plain(s, room, text, n, ids, e);
}

/* ---- our own engines, which take parts ------------------------------------------------------- */

static int feed_as_is(const struct sp *s, struct sp_scratch *c, const char *text, size_t n,
                      bool last, struct tok_ids *ids, struct err *e)
{
    if (s->native)
        return sp_native_put(s->native, c->native, text, n, last, ids, e);
    if (s->nbest <= 1) {
        unigram_put(s->unigram, c->unigram, text, n, last, ids);
        return unigram_take_failure(c->unigram, e);
    }
    buf_add(&c->whole, text, n);
    if (!last)
        return 0;
    int code = unigram_sample_nbest(s->unigram, c->unigram, c->whole.data, c->whole.len, s->nbest,
                                    s->alpha, ids, e);
    c->whole.len = 0;
    return code;
}

static int feed(const struct sp *s, struct sp_scratch *c, const char *text, size_t n, bool last,
                struct tok_ids *ids, struct err *e)
{
    if (!s->crlf || (!c->cr && !memchr(text, '\r', n)))
        return feed_as_is(s, c, text, n, last, ids, e);
    buf_reset(&c->lines);
    c->cr = sp_put_lines(&c->lines, text, n, c->cr, last);
    return feed_as_is(s, c, c->lines.data, c->lines.len, last, ids, e);
}

static int take_special(const struct sp *s, struct sp_scratch *c, const struct special *p,
                        size_t at, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    if (s->mode == TOK_SPECIALS_ERROR)
        return special_refuse(p->text, at, e);
    if (s->mode == TOK_SPECIALS_TEXT) {
        *(p->always ? &tally->matched : &tally->specials) += 1;
        return feed(s, c, p->text, p->length, false, ids, e);
    }
    int code = feed(s, c, "", 0, true, ids, e);
    *tok_ids_reserve(ids, 1) = p->id;
    ids->n += !code;
    return code;
}

/* Encodes the text except for an end that may begin a special string, unless it is the last part;
 * *ret is the number of bytes taken. */
static int sp_put_text(const struct sp *s, struct sp_scratch *c, const char *text, size_t n,
                       bool whole, bool last, size_t *ret, struct tok_ids *ids,
                       struct tok_tally *tally, struct err *e)
{
    size_t unsure = whole || !s->longest_special ? 0 : s->longest_special - 1, i = 0;
    size_t sure = n > unsure ? n - unsure : 0;
    for (;;) {
        size_t at = n;
        const struct special *p = specials_find(&s->specials, text, n, i, &at);
        bool found = p && at < sure;
        size_t end = found ? at : sure > i ? sure : i;
        int code = feed(s, c, text + i, end - i, last && !found, ids, e);
        i = end;
        if (!code && !found)
            break;
        if (!code)
            code = take_special(s, c, p, at, ids, tally, e);
        if (code)
            return code;
        i += p->length;
    }
    *ret = i;
    return 0;
}

static void end_part(struct sp_scratch *c, int code, bool last, struct tok_tally *tally)
{
    if (code || last)
        set_key(c, c->key);
    tally->invalid += unigram_take_invalid(c->unigram);
    tally->steps += unigram_take_steps(c->unigram);
    if (c->native) {
        tally->invalid += sp_native_take_invalid(c->native);
        tally->steps += sp_native_take_steps(c->native);
    }
    if (code) {
        c->cr = false;
        c->hold.len = c->whole.len = 0;
        unigram_reset(c->unigram);
        if (c->native)
            sp_native_reset(c->native);
    }
}

void sp_sink(void *scratch, const struct tok_sink *o)
{
    ((struct sp_scratch *)scratch)->sink = o;
}

void sp_resume(const void *state, void *scratch, float sum, int32_t last)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    bool unknown = !s->model.byte_fallback && last == s->model.unk;
    if (s->native) {
        sp_native_begin_at_cut(c->native, unknown);
        return;
    }
    unigram_begin_sum(c->unigram, sum, true);
    unigram_begin_after(c->unigram, unknown);
}

int sp_encode_part(const void *state, void *scratch, const char *text, size_t n, bool last,
                   struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    unigram_set_sink(c->unigram, c->sink);
    size_t used = 0;
    int code;
    if (c->hold.len) {
        buf_add(&c->hold, text, n);
        code = sp_put_text(s, c, c->hold.data, c->hold.len, last, last, &used, ids, tally, e);
        c->hold.len -= used;
        memmove(c->hold.data, c->hold.data + used, c->hold.len);
    } else {
        code = sp_put_text(s, c, text, n, last, last, &used, ids, tally, e);
        buf_add(&c->hold, text + used, n - used);
    }
    end_part(c, code, last, tally);
    unigram_set_sink(c->unigram, NULL);
    return code;
}

int sp_encode_between(const void *state, void *scratch, const char *text, size_t n, bool first,
                      bool last, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    size_t used;
    if (!first)
        sp_native_begin_at_cut(c->native, false);
    int code = sp_put_text(s, c, text, n, true, last, &used, ids, tally, e);
    if (!code && !last && c->cr) { /* what follows is not LF */
        c->cr = false;
        code = feed_as_is(s, c, "\r", 1, false, ids, e);
    }
    if (!code && !last)
        code = sp_native_end_at_cut(s->native, c->native, ids, e);
    end_part(c, code, last, tally);
    return code;
}

/* A part as the model sees it; it does not end in a CR before an LF. */
static const char *lines_of(const struct sp *s, struct sp_scratch *c, const char *text, size_t *n)
{
    if (!s->crlf || !*n || !memchr(text, '\r', *n))
        return text;
    buf_reset(&c->lines);
    sp_put_lines(&c->lines, text, *n, false, true);
    *n = c->lines.len;
    return c->lines.data;
}

int sp_look(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ret,
            struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    int code = look_for_specials(s, text, n, tally, e);
    if (code)
        return code;
    text = lines_of(s, c, text, &n);
    unigram_look(s->unigram, c->unigram, text, n, ret);
    return 0;
}

int sp_take(const void *state, void *scratch, const char *text, size_t n, bool first, bool last,
            const struct tok_ids *looked, float *sum, struct tok_ids *ids, struct tok_tally *tally,
            struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    int code = first ? look_for_specials(s, text, n, tally, e) : 0;
    if (code)
        return code;
    text = lines_of(s, c, text, &n);
    unigram_begin_sum(c->unigram, *sum, !first);
    unigram_put_looked(s->unigram, c->unigram, text, n, looked, last, ids);
    *sum = unigram_ended(c->unigram);
    end_part(c, 0, last, tally);
    return 0;
}

static size_t own_cut(const struct sp *s, const char *text, size_t n)
{
    return s->native ? sp_native_cut(s->native, text, n) : unigram_cut(s->unigram, text, n);
}

size_t sp_cut(const void *state, const char *text, size_t n)
{
    const struct sp *s = state;
    size_t at = own_cut(s, text, n);
    while (at && ((s->crlf && text[at - 1] == '\r') ||
                  specials_touch(&s->specials, s->longest_special, text, at, n)))
        at = own_cut(s, text, at);
    return at;
}

int sp_encode(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
              struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    if (!s->unigram && !s->native)
        return sp_encode_whole(state, scratch, text, n, ids, tally, e);
    struct sp_scratch *c = scratch;
    const struct tok_sink *sink = c->sink;
    c->sink = NULL; /* it is for texts in parts */
    int code = sp_encode_part(state, scratch, text, n, true, ids, tally, e);
    c->sink = sink;
    return code;
}

/* The n best segmentations of a whole text. */
int sp_nbest(const void *state, void *scratch, const char *text, size_t n, size_t most,
             struct tok_nbest *ret, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    if (s->mode == TOK_SPECIALS_PARSE)
        return err_set(e, ERR_USAGE,
                       "n-best segmentations are of whole texts, "
                       "which --specials parse would split");
    if (s->crlf) {
        buf_reset(&c->lines);
        sp_put_lines(&c->lines, text, n, false, true);
        text = c->lines.data;
        n = c->lines.len;
    }
    int code = look_for_specials(s, text, n, tally, e);
    if (!code)
        code = unigram_nbest(s->unigram, c->unigram, text, n, most, ret, e);
    end_part(c, code, true, tally);
    return code;
}

/* ---- offsets ------------------------------------------------------------------------------- */

/* Encodes one text by itself; called by offsets.h. */
static int encode_alone(const void *state, void *scratch, const char *text, size_t n,
                        struct tok_ids *ids, struct err *e)
{
    const struct sp *s = state;
    struct sp_scratch *c = scratch;
    struct tok_tally ignored = {0};
    int code = s->unigram || s->native ? feed_as_is(s, c, text, n, true, ids, e)
                                       : encode_plain(s, c->room, text, n, ids, e);
    end_part(c, code, true, &ignored);
    return code;
}

static struct sp_offsets_job job_of(const struct sp *s, void *scratch)
{
    return (struct sp_offsets_job){.specials = s->mode == TOK_SPECIALS_PARSE ? &s->specials : NULL,
                                   .crlf = s->crlf,
                                   .encode = encode_alone,
                                   .state = s,
                                   .scratch = scratch};
}

int sp_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                    struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    const struct sp *s = state;
    struct sp_offsets_job job = job_of(s, scratch);
    return sp_offsets_find(s->offsets, &job, text, n, ids, spans, e);
}

void sp_say(const void *state, void *scratch, const char *text, size_t n, const int32_t *id,
            size_t nids, struct tok_unknown *ret)
{
    const struct sp *s = state;
    struct sp_offsets_job job = job_of(s, scratch);
    sp_offsets_say(s->offsets, &job, text, n, id, nids, ret);
}
