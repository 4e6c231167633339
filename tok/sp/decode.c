/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/id_bytes.h"

static const char space_mark[] = "\xe2\x96\x81", replacement[] = "\xef\xbf\xbd";

struct sp_decoder {
    struct id_bytes_table of; /* ID_BYTES_RUN: a byte from 0x80; ID_BYTES_MARK: text that begins
                                 with a space */
    bool strip, strip_all;
};

/* A piece's text, its marks as spaces. */
static void decode_spell(struct buf *b, const struct sp_piece *p)
{
    buf_reset(b);
    char *to = buf_reserve(b, p->length);
    for (size_t i = 0; i < p->length;) {
        bool mark = p->text[i] == space_mark[0] && p->length - i >= 3 &&
                    memcmp(p->text + i, space_mark, 3) == 0;
        *to++ = mark ? ' ' : p->text[i];
        i += mark ? 3 : 1;
    }
    b->len = (size_t)(to - b->data);
}

static int decode_hex(char c)
{
    return c <= '9' ? c - '0' : c - 'A' + 10;
}

/* The library looks up a piece by its name: of two with the same name, the reserved one counts. */
static void add_entry(struct sp_decoder *d, const struct sp_model *m, size_t id, struct buf *b)
{
    const struct sp_piece *p = &m->piece[id];
    int32_t reserved = string_map_find(&m->reserved, p->text, p->length);
    p = reserved >= 0 ? &m->piece[reserved] : p;
    if (p->type == SP_BYTE) {
        int byte = decode_hex(p->text[3]) << 4 | decode_hex(p->text[4]);
        id_bytes_set(&d->of, id, &(char){(char)byte}, 1,
                     byte < 0x80 ? 0
                                 : ID_BYTES_RUN); /* ASCII is never part of a longer character */
    } else if (p->type == SP_UNKNOWN) {
        id_bytes_set(&d->of, id, m->unk_surface, strlen(m->unk_surface), 0);
    } else if (p->type == SP_CONTROL) {
        id_bytes_set(&d->of, id, "", 0, 0);
    } else {
        decode_spell(b, p);
        bool mark = b->len && p->text[0] == space_mark[0] && b->data[0] == ' ';
        id_bytes_set(&d->of, id, b->data, b->len, mark ? ID_BYTES_MARK : 0);
    }
}

struct sp_decoder *sp_decoder_create(const struct sp_model *m)
{
    if (m->has_denormalizer)
        return NULL;
    struct sp_decoder *d = mem_new(1, sizeof(*d));
    struct buf b = {0};
    id_bytes_init(&d->of, m->npieces);
    for (size_t i = 0; i < m->npieces; i++)
        add_entry(d, m, i, &b);
    buf_finish(&b);
    d->strip = m->normalizer.add_dummy_prefix || m->normalizer.remove_extra_whitespaces;
    d->strip_all = m->normalizer.remove_extra_whitespaces;
    return d;
}

void sp_decoder_destroy(struct sp_decoder *d)
{
    if (!d)
        return;
    id_bytes_finish(&d->of);
    free(d);
}

static bool is_byte(const struct sp_decoder *d, int32_t id)
{
    return id_bytes_tag(&d->of.of[id]) & ID_BYTES_RUN;
}

/* Appends the bytes from id[0] on; returns the number of ids. */
static size_t put_bytes(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t k = 0, from = text->len;
    while (k < n && is_byte(d, id[k]))
        k++;
    struct buf raw = {0};
    char few[64];
    char *p = k <= sizeof(few) ? few : buf_reserve(&raw, k);
    for (size_t i = 0; i < k; i++)
        p[i] = d->of.of[id[i]].text[0];
    for (size_t i = 0, c; i < k; i += c) {
        c = utf8_char(p + i, p + k);
        buf_add(text, c ? p + i : replacement, c ? c : 3);
        c = c ? c : 1;
    }
    buf_finish(&raw);
    BUG_ON(text->len == from, "no byte");
    return k;
}

/* Until there is output, leading spaces may be dropped; returns the number of ids decoded. */
static size_t put_start(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t start = text->len, i = 0;
    bool taken = false;
    while (i < n && text->len == start && !taken) {
        if (is_byte(d, id[i])) {
            i += put_bytes(d, id + i, n - i, text);
            continue;
        }
        size_t k, skip = d->strip && id_bytes_tag(&d->of.of[id[i]]) & ID_BYTES_MARK ? 1 : 0;
        const char *p = id_bytes_text(&d->of, id[i], &k);
        buf_add(text, p + skip, k - skip);
        taken = skip && !d->strip_all;
        i++;
    }
    return i;
}

/* Decodes any ids. */
static void put_odd(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k < n && !is_byte(d, id[k]))
            k++;
        id_bytes_append(&d->of, id + i, k - i, text);
        i = k;
        if (i < n)
            i += put_bytes(d, id + i, n - i, text);
    }
}

void sp_decode_ids(const struct sp_decoder *d, const int32_t *id, size_t n, struct buf *text)
{
    size_t odd;
    for (size_t i = put_start(d, id, n, text); i < n; i += odd) {
        i += id_bytes_append_runs(&d->of, id + i, n - i, text, &odd);
        put_odd(d, id + i, odd, text);
    }
}
