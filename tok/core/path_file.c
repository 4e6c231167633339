/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/core/path_file.h"

#include <stdlib.h>

#include "base/core/mem.h"

enum {
    BLOCK = 1 << 16, /* steps read at a time */
    MANY = 1 << 16   /* ids that the sink takes */
};

int tok_path_add(struct tok_path_file *f, const char *beside, const uint32_t *step, size_t n,
                 struct err *e)
{
    int code = f->open ? 0 : spill_open(&f->spill, beside, e);
    if (code)
        return code;
    f->open = true;
    f->places += n;
    return spill_add(&f->spill, step, n * sizeof(*step), e);
}

/* Reads the block of steps that ends with number `last`, but none before `least`. */
static int read_block(struct tok_path_file *f, uint64_t last, uint64_t least, struct err *e)
{
    if (!f->block)
        f->block = mem_new(BLOCK, sizeof(*f->block));
    f->from = last + 1 - least > BLOCK ? last + 1 - BLOCK : least;
    f->count = last + 1 - f->from;
    return spill_read(&f->spill, f->from * sizeof(*f->block), f->block,
                      (size_t)f->count * sizeof(*f->block), e);
}

static int get(struct tok_path_file *f, uint64_t number, uint64_t least, uint32_t *ret,
               struct err *e)
{
    bool has = number >= f->from && number - f->from < f->count;
    int code = has ? 0 : read_block(f, number, least, e);
    if (!code)
        *ret = f->block[number - f->from];
    return code;
}

int tok_path_step(struct tok_path_file *f, uint64_t place, uint32_t *ret, struct err *e)
{
    int code = f->steps || f->count ? 0 : spill_flush(&f->spill, e);
    return code ? code : get(f, place, 0, ret, e);
}

int tok_path_push(struct tok_path_file *f, uint32_t step, struct err *e)
{
    int code = f->steps ? 0 : spill_flush(&f->spill, e);
    f->steps++;
    return code ? code : spill_add(&f->spill, &step, sizeof(step), e);
}

int tok_path_put(struct tok_path_file *f, const struct tok_sink *o,
                 void (*put)(void *arg, uint32_t step, struct tok_ids *ids), void *arg,
                 struct tok_ids *ids, struct err *e)
{
    int code = spill_flush(&f->spill, e);
    f->count = 0;
    for (; f->steps && !code; f->steps--) {
        uint32_t step;
        code = get(f, f->places + f->steps - 1, f->places, &step, e);
        if (code)
            return code;
        put(arg, step, ids);
        if (ids->n >= MANY)
            code = o->take(o->arg, ids, e);
    }
    return code;
}

void tok_path_close(struct tok_path_file *f)
{
    if (f->open)
        spill_close(&f->spill);
    free(f->block);
    *f = (struct tok_path_file){0};
}
