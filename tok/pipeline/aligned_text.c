/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/aligned_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

enum { SLACK = 64 };

void aligned_finish(struct aligned *a)
{
    buf_finish(&a->text);
    free(a->at);
    *a = (struct aligned){0};
}

static void reset(struct aligned *a, size_t base)
{
    buf_reset(&a->text);
    a->base = (uint32_t)base;
}

size_t aligned_zero(const struct aligned *a)
{
    size_t k = 0;
    while (k < a->text.len && a->at[k].begin == 0)
        k++;
    return k;
}

void aligned_close(struct aligned *a)
{
    memset(buf_reserve(&a->text, SLACK), 0, SLACK);
}

static struct place *room(struct aligned *a, size_t n)
{
    size_t need = a->text.len + n;
    if (a->cap < need || !a->at) {
        a->cap = need + need / 2 + 64;
        a->at = mem_grow(a->at, a->cap, sizeof(*a->at));
    }
    return a->at + a->text.len;
}

void aligned_add(struct aligned *a, const char *text, size_t n, struct place at)
{
    struct place *to = room(a, n);
    for (size_t i = 0; i < n; i++)
        to[i] = at;
    buf_add(&a->text, text, n);
}

/* Bytes of the invalid sequence at p, three at most. */
static size_t bad_run(const char *p, size_t n)
{
    return utf8_before_mending(p, n < 8 ? n : 8, 3);
}

void aligned_set(struct aligned *a, const char *text, size_t n, bool bytes)
{
    reset(a, 0);
    for (size_t i = 0, k; i < n; i += k) {
        struct place at = {(uint32_t)i, (uint32_t)i};
        k = utf8_char(text + i, text + n);
        if (!k) {
            k = bad_run(text + i, n - i);
            at.end += (uint32_t)k;
            aligned_add(a, "\xef\xbf\xbd", 3, at);
        } else if (!bytes) {
            at.end += (uint32_t)k;
            aligned_add(a, text + i, k, at);
        } else {
            for (size_t j = 0; j < k; j++, at.begin++) {
                at.end++;
                aligned_add(a, text + i + j, 1, at);
            }
        }
    }
    aligned_close(a);
}

void aligned_slice(struct aligned *a, const struct aligned *from, size_t begin, size_t end)
{
    reset(a, begin < end ? from->at[begin].begin : from->base);
    struct place *to = room(a, end - begin);
    if (begin < end)
        memcpy(to, from->at + begin, (end - begin) * sizeof(*to));
    buf_add(&a->text, from->text.data + begin, end - begin);
    aligned_close(a);
}

struct place aligned_behind(const struct aligned *a, size_t at)
{
    return at ? a->at[at - 1] : (struct place){a->base, a->base};
}

void changes_finish(struct changes *c)
{
    free(c->item);
    *c = (struct changes){0};
}

void changes_add(struct changes *c, uint32_t code, int32_t take)
{
    ARRAY_GROW(c->item, c->n, c->cap);
    c->item[c->n++] = (struct change){code, take};
}

/* Position after `count` characters from text + at. */
static size_t skip_chars(const struct aligned *a, size_t at, size_t count)
{
    const char *p = a->text.data, *end = p + a->text.len;
    for (; count && at < a->text.len; count--)
        at += utf8_char(p + at, end);
    return at;
}

void aligned_change(struct aligned *a, struct changes *c)
{
    struct aligned to = {.base = a->base};
    size_t at = skip_chars(a, 0, c->skip);
    for (size_t i = 0; i < c->n; i++) {
        const struct change *x = &c->item[i];
        char utf8[4];
        size_t k = utf8_put(utf8, x->c);
        bool behind = x->take > 0 || at >= a->text.len;
        aligned_add(&to, utf8, k, behind ? aligned_behind(a, at) : a->at[at]);
        if (x->take <= 0)
            at = skip_chars(a, at, 1 + (size_t)-x->take);
    }
    c->n = c->skip = 0;
    aligned_close(&to);
    aligned_finish(a);
    *a = to;
}
