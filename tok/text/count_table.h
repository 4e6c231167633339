/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_COUNT_TABLE_H
#define TOK_TEXT_COUNT_TABLE_H

/*
 * Words and how often they occurred: the hash table of one thread. Words of up to 23 bytes are in
 * the slots themselves, longer ones in a byte store beside them. The order of slots is that of
 * hashes and means nothing; callers that need an order sort.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

struct learn_slot {
    uint64_t key[3]; /* bytes, and length on top; or hash, position, length, and 255 */
    uint64_t count;  /* 0: empty */
};

struct learn_table {
    struct learn_slot *slot; /* aligned within `memory`, so that no slot crosses a cache line */
    void *memory;
    size_t mask, used;
    int shift;        /* hash >> shift is the home slot of a word */
    struct buf store; /* words of more than 23 bytes */
};

void learn_table_init(struct learn_table *t);
void learn_table_finish(struct learn_table *t);

/* Removes all words and frees the memory. */
void learn_table_clear(struct learn_table *t);

/* Adds `count` to each of the words text[start[i] .. start[i + 1]), i < n; 24 bytes after the text
 * must be readable. Empty words are skipped. */
void learn_table_add(struct learn_table *t, const char *text, const uint32_t *start, size_t n,
                     uint64_t count);

/* Adds all words of `from`. */
void learn_table_join(struct learn_table *t, const struct learn_table *from);

/* The word of a non-empty slot; its bytes belong to the slot or the table. */
const char *learn_slot_text(const struct learn_table *t, const struct learn_slot *s, size_t *ret_n);

uint64_t learn_slot_hash(const struct learn_slot *s);
uint64_t learn_word_hash(const char *p, size_t n); /* 24 bytes after the word must be readable */

uint64_t learn_table_bytes(const struct learn_table *t); /* memory in use */

#endif
