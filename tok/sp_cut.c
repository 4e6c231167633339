/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp_cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/proto.h"
#include "base/utf8.h"

/* Fields of sentencepiece_model.proto: the normalizer's part and what is in it. */
enum { MODEL_NORMALIZER = 3 };
enum { NORM_NAME = 1, NORM_CHARSMAP, NORM_PREFIX, NORM_EXTRA, NORM_ESCAPE };

enum { MARK = 0x2581 }; /* of a space */

/* ---- tables --------------------------------------------------------------------------------- */

/* The character at p, which is there in full and UTF-8; its bytes in *ret_n. */
static uint32_t char_at(const char *p, size_t *ret_n)
{
    const unsigned char *s = (const unsigned char *)p;
    size_t k = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = k == 1 ? s[0] : s[0] & (0x7fu >> k);
    for (size_t i = 1; i < k; i++)
        c = c << 6 | (s[i] & 0x3f);
    *ret_n = k;
    return c;
}

static bool is_utf8(const struct sp_piece *p)
{
    const char *s = p->text, *end = s + p->length;
    for (size_t k; s < end; s += k)
        if (!(k = utf8_char(s, end)))
            return false;
    return true;
}

static uint64_t pair_of(uint32_t first, uint32_t second)
{
    return (uint64_t)first << 32 | second;
}

static int by_code(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* False when a piece is not UTF-8. */
static bool find_pairs(struct sp_cut *c, const struct sp_model *m)
{
    size_t bytes = 0, n = 0;
    for (size_t i = 0; i < m->npieces; i++)
        bytes += m->piece[i].length;
    c->pair = mem_new(bytes, sizeof(*c->pair));
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        size_t k;
        if (!is_utf8(p))
            return false;
        uint32_t first = char_at(p->text, &k);
        for (size_t at = k; at < p->length; at += k) {
            uint32_t second = char_at(p->text + at, &k);
            c->pair[n++] = pair_of(first, second);
            first = second;
        }
    }
    qsort(c->pair, n, sizeof(*c->pair), by_code);
    for (size_t i = 0; i < n; i++)
        if (!i || c->pair[i] != c->pair[i - 1])
            c->pair[c->npairs++] = c->pair[i];
    c->pair = mem_grow(c->pair, c->npairs + 1, sizeof(*c->pair));
    return true;
}

/* The model with a normalizer that does nothing: of a part that comes twice the last fields count.
 */
static void make_bare(struct buf *b, const void *p, size_t n)
{
    struct buf in = {0};
    protow_bytes(&in, NORM_NAME, "identity", 8);
    protow_bytes(&in, NORM_CHARSMAP, "", 0);
    protow_varint(&in, NORM_PREFIX, 0);
    protow_varint(&in, NORM_EXTRA, 0);
    protow_varint(&in, NORM_ESCAPE, 0);
    buf_add(b, p, n);
    protow_bytes(b, MODEL_NORMALIZER, in.data, in.len);
    buf_finish(&in);
}

int sp_cut_open(const char *name, const void *p, size_t n, const struct sp_model *m,
                struct sp_cut **ret, struct err *e)
{
    *ret = NULL;
    if (m->kind == SP_UNIGRAM || m->whitespace_as_suffix || m->self_tests)
        return 0;
    struct sp_cut *c = mem_new(1, sizeof(*c));
    struct buf bare = {0};
    c->piece = SP_CUT_PIECE;
    c->unk = m->byte_fallback ? -1 : m->unk;
    c->words = m->kind == SP_WORD;
    sp_norm_init(&c->norm, m);
    if (!find_pairs(c, m)) {
        sp_cut_close(c);
        return 0;
    }
    make_bare(&bare, p, n);
    int code = sp_lib_open(name, bare.data, bare.len, &c->bare, e);
    buf_finish(&bare);
    if (code)
        sp_cut_close(c);
    else
        *ret = c;
    return code;
}

void sp_cut_close(struct sp_cut *c)
{
    if (!c)
        return;
    sp_norm_finish(&c->norm);
    sp_lib_close(c->bare);
    free(c->pair);
    free(c);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* May the normalized text be cut at `at`, where a character begins that follows another one? */
static bool may_cut(const struct sp_cut *c, const char *text, size_t at)
{
    size_t before = at - 1, k;
    while ((text[before] & 0xc0) == 0x80)
        before--;
    uint32_t first = char_at(text + before, &k), second = char_at(text + at, &k);
    if (c->words)
        return second == MARK && first != MARK;
    uint64_t pair = pair_of(first, second);
    return !bsearch(&pair, c->pair, c->npairs, sizeof(pair), by_code);
}

/* The last place where the normalized text may be cut, behind what was looked at; 0: none. */
static size_t find_cut(const struct sp_cut *c, struct sp_cut_state *st)
{
    size_t from = st->looked;
    st->looked = st->text.len;
    for (size_t at = st->text.len; at-- > (from ? from : 1);)
        if ((st->text.data[at] & 0xc0) != 0x80 && may_cut(c, st->text.data, at))
            return at;
    return 0;
}

/* Encodes the first n normalized bytes and drops them. */
static int encode(const struct sp_cut *c, struct sp_cut_state *st, struct sp_room *room, size_t n,
                  struct tok_ids *ids, struct err *e)
{
    const int *id;
    size_t k, from = 0;
    int code = sp_lib_encode(c->bare, room, st->text.data, n, &id, &k, e);
    if (code)
        return code;
    if (k && st->after_unknown && id[0] == c->unk)
        from = 1;
    memcpy(tok_ids_reserve(ids, k - from), id + from, (k - from) * sizeof(*id));
    ids->n += k - from;
    if (k)
        st->after_unknown = c->unk >= 0 && id[k - 1] == c->unk;
    st->text.len -= n;
    memmove(st->text.data, st->text.data + n, st->text.len);
    st->looked = 0; /* the rest is short, or was looked at in vain and is looked at once more */
    return 0;
}

/* Normalizes text[0 .. n) and encodes what can be cut off; *ret_used is what was normalized. */
static int put(const struct sp_cut *c, struct sp_cut_state *st, struct sp_room *room,
               const char *text, size_t n, bool last, size_t *ret_used, struct tok_ids *ids,
               struct err *e)
{
    size_t used = 0, k;
    int code = 0;
    do {
        k = sp_norm_put(&c->norm, &st->norm, text + used, n - used, last, st->text.len + c->piece,
                        &st->text);
        used += k;
        size_t cut = st->text.len >= st->looked + c->piece ? find_cut(c, st) : 0;
        if (cut)
            code = encode(c, st, room, cut, ids, e);
    } while (!code && k && used < n);
    *ret_used = used;
    return code;
}

int sp_cut_put(const struct sp_cut *c, struct sp_cut_state *st, struct sp_room *room,
               const char *text, size_t n, bool last, struct tok_ids *ids, struct err *e)
{
    size_t used = 0;
    int code;
    if (st->raw.len) {
        buf_add(&st->raw, text, n);
        code = put(c, st, room, st->raw.data, st->raw.len, last, &used, ids, e);
        st->raw.len -= used;
        memmove(st->raw.data, st->raw.data + used, st->raw.len);
    } else {
        code = put(c, st, room, text, n, last, &used, ids, e);
        buf_add(&st->raw, text + used, n - used);
    }
    if (!code && last) {
        sp_norm_end(&c->norm, &st->norm, &st->text);
        code = st->text.len ? encode(c, st, room, st->text.len, ids, e) : 0;
    }
    if (code || last)
        sp_cut_reset(st);
    return code;
}

void sp_cut_reset(struct sp_cut_state *st)
{
    buf_finish(&st->raw);
    buf_finish(&st->text);
    *st = (struct sp_cut_state){.invalid = st->invalid + st->norm.invalid};
}
