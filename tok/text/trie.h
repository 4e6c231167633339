/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_TRIE_H
#define TOK_TEXT_TRIE_H

/*
 * A map from byte strings to ids that is walked byte by byte: a double array. Built once, then only
 * read. The strings are not kept.
 *
 *     uint32_t at = TRIE_ROOT;
 *     while (i < n && trie_step(t, &at, text[i++]))
 *         if (trie_value(t, at) >= 0) ...
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trie_unit {
    uint32_t base;  /* a child by byte c is unit base + c, if its check is this unit */
    uint32_t check; /* the parent */
    int32_t value;  /* -1: no string ends here */
};

struct trie {
    struct trie_unit *unit;
    size_t n; /* units; 256 more after them are readable */
};

struct trie_key {
    const char *text;
    size_t length; /* at least 1 */
    int32_t value; /* at least 0 */
};

enum { TRIE_ROOT = 0 };

/* Sorts the keys, which must differ. */
void trie_init(struct trie *t, struct trie_key *key, size_t n);
void trie_finish(struct trie *t);

static inline bool trie_step(const struct trie *t, uint32_t *at, char c)
{
    uint32_t to = t->unit[*at].base + (unsigned char)c;
    if (t->unit[to].check != *at)
        return false;
    *at = to;
    return true;
}

static inline int32_t trie_value(const struct trie *t, uint32_t at)
{
    return t->unit[at].value;
}

#endif
