/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/thrift.h"

enum { MAX_DEPTH = 32 };

static void fail(struct thrift *t, enum thrift_state state)
{
    if (t->state == THRIFT_GOOD)
        t->state = state;
}

static unsigned byte(struct thrift *t)
{
    if (t->state == THRIFT_GOOD && t->at < t->n)
        return t->p[t->at++];
    fail(t, THRIFT_SHORT);
    return 0;
}

static uint64_t varint(struct thrift *t)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned b = byte(t);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return t->state == THRIFT_GOOD ? v : 0;
    }
    fail(t, THRIFT_BAD);
    return 0;
}

static int64_t zigzag(struct thrift *t)
{
    uint64_t v = varint(t);
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static bool is(struct thrift *t, bool fits)
{
    if (!fits)
        fail(t, THRIFT_BAD);
    return t->state == THRIFT_GOOD;
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
    unsigned head = byte(t);
    if (t->state != THRIFT_GOOD || !head)
        return false;
    int64_t id = head >> 4 ? f->id + (int64_t)(head >> 4) : zigzag(t);
    f->type = head & 0xf;
    if (!is(t,
            f->type >= THRIFT_TRUE && f->type <= THRIFT_UUID && id >= INT16_MIN && id <= INT16_MAX))
        return false;
    f->id = (int)id;
    return true;
}

int64_t thrift_int(struct thrift *t, const struct thrift_field *f)
{
    if (f->type == THRIFT_BYTE)
        return (int8_t)byte(t);
    return is(t, f->type >= THRIFT_I16 && f->type <= THRIFT_I64) ? zigzag(t) : 0;
}

bool thrift_bool(struct thrift *t, const struct thrift_field *f)
{
    return is(t, f->type == THRIFT_TRUE || f->type == THRIFT_FALSE) && f->type == THRIFT_TRUE;
}

/* Steps over n bytes; returns their address. */
static const unsigned char *pass(struct thrift *t, uint64_t n)
{
    const unsigned char *p = t->p + t->at;
    if (t->state == THRIFT_GOOD && n > t->n - t->at)
        fail(t, THRIFT_SHORT);
    if (t->state != THRIFT_GOOD)
        return t->p;
    t->at += (size_t)n;
    return p;
}

const char *thrift_bytes(struct thrift *t, const struct thrift_field *f, size_t *ret_n)
{
    *ret_n = 0;
    if (!is(t, f->type == THRIFT_BINARY))
        return (const char *)t->p;
    uint64_t n = varint(t);
    const unsigned char *p = pass(t, n);
    *ret_n = t->state == THRIFT_GOOD ? (size_t)n : 0;
    return (const char *)p;
}

/* A list's header: the number of elements, each of which takes a byte at least. */
static uint64_t list_head(struct thrift *t, int *ret_type)
{
    unsigned head = byte(t);
    uint64_t n = head >> 4 == 15 ? varint(t) : head >> 4;
    *ret_type = head & 0xf;
    if (t->state == THRIFT_GOOD && n > t->n - t->at)
        fail(t, THRIFT_SHORT);
    return t->state == THRIFT_GOOD ? n : 0;
}

size_t thrift_list(struct thrift *t, const struct thrift_field *f, int type)
{
    int got = 0;
    if (!is(t, f->type == THRIFT_LIST || f->type == THRIFT_SET))
        return 0;
    uint64_t n = list_head(t, &got);
    return is(t, !n || got == type) ? (size_t)n : 0;
}

void thrift_struct(struct thrift *t, const struct thrift_field *f)
{
    is(t, f->type == THRIFT_STRUCT);
}

static void skip_thrift(struct thrift *t, int type, bool in_list, int depth);

static void skip_many(struct thrift *t, uint64_t n, int a, int b, int depth)
{
    for (uint64_t i = 0; i < n && t->state == THRIFT_GOOD; i++) {
        skip_thrift(t, a, true, depth);
        if (b)
            skip_thrift(t, b, true, depth);
    }
}

static void skip_struct(struct thrift *t, int depth)
{
    for (struct thrift_field f = {0}; thrift_next(t, &f);)
        skip_thrift(t, f.type, false, depth);
}

static void skip_thrift(struct thrift *t, int type, bool in_list, int depth)
{
    int element;
    uint64_t n;
    if (!is(t, depth < MAX_DEPTH))
        return;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        pass(t, in_list);
        return;
    case THRIFT_BYTE:
        pass(t, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        varint(t);
        return;
    case THRIFT_DOUBLE:
        pass(t, 8);
        return;
    case THRIFT_UUID:
        pass(t, 16);
        return;
    case THRIFT_BINARY:
        n = varint(t);
        pass(t, n);
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        n = list_head(t, &element);
        skip_many(t, n, element, 0, depth + 1);
        return;
    case THRIFT_MAP:
        n = varint(t);
        if (n) {
            unsigned types = byte(t);
            skip_many(t, n, (int)(types >> 4), (int)(types & 0xf), depth + 1);
        }
        return;
    case THRIFT_STRUCT:
        skip_struct(t, depth + 1);
        return;
    default:
        fail(t, THRIFT_BAD);
    }
}

void thrift_skip(struct thrift *t, const struct thrift_field *f)
{
    skip_thrift(t, f->type, false, 0);
}
