/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_ID_BYTES_H
#define TOK_TEXT_ID_BYTES_H

/*
 * What each id of a vocabulary is decoded to, laid out so that joining them is one load for almost
 * every id: the bytes lie beside their number, and only what is longer than 15 of them, has a byte
 * 0 or is nothing at all, elsewhere. With AVX-512's VBMI2 four ids are one register, whose bytes
 * that count are drawn together.
 *
 * Filled once, then immutable and shared by threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

enum {
    JOIN_LENGTH = 15,  /* of what lies in the table */
    JOIN_PART = 16,    /* no UTF-8 by itself; set by join_set */
    JOIN_MARK = 32,    /* the caller's */
    JOIN_RUN = 64,     /* one of a run of bytes that are looked at together, or an id between them
                          that is nothing and does not end it */
    JOIN_FAR = 128,    /* lies in `text` */
    JOIN_NOTHING = 256 /* in what join_put returns: an entry without bytes, but for JOIN_RUN */
};

struct join_entry {
    union {
        char text[15]; /* zeros behind it */
        struct {
            uint64_t at;
            uint32_t length;
        } far;        /* JOIN_FAR */
        char all[16]; /* of which the last is the tag */
    };
};

struct join_table {
    struct join_entry *of; /* by id */
    struct buf text;       /* 16 readable bytes behind the end */
    bool parts;            /* an entry that is no JOIN_RUN is JOIN_PART */
};

void join_init(struct join_table *s, size_t n); /* each is to be set */
void join_finish(struct join_table *s);

/* `mark`: JOIN_MARK, JOIN_RUN, both or 0. */
void join_set(struct join_table *s, size_t id, const char *p, size_t n, int mark);

static inline unsigned join_tag(const struct join_entry *s)
{
    return (uint8_t)s->all[15];
}

/* Bytes of an id. */
const char *join_text(const struct join_table *s, int32_t id, size_t *ret_n);

/* Appends the bytes of the ids; returns the tags of all. Ids are inside the table. */
unsigned join_put(const struct join_table *s, const int32_t *id, size_t n, struct buf *out);

/*
 * The same as far as runs of bytes are UTF-8: how many of the ids were appended. The next *ret_odd
 * ids hold a run that is none, end where no run goes on, and are the caller's. Of a table with
 * `parts` all ids are odd.
 */
size_t join_put_runs(const struct join_table *s, const int32_t *id, size_t n, struct buf *out,
                     size_t *ret_odd);

/* Ways to do it, for tests: 0 is plain, NULL behind the last that this machine has. */
typedef unsigned join_way(const struct join_table *s, const int32_t *id, size_t n, struct buf *out);
join_way *join_ways(size_t i);

#endif
