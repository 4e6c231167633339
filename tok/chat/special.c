/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/special.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"

void special_set_add(struct special_set *s, const char *piece, size_t n, int32_t id)
{
    if (!n || id < 0)
        return;
    for (size_t i = 0; i < s->n; i++)
        if (s->item[i].id == id)
            return;
    ARRAY_GROW(s->item, s->n, s->cap);
    s->item[s->n++] = (struct chat_special){.name = piece, .n = n, .id = id, .piece = piece};
}

static int compare_specials(const void *a, const void *b)
{
    const struct chat_special *x = a, *y = b;
    int first = (unsigned char)x->piece[0] - (unsigned char)y->piece[0];
    return first ? first : (x->n < y->n) - (x->n > y->n);
}

void special_set_sort(struct special_set *s)
{
    if (s->n)
        qsort(s->item, s->n, sizeof(*s->item), compare_specials);
    size_t at = 0;
    for (int byte = 0; byte <= 256; byte++) {
        while (at < s->n && (unsigned char)s->item[at].piece[0] < byte)
            at++;
        s->first[byte] = at;
    }
}

void special_set_finish(struct special_set *s)
{
    free(s->item);
    *s = (struct special_set){0};
}

const struct chat_special *special_at(const struct special_set *s, const char *p, size_t n)
{
    unsigned char c = n ? (unsigned char)*p : 0;
    for (size_t i = s->first[c]; n && i < s->first[c + 1]; i++)
        if (s->item[i].n <= n && !memcmp(s->item[i].piece, p, s->item[i].n))
            return &s->item[i];
    return NULL;
}
