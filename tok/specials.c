/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/specials.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void specials_add(struct specials *s, const char *text, int32_t id, bool always)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->item[i].text, text) == 0)
            return;
    s->item = mem_grow(s->item, s->n + 1, sizeof(*s->item));
    s->item[s->n++] = (struct special){text, strlen(text), id, always};
    s->first[(unsigned char)text[0]] = true;
}

void specials_finish(struct specials *s)
{
    free(s->item);
    *s = (struct specials){0};
}

/* The next place where one of them may begin, n if there is none. */
static size_t next_first(const struct specials *s, const char *text, size_t n, size_t i)
{
    /* nearly always they all begin with '<', and then memchr is many times the loop */
    bool one = true;
    for (size_t k = 1; k < s->n; k++)
        one &= s->item[k].text[0] == s->item[0].text[0];
    if (one) {
        const char *p = memchr(text + i, s->item[0].text[0], n - i);
        return p ? (size_t)(p - text) : n;
    }
    while (i < n && !s->first[(unsigned char)text[i]])
        i++;
    return i;
}

const struct special *specials_find(const struct specials *s, const char *text, size_t n,
                                    size_t from, size_t *ret_at)
{
    if (!s->n)
        return NULL;
    for (size_t i = next_first(s, text, n, from); i < n; i = next_first(s, text, n, i + 1))
        for (size_t k = 0; k < s->n; k++) {
            const struct special *p = &s->item[k];
            if (n - i >= p->length && memcmp(text + i, p->text, p->length) == 0) {
                *ret_at = i;
                return p;
            }
        }
    return NULL;
}

int special_refuse(const char *special, size_t at, struct err *e)
{
    err_set(e, ERR_DATA, "byte %zu of the text: the string of the special token '%s'", at, special);
    return err_hint(e, "--specials text takes it as ordinary text, --specials parse as the token");
}
