/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/inert_chars.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

static uint32_t inert_chars_unit_at(const struct sp_norm *s, uint32_t i)
{
    return load_u32(s->units + (size_t)i * 4);
}

static uint32_t inert_chars_unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & (1u << 9)) >> 6);
}

static void clear(uint64_t *bits, uint32_t c)
{
    if (c < SP_PLAIN_CHARS)
        bits[c / 64] &= ~((uint64_t)1 << (c % 64));
}

/* ---- rules --------------------------------------------------------------------------------- */

/* A state of the rules' trie, and the partial character that leads to it. */
struct step {
    uint32_t state;
    uint32_t c;   /* bits of its bytes so far */
    uint8_t more; /* bytes still missing */
    bool later;   /* not the rule's first character */
};

struct walk {
    const struct sp_norm *norm;
    struct sp_plain *to;
    struct step *stack;
    size_t n, room;
};

enum { STEPS_MAX = 1 << 20 };

static void inert_chars_push(struct walk *w, struct step s)
{
    ARRAY_GROW(w->stack, w->n, w->room);
    w->stack[w->n++] = s;
}

static uint8_t more_bytes(uint32_t lead)
{
    return lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

static uint32_t lead_bits(uint32_t lead)
{
    return lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1f : lead < 0xf0 ? lead & 0xf : lead & 7;
}

/* One more byte. False: a rule ends inside a character. */
static bool inert_chars_take(struct walk *w, const struct step *from, uint32_t byte, uint32_t unit,
                             uint32_t state, bool root)
{
    struct step s = {.state = state, .later = !root && (from->later || !from->more)};
    s.c = from->more ? from->c << 6 | (byte & 0x3f) : lead_bits(byte);
    s.more = from->more ? (uint8_t)(from->more - 1) : more_bytes(byte);
    bool ends = unit >> 8 & 1;
    if (!s.more && (s.later || ends))
        clear(w->to->bits, s.c);
    if (!s.more && s.later)
        clear(w->to->apart, s.c);
    inert_chars_push(w, s);
    return !(ends && s.more);
}

/*
 * The units that one step from each state can lead to: a unit of label c is a step from the state
 * (its index ^ c) alone. `first` by state, then `next`; 0: end.
 */
struct steps {
    uint32_t *first, *next;
};

static struct steps find_steps(const struct sp_norm *norm, size_t n)
{
    struct steps s = {mem_new(n, sizeof(*s.first)), mem_new(n, sizeof(*s.next))};
    for (uint32_t i = 1; i < n; i++) {
        uint32_t label = inert_chars_unit_at(norm, i) & 0x800000ffu;
        if (label == 0 || label > 255 || (i ^ label) >= n)
            continue;
        s.next[i] = s.first[i ^ label];
        s.first[i ^ label] = i;
    }
    return s;
}

/* False: a rule ends inside a character, or the trie is not a tree of reasonable size. */
static bool walk_steps(struct walk *w, const struct steps *to, size_t n)
{
    inert_chars_push(
        w, (struct step){.state = inert_chars_unit_offset(inert_chars_unit_at(w->norm, 0))});
    for (size_t steps = 0; w->n; steps++) {
        struct step s = w->stack[--w->n];
        if (steps > STEPS_MAX)
            return false;
        for (uint32_t place = s.state < n ? to->first[s.state] : 0; place;
             place = to->next[place]) {
            uint32_t u = inert_chars_unit_at(w->norm, place);
            if (!inert_chars_take(w, &s, u & 255, u, place ^ inert_chars_unit_offset(u),
                                  steps == 0))
                return false;
        }
    }
    return true;
}

static bool walk_rules(struct walk *w)
{
    size_t n = (size_t)(w->norm->strings - w->norm->units) / 4;
    struct steps to = find_steps(w->norm, n);
    bool good = walk_steps(w, &to, n);
    free(to.first);
    free(to.next);
    return good;
}

/* ---- user-defined pieces ------------------------------------------------------------------- */

static void clear_users(struct sp_plain *p, const struct sp_norm *norm)
{
    char u[4];
    for (uint32_t c = 0; c < SP_PLAIN_CHARS; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        uint32_t at = TRIE_ROOT;
        size_t k = utf8_put(u, c), i = 0;
        while (i < k && trie_step(&norm->user, &at, u[i]))
            i++;
        if (i == k)
            clear(p->bits, c);
        else if (i == 0 && c >= 128 && k > 1)
            c |= k == 2 ? 0x3f : k == 3 ? 0xfff : 0x3ffff; /* no piece begins with this byte */
    }
}

void sp_plain_init(struct sp_plain *p, const struct sp_norm *norm)
{
    *p = (struct sp_plain){.bits = mem_new(SP_PLAIN_CHARS / 64, sizeof(*p->bits)),
                           .apart = mem_new(SP_PLAIN_CHARS / 64, sizeof(*p->apart))};
    memset(p->bits, 0xff, SP_PLAIN_CHARS / 8);
    memset(p->apart, 0xff, SP_PLAIN_CHARS / 8);
    clear(p->bits, 0x2581); /* the mark is handled like the space */
    clear_users(p, norm);
    if (norm->units) {
        struct walk w = {.norm = norm, .to = p};
        if (!walk_rules(&w)) {
            memset(p->bits, 0, SP_PLAIN_CHARS / 8);
            memset(p->apart, 0, SP_PLAIN_CHARS / 8);
        }
        free(w.stack);
    }
    for (uint32_t c = 0; c < 128; c++)
        p->ascii[c] = sp_is_plain(p, c);
}

void sp_plain_finish(struct sp_plain *p)
{
    free(p->bits);
    free(p->apart);
    *p = (struct sp_plain){0};
}
