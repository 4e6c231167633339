/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/words.h"

#include <stdlib.h>

#include "base/mem.h"

void words_init(struct words *w, size_t n)
{
    size_t slots = 16;
    while (slots < n * 2)
        slots *= 2;
    *w = (struct words){.slot = mem_new(slots, sizeof(*w->slot)), .mask = slots - 1};
    mem_large_pages(w->slot, slots * sizeof(*w->slot));
    mem_all_pages(w->slot, slots * sizeof(*w->slot));
}

bool words_add_key(struct words *w, struct words_key k, const char *text, size_t n, int32_t id)
{
    struct words_slot *s = words_slot(w, k, text, n);
    if (s->text)
        return false;
    BUG_ON(w->n >= w->mask, "more than the %zu words that were announced", w->n);
    *s = (struct words_slot){
        .head = k.head, .tail = k.tail, .text = text, .length = (uint32_t)n, .id = id};
    w->n++;
    return true;
}

bool words_add(struct words *w, const char *text, size_t n, int32_t id)
{
    return words_add_key(w, words_key(text, n), text, n, id);
}

void words_finish(struct words *w)
{
    free(w->slot);
    *w = (struct words){0};
}
