/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/aho_corasick.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/kernels.h"

enum { LANES = AHO_CORASICK_LANES, ASCII = 0x80, CODE_POINTS = 0x110000 };

#define NO_PARENT UINT32_MAX

/* ---- building ------------------------------------------------------------------------------ */

/* A prefix of pieces. Nodes are in order of length, and the children of one node are adjacent. */
struct node {
    uint32_t first, end;      /* the keys that begin with it */
    uint32_t depth;           /* its bytes */
    uint32_t parent, c;       /* the node without its last character, and that character */
    uint32_t child, children; /* the first of them */
    uint32_t unit;
};

struct build {
    const struct trie_key *key;
    const struct aho_corasick_piece *piece;
    struct node *node;
    size_t n, room;
    uint32_t largest; /* highest number of a character */
    uint64_t *taken;  /* units in use, as bits */
    size_t words;
};

static void add_node(struct build *b, struct node x)
{
    ARRAY_GROW(b->node, b->n, b->room);
    b->node[b->n++] = x;
}

/* Of node i. */
static void add_children(struct build *b, uint32_t i)
{
    const struct node x = b->node[i];
    size_t first = b->n;
    for (uint32_t k = x.first; k < x.end; k++) {
        const struct trie_key *key = &b->key[k];
        if (key->length == x.depth || !b->piece[key->value + 1].length)
            continue;
        const char *p = key->text + x.depth;
        size_t length = utf8_char(p, key->text + key->length);
        uint32_t c = utf8_code(p, length);
        if (b->n == first || b->node[b->n - 1].c != c)
            add_node(b, (struct node){
                            .first = k, .depth = x.depth + (uint32_t)length, .parent = i, .c = c});
        b->node[b->n - 1].end = k + 1;
    }
    b->node[i].child = (uint32_t)first;
    b->node[i].children = (uint32_t)(b->n - first);
}

/* ASCII is numbered in order, without a lookup; of the others, the more frequent have the smaller
 * numbers, so that children lie close together. */
static void number_chars(struct build *b, uint32_t *number)
{
    uint32_t *most = mem_new(b->n + 1, sizeof(*most)), next = ASCII + 1, largest = ASCII;
    for (size_t i = 1; i < b->n; i++) {
        number[b->node[i].c]++;
        largest = b->node[i].c > largest ? b->node[i].c : largest;
    }
    for (uint32_t c = ASCII; c <= largest; c++)
        most[number[c]] += number[c] > 0;
    for (size_t times = b->n; times > 0; times--) {
        uint32_t count = most[times];
        most[times] = next;
        next += count;
    }
    for (uint32_t c = ASCII; c <= largest; c++)
        if (number[c])
            number[c] = most[number[c]]++;
    for (uint32_t c = 0; c < ASCII; c++)
        number[c] = c + 1;
    b->largest = next - 1;
    free(most);
}

/* Grows the arrays to positions below `most`. */
static void make_places(struct build *b, size_t most)
{
    size_t words = most / 64 + 2, had = b->words;
    if (words <= had)
        return;
    b->words = words + words / 2;
    b->taken = mem_grow(b->taken, b->words, sizeof(*b->taken));
    memset(b->taken + had, 0, (b->words - had) * sizeof(*b->taken));
}

/* The 64 units from a position on that are in use. */
static uint64_t taken_at(const struct build *b, size_t place)
{
    size_t word = place / 64, shift = place % 64;
    uint64_t low = b->taken[word] >> shift;
    return shift ? low | b->taken[word + 1] << (64 - shift) : low;
}

/* A base at which children of these numbers all fall on free units, from 64 * *from on. Blocks that
 * had no space for others are not tried again. */
static uint32_t find_base(struct build *b, const uint32_t *number, size_t n, size_t *from)
{
    enum { TRIES = 16 };
    for (size_t block = *from;; block++) {
        uint64_t taken = 0;
        make_places(b, block * 64 + b->largest + 64);
        for (size_t i = 0; i < n && ~taken; i++)
            taken |= taken_at(b, block * 64 + number[i]);
        if (block - *from >= TRIES)
            ++*from;
        if (~taken)
            return (uint32_t)(block * 64) + (uint32_t)__builtin_ctzll(~taken);
    }
}

/* The same for an only child: any free unit, in words from *from on, all of which lie above the
 * largest number. */
static uint32_t find_single(struct build *b, uint32_t number, size_t *from)
{
    make_places(b, *from * 64);
    while (!~b->taken[*from])
        make_places(b, ++*from * 64);
    return (uint32_t)(*from * 64) + (uint32_t)__builtin_ctzll(~b->taken[*from]) - number;
}

/* Nodes with more children first. Returns the number of units. */
static size_t place_all(struct build *b, const uint32_t *number, uint32_t *base)
{
    size_t *start = mem_new(b->n + 2, sizeof(*start)), from = 0, units = 1;
    size_t single = b->largest / 64 + 1;
    uint32_t *order = mem_new(b->n, sizeof(*order)), *child = mem_new(b->n, sizeof(*child));
    for (size_t i = 0; i < b->n; i++)
        start[b->n - b->node[i].children + 1]++;
    for (size_t k = 1; k < b->n + 2; k++)
        start[k] += start[k - 1];
    for (uint32_t i = 0; i < b->n; i++)
        order[start[b->n - b->node[i].children]++] = i;
    make_places(b, 1);
    b->taken[0] = 1; /* the root */
    for (size_t k = 0; k < b->n && b->node[order[k]].children; k++) {
        struct node *x = &b->node[order[k]], *y = &b->node[x->child];
        for (size_t i = 0; i < x->children; i++)
            child[i] = number[y[i].c];
        base[order[k]] = x->children == 1 ? find_single(b, child[0], &single)
                                          : find_base(b, child, x->children, &from);
        for (size_t i = 0; i < x->children; i++) {
            size_t unit = y[i].unit = base[order[k]] + child[i];
            b->taken[unit / 64] |= (uint64_t)1 << unit % 64;
            units = unit >= units ? unit + 1 : units;
        }
    }
    free(start);
    free(order);
    free(child);
    return units;
}

static uint32_t chars_of(const struct trie_key *key)
{
    uint32_t n = 0;
    for (size_t i = 0; i < key->length; i++)
        n += ((unsigned char)key->text[i] & 0xc0) != 0x80;
    return n < AHO_CORASICK_CHARS_MOST ? n : AHO_CORASICK_CHARS_MOST;
}

/* Fills the units of strings, shorter ones first, since longer ones link to these. */
static void fill_units(struct aho_corasick *a, const struct build *b, const uint32_t *base)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct node *x = &b->node[i];
        struct aho_corasick_unit *u = &a->unit[x->unit];
        const struct trie_key *key = b->key && i ? &b->key[x->first] : NULL;
        u->base = base[i];
        if (!i)
            continue;
        u->check = b->node[x->parent].unit;
        u->fail = x->parent ? aho_corasick_step(a, a->unit[u->check].fail, a->number[x->c])
                            : AHO_CORASICK_ROOT;
        u->piece = a->unit[u->fail].piece;
        if (key->length != x->depth)
            continue;
        a->piece[key->value + 1].more = u->piece | chars_of(key) << AHO_CORASICK_CHARS;
        u->piece = (uint32_t)key->value + 1;
    }
}

void aho_corasick_init(struct aho_corasick *a, const struct trie_key *key, size_t n,
                       struct aho_corasick_piece *piece)
{
    struct build b = {.key = key, .piece = piece};
    *a = (struct aho_corasick){.piece = piece, .number = mem_new(CODE_POINTS, sizeof(*a->number))};
    add_node(&b, (struct node){.end = (uint32_t)n});
    for (uint32_t i = 0; i < b.n; i++)
        add_children(&b, i);
    number_chars(&b, a->number);
    uint32_t *base = mem_new(b.n, sizeof(*base));
    size_t units =
        place_all(&b, a->number, base) + b.largest; /* any character's step stays inside */
    a->unit = mem_new(units, sizeof(*a->unit));
    mem_large_pages(a->unit, units * sizeof(*a->unit));
    for (size_t i = 0; i < units; i++)
        a->unit[i].check = NO_PARENT;
    fill_units(a, &b, base);
    free(base);
    free(b.taken);
    free(b.node);
}

void aho_corasick_finish(struct aho_corasick *a)
{
    free(a->unit);
    free(a->piece);
    free(a->number);
    *a = (struct aho_corasick){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

void aho_corasick_walk_plain(const struct aho_corasick *a, const uint32_t *number,
                             const struct aho_corasick_texts *texts, uint32_t *ret)
{
    for (size_t i = 0; i < texts->n; i++) {
        uint32_t state = AHO_CORASICK_ROOT, *to = ret + texts->to[i];
        for (size_t at = texts->begin[i]; at < texts->end[i]; at++, to += LANES) {
            state = aho_corasick_step(a, state, number[at]);
            *to = a->unit[state].piece;
        }
    }
}
