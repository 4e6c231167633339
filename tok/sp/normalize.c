/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/normalize.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

/* ---- rules: a darts-clone array, checked by tok/text/charsmap.c ------------------------------ */

static uint32_t normalize_unit_at(const struct sp_norm *s, uint32_t i)
{
    return load_u32(s->units + (size_t)i * 4);
}

static uint32_t normalize_unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & (1u << 9)) >> 6);
}

/*
 * The longest rule at p: its length, 0 if none matches, and its replacement. *ret_open: the text
 * ended while a longer match was still possible.
 */
static size_t match_rule(const struct sp_norm *s, const char *p, size_t n, const char **ret,
                         bool *ret_open)
{
    size_t longest = 0;
    uint32_t value = 0, at = normalize_unit_offset(normalize_unit_at(s, 0)), i = 0;
    for (; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        uint32_t place = at ^ c, u = normalize_unit_at(s, place);
        if ((u & 0x800000ffu) != c)
            break;
        at = place ^ normalize_unit_offset(u);
        if ((u >> 8) & 1) {
            longest = i + 1;
            value = normalize_unit_at(s, at) & 0x7fffffffu;
        }
    }
    *ret_open |= i == n;
    *ret = (const char *)s->strings + value;
    return longest;
}

/* The longest user-defined piece at p; 0: none. */
static size_t match_user(const struct sp_norm *s, const char *p, size_t n, bool *ret_open)
{
    size_t longest = 0, i = 0;
    uint32_t at = TRIE_ROOT;
    while (i < n && trie_step(&s->user, &at, p[i])) {
        i++;
        if (trie_value(&s->user, at) >= 0)
            longest = i;
    }
    *ret_open |= i == n;
    return longest;
}

/* ---- tables -------------------------------------------------------------------------------- */

/* No rule or user-defined piece begins with c and an ASCII byte, or is c alone. */
static bool stands_for_itself(const struct sp_norm *s, char c)
{
    uint32_t at = TRIE_ROOT;
    if (trie_step(&s->user, &at, c))
        return false;
    for (int next = 0; s->units && next < 128; next++) {
        char two[2] = {c, (char)next};
        uint32_t root = normalize_unit_offset(normalize_unit_at(s, 0)),
                 first = root ^ (unsigned char)c;
        uint32_t u = normalize_unit_at(s, first);
        if ((u & 0x800000ffu) != (unsigned char)c)
            return true;
        uint32_t second = first ^ normalize_unit_offset(u) ^ (unsigned char)two[1];
        if (((u >> 8) & 1) || (normalize_unit_at(s, second) & 0x800000ffu) == (unsigned char)two[1])
            return false;
    }
    return true;
}

/* The same for all other characters of the BMP, whatever follows. */
static void find_own(struct sp_norm *s)
{
    for (uint32_t c = 0x80; c < 0x10000; c++) {
        char text[4];
        const char *to;
        bool open = false;
        size_t n = utf8_put(text, c);
        bool space = n == s->space_length && memcmp(text, s->space, n) == 0;
        if ((c & 0xf800) != 0xd800 && !space && !match_user(s, text, n, &open) &&
            !(s->units && match_rule(s, text, n, &to, &open)) && !open)
            s->own[c / 64] |= (uint64_t)1 << (c % 64);
    }
}

static void init_user(struct sp_norm *s, const struct sp_model *m)
{
    struct trie_key *key = mem_new(m->count[SP_USER], sizeof(*key));
    size_t n = 0;
    for (size_t i = 0; i < m->npieces; i++)
        if (m->piece[i].type == SP_USER)
            key[n++] = (struct trie_key){m->piece[i].text, m->piece[i].length, (int32_t)i};
    trie_init(&s->user, key, n);
    free(key);
}

void sp_norm_init(struct sp_norm *s, const struct sp_model *m)
{
    const struct sp_normalizer *r = &m->normalizer;
    *s = (struct sp_norm){.prefix = r->add_dummy_prefix && !m->whitespace_as_suffix,
                          .suffix = r->add_dummy_prefix && m->whitespace_as_suffix,
                          .remove_extra = r->remove_extra_whitespaces,
                          .space = r->escape_whitespaces ? "\xe2\x96\x81" : " "};
    s->space_length = strlen(s->space);
    if (r->charsmap_size) {
        s->units = r->charsmap + 4;
        s->strings = s->units + load_u32(r->charsmap);
    }
    init_user(s, m);
    for (int c = 0; c < 128; c++)
        s->copy[c] = c != ' ' && stands_for_itself(s, (char)c);
    s->blank = stands_for_itself(s, ' ');
    find_own(s);
}

void sp_norm_finish(struct sp_norm *s)
{
    trie_finish(&s->user);
    *s = (struct sp_norm){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

enum { RUN = 1 << 12 }; /* bytes copied at a time */

static const char replacement[] = "\xef\xbf\xbd";

/*
 * Normalizes the item at p to *ret (*ret_n bytes); returns the bytes that it takes, 0 if more text
 * is needed to decide.
 */
static size_t next_item(const struct sp_norm *s, struct sp_norm_state *st, const char *p, size_t n,
                        bool last, const char **ret, size_t *ret_n)
{
    bool open = false;
    size_t k = match_user(s, p, n, &open);
    if (open && !last)
        return 0;
    *ret = p;
    *ret_n = k;
    if (k)
        return k;
    if (s->units)
        k = match_rule(s, p, n, ret, &open);
    if (open && !last)
        return 0;
    if (k) {
        *ret_n = strlen(*ret);
        return k;
    }
    *ret = p;
    *ret_n = k = utf8_char(p, p + n);
    if (k)
        return k;
    if (!last && n < 4 && (unsigned char)*p >= 0xc2)
        return 0; /* perhaps the beginning of a character */
    st->invalid++;
    *ret = replacement;
    *ret_n = 3;
    return 1;
}

const char *sp_norm_char(const struct sp_norm *s, const char *p, size_t n, size_t *ret_n)
{
    struct sp_norm_state st = {0};
    const char *to;
    next_item(s, &st, p, n, true, &to, ret_n);
    return to;
}

size_t sp_norm_item(const struct sp_norm *s, const char *p, size_t n, const char **ret,
                    size_t *ret_n)
{
    struct sp_norm_state st = {0};
    return next_item(s, &st, p, n, true, ret, ret_n);
}

/* Trailing spaces are dropped, so they are held until something follows. */
static void put_held(const struct sp_norm *s, struct sp_norm_state *st, struct buf *out)
{
    for (; st->held; st->held--)
        buf_add(out, s->space, s->space_length);
}

static void put_space(const struct sp_norm *s, struct sp_norm_state *st, struct buf *out)
{
    if (s->remove_extra)
        st->held++;
    else
        buf_add(out, s->space, s->space_length);
}

/* Appends a normalized item, with spaces in the form that the model uses. */
static void put_item(const struct sp_norm *s, struct sp_norm_state *st, const char *p, size_t n,
                     struct buf *out)
{
    while (n && st->after_space && *p == ' ')
        p++, n--;
    if (!n)
        return;
    for (size_t i = 0; i < n;) {
        if (p[i] == ' ') {
            put_space(s, st, out);
            i++;
        } else if (n - i >= s->space_length && memcmp(p + i, s->space, s->space_length) == 0) {
            put_space(s, st, out); /* a mark that was in the text is dropped at its end, too */
            i += s->space_length;
        } else {
            put_held(s, st, out);
            buf_addc(out, p[i++]);
        }
    }
    st->after_space = s->remove_extra && p[n - 1] == ' ';
}

/* Length of the run at p that stays unchanged; an ASCII byte counts only if another follows. */
static size_t own_run(const struct sp_norm *s, const char *p, size_t n)
{
    size_t i = 0;
    while (i + 3 <= n) {
        const unsigned char *c = (const unsigned char *)p + i;
        if (c[0] < 0x80) {
            if (c[1] >= 0x80 || !s->copy[c[0]])
                break;
            i++;
            continue;
        }
        bool three = c[0] >= 0xe0;
        uint32_t code = three ? (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu)
                              : (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
        bool whole = c[0] >= 0xc2 && c[0] < 0xf0 && (c[1] & 0xc0) == 0x80 &&
                     (!three || ((c[2] & 0xc0) == 0x80 && code >= 0x800));
        if (!whole || !(s->own[code / 64] >> (code % 64) & 1))
            break;
        i += three ? 3 : 2;
    }
    return i;
}

/* Copies what needs no lookup; returns the bytes used. */
static size_t normalize_put_plain(const struct sp_norm *s, struct sp_norm_state *st,
                                  const char *text, size_t n, struct buf *out)
{
    if (s->blank && n > 1 && text[0] == ' ' && !(text[1] & 0x80)) {
        put_item(s, st, text, 1, out);
        return 1;
    }
    size_t run = own_run(s, text, n);
    if (run) {
        put_held(s, st, out);
        st->after_space = false;
        buf_add(out, text, run);
    }
    return run;
}

size_t sp_norm_put(const struct sp_norm *s, struct sp_norm_state *st, const char *text, size_t n,
                   bool last, size_t enough, struct buf *out)
{
    size_t i = 0;
    while (i < n && out->len <= enough) {
        const char *item;
        size_t length,
            k = st->begun ? normalize_put_plain(s, st, text + i, n - i < RUN ? n - i : RUN, out)
                          : 0;
        if (k) {
            i += k;
            continue;
        }
        k = next_item(s, st, text + i, n - i, last, &item, &length);
        if (!k)
            break;
        i += k;
        if (!st->begun && s->remove_extra && length == 1 && *item == ' ')
            continue; /* leading white space */
        if (!st->begun) {
            st->begun = true;
            st->after_space = s->remove_extra;
            if (s->prefix)
                put_space(s, st, out);
        }
        put_item(s, st, item, length, out);
    }
    return i;
}

void sp_norm_end(const struct sp_norm *s, struct sp_norm_state *st, struct buf *out)
{
    st->held = 0;
    if (st->begun && s->suffix)
        buf_add(out, s->space, s->space_length);
}

/* ---- CR LF --------------------------------------------------------------------------------- */

bool sp_put_lines(struct buf *out, const char *text, size_t n, bool cr, bool last)
{
    size_t done = 0;
    buf_reserve(out, n + 1);
    if (cr && !n && !last)
        return true;
    if (cr && !(n && text[0] == '\n'))
        buf_addc(out, '\r');
    while (done < n) {
        const char *at = memchr(text + done, '\r', n - done);
        size_t k = at ? (size_t)(at - text) : n;
        buf_add(out, text + done, k - done);
        done = k + (at != NULL);
        if (at && done == n && !last)
            return true;
        if (at && !(done < n && text[done] == '\n'))
            buf_addc(out, '\r');
    }
    return false;
}

size_t *sp_lines_from(const char *text, size_t n)
{
    size_t *from = mem_new(n + 1, sizeof(*from)), k = 0;
    for (size_t i = 0; i < n; i++, k++) {
        from[k] = i;
        i += text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
    }
    from[k] = n;
    return from;
}
