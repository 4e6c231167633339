/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/words.h"

enum {
    SIDE = 3,   /* bytes of a side that count, */
    PARTLY = 4, /* a flag beside their number */
    GROUP = 16  /* parts that are looked at together */
};

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* ---- keys: up to three bytes of each side with their number --------------------------------- */

/* Where the character before `at` begins, not more than three bytes back; *ret_whole: it is all
 * there. */
static size_t left_of(const char *p, size_t at, bool *ret_whole)
{
    size_t k = at - 1;
    while (k && at - k < SIDE && continues(p[k]))
        k--;
    *ret_whole = at - k == SIDE || !continues(p[k]);
    return k;
}

/* Bytes that the character at p ought to have, three at most. */
static size_t right_of(char c)
{
    unsigned char u = (unsigned char)c;
    return u < 0xc0 ? 1 : u < 0xe0 ? 2 : SIDE;
}

static uint64_t side(const char *p, size_t n)
{
    uint64_t v = (uint64_t)n << 24;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return v;
}

/* Of a character that is not all there, the byte next to the place. */
static uint64_t partial(char c)
{
    return side(&c, 1) | (uint64_t)PARTLY << 24;
}

static size_t bit_of(const struct cut *c, uint64_t left, uint64_t right)
{
    uint64_t h = (left << 32 | right) * 0x9E3779B97F4A7C15u;
    return (size_t)((h ^ h >> 32) * 0xBF58476D1CE4E5B9u >> c->shift);
}

static bool has(const struct cut *c, uint64_t left, uint64_t right)
{
    size_t i = bit_of(c, left, right);
    return c->bits[i / 64] >> (i % 64) & 1;
}

/* ---- filling ------------------------------------------------------------------------------- */

void cut_init(struct cut *c, size_t bytes)
{
    int bits = 16;
    while (bits < 21 && (size_t)1 << bits < bytes * 4)
        bits++;
    *c = (struct cut){.shift = 64 - bits, .bits = mem_new((size_t)1 << (bits - 6), 8)};
}

void cut_finish(struct cut *c)
{
    free(c->bits);
    *c = (struct cut){0};
}

static void add_pair(struct cut *c, const char *p, size_t at, size_t n)
{
    unsigned char a = (unsigned char)p[at - 1], b = (unsigned char)p[at];
    if ((a | b) < 0x80) {
        c->ascii[a][b >> 3] |= (unsigned char)(1 << (b & 7)); /* nothing else is asked for */
        return;
    }
    bool whole;
    size_t from = left_of(p, at, &whole), k = right_of(p[at]);
    uint64_t left = whole ? side(p + from, at - from) : partial(p[at - 1]);
    uint64_t right = n - at >= k ? side(p + at, k) : partial(p[at]);
    c->left |= !whole;
    c->right |= n - at < k;
    size_t i = bit_of(c, left, right);
    c->bits[i / 64] |= (uint64_t)1 << (i % 64);
}

void cut_add(struct cut *c, const char *token, size_t n)
{
    for (size_t at = 1; at < n; at++)
        if (!continues(token[at]))
            add_pair(c, token, at, n);
}

/* ---- asking -------------------------------------------------------------------------------- */

bool cut_between(const struct cut *c, const char *text, size_t at, size_t n)
{
    if (continues(text[at]))
        return false;
    bool whole;
    size_t from = left_of(text, at, &whole), k = right_of(text[at]);
    uint64_t left = side(text + from, at - from);
    bool there = n - at >= k; /* else no token has all of the character */
    uint64_t right = there ? side(text + at, k) : 0;
    if (there && has(c, left, right))
        return false;
    if (c->right && has(c, left, partial(text[at])))
        return false;
    if (!c->left)
        return true;
    uint64_t end = partial(text[at - 1]);
    return !(there && has(c, end, right)) && !(c->right && has(c, end, partial(text[at])));
}

/* Whether one of n parts is longer; without a branch for each. */
static bool any_longer(const uint32_t *start, size_t n, uint32_t longest)
{
    int any = 0;
    for (size_t i = 0; i < n; i++)
        any |= (int)(start[i + 1] - start[i]) > (int)longest;
    return any;
}

size_t cut_parts(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                 uint32_t longest, uint32_t *ret)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (n - i >= GROUP && !any_longer(start + i, GROUP, longest)) {
            memcpy(ret + k, start + i, GROUP * sizeof(*ret));
            k += GROUP;
            i += GROUP - 1;
            continue;
        }
        ret[k++] = start[i];
        if (start[i + 1] - start[i] <= longest)
            continue;
        for (uint32_t at = start[i] + 1; at < start[i + 1]; at++)
            if (cut_here(c, text, at, start[i + 1]))
                ret[k++] = at;
    }
    ret[k] = start[n];
    return k;
}
