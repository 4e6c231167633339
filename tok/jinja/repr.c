/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/repr.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/utf8.h"
#include "tok/jinja/case.h"
#include "tok/jinja/loop.h"
#include "tok/jinja/node.h"

/* Digits and exponent in the way of Python: 1e16 and 1e-05 are where exponents begin. */
static size_t spell_real(const char *digits, int n, int exponent, bool minus, char *ret)
{
    size_t k = 0;
    if (minus)
        ret[k++] = '-';
    if (exponent >= -4 && exponent < 16) {
        for (int i = exponent < 0 ? exponent : 0; i < n || i <= exponent + 1; i++) {
            if (i == exponent + 1)
                ret[k++] = '.';
            ret[k++] = i >= 0 && i < n ? digits[i] : '0';
        }
        return k;
    }
    ret[k++] = digits[0];
    if (n > 1) {
        ret[k++] = '.';
        memcpy(ret + k, digits + 1, (size_t)n - 1);
        k += (size_t)n - 1;
    }
    return k + (size_t)snprintf(ret + k, REPR_REAL - k, "e%c%02d", exponent < 0 ? '-' : '+',
                                abs(exponent));
}

size_t repr_real(double d, char ret[REPR_REAL])
{
    char text[40], digits[24];
    int n = 0;
    if (!isfinite(d)) {
        const char *name = isnan(d) ? "nan" : d < 0 ? "-inf" : "inf";
        memcpy(ret, name, strlen(name));
        return strlen(name);
    }
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof(text), "%.*e", precision, fabs(d));
        if (strtod(text, NULL) == fabs(d))
            break;
    }
    for (const char *p = text; *p != 'e'; p++)
        if (*p != '.')
            digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return spell_real(digits, n, atoi(strchr(text, 'e') + 1), signbit(d), ret);
}

/* ---- strings --------------------------------------------------------------------------------- */

/* The escape of a character in repr(), in `ret`; 0: it stands for itself. */
static size_t escape_repr(uint32_t ch, char quote, char ret[12])
{
    const char *known = ch && ch < 128 ? strchr("\n\r\t", (int)ch) : NULL;
    if (ch == '\\' || ch == (unsigned char)quote || known) {
        ret[0] = '\\';
        ret[1] = known ? "nrt"[strchr("\n\r\t", (int)ch) - "\n\r\t"] : (char)ch;
        return 2;
    }
    if (case_is_printable(ch))
        return 0;
    const char *format = ch < 0x100     ? "\\x%02" PRIx32
                         : ch < 0x10000 ? "\\u%04" PRIx32
                                        : "\\U%08" PRIx32;
    return (size_t)snprintf(ret, 12, format, ch);
}

/* The escape of a character in JSON; 0: it stands for itself. */
static size_t escape_json(uint32_t ch, bool ascii, char ret[13])
{
    static const char known[] = "\"\\\n\r\t\f\b", as[] = "\"\\nrtfb";
    const char *is = ch && ch < 128 ? strchr(known, (int)ch) : NULL;
    if (is) {
        ret[0] = '\\';
        ret[1] = as[is - known];
        return 2;
    }
    if (ch >= 0x20 && (!ascii || ch < 0x7f))
        return 0;
    if (ch < 0x10000)
        return (size_t)snprintf(ret, 13, "\\u%04" PRIx32, ch);
    ch -= 0x10000;
    return (size_t)snprintf(ret, 13, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + (ch >> 10),
                            0xdc00 + (ch & 0x3ff));
}

/* A string in quotes, its characters escaped: quote 0 is JSON's, with ASCII only or not. */
static bool write_quoted(struct jinja_context *c, const struct value *v, char quote, bool ascii)
{
    char mark = quote ? quote : '"', escape[13];
    size_t from = 0, cursor = 0, k;
    if (!text_write(c, &mark, 1, text_tag_of(c, v)))
        return false;
    for (size_t at = 0; at < v->n; at += k) {
        uint32_t ch = utf8_at(v->text + at, &k);
        size_t n = quote ? escape_repr(ch, quote, escape) : escape_json(ch, ascii, escape);
        if (!n)
            continue;
        struct value plain = text_slice(c, v, from, at);
        if (!text_write_value(c, &plain) || !text_write(c, escape, n, text_tag(c, v, at, &cursor)))
            return false;
        from = at + k;
    }
    struct value rest = text_slice(c, v, from, v->n);
    cursor = 0;
    return text_write_value(c, &rest) &&
           text_write(c, &mark, 1, v->n ? text_tag(c, v, v->n - 1, &cursor) : text_tag_of(c, v));
}

static bool write_string(struct jinja_context *c, const struct value *v)
{
    bool single = memchr(v->text, '\'', v->n), both = single && memchr(v->text, '"', v->n);
    uint32_t tag = text_tag_of(c, v);
    bool safe = v->flags & VALUE_SAFE;
    return (!safe || text_write(c, "Markup(", 7, tag)) &&
           write_quoted(c, v, single && !both ? '"' : '\'', false) &&
           (!safe || text_write(c, ")", 1, tag));
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Numbers of 2^63 and more without a fraction may have been integers. */
static bool is_wide(const struct value *v)
{
    return v->flags & VALUE_DATA && isfinite(v->real) && fabs(v->real) >= 0x1p63;
}

static bool write_number(struct jinja_context *c, const struct value *v, bool json)
{
    char text[REPR_REAL];
    size_t n;
    if (v->kind == V_INT) {
        n = (size_t)snprintf(text, sizeof(text), "%" PRId64, v->integer);
    } else if (is_wide(v)) {
        return jinja_fail(c, "a number of the data has more than 64 bits");
    } else if (json && !isfinite(v->real)) {
        const char *name = isnan(v->real) ? "NaN" : v->real < 0 ? "-Infinity" : "Infinity";
        return text_write(c, name, strlen(name), text_tag_of(c, v));
    } else {
        n = repr_real(v->real, text);
    }
    return text_write(c, text, n, text_tag_of(c, v));
}

static bool write_word(struct jinja_context *c, const struct value *v, const char *word)
{
    return text_write(c, word, strlen(word), text_tag_of(c, v));
}

/* ---- repr() and str() ------------------------------------------------------------------------ */

static bool write_items(struct jinja_context *c, const struct value *v, const char *open,
                        const char *close)
{
    const struct list *l = list_open(c, v);
    bool ok = jinja_enter(c) && write_word(c, v, open);
    for (size_t i = 0; i < l->n && ok; i++)
        ok = jinja_step(c, 1) && (!i || write_word(c, v, ", ")) && repr_write(c, &l->item[i]);
    ok = ok && (v->kind == V_LIST || l->n != 1 || write_word(c, v, ",")) && write_word(c, v, close);
    c->depth--;
    return ok;
}

static bool write_dict(struct jinja_context *c, const struct value *v)
{
    const struct dict *d = dict_open(c, v);
    bool ok = jinja_enter(c) && write_word(c, v, "{");
    for (size_t i = 0; i < d->n && ok; i++)
        ok = jinja_step(c, 1) && (!i || write_word(c, v, ", ")) && repr_write(c, &d->pair[i].key) &&
             write_word(c, v, ": ") && repr_write(c, &d->pair[i].value);
    ok = ok && write_word(c, v, "}");
    c->depth--;
    return ok;
}

static bool write_view(struct jinja_context *c, const struct value *v)
{
    static const char *const name[] = {
        [VIEW_KEYS] = "dict_keys(", [VIEW_VALUES] = "dict_values(", [VIEW_ITEMS] = "dict_items("};
    struct value list = {.kind = V_LIST, .flags = v->flags, .tag = v->tag};
    const struct value *item;
    size_t n;
    if (!write_word(c, v, name[v->view->kind]) || !value_items(c, v, &item, &n))
        return false;
    list.list = &(struct list){.n = n, .item = (struct value *)(uintptr_t)item};
    return write_items(c, &list, "[", "]") && write_word(c, v, ")");
}

static bool write_format(struct jinja_context *c, const struct value *v, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool write_format(struct jinja_context *c, const struct value *v, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return write_word(c, v, text);
}

static bool write_object(struct jinja_context *c, const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case V_RANGE:
        if (v->range->step == 1)
            return write_format(c, v, "range(%" PRId64 ", %" PRId64 ")", v->range->start,
                                v->range->stop);
        return write_format(c, v, "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", v->range->start,
                            v->range->stop, v->range->step);
    case V_NAMESPACE:
        return write_word(c, v, "<Namespace ") && write_dict(c, v) && write_word(c, v, ">");
    case V_MACRO:
        return write_format(c, v, "<Macro '%.*s'>", (int)c->t->names[v->macro->node->name].n,
                            c->t->names[v->macro->node->name].text);
    case V_LOOP:
        return write_format(c, v, "<LoopContext %zu/%zu>", v->loop->index + 1,
                            loop_length(c, v->loop));
    default:
        return jinja_fail(c, "a %s cannot be printed", value_type(v));
    }
}

bool repr_write(struct jinja_context *c, const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case V_UNDEFINED:
        return write_word(c, v, "Undefined");
    case V_NONE:
        return write_word(c, v, "None");
    case V_BOOL:
        return write_word(c, v, v->boolean ? "True" : "False");
    case V_INT:
    case V_REAL:
        return write_number(c, v, false);
    case V_STRING:
        return write_string(c, v);
    case V_LIST:
        return write_items(c, v, "[", "]");
    case V_TUPLE:
        return write_items(c, v, "(", ")");
    case V_DICT:
        return write_dict(c, v);
    case V_VIEW:
        return write_view(c, v);
    default:
        return write_object(c, v);
    }
}

bool repr_write_str(struct jinja_context *c, const struct value *v)
{
    if (v->kind == V_STRING)
        return text_write_value(c, v);
    return v->kind == V_UNDEFINED || repr_write(c, v);
}

bool repr_str(struct jinja_context *c, const struct value *v, struct value *ret)
{
    if (v->kind == V_STRING)
        return *ret = *v, true;
    struct text_mark m = text_begin(c);
    return repr_write_str(c, v) && text_end(c, m, ret);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static bool json_value(struct jinja_context *c, const struct value *v, const struct json_style *s,
                       size_t level);

static bool new_line(struct jinja_context *c, const struct value *v, const struct json_style *s,
                     size_t level)
{
    if (s->indent.kind == V_NONE)
        return true;
    bool ok = write_word(c, v, "\n");
    for (size_t i = 0; i < level && ok; i++)
        ok = text_write(c, s->indent.text, s->indent.n, text_tag_of(c, v));
    return ok;
}

static bool write_separator(struct jinja_context *c, const struct value *v, const struct value *set,
                            const char *otherwise)
{
    return set->kind == V_STRING ? text_write(c, set->text, set->n, text_tag_of(c, v))
                                 : write_word(c, v, otherwise);
}

/* What stands before item i of a list or object. */
static bool json_between(struct jinja_context *c, const struct value *v, const struct json_style *s,
                         size_t i, size_t level)
{
    const char *usual = s->indent.kind == V_NONE ? ", " : ",";
    return jinja_step(c, 1) && (!i || write_separator(c, v, &s->item, usual)) &&
           new_line(c, v, s, level);
}

static bool json_list(struct jinja_context *c, const struct value *v, const struct json_style *s,
                      size_t level)
{
    const struct list *l = list_open(c, v);
    bool ok = write_word(c, v, "[");
    for (size_t i = 0; i < l->n && ok; i++)
        ok = json_between(c, v, s, i, level + 1) && json_value(c, &l->item[i], s, level + 1);
    return ok && (!l->n || new_line(c, v, s, level)) && write_word(c, v, "]");
}

static bool json_key(struct jinja_context *c, const struct value *k, const struct json_style *s)
{
    struct value text;
    if (k->kind == V_STRING)
        return write_quoted(c, k, 0, s->ascii);
    if (k->kind != V_NONE && !value_is_number(k))
        return jinja_fail(c, "a %s cannot be a key of JSON", value_type(k));
    struct text_mark m = text_begin(c);
    return json_value(c, k, s, 0) && text_end(c, m, &text) && write_quoted(c, &text, 0, s->ascii);
}

static int compare_keys(const void *a, const void *b)
{
    const struct value *x = &(*(const struct pair *const *)a)->key;
    const struct value *y = &(*(const struct pair *const *)b)->key;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->text, y->text, n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static bool order_keys(struct jinja_context *c, const struct dict *d, const struct pair **order)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->pair[i].key.kind != V_STRING)
            return jinja_fail(c, "keys that are not strings cannot be sorted");
    qsort(order, d->n, sizeof(*order), compare_keys);
    return true;
}

static bool json_object(struct jinja_context *c, const struct value *v, const struct json_style *s,
                        size_t level)
{
    const struct dict *d = dict_open(c, v);
    const struct pair **order = pool_take(&c->values, d->n * sizeof(*order));
    for (size_t i = 0; i < d->n; i++)
        order[i] = &d->pair[i];
    bool ok = (!s->sorted || order_keys(c, d, order)) && write_word(c, v, "{");
    for (size_t i = 0; i < d->n && ok; i++)
        ok = json_between(c, v, s, i, level + 1) && json_key(c, &order[i]->key, s) &&
             write_separator(c, v, &s->key, ": ") && json_value(c, &order[i]->value, s, level + 1);
    return ok && (!d->n || new_line(c, v, s, level)) && write_word(c, v, "}");
}

static bool json_value(struct jinja_context *c, const struct value *v, const struct json_style *s,
                       size_t level)
{
    bool ok = false;
    switch ((enum value_kind)v->kind) {
    case V_NONE:
        return write_word(c, v, "null");
    case V_BOOL:
        return write_word(c, v, v->boolean ? "true" : "false");
    case V_INT:
    case V_REAL:
        return write_number(c, v, true);
    case V_STRING:
        return write_quoted(c, v, 0, s->ascii);
    case V_LIST:
    case V_TUPLE:
        ok = jinja_enter(c) && json_list(c, v, s, level);
        break;
    case V_DICT:
        ok = jinja_enter(c) && json_object(c, v, s, level);
        break;
    default:
        return jinja_fail(c, "a value of type %s has no JSON", value_type(v));
    }
    c->depth--;
    return ok;
}

bool repr_json(struct jinja_context *c, const struct value *v, const struct json_style *s,
               struct value *ret)
{
    struct text_mark m = text_begin(c);
    return json_value(c, v, s, 0) && text_end(c, m, ret);
}
