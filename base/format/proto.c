/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/proto.h"

#include <string.h>

#include "base/core/bytes.h"

enum { FIELD_MAX = (1 << 29) - 1, VARINT_BYTES = 10 };

void proto_init(struct proto *r, const char *name, const void *p, size_t n)
{
    *r = (struct proto){.p = p, .start = p, .name = name};
    r->end = n ? r->p + n : r->p;
}

struct proto proto_inside(const struct proto *r, const struct proto_field *f)
{
    BUG_ON(f->type != PROTO_BYTES, "field %u holds no bytes", f->number);
    return (struct proto){.p = f->bytes,
                          .end = f->bytes + f->length,
                          .start = r->start,
                          .name = r->name,
                          .inside = true};
}

static int proto_bad(const struct proto *r, const unsigned char *at, const char *what,
                     struct err *e)
{
    return err_set(e, ERR_DATA, "%s: not a valid protobuf message: at byte %llu %s", r->name,
                   (unsigned long long)(at - r->start), what);
}

/* What the message is too short for. */
static int proto_short(const struct proto *r, const unsigned char *at, const char *what,
                       struct err *e)
{
    int code = proto_bad(r, at, what, e);
    if (!r->inside)
        err_hint(e, "the file ends early, after %llu bytes: download or copy it again",
                 (unsigned long long)(r->end - r->start));
    return code;
}

static int take_varint(struct proto *r, uint64_t *ret, struct err *e)
{
    const unsigned char *at = r->p;
    uint64_t v = 0;
    for (int i = 0; i < VARINT_BYTES; i++) {
        if (r->p == r->end)
            return proto_short(r, at, "a number is truncated", e);
        unsigned char c = *r->p++;
        v |= (uint64_t)(c & 0x7f) << (7 * i);
        if (c & 0x80)
            continue;
        if (i == VARINT_BYTES - 1 && c > 1)
            break;
        *ret = v;
        return 0;
    }
    return proto_bad(r, at, "a number has more than 64 bits", e);
}

static int take_fixed(struct proto *r, size_t n, uint64_t *ret, struct err *e)
{
    if ((size_t)(r->end - r->p) < n)
        return proto_short(r, r->p, "a fixed-width number is truncated", e);
    *ret = n == 8 ? load_u64(r->p) : load_u32(r->p);
    r->p += n;
    return 0;
}

static int take_bytes(struct proto *r, struct proto_field *f, struct err *e)
{
    const unsigned char *at = r->p;
    uint64_t n;
    int code = take_varint(r, &n, e);
    if (code)
        return code;
    if (n > (uint64_t)(r->end - r->p))
        return proto_short(r, at, "a length exceeds the message", e);
    f->bytes = r->p;
    f->length = (size_t)n;
    r->p += n;
    return 0;
}

int proto_next(struct proto *r, struct proto_field *ret, bool *ret_more, struct err *e)
{
    *ret_more = r->p != r->end;
    if (!*ret_more)
        return 0;
    const unsigned char *at = r->p;
    uint64_t tag;
    int code = take_varint(r, &tag, e);
    if (code)
        return code;
    if (tag >> 3 < 1 || tag >> 3 > FIELD_MAX)
        return proto_bad(r, at, "a field number is not in 1 .. 536870911", e);
    *ret = (struct proto_field){.number = (uint32_t)(tag >> 3),
                                .type = (enum proto_type)(tag & 7),
                                .offset = (uint64_t)(at - r->start)};
    switch (tag & 7) {
    case PROTO_VARINT:
        return take_varint(r, &ret->value, e);
    case PROTO_I64:
        return take_fixed(r, 8, &ret->value, e);
    case PROTO_I32:
        return take_fixed(r, 4, &ret->value, e);
    case PROTO_BYTES:
        return take_bytes(r, ret, e);
    case 3:
    case 4:
        return proto_bad(r, at, "a group, which is not supported", e);
    default:
        return proto_bad(r, at, "a field of unknown type", e);
    }
}

float proto_float(const struct proto_field *f)
{
    BUG_ON(f->type != PROTO_I32, "field %u holds no float", f->number);
    uint32_t bits = (uint32_t)f->value;
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* ---- writer ------------------------------------------------------------------------------ */

static void put_varint(struct buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_addc(b, (char)(v | 0x80));
    buf_addc(b, (char)v);
}

static void put_tag(struct buf *b, uint32_t number, enum proto_type type)
{
    BUG_ON(number < 1 || number > FIELD_MAX, "field number %u", number);
    put_varint(b, (uint64_t)number << 3 | type);
}

void protow_varint(struct buf *b, uint32_t number, uint64_t v)
{
    put_tag(b, number, PROTO_VARINT);
    put_varint(b, v);
}

void protow_bytes(struct buf *b, uint32_t number, const void *p, size_t n)
{
    put_tag(b, number, PROTO_BYTES);
    put_varint(b, n);
    buf_add(b, p, n);
}

void protow_float(struct buf *b, uint32_t number, float v)
{
    put_tag(b, number, PROTO_I32);
    buf_add(b, &v, sizeof(v));
}

void protow_double(struct buf *b, uint32_t number, double v)
{
    put_tag(b, number, PROTO_I64);
    buf_add(b, &v, sizeof(v));
}
