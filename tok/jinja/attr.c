/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/attr.h"

#include "base/core/utf8.h"
#include "tok/jinja/loop.h"
#include "tok/jinja/methods.h"
#include "tok/jinja/text.h"

static struct value lacking(const struct value *of, const struct value *name)
{
    struct value v = {.kind = V_UNDEFINED, .of = (uint16_t)(of->kind + 1)};
    if (name->kind == V_STRING) {
        v.text = name->text;
        v.n = name->n;
    } else {
        v.flags = VALUE_INDEX;
        v.n = value_is_int(name) ? (size_t)value_integer(name) : 0;
    }
    return v;
}

static struct value withheld(void)
{
    static const char hint[] = "this attribute is not open to templates";
    return value_undefined(hint, sizeof(hint) - 1);
}

static bool is_private(const struct value *name)
{
    return name->n >= 2 && name->text[0] == '_' && name->text[1] == '_';
}

/* A method that Python has; *ret_known: it does. */
static struct value find_method(struct jinja_context *c, const struct value *of,
                                const struct value *name, bool *ret_known)
{
    const struct builtin *def = NULL;
    *ret_known = is_private(name);
    if (*ret_known)
        return withheld();
    const struct builtin *table = methods_of(of);
    if (table)
        def = builtin_find(table, name->text, name->n);
    *ret_known = def != NULL;
    if (def && def->call == method_withheld)
        return withheld();
    struct value v = {.kind = V_METHOD};
    if (def) {
        v.method = jinja_take(c, 1, sizeof(*v.method));
        *v.method = (struct method){*of, def};
    }
    return v;
}

static struct value macro_name(const struct jinja_context *c, const struct macro *m)
{
    const struct jinja_name *name = &c->t->names[m->node->name];
    return value_text(name->text, name->n, c->tag);
}

bool attr_own(struct jinja_context *c, const struct value *of, const struct value *name,
              struct value *ret)
{
    bool known;
    struct value *found;
    *ret = lacking(of, name);
    if (of->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, of);
    if (name->kind != V_STRING)
        return true;
    if (of->kind == V_NAMESPACE) {
        found = dict_find_text(of->dict, name->text, name->n);
        *ret = found ? *found : *ret;
        return true;
    }
    struct value method = find_method(c, of, name, &known);
    if (known)
        *ret = method;
    else if (of->kind == V_LOOP)
        return loop_attribute(c, of->loop, name, ret);
    else if (of->kind == V_RANGE && (value_is(name, "start") || value_is(name, "stop")))
        *ret = value_int(value_is(name, "start") ? of->range->start : of->range->stop);
    else if (of->kind == V_RANGE && value_is(name, "step"))
        *ret = value_int(of->range->step);
    else if (of->kind == V_MACRO && value_is(name, "name"))
        *ret = macro_name(c, of->macro);
    return true;
}

bool attr_get(struct jinja_context *c, const struct value *of, const struct value *name,
              struct value *ret)
{
    if (!attr_own(c, of, name, ret))
        return false;
    if (of->kind == V_DICT && ret->kind == V_UNDEFINED && ret->of) {
        const struct value *found = dict_find_text(dict_open(c, of), name->text, name->n);
        *ret = found ? *found : *ret;
    }
    return true;
}

/* The item of a sequence; false: it has none there. */
static bool sequence_item(struct jinja_context *c, const struct value *of, int64_t i,
                          struct value *ret)
{
    size_t n, from;
    if (!value_length(c, of, &n))
        return false;
    i += i < 0 ? (int64_t)n : 0;
    if (i < 0 || i >= (int64_t)n)
        return false;
    if (of->kind == V_RANGE) {
        *ret = value_int(of->range->start + i * of->range->step);
    } else if (of->kind == V_STRING) {
        size_t k;
        from = text_byte(of, (size_t)i);
        utf8_at(of->text + from, &k);
        *ret = text_slice(c, of, from, from + k);
    } else {
        *ret = list_open(c, of)->item[i];
    }
    return true;
}

bool attr_item(struct jinja_context *c, const struct value *of, const struct value *index,
               struct value *ret)
{
    bool sequence =
        of->kind == V_LIST || of->kind == V_TUPLE || of->kind == V_STRING || of->kind == V_RANGE;
    *ret = lacking(of, index);
    if (of->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, of);
    if (of->kind == V_DICT && index->kind != V_LIST && index->kind != V_DICT) {
        struct dict *d = dict_open(c, of);
        const struct value *found = dict_find(d, index);
        if (!jinja_step(c, d->n / 8))
            return false;
        if (found)
            return *ret = *found, true;
    }
    if (sequence && value_is_int(index) && sequence_item(c, of, value_integer(index), ret))
        return !c->failed;
    return !c->failed && (index->kind != V_STRING || attr_own(c, of, index, ret));
}

static bool path_step(struct jinja_context *c, const struct value *name,
                      const struct value *otherwise, struct value *ret)
{
    struct value of = *ret;
    if (!jinja_step(c, 1) || !attr_item(c, &of, name, ret))
        return false;
    if (ret->kind == V_UNDEFINED && otherwise)
        *ret = *otherwise;
    return true;
}

bool attr_path(struct jinja_context *c, const struct value *of, const struct value *path,
               const struct value *otherwise, struct value *ret)
{
    *ret = *of;
    if (path->kind != V_STRING)
        return path->kind == V_NONE || path_step(c, path, otherwise, ret);
    for (size_t at = 0; at <= path->n; at++) {
        const char *dot = memchr(path->text + at, '.', path->n - at);
        size_t end = dot ? (size_t)(dot - path->text) : path->n;
        struct value name = text_slice(c, path, at, end);
        int64_t number = 0;
        bool digits = end > at && end - at < 10;
        for (size_t i = at; i < end && digits; i++) {
            digits = path->text[i] >= '0' && path->text[i] <= '9';
            number = number * 10 + (path->text[i] - '0');
        }
        name = digits ? value_int(number) : name;
        if (!path_step(c, &name, otherwise, ret))
            return false;
        at = end;
    }
    return true;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool take_bound(struct jinja_context *c, const struct value *v, int64_t otherwise,
                       int64_t *ret)
{
    *ret = otherwise;
    if (v->kind == V_NONE)
        return true;
    if (!value_is_int(v))
        return jinja_fail(c, "a slice needs integers, not a %s", value_type(v));
    *ret = value_integer(v);
    return true;
}

/* Places of a slice as slice.indices() gives them: n of them from *start on. */
static bool slice_places(struct jinja_context *c, const struct value bound[3], int64_t length,
                         int64_t *start, int64_t *step, size_t *n)
{
    int64_t stop, low, high;
    if (!take_bound(c, &bound[2], 1, step))
        return false;
    if (!*step)
        return jinja_fail(c, "the step of a slice is 0");
    *step = *step < -length - 1 ? -length - 1 : *step > length + 1 ? length + 1 : *step;
    low = *step < 0 ? -1 : 0;
    high = *step < 0 ? length - 1 : length;
    int64_t *place[2] = {start, &stop};
    for (int i = 0; i < 2; i++) {
        if (!take_bound(c, &bound[i], (i == 0) == (*step > 0) ? low : high, place[i]))
            return false;
        if (bound[i].kind == V_NONE)
            continue;
        if (*place[i] < 0)
            *place[i] = *place[i] < -length ? low : *place[i] + length;
        *place[i] = *place[i] < low ? low : *place[i] > high ? high : *place[i];
    }
    if (*step > 0)
        *n = *start < stop ? (size_t)((stop - *start - 1) / *step + 1) : 0;
    else
        *n = *start > stop ? (size_t)((*start - stop - 1) / -*step + 1) : 0;
    return true;
}

static bool slice_text(struct jinja_context *c, const struct value *of, int64_t start, int64_t step,
                       size_t n, struct value *ret)
{
    size_t from = text_byte(of, start < 0 ? 0 : (size_t)start);
    if (step == 1 || !n) {
        struct value rest = *of;
        rest.text += from;
        rest.n -= from;
        *ret = text_slice(c, of, from, from + text_byte(&rest, n));
        return true;
    }
    const struct value *item;
    size_t count;
    if (!value_items(c, of, &item, &count))
        return false;
    struct text_mark m = text_begin(c);
    for (size_t i = 0; i < n; i++)
        if (!text_write_value(c, &item[start + (int64_t)i * step]))
            return false;
    bool ok = text_end(c, m, ret);
    ret->flags |= of->flags & VALUE_SAFE;
    return ok;
}

static struct value slice_range(struct jinja_context *c, const struct range *r, int64_t start,
                                int64_t step, size_t n)
{
    struct value v = {.kind = V_RANGE, .range = jinja_take(c, 1, sizeof(*v.range))};
    *v.range = (struct range){.start = r->start + start * r->step, .step = step * r->step, .n = n};
    v.range->stop = v.range->start + (int64_t)n * v.range->step;
    return v;
}

bool attr_slice(struct jinja_context *c, const struct value *of, const struct value bound[3],
                struct value *ret)
{
    size_t length, n = 0;
    int64_t start = 0, step = 1;
    if (of->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, of);
    if (of->kind != V_LIST && of->kind != V_TUPLE && of->kind != V_STRING && of->kind != V_RANGE)
        return jinja_fail(c, "a %s cannot be sliced", value_type(of));
    if (!value_length(c, of, &length) ||
        !slice_places(c, bound, (int64_t)length, &start, &step, &n))
        return false;
    if (of->kind == V_STRING)
        return slice_text(c, of, start, step, n, ret);
    if (of->kind == V_RANGE)
        return *ret = slice_range(c, of->range, start, step, n), true;
    if (!jinja_step(c, n) || !jinja_need(c, n * sizeof(*ret)))
        return false;
    const struct list *l = list_open(c, of);
    *ret = of->kind == V_LIST ? value_list(c, n) : value_tuple(c, n);
    ret->flags |= of->flags & VALUE_DATA;
    ret->tag = of->tag;
    for (size_t i = 0; i < n; i++)
        ret->list->item[i] = l->item[start + (int64_t)i * step];
    return true;
}
