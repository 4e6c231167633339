/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/builtins.h"

#include "tok/jinja/format.h"
#include "tok/jinja/repr.h"

#define FUNCTION(word)                                                                             \
    static bool function_##word(struct jinja_context *c, const struct value *self,                 \
                                const struct args *a, struct value *ret)

static bool range_of(struct jinja_context *c, const struct args *a, struct range *r)
{
    int64_t *to[3] = {&r->start, &r->stop, &r->step};
    if (!a->n || a->n > 3 || a->nkeys)
        return jinja_fail(c, "range() takes one to three numbers");
    *r = (struct range){.step = 1};
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].kind == V_UNDEFINED)
            return jinja_fail_undefined(c, &a->v[i]);
        if (!value_is_int(&a->v[i]))
            return jinja_fail(c, "range() needs integers, not a %s", value_type(&a->v[i]));
        *to[a->n == 1 ? 1 : i] = value_integer(&a->v[i]);
    }
    if (!r->step)
        return jinja_fail(c, "the step of range() is 0");
    uint64_t span = r->step > 0 ? (uint64_t)r->stop - (uint64_t)r->start
                                : (uint64_t)r->start - (uint64_t)r->stop;
    uint64_t step = r->step > 0 ? (uint64_t)r->step : 0 - (uint64_t)r->step;
    bool any = r->step > 0 ? r->start < r->stop : r->start > r->stop;
    r->n = any ? (size_t)((span - 1) / step + 1) : 0;
    return r->n <= JINJA_MAX_RANGE ||
           jinja_fail(c, "a range() of more than %d numbers", JINJA_MAX_RANGE);
}

FUNCTION(range)
{
    (void)self;
    *ret = (struct value){.kind = V_RANGE, .range = jinja_take(c, 1, sizeof(*ret->range))};
    return range_of(c, a, ret->range);
}

/* Pairs out of a dict or of a list of pairs. */
static bool put_pairs(struct jinja_context *c, const struct value *from, struct dict *to)
{
    const struct value *item, *half;
    size_t n, two;
    if (from->kind == V_DICT) {
        const struct dict *d = dict_open(c, from);
        for (size_t i = 0; i < d->n; i++)
            if (!dict_put(c, to, &d->pair[i].key, &d->pair[i].value))
                return false;
        return true;
    }
    if (!value_items(c, from, &item, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!value_items(c, &item[i], &half, &two))
            return false;
        if (two != 2)
            return jinja_fail(c, "dict() needs pairs, not %zu values", two);
        if (!dict_put(c, to, &half[0], &half[1]))
            return false;
    }
    return true;
}

static bool fill_dict(struct jinja_context *c, const struct args *a, struct dict *d)
{
    if (a->n > 1)
        return jinja_fail(c, "expected at most one value without a name, found %zu", a->n);
    if (a->n && !put_pairs(c, &a->v[0], d))
        return false;
    for (size_t i = 0; i < a->nkeys; i++)
        if (!dict_put(c, d, &a->key[i], &a->key_v[i]))
            return false;
    return true;
}

FUNCTION(dict)
{
    (void)self;
    *ret = value_dict(c, V_DICT, a->nkeys);
    return fill_dict(c, a, ret->dict);
}

FUNCTION(namespace)
{
    (void)self;
    *ret = value_dict(c, V_NAMESPACE, a->nkeys);
    if (!fill_dict(c, a, ret->dict))
        return false;
    for (size_t i = 0; i < ret->dict->n; i++) {
        const struct value *k = &ret->dict->pair[i].key;
        if (k->kind == V_STRING && k->n && k->text[0] == '_')
            return jinja_fail(c, "a namespace has no attributes that begin with '_'");
    }
    return true;
}

FUNCTION(raise_exception)
{
    struct value text;
    (void)self, (void)ret;
    return repr_str(c, &a->v[0], &text) &&
           jinja_fail(c, "the template refuses this: %.*s", (int)(text.n < 700 ? text.n : 700),
                      text.text);
}

FUNCTION(strftime_now)
{
    return (void)self, format_date(c, &a->v[0], ret);
}

#define ROW(word, ...)                                                                             \
    {                                                                                              \
        .name = #word, .call = function_##word, __VA_ARGS__                                        \
    }

const struct builtin jinja_functions[] = {
    ROW(dict, .raw = true),
    ROW(namespace, .raw = true),
    ROW(raise_exception, .needed = 1, .param = {"message"}),
    ROW(range, .raw = true),
    ROW(strftime_now, .needed = 1, .param = {"format"}),
    {.name = "cycler"},
    {.name = "joiner"},
    {.name = "lipsum"},
    {.name = NULL},
};
