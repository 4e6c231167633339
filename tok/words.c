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
}

bool words_add(struct words *w, const char *text, size_t n, int32_t id)
{
    if (words_find(w, text, n) >= 0)
        return false;
    BUG_ON(w->n >= w->mask, "more than the %zu words that were announced", w->n);
    struct words_key k = words_key(text, n);
    size_t i = k.hash & w->mask;
    while (w->slot[i].text)
        i = (i + 1) & w->mask;
    w->slot[i] = (struct words_slot){
        .head = k.head, .tail = k.tail, .text = text, .length = (uint32_t)n, .id = id};
    w->n++;
    return true;
}

void words_finish(struct words *w)
{
    free(w->slot);
    *w = (struct words){0};
}
