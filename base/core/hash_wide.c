/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/hash_wide.h"

#include "base/core/cpu.h"
#include "base/core/err.h"

/*
 * The installed library uses SSE2 only. Its header contains the whole implementation and is
 * compiled for AVX-512 in this file, which has nothing else in it, so that no other code is.
 */
#ifdef __x86_64__
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f")
#endif

#define XXH_INLINE_ALL
#define XXH_VECTOR 3 /* XXH_AVX512 */
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(struct xxh_wide), "room for a state");

void xxh_wide_reset(struct xxh_wide *h)
{
    XXH3_128bits_reset((XXH3_state_t *)h);
}

void xxh_wide_add(struct xxh_wide *h, const void *p, size_t n)
{
    XXH3_128bits_update((XXH3_state_t *)h, p, n);
}

void xxh_wide_digest(const struct xxh_wide *h, unsigned char ret[16])
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, XXH3_128bits_digest((const XXH3_state_t *)h));
    memcpy(ret, c.digest, 16);
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

bool xxh_wide_able(void)
{
    return cpu_avx512();
}

#else

bool xxh_wide_able(void)
{
    return false;
}

void xxh_wide_reset(struct xxh_wide *h)
{
    (void)h;
    BUG("AVX-512 on a processor without");
}

void xxh_wide_add(struct xxh_wide *h, const void *p, size_t n)
{
    (void)p, (void)n;
    xxh_wide_reset(h);
}

void xxh_wide_digest(const struct xxh_wide *h, unsigned char ret[16])
{
    (void)h, (void)ret;
    BUG("AVX-512 on a processor without");
}

#endif
