/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unicode/unicode.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "tok/unicode/tables/tables.h"

struct range {
    uint32_t first, last;
};

static bool in_ranges(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n && r[i].first <= c; i++) {
        if (c <= r[i].last)
            return true;
    }
    return false;
}

#define IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof(ranges[0]), c)

enum uni_category uni_category(enum uni_version v, uint32_t c)
{
    BUG_ON(c >= UNI_LIMIT, "code point %#x", c);
    size_t at = (size_t)uni_category_block[v][c >> UNI_SHIFT] << UNI_SHIFT | (c & UNI_MASK);
    return (enum uni_category)(uni_category_letter[at] - 'a');
}

bool uni_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    static const struct range spaces[] = {{0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                          {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                          {0x205f, 0x205f}, {0x3000, 0x3000}};
    return IN(spaces, c);
}

/* Alphabetic, M, Nd and Pc. */
static bool in_words(enum uni_version v, uint32_t c)
{
    /* Alphabetic without being L, M or Nl: circled, squared and negative letters */
    static const struct range circled[] = {
        {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
    uint32_t set = UNI_L | UNI_M | 1u << UNI_ND | 1u << UNI_NL | 1u << UNI_PC;
    return uni_in(v, c, set) || IN(circled, c);
}

bool uni_word(enum uni_version v, uint32_t c)
{
    return in_words(v, c) || c == 0x200c || c == 0x200d;
}

bool uni_word_oniguruma(uint32_t c, bool in_class)
{
    bool numeral = c < 0x100 && uni_in(UNI_16, c, 1u << UNI_NO);
    return in_words(UNI_16, c) || (numeral && !in_class);
}

uint8_t uni_script(uint32_t c)
{
    return uni_at(uni_script_class, c);
}

bool uni_han(enum uni_version v, uint32_t c)
{
    /* code points assigned in these are Han in every version; later versions only add to them */
    static const struct range han[] = {{0x2e80, 0x2e99},   {0x2e9b, 0x2ef3},   {0x2f00, 0x2fd5},
                                       {0x3005, 0x3005},   {0x3007, 0x3007},   {0x3021, 0x3029},
                                       {0x3038, 0x303b},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                       {0xf900, 0xfa6d},   {0xfa70, 0xfad9},   {0x16fe2, 0x16fe3},
                                       {0x16ff0, 0x16ff6}, {0x20000, 0x2fa1f}, {0x30000, 0x3347f}};
    return IN(han, c) && uni_category(v, c) != UNI_CN;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static uint16_t add_block(struct uni_map *m)
{
    if (m->blocks == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 300;
        m->value = mem_grow(m->value, m->cap, 1 << UNI_SHIFT);
    }
    return (uint16_t)m->blocks++;
}

void uni_map_init(struct uni_map *m, enum uni_version v, const uint8_t value[UNI_CATEGORIES])
{
    uint16_t known[UNI_BLOCKS] = {0}; /* block of the letters -> ours + 1 */
    *m = (struct uni_map){.block = mem_new(UNI_BLOCKS, sizeof(*m->block))};
    for (size_t i = 0; i < UNI_BLOCKS; i++) {
        uint16_t *k = &known[uni_category_block[v][i]];
        if (!*k) {
            *k = (uint16_t)(add_block(m) + 1);
            const char *from =
                uni_category_letter + ((size_t)uni_category_block[v][i] << UNI_SHIFT);
            uint8_t *to = m->value + ((size_t)(*k - 1) << UNI_SHIFT);
            for (size_t j = 0; j <= UNI_MASK; j++)
                to[j] = value[from[j] - 'a'];
        }
        m->block[i] = (uint16_t)(*k - 1);
    }
}

void uni_map_finish(struct uni_map *m)
{
    free(m->block);
    free(m->value);
    *m = (struct uni_map){0};
}

/* ---- properties by name ---------------------------------------------------------------------- */

bool uni_find_named(const char *name, struct uni_ranges *ret)
{
    size_t low = 0, high = uni_named_count;
    while (low < high) {
        size_t half = low + (high - low) / 2;
        int order = strcmp(name, uni_named[half].name);
        if (!order) {
            *ret = (struct uni_ranges){.at = uni_named_ranges + uni_named[half].at};
            return true;
        }
        if (order < 0)
            high = half;
        else
            low = half + 1;
    }
    return false;
}

static uint32_t unicode_take_number(const uint8_t **p)
{
    uint32_t n = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*p)++;
        n |= (b & 127u) << shift;
        if (b < 128)
            return n;
    }
}

bool uni_next_range(struct uni_ranges *r)
{
    uint32_t gap = unicode_take_number(&r->at), length = unicode_take_number(&r->at);
    r->first = r->end + gap;
    r->end = r->first + length;
    return length > 0;
}
