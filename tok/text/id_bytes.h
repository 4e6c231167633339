/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_ID_BYTES_H
#define TOK_TEXT_ID_BYTES_H

/*
 * The bytes that each id of a vocabulary decodes to, laid out so that concatenating them is one
 * load for almost every id: the bytes are next to their number; an entry that is longer than 15
 * bytes, has a zero byte or is empty is elsewhere. With AVX-512 VBMI2 four ids are one register,
 * whose valid bytes are compressed together.
 *
 * Filled once, then immutable and shared by threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/simd.h"

enum {
    ID_BYTES_LENGTH = 15, /* most bytes of an entry in the table */
    ID_BYTES_PART = 16,   /* not UTF-8 by itself; set by id_bytes_set */
    ID_BYTES_MARK = 32,   /* for the caller */
    ID_BYTES_RUN = 64,  /* one of a run of bytes that are looked at together, or an id between them
                       that is nothing and does not end it */
    ID_BYTES_FAR = 128, /* is in `text` */
    ID_BYTES_NOTHING =
        256 /* in what id_bytes_append returns: an entry without bytes, but for ID_BYTES_RUN */
};

struct id_bytes_entry {
    union {
        char text[15]; /* padded with zeros */
        struct {
            uint64_t at;
            uint32_t length;
        } far;        /* ID_BYTES_FAR */
        char all[16]; /* of which the last is the tag */
    };
};

struct id_bytes_table {
    struct id_bytes_entry *of; /* by id */
    struct buf text;           /* 16 bytes after the end are readable */
    bool parts;                /* every entry that is not ID_BYTES_RUN is ID_BYTES_PART */
};

void id_bytes_init(struct id_bytes_table *s, size_t n); /* every id must then be set */
void id_bytes_finish(struct id_bytes_table *s);

/* `mark`: ID_BYTES_MARK, ID_BYTES_RUN, both or 0. */
void id_bytes_set(struct id_bytes_table *s, size_t id, const char *p, size_t n, int mark);

static inline unsigned id_bytes_tag(const struct id_bytes_entry *s)
{
    return (uint8_t)s->all[15];
}

/* The bytes of an id. */
const char *id_bytes_text(const struct id_bytes_table *s, int32_t id, size_t *ret_n);

/* Appends the bytes of the ids; returns the union of their tags. Ids must be in the table. */
unsigned id_bytes_append(const struct id_bytes_table *s, const int32_t *id, size_t n,
                         struct buf *out);

/*
 * The same as long as runs of bytes are UTF-8; returns how many ids were appended. The next
 * *ret_odd ids hold a run that is not UTF-8, end where no run continues, and are left to the
 * caller. In a table with `parts` all ids are odd.
 */
size_t id_bytes_append_runs(const struct id_bytes_table *s, const int32_t *id, size_t n,
                            struct buf *out, size_t *ret_odd);

/* By the code of one level, which the processor must have; for tests. */
unsigned id_bytes_append_by(const struct id_bytes_table *s, const int32_t *id, size_t n,
                            struct buf *out, enum simd_level level);

#endif
