/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

/* Walks all; the code of the first failure. */
static int walk(const void *p, size_t n, int *ret_fields, struct err *e)
{
    struct proto r;
    struct proto_field f;
    bool more;
    char *copy = mem_new(n, 1); /* its own block: reading beyond the end is seen by a sanitizer */
    if (n)
        memcpy(copy, p, n);
    proto_init(&r, "x.model", copy, n);
    *ret_fields = 0;
    int code;
    while (!(code = proto_next(&r, &f, &more, e)) && more)
        ++*ret_fields;
    free(copy);
    return code;
}

static void bad(const char *p, size_t n, const char *words)
{
    struct err e;
    int fields;
    T_ERR(walk(p, n, &fields, &e), &e, ERR_DATA, words);
    T_ERR(ERR_DATA, &e, ERR_DATA, "x.model: not a valid protobuf message: at byte ");
}

static void written_and_read(void)
{
    static const uint64_t numbers[] = {0, 1, 127, 128, 300, 1u << 31, UINT64_MAX};
    struct err e;
    struct buf b = {0}, inner = {0};
    struct proto r, in;
    struct proto_field f;
    bool more;
    for (size_t i = 0; i < 7; i++)
        protow_varint(&b, 536870911, numbers[i]);
    protow_float(&b, 2, -0.5f);
    protow_bytes(&inner, 1, "word", 4);
    protow_bytes(&b, 3, inner.data, inner.len);
    protow_bytes(&b, 4, "", 0);
    proto_init(&r, "x", b.data, b.len);
    for (size_t i = 0; i < 7; i++) {
        T_OK(proto_next(&r, &f, &more, &e), &e);
        T_CHECK(more && f.number == 536870911 && f.type == PROTO_VARINT && f.value == numbers[i]);
    }
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(more && f.type == PROTO_I32 && proto_float(&f) == -0.5f);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(more && f.number == 3 && f.type == PROTO_BYTES && f.length == inner.len);
    T_EQ(f.offset, f.bytes - r.start - 2);
    in = proto_inside(&r, &f);
    T_OK(proto_next(&in, &f, &more, &e), &e);
    T_CHECK(more && f.number == 1 && f.length == 4 && !memcmp(f.bytes, "word", 4));
    T_OK(proto_next(&in, &f, &more, &e), &e);
    T_CHECK(!more);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(more && f.number == 4 && f.length == 0);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(!more);
    buf_finish(&b);
    buf_finish(&inner);
}

/* The guide's own examples: field 1 = 150; field 2 = "testing". */
static void known_bytes(void)
{
    struct err e;
    struct buf b = {0};
    protow_varint(&b, 1, 150);
    protow_bytes(&b, 2, "testing", 7);
    T_EQ(b.len, 12);
    T_MEM(b.data, "\x08\x96\x01\x12\x07testing", 12);
    buf_finish(&b);
    struct proto r;
    struct proto_field f;
    bool more;
    proto_init(&r, "x", "\x09\x01\x02\x03\x04\x05\x06\x07\x08", 9);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(f.type == PROTO_I64 && f.value == 0x0807060504030201);
    proto_init(&r, "x", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11); /* -1 */
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK((int64_t)f.value == -1);
    proto_init(&r, "x", NULL, 0);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    T_CHECK(!more);
}

static void malformed(void)
{
    bad("\x80", 1, "at byte 0 a number is truncated");
    bad("\x08", 1, "at byte 1 a number is truncated");
    bad("\x08\x01\x08\xff", 4, "at byte 3 a number is truncated");
    bad("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "more than 64 bits");
    bad("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "more than 64 bits");
    bad("\x00\x01", 2, "field number");
    bad("\x80\x80\x80\x80\x10\x01", 6, "field number");
    bad("\x12\x05"
        "four",
        6, "at byte 1 a length exceeds");
    bad("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
        "abc",
        14, "a length exceeds");
    bad("\x0b\x0c", 2, "a group");
    bad("\x0c", 1, "a group");
    bad("\x0e\x01", 2, "unknown type");
    bad("\x0d\x01\x02\x03", 4, "at byte 1 a fixed-width number is truncated");
    bad("\x09\x01\x02\x03\x04\x05\x06\x07", 8, "at byte 1 a fixed-width number is truncated");
}

/* An inner message that leads beyond itself does not reach its parent's bytes. */
static void inner_messages_are_bounded(void)
{
    struct err e;
    struct buf b = {0};
    protow_bytes(&b, 1, "\x12\x05x", 3);
    protow_bytes(&b, 2, "behind", 6);
    struct proto r;
    struct proto_field f;
    bool more;
    proto_init(&r, "x.model", b.data, b.len);
    T_OK(proto_next(&r, &f, &more, &e), &e);
    struct proto in = proto_inside(&r, &f);
    T_ERR(proto_next(&in, &f, &more, &e), &e, ERR_DATA, "at byte 3 a length exceeds");
    buf_finish(&b);
}

/* Any prefix and any altered byte: an answer, never a read outside (the sanitizers look on). */
static void altered_bytes(void)
{
    struct err e;
    struct buf b = {0};
    int fields;
    for (uint32_t i = 1; i < 20; i++) {
        protow_varint(&b, i, (uint64_t)1 << (3 * i));
        protow_bytes(&b, i + 100, "some bytes", i % 11);
        protow_float(&b, i + 9000, 1.5f);
    }
    T_OK(walk(b.data, b.len, &fields, &e), &e);
    T_EQ(fields, 57);
    for (size_t n = 0; n < b.len; n++) {
        int code = walk(b.data, n, &fields, &e);
        T_CHECK((code == 0 || code == ERR_DATA) && fields < 57);
    }
    for (size_t i = 0; i < b.len; i++) {
        char was = b.data[i];
        for (int v = 0; v < 256; v++) {
            b.data[i] = (char)v;
            int code = walk(b.data, b.len, &fields, &e);
            T_CHECK(code == 0 || code == ERR_DATA);
        }
        b.data[i] = was;
    }
    buf_finish(&b);
}

T_MAIN(T_CASE(written_and_read), T_CASE(known_bytes), T_CASE(malformed),
       T_CASE(inner_messages_are_bounded), T_CASE(altered_bytes))
