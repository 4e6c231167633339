/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/runs.h"

#include <string.h>

#include "base/core/bytes.h"

static bool runs_varint(struct pq_runs *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 63 && r->p < r->end; shift += 7) {
        unsigned b = *r->p++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *ret = v;
            return true;
        }
    }
    return false;
}

/* The next run or group of packed values; false if there is none. */
static bool runs_begin(struct pq_runs *r)
{
    uint64_t head;
    size_t width = (r->bits + 7) / 8;
    if (!runs_varint(r, &head))
        return false;
    if (head & 1) {
        uint64_t bytes, left = (uint64_t)(r->end - r->p);
        if (!checked_mul(head >> 1, r->bits, &bytes) || bytes > left)
            bytes = left; /* the last group may be cut after its last value */
        r->bit = 0;
        r->packed = r->bits ? bytes * 8 / r->bits : (head >> 1) * 8;
        return true;
    }
    if ((size_t)(r->end - r->p) < width)
        return false;
    r->value = 0;
    memcpy(&r->value, r->p, width);
    r->p += width;
    r->run = head >> 1;
    return true;
}

static uint32_t unpack(struct pq_runs *r)
{
    uint64_t v = 0, byte = r->bit / 8;
    unsigned shift = r->bit % 8, n = (shift + r->bits + 7) / 8; /* at most 5 */
    memcpy(&v, r->p + byte, n);
    r->bit += r->bits;
    if (!--r->packed)
        r->p += (r->bit + 7) / 8;
    return (uint32_t)(v >> shift & ((UINT64_C(1) << r->bits) - 1));
}

bool pq_runs_next(struct pq_runs *r, uint32_t *ret)
{
    while (!r->run && !r->packed)
        if (!runs_begin(r))
            return false;
    if (r->run) {
        r->run--;
        *ret = r->value;
    } else {
        *ret = unpack(r);
    }
    return true;
}

void pq_runs_open(struct pq_runs *r, const struct buf *b, size_t from, unsigned bits)
{
    const unsigned char *p = (const unsigned char *)b->data;
    *r = (struct pq_runs){.p = b->len ? p + from : p, .end = b->len ? p + b->len : p, .bits = bits};
}
