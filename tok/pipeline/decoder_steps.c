/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/decoder_steps.h"

/* The decoder's steps, each over a list of strings. */

/* ---- bytes of a byte-level vocabulary ------------------------------------------------------- */

/* A string in the byte alphabet as bytes, or unchanged if it has any other character. */
void decoder_put_bytes(struct buf *out, const char *p, size_t n)
{
    char *dst = buf_reserve(out, n + LETTERS_ROOM);
    size_t k = letters_bytes(p, n, dst);
    if (!k && n)
        memcpy(dst, p, n);
    out->len += k ? k : n;
}

/* The string of an id in the decoder's input: of an added token, its normalized string. */
struct string_ref decoder_spelling(const struct pipe *p, struct pipe_work *w, int32_t id)
{
    int32_t at = p->token_of[id];
    if (at < 0)
        return pipe_piece(p, id);
    const struct pipe_token *t = &p->spec.token[at];
    struct err ignored;
    if (t->normalized && p->spec.nnorm &&
        !pipe_normalize(&p->spec, w, t->text, t->length, &w->norm, &ignored))
        return (struct string_ref){w->norm.data, w->norm.len};
    return (struct string_ref){t->text, t->length};
}

/* Replaces invalid UTF-8 in what was appended to `out` from `from` on. */
void decoder_mend(struct pipe_work *w, struct buf *out, size_t from)
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

void decoder_end(struct pipe_work *w)
{
    ARRAY_GROW(w->end2, w->nends2, w->end_cap2);
    w->end2[w->nends2++] = w->list2.len;
}

void decoder_take(struct pipe_work *w)
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

struct string_ref decoder_string(const struct pipe_work *w, size_t i)
{
    size_t from = i ? w->end[i - 1] : 0;
    return (struct string_ref){w->list.data + from, w->end[i] - from};
}

static bool decoder_steps_equal(const char *p, size_t n, struct string_ref t)
{
    return n == t.n && !memcmp(p, t.p, n);
}

/* Appends text with each `what` replaced; an empty one matches before each character and at the
 * end. */
static void put_replaced(struct buf *out, struct string_ref text, struct string_ref what,
                         struct string_ref by)
{
    size_t done = 0;
    const char *p;
    if (!what.n) {
        for (size_t k; done < text.n; done += k) {
            buf_add(out, by.p, by.n);
            k = utf8_char(text.p + done, text.p + text.n);
            buf_add(out, text.p + done, k = k ? k : 1);
        }
        buf_add(out, by.p, by.n);
        return;
    }
    while (done < text.n && (p = memmem(text.p + done, text.n - done, what.p, what.n))) {
        buf_add(out, text.p + done, (size_t)(p - text.p) - done);
        buf_add(out, by.p, by.n);
        done = (size_t)(p - text.p) + what.n;
    }
    if (done < text.n)
        buf_add(out, text.p + done, text.n - done);
}

/* Every rule below begins with a space and one of these. */
static bool may_clean(const char *p, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (p[i] == ' ' && p[i + 1] && strchr(".?!,'nd", p[i + 1]))
            return true;
    return false;
}

/* Attaches English punctuation to the word before it, one rule after the other. */
static void clean_up(struct buf *b, size_t from)
{
    static const char *const rule[][2] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                          {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                          {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                          {" 've", "'ve"}, {" 're", "'re"}};
    if (!may_clean(b->data + from, b->len - from))
        return;
    for (size_t i = 0; i < sizeof(rule) / sizeof(*rule); i++) {
        struct string_ref what = {rule[i][0], strlen(rule[i][0])},
                          by = {rule[i][1], strlen(rule[i][1])};
        if (!memmem(b->data + from, b->len - from, what.p, what.n))
            continue;
        struct buf t = {0};
        put_replaced(&t, (struct string_ref){b->data + from, b->len - from}, what, by);
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

/* "<0x41>" -> 0x41, else -1. A '+' before the digits is accepted, as by Rust's from_str_radix. */
int decoder_byte(struct string_ref t)
{
    if (t.n != 6 || memcmp(t.p, "<0x", 3) || t.p[5] != '>')
        return -1;
    int high = t.p[3] == '+' ? 0 : hex_digit(t.p[3]), low = hex_digit(t.p[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* A run of byte tokens is text if it is UTF-8, else one U+FFFD for each token. */
static void end_run(struct pipe_work *w, const char *byte, size_t n)
{
    if (!n)
        return;
    if (utf8_good(byte, n) == n) {
        buf_add(&w->list2, byte, n);
        decoder_end(w);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buf_add(&w->list2, "\xef\xbf\xbd", 3);
        decoder_end(w);
    }
}

static void join_byte_tokens(struct pipe_work *w)
{
    struct buf run = {0};
    for (size_t i = 0; i < w->nends; i++) {
        struct string_ref t = decoder_string(w, i);
        int b = decoder_byte(t);
        if (b >= 0) {
            buf_addc(&run, (char)b);
            continue;
        }
        end_run(w, run.data, run.len);
        buf_reset(&run);
        buf_add(&w->list2, t.p, t.n);
        decoder_end(w);
    }
    end_run(w, run.data, run.len);
    buf_finish(&run);
}

static void join_letters(struct pipe_work *w)
{
    for (size_t i = 0; i < w->nends; i++) {
        struct string_ref t = decoder_string(w, i);
        decoder_put_bytes(&w->list2, t.p, t.n);
    }
    decoder_mend(w, &w->list2, 0);
    decoder_end(w);
}

static void strip_string(struct pipe_work *w, const struct dec_step *s, struct string_ref t)
{
    for (size_t i = 0;
         i < s->start && t.n >= s->content.n && decoder_steps_equal(t.p, s->content.n, s->content);
         i++) {
        t.p += s->content.n;
        t.n -= s->content.n;
    }
    for (size_t i = 0; i < s->stop && t.n >= s->content.n &&
                       decoder_steps_equal(t.p + t.n - s->content.n, s->content.n, s->content);
         i++)
        t.n -= s->content.n;
    buf_add(&w->list2, t.p, t.n);
}

static int replace_string(struct pipe_work *w, const struct dec_step *s, struct string_ref t,
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

static void wordpiece_string(struct pipe_work *w, const struct dec_step *s, struct string_ref t,
                             bool first)
{
    size_t from = w->list2.len;
    if (!first && t.n >= s->content.n && decoder_steps_equal(t.p, s->content.n, s->content)) {
        t.p += s->content.n;
        t.n -= s->content.n;
    } else if (!first) {
        buf_addc(&w->list2, ' ');
    }
    buf_add(&w->list2, t.p, t.n);
    if (s->cleanup)
        clean_up(&w->list2, from);
}

/* Collapses equal adjacent strings, and removes the pad; drops a string that becomes empty. */
static void ctc_string(struct pipe_work *w, const struct dec_step *s, size_t i)
{
    struct string_ref t = decoder_string(w, i), space = {" ", 1}, nothing = {"", 0};
    if (i && decoder_steps_equal(t.p, t.n, decoder_string(w, i - 1)))
        return;
    size_t from = w->list2.len;
    put_replaced(&w->list2, t, s->content, nothing);
    if (s->cleanup) {
        clean_up(&w->list2, from);
        struct buf b = {0};
        buf_add(&b, w->list2.data + from, w->list2.len - from);
        w->list2.len = from;
        put_replaced(&w->list2, (struct string_ref){b.data, b.len}, s->delimiter, space);
        buf_finish(&b);
    }
    if (w->list2.len > from)
        decoder_end(w);
}

/* A step that takes each string by itself. */
int decoder_step(struct pipe_work *w, const struct dec_step *s, struct string_ref t, bool first,
                 bool last, struct err *e)
{
    struct string_ref space = {" ", 1}, nothing = {"", 0};
    int code = 0;
    if (s->kind == DEC_STRIP)
        strip_string(w, s, t);
    else if (s->kind == DEC_REPLACE)
        code = replace_string(w, s, t, e);
    else if (s->kind == DEC_METASPACE)
        put_replaced(&w->list2, t, s->content, first && s->drop_first ? nothing : space);
    else if (s->kind == DEC_BPE)
        put_replaced(&w->list2, t, s->content, last ? nothing : space);
    else if (s->kind == DEC_WORDPIECE)
        wordpiece_string(w, s, t, first);
    else
        BUG("decoder %d", (int)s->kind);
    decoder_end(w);
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
        decoder_end(w);
    } else {
        for (size_t i = 0; i < w->nends && !code; i++)
            if (s->kind == DEC_CTC)
                ctc_string(w, s, i);
            else
                code = decoder_step(w, s, decoder_string(w, i), i == 0, i + 1 == w->nends, e);
    }
    decoder_take(w);
    return code;
}

/* ---- all steps ------------------------------------------------------------------------------- */

int decoder_lists(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                  struct buf *text, struct err *e)
{
    w->nends2 = 0;
    buf_reset(&w->list2);
    for (size_t i = 0; i < n; i++) {
        if (!decoder_has(p, id[i]))
            continue;
        struct string_ref t = decoder_spelling(p, w, id[i]);
        buf_add(&w->list2, t.p, t.n);
        if (p->spec.no_decoder && i + 1 < n)
            buf_addc(&w->list2, ' ');
        decoder_end(w);
    }
    decoder_take(w);
    int code = 0;
    for (size_t i = 0; i < p->spec.ndec && !code; i++)
        code = run_step(w, &p->spec.dec[i], e);
    if (!code)
        buf_add(text, w->list.data, w->list.len);
    return code;
}
