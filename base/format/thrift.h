/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_THRIFT_H
#define BASE_FORMAT_THRIFT_H

/*
 * Reads Apache Thrift's compact protocol from memory (its specification:
 * thrift-compact-protocol.md). Errors are sticky: `state` says what failed, every later read gives
 * zero, and no read goes beyond the bytes. Nothing is allocated; a list is never longer than its
 * bytes, so loops over one terminate.
 *
 *     for (struct thrift_field f = {0}; thrift_next(&t, &f);)
 *         if (f.id == 3)
 *             rows = thrift_int(&t, &f);
 *         else
 *             thrift_skip(&t, &f);
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum thrift_type {
    THRIFT_TRUE = 1,
    THRIFT_FALSE,
    THRIFT_BYTE,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BINARY,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT,
    THRIFT_UUID
};

enum thrift_state {
    THRIFT_GOOD,
    THRIFT_SHORT, /* more bytes are needed */
    THRIFT_BAD
};

struct thrift {
    const unsigned char *p;
    size_t n, at;
    enum thrift_state state;
};

struct thrift_field {
    int id, type; /* of the current field */
};

/* The next field of a struct, for which `f` began zeroed; false at its end or on failure. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

/* The value of a field, which must be of that kind. */
int64_t thrift_int(struct thrift *t, const struct thrift_field *f);
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
const char *thrift_bytes(struct thrift *t, const struct thrift_field *f, size_t *ret_n);

/* Returns the number of elements, to be read one by one; structs by thrift_next with a new field.
 */
size_t thrift_list(struct thrift *t, const struct thrift_field *f, int type);

/* The field must be a struct; its fields come next. */
void thrift_struct(struct thrift *t, const struct thrift_field *f);
void thrift_skip(struct thrift *t, const struct thrift_field *f);

#endif
