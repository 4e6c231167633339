/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/specials.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

static void specials_grow(struct specials *s)
{
    size_t room = s->room ? s->room * 2 : 64;
    string_map_finish(&s->place);
    string_map_init(&s->place, room);
    s->item = mem_grow(s->item, room, sizeof(*s->item));
    for (size_t i = 0; i < s->n; i++)
        string_map_add(&s->place, s->item[i].text, s->item[i].length, (int32_t)i);
    s->room = room;
}

static void add_length(struct specials *s, size_t n)
{
    for (size_t i = 0; i < s->nlengths; i++)
        if (s->length[i] == n)
            return;
    s->length = mem_grow(s->length, s->nlengths + 1, sizeof(*s->length));
    s->length[s->nlengths++] = n;
}

void specials_add(struct specials *s, const char *text, int32_t id, bool always)
{
    size_t n = strlen(text);
    if (s->n == s->room)
        specials_grow(s);
    if (!n || !string_map_add(&s->place, text, n, (int32_t)s->n))
        return;
    s->item[s->n++] = (struct special){text, n, id, always};
    add_length(s, n);
    if (n > 1)
        pair_find_add(&s->begin, (unsigned char)text[0], (unsigned char)text[1]);
    else
        pair_find_add_single(&s->begin, (unsigned char)text[0]);
}

void specials_finish(struct specials *s)
{
    free(s->item);
    free(s->length);
    string_map_finish(&s->place);
    *s = (struct specials){0};
}

/* Of the strings at the beginning of a text the one added first, or NULL. */
static const struct special *find_here(const struct specials *s, const char *text, size_t n)
{
    const struct special *first = NULL;
    for (size_t i = 0; i < s->nlengths; i++) {
        if (s->length[i] > n)
            continue;
        int32_t place = string_map_find(&s->place, text, s->length[i]);
        if (place >= 0 && (!first || &s->item[place] < first))
            first = &s->item[place];
    }
    return first;
}

const struct special *specials_find(const struct specials *s, const char *text, size_t n,
                                    size_t from, size_t *ret_at)
{
    if (!s->n)
        return NULL;
    for (size_t i = from; (i = pair_find_next(&s->begin, text, n, i)) < n; i++) {
        const struct special *p = find_here(s, text + i, n - i);
        if (p) {
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

bool specials_touch(const struct specials *s, size_t longest, const char *text, size_t at, size_t n)
{
    size_t from = at < longest ? 0 : at - longest;
    for (size_t i = from; i <= at && i < n; i++)
        for (size_t k = 0; k < s->n; k++) {
            const struct special *p = &s->item[k];
            size_t left =
                n - i < p->length ? n - i : p->length; /* the rest may be in the next part */
            if (i + p->length >= at && text[i] == p->text[0] &&
                memcmp(text + i, p->text, left) == 0)
                return true;
        }
    return false;
}
