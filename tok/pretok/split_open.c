/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/split_open.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "tok/pretok/regex_open.h"

enum { STEPS_MAX = 32 };

struct split_step {
    struct split_open *all;
    struct regex_open *open;
    bool kept[2]; /* by whether it is a match */
};

struct split_open {
    struct split_step step[STEPS_MAX];
    size_t n;
    split_open_piece *put;
    void *arg;
};

struct split_open *split_open_create(void)
{
    return mem_new(1, sizeof(struct split_open));
}

void split_open_destroy(struct split_open *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        regex_open_destroy(s->step[i].open);
    free(s);
}

bool split_open_add(struct split_open *s, const struct regex *r, bool matches, bool between)
{
    struct regex_open *o = s->n < STEPS_MAX ? regex_open_create(r) : NULL;
    if (!o)
        return false;
    s->step[s->n++] = (struct split_step){s, o, {between, matches}};
    return true;
}

/* A span of what a step splits, to the next step. */
static int split_again(void *arg, const char *text, size_t n, bool match, bool ends, struct err *e)
{
    struct split_step *step = arg;
    struct split_open *s = step->all;
    if (!step->kept[match])
        return 0;
    if (++step == s->step + s->n)
        return s->put(s->arg, text, n, ends, e);
    return regex_open_put(step->open, text, n, ends, split_again, step, e);
}

int split_open_put(struct split_open *s, const char *text, size_t n, bool last,
                   split_open_piece *put, void *arg, struct err *e)
{
    if (!s->n)
        return put(arg, text, n, last, e);
    s->put = put;
    s->arg = arg;
    return regex_open_put(s->step[0].open, text, n, last, split_again, s->step, e);
}

void split_open_reset(struct split_open *s)
{
    for (size_t i = 0; i < s->n; i++)
        regex_open_reset(s->step[i].open);
}

uint64_t split_open_take_work(struct split_open *s)
{
    uint64_t work = 0;
    for (size_t i = 0; i < s->n; i++)
        work += regex_open_take_work(s->step[i].open);
    return work;
}
