/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/fim.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"

/* A rewritten sample: what does not fit is dropped. */
struct out {
    int32_t *id;
    uint64_t n, room;
};

static void fim_put(struct out *o, const int32_t *id, uint64_t n)
{
    uint64_t fits = o->room - o->n < n ? o->room - o->n : n;
    memcpy(o->id + o->n, id, fits * sizeof(*id));
    o->n += fits;
}

static void put_one(struct out *o, int32_t id)
{
    fim_put(o, &id, 1);
}

/* Uniform in 0 .. n. */
static uint64_t fim_place(uint32_t draw, uint64_t n)
{
    return (uint64_t)draw * (n + 1) >> 32;
}

static void put_stretch(const struct fim *f, uint64_t k, uint32_t number, const int32_t *id,
                        uint64_t n, struct out *o)
{
    struct rng4 chance = rng_block(f->seed, RNG_FIM, 2 * number, k);
    struct rng4 cut = rng_block(f->seed, RNG_FIM, 2 * number + 1, k);
    if (!n || (double)rng_unit(chance.v[0]) >= f->rate) {
        fim_put(o, id, n);
        return;
    }
    uint64_t a = fim_place(cut.v[0], n), b = fim_place(cut.v[1], n), first = a < b ? a : b,
             last = a < b ? b : a;
    bool spm = (double)rng_unit(chance.v[1]) < f->spm_rate;
    put_one(o, f->prefix);
    if (!spm)
        fim_put(o, id, first);
    put_one(o, f->suffix);
    fim_put(o, id + last, n - last);
    put_one(o, f->middle);
    if (spm)
        fim_put(o, id, first);
    fim_put(o, id + first, last - first);
}

static int sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    const struct fim *f = self;
    uint64_t room = (uint64_t)f->of.seq_length + 1, begin = 0;
    uint32_t number = 0;
    int32_t *text = mem_new(room, sizeof(*text));
    struct out o = {ret, 0, room};
    int code = f->of.sample(f->of.self, k, text, e);
    for (uint64_t i = 0; !code && i <= room; i++) {
        if (i < room && (f->eod < 0 || text[i] != f->eod))
            continue;
        put_stretch(f, k, number++, text + begin, i - begin, &o);
        if (i < room)
            put_one(&o, f->eod);
        begin = i + 1;
    }
    free(text);
    return code;
}

static void ahead(const void *self, uint64_t k, enum feed_step step)
{
    const struct fim *f = self;
    f->of.ahead(f->of.self, k, step);
}

struct feed fim_feed(const struct fim *f)
{
    struct feed ret = f->of;
    ret.self = f;
    ret.sample = sample;
    ret.ahead = f->of.ahead ? ahead : NULL;
    return ret;
}
