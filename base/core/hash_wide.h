/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_HASH_WIDE_H
#define BASE_CORE_HASH_WIDE_H

/* For hash.c alone: XXH3-128 by AVX-512. */

#include <stdbool.h>
#include <stddef.h>

struct xxh_wide {
    _Alignas(64) unsigned char state[640];
};

bool xxh_wide_able(void); /* if false, the others must not be called */
void xxh_wide_reset(struct xxh_wide *h);
void xxh_wide_add(struct xxh_wide *h, const void *p, size_t n);
void xxh_wide_digest(const struct xxh_wide *h, unsigned char ret[16]); /* as xxh128sum prints it */

#endif
