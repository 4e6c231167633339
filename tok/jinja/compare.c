/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/compare.h"

#include <math.h>
#include <string.h>

#include "tok/jinja/text.h"

static int order_texts(const struct value *a, const struct value *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->text, b->text, n) : 0;
    return order ? (order > 0) - (order < 0) : (a->n > b->n) - (a->n < b->n);
}

/* Of an integer and a real, exactly; the real is no NaN. */
static int order_int_real(int64_t i, double d)
{
    if (d >= 0x1p63)
        return -1;
    if (d < -0x1p63)
        return 1;
    int64_t whole = (int64_t)d;
    if (i != whole)
        return i < whole ? -1 : 1;
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

/* 2: a NaN, which has no order. */
static int order_numbers(const struct value *a, const struct value *b)
{
    if ((a->kind == V_REAL && isnan(a->real)) || (b->kind == V_REAL && isnan(b->real)))
        return 2;
    if (a->kind == V_REAL && b->kind == V_REAL)
        return (a->real > b->real) - (a->real < b->real);
    if (a->kind == V_REAL)
        return -order_int_real(value_integer(b), a->real);
    if (b->kind == V_REAL)
        return order_int_real(value_integer(a), b->real);
    int64_t x = value_integer(a), y = value_integer(b);
    return (x > y) - (x < y);
}

bool compare_plain_equal(const struct value *a, const struct value *b)
{
    if (value_is_number(a) && value_is_number(b))
        return order_numbers(a, b) == 0;
    if (a->kind != b->kind)
        return false;
    if (a->kind == V_STRING)
        return a->n == b->n && (!a->n || !memcmp(a->text, b->text, a->n));
    if (a->kind == V_NONE || a->kind == V_UNDEFINED)
        return true;
    if (a->kind != V_TUPLE)
        return a->list == b->list;
    bool same = a->list->n == b->list->n;
    for (size_t i = 0; i < a->list->n && same; i++)
        same = compare_plain_equal(&a->list->item[i], &b->list->item[i]);
    return same;
}

static bool equal_lists(struct jinja_context *c, const struct value *a, const struct value *b,
                        bool *ret)
{
    const struct list *x = list_open(c, a), *y = list_open(c, b);
    *ret = x->n == y->n;
    for (size_t i = 0; i < x->n && *ret; i++)
        if (!compare_equal(c, &x->item[i], &y->item[i], ret))
            return false;
    return true;
}

static bool equal_dicts(struct jinja_context *c, const struct value *a, const struct value *b,
                        bool *ret)
{
    const struct dict *x = dict_open(c, a);
    struct dict *y = dict_open(c, b);
    *ret = x->n == y->n;
    for (size_t i = 0; i < x->n && *ret; i++) {
        const struct value *other = dict_find(y, &x->pair[i].key);
        *ret = other != NULL;
        if (!jinja_step(c, 1 + y->n / 8) ||
            (other && !compare_equal(c, &x->pair[i].value, other, ret)))
            return false;
    }
    return true;
}

static bool equal_ranges(const struct range *a, const struct range *b)
{
    return a->n == b->n && (!a->n || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

bool compare_equal(struct jinja_context *c, const struct value *a, const struct value *b, bool *ret)
{
    bool ok = jinja_step(c, 1 + (a->kind == V_STRING ? a->n / 64 : 0));
    if (a->kind != b->kind || a->kind < V_LIST || a->kind == V_STREAM) {
        *ret = compare_plain_equal(a, b);
        return ok;
    }
    if (a->kind == V_RANGE)
        return *ret = equal_ranges(a->range, b->range), ok;
    if (a->kind == V_METHOD) {
        *ret = a->method->def == b->method->def && a->method->self.list == b->method->self.list;
        return ok;
    }
    *ret = a->list == b->list;
    if (*ret || a->kind > V_DICT)
        return ok;
    ok = ok && jinja_enter(c) &&
         (a->kind == V_DICT ? equal_dicts(c, a, b, ret) : equal_lists(c, a, b, ret));
    c->depth--;
    return ok;
}

static bool order_lists(struct jinja_context *c, const struct value *a, const struct value *b,
                        int *ret)
{
    const struct list *x = list_open(c, a), *y = list_open(c, b);
    for (size_t i = 0; i < x->n && i < y->n; i++) {
        bool same;
        if (!compare_equal(c, &x->item[i], &y->item[i], &same))
            return false;
        if (!same)
            return compare_order(c, &x->item[i], &y->item[i], ret);
    }
    *ret = (x->n > y->n) - (x->n < y->n);
    return true;
}

bool compare_order(struct jinja_context *c, const struct value *a, const struct value *b, int *ret)
{
    if (a->kind == V_UNDEFINED || b->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, a->kind == V_UNDEFINED ? a : b);
    if (value_is_number(a) && value_is_number(b))
        return *ret = order_numbers(a, b), jinja_step(c, 1);
    if (a->kind == V_STRING && b->kind == V_STRING)
        return *ret = order_texts(a, b), jinja_step(c, 1 + a->n / 64);
    if (a->kind != b->kind || (a->kind != V_LIST && a->kind != V_TUPLE))
        return jinja_fail(c, "a %s and a %s have no order", value_type(a), value_type(b));
    bool ok = jinja_enter(c) && order_lists(c, a, b, ret);
    c->depth--;
    return ok;
}

bool compare_in(struct jinja_context *c, const struct value *a, const struct value *b, bool *ret)
{
    const struct value *item;
    size_t n;
    if (b->kind == V_STRING) {
        if (a->kind != V_STRING)
            return jinja_fail(c, "a str contains no %s", value_type(a));
        *ret = text_find(b, a, 0, b->n) != SIZE_MAX;
        return jinja_step(c, 1 + b->n / 64);
    }
    if (b->kind == V_DICT) {
        if (a->kind == V_LIST || a->kind == V_DICT)
            return jinja_fail(c, "a %s cannot be a key", value_type(a));
        struct dict *d = dict_open(c, b);
        *ret = dict_find(d, a) != NULL;
        return jinja_step(c, 1 + d->n / 8);
    }
    if (!value_items(c, b, &item, &n))
        return false;
    *ret = false;
    for (size_t i = 0; i < n && !*ret; i++)
        if (!compare_equal(c, &item[i], a, ret))
            return false;
    return true;
}

bool compare_by(struct jinja_context *c, enum comparison op, const struct value *a,
                const struct value *b, bool *ret)
{
    int order;
    bool ok;
    *ret = false;
    switch (op) {
    case CMP_EQ:
    case CMP_NE:
        ok = compare_equal(c, a, b, ret);
        *ret ^= op == CMP_NE;
        return ok;
    case CMP_IN:
    case CMP_NOT_IN:
        ok = compare_in(c, a, b, ret);
        *ret ^= op == CMP_NOT_IN;
        return ok;
    default:
        break;
    }
    if (!compare_order(c, a, b, &order))
        return false;
    *ret = op == CMP_LT   ? order < 0
           : op == CMP_LE ? order <= 0
           : op == CMP_GT ? order > 0 && order != 2
                          : order >= 0 && order != 2;
    return true;
}

/* Merges two sorted halves; what is equal keeps its order. */
static bool merge_halves(struct jinja_context *c, const struct value *key, const size_t *from,
                         size_t half, size_t n, size_t *to, bool reverse)
{
    size_t i = 0, j = half, k = 0;
    while (i < half && j < n) {
        int order;
        if (!compare_order(c, &key[from[j]], &key[from[i]], &order))
            return false;
        bool later = order != 2 && (reverse ? order > 0 : order < 0);
        to[k++] = later ? from[j++] : from[i++];
    }
    while (i < half)
        to[k++] = from[i++];
    while (j < n)
        to[k++] = from[j++];
    return true;
}

bool compare_sort(struct jinja_context *c, const struct value *key, size_t *order, size_t n,
                  bool reverse)
{
    size_t half = n / 2;
    if (n < 2)
        return true;
    if (!jinja_need(c, n * sizeof(*order)) || !compare_sort(c, key, order, half, reverse) ||
        !compare_sort(c, key, order + half, n - half, reverse))
        return false;
    size_t *merged = pool_take(&c->values, n * sizeof(*merged));
    if (!merge_halves(c, key, order, half, n, merged, reverse))
        return false;
    memcpy(order, merged, n * sizeof(*order));
    return true;
}
