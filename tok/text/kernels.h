/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_KERNELS_H
#define TOK_TEXT_KERNELS_H

/*
 * The loops of this module that are written for several processors: a table of functions, a row for
 * each level of base/core/simd.h. An entry gives what plain C gives; how far a call gets may
 * differ. tests/tok/test_kernels.c runs each entry against its twin,
 * tests/bench/bench_kernels.c times both.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/core/simd.h"
#include "tok/text/aho_corasick.h"
#include "tok/text/byte_pair_search.h"
#include "tok/text/id_bytes.h"

/* See aho_corasick.h. */
typedef void aho_corasick_walk_fn(const struct aho_corasick *a, const uint32_t *number,
                                  const struct aho_corasick_texts *texts, uint32_t *ret);

/* For an entry of 1 to 15 bytes without a zero byte, else false. *ret_good: they are UTF-8. */
typedef bool id_bytes_set_fn(struct id_bytes_entry *to, const char *p, size_t n, bool *ret_good);

/*
 * Copies the bytes of ids up to `end`, or to the first that is not in the table, and advances *id
 * to it; returns the end of the output. May write 16 bytes per id and 64 more. *seen: their tags.
 */
typedef char *id_bytes_put_fn(const struct id_bytes_entry *of, const int32_t **id,
                              const int32_t *end, char *to, unsigned *seen);

/* A position from `at` on before which there is no pair; may stop early. */
typedef size_t pair_find_skip_fn(const struct pair_find *f, const unsigned char *text, size_t n,
                                 size_t at);

struct text_kernels {
    aho_corasick_walk_fn *walk;
    id_bytes_set_fn *id_bytes_set;
    id_bytes_put_fn *id_bytes_put;
    pair_find_skip_fn *pair_find_skip;
};

extern const struct text_kernels text_kernels[SIMD_LEVELS];

aho_corasick_walk_fn aho_corasick_walk_plain, aho_corasick_walk_avx512;
id_bytes_set_fn id_bytes_set_plain, id_bytes_set_avx512;
id_bytes_put_fn id_bytes_put_plain, id_bytes_put_avx512;
pair_find_skip_fn pair_find_skip_plain, pair_find_skip_avx2;

/* id_bytes_put_fn one id at a time, for the ids left over by a kernel, too. */
static inline char *id_bytes_put_each(const struct id_bytes_entry *of, const int32_t **id,
                                      const int32_t *end, char *to, unsigned *seen)
{
    const int32_t *p = *id;
    unsigned all = 0;
    for (; p < end; p++) {
        const struct id_bytes_entry *s = &of[*p];
        unsigned tag = id_bytes_tag(s);
        memcpy(to, s->all, 16);
        if (tag >= ID_BYTES_FAR)
            break;
        all |= tag;
        to += tag & ID_BYTES_LENGTH;
    }
    *id = p;
    *seen |= all;
    return to;
}

#endif
