/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CACHE_KEY_H
#define TOK_CACHE_KEY_H

/* A word of up to 15 bytes as two numbers, and their hash; for the files of this module. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/bytes.h"

enum { SHORT = 15 /* most bytes of a word that has a key */ };

/* Masks for two loads of eight bytes, by the length of the word. */
static const uint64_t low_mask[16] = {0x0,          0xff,         0xffff,         0xffffff,
                                      0xffffffff,   0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0};
static const uint64_t high_mask[16] = {0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0xff,
                                       0xffff,
                                       0xffffff,
                                       0xffffffff,
                                       0xffffffffff,
                                       0xffffffffffff,
                                       0xffffffffffffff};

/* high: the word's last bytes, and its length in bits 56 .. 59. */
struct key {
    uint64_t low, high; /* high is 0 if the word is longer */
};

static inline struct key key_of(const char *text, const uint32_t *start)
{
    size_t length = start[1] - start[0], k = length & 15;
    const char *p = text + start[0];
    uint64_t high = (load_u64(p + 8) & high_mask[k]) | (uint64_t)k << 56;
    return (struct key){load_u64(p) & low_mask[k], length <= SHORT ? high : 0};
}

static inline bool same_key(struct key a, struct key b)
{
    return a.low == b.low && a.high == b.high;
}

/* Odd; the upper bits of the products depend on all bits of the key. */
#define MIX_LOW 0x9E3779B97F4A7C15u
#define MIX_HIGH 0xD1B54A32D192ED03u

/* Use the high bits. Together with `high` it determines `low`. */
static inline uint64_t hash_of(struct key key)
{
    return key.low * MIX_LOW + key.high * MIX_HIGH;
}

#endif
