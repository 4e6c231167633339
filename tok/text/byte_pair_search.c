/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/byte_pair_search.h"

#include <stdbool.h>

#include "tok/text/kernels.h"

void pair_find_add(struct pair_find *f, unsigned char first, unsigned char second)
{
    unsigned k = (unsigned)first | (unsigned)second << 8;
    if (!f->group_of[first])
        f->group_of[first] = (unsigned char)(1u << (f->groups++ % 8));
    unsigned char group = f->group_of[first];
    f->bit[k >> 6] |= (uint64_t)1 << (k & 63);
    f->half[0][first & 15] |= group;
    f->half[1][first >> 4] |= group;
    f->half[2][second & 15] |= group;
    f->half[3][second >> 4] |= group;
}

void pair_find_add_single(struct pair_find *f, unsigned char first)
{
    for (unsigned second = 0; second < 256; second++)
        pair_find_add(f, first, (unsigned char)second);
}

size_t pair_find_skip_plain(const struct pair_find *f, const unsigned char *text, size_t n,
                            size_t at)
{
    (void)f, (void)text, (void)n;
    return at;
}

size_t pair_find_next(const struct pair_find *f, const char *text, size_t n, size_t at)
{
    const unsigned char *s = (const unsigned char *)text;
    at = text_kernels[simd_best()].pair_find_skip(f, s, n, at);
    while (at + 1 < n && !pair_find_stands(f, s + at))
        at++;
    return at + 1 < n || (at < n && f->group_of[s[at]]) ? at : n;
}
