/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/builtins.h"

#include "tok/jinja/arith.h"
#include "tok/jinja/case.h"
#include "tok/jinja/compare.h"
#include "tok/jinja/repr.h"

#define TEST(name)                                                                                 \
    static bool test_##name(struct jinja_context *c, const struct value *self,                     \
                            const struct args *a, struct value *ret)

/* A test that looks at the value alone. */
#define PLAIN_TEST(name, condition)                                                                \
    TEST(name)                                                                                     \
    {                                                                                              \
        (void)c, (void)a;                                                                          \
        return *ret = value_bool(condition), true;                                                 \
    }

PLAIN_TEST(defined, self->kind != V_UNDEFINED)
PLAIN_TEST(undefined, self->kind == V_UNDEFINED)
PLAIN_TEST(none, self->kind == V_NONE)
PLAIN_TEST(boolean, self->kind == V_BOOL)
PLAIN_TEST(is_false, self->kind == V_BOOL && !self->boolean)
PLAIN_TEST(is_true, self->kind == V_BOOL && self->boolean)
PLAIN_TEST(integer, self->kind == V_INT)
PLAIN_TEST(float, self->kind == V_REAL)
PLAIN_TEST(string, self->kind == V_STRING)
PLAIN_TEST(mapping, self->kind == V_DICT)
PLAIN_TEST(number, value_is_number(self))
PLAIN_TEST(escaped, self->kind == V_STRING && self->flags & VALUE_SAFE)
PLAIN_TEST(sequence, self->kind == V_UNDEFINED || self->kind == V_STRING ||
                         (self->kind >= V_LIST && self->kind <= V_RANGE))
PLAIN_TEST(callable, self->kind == V_UNDEFINED || self->kind == V_MACRO || self->kind == V_METHOD ||
                         self->kind == V_FUNCTION || self->kind == V_LOOP)
PLAIN_TEST(filter, self->kind == V_STRING && builtin_find(jinja_filters, self->text, self->n))
PLAIN_TEST(test, self->kind == V_STRING && builtin_find(jinja_tests, self->text, self->n))

TEST(iterable)
{
    (void)c, (void)a;
    return *ret = value_bool(value_is_iterable(self)), true;
}

static bool test_case(struct jinja_context *c, const struct value *self, enum case_class k,
                      struct value *ret)
{
    struct value s;
    return repr_str(c, self, &s) && (*ret = value_bool(case_is(&s, k)), true);
}

TEST(lower)
{
    return (void)a, test_case(c, self, CASE_IS_LOWER, ret);
}

TEST(upper)
{
    return (void)a, test_case(c, self, CASE_IS_UPPER, ret);
}

static bool test_remainder(struct jinja_context *c, const struct value *self,
                           const struct value *by, int64_t wanted, struct value *ret)
{
    struct value rest, want = value_int(wanted);
    bool same;
    if (!arith_binary(c, BIN_MOD, self, by, &rest) || !compare_equal(c, &rest, &want, &same))
        return false;
    return *ret = value_bool(same), true;
}

TEST(odd)
{
    struct value two = value_int(2);
    return (void)a, test_remainder(c, self, &two, 1, ret);
}

TEST(even)
{
    struct value two = value_int(2);
    return (void)a, test_remainder(c, self, &two, 0, ret);
}

TEST(divisibleby)
{
    return test_remainder(c, self, &a->v[0], 0, ret);
}

/* The same object: what Python has once, and containers. */
TEST(sameas)
{
    const struct value *other = &a->v[0];
    if (self->kind == V_STRING || self->kind == V_REAL)
        return jinja_fail(c, "'sameas' of a %s is not supported", value_type(self));
    *ret = value_bool(
        self->kind == other->kind &&
        (self->kind >= V_LIST ? self->list == other->list : compare_plain_equal(self, other)));
    return true;
}

#define COMPARISON(name, op)                                                                       \
    TEST(name)                                                                                     \
    {                                                                                              \
        bool holds;                                                                                \
        return compare_by(c, op, self, &a->v[0], &holds) && (*ret = value_bool(holds), true);      \
    }

COMPARISON(eq, CMP_EQ)
COMPARISON(ne, CMP_NE)
COMPARISON(lt, CMP_LT)
COMPARISON(le, CMP_LE)
COMPARISON(gt, CMP_GT)
COMPARISON(ge, CMP_GE)
COMPARISON(in, CMP_IN)

#define ROW(word)                                                                                  \
    {                                                                                              \
        .name = #word, .call = test_##word                                                         \
    }
#define OTHER(word, is, param_name)                                                                \
    {                                                                                              \
        .name = word, .call = test_##is, .needed = 1, .param = { param_name }                      \
    }

const struct builtin jinja_tests[] = {
    ROW(boolean),
    ROW(callable),
    ROW(defined),
    ROW(escaped),
    ROW(even),
    {.name = "false", .call = test_is_false},
    ROW(filter),
    ROW(float),
    ROW(integer),
    ROW(iterable),
    ROW(lower),
    ROW(mapping),
    ROW(none),
    ROW(number),
    ROW(odd),
    ROW(sequence),
    ROW(string),
    ROW(test),
    {.name = "true", .call = test_is_true},
    ROW(undefined),
    ROW(upper),
    OTHER("divisibleby", divisibleby, "num"),
    OTHER("sameas", sameas, "other"),
    OTHER("in", in, "seq"),
    OTHER("==", eq, "b"),
    OTHER("eq", eq, "b"),
    OTHER("equalto", eq, "b"),
    OTHER("!=", ne, "b"),
    OTHER("ne", ne, "b"),
    OTHER(">", gt, "b"),
    OTHER("gt", gt, "b"),
    OTHER("greaterthan", gt, "b"),
    OTHER(">=", ge, "b"),
    OTHER("ge", ge, "b"),
    OTHER("<", lt, "b"),
    OTHER("lt", lt, "b"),
    OTHER("lessthan", lt, "b"),
    OTHER("<=", le, "b"),
    OTHER("le", le, "b"),
    {.name = NULL},
};
