/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/attr.h"
#include "tok/jinja/arith.h"
#include "tok/jinja/case.h"
#include "tok/jinja/compare.h"
#include "tok/jinja/eval.h"
#include "tok/jinja/builtins.h"
#include "tok/jinja/repr.h"

static bool lower_case(struct jinja_context *c, const struct value *v, struct value *ret)
{
    if (v->kind != V_STRING)
        return *ret = *v, true;
    struct text_mark m = text_begin(c);
    return case_write(c, v, CASE_LOWER) && text_end(c, m, ret);
}

/* What values are sorted or told apart by: an attribute, or themselves, without case. */
static bool take_keys(struct jinja_context *c, const struct value *item, size_t n,
                      const struct value *attribute, bool cased, struct value **ret)
{
    if (!jinja_need(c, n * sizeof(**ret)))
        return false;
    *ret = pool_take(&c->values, n * sizeof(**ret));
    for (size_t i = 0; i < n; i++) {
        struct value key = item[i];
        if (!value_is_missing(attribute) && attribute->kind != V_NONE &&
            !attr_path(c, &item[i], attribute, NULL, &key))
            return false;
        if (cased)
            (*ret)[i] = key;
        else if (!lower_case(c, &key, &(*ret)[i]))
            return false;
    }
    return true;
}

static bool sorted_items(struct jinja_context *c, const struct value *item, const struct value *key,
                         size_t n, bool reverse, struct value *ret)
{
    if (!jinja_need(c, n * sizeof(size_t)))
        return false;
    size_t *order = pool_take(&c->values, n * sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    if (!compare_sort(c, key, order, n, reverse))
        return false;
    *ret = value_list(c, n);
    for (size_t i = 0; i < n; i++)
        ret->list->item[i] = item[order[i]];
    return true;
}

/* As jinja2 sorts by lists of one attribute, equal values need no order. */
static void wrap_keys(struct jinja_context *c, struct value *key, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct value list = value_list(c, 1);
        list.list->item[0] = key[i];
        key[i] = list;
    }
}

FILTER(filter_sort)
{
    const struct value *item;
    struct value *key;
    size_t n;
    if (a->v[2].kind == V_STRING && memchr(a->v[2].text, ',', a->v[2].n))
        return jinja_fail(c, "sorting by several attributes is not supported");
    if (!value_items(c, self, &item, &n) ||
        !take_keys(c, item, n, &a->v[2], value_truth(&a->v[1]), &key) ||
        !jinja_need(c, n * (sizeof(struct list) + sizeof(*key))))
        return false;
    wrap_keys(c, key, n);
    return sorted_items(c, item, key, n, value_truth(&a->v[0]), ret);
}

FILTER(filter_dictsort)
{
    const struct value *item;
    struct value *key, index = value_int(value_is(&a->v[1], "value"));
    size_t n;
    if (self->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, self);
    if (self->kind != V_DICT)
        return jinja_fail(c, "dictsort needs a dict, not a %s", value_type(self));
    if (!value_is_missing(&a->v[1]) && !value_is(&a->v[1], "key") && !value_is(&a->v[1], "value"))
        return jinja_fail(c, "dictsort sorts by 'key' or 'value'");
    struct view view = {VIEW_ITEMS, self->dict};
    struct value pairs = {.kind = V_VIEW, .flags = self->flags, .tag = self->tag, .view = &view};
    return value_items(c, &pairs, &item, &n) &&
           take_keys(c, item, n, &index, value_truth(&a->v[0]), &key) &&
           sorted_items(c, item, key, n, value_truth(&a->v[2]), ret);
}

FILTER(filter_unique)
{
    const struct value *item;
    struct value *key;
    size_t n, count = 0;
    if (!value_items(c, self, &item, &n) ||
        !take_keys(c, item, n, &a->v[1], value_truth(&a->v[0]), &key))
        return false;
    struct value seen = value_dict(c, V_DICT, n);
    struct value *kept = pool_take(&c->values, n * sizeof(*kept));
    for (size_t i = 0; i < n; i++) {
        size_t before = seen.dict->n;
        if (!dict_put(c, seen.dict, &key[i], &key[i]))
            return false;
        if (seen.dict->n > before)
            kept[count++] = item[i];
    }
    *ret = value_stream(c, kept, count);
    return true;
}

static bool find_extreme(struct jinja_context *c, const struct value *self, const struct args *a,
                         int sign, struct value *ret)
{
    static const char hint[] = "No aggregated item, sequence was empty.";
    const struct value *item;
    struct value *key;
    size_t n, best = 0;
    int order;
    if (!value_items(c, self, &item, &n) ||
        !take_keys(c, item, n, &a->v[1], value_truth(&a->v[0]), &key))
        return false;
    for (size_t i = 1; i < n; i++) {
        if (!compare_order(c, &key[i], &key[best], &order))
            return false;
        best = order != 2 && order * sign > 0 ? i : best;
    }
    *ret = n ? item[best] : value_undefined(hint, sizeof(hint) - 1);
    return true;
}

FILTER(filter_max)
{
    return find_extreme(c, self, a, 1, ret);
}

FILTER(filter_min)
{
    return find_extreme(c, self, a, -1, ret);
}

FILTER(filter_sum)
{
    const struct value *item;
    size_t n;
    struct value sum = value_is_missing(&a->v[1]) ? value_int(0) : a->v[1];
    if (sum.kind == V_STRING)
        return jinja_fail(c, "sum does not add strings");
    if (!value_items(c, self, &item, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct value v = item[i];
        if (!value_is_missing(&a->v[0]) && !attr_path(c, &item[i], &a->v[0], NULL, &v))
            return false;
        if (!arith_binary(c, BIN_ADD, &sum, &v, &sum))
            return false;
    }
    *ret = sum;
    return true;
}

FILTER(filter_length)
{
    size_t n;
    (void)a;
    if (!value_length(c, self, &n))
        return jinja_fail(c, "a %s has no length", value_type(self));
    return *ret = value_int((int64_t)n), true;
}

FILTER(filter_list)
{
    const struct value *item;
    size_t n;
    (void)a;
    if (!value_items(c, self, &item, &n) || !jinja_need(c, n * sizeof(*item)))
        return false;
    *ret = value_list(c, n);
    if (n)
        memcpy(ret->list->item, item, n * sizeof(*item));
    return true;
}

FILTER(filter_items)
{
    const struct value *item;
    size_t n = 0;
    (void)a;
    if (self->kind != V_DICT && self->kind != V_UNDEFINED)
        return jinja_fail(c, "items needs a dict, not a %s", value_type(self));
    struct view view = {VIEW_ITEMS, self->kind == V_DICT ? self->dict : NULL};
    struct value pairs = {.kind = V_VIEW, .flags = self->flags, .tag = self->tag, .view = &view};
    if (self->kind == V_DICT && !value_items(c, &pairs, &item, &n))
        return false;
    *ret = value_stream(c, n ? item : NULL, n);
    return true;
}

/* The first of what is iterated: of a stream, the others stay. */
FILTER(filter_first)
{
    static const char hint[] = "No first item, sequence was empty.";
    const struct value *item;
    size_t n, at = self->kind == V_STREAM ? self->stream->at + 1 : 0;
    (void)a;
    if (!value_items(c, self, &item, &n))
        return false;
    if (self->kind == V_STREAM && n)
        self->stream->at = at;
    *ret = n ? item[0] : value_undefined(hint, sizeof(hint) - 1);
    return true;
}

FILTER(filter_last)
{
    static const char hint[] = "No last item, sequence was empty.";
    const struct value *item;
    size_t n;
    (void)a;
    if (self->kind == V_STREAM)
        return jinja_fail(c, "a generator has no last item");
    if (self->kind == V_STRING && self->n) {
        struct value last = value_int(-1);
        return attr_item(c, self, &last, ret);
    }
    if (!value_items(c, self, &item, &n))
        return false;
    *ret = n ? item[n - 1] : value_undefined(hint, sizeof(hint) - 1);
    return true;
}

FILTER(filter_reverse)
{
    const struct value *item;
    size_t n;
    (void)a;
    if (self->kind == V_STRING) {
        struct value bound[3] = {value_none(), value_none(), value_int(-1)};
        return attr_slice(c, self, bound, ret);
    }
    if (!value_items(c, self, &item, &n) || !jinja_need(c, n * sizeof(*item)))
        return false;
    struct value turned = value_list(c, n);
    for (size_t i = 0; i < n; i++)
        turned.list->item[i] = item[n - 1 - i];
    *ret = self->kind == V_STREAM ? turned : value_stream(c, turned.list->item, n);
    return true;
}

FILTER(filter_join)
{
    struct value between = value_text("", 0, c->tag);
    const struct value *item;
    size_t n;
    bool ok = value_is_missing(&a->v[0]) || repr_str(c, &a->v[0], &between);
    if (!ok || !value_items(c, self, &item, &n))
        return false;
    struct text_mark m = text_begin(c);
    for (size_t i = 0; i < n; i++) {
        struct value v = item[i];
        if (!value_is_missing(&a->v[1]) && a->v[1].kind != V_NONE &&
            !attr_path(c, &item[i], &a->v[1], NULL, &v))
            return false;
        if ((i && !text_write_value(c, &between)) || !repr_write_str(c, &v))
            return false;
    }
    return text_end(c, m, ret);
}

/* ---- map, select and the like ---------------------------------------------------------------- */

static const struct value *find_argument(const struct args *a, const char *name)
{
    for (size_t i = 0; i < a->nkeys; i++)
        if (value_is(&a->key[i], name))
            return &a->key_v[i];
    return NULL;
}

/* The arguments after the first n. */
static struct args rest_of(const struct args *a, size_t n)
{
    struct args rest = *a;
    if (n)
        rest.v += n;
    rest.n -= n;
    return rest;
}

static bool map_one(struct jinja_context *c, const struct value *item, const struct args *a,
                    struct value *ret)
{
    const struct value *attribute = a->n ? NULL : find_argument(a, "attribute");
    const struct value *otherwise = find_argument(a, "default");
    if (attribute) {
        if (a->nkeys > 1 + (otherwise != NULL))
            return jinja_fail(c, "map takes the arguments attribute and default");
        if (otherwise && otherwise->kind == V_NONE)
            otherwise = NULL;
        return attr_path(c, item, attribute, otherwise, ret);
    }
    if (!a->n || a->v[0].kind != V_STRING)
        return jinja_fail(c, "map needs the name of a filter or attribute=");
    const struct builtin *def = builtin_find(jinja_filters, a->v[0].text, a->v[0].n);
    struct args rest = rest_of(a, 1);
    if (!def)
        return jinja_fail(c, "there is no filter '%.*s'", (int)(a->v[0].n < 64 ? a->v[0].n : 64),
                          a->v[0].text);
    return eval_builtin(c, def, item, &rest, ret);
}

FILTER(filter_map)
{
    const struct value *item = NULL;
    size_t n = 0;
    if (value_truth(self) && !value_items(c, self, &item, &n))
        return false;
    if (!jinja_need(c, n * sizeof(*item)))
        return false;
    struct value *made = pool_take(&c->values, n * sizeof(*made));
    bool ok = jinja_enter(c);
    for (size_t i = 0; i < n && ok; i++)
        ok = map_one(c, &item[i], a, &made[i]);
    c->depth--;
    *ret = value_stream(c, made, n);
    return ok;
}

static bool passes(struct jinja_context *c, const struct value *item, const struct args *a,
                   bool attribute, bool *ret)
{
    struct value v = *item, result;
    struct args rest = rest_of(a, attribute);
    if (attribute && !attr_path(c, item, &a->v[0], NULL, &v))
        return false;
    if (!rest.n)
        return *ret = value_truth(&v), true;
    const struct builtin *def =
        rest.v[0].kind == V_STRING ? builtin_find(jinja_tests, rest.v[0].text, rest.v[0].n) : NULL;
    if (!def)
        return jinja_fail(c, "there is no such test");
    rest = rest_of(&rest, 1);
    return eval_builtin(c, def, &v, &rest, &result) && (*ret = value_truth(&result), true);
}

static bool keep(struct jinja_context *c, const struct value *self, const struct args *a,
                 bool attribute, bool wanted, struct value *ret)
{
    const struct value *item = NULL;
    size_t n = 0, count = 0;
    bool ok = true;
    if (value_truth(self) && !value_items(c, self, &item, &n))
        return false;
    if (n && attribute && !a->n)
        return jinja_fail(c, "expected the name of an attribute");
    if (!jinja_need(c, n * sizeof(*item)))
        return false;
    struct value *kept = pool_take(&c->values, n * sizeof(*kept));
    for (size_t i = 0; i < n && ok; i++) {
        bool holds = false;
        ok = passes(c, &item[i], a, attribute, &holds);
        if (holds == wanted)
            kept[count++] = item[i];
    }
    *ret = value_stream(c, kept, count);
    return ok;
}

FILTER(filter_select)
{
    return keep(c, self, a, false, true, ret);
}

FILTER(filter_reject)
{
    return keep(c, self, a, false, false, ret);
}

FILTER(filter_selectattr)
{
    return keep(c, self, a, true, true, ret);
}

FILTER(filter_rejectattr)
{
    return keep(c, self, a, true, false, ret);
}
