/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tok/tokenizer/tokenizer_work.h"

/* Windows over a text's ids, as Encoding::truncate of tokenizers 0.23.3. */

static size_t template_ids(const struct tokenizer *t)
{
    return t->engine.nbefore + t->engine.nafter;
}

int tok_window_check(const struct tokenizer *t, const struct tok_window *w, struct err *e)
{
    size_t own = template_ids(t);
    if (!w->most)
        return 0;
    if (w->most <= own)
        return err_set(e, ERR_USAGE,
                       "a limit of %zu ids leaves no room besides the %zu of the "
                       "template",
                       w->most, own);
    if (w->stride >= w->most - own)
        return err_set(e, ERR_USAGE,
                       "a stride of %zu ids is too large: a window has %zu besides the template",
                       w->stride, w->most - own);
    return 0;
}

/*
 * The own ids of the k-th window as a range of the text's own ids; false: there is no such window.
 */
static bool window_find(const struct tokenizer *t, const struct tok_window *w, size_t n, size_t k,
                        size_t *ret_first, size_t *ret_n)
{
    size_t own = n - template_ids(t), room = w->most ? w->most - template_ids(t) : own;
    size_t step = room - (w->most ? w->stride : 0);
    *ret_first = 0;
    *ret_n = own;
    if (own <= room)
        return k == 0;
    if (k && (k - 1) * step + room >= own) /* the previous one reached the end */
        return false;
    size_t at = k * step; /* from the end that truncation keeps */
    *ret_n = own - at < room ? own - at : room;
    *ret_first = w->left ? own - at - *ret_n : at;
    return true;
}

bool tok_window_ids(const struct tokenizer *t, const struct tok_window *w,
                    const struct tok_ids *all, size_t k, struct tok_ids *ret)
{
    size_t first, n, before = t->engine.nbefore, after = t->engine.nafter;
    ret->n = 0;
    if (!window_find(t, w, all->n, k, &first, &n))
        return false;
    tok_ids_add(ret, all->id, before);
    tok_ids_add(ret, all->id + before + first, n);
    tok_ids_add(ret, all->id + all->n - after, after);
    return true;
}

bool tok_window_ranges(const struct tokenizer *t, const struct tok_window *w,
                       const struct tok_ranges *all, size_t k, struct tok_ranges *ret)
{
    size_t first, n, before = t->engine.nbefore, after = t->engine.nafter;
    ret->n = 0;
    if (!window_find(t, w, all->n, k, &first, &n))
        return false;
    for (size_t i = 0; i < before; i++)
        tok_ranges_add(ret);
    for (size_t i = 0; i < n; i++) {
        struct tok_range *r = tok_ranges_add(ret);
        *r = all->at[before + first + i];
        if (i == 0) {
            r->begin = r->first_begin;
            r->end = r->first_end;
        }
    }
    for (size_t i = 0; i < after; i++)
        tok_ranges_add(ret);
    return true;
}
