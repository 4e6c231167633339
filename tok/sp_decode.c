/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp_decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

static const char space_mark[] = "\xe2\x96\x81", replacement[] = "\xef\xbf\xbd";

enum { AT_ONCE = 256, SHORT = 16 };

enum { TEXT, FIXED, BYTE }; /* a piece; control or unknown, which keep their spaces; a byte */

struct surface {
    uint32_t at, length; /* in `text` */
    uint8_t kind, marks; /* marks: it begins with so many (255 at most) */
    unsigned char byte;
};

struct sp_decoder {
    struct surface *of; /* by id */
    struct buf text;    /* SHORT bytes behind are readable */
    bool strip, strip_all;
};

static void add_text(struct sp_decoder *d, struct surface *s, const struct sp_piece *p)
{
    bool leading = true;
    for (size_t i = 0; i < p->length;) {
        bool mark = p->length - i >= 3 && memcmp(p->text + i, space_mark, 3) == 0;
        leading &= mark;
        s->marks = (uint8_t)(s->marks + (leading && s->marks < 255));
        buf_addc(&d->text, mark ? ' ' : p->text[i]);
        i += mark ? 3 : 1;
    }
}

static int hex(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* The library looks a piece up by its name: of two that share it the reserved one counts. */
static void add_surface(struct sp_decoder *d, const struct sp_model *m, size_t id)
{
    const struct sp_piece *p = &m->piece[id];
    p = &m->piece[sp_model_find(m, p->text, p->length)];
    struct surface *s = &d->of[id];
    s->at = (uint32_t)d->text.len;
    s->kind = p->type == SP_BYTE                               ? BYTE
              : p->type == SP_CONTROL || p->type == SP_UNKNOWN ? FIXED
                                                               : TEXT;
    if (p->type == SP_BYTE)
        s->byte = (unsigned char)(hex(p->text[3]) << 4 | hex(p->text[4]));
    else if (p->type == SP_UNKNOWN)
        buf_adds(&d->text, m->unk_surface);
    else if (p->type != SP_CONTROL)
        add_text(d, s, p);
    s->length = (uint32_t)(d->text.len - s->at);
}

struct sp_decoder *sp_decoder_create(const struct sp_model *m)
{
    if (m->has_denormalizer)
        return NULL;
    struct sp_decoder *d = mem_new(1, sizeof(*d));
    d->of = mem_new(m->npieces, sizeof(*d->of));
    for (size_t i = 0; i < m->npieces; i++)
        add_surface(d, m, i);
    memset(buf_reserve(&d->text, SHORT), 0, SHORT);
    d->strip = m->normalizer.add_dummy_prefix || m->normalizer.remove_extra_whitespaces;
    d->strip_all = m->normalizer.remove_extra_whitespaces;
    return d;
}

void sp_decoder_destroy(struct sp_decoder *d)
{
    if (!d)
        return;
    free(d->of);
    buf_finish(&d->text);
    free(d);
}

/* The bytes that begin at id[0]; returns how many ids they are. */
static size_t put_bytes(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t k = 0, from = text->len;
    while (k < n && d->of[id[k]].kind == BYTE)
        k++;
    struct buf raw = {0};
    char few[64];
    char *p = k <= sizeof(few) ? few : buf_reserve(&raw, k);
    for (size_t i = 0; i < k; i++)
        p[i] = (char)d->of[id[i]].byte;
    for (size_t i = 0, c; i < k; i += c) {
        c = utf8_char(p + i, p + k);
        buf_add(text, c ? p + i : replacement, c ? c : 3);
        c = c ? c : 1;
    }
    buf_finish(&raw);
    BUG_ON(text->len == from, "no byte");
    return k;
}

/* Until something was put out, spaces in front may go; returns the ids that are done. */
static size_t put_start(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t start = text->len, i = 0;
    bool taken = false;
    while (i < n && text->len == start && !taken) {
        const struct surface *s = &d->of[id[i]];
        if (s->kind == BYTE) {
            i += put_bytes(d, id + i, n - i, text);
            continue;
        }
        size_t skip = s->kind == TEXT && d->strip && s->marks ? 1 : 0;
        buf_add(text, d->text.data + s->at + skip, s->length - skip);
        taken = skip && !d->strip_all;
        i++;
    }
    return i;
}

void sp_decode_ids(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t i = put_start(d, id, n, text);
    while (i < n) {
        size_t end = n - i < AT_ONCE ? n : i + AT_ONCE, need = SHORT;
        for (size_t k = i; k < end; k++)
            need += d->of[id[k]].length;
        char *to = buf_reserve(text, need);
        for (; i < end && d->of[id[i]].kind != BYTE; i++) {
            const struct surface *s = &d->of[id[i]];
            memcpy(to, d->text.data + s->at, SHORT);
            if (s->length > SHORT)
                memcpy(to + SHORT, d->text.data + s->at + SHORT, s->length - SHORT);
            to += s->length;
        }
        text->len = (size_t)(to - text->data);
        if (i < end)
            i += put_bytes(d, id + i, n - i, text);
    }
}
