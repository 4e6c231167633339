/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/precompiled.h"

#include "base/core/bytes.h"
#include "base/core/utf8.h"
#include "tok/text/base64.h"
#include "tok/text/charsmap.h"
#include "tok/unicode/unicode.h"

int precompiled_read(const char *where, struct arena *arena, const char *base64, size_t n,
                     const char **ret, size_t *ret_n, struct err *e)
{
    uint8_t *p = arena_take(arena, n / 4 * 3 + 1, 1);
    ptrdiff_t size = base64_get(base64, n, true, p);
    if (size < 0)
        return err_set(e, ERR_DATA, "%s.precompiled_charsmap is not base64", where);
    *ret = (const char *)p;
    *ret_n = (size_t)size;
    return sp_check_charsmap(where, 0, p, *ret_n, e);
}

/* ---- text ---------------------------------------------------------------------------------- */

static uint32_t precompiled_unit_at(const char *units, uint32_t i)
{
    return load_u32(units + (size_t)i * 4);
}

static uint32_t precompiled_unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & (1u << 9)) >> 6);
}

const char *precompiled_find(const char *rules, const char *p, size_t n)
{
    const char *units = rules + 4, *strings = units + load_u32(rules);
    uint32_t at = precompiled_unit_offset(precompiled_unit_at(units, 0));
    for (size_t i = 0; i < n && p[i]; i++) {
        uint32_t place = at ^ (unsigned char)p[i], u = precompiled_unit_at(units, place);
        if ((u & 0x800000ffu) != (unsigned char)p[i])
            break;
        at = place ^ precompiled_unit_offset(u);
        if ((u >> 8) & 1)
            return strings + (precompiled_unit_at(units, at) & 0x7fffffffu);
    }
    return NULL;
}

const char *precompiled_find_cluster(const char *rules, const char *p, size_t n)
{
    return n <= PRECOMPILED_CLUSTER ? precompiled_find(rules, p, n) : NULL;
}

void precompiled_put(const char *rules, const char *p, size_t n, bool whole, struct buf *out)
{
    const char *to = whole ? precompiled_find_cluster(rules, p, n) : NULL;
    if (to) {
        buf_adds(out, to);
        return;
    }
    for (size_t i = 0, c; i < n; i += c) {
        c = utf8_char(p + i, p + n);
        to = whole && c == n ? NULL : precompiled_find(rules, p + i, c); /* not twice */
        if (to)
            buf_adds(out, to);
        else
            buf_add(out, p + i, c);
    }
}

/* Whether a cluster ends after the character at `at`, as between any two of ASCII but CR and LF. */
static bool precompiled_alone(const char *text, size_t at, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    return p[at] < 0x80 && p[at] != '\r' && (at + 1 == n || p[at + 1] < 0x80);
}

void precompiled_run(const char *rules, const char *text, size_t n, struct buf *out)
{
    for (size_t at = 0, k; at < n; at += k) {
        k = precompiled_alone(text, at, n) ? 1 : uni_cluster_length(text + at, n - at);
        precompiled_put(rules, text + at, k, true, out);
    }
}
