/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32 };

/* A number, or a list of digits. */
struct pattern_value {
    int64_t number;
    bool list;
    struct buf digits;
};

struct pattern_text {
    const char *at;
    const char *why; /* NULL: it is right so far */
    int depth;
};

static void pattern_fail(struct pattern_text *t, const char *why)
{
    if (!t->why)
        t->why = why;
}

static char peek(struct pattern_text *t)
{
    t->at += strspn(t->at, " \t");
    return *t->at;
}

static bool accept(struct pattern_text *t, char c)
{
    bool is = peek(t) == c;
    t->at += is;
    return is;
}

static int64_t read_number(struct pattern_text *t)
{
    int64_t v = 0;
    if (peek(t) < '0' || *t->at > '9')
        pattern_fail(t, "expected a number, a list or a parenthesis");
    for (; *t->at >= '0' && *t->at <= '9'; t->at++)
        v = v > SPEC_LAYERS_MAX ? v : 10 * v + (*t->at - '0');
    return v;
}

static void read_list(struct pattern_text *t, struct buf *digits)
{
    while (!t->why && peek(t) != ']') {
        int64_t v = read_number(t);
        if (v > 1)
            pattern_fail(t, "expected values of 0 and 1");
        buf_addc(digits, v ? '1' : '0');
        if (!accept(t, ',') && peek(t) != ']')
            pattern_fail(t, "expected a comma or ]");
    }
    t->at += !t->why;
}

static struct pattern_value read_sum(struct pattern_text *t);

static struct pattern_value read_primary(struct pattern_text *t)
{
    struct pattern_value v = {0};
    if (accept(t, '[')) {
        v.list = true;
        read_list(t, &v.digits);
    } else if (accept(t, '(')) {
        if (++t->depth > DEPTH_MAX)
            pattern_fail(t, "too many parentheses");
        else
            v = read_sum(t);
        t->depth--;
        if (!accept(t, ')'))
            pattern_fail(t, "expected )");
    } else {
        v.number = read_number(t);
    }
    return v;
}

/* The list of `v` as often as n says, in its place. */
static void repeat(struct pattern_text *t, struct pattern_value *v, int64_t n)
{
    size_t once = v->digits.len;
    if ((int64_t)once * n > SPEC_LAYERS_MAX) {
        pattern_fail(t, "the list is longer than any model");
        return;
    }
    if (!n)
        buf_reset(&v->digits);
    for (int64_t i = 1; i < n; i++) {
        struct buf copy = {0};
        buf_add(&copy, v->digits.data, once);
        buf_add(&v->digits, copy.data, once);
        buf_finish(&copy);
    }
}

static struct pattern_value read_product(struct pattern_text *t)
{
    struct pattern_value v = read_primary(t);
    while (!t->why && accept(t, '*')) {
        struct pattern_value by = read_primary(t), swapped = v;
        if (by.list && !v.list) {
            v = by;
            by = swapped;
        }
        if (v.list == by.list)
            pattern_fail(t, "expected a product of a list and a number");
        else
            repeat(t, &v, by.number);
        buf_finish(&by.digits);
    }
    return v;
}

static struct pattern_value read_sum(struct pattern_text *t)
{
    struct pattern_value v = read_product(t);
    while (!t->why && accept(t, '+')) {
        struct pattern_value more = read_product(t);
        if (!v.list || !more.list)
            pattern_fail(t, "expected a sum of lists");
        else if (v.digits.len + more.digits.len > SPEC_LAYERS_MAX)
            pattern_fail(t, "the list is longer than any model");
        else
            buf_add(&v.digits, more.digits.data, more.digits.len);
        buf_finish(&more.digits);
    }
    return v;
}

int pattern_read(const char *option, const char *text, int64_t layers, int64_t *ret_every,
                 struct spec_layers *ret, struct err *e)
{
    struct pattern_text t = {.at = text};
    struct pattern_value v = read_sum(&t);
    int code = 0;
    *ret = (struct spec_layers){0};
    *ret_every = v.list ? 0 : v.number;
    if (peek(&t))
        pattern_fail(&t, "expected the end");
    if (!v.list && (v.number < 1 || v.number > SPEC_LAYERS_MAX))
        pattern_fail(&t, "expected a number above 0");
    if (t.why)
        code = err_set(e, ERR_USAGE, "--%s %s: %s at '%s'", option, text, t.why, t.at);
    else if (v.list && (int64_t)v.digits.len != layers)
        code = err_set(e, ERR_USAGE, "--%s %s has %zu values, and the model has %lld layers",
                       option, text, v.digits.len, (long long)layers);
    for (size_t i = 0; !code && i < v.digits.len; i++)
        if (v.digits.data[i] == '1')
            spec_layers_add(ret, (int64_t)i);
    buf_finish(&v.digits);
    return code;
}

void pattern_write(const struct spec_layers *p, int64_t layers, struct buf *out)
{
    for (int64_t l = 0; l < layers; l++)
        buf_addf(out, "%s%d", l ? ", " : "[", spec_layers_has(p, l));
    buf_addc(out, ']');
}

int pattern_window(const char *text, int64_t *ret, struct err *e)
{
    char *end;
    const char *at = text + strspn(text, " (");
    long long left = strtoll(at, &end, 10), right = -2;
    bool good = end != at;
    at = end + strspn(end, " ");
    good &= *at == ',';
    if (good)
        right = strtoll(at + 1, &end, 10);
    good &= end != at + 1 && end[strspn(end, " )")] == 0;
    if (!good || left < -1 || left > INT32_MAX || right < -1)
        return err_set(e, ERR_USAGE,
                       "--window-size %s: expected LEFT,RIGHT as in 4095,0; -1: without bound",
                       text);
    if (right > 0)
        return err_set(e, ERR_USAGE,
                       "--window-size %s: a query does not see what follows it: expected LEFT,0",
                       text);
    *ret = left + 1;
    return 0;
}
