/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/core/utf8.h"
#include "tok/jinja/arith.h"
#include "tok/jinja/repr.h"

enum { WIDTH_MAX = 1000 };

/* A conversion: %[(key)][flags][width][.precision]kind. */
struct conversion {
    bool minus, zero, plus, space, alternate;
    int width, precision; /* precision -1: none */
    char kind;
};

/* Where the values of a format come from. */
struct formatted {
    const struct value *format, *given;
    const struct value *item; /* of a tuple, or the value itself */
    size_t n, at;
    bool keyed;
};

static const char *read_number(const char *p, const char *end, int *ret)
{
    for (*ret = 0; p < end && *p >= '0' && *p <= '9'; p++)
        *ret = *ret > WIDTH_MAX ? *ret : *ret * 10 + (*p - '0');
    return p;
}

static const char *read_conversion(const char *p, const char *end, struct conversion *v)
{
    for (; p < end && strchr("-+ #0", *p) && *p; p++) {
        v->minus |= *p == '-';
        v->plus |= *p == '+';
        v->space |= *p == ' ';
        v->alternate |= *p == '#';
        v->zero |= *p == '0';
    }
    p = read_number(p, end, &v->width);
    v->precision = -1;
    if (p < end && *p == '.')
        p = read_number(p + 1, end, &v->precision);
    while (p < end && (*p == 'l' || *p == 'h' || *p == 'L'))
        p++;
    v->kind = p < end ? *p : 0;
    return p + (p < end);
}

static bool write_padded(struct jinja_context *c, const struct value *text,
                         const struct conversion *v)
{
    struct value s = *text;
    size_t length = text_length(&s);
    if (v->precision >= 0 && (size_t)v->precision < length) {
        s = text_slice(c, &s, 0, text_byte(&s, (size_t)v->precision));
        length = (size_t)v->precision;
    }
    bool ok = true;
    for (int i = 0; !v->minus && i < v->width - (int)length && ok; i++)
        ok = text_write(c, " ", 1, c->tag);
    ok = ok && text_write_value(c, &s);
    for (int i = 0; v->minus && i < v->width - (int)length && ok; i++)
        ok = text_write(c, " ", 1, c->tag);
    return ok;
}

/* A number by C's printf, whose flags are those of Python. */
static bool write_printf(struct jinja_context *c, const struct value *of,
                         const struct conversion *v, const struct value *number)
{
    char format[32], *f = format;
    char *text = NULL;
    bool real = strchr("eEfFgG", v->kind);
    *f++ = '%';
    const struct {
        bool set;
        char as;
    } flag[] = {
        {v->minus, '-'}, {v->plus, '+'}, {v->space, ' '}, {v->alternate, '#'}, {v->zero, '0'}};
    for (size_t i = 0; i < sizeof(flag) / sizeof(*flag); i++)
        if (flag[i].set)
            *f++ = flag[i].as;
    f += v->precision >= 0 ? snprintf(f, 20, "%d.%d", v->width, v->precision)
                           : snprintf(f, 20, "%d", v->width);
    snprintf(f, 8, real ? "%c" : "ll%c", v->kind == 'i' || v->kind == 'u' ? 'd' : v->kind);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    int n = real ? asprintf(&text, format, value_number(number))
                 : asprintf(&text, format, (long long)value_integer(number));
#pragma GCC diagnostic pop
    bool ok = n >= 0 && text_write(c, text, (size_t)n, text_tag_of(c, of));
    free(text);
    return ok;
}

static bool write_number_as(struct jinja_context *c, const struct value *v,
                            const struct conversion *k)
{
    struct value number = *v;
    if (v->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, v);
    if (!value_is_number(v))
        return jinja_fail(c, "%%%c needs a number, not a %s", k->kind, value_type(v));
    if (strchr("diu", k->kind) && v->kind == V_REAL) {
        if (!arith_truncate(c, v->real, &number))
            return false;
    } else if (strchr("xXo", k->kind) && !value_is_int(v)) {
        return jinja_fail(c, "%%%c needs an integer, not a float", k->kind);
    }
    if (strchr("xXo", k->kind) && (k->alternate || value_integer(&number) < 0))
        return jinja_fail(c, "%%#%c and negative numbers in %%%c are not supported", k->kind,
                          k->kind);
    return write_printf(c, v, k, &number);
}

static bool write_converted(struct jinja_context *c, const struct value *v,
                            const struct conversion *k)
{
    struct value text;
    struct text_mark m;
    if (k->width > WIDTH_MAX || k->precision > WIDTH_MAX)
        return jinja_fail(c, "a width above %d is not supported", WIDTH_MAX);
    if (k->kind == 's')
        return repr_str(c, v, &text) && write_padded(c, &text, k);
    if (k->kind == 'r') {
        m = text_begin(c);
        return repr_write(c, v) && text_end(c, m, &text) && write_padded(c, &text, k);
    }
    if (k->kind && strchr("diueEfFgGxXo", k->kind))
        return write_number_as(c, v, k);
    return jinja_fail(c, "the conversion %%%c is not supported", k->kind >= 32 ? k->kind : '?');
}

/* The value of the next conversion: by the key at *p, or the next one of the tuple. */
static const struct value *next_value(struct jinja_context *c, struct formatted *f, const char **p,
                                      const char *end)
{
    if (*p < end && **p == '(') {
        const char *close = memchr(*p, ')', (size_t)(end - *p));
        if (!close || f->given->kind != V_DICT)
            return jinja_fail(c, "%%(key) needs a dict and a closing parenthesis"), NULL;
        const struct value *v =
            dict_find_text(dict_open(c, f->given), *p + 1, (size_t)(close - *p - 1));
        if (!v)
            jinja_fail(c, "the dict lacks the key %.*s", (int)(close - *p - 1), *p + 1);
        *p = close + 1;
        f->keyed = true;
        return v;
    }
    if (f->at < f->n)
        return &f->item[f->at++];
    return jinja_fail(c, "there are fewer values than conversions"), NULL;
}

static bool write_formatted(struct jinja_context *c, struct formatted *f)
{
    const char *p = f->format->text, *end = p + f->format->n;
    while (p < end) {
        const char *at = memchr(p, '%', (size_t)(end - p));
        struct value plain = text_slice(c, f->format, (size_t)(p - f->format->text),
                                        (size_t)((at ? at : end) - f->format->text));
        struct conversion k = {0};
        if (!text_write_value(c, &plain))
            return false;
        if (!at)
            break;
        p = at + 1;
        const char *key = p;
        const struct value *v = NULL;
        if (key < end && *key == '(') {
            if (!(v = next_value(c, f, &key, end)))
                return false;
        }
        p = read_conversion(key, end, &k);
        if (k.kind == '%') {
            if (!text_write(c, "%", 1, c->tag))
                return false;
            continue;
        }
        if ((!v && !(v = next_value(c, f, &key, end))) || !write_converted(c, v, &k))
            return false;
    }
    return true;
}

bool format_percent(struct jinja_context *c, const struct value *format, const struct value *v,
                    struct value *ret)
{
    struct formatted f = {.format = format, .given = v, .item = v, .n = 1};
    if (format->flags & VALUE_SAFE)
        return jinja_fail(c, "'%%' on Markup is not supported");
    if (v->kind == V_TUPLE) {
        f.item = v->list->item;
        f.n = v->list->n;
    }
    struct text_mark m = text_begin(c);
    if (!write_formatted(c, &f) || !text_end(c, m, ret))
        return false;
    bool mapping = v->kind == V_DICT || v->kind == V_LIST || v->kind == V_RANGE ||
                   v->kind == V_UNDEFINED; /* what Python takes for one here */
    bool unused = f.at < f.n && !f.keyed && !mapping;
    return !unused || jinja_fail(c, "there are more values than conversions");
}

/* ---- dates ----------------------------------------------------------------------------------- */

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t days_of(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static struct tm date_fields(struct jinja_date d)
{
    int64_t days = days_of(d.year, d.month, d.day);
    return (struct tm){.tm_year = d.year - 1900,
                       .tm_mon = d.month - 1,
                       .tm_mday = d.day,
                       .tm_hour = d.hour,
                       .tm_min = d.minute,
                       .tm_sec = d.second,
                       .tm_wday = (int)((days % 7 + 11) % 7),
                       .tm_yday = (int)(days - days_of(d.year, 1, 1)),
                       .tm_isdst = -1};
}

bool format_date(struct jinja_context *c, const struct value *format, struct value *ret)
{
    char text[256], one[8];
    const struct tm fields = date_fields(c->date);
    struct text_mark m = text_begin(c);
    if (format->kind != V_STRING)
        return jinja_fail(c, "strftime_now() needs a str, not a %s", value_type(format));
    if (!c->has_date)
        return jinja_fail(c, "strftime_now() is asked for a date, and there is none");
    const char *p = format->text, *end = p + format->n;
    for (size_t k; p < end; p += k) {
        const char *letter = p + 1 + (p + 1 < end && *p == '%' && *(p + 1) == '-');
        k = 1;
        if (*p == '%' && letter < end &&
            strchr("aAbBcdDeFHIjklmMnpPrRStTuUVwWxXyYGgCh%", *letter)) {
            k = (size_t)(letter - p) + 1;
            snprintf(one, sizeof(one), "%.*s", (int)k, p);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            size_t n = strftime(text, sizeof(text), one, &fields);
#pragma GCC diagnostic pop
            if (!text_write(c, text, n, c->tag))
                return false;
        } else if (*p == '%') {
            return jinja_fail(c, "strftime_now() does not support this format");
        } else if (!text_write(c, p, 1, c->tag)) {
            return false;
        }
    }
    return text_end(c, m, ret);
}
