/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/builtins.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/utf8.h"
#include "tok/jinja/arith.h"
#include "tok/jinja/attr.h"
#include "tok/jinja/case.h"
#include "tok/jinja/format.h"
#include "tok/jinja/methods.h"
#include "tok/jinja/repr.h"

/* ---- numbers --------------------------------------------------------------------------------- */

static FILTER(filter_abs)
{
    if (self->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, self);
    if (!value_is_number(self))
        return jinja_fail(c, "abs needs a number, not a %s", value_type(self));
    if (self->kind == V_REAL)
        return *ret = value_real(fabs(self->real)), true;
    if (value_integer(self) < 0)
        return arith_negate(c, self, ret);
    return (void)a, *ret = value_int(value_integer(self)), true;
}

/* int(): of a text that is no integer, of what float() makes of it; the default otherwise. */
static FILTER(filter_int)
{
    struct value otherwise = value_is_missing(&a->v[0]) ? value_int(0) : a->v[0];
    int64_t base = value_is_missing(&a->v[1]) ? 10 : value_integer(&a->v[1]), i;
    double d = 0;
    bool wide = false;
    if (self->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, self);
    if (value_is_int(self))
        return *ret = value_int(value_integer(self)), true;
    if (self->kind == V_STRING && arith_read_int(self, base, &i, &wide))
        return wide ? jinja_fail(c, "an integer of more than 64 bits is not supported")
                    : (*ret = value_int(i), true);
    bool real = self->kind == V_REAL || (self->kind == V_STRING && arith_read_real(self, &d));
    d = self->kind == V_REAL ? self->real : d;
    if (!real || !isfinite(d))
        return *ret = otherwise, true;
    return arith_truncate(c, d, ret);
}

static FILTER(filter_float)
{
    double d;
    if (self->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, self);
    if (value_is_number(self))
        *ret = value_real(value_number(self));
    else if (self->kind == V_STRING && arith_read_real(self, &d))
        *ret = value_real(d);
    else
        *ret = value_is_missing(&a->v[0]) ? value_real(0) : a->v[0];
    return true;
}

static double round_common(double d, int precision)
{
    char text[400];
    if (precision < 0) {
        double by = pow(10, -precision);
        return nearbyint(d / by) * by;
    }
    snprintf(text, sizeof(text), "%.*f", precision, d);
    return strtod(text, NULL);
}

static FILTER(filter_round)
{
    int64_t precision = value_is_missing(&a->v[0]) ? 0 : value_integer(&a->v[0]);
    struct value common = value_text("common", 6, 0);
    const struct value *method = value_is_missing(&a->v[1]) ? &common : &a->v[1];
    if (!value_is_number(self) || precision < -20 || precision > 20)
        return jinja_fail(c, "round needs a number and a precision of at most 20 digits");
    double d = value_number(self), by = pow(10, (double)precision);
    if (value_is(method, "ceil"))
        *ret = value_real(ceil(d * by) / by);
    else if (value_is(method, "floor"))
        *ret = value_real(floor(d * by) / by);
    else if (!value_is(method, "common"))
        return jinja_fail(c, "round knows the methods common, ceil and floor");
    else if (self->kind == V_REAL)
        *ret = value_real(isfinite(d) ? round_common(d, (int)precision) : d);
    else
        *ret = value_int(precision < 0 ? (int64_t)round_common(d, (int)precision)
                                       : value_integer(self));
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool apply_case(struct jinja_context *c, const struct value *self, enum case_form f,
                       struct value *ret)
{
    struct value s;
    if (!repr_str(c, self, &s))
        return false;
    struct text_mark m = text_begin(c);
    if (!case_write(c, &s, f) || !text_end(c, m, ret))
        return false;
    ret->flags |= s.flags & VALUE_SAFE;
    return true;
}

static FILTER(filter_upper)
{
    return (void)a, apply_case(c, self, CASE_UPPER, ret);
}

static FILTER(filter_lower)
{
    return (void)a, apply_case(c, self, CASE_LOWER, ret);
}

static FILTER(filter_capitalize)
{
    return (void)a, apply_case(c, self, CASE_CAPITALIZE, ret);
}

/* A word of a title begins after white space, '-' and opening brackets: its first character in
 * upper, the rest in lower case. */
static bool write_titles(struct jinja_context *c, const struct value *s)
{
    const char *end = s->text + s->n;
    for (size_t at = 0; at < s->n;) {
        size_t from = at, k;
        utf8_at(s->text + at, &k);
        struct value first = text_slice(c, s, at, at + k);
        for (at += k; at < s->n; at += k) {
            if (strchr("-({[<", s->text[at - 1]) || case_space(s->text + at - 1, end))
                break;
            utf8_at(s->text + at, &k);
            if (strchr("-({[<", s->text[at]) || case_space(s->text + at, end))
                break;
        }
        struct value rest = text_slice(c, s, from + first.n, at);
        if (!case_write(c, &first, CASE_UPPER) || !case_write(c, &rest, CASE_LOWER))
            return false;
    }
    return true;
}

static FILTER(filter_title)
{
    struct value s;
    if (!repr_str(c, self, &s))
        return false;
    struct text_mark m = text_begin(c);
    (void)a;
    return write_titles(c, &s) && text_end(c, m, ret);
}

static FILTER(filter_trim)
{
    struct value s;
    if (!repr_str(c, self, &s))
        return false;
    return method_strip(c, &s, &a->v[0], METHOD_BOTH, ret);
}

static FILTER(filter_replace)
{
    struct value s, old, new;
    if (!repr_str(c, self, &s) || !repr_str(c, &a->v[0], &old) || !repr_str(c, &a->v[1], &new))
        return false;
    s.flags &= (uint8_t)~VALUE_SAFE; /* str() of Markup is plain */
    int64_t count = -1;
    if (!value_is_missing(&a->v[2]) && a->v[2].kind != V_NONE) {
        if (!value_is_int(&a->v[2]))
            return jinja_fail(c, "replace needs a count, not a %s", value_type(&a->v[2]));
        count = value_integer(&a->v[2]);
    }
    return method_replace(c, &s, &old, &new, count, ret);
}

static FILTER(filter_string)
{
    return (void)a, repr_str(c, self, ret);
}

static FILTER(filter_safe)
{
    if (!repr_str(c, self, ret))
        return false;
    ret->flags |= VALUE_SAFE;
    return (void)a, true;
}

static FILTER(filter_escape)
{
    struct value s;
    (void)a;
    if (self->kind == V_STRING && self->flags & VALUE_SAFE)
        return *ret = *self, true;
    return repr_str(c, self, &s) && text_escape(c, &s, ret);
}

static bool write_indented(struct jinja_context *c, const struct value *line, size_t n,
                           const struct value *by, bool first, bool blank)
{
    bool ok = !first || text_write_value(c, by);
    for (size_t i = 0; i < n && ok; i++)
        ok = (!i || text_write(c, "\n", 1, c->tag)) &&
             (!i || (!blank && !line[i].n) || text_write_value(c, by)) &&
             text_write_value(c, &line[i]);
    return ok;
}

static FILTER(filter_indent)
{
    struct value by = a->v[0], s, newline = value_text("\n", 1, c->tag);
    const struct value *line;
    size_t n;
    char spaces[256];
    if (self->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, self);
    if (self->kind != V_STRING)
        return jinja_fail(c, "indent needs a str, not a %s", value_type(self));
    if (by.kind != V_STRING) {
        int64_t width = value_is_missing(&by) ? 4 : value_is_int(&by) ? value_integer(&by) : -1;
        if (width < 0 || width > (int64_t)sizeof(spaces))
            return jinja_fail(c, "indent needs a width of at most %zu", sizeof(spaces));
        memset(spaces, ' ', sizeof(spaces));
        by = value_text(spaces, (size_t)width, c->tag);
    }
    s = *self;
    s.flags &= (uint8_t)~VALUE_SAFE;
    if (!text_concat(c, &s, &newline, &s) || !method_lines(c, &s, false, &line, &n))
        return false;
    struct text_mark m = text_begin(c);
    if (!write_indented(c, line, n, &by, value_truth(&a->v[1]), value_truth(&a->v[2])) ||
        !text_end(c, m, ret))
        return false;
    ret->flags |= self->flags & VALUE_SAFE;
    return true;
}

static FILTER(filter_format)
{
    struct value s, given = {.kind = V_DICT};
    if (!repr_str(c, self, &s))
        return false;
    if (a->n && a->nkeys)
        return jinja_fail(c, "format takes arguments with names or without, not both");
    if (a->nkeys) {
        given = value_dict(c, V_DICT, a->nkeys);
        for (size_t i = 0; i < a->nkeys; i++)
            if (!dict_put(c, given.dict, &a->key[i], &a->key_v[i]))
                return false;
    } else {
        given = value_tuple(c, a->n);
        for (size_t i = 0; i < a->n; i++)
            given.list->item[i] = a->v[i];
    }
    return format_percent(c, &s, &given, ret);
}

/* ---- any value ------------------------------------------------------------------------------- */

static FILTER(filter_default)
{
    bool boolean = value_truth(&a->v[1]);
    (void)c;
    if (self->kind != V_UNDEFINED && (!boolean || value_truth(self)))
        *ret = *self;
    else
        *ret = value_is_missing(&a->v[0]) ? value_text("", 0, c->tag) : a->v[0];
    return true;
}

static FILTER(filter_attr)
{
    return attr_own(c, self, &a->v[0], ret);
}

static bool take_separators(struct jinja_context *c, const struct value *v, struct json_style *s)
{
    const struct value *item;
    size_t n;
    if (value_is_missing(v) || v->kind == V_NONE)
        return true;
    if (!value_items(c, v, &item, &n))
        return false;
    if (n != 2 || item[0].kind != V_STRING || item[1].kind != V_STRING)
        return jinja_fail(c, "tojson needs two separators that are strings");
    s->item = item[0];
    s->key = item[1];
    return true;
}

static FILTER(filter_tojson)
{
    struct json_style s = {.indent = value_none(), .item = value_none(), .key = value_none()};
    const struct value *indent = &a->v[1];
    if (self->kind == V_UNDEFINED)
        return jinja_fail(c, "an undefined value has no JSON");
    s.ascii = value_truth(&a->v[0]);
    s.sorted = value_truth(&a->v[3]);
    if (indent->kind == V_STRING) {
        s.indent = *indent;
    } else if (value_is_int(indent)) {
        int64_t n = value_integer(indent) < 0 ? 0 : value_integer(indent);
        if (n > 100)
            return jinja_fail(c, "tojson indents by at most 100 spaces");
        char *spaces = jinja_take(c, (size_t)n, 1);
        memset(spaces, ' ', (size_t)n);
        s.indent = value_text(spaces, (size_t)n, 0);
    } else if (!value_is_missing(indent) && indent->kind != V_NONE) {
        return jinja_fail(c, "tojson indents by a number or a str, not a %s", value_type(indent));
    }
    return take_separators(c, &a->v[2], &s) && repr_json(c, self, &s, ret);
}

#define ROW(word, ...)                                                                             \
    {                                                                                              \
        .name = #word, .call = filter_##word, __VA_ARGS__                                          \
    }

const struct builtin jinja_filters[] = {
    ROW(abs, .needed = 0),
    ROW(attr, .needed = 1, .param = {"name"}),
    ROW(capitalize, .needed = 0),
    {.name = "count", .call = filter_length},
    {.name = "d", .call = filter_default, .param = {"default_value", "boolean"}},
    ROW(default, .param = {"default_value", "boolean"}),
    ROW(dictsort, .param = {"case_sensitive", "by", "reverse"}),
    {.name = "e", .call = filter_escape},
    ROW(escape, .needed = 0),
    ROW(first, .needed = 0),
    ROW(float, .param = {"default"}),
    ROW(format, .raw = true),
    ROW(indent, .param = {"width", "first", "blank"}),
    ROW(int, .param = {"default", "base"}),
    ROW(items, .needed = 0),
    ROW(join, .param = {"d", "attribute"}),
    ROW(last, .needed = 0),
    ROW(length, .needed = 0),
    ROW(list, .needed = 0),
    ROW(lower, .needed = 0),
    ROW(map, .raw = true),
    ROW(max, .param = {"case_sensitive", "attribute"}),
    ROW(min, .param = {"case_sensitive", "attribute"}),
    ROW(reject, .raw = true),
    ROW(rejectattr, .raw = true),
    ROW(replace, .needed = 2, .param = {"old", "new", "count"}),
    ROW(reverse, .needed = 0),
    ROW(round, .param = {"precision", "method"}),
    ROW(safe, .needed = 0),
    ROW(select, .raw = true),
    ROW(selectattr, .raw = true),
    ROW(sort, .param = {"reverse", "case_sensitive", "attribute"}),
    ROW(string, .needed = 0),
    ROW(sum, .param = {"attribute", "start"}),
    ROW(title, .needed = 0),
    ROW(tojson, .param = {"ensure_ascii", "indent", "separators", "sort_keys"}),
    ROW(trim, .param = {"chars"}),
    ROW(unique, .param = {"case_sensitive", "attribute"}),
    ROW(upper, .needed = 0),
    {.name = NULL},
};
