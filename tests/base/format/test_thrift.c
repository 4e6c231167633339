/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/thrift.h"

#include <string.h>

#include "tests/t.h"

#define OF(text)                                                                                   \
    {                                                                                              \
        .p = (const unsigned char *)(text), .n = sizeof(text) - 1                                  \
    }

/* {1: true, 2: i32 -3, 4: "abc", 20: [7, 8], 21: {1: i64 300}, 22: map, 23: double, 24: last} */
static const char sample[] = "\x11\x15\x05\x28\x03"
                             "abc"
                             "\x09\x28\x25\x0e\x10\x1c\x16\xd8\x04\x00"
                             "\x1b\x02\x85\x01"
                             "a"
                             "\x02\x01"
                             "b"
                             "\x04"
                             "\x17"
                             "12345678"
                             "\x13\x7f\x00";

static void fields_of_every_kind(void)
{
    struct thrift t = OF(sample);
    struct thrift_field f = {0}, g = {0}, element = {.type = THRIFT_I32};
    size_t n;
    T_CHECK(thrift_next(&t, &f));
    T_EQ(f.id, 1);
    T_CHECK(thrift_bool(&t, &f));
    T_CHECK(thrift_next(&t, &f));
    T_EQ(thrift_int(&t, &f), -3);
    T_CHECK(thrift_next(&t, &f));
    T_EQ(f.id, 4);
    const char *s = thrift_bytes(&t, &f, &n);
    T_EQ(n, 3);
    T_MEM(s, "abc", 3);
    T_CHECK(thrift_next(&t, &f));
    T_EQ(f.id, 20);
    T_EQ(thrift_list(&t, &f, THRIFT_I32), 2);
    T_EQ(thrift_int(&t, &element), 7);
    T_EQ(thrift_int(&t, &element), 8);
    T_CHECK(thrift_next(&t, &f));
    thrift_struct(&t, &f);
    T_CHECK(thrift_next(&t, &g));
    T_EQ(thrift_int(&t, &g), 300);
    T_CHECK(!thrift_next(&t, &g));
    for (int i = 22; i < 25; i++) {
        T_CHECK(thrift_next(&t, &f));
        T_EQ(f.id, i);
        thrift_skip(&t, &f);
    }
    T_CHECK(!thrift_next(&t, &f));
    T_EQ(t.state, THRIFT_GOOD);
    T_EQ(t.at, t.n);
}

static void skip_all(struct thrift *t)
{
    for (struct thrift_field f = {0}; thrift_next(t, &f);)
        thrift_skip(t, &f);
}

static void all_can_be_skipped_and_cut(void)
{
    for (size_t n = 0; n < sizeof(sample); n++) {
        struct thrift t = {.p = (const unsigned char *)sample, .n = n};
        skip_all(&t);
        T_EQ(t.state, n == sizeof(sample) - 1  ? THRIFT_GOOD
                      : n < sizeof(sample) - 1 ? THRIFT_SHORT
                                               : THRIFT_GOOD);
        T_CHECK(t.at <= n);
    }
}

static void what_is_bad(void)
{
    struct thrift kind = OF("\x1e\x00"), deep = {0}, many = OF("\x19\xf5\xff\xff\xff\xff\x0f\x00"),
                  wide = OF("\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00");
    skip_all(&kind);
    T_EQ(kind.state, THRIFT_BAD);
    unsigned char nest[200];
    memset(nest, 0x1c, sizeof(nest));
    deep.p = nest;
    deep.n = sizeof(nest);
    skip_all(&deep);
    T_EQ(deep.state, THRIFT_BAD);
    skip_all(&many);
    T_EQ(many.state, THRIFT_SHORT);
    skip_all(&wide);
    T_EQ(wide.state, THRIFT_BAD);
    struct thrift other = OF("\x18\x01"
                             "a"
                             "\x00");
    struct thrift_field f = {0};
    T_CHECK(thrift_next(&other, &f));
    T_EQ(thrift_int(&other, &f), 0);
    T_EQ(other.state, THRIFT_BAD);
    T_CHECK(!thrift_next(&other, &f));
}

T_MAIN(T_CASE(fields_of_every_kind), T_CASE(all_can_be_skipped_and_cut), T_CASE(what_is_bad))
