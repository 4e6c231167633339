/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/precompiled.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "tok/sp_model.h"
#include "tok/unicode.h"

enum { LOOKED_UP = 5 /* bytes of a cluster that is looked up as a whole */ };

/* ---- base64 -------------------------------------------------------------------------------- */

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Groups of four; false: there is something else. */
static bool decode(const char *p, size_t n, size_t pad, unsigned char *to)
{
    for (size_t i = 0; i < n; i += 4) {
        uint32_t bits = 0;
        size_t keep = i + 4 == n ? 4 - pad : 4;
        for (size_t k = 0; k < 4; k++) {
            int d = k < keep ? digit(p[i + k]) : 0;
            if (d < 0)
                return false;
            bits = bits << 6 | (uint32_t)d;
        }
        for (size_t k = 0; k + 1 < keep; k++)
            *to++ = (unsigned char)(bits >> (16 - 8 * k));
        if (bits & ((1u << 8 * (4 - keep)) - 1))
            return false; /* bits that no byte has */
    }
    return true;
}

int precompiled_read(const char *where, struct arena *arena, const char *base64, size_t n,
                     const char **ret, size_t *ret_n, struct err *e)
{
    size_t pad = 0;
    while (pad < 2 && pad < n && base64[n - 1 - pad] == '=')
        pad++;
    unsigned char *p = arena_take(arena, n / 4 * 3 + 1, 1);
    if (n % 4 || !decode(base64, n, pad, p))
        return err_set(e, ERR_DATA, "%s.precompiled_charsmap is no base64", where);
    *ret = (const char *)p;
    *ret_n = n / 4 * 3 - pad;
    return sp_check_charsmap(where, 0, p, *ret_n, e);
}

/* ---- text ---------------------------------------------------------------------------------- */

static uint32_t unit_at(const char *units, uint32_t i)
{
    return load_u32(units + (size_t)i * 4);
}

static uint32_t unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & (1u << 9)) >> 6);
}

/* What the shortest rule at p gives, NULL if there is none. */
static const char *find(const char *rules, const char *p, size_t n)
{
    const char *units = rules + 4, *strings = units + load_u32(rules);
    uint32_t at = unit_offset(unit_at(units, 0));
    for (size_t i = 0; i < n && p[i]; i++) {
        uint32_t place = at ^ (unsigned char)p[i], u = unit_at(units, place);
        if ((u & 0x800000ffu) != (unsigned char)p[i])
            break;
        at = place ^ unit_offset(u);
        if ((u >> 8) & 1)
            return strings + (unit_at(units, at) & 0x7fffffffu);
    }
    return NULL;
}

void precompiled_run(const char *rules, const char *text, size_t n, struct buf *out)
{
    for (size_t at = 0, k; at < n; at += k) {
        k = uni_cluster_length(text + at, n - at);
        const char *to = k <= LOOKED_UP ? find(rules, text + at, k) : NULL;
        if (to) {
            buf_adds(out, to);
            continue;
        }
        for (size_t i = 0, c; i < k; i += c) {
            c = utf8_char(text + at + i, text + at + k);
            to = find(rules, text + at + i, c);
            if (to)
                buf_adds(out, to);
            else
                buf_add(out, text + at + i, c);
        }
    }
}
