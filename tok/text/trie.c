/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/*
 * Building: a unit's children are placed together, at the first base where all of them fall on free
 * units. Free units are a doubly linked list through base (next) and value (previous), with unit 1
 * as its head. Units below 256 are empty but for the root, so that base 0, of a unit without
 * children, leads to no child.
 */

enum { FREE = -1, CHAIN = 1, TRIES = 100 };

struct build {
    struct trie_unit *unit;
    size_t n, cap;
    const struct trie_key *key;
    uint32_t *waiting; /* units without children yet: unit, first key, last key, depth */
    size_t nwaiting, room;
};

static bool is_free(const struct build *b, size_t i)
{
    return i >= b->n || b->unit[i].check == (uint32_t)FREE;
}

static void trie_grow(struct build *b, size_t n)
{
    if (n <= b->n)
        return;
    BUG_ON(n > UINT32_MAX / 2, "a trie of %zu units", n);
    if (n > b->cap) {
        b->cap = n + n / 2;
        b->unit = mem_grow(b->unit, b->cap, sizeof(*b->unit));
    }
    for (size_t i = b->n; i < n; i++) {
        uint32_t last = (uint32_t)b->unit[CHAIN].value;
        b->unit[i] =
            (struct trie_unit){.base = CHAIN, .check = (uint32_t)FREE, .value = (int32_t)last};
        b->unit[last].base = (uint32_t)i;
        b->unit[CHAIN].value = (int32_t)i;
    }
    b->n = n;
}

static void trie_take(struct build *b, uint32_t i, uint32_t parent)
{
    struct trie_unit *u = &b->unit[i];
    b->unit[(uint32_t)u->value].base = u->base;
    b->unit[u->base].value = u->value;
    *u = (struct trie_unit){.check = parent, .value = -1};
}

/* A base at which children by these bytes (ascending) all fall on free units. */
static uint32_t find_base(struct build *b, const unsigned char *byte, size_t n)
{
    uint32_t at = b->unit[CHAIN].base;
    for (int i = 0; i < TRIES && at != CHAIN; i++, at = b->unit[at].base) {
        uint32_t base = at - byte[0];
        size_t k = 1;
        while (k < n && is_free(b, base + byte[k]))
            k++;
        if (k == n)
            return base;
    }
    return (uint32_t)b->n - byte[0];
}

static void trie_push(struct build *b, uint32_t unit, size_t first, size_t end, size_t depth)
{
    if (b->nwaiting + 4 > b->room) {
        b->room = b->room ? b->room * 2 : 1024;
        b->waiting = mem_grow(b->waiting, b->room, sizeof(*b->waiting));
    }
    uint32_t *p = b->waiting + b->nwaiting;
    p[0] = unit;
    p[1] = (uint32_t)first;
    p[2] = (uint32_t)end;
    p[3] = (uint32_t)depth;
    b->nwaiting += 4;
}

/* Places the children of a unit, whose keys are first .. end-1 and agree in `depth` bytes. */
static void trie_place(struct build *b, uint32_t unit, size_t first, size_t end, size_t depth)
{
    unsigned char byte[256];
    size_t start[257], n = 0;
    if (first < end && b->key[first].length == depth)
        b->unit[unit].value = b->key[first++].value;
    for (size_t i = first; i < end; i++) {
        unsigned char c = (unsigned char)b->key[i].text[depth];
        if (n == 0 || byte[n - 1] != c) {
            byte[n] = c;
            start[n++] = i;
        }
    }
    if (n == 0)
        return;
    start[n] = end;
    uint32_t base = find_base(b, byte, n);
    trie_grow(b, (size_t)base + byte[n - 1] + 1);
    b->unit[unit].base = base;
    for (size_t k = 0; k < n; k++) {
        trie_take(b, base + byte[k], unit);
        trie_push(b, base + byte[k], start[k], start[k + 1], depth + 1);
    }
}

static int by_text(const void *a, const void *b)
{
    const struct trie_key *x = a, *y = b;
    size_t n = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

struct sort {
    uint64_t head; /* the first bytes, so that numbers are ordered as texts */
    struct trie_key key;
};

static uint64_t head_of(const struct trie_key *k)
{
    uint64_t v = 0;
    memcpy(&v, k->text, k->length < sizeof(v) ? k->length : sizeof(v));
    return __builtin_bswap64(v);
}

/* One radix pass over a byte of the heads. */
static void sort_pass(struct sort *to, const struct sort *from, size_t n, int shift)
{
    size_t count[257] = {0};
    for (size_t i = 0; i < n; i++)
        count[(from[i].head >> shift & 255) + 1]++;
    for (int c = 0; c < 255; c++)
        count[c + 1] += count[c];
    for (size_t i = 0; i < n; i++)
        to[count[from[i].head >> shift & 255]++] = from[i];
}

/* Radix sort by the first eight bytes, then by comparison where these are equal. */
static void sort_keys(struct trie_key *key, size_t n)
{
    struct sort *a = mem_new(n + 1, sizeof(*a)), *b = mem_new(n + 1, sizeof(*b)), *swap;
    for (size_t i = 0; i < n; i++)
        a[i] = (struct sort){head_of(&key[i]), key[i]};
    for (int shift = 0; shift < 64; shift += 8) {
        sort_pass(b, a, n, shift);
        swap = a;
        a = b;
        b = swap;
    }
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && a[end].head == a[i].head; end++)
            key[end] = a[end].key;
        if (end - i > 1)
            qsort(key + i, end - i, sizeof(*key), by_text);
    }
    free(a);
    free(b);
}

void trie_init(struct trie *t, struct trie_key *key, size_t n)
{
    struct build b = {.key = key};
    sort_keys(key, n);
    b.cap = 1024;
    b.unit = mem_new(b.cap, sizeof(*b.unit));
    for (size_t i = 0; i < 512; i++)
        b.unit[i] = (struct trie_unit){.check = (uint32_t)FREE - 1, .value = -1};
    b.unit[CHAIN].base = CHAIN;
    b.unit[CHAIN].value = CHAIN;
    b.n = 512; /* stepping from base 0, or past the last unit, finds no child */
    trie_grow(&b, 768);
    trie_place(&b, TRIE_ROOT, 0, n, 0);
    while (b.nwaiting) {
        b.nwaiting -= 4;
        const uint32_t *p = b.waiting + b.nwaiting;
        trie_place(&b, p[0], p[1], p[2], p[3]);
    }
    free(b.waiting);
    *t = (struct trie){.n = b.n};
    t->unit = mem_grow(b.unit, b.n + 256, sizeof(*b.unit));
    for (size_t i = 0; i < b.n + 256; i++)
        if (i >= b.n || t->unit[i].check == (uint32_t)FREE)
            t->unit[i] = (struct trie_unit){.check = (uint32_t)FREE, .value = -1};
    t->unit[CHAIN] = (struct trie_unit){.check = (uint32_t)FREE, .value = -1};
}

void trie_finish(struct trie *t)
{
    free(t->unit);
    *t = (struct trie){0};
}
