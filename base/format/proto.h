/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_PROTO_H
#define BASE_FORMAT_PROTO_H

/*
 * A bounded reader and a small writer of the protobuf wire format
 * (protobuf.dev/programming-guides/encoding). The reader walks the fields of one message that lies
 * in memory and never reads beyond it; nested messages are walked with a reader of their own.
 * Groups are rejected. Nothing is copied: `bytes` points into the caller's memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

enum proto_type { PROTO_VARINT = 0, PROTO_I64 = 1, PROTO_BYTES = 2, PROTO_I32 = 5 };

struct proto {
    const unsigned char *p, *end;
    const unsigned char *start; /* of the whole file, so that errors give its offset */
    const char *name;           /* for messages */
    bool inside;                /* another message; else its end is the end of the file */
};

struct proto_field {
    uint32_t number;
    enum proto_type type;
    uint64_t value;             /* varint, or the bits of I64 and I32 */
    const unsigned char *bytes; /* PROTO_BYTES */
    size_t length;
    uint64_t offset; /* of the field's tag in the file */
};

void proto_init(struct proto *r, const char *name, const void *p, size_t n);

/* A reader for the message inside `f`. */
struct proto proto_inside(const struct proto *r, const struct proto_field *f);

/* Next field: *ret_more is false at the end. ERR_DATA names file and offset, and hints at a
 * truncated file. */
int proto_next(struct proto *r, struct proto_field *ret, bool *ret_more, struct err *e);

float proto_float(const struct proto_field *f); /* of a PROTO_I32 */

void protow_varint(struct buf *b, uint32_t number, uint64_t v);
void protow_bytes(struct buf *b, uint32_t number, const void *p, size_t n);
void protow_float(struct buf *b, uint32_t number, float v);
void protow_double(struct buf *b, uint32_t number, double v);

#endif
