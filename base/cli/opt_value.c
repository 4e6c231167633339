/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/cli/opt_row.h"
#include "base/io/path.h"
#include "base/core/utf8.h"

/* ---- texts to values ---- */

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A decimal number: sign, digits (with '_' between them), and a power of ten. */
struct decimal {
    bool minus;
    uint64_t digits;
    int power;
};

static bool add_digit(struct decimal *d, char c)
{
    return !__builtin_mul_overflow(d->digits, 10, &d->digits) &&
           !__builtin_add_overflow(d->digits, (uint64_t)(c - '0'), &d->digits);
}

/* Digits from *s on; false if there are none, or too many. Trailing zeros of a fraction are
 * dropped. */
static bool take_digits(struct decimal *d, const char **s, bool fraction)
{
    int zeros = 0;
    if (!digit(**s))
        return false;
    for (; digit(**s) || (**s == '_' && digit((*s)[1])); ++*s) {
        if (**s == '_')
            continue;
        if (fraction && **s == '0') {
            zeros++;
            continue;
        }
        for (; zeros; zeros--, d->power--)
            if (!add_digit(d, '0'))
                return false;
        if (!add_digit(d, **s))
            return false;
        d->power -= fraction;
    }
    return true;
}

static int suffix_power(char c)
{
    switch (c) {
    case 'k':
    case 'K':
        return 3;
    case 'M':
        return 6;
    case 'G':
        return 9;
    case 'T':
        return 12;
    default:
        return 0;
    }
}

static bool take_decimal(const char *s, struct decimal *d)
{
    *d = (struct decimal){0};
    d->minus = *s == '-';
    if (*s == '-' || *s == '+')
        s++;
    if (!take_digits(d, &s, false))
        return false;
    if (*s == '.' && (s++, !take_digits(d, &s, true)))
        return false;
    if (*s == 'e' || *s == 'E') {
        char *end;
        if (!digit(s[1]) && !((s[1] == '-' || s[1] == '+') && digit(s[2])))
            return false;
        long power = strtol(s + 1, &end, 10);
        if (power < -999 || power > 999)
            return false;
        d->power += (int)power;
        s = end;
    }
    int power = suffix_power(*s);
    d->power += power;
    return s[power > 0] == '\0';
}

/* Integers only, exact: 1.5k is 1500, 1e9 is one, 0.5 is not. */
static bool parse_int(const char *s, int64_t *ret)
{
    struct decimal d;
    if (!take_decimal(s, &d))
        return false;
    for (; d.digits && d.power > 0; d.power--)
        if (__builtin_mul_overflow(d.digits, 10, &d.digits))
            return false;
    for (; d.digits && d.power < 0; d.power++, d.digits /= 10)
        if (d.digits % 10)
            return false;
    if (d.digits > (uint64_t)INT64_MAX + d.minus)
        return false;
    *ret = (int64_t)(d.minus ? 0 - d.digits : d.digits);
    return true;
}

static bool parse_real(const char *s, double *ret)
{
    static const double scale[] = {[0] = 1, [3] = 1e3, [6] = 1e6, [9] = 1e9, [12] = 1e12};
    char plain[400], *end;
    size_t n = 0;
    for (; *s; s++) {
        if (*s == '_')
            continue;
        if (n + 1 == sizeof(plain) || !strchr("0123456789+-.eEkKMGT", *s))
            return false;
        plain[n++] = *s;
    }
    plain[n] = '\0';
    double v = strtod(plain, &end);
    int power = suffix_power(*end);
    v *= scale[power];
    if (end == plain || end[power > 0] != '\0' || !isfinite(v))
        return false;
    *ret = v;
    return true;
}

static bool parse_bool(const char *s, bool *ret)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(s, words[i])) {
            *ret = i % 2 == 1;
            return true;
        }
    return false;
}

static bool parse_choice(const char *s, const char *choices, int *ret)
{
    size_t n = strlen(s);
    for (int i = 0;; i++) {
        size_t k = strcspn(choices, "|");
        if (k == n && !memcmp(choices, s, n)) {
            *ret = i;
            return true;
        }
        if (!choices[k])
            return false;
        choices += k + 1;
    }
}

/* ---- errors ---- */

static bool bounded(const struct opt *o)
{
    return o->min != 0 || o->max != 0;
}

static double upper_bound(const struct opt *o)
{
    return (o->max == 0 && o->min > 0) || o->max >= 1e18 ? HUGE_VAL : o->max;
}

/* Larger upper bounds are sanity limits that messages do not mention. */
enum { LARGEST_SHOWN = 100000 };

static void put_bounds(const struct opt *o, double high, char *ret, size_t size)
{
    ret[0] = '\0';
    if (!bounded(o))
        return;
    if (high < HUGE_VAL && o->min > -1e18)
        snprintf(ret, size, "from %.15g to %.15g", o->min, high);
    else if (high < HUGE_VAL)
        snprintf(ret, size, "at most %.15g", high);
    else if (o->min > -1e18)
        snprintf(ret, size, "at least %.15g", o->min);
}

void opt_bounds_text(const struct opt *o, char *ret, size_t size)
{
    double high = upper_bound(o);
    put_bounds(o, high >= LARGEST_SHOWN ? HUGE_VAL : high, ret, size);
    if (high >= LARGEST_SHOWN && (o->min == 0 || o->min == -1))
        ret[0] = '\0';
}

static int opt_value_refuse(const struct opt *o, const char *label, const char *text, struct err *e)
{
    static const char *const what[] = {
        [OPT_SWITCH] = "true or false", [OPT_INT] = "an integer", [OPT_REAL] = "a number"};
    char bounds[80] = "";
    if (o->type != OPT_SWITCH)
        opt_bounds_text(o, bounds, sizeof(bounds));
    return err_set(e, ERR_USAGE, "%s: expected %s%s%s, got '%.200s'", label, what[o->type],
                   bounds[0] == 'a' ? " of "
                   : bounds[0]      ? " "
                                    : "",
                   bounds, text);
}

/* A number out of bounds; the message gives both of them. */
static int refuse_size(const struct opt *o, const char *label, const char *text, double v,
                       struct err *e)
{
    char bounds[80];
    double high = upper_bound(o);
    put_bounds(o, v < o->min && high >= LARGEST_SHOWN ? HUGE_VAL : high, bounds, sizeof(bounds));
    return err_set(e, ERR_USAGE, "%s: must be %s, got %.200s", label, bounds, text);
}

static int refuse_choice(const struct opt *o, const char *label, const char *text, struct err *e)
{
    struct arena a = {0};
    const char *word[64];
    size_t n = 0;
    char *rest = arena_strdup(&a, o->meta);
    struct buf all = {0};
    while (rest && n < 64) {
        word[n] = strsep(&rest, "|");
        buf_addf(&all, "%s%s", !n ? "" : rest ? ", " : " or ", word[n]);
        n++;
    }
    err_set(e, ERR_USAGE, "%s: expected %s, got '%.100s'", label, buf_str(&all), text);
    const char *near = opt_nearest_word(word, n, text);
    if (near)
        err_hint(e, "did you mean %s?", near);
    buf_finish(&all);
    arena_finish(&a);
    return ERR_USAGE;
}

static int check_utf8(const char *label, const char *text, struct err *e)
{
    const char *end = text + strlen(text);
    for (size_t k; text < end; text += k)
        if (!(k = utf8_char(text, end)))
            return err_set(e, ERR_USAGE, "%s: the value is not UTF-8", label);
    return 0;
}

/* ---- storing ---- */

static bool in_bounds(const struct opt *o, double v)
{
    return !bounded(o) || (v >= o->min && v <= upper_bound(o));
}

static int store_number(struct opts *o, const struct opt *row, const char *label, const char *text,
                        struct err *e)
{
    char *at = (char *)o->values + row->offset;
    int64_t whole = 0;
    double real = 0;
    bool ok = row->type == OPT_INT ? parse_int(text, &whole) : parse_real(text, &real);
    if (!ok)
        return opt_value_refuse(row, label, text, e);
    double v = row->type == OPT_INT ? (double)whole : real;
    if (!in_bounds(row, v))
        return refuse_size(row, label, text, v, e);
    if (row->type == OPT_INT)
        memcpy(at, &whole, sizeof(whole));
    else
        memcpy(at, &real, sizeof(real));
    return 0;
}

static int store_one(struct opts *o, const struct opt *row, const char *label, const char *text,
                     struct err *e)
{
    char *at = (char *)o->values + row->offset;
    bool on;
    int choice;
    const char *copy;
    switch (row->type) {
    case OPT_SWITCH:
        if (!parse_bool(text, &on))
            return opt_value_refuse(row, label, text, e);
        memcpy(at, &on, sizeof(on));
        return 0;
    case OPT_CHOICE:
        if (!parse_choice(text, row->meta, &choice))
            return refuse_choice(row, label, text, e);
        memcpy(at, &choice, sizeof(choice));
        return 0;
    case OPT_TEXT:
        copy = arena_strdup(&o->arena, text);
        memcpy(at, &copy, sizeof(copy));
        return 0;
    default:
        return store_number(o, row, label, text, e);
    }
}

/* The next item of a comma-separated text; one that begins with '"' ends at the next lone '"'. */
static const char *next_item(struct arena *a, const char **rest, bool *ret_quoted)
{
    const char *s = *rest;
    *ret_quoted = *s == '"';
    if (!*ret_quoted) {
        size_t n = strcspn(s, ",");
        *rest = s + n + (s[n] == ',');
        return arena_strndup(a, s, n);
    }
    struct buf b = {0};
    for (s++; *s && !(*s == '"' && s[1] != '"'); s++) {
        s += *s == '"';
        buf_addc(&b, *s);
    }
    s += *s == '"';
    size_t n = strcspn(s, ","); /* text between the closing quote and the comma is kept */
    buf_add(&b, s, n);
    *rest = s + n + (s[n] == ',');
    const char *item = arena_strndup(a, b.data, b.len);
    buf_finish(&b);
    return item;
}

/* The name of an existing file or shard (PREFIX.idx). */
static bool is_there(const char *name)
{
    char *idx = mem_printf("%s.idx", name);
    bool there = file_exists(name) || file_exists(idx);
    free(idx);
    return there;
}

static void store_list(struct opts *o, const struct opt *row, const struct opt_texts *value)
{
    size_t most = value->n;
    for (size_t i = 0; i < value->n && !value->verbatim; i++)
        for (const char *s = value->text[i]; *s; s++)
            most += *s == ',';
    struct opt_list list = {arena_take(&o->arena, most, sizeof(char *)), 0};
    for (size_t i = 0; i < value->n; i++) {
        const char *rest = value->text[i];
        bool whole = value->verbatim || (row->paths && is_there(rest));
        if (whole)
            list.item[list.n++] = arena_strdup(&o->arena, rest);
        while (!whole && *rest) {
            bool quoted;
            const char *item = next_item(&o->arena, &rest, &quoted);
            if (*item || quoted)
                list.item[list.n++] = item;
        }
    }
    memcpy((char *)o->values + row->offset, &list, sizeof(list));
}

int opt_store(struct opts *o, int row, const char *label, const struct opt_texts *value,
              struct err *e)
{
    const struct opt *r = opt_row(o->table, row);
    for (size_t i = 0; i < value->n; i++) {
        int rc = check_utf8(label, value->text[i], e);
        if (rc)
            return rc;
    }
    if (r->type == OPT_LIST) {
        store_list(o, r, value);
        return 0;
    }
    if (value->n != 1)
        return err_set(e, ERR_USAGE, "%s: expected one value, got %zu", label, value->n);
    return store_one(o, r, label, value->text[0], e);
}

int opt_apply(struct opts *o, int row, const struct opt_origin_row *origin, const char *label,
              const struct opt_texts *value, struct err *e)
{
    struct opt_origin_row *kept = (struct opt_origin_row *)o->origin + row;
    if (kept->from > origin->from)
        return 0;
    int rc = opt_store(o, row, label, value, e);
    if (!rc)
        *kept = *origin;
    return rc;
}

/* ---- values to texts ---- */

static void add_string(struct buf *b, const char *s)
{
    buf_addc(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_addf(b, "\\%c", c);
        else if (c == '\n')
            buf_adds(b, "\\n");
        else if (c == '\t')
            buf_adds(b, "\\t");
        else if (c < 0x20 || c == 0x7f)
            buf_addf(b, "\\u%04x", c);
        else
            buf_addc(b, (char)c);
    }
    buf_addc(b, '"');
}

static void opt_value_add_list(struct buf *b, const struct opt_list *list)
{
    buf_addc(b, '[');
    for (size_t i = 0; i < list->n; i++) {
        buf_adds(b, i ? ", " : "");
        add_string(b, list->item[i]);
    }
    buf_addc(b, ']');
}

void opt_choice_word(const char *choices, int i, struct buf *out)
{
    for (; i > 0; i--)
        choices += strcspn(choices, "|") + 1;
    buf_add(out, choices, strcspn(choices, "|"));
}

bool opt_value_text(const struct opts *o, int row, struct buf *b)
{
    const struct opt *r = opt_row(o->table, row);
    const void *at = (const char *)o->values + r->offset;
    const char *text;
    switch (r->type) {
    case OPT_SWITCH:
        buf_adds(b, *(const bool *)at ? "true" : "false");
        break;
    case OPT_INT:
        buf_addf(b, "%" PRId64, *(const int64_t *)at);
        break;
    case OPT_REAL:
        jsonw_real(b, *(const double *)at);
        break;
    case OPT_TEXT:
        text = *(const char *const *)at;
        if (!text)
            return false;
        add_string(b, text);
        break;
    case OPT_CHOICE:
        buf_addc(b, '"');
        opt_choice_word(r->meta, *(const int *)at, b);
        buf_addc(b, '"');
        break;
    case OPT_LIST:
        opt_value_add_list(b, at);
        break;
    }
    return true;
}
