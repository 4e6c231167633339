/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/core/path_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/fault.h"
#include "base/core/mem.h"

enum {
    BLOCK = 1 << 16, /* steps read at a time */
    KEPT = 1 << 18   /* steps in memory beyond which they go to the file */
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
        code = tok_sink_offer(o, ids, e);
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

/* ---- the last steps in memory ---------------------------------------------------------------- */

uint32_t *tok_path_more(struct tok_path *p, size_t n)
{
    if (p->cap - p->n < n) {
        p->cap = p->n + n + p->n / 2;
        p->step = mem_grow(p->step, p->cap, sizeof(*p->step));
    }
    p->n += n;
    return p->step + p->n - n;
}

static void drop_steps(struct tok_path *p, size_t n)
{
    p->n -= n;
    if (p->n && n)
        memmove(p->step, p->step + n, p->n * sizeof(*p->step));
}

int tok_path_trim(struct tok_path *p, size_t keep, size_t *ret_moved, struct err *e)
{
    *ret_moved = 0;
    if (!p->sink || p->n < KEPT + keep)
        return 0;
    size_t n = p->n - keep;
    int code = tok_path_add(&p->far, p->sink->beside, p->step, n, e);
    if (code)
        return code;
    drop_steps(p, FAULT("path_trim") ? n + 1 : n);
    *ret_moved = n;
    return 0;
}

void tok_path_begin(struct tok_path *p)
{
    if (p->live_cap <= p->n) {
        p->live_cap = p->n + p->n / 2 + 64;
        p->live = mem_grow(p->live, p->live_cap, 1);
    }
    memset(p->live, 0, p->n + 1);
    p->nlive = 0;
}

void tok_path_live(struct tok_path *p, size_t place)
{
    p->nlive += !p->live[place];
    p->live[place] = 1;
}

size_t tok_path_common(struct tok_path *p, const struct tok_path_walk *walk)
{
    size_t top = p->n, span;
    for (; p->nlive > 1; top--) {
        if (!p->live[top])
            continue;
        span = walk->span(walk->arg, p->step[top - 1]);
        if (span > top)
            return 0; /* it begins in the file */
        p->nlive--;
        tok_path_live(p, top - span);
    }
    while (!p->live[top])
        top--;
    return top;
}

static void settle_near(struct tok_path *p, size_t place, const struct tok_path_walk *walk,
                        struct tok_ids *ids)
{
    size_t k = 0;
    for (size_t at = place; at;) {
        uint32_t step = p->step[at - 1];
        at -= walk->span(walk->arg, step);
        ARRAY_GROW(p->back, k, p->back_cap);
        p->back[k++] = walk->mark ? walk->mark(walk->arg, step) : step;
    }
    while (k)
        walk->put(walk->arg, p->back[--k], ids);
}

static int settle_far(struct tok_path *p, size_t place, const struct tok_path_walk *walk,
                      struct tok_ids *ids, struct err *e)
{
    uint64_t near = p->far.places;
    for (uint64_t at = near + place; at;) {
        uint32_t step = 0;
        int code = 0;
        if (at > near)
            step = p->step[at - near - 1];
        else
            code = tok_path_step(&p->far, at - 1, &step, e);
        if (code)
            return code;
        at -= walk->span(walk->arg, step);
        code = tok_path_push(&p->far, walk->mark ? walk->mark(walk->arg, step) : step, e);
        if (code)
            return code;
    }
    return tok_path_put(&p->far, p->sink, walk->put, walk->arg, ids, e);
}

int tok_path_settle(struct tok_path *p, size_t place, const struct tok_path_walk *walk,
                    struct tok_ids *ids, struct err *e)
{
    int code = 0;
    if (p->far.places)
        code = settle_far(p, place, walk, ids, e);
    else
        settle_near(p, place, walk, ids);
    tok_path_close(&p->far);
    drop_steps(p, place);
    return code;
}

void tok_path_reset(struct tok_path *p)
{
    tok_path_close(&p->far);
    p->n = 0;
}

void tok_path_finish(struct tok_path *p)
{
    tok_path_close(&p->far);
    free(p->step);
    free(p->back);
    free(p->live);
    *p = (struct tok_path){0};
}
