/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tok/pipe_run.h"

/*
 * From ids to text: the strings of the ids go through the decoder's steps as a list, and what is
 * left is joined; without a decoder, with spaces between. Byte-level vocabularies, which have one
 * step only, keep the bytes of every id at hand.
 */

/* ---- bytes of a byte-level vocabulary ------------------------------------------------------- */

/* A string's letters as bytes, or as it stands if one of its characters is no letter. */
static void put_bytes(struct buf *out, const char *p, size_t n)
{
    size_t from = out->len, k;
    char *dst = buf_reserve(out, n + 1);
    for (size_t i = 0; i < n; i += k) {
        int b = byte_of_letter(p + i, n - i, &k);
        if (b < 0) {
            memcpy(out->data + from, p, n);
            out->len = from + n;
            return;
        }
        *dst++ = (char)b;
    }
    out->len = (size_t)(dst - out->data);
}

/* What the decoder hears of an id: of an added token, its normalized string. */
static struct pipe_text spelling_of(const struct pipe *p, struct pipe_work *w, int32_t id)
{
    int32_t at = p->token_of[id];
    if (at < 0)
        return pipe_piece(p, id);
    const struct pipe_token *t = &p->spec.token[at];
    struct err ignored;
    if (t->normalized && p->spec.nnorm &&
        !pipe_normalize(&p->spec, w, t->text, t->length, &w->norm, &ignored))
        return (struct pipe_text){w->norm.data, w->norm.len};
    return (struct pipe_text){t->text, t->length};
}

void decoder_open(struct pipe *p, struct pipe_work *w)
{
    bool bytes = p->spec.ndec == 1 && p->spec.dec[0].kind == DEC_BYTE_LEVEL;
    size_t n = (size_t)p->size;
    p->spelling = mem_new(n + 1, sizeof(*p->spelling));
    for (size_t id = 0; id < n; id++) {
        struct pipe_text t = spelling_of(p, w, (int32_t)id);
        if (bytes)
            put_bytes(&p->spelling_text, t.p, t.n);
        else
            buf_add(&p->spelling_text, t.p, t.n);
        p->spelling[id + 1] = (uint32_t)p->spelling_text.len;
    }
    p->only_bytes = bytes;
    buf_reserve(&p->spelling_text, TEXT_SLACK);
}

void decoder_close(struct pipe *p)
{
    free(p->spelling);
    buf_finish(&p->spelling_text);
}

static void join_bytes(const struct pipe *p, const int32_t *id, size_t n, struct buf *out)
{
    const char *text = p->spelling_text.data;
    for (size_t i = 0; i < n; i++) {
        size_t from = p->spelling[id[i]], length = p->spelling[id[i] + 1] - from;
        char *dst = buf_reserve(out, length + 16);
        if (length <= 16)
            memcpy(dst, text + from, 16);
        else
            memcpy(dst, text + from, length);
        out->len += length;
    }
}

/* Mends what was appended to `out` from `from` on. */
static void mend_tail(struct pipe_work *w, struct buf *out, size_t from)
{
    if (out->len == from)
        return;
    size_t good = utf8_good(out->data + from, out->len - from);
    if (good == out->len - from)
        return;
    buf_reset(&w->clean);
    buf_add(&w->clean, out->data + from + good, out->len - from - good);
    out->len = from + good;
    utf8_mend(out, w->clean.data, w->clean.len);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static void end_string(struct pipe_work *w)
{
    if (w->nends2 == w->end_cap2) {
        w->end_cap2 = w->end_cap2 ? w->end_cap2 * 2 : 256;
        w->end2 = mem_grow(w->end2, w->end_cap2, sizeof(*w->end2));
    }
    w->end2[w->nends2++] = w->list2.len;
}

static void take_list(struct pipe_work *w)
{
    struct buf b = w->list;
    w->list = w->list2;
    w->list2 = b;
    buf_reset(&w->list2);
    memset(buf_reserve(&w->list, TEXT_SLACK), 0, TEXT_SLACK);
    size_t *end = w->end, cap = w->end_cap;
    w->end = w->end2;
    w->end_cap = w->end_cap2;
    w->nends = w->nends2;
    w->end2 = end;
    w->end_cap2 = cap;
    w->nends2 = 0;
}

static struct pipe_text string_at(const struct pipe_work *w, size_t i)
{
    size_t from = i ? w->end[i - 1] : 0;
    return (struct pipe_text){w->list.data + from, w->end[i] - from};
}

static bool equal(const char *p, size_t n, struct pipe_text t)
{
    return n == t.n && !memcmp(p, t.p, n);
}

/* Appends text with each `what` replaced. */
static void put_replaced(struct buf *out, struct pipe_text text, struct pipe_text what,
                         struct pipe_text by)
{
    size_t done = 0;
    const char *p;
    while (what.n && done < text.n && (p = memmem(text.p + done, text.n - done, what.p, what.n))) {
        buf_add(out, text.p + done, (size_t)(p - text.p) - done);
        buf_add(out, by.p, by.n);
        done = (size_t)(p - text.p) + what.n;
    }
    buf_add(out, text.p + done, text.n - done);
}

/* English punctuation drawn to the word before it, one rule after the other. */
static void clean_up(struct buf *b, size_t from)
{
    static const char *const rule[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                          {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                          {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                          {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof(rule) / sizeof(*rule); i++) {
        struct pipe_text what = {rule[i][0], strlen(rule[i][0])},
                         by = {rule[i][1], strlen(rule[i][1])};
        if (!memmem(b->data + from, b->len - from, what.p, what.n))
            continue;
        struct buf t = {0};
        put_replaced(&t, (struct pipe_text){b->data + from, b->len - from}, what, by);
        b->len = from;
        buf_add(b, t.data, t.len);
        buf_finish(&t);
    }
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Of "<0x41>" 0x41, else -1. One sign before a digit is taken, as by Rust's from_str_radix. */
static int byte_of(struct pipe_text t)
{
    if (t.n != 6 || memcmp(t.p, "<0x", 3) || t.p[5] != '>')
        return -1;
    int high = t.p[3] == '+' ? 0 : hex_digit(t.p[3]), low = hex_digit(t.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A run of byte tokens is text if it is UTF-8, else one U+FFFD for each. */
static void end_run(struct pipe_work *w, const char *byte, size_t n)
{
    if (!n)
        return;
    if (utf8_good(byte, n) == n) {
        buf_add(&w->list2, byte, n);
        end_string(w);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buf_add(&w->list2, "\xef\xbf\xbd", 3);
        end_string(w);
    }
}

static void join_byte_tokens(struct pipe_work *w)
{
    struct buf run = {0};
    for (size_t i = 0; i < w->nends; i++) {
        struct pipe_text t = string_at(w, i);
        int b = byte_of(t);
        if (b >= 0) {
            buf_addc(&run, (char)b);
            continue;
        }
        end_run(w, run.data, run.len);
        buf_reset(&run);
        buf_add(&w->list2, t.p, t.n);
        end_string(w);
    }
    end_run(w, run.data, run.len);
    buf_finish(&run);
}

static void join_letters(struct pipe_work *w)
{
    for (size_t i = 0; i < w->nends; i++) {
        struct pipe_text t = string_at(w, i);
        put_bytes(&w->list2, t.p, t.n);
    }
    mend_tail(w, &w->list2, 0);
    end_string(w);
}

static void strip_string(struct pipe_work *w, const struct dec_step *s, struct pipe_text t)
{
    for (size_t i = 0; i < s->start && t.n >= s->content.n && equal(t.p, s->content.n, s->content);
         i++) {
        t.p += s->content.n;
        t.n -= s->content.n;
    }
    for (size_t i = 0; i < s->stop && t.n >= s->content.n &&
                       equal(t.p + t.n - s->content.n, s->content.n, s->content);
         i++)
        t.n -= s->content.n;
    buf_add(&w->list2, t.p, t.n);
}

static int replace_string(struct pipe_work *w, const struct dec_step *s, struct pipe_text t,
                          struct err *e)
{
    struct regex_at at = {0};
    size_t done = 0;
    for (bool found = true;;) {
        int code = regex_next(s->pattern, w->regex, t.p, t.n, &at, &found, e);
        if (code)
            return code;
        if (!found)
            break;
        buf_add(&w->list2, t.p + done, at.start - done);
        buf_add(&w->list2, s->content.p, s->content.n);
        done = at.end;
    }
    buf_add(&w->list2, t.p + done, t.n - done);
    return 0;
}

static void wordpiece_string(struct pipe_work *w, const struct dec_step *s, struct pipe_text t,
                             bool first)
{
    size_t from = w->list2.len;
    if (!first && t.n >= s->content.n && equal(t.p, s->content.n, s->content)) {
        t.p += s->content.n;
        t.n -= s->content.n;
    } else if (!first) {
        buf_addc(&w->list2, ' ');
    }
    buf_add(&w->list2, t.p, t.n);
    if (s->cleanup)
        clean_up(&w->list2, from);
}

/* Of equal strings side by side one, without the pad; none if nothing is left. */
static void ctc_string(struct pipe_work *w, const struct dec_step *s, size_t i)
{
    struct pipe_text t = string_at(w, i), space = {" ", 1}, nothing = {"", 0};
    if (i && equal(t.p, t.n, string_at(w, i - 1)))
        return;
    size_t from = w->list2.len;
    put_replaced(&w->list2, t, s->content, nothing);
    if (s->cleanup) {
        clean_up(&w->list2, from);
        struct buf b = {0};
        buf_add(&b, w->list2.data + from, w->list2.len - from);
        w->list2.len = from;
        put_replaced(&w->list2, (struct pipe_text){b.data, b.len}, s->delimiter, space);
        buf_finish(&b);
    }
    if (w->list2.len > from)
        end_string(w);
}

static int run_string(struct pipe_work *w, const struct dec_step *s, size_t i, struct err *e)
{
    struct pipe_text t = string_at(w, i), space = {" ", 1}, nothing = {"", 0};
    int code = 0;
    if (s->kind == DEC_STRIP)
        strip_string(w, s, t);
    else if (s->kind == DEC_REPLACE)
        code = replace_string(w, s, t, e);
    else if (s->kind == DEC_METASPACE)
        put_replaced(&w->list2, t, s->content, i == 0 && s->drop_first ? nothing : space);
    else if (s->kind == DEC_BPE)
        put_replaced(&w->list2, t, s->content, i + 1 == w->nends ? nothing : space);
    else if (s->kind == DEC_WORDPIECE)
        wordpiece_string(w, s, t, i == 0);
    else
        BUG("decoder %d", (int)s->kind);
    end_string(w);
    return code;
}

static int run_step(struct pipe_work *w, const struct dec_step *s, struct err *e)
{
    int code = 0;
    if (s->kind == DEC_BYTE_LEVEL) {
        join_letters(w);
    } else if (s->kind == DEC_BYTE_FALLBACK) {
        join_byte_tokens(w);
    } else if (s->kind == DEC_FUSE) {
        buf_add(&w->list2, w->list.data, w->list.len);
        end_string(w);
    } else {
        for (size_t i = 0; i < w->nends && !code; i++)
            if (s->kind == DEC_CTC)
                ctc_string(w, s, i);
            else
                code = run_string(w, s, i, e);
    }
    take_list(w);
    return code;
}

int decoder_run(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                struct buf *text, struct err *e)
{
    size_t from = text->len;
    if (p->only_bytes) {
        join_bytes(p, id, n, text);
        mend_tail(w, text, from);
        return 0;
    }
    w->nends2 = 0;
    buf_reset(&w->list2);
    for (size_t i = 0; i < n; i++) {
        size_t at = p->spelling[id[i]];
        if (p->spelling[id[i] + 1] == at && !pipe_piece(p, id[i]).p)
            continue; /* no such id */
        buf_add(&w->list2, p->spelling_text.data + at, p->spelling[id[i] + 1] - at);
        if (p->spec.no_decoder && i + 1 < n)
            buf_addc(&w->list2, ' ');
        end_string(w);
    }
    take_list(w);
    int code = 0;
    for (size_t i = 0; i < p->spec.ndec && !code; i++)
        code = run_step(w, &p->spec.dec[i], e);
    if (!code)
        buf_add(text, w->list.data, w->list.len);
    return code;
}
