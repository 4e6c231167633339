/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/local_cache.h"

#include <sys/mman.h>
#include "base/core/mem.h"
#include "tok/cache/kernels.h"

enum {
    MOST_BITS = 15, /* 512 KiB */
    LEAST_BITS = SMALL_FIXED
};

void local_cache_init(struct local_cache *f, size_t bytes)
{
    *f = (struct local_cache){0};
    if (!cpu_avx512())
        return;
    f->bits = MOST_BITS;
    while (f->bits > LEAST_BITS && local_cache_bytes(f) > bytes)
        f->bits--;
    f->at = mem_pages(local_cache_bytes(f));
}

void local_cache_finish(struct local_cache *f)
{
    if (f->at)
        munmap(f->at, local_cache_bytes(f));
    *f = (struct local_cache){0};
}

size_t local_cache_bytes(const struct local_cache *f)
{
    return f->bits ? sizeof(*f->at) << f->bits : 0;
}

void local_cache_find_plain(const struct local_cache *f, const char *text, const uint32_t *start,
                            size_t n, struct local_words *w)
{
    w->others = 0;
    for (size_t i = 0; i < n; i++) {
        struct key key = key_of(text, start + i);
        w->hash[i] = hash_of(key);
        w->key[i] = small_is(key) ? small_key(key, w->hash[i]) : 0;
        const struct small *at = f->at ? &f->at[w->hash[i] >> (64 - f->bits)] : &f->none;
        w->ids[i] = at->ids;
        w->other[w->others] = (uint32_t)i;
        w->others += !f->at || !w->key[i] || at->key != w->key[i];
    }
}

void local_cache_find(const struct local_cache *f, const char *text, const uint32_t *start,
                      size_t n, struct local_words *w)
{
    cache_kernels[f->at ? simd_best() : SIMD_PLAIN].local_find(f, text, start, n, w);
}
