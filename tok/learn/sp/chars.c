/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/learn/sp/sp.h"

enum { CHARS = LEARN_CHARS };

/* ---- required characters ----------------------------------------------------------------- */

struct letter {
    uint64_t count;
    uint32_t c;
    bool asked; /* required by an option */
};

static int by_count(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    if (x->asked != y->asked)
        return x->asked ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

/* All characters that occur or are required, sorted. */
static struct letter *sort_letters(const uint64_t *count, const char *asked, size_t *ret_n,
                                   uint64_t *ret_all)
{
    bool *is_asked = mem_new(CHARS, sizeof(*is_asked));
    for (const char *p = asked, *end = p + strlen(p); p < end; p += utf8_char(p, end))
        is_asked[utf8_code(p, utf8_char(p, end))] = true;
    size_t n = 0;
    uint64_t all = 0;
    for (uint32_t c = 1; c < CHARS; c++) {
        n += count[c] || is_asked[c];
        all += count[c];
    }
    struct letter *l = mem_new(n + 1, sizeof(*l));
    n = 0;
    for (uint32_t c = 1; c < CHARS; c++)
        if (count[c] || is_asked[c])
            l[n++] = (struct letter){count[c], c, is_asked[c]};
    free(is_asked);
    qsort(l, n, sizeof(*l), by_count);
    *ret_n = n;
    *ret_all = all;
    return l;
}

static int by_plain_count(const void *a, const void *b)
{
    const struct learn_char *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

/* Takes characters until they cover enough; a tab, which is a boundary, only counts. */
static void chars_choose(const struct learn_sp_options *o, const uint64_t *count,
                         struct learn_sp *ret)
{
    size_t n;
    uint64_t all, sum = 0;
    struct letter *l = sort_letters(count, o->meta->required_chars, &n, &all);
    ret->required = mem_new(n + 1, sizeof(*ret->required));
    for (size_t i = 0; i < n; i++) {
        float coverage = (float)((double)sum / (double)all);
        if (!o->train->use_all_vocab && coverage >= (float)o->train->character_coverage)
            break;
        sum += l[i].count;
        if (l[i].c != '\t')
            ret->required[ret->nrequired++] = (struct learn_char){l[i].c, l[i].count};
    }
    free(l);
    qsort(ret->required, ret->nrequired, sizeof(*ret->required), by_plain_count);
}

int learn_sp_chars(const struct learn_sp_options *o, const uint64_t *count, struct learn_words *w,
                   const uint64_t *rank, struct learn_sp *ret, struct err *e)
{
    bool *known = mem_new(CHARS, sizeof(*known));
    chars_choose(o, count, ret);
    for (size_t i = 0; i < ret->nrequired; i++)
        known[ret->required[i].c] = true;
    int code = learn_sp_order(o->pool, w, rank, known, &ret->text, e);
    learn_words_finish(w);
    free(known);
    return code;
}
