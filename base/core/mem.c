/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif

static _Noreturn void exhausted(size_t n, size_t size)
{
    fprintf(stderr, "error: out of memory: cannot allocate %zu x %zu bytes\n", n, size);
    exit(ERR_RESOURCE);
}

void *mem_new(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        exhausted(n, size);
    return p;
}

void *mem_grow(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        exhausted(n, size);
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q)
        exhausted(n, size);
    return q;
}

void mem_large_pages(void *p, size_t n)
{
    const uintptr_t page = 2 << 20;
    uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1), to = ((uintptr_t)p + n) & ~(page - 1);
    if (from < to)
        madvise((char *)p + (from - (uintptr_t)p), to - from, MADV_HUGEPAGE); /* best effort */
}

void *mem_own(size_t n)
{
    const size_t line = 128; /* two cache lines: prefetchers fetch pairs */
    void *p;
    n = (n + line - 1) / line * line;
    if (posix_memalign(&p, line, n))
        exhausted(1, n);
    return memset(p, 0, n);
}

void *mem_block(size_t n)
{
    const size_t page = 2 << 20;
    size_t size = n % page < page / 2 ? n : (n + page - 1) / page * page;
    void *p;
    if (n < page / 2 || posix_memalign(&p, page, size))
        return mem_grow(NULL, n, 1);
    mem_large_pages(p, size);
    return p;
}

void *mem_pages(size_t n)
{
    const size_t large = 2 << 20, align = n >= large ? large : 4096;
    char *p = mmap(NULL, n + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exhausted(1, n);
    size_t before = (size_t)(-(uintptr_t)p & (align - 1));
    if (before)
        munmap(p, before);
    if (align - before)
        munmap(p + before + n, align - before);
    mem_large_pages(p + before, n);
    return p + before;
}

void *mem_pages_grow(void *p, size_t old, size_t n)
{
    void *to = mem_pages(n);
    if (mremap(p, old, n, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED) {
        memcpy(to, p, old); /* mremap takes one mapping, and madvise may have split it */
        munmap(p, old);
    }
    return to;
}

void mem_all_pages(void *p, size_t n)
{
    const uintptr_t page = 4096;
    uintptr_t from = ((uintptr_t)p + page - 1) & ~(page - 1), to = ((uintptr_t)p + n) & ~(page - 1);
#ifdef MADV_POPULATE_WRITE
    if (from < to && n >= 16 * page)
        madvise((char *)p + (from - (uintptr_t)p), to - from, MADV_POPULATE_WRITE);
#else
    (void)from, (void)to;
#endif
}

void mem_copy_past(void *to, const void *from, size_t n)
{
#ifdef __x86_64__
    char *p = to;
    const char *q = from;
    size_t before = -(uintptr_t)p & 63;
    if (n >= 4096) {
        memcpy(p, q, before);
        p += before;
        q += before;
        for (n -= before; n >= 64; n -= 64, p += 64, q += 64)
            for (int i = 0; i < 64; i += 16)
                _mm_stream_si128((__m128i *)(p + i), _mm_loadu_si128((const __m128i *)(q + i)));
        _mm_sfence(); /* before the data is published */
    }
    memcpy(p, q, n);
#else
    memcpy(to, from, n);
#endif
}

void mem_return_blocks(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20); /* else it grows with the sizes that are freed */
#endif
}

char *mem_strndup(const char *s, size_t n)
{
    char *p = mem_new(n + 1, 1);
    memcpy(p, s, n);
    return p;
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

char *mem_printf(const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    BUG_ON(n < 0, "bad format '%s'", fmt);
    char *p = mem_new((size_t)n + 1, 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

int mem_try(size_t n, size_t size, const char *what, void **ret, struct err *e)
{
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p)
        return err_set(e, ERR_RESOURCE, "not enough memory for %zu x %zu bytes: %s", n, size, what);
    *ret = p;
    return 0;
}
