/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_BYTES_H
#define BASE_CORE_BYTES_H

/*
 * Little-endian loads and stores on unaligned memory, and checked arithmetic for every size that
 * came from a file. The project runs on little-endian machines only; a memcpy is the load.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weft reads and writes its files on little-endian machines only"
#endif

static inline uint16_t load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint32_t load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline int32_t load_i32(const void *p)
{
    return (int32_t)load_u32(p);
}

static inline int64_t load_i64(const void *p)
{
    return (int64_t)load_u64(p);
}

static inline void store_u16(void *p, uint16_t v)
{
    memcpy(p, &v, sizeof(v));
}

static inline void store_u32(void *p, uint32_t v)
{
    memcpy(p, &v, sizeof(v));
}

static inline void store_u64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof(v));
}

/* True on success; `*ret` is written only then. */
static inline bool checked_mul(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t v;
    if (__builtin_mul_overflow(a, b, &v))
        return false;
    *ret = v;
    return true;
}

static inline bool checked_add(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t v;
    if (__builtin_add_overflow(a, b, &v))
        return false;
    *ret = v;
    return true;
}

static inline uint64_t align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

#endif
