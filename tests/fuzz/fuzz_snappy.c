/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/snappy.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { ROOM = 1 << 16 };

/* Decodes in pieces of `step` bytes; the length, or -1 with what is wrong. */
static long decode(const uint8_t *p, size_t n, size_t step, unsigned char *out, const char **why)
{
    struct snappy s = {0};
    size_t len = 0, at = 0;
    *why = NULL;
    while (at < n && ROOM - len >= SNAPPY_SLACK) {
        size_t used, k = n - at < step ? n - at : step;
        *why = snappy_run(&s, p + at, k, &used, out, &len, ROOM);
        if (*why)
            return -1;
        BUG_ON(used > k || len > ROOM, "more than there is");
        at += used;
    }
    BUG_ON(s.done > s.total, "more than was promised");
    return (long)len;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    unsigned char *a = mem_new(ROOM, 1), *b = mem_new(ROOM, 1);
    const char *why, *why_too;
    long whole = decode(p, n, n + 1, a, &why), pieces = decode(p, n, 1 + n % 7, b, &why_too);
    BUG_ON(why != why_too, "'%s' in one go, '%s' in pieces", why ? why : "",
           why_too ? why_too : "");
    BUG_ON(whole != pieces, "%ld bytes in one go, %ld in pieces", whole, pieces);
    BUG_ON(whole > 0 && memcmp(a, b, (size_t)whole) != 0, "other bytes in pieces");
    free(a);
    free(b);
    return 0;
}
