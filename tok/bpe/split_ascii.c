/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_ascii.h"

#include "tok/bpe/kernels.h"

size_t split_ascii_plain(const unsigned char cut[128][16], const bool plain[128], const char *text,
                         size_t at, size_t n, uint32_t *start, size_t *k)
{
    (void)cut, (void)plain, (void)text, (void)n, (void)start, (void)k;
    return at;
}

size_t cut_ascii(const unsigned char cut[128][16], const bool plain[128], const char *text,
                 size_t at, size_t n, uint32_t *start, size_t *k)
{
    if ((unsigned char)text[at - 1] & 0x80)
        return at;
    return bpe_kernels[simd_best()].split_ascii(cut, plain, text, at, n, start, k);
}
