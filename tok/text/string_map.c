/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/string_map.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/core/mem.h"

enum { OWN_PAGES = 1 << 20 /* bytes from which a table gets pages of its own */ };

static size_t slot_bytes(const struct string_map *w)
{
    return (w->mask + 1) * sizeof(*w->slot);
}

void string_map_init(struct string_map *w, size_t n)
{
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    *w = (struct string_map){.mask = slots - 1, .room = n + 1};
    if (slot_bytes(w) >= OWN_PAGES) {
        w->slot = mem_pages(slot_bytes(w));
        mem_all_pages(w->slot, slot_bytes(w));
    } else {
        w->slot = mem_new(slots, sizeof(*w->slot));
    }
    w->text = mem_grow(NULL, w->room, sizeof(*w->text));
    mem_all_pages(w->text, w->room * sizeof(*w->text));
}

bool string_map_add_key(struct string_map *w, struct string_key k, const char *text, size_t n,
                        int32_t id)
{
    struct string_map_slot *s = string_map_slot(w, k, text, n);
    if (s->at)
        return false;
    BUG_ON(w->n >= w->mask, "more than the %zu words that were announced", w->n);
    if (w->n == w->room)
        w->text = mem_grow(w->text, w->room *= 2, sizeof(*w->text));
    w->text[w->n++] = (struct string_ref){text, n};
    *s = (struct string_map_slot){.key = k.key, .at = (uint32_t)w->n, .id = id};
    return true;
}

bool string_map_add(struct string_map *w, const char *text, size_t n, int32_t id)
{
    return string_map_add_key(w, string_key(text, n), text, n, id);
}

void string_map_finish(struct string_map *w)
{
    if (w->slot && slot_bytes(w) >= OWN_PAGES)
        munmap(w->slot, slot_bytes(w));
    else
        free(w->slot);
    free(w->text);
    *w = (struct string_map){0};
}
