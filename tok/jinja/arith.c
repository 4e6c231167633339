/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/arith.h"

#include <math.h>
#include <stdlib.h>

#include "tok/jinja/case.h"
#include "tok/jinja/format.h"
#include "tok/jinja/text.h"

static const char *const signs[] = {
    [BIN_ADD] = "+",    [BIN_SUB] = "-", [BIN_MUL] = "*", [BIN_DIV] = "/",
    [BIN_FLOOR] = "//", [BIN_MOD] = "%", [BIN_POW] = "**"};

static bool fail_wide(struct jinja_context *c)
{
    return jinja_fail(c, "an integer of more than 64 bits is not supported");
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool int_power(struct jinja_context *c, int64_t a, int64_t b, struct value *ret)
{
    int64_t power = 1;
    if (b < 0 && !a)
        return jinja_fail(c, "0 cannot be raised to a negative power");
    if (b < 0)
        return *ret = value_real(pow((double)a, (double)b)), true;
    for (; b; b >>= 1) {
        if (b & 1 && __builtin_mul_overflow(power, a, &power))
            return fail_wide(c);
        if (b > 1 && __builtin_mul_overflow(a, a, &a))
            return fail_wide(c);
    }
    return *ret = value_int(power), true;
}

static bool int_binary(struct jinja_context *c, enum binary op, int64_t a, int64_t b,
                       struct value *ret)
{
    int64_t i = 0;
    bool wide = false;
    if (op == BIN_POW)
        return int_power(c, a, b, ret);
    if (op >= BIN_DIV && b == 0)
        return jinja_fail(c, "division by zero");
    if (op == BIN_DIV)
        return *ret = value_real((double)a / (double)b), true;
    if (op == BIN_ADD)
        wide = __builtin_add_overflow(a, b, &i);
    else if (op == BIN_SUB)
        wide = __builtin_sub_overflow(a, b, &i);
    else if (op == BIN_MUL)
        wide = __builtin_mul_overflow(a, b, &i);
    else if (b == -1)
        wide = op == BIN_FLOOR && __builtin_sub_overflow((int64_t)0, a, &i);
    else if (op == BIN_FLOOR)
        i = a / b - (a % b && (a < 0) != (b < 0));
    else
        i = a % b + (a % b && (a < 0) != (b < 0) ? b : 0);
    return wide ? fail_wide(c) : (*ret = value_int(i), true);
}

static double real_mod(double a, double b)
{
    double m = fmod(a, b);
    return m != 0 ? ((m < 0) != (b < 0) ? m + b : m) : copysign(0, b);
}

static double real_floor(double a, double b)
{
    double m = fmod(a, b), d = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0))
        d -= 1;
    if (d == 0)
        return copysign(0, a / b);
    double f = floor(d);
    return d - f > 0.5 ? f + 1 : f;
}

static bool real_power(struct jinja_context *c, double a, double b, struct value *ret)
{
    if (a == 0 && b < 0)
        return jinja_fail(c, "0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && floor(b) != b)
        return jinja_fail(c, "a power that is a complex number is not supported");
    double p = pow(a, b);
    if (isinf(p) && isfinite(a) && isfinite(b))
        return jinja_fail(c, "the power is too large");
    return *ret = value_real(p), true;
}

static bool real_binary(struct jinja_context *c, enum binary op, double a, double b,
                        struct value *ret)
{
    if (op == BIN_POW)
        return real_power(c, a, b, ret);
    if (op >= BIN_DIV && b == 0)
        return jinja_fail(c, "division by zero");
    *ret = value_real(op == BIN_ADD   ? a + b
                      : op == BIN_SUB ? a - b
                      : op == BIN_MUL ? a * b
                      : op == BIN_DIV ? a / b
                      : op == BIN_MOD ? real_mod(a, b)
                                      : real_floor(a, b));
    return true;
}

/* ---- sequences ------------------------------------------------------------------------------- */

static bool join_lists(struct jinja_context *c, const struct value *a, const struct value *b,
                       struct value *ret)
{
    const struct list *x = list_open(c, a), *y = list_open(c, b);
    size_t n = x->n + y->n;
    if (!jinja_step(c, n) || !jinja_need(c, n * sizeof(*x->item)))
        return false;
    *ret = a->kind == V_LIST ? value_list(c, n) : value_tuple(c, n);
    for (size_t i = 0; i < n; i++)
        ret->list->item[i] = i < x->n ? x->item[i] : y->item[i - x->n];
    return true;
}

static bool repeat_list(struct jinja_context *c, const struct value *a, int64_t times,
                        struct value *ret)
{
    const struct list *x = list_open(c, a);
    size_t n;
    if (__builtin_mul_overflow(x->n, (size_t)times, &n) || n > JINJA_MAX_MEMORY / sizeof(*x->item))
        return jinja_need(c, SIZE_MAX);
    if (!jinja_step(c, n) || !jinja_need(c, n * sizeof(*x->item)))
        return false;
    *ret = a->kind == V_LIST ? value_list(c, n) : value_tuple(c, n);
    for (size_t i = 0; i < n; i++)
        ret->list->item[i] = x->item[i % x->n];
    return true;
}

static bool repeat_text(struct jinja_context *c, const struct value *a, int64_t times,
                        struct value *ret)
{
    struct text_mark m = text_begin(c);
    for (int64_t i = 0; i < times && a->n; i++)
        if (!jinja_step(c, 1) || !text_write_value(c, a))
            return false;
    if (!text_end(c, m, ret))
        return false;
    ret->flags |= a->flags & VALUE_SAFE;
    return true;
}

static bool repeat(struct jinja_context *c, const struct value *a, const struct value *b,
                   struct value *ret)
{
    const struct value *of = value_is_int(b) ? a : b, *by = value_is_int(b) ? b : a;
    int64_t times = value_integer(by) < 0 ? 0 : value_integer(by);
    return of->kind == V_STRING ? repeat_text(c, of, times, ret) : repeat_list(c, of, times, ret);
}

static bool is_sequence(const struct value *v)
{
    return v->kind == V_STRING || v->kind == V_LIST || v->kind == V_TUPLE;
}

/* dict | dict is no operator of Jinja, so that only sequences have some. */
static bool sequence_binary(struct jinja_context *c, enum binary op, const struct value *a,
                            const struct value *b, struct value *ret, bool *ret_known)
{
    *ret_known = true;
    if (op == BIN_ADD && a->kind == b->kind && a->kind == V_STRING)
        return text_concat(c, a, b, ret);
    if (op == BIN_ADD && a->kind == b->kind && is_sequence(a))
        return join_lists(c, a, b, ret);
    if (op == BIN_MUL &&
        ((is_sequence(a) && value_is_int(b)) || (is_sequence(b) && value_is_int(a))))
        return repeat(c, a, b, ret);
    if (op == BIN_MOD && a->kind == V_STRING)
        return format_percent(c, a, b, ret);
    *ret_known = false;
    return false;
}

bool arith_binary(struct jinja_context *c, enum binary op, const struct value *a,
                  const struct value *b, struct value *ret)
{
    bool known;
    if (op == BIN_MOD && a->kind == V_STRING)
        return format_percent(c, a, b, ret);
    if (a->kind == V_UNDEFINED || b->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, a->kind == V_UNDEFINED ? a : b);
    if (value_is_int(a) && value_is_int(b))
        return int_binary(c, op, value_integer(a), value_integer(b), ret);
    if (value_is_number(a) && value_is_number(b))
        return real_binary(c, op, value_number(a), value_number(b), ret);
    bool ok = sequence_binary(c, op, a, b, ret, &known);
    if (known)
        return ok;
    return jinja_fail(c, "'%s' does not apply to a %s and a %s", signs[op], value_type(a),
                      value_type(b));
}

bool arith_negate(struct jinja_context *c, const struct value *v, struct value *ret)
{
    int64_t i;
    if (v->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, v);
    if (v->kind == V_REAL)
        return *ret = value_real(-v->real), true;
    if (!value_is_int(v))
        return jinja_fail(c, "'-' does not apply to a %s", value_type(v));
    if (__builtin_sub_overflow((int64_t)0, value_integer(v), &i))
        return fail_wide(c);
    return *ret = value_int(i), true;
}

bool arith_plus(struct jinja_context *c, const struct value *v, struct value *ret)
{
    if (v->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, v);
    if (!value_is_number(v))
        return jinja_fail(c, "'+' does not apply to a %s", value_type(v));
    *ret = v->kind == V_REAL ? value_real(v->real) : value_int(value_integer(v));
    return true;
}

/* ---- numbers out of text --------------------------------------------------------------------- */

/* The text without white space at its ends and underscores between digits, in `ret`, lower case. */
static bool take_digits(const struct value *text, char ret[400])
{
    const char *p = text->text, *end = p + text->n;
    size_t n = 0, k;
    while (p < end && (k = case_space(p, end)))
        p += k;
    while (end > p && case_space(end - 1, end))
        end--;
    for (; p < end; p++) {
        bool between = n && ret[n - 1] != '_' && p + 1 < end && p[1] != '_';
        if (*p == '_' && !(between && ret[n - 1] >= '0'))
            return false;
        if (*p == '_')
            continue;
        if (n == 399 || (unsigned char)*p >= 0x80 || !*p)
            return false;
        ret[n++] = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
    }
    ret[n] = 0;
    return n > 0;
}

bool arith_read_int(const struct value *text, int64_t base, int64_t *ret, bool *ret_wide)
{
    char digits[400];
    bool any = false;
    *ret_wide = false;
    *ret = 0;
    if (!take_digits(text, digits) || base < 2 || base > 36)
        return false;
    const char *p = digits + (digits[0] == '-' || digits[0] == '+');
    char prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0;
    p += prefix && p[0] == '0' && p[1] == prefix ? 2 : 0;
    for (; *p; p++, any = true) {
        int d = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'z' ? *p - 'a' + 10 : 99;
        if (d >= base)
            return false;
        *ret_wide |= __builtin_mul_overflow(*ret, base, ret);
        *ret_wide |= __builtin_add_overflow(*ret, digits[0] == '-' ? -d : d, ret);
    }
    return any;
}

bool arith_read_real(const struct value *text, double *ret)
{
    char digits[400], *end;
    if (!take_digits(text, digits))
        return false;
    const char *p = digits + (digits[0] == '-' || digits[0] == '+');
    bool named = !strcmp(p, "inf") || !strcmp(p, "infinity") || !strcmp(p, "nan");
    if (!named && strspn(p, "0123456789.e+-") != strlen(p))
        return false;
    *ret = strtod(digits, &end);
    return !*end;
}

bool arith_truncate(struct jinja_context *c, double d, struct value *ret)
{
    if (!(d < 0x1p63 && d >= -0x1p63))
        return fail_wide(c);
    *ret = value_int((int64_t)d);
    return true;
}
