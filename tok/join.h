/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JOIN_H
#define TOK_JOIN_H

/*
 * What each id of a vocabulary is decoded to, laid out so that joining them is one load and one
 * store of 16 bytes for almost every id: the bytes lie beside their number, and only what is longer
 * than 15 of them elsewhere.
 *
 * Filled once, then immutable and shared by threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
    JOIN_LENGTH = 15, /* of what lies in the table */
    JOIN_PART = 16,   /* no UTF-8 by itself; set by join_set */
    JOIN_MARK = 32,   /* the caller's */
    JOIN_OTHER = 64,  /* the caller sees to this id: `value` says how */
    JOIN_LONG = 128   /* lies in `text` */
};

struct join_entry {
    union {
        char text[15];
        struct {
            uint64_t at;
            uint32_t length;
        } far;        /* JOIN_LONG */
        int value;    /* JOIN_OTHER */
        char all[16]; /* of which the last is the tag */
    };
};

struct join_table {
    struct join_entry *of; /* by id */
    struct buf text;       /* 16 readable bytes behind the end */
};

void join_init(struct join_table *s, size_t n); /* all are empty */
void join_finish(struct join_table *s);

/* `mark`: JOIN_MARK or 0. */
void join_set(struct join_table *s, size_t id, const char *p, size_t n, int mark);
void join_set_other(struct join_table *s, size_t id, int value);

static inline unsigned join_tag(const struct join_entry *s)
{
    return (uint8_t)s->all[15];
}

/* Bytes of an id that is not JOIN_OTHER. */
const char *join_text(const struct join_table *s, int32_t id, size_t *ret_n);

/*
 * Appends the bytes of the ids before the first that is JOIN_OTHER, and returns how many these
 * are. *seen gets JOIN_PART set if one of them is no UTF-8 by itself. Ids are inside the table.
 */
size_t join_put(const struct join_table *s, const int32_t *id, size_t n, struct buf *out,
                unsigned *seen);

#endif
