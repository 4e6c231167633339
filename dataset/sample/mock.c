/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/mock.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"

static uint64_t mock_length(uint64_t document)
{
    enum { OF_MOCK = 1 }; /* `sub` of other orders is 0 */
    return 1 + rng_block(0, RNG_ORDER, OF_MOCK, document).v[0] % MOCK_LONGEST;
}

int mock_open(struct mock *ret, const struct mock_config *c, enum part p, struct err *e)
{
    struct split split;
    uint64_t first = 0, end = 0, tokens = 0;
    *ret = (struct mock){.vocab = c->vocab,
                         .eod = c->eod < 0 ? c->vocab - 1 : c->eod,
                         .seq_length = c->seq_length,
                         .part = p};
    int code = split_parse(c->split, &split, e);
    if (code || !split_range(&split, p, MOCK_DOCUMENTS, &first, &end))
        return code;
    ret->documents = end - first;
    ret->end = mem_new(ret->documents + 1, sizeof(*ret->end));
    for (uint64_t d = 0; d < ret->documents; d++)
        ret->end[d] = tokens += mock_length(first + d);
    ret->once = tokens ? (tokens - 1) / c->seq_length : 0;
    ret->count = c->samples == SAMPLES_ALL ? ret->once : ret->once ? c->samples : 0;
    return 0;
}

void mock_close(struct mock *m)
{
    free(m->end);
    *m = (struct mock){0};
}

/* The document with the token `at`. */
static uint64_t mock_find(const struct mock *m, uint64_t at)
{
    uint64_t low = 0, high = m->documents - 1;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (m->end[mid] > at)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static int mock_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    const struct mock *m = self;
    uint64_t at = k % m->once * m->seq_length, d = mock_find(m, at);
    uint64_t range = (uint64_t)m->vocab - (m->eod == m->vocab - 1 ? 2 : 1);
    (void)e;
    for (uint32_t i = 0; i <= m->seq_length; i++, at++) {
        if (at == m->end[d])
            d++;
        uint64_t begin = d ? m->end[d - 1] : 0;
        ret[i] = at + 1 == m->end[d] ? m->eod : (int32_t)(1 + (at - begin) % range);
    }
    return 0;
}

struct feed mock_feed(const struct mock *m)
{
    return (struct feed){.self = m,
                         .sample = mock_sample,
                         .count = m->count,
                         .seq_length = m->seq_length,
                         .pad = -1,
                         .name = "mock data",
                         .part = part_name(m->part)};
}
