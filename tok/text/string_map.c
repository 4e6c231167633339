/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/string_map.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/core/mem.h"

enum { OWN_PAGES = 1 << 20 /* bytes of a table from which on it lies on pages of its own */ };

static size_t slot_bytes(const struct words *w)
{
    return (w->mask + 1) * sizeof(*w->slot);
}

void words_init(struct words *w, size_t n)
{
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    *w = (struct words){.mask = slots - 1, .room = n + 1};
    if (slot_bytes(w) >= OWN_PAGES) {
        w->slot = mem_pages(slot_bytes(w));
        mem_all_pages(w->slot, slot_bytes(w));
    } else {
        w->slot = mem_new(slots, sizeof(*w->slot));
    }
    w->text = mem_grow(NULL, w->room, sizeof(*w->text));
    mem_all_pages(w->text, w->room * sizeof(*w->text));
}

bool words_add_key(struct words *w, struct words_key k, const char *text, size_t n, int32_t id)
{
    struct words_slot *s = words_slot(w, k, text, n);
    if (s->at)
        return false;
    BUG_ON(w->n >= w->mask, "more than the %zu words that were announced", w->n);
    if (w->n == w->room)
        w->text = mem_grow(w->text, w->room *= 2, sizeof(*w->text));
    w->text[w->n++] = (struct words_text){text, n};
    *s = (struct words_slot){.key = k.key, .at = (uint32_t)w->n, .id = id};
    return true;
}

bool words_add(struct words *w, const char *text, size_t n, int32_t id)
{
    return words_add_key(w, words_key(text, n), text, n, id);
}

void words_finish(struct words *w)
{
    if (w->slot && slot_bytes(w) >= OWN_PAGES)
        munmap(w->slot, slot_bytes(w));
    else
        free(w->slot);
    free(w->text);
    *w = (struct words){0};
}
