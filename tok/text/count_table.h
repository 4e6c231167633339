/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_COUNT_TABLE_H
#define TOK_TEXT_COUNT_TABLE_H

/*
 * Words and how often they were seen: a table of one thread. Words of up to 23 bytes lie in the
 * slots themselves, longer ones in a store of bytes beside them. Slots follow the hashes of their
 * words, which mean nothing; whoever needs another order sorts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

struct learn_slot {
    uint64_t key[3]; /* the bytes, on top their number; or hash, place, number, on top 255 */
    uint64_t count;  /* 0: empty */
};

struct learn_table {
    struct learn_slot *slot; /* within `memory`, so that none lies in two lines */
    void *memory;
    size_t mask, used;
    int shift;        /* a hash moved right by this is the slot where its word belongs */
    struct buf store; /* words of more than 23 bytes */
};

void learn_table_init(struct learn_table *t);
void learn_table_finish(struct learn_table *t);

/* Forgets all words and gives the memory back. */
void learn_table_clear(struct learn_table *t);

/* Words text[start[i] .. start[i + 1]), i < n, each `count` times more; 24 readable bytes behind
 * the text. An empty word is passed over. */
void learn_table_add(struct learn_table *t, const char *text, const uint32_t *start, size_t n,
                     uint64_t count);

/* All words of `from`. */
void learn_table_join(struct learn_table *t, const struct learn_table *from);

/* The word of a slot that is not empty. Bytes lie in the slot or the table. */
const char *learn_slot_text(const struct learn_table *t, const struct learn_slot *s, size_t *ret_n);

uint64_t learn_slot_hash(const struct learn_slot *s);
uint64_t learn_word_hash(const char *p, size_t n); /* 24 readable bytes behind the word */

uint64_t learn_table_bytes(const struct learn_table *t); /* memory held */

#endif
