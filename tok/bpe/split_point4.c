/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_point4.h"

#include <stdlib.h>
#include "base/core/mem.h"
#include "tok/bpe/kernels.h"
#include "tok/bpe/split_point4_internal.h"

static bool is_wide(const char *p)
{
    return ((unsigned char)*p & 0xf0) == 0xe0;
}

/* ---- filling ------------------------------------------------------------------------------- */

void split_point4_init(struct split_point4 *t, size_t bytes)
{
    int bits = 10;
    while (bits < 17 && (size_t)8 << bits < bytes)
        bits++;
    *t = (struct split_point4){mem_new((size_t)1 << bits, sizeof(*t->word)), 32 - bits};
}

void split_point4_finish(struct split_point4 *t)
{
    free(t->word);
    *t = (struct split_point4){0};
}

static uint64_t table(uint32_t row, uint32_t column)
{
    uint64_t line = column == ANY ? 0xff : (uint64_t)1 << column;
    return row == ANY ? line * 0x0101010101010101u : line << 8 * row;
}

/* Each character is in the lower three bytes; 0: the token ends before it. */
static void split4_add(struct split_point4 *t, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    uint32_t x = split_point4_hash(b, c), y = x * MIX_SECOND;
    t->word[x >> t->shift] |= table(a ? a * MIX_LEFT >> 29 : ANY, d ? d * MIX_RIGHT >> 29 : ANY);
    t->word[y >> t->shift] |= table(a ? a * MIX_RIGHT >> 29 : ANY, d ? d * MIX_BOTH >> 29 : ANY);
}

void split_point4_add(struct split_point4 *t, const char *token, size_t n)
{
    for (size_t at = WIDE_BYTES; at + WIDE_BYTES <= n; at++) {
        const char *p = token + at;
        bool begins = at == WIDE_BYTES, ends = at + WIDE_BYTES == n;
        bool before = at >= 2 * WIDE_BYTES && is_wide(p - 2 * WIDE_BYTES);
        bool behind = n - at >= 2 * WIDE_BYTES && is_wide(p + WIDE_BYTES);
        if (!is_wide(p) || !is_wide(p - WIDE_BYTES) || !(begins || before) || !(ends || behind))
            continue; /* never looked up */
        split4_add(t, before ? split_point4_at(p - 2 * WIDE_BYTES) : 0,
                   split_point4_at(p - WIDE_BYTES), split_point4_at(p),
                   behind ? split_point4_at(p + WIDE_BYTES) : 0);
    }
}

/* ---- asking -------------------------------------------------------------------------------- */

/* Is it a plain character of three bytes? */
static bool is_plain(const uint64_t *plain, const char *p)
{
    uint32_t w = split_point4_at(p), c = (w & 0xf) << 12 | (w >> 2 & 0xfc0) | (w >> 16 & 0x3f);
    return (w & 0xc0c0f0) == 0x8080e0 && c >= 0x1000 && c >> 11 != 0xd800 >> 11 &&
           (plain[c / 64] >> c % 64 & 1);
}

size_t split_point4_find_plain(const struct split_point4 *t, const uint64_t *plain,
                               const char *text, size_t at, size_t n, uint32_t *start, size_t *k)
{
    for (size_t good = at; at + LANES * WIDE_BYTES < n; at += WIDE_BYTES) {
        while (good <= at + AROUND * WIDE_BYTES && is_plain(plain, text + good))
            good += WIDE_BYTES;
        if (good <= at + AROUND * WIDE_BYTES)
            break;
        start[*k] = (uint32_t)at;
        *k += split_point4_is_cut(t, text + at);
    }
    return at;
}

size_t split_point4_find(const struct split_point4 *t, const uint64_t *plain, const char *text,
                         size_t at, size_t n, uint32_t *start, size_t *k)
{
    return bpe_kernels[simd_best()].split_point4(t, plain, text, at, n, start, k);
}
