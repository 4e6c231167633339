/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/epochs.h"

#include <stddef.h>

#include "base/core/fault.h"
#include "base/core/rng.h"

/* ---- the order ------------------------------------------------------------------------------ */

enum { ROUNDS = 6 };

/*
 * A permutation of 2^(2 bits) numbers for each (seed, part, epoch): a Feistel network whose halves
 * have `bits` bits.
 */
static uint64_t epochs_mix(uint32_t seed, enum part part, uint64_t epoch, unsigned bits, uint64_t x)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1, left = x >> bits, right = x & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct rng4 r =
            rng_block(seed, RNG_ORDER, (uint32_t)part * ROUNDS + round, epoch << 32 | right);
        uint64_t next = left ^ (r.v[0] & mask);
        left = right;
        right = next;
    }
    return left << bits | right;
}

uint64_t epochs_order(uint32_t seed, enum part part, uint64_t n, uint64_t k)
{
    uint64_t epoch = FAULT("epoch_order") ? 0 : k / n, x = k % n;
    unsigned bits = 1;
    while ((uint64_t)1 << (2 * bits) < n)
        bits++;
    do /* cycle walking: the permutation may have more numbers than there are samples */
        x = epochs_mix(seed, part, epoch, bits, x);
    while (x >= n);
    return x;
}

/* ---- another feed --------------------------------------------------------------------------- */

static uint64_t of_place(const struct epochs *p, uint64_t k)
{
    return epochs_order(p->seed, p->part, p->n, k);
}

static int epochs_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    const struct epochs *p = self;
    return p->of.sample(p->of.self, of_place(p, k), ret, e);
}

static int epochs_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    const struct epochs *p = self;
    return p->of.row(p->of.self, of_place(p, k), ret, e);
}

static void epochs_ahead(const void *self, uint64_t k, enum feed_step step)
{
    const struct epochs *p = self;
    p->of.ahead(p->of.self, of_place(p, k), step);
}

struct feed epochs_feed(const struct epochs *p)
{
    struct feed f = p->of;
    f.self = p;
    f.sample = p->of.sample ? epochs_sample : NULL;
    f.row = p->of.row ? epochs_row : NULL;
    f.ahead = p->of.ahead ? epochs_ahead : NULL;
    f.count = p->samples;
    return f;
}

/* ---- steps ---------------------------------------------------------------------------------- */

uint64_t epochs_steps(uint64_t n, uint64_t full)
{
    return n / full + (n % full > 0);
}

uint64_t epochs_after(uint64_t n, uint64_t full, uint64_t consumed, uint64_t steps)
{
    uint64_t place = consumed % n, left = epochs_steps(n - place, full), each;
    if (steps < left)
        return consumed + steps * full;
    steps -= left;
    each = epochs_steps(n, full);
    return consumed - place + n + steps / each * n + steps % each * full;
}
