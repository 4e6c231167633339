/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/methods.h"

#include "base/core/utf8.h"
#include "tok/jinja/case.h"
#include "tok/jinja/compare.h"
#include "tok/jinja/loop.h"
#include "tok/jinja/repr.h"

#define METHOD(word)                                                                               \
    static bool method_##word(struct jinja_context *c, const struct value *self,                   \
                              const struct args *a, struct value *ret)

bool method_withheld(struct jinja_context *c, const struct value *self, const struct args *a,
                     struct value *ret)
{
    (void)self, (void)a, (void)ret;
    return jinja_fail(c, "this method is not open to templates");
}

static bool need_text(struct jinja_context *c, const struct value *v, const char *method)
{
    if (v->kind == V_UNDEFINED)
        return jinja_fail_undefined(c, v);
    return v->kind == V_STRING ||
           jinja_fail(c, "str.%s() needs a str, not a %s", method, value_type(v));
}

static bool take_int(struct jinja_context *c, const struct value *v, int64_t otherwise,
                     int64_t *ret)
{
    *ret = otherwise;
    if (value_is_missing(v) || v->kind == V_NONE)
        return true;
    if (!value_is_int(v))
        return jinja_fail(c, "expected an integer, not a %s", value_type(v));
    *ret = value_integer(v);
    return true;
}

/* ---- white space and parts ------------------------------------------------------------------- */

/* Is the character at p, of k bytes, one that is stripped? */
static bool is_stripped(const struct value *chars, const char *p, size_t k)
{
    if (chars->kind != V_STRING)
        return case_space(p, p + k) == k;
    return memmem(chars->text, chars->n, p, k) != NULL;
}

bool method_strip(struct jinja_context *c, const struct value *s, const struct value *chars,
                  enum method_sides sides, struct value *ret)
{
    size_t from = 0, to = s->n, k;
    if (!value_is_missing(chars) && chars->kind != V_NONE && !need_text(c, chars, "strip"))
        return false;
    while (sides & METHOD_LEFT && from < to) {
        utf8_at(s->text + from, &k);
        if (!is_stripped(chars, s->text + from, k))
            break;
        from += k;
    }
    while (sides & METHOD_RIGHT && to > from) {
        size_t at = utf8_before(s->text, to);
        if (!is_stripped(chars, s->text + at, to - at))
            break;
        to = at;
    }
    *ret = text_slice(c, s, from, to);
    return jinja_step(c, (from + s->n - to) / 64);
}

METHOD(strip_both)
{
    return method_strip(c, self, &a->v[0], METHOD_BOTH, ret);
}

METHOD(lstrip)
{
    return method_strip(c, self, &a->v[0], METHOD_LEFT, ret);
}

METHOD(rstrip)
{
    return method_strip(c, self, &a->v[0], METHOD_RIGHT, ret);
}

static bool push_part(struct jinja_context *c, struct value *list, const struct value *part)
{
    struct list *l = list->list;
    if ((l->n & (l->n - 1)) == 0 && l->n != 1) { /* space for 2, 2, 4, 8, ... items */
        size_t cap = l->n ? 2 * l->n : 2;
        if (!jinja_need(c, cap * sizeof(*part)))
            return false;
        struct value *more = pool_take(&c->values, cap * sizeof(*more));
        if (l->n)
            memcpy(more, l->item, l->n * sizeof(*more));
        l->item = more;
    }
    l->item[l->n++] = *part;
    return jinja_step(c, 1);
}

static bool add_slice(struct jinja_context *c, struct value *list, const struct value *s,
                      size_t from, size_t to)
{
    struct value part = text_slice(c, s, from, to);
    return push_part(c, list, &part);
}

/* split() at white space, at most `most` times. */
static bool split_space(struct jinja_context *c, const struct value *s, int64_t most,
                        struct value *list)
{
    const char *end = s->text + s->n;
    size_t at = 0, k;
    while (at < s->n && (k = case_space(s->text + at, end)))
        at += k;
    while (at < s->n) {
        size_t from = at;
        if (most-- == 0) {
            struct value rest = text_slice(c, s, from, s->n), none = value_none();
            return method_strip(c, &rest, &none, METHOD_RIGHT, &rest) && push_part(c, list, &rest);
        }
        while (at < s->n && !case_space(s->text + at, end)) {
            utf8_at(s->text + at, &k);
            at += k;
        }
        if (!add_slice(c, list, s, from, at))
            return false;
        while (at < s->n && (k = case_space(s->text + at, end)))
            at += k;
    }
    return true;
}

static void reverse_list(struct list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        struct value v = l->item[i];
        l->item[i] = l->item[l->n - 1 - i];
        l->item[l->n - 1 - i] = v;
    }
}

/* rsplit() at white space: from the end. */
static bool split_space_back(struct jinja_context *c, const struct value *s, int64_t most,
                             struct value *list)
{
    struct value none = value_none(), rest = *s;
    while (method_strip(c, &rest, &none, METHOD_RIGHT, &rest) && rest.n) {
        size_t from = rest.n;
        if (most-- == 0) {
            if (!method_strip(c, &rest, &none, METHOD_LEFT, &rest) || !push_part(c, list, &rest))
                return false;
            break;
        }
        while (from) {
            size_t at = utf8_before(rest.text, from);
            if (case_space(rest.text + at, rest.text + from) == from - at)
                break;
            from = at;
        }
        if (!add_slice(c, list, &rest, from, rest.n))
            return false;
        rest = text_slice(c, &rest, 0, from);
    }
    reverse_list(list->list);
    return !c->failed;
}

static bool split_by(struct jinja_context *c, const struct value *s, const struct value *by,
                     int64_t most, struct value *list)
{
    size_t from = 0, at;
    while (most-- && (at = text_find(s, by, from, s->n)) != SIZE_MAX) {
        if (!add_slice(c, list, s, from, at))
            return false;
        from = at + by->n;
    }
    return add_slice(c, list, s, from, s->n);
}

static bool split_by_back(struct jinja_context *c, const struct value *s, const struct value *by,
                          int64_t most, struct value *list)
{
    size_t to = s->n, at;
    while (most-- && (at = text_find_last(s, by, 0, to)) != SIZE_MAX) {
        if (!add_slice(c, list, s, at + by->n, to))
            return false;
        to = at;
    }
    if (!add_slice(c, list, s, 0, to))
        return false;
    reverse_list(list->list);
    return true;
}

static bool split_text(struct jinja_context *c, const struct value *self, const struct args *a,
                       bool back, struct value *ret)
{
    const struct value *by = &a->v[0];
    int64_t most;
    *ret = value_list(c, 0);
    if (!take_int(c, &a->v[1], -1, &most) || !jinja_step(c, self->n / 64))
        return false;
    most = most < 0 ? -1 : most;
    if (value_is_missing(by) || by->kind == V_NONE)
        return back ? split_space_back(c, self, most, ret) : split_space(c, self, most, ret);
    if (!need_text(c, by, "split"))
        return false;
    if (!by->n)
        return jinja_fail(c, "str.split() needs a separator that is not empty");
    return back ? split_by_back(c, self, by, most, ret) : split_by(c, self, by, most, ret);
}

METHOD(split)
{
    return split_text(c, self, a, false, ret);
}

METHOD(rsplit)
{
    return split_text(c, self, a, true, ret);
}

/* The length of an end of a line at p, 0: none. */
static size_t line_end(const char *p, const char *end)
{
    size_t k;
    uint32_t ch = utf8_at(p, &k);
    if (ch == '\r' && p + 1 < end && p[1] == '\n')
        return 2;
    bool ends = (ch >= '\n' && ch <= '\r') || (ch >= 0x1c && ch <= 0x1e) || ch == 0x85 ||
                ch == 0x2028 || ch == 0x2029;
    return ends ? k : 0;
}

bool method_lines(struct jinja_context *c, const struct value *s, bool keep_ends,
                  const struct value **ret, size_t *ret_n)
{
    struct value list = value_list(c, 0);
    size_t from = 0, k;
    for (size_t at = 0; at < s->n;) {
        size_t ends = line_end(s->text + at, s->text + s->n);
        if (ends && !add_slice(c, &list, s, from, at + (keep_ends ? ends : 0)))
            return false;
        utf8_at(s->text + at, &k);
        at += ends ? ends : k;
        from = ends ? at : from;
    }
    if (from < s->n && !add_slice(c, &list, s, from, s->n))
        return false;
    *ret = list.list->item;
    *ret_n = list.list->n;
    return true;
}

METHOD(splitlines)
{
    const struct value *line;
    size_t n;
    if (!method_lines(c, self, value_truth(&a->v[0]), &line, &n))
        return false;
    *ret = value_list(c, n);
    if (n)
        memcpy(ret->list->item, line, n * sizeof(*line));
    return true;
}

static bool part_in_three(struct jinja_context *c, const struct value *self, const struct args *a,
                          bool back, struct value *ret)
{
    const struct value *by = &a->v[0];
    if (!need_text(c, by, "partition"))
        return false;
    if (!by->n)
        return jinja_fail(c, "str.partition() needs a separator that is not empty");
    size_t at = back ? text_find_last(self, by, 0, self->n) : text_find(self, by, 0, self->n);
    *ret = value_tuple(c, 3);
    struct value *item = ret->list->item, empty = value_text("", 0, c->tag);
    empty.flags = self->flags & VALUE_SAFE;
    item[0] = item[1] = item[2] = empty;
    if (at == SIZE_MAX) {
        item[back ? 2 : 0] = *self;
        return true;
    }
    item[0] = text_slice(c, self, 0, at);
    item[1] = text_slice(c, self, at, at + by->n);
    item[2] = text_slice(c, self, at + by->n, self->n);
    return jinja_step(c, self->n / 64);
}

METHOD(partition)
{
    return part_in_three(c, self, a, false, ret);
}

METHOD(rpartition)
{
    return part_in_three(c, self, a, true, ret);
}

/* ---- searching ------------------------------------------------------------------------------- */

static bool has_end(const struct value *s, const struct value *what, bool start)
{
    return what->n <= s->n && !memcmp(s->text + (start ? 0 : s->n - what->n), what->text, what->n);
}

static bool test_end(struct jinja_context *c, const struct value *self, const struct args *a,
                     bool start, struct value *ret)
{
    const struct value *what = &a->v[0];
    size_t n = what->kind == V_TUPLE ? what->list->n : 1;
    if (!value_is_missing(&a->v[1]))
        return jinja_fail(c, "str.startswith() and endswith() with places are not supported");
    bool is = false;
    for (size_t i = 0; i < n && !is; i++) {
        const struct value *one = what->kind == V_TUPLE ? &what->list->item[i] : what;
        if (!need_text(c, one, start ? "startswith" : "endswith"))
            return false;
        is = has_end(self, one, start);
    }
    return *ret = value_bool(is), true;
}

METHOD(startswith)
{
    return test_end(c, self, a, true, ret);
}

METHOD(endswith)
{
    return test_end(c, self, a, false, ret);
}

METHOD(removeprefix)
{
    if (!need_text(c, &a->v[0], "removeprefix"))
        return false;
    *ret = text_slice(c, self, has_end(self, &a->v[0], true) ? a->v[0].n : 0, self->n);
    return true;
}

METHOD(removesuffix)
{
    if (!need_text(c, &a->v[0], "removesuffix"))
        return false;
    *ret = text_slice(c, self, 0, self->n - (has_end(self, &a->v[0], false) ? a->v[0].n : 0));
    return true;
}

/* The bytes that places of characters from .. to mean, as for slices. */
static bool take_places(struct jinja_context *c, const struct value *self, const struct args *a,
                        size_t *from, size_t *to)
{
    int64_t length = (int64_t)text_length(self), place[2];
    if (!take_int(c, &a->v[1], 0, &place[0]) || !take_int(c, &a->v[2], length, &place[1]))
        return false;
    for (int i = 0; i < 2; i++) {
        place[i] += place[i] < 0 ? length : 0;
        place[i] = place[i] < 0 ? 0 : place[i];
    }
    *to = text_byte(self, (size_t)(place[1] > length ? length : place[1]));
    *from = place[0] > length ? SIZE_MAX : text_byte(self, (size_t)place[0]);
    return jinja_step(c, self->n / 64);
}

static bool find_in(struct jinja_context *c, const struct value *self, const struct args *a,
                    bool back, struct value *ret)
{
    size_t from, to, at = SIZE_MAX;
    if (!need_text(c, &a->v[0], "find") || !take_places(c, self, a, &from, &to))
        return false;
    if (from <= to)
        at = back ? text_find_last(self, &a->v[0], from, to) : text_find(self, &a->v[0], from, to);
    struct value before = *self;
    before.n = at == SIZE_MAX ? 0 : at;
    *ret = value_int(at == SIZE_MAX ? -1 : (int64_t)text_length(&before));
    return true;
}

METHOD(find)
{
    return find_in(c, self, a, false, ret);
}

METHOD(rfind)
{
    return find_in(c, self, a, true, ret);
}

static bool index_in(struct jinja_context *c, const struct value *self, const struct args *a,
                     bool back, struct value *ret)
{
    return find_in(c, self, a, back, ret) &&
           (ret->integer >= 0 || jinja_fail(c, "the substring is not there"));
}

METHOD(index)
{
    return index_in(c, self, a, false, ret);
}

METHOD(rindex)
{
    return index_in(c, self, a, true, ret);
}

METHOD(count)
{
    size_t from, to;
    int64_t n = 0;
    const struct value *what = &a->v[0];
    if (!need_text(c, what, "count") || !take_places(c, self, a, &from, &to))
        return false;
    if (!what->n && from <= to) {
        struct value part = text_slice(c, self, from, to);
        n = (int64_t)text_length(&part) + 1;
    }
    while (what->n && from <= to && (from = text_find(self, what, from, to)) != SIZE_MAX) {
        from += what->n;
        n++;
    }
    return *ret = value_int(n), true;
}

/* ---- changing -------------------------------------------------------------------------------- */

/* Before each character and at the end, where nothing is replaced. */
static bool replace_nothing(struct jinja_context *c, const struct value *s, const struct value *new,
                            int64_t count)
{
    size_t at = 0, k;
    for (; count && at < s->n; count--, at += k) {
        utf8_at(s->text + at, &k);
        struct value one = text_slice(c, s, at, at + k);
        if (!jinja_step(c, 1) || !text_write_value(c, new) || !text_write_value(c, &one))
            return false;
    }
    struct value rest = text_slice(c, s, at, s->n);
    return text_write_value(c, &rest) && (!count || text_write_value(c, new));
}

bool method_replace(struct jinja_context *c, const struct value *s, const struct value *old,
                    const struct value *new, int64_t count, struct value *ret)
{
    struct text_mark m = text_begin(c);
    size_t from = 0, at;
    if (!old->n)
        return replace_nothing(c, s, new, count) && text_end(c, m, ret);
    if (!jinja_step(c, s->n / 64))
        return false;
    while (count-- && (at = text_find(s, old, from, s->n)) != SIZE_MAX) {
        struct value before = text_slice(c, s, from, at);
        if (!jinja_step(c, 1) || !text_write_value(c, &before) || !text_write_value(c, new))
            return false;
        from = at + old->n;
    }
    struct value rest = text_slice(c, s, from, s->n);
    if (!text_write_value(c, &rest) || !text_end(c, m, ret))
        return false;
    ret->flags |= s->flags & VALUE_SAFE;
    return true;
}

METHOD(replace_all)
{
    struct value old = a->v[0], new = a->v[1];
    int64_t count;
    if (!need_text(c, &old, "replace") || !need_text(c, &new, "replace") ||
        !take_int(c, &a->v[2], -1, &count))
        return false;
    if (self->flags & VALUE_SAFE && (!text_escape(c, &old, &old) || !text_escape(c, &new, &new)))
        return false;
    return method_replace(c, self, &old, &new, count < 0 ? -1 : count, ret);
}

static bool method_case(struct jinja_context *c, const struct value *self, enum case_form f,
                        struct value *ret)
{
    struct text_mark m = text_begin(c);
    if (!case_write(c, self, f) || !text_end(c, m, ret))
        return false;
    ret->flags |= self->flags & VALUE_SAFE;
    return true;
}

#define CASE_METHOD(word, form)                                                                    \
    METHOD(word)                                                                                   \
    {                                                                                              \
        return (void)a, method_case(c, self, form, ret);                                           \
    }

CASE_METHOD(upper, CASE_UPPER)
CASE_METHOD(lower, CASE_LOWER)
CASE_METHOD(capitalize, CASE_CAPITALIZE)
CASE_METHOD(title, CASE_TITLE)
CASE_METHOD(swapcase, CASE_SWAP)

#define CLASS_METHOD(word, class)                                                                  \
    METHOD(word)                                                                                   \
    {                                                                                              \
        (void)c, (void)a;                                                                          \
        return *ret = value_bool(case_is(self, class)), true;                                      \
    }

CLASS_METHOD(isspace, CASE_IS_SPACE)
CLASS_METHOD(isalpha, CASE_IS_ALPHA)
CLASS_METHOD(islower, CASE_IS_LOWER)
CLASS_METHOD(isupper, CASE_IS_UPPER)
CLASS_METHOD(isdigit, CASE_IS_DIGIT)

METHOD(zfill)
{
    int64_t width, length = (int64_t)text_length(self);
    if (!take_int(c, &a->v[0], 0, &width))
        return false;
    size_t sign = self->n && (self->text[0] == '-' || self->text[0] == '+');
    struct value head = text_slice(c, self, 0, sign), rest = text_slice(c, self, sign, self->n);
    struct text_mark m = text_begin(c);
    bool ok = text_write_value(c, &head);
    for (; width > length && ok; width--)
        ok = jinja_step(c, 1) && text_write(c, "0", 1, c->tag);
    return ok && text_write_value(c, &rest) && text_end(c, m, ret);
}

METHOD(join)
{
    const struct value *item;
    size_t n;
    if (self->flags & VALUE_SAFE)
        return jinja_fail(c, "join() of Markup is not supported");
    if (!value_items(c, &a->v[0], &item, &n))
        return false;
    struct text_mark m = text_begin(c);
    for (size_t i = 0; i < n; i++)
        if (!need_text(c, &item[i], "join") || (i && !text_write_value(c, self)) ||
            !text_write_value(c, &item[i]))
            return false;
    return text_end(c, m, ret);
}

/* ---- dicts and lists ------------------------------------------------------------------------- */

METHOD(get)
{
    if (a->v[0].kind == V_LIST || a->v[0].kind == V_DICT)
        return jinja_fail(c, "a %s cannot be a key", value_type(&a->v[0]));
    struct dict *d = dict_open(c, self);
    const struct value *found = dict_find(d, &a->v[0]);
    *ret = found ? *found : value_is_missing(&a->v[1]) ? value_none() : a->v[1];
    return jinja_step(c, d->n / 8);
}

static bool view_of(struct jinja_context *c, const struct value *self, enum view_kind kind,
                    struct value *ret)
{
    *ret = (struct value){.kind = V_VIEW, .flags = self->flags, .tag = self->tag};
    ret->view = jinja_take(c, 1, sizeof(*ret->view));
    *ret->view = (struct view){kind, self->dict};
    return true;
}

METHOD(keys)
{
    return (void)a, view_of(c, self, VIEW_KEYS, ret);
}

METHOD(values)
{
    return (void)a, view_of(c, self, VIEW_VALUES, ret);
}

METHOD(items)
{
    return (void)a, view_of(c, self, VIEW_ITEMS, ret);
}

METHOD(copy)
{
    (void)c, (void)a; /* nothing changes a list or dict */
    return *ret = *self, true;
}

static bool find_item(struct jinja_context *c, const struct value *self, const struct value *what,
                      int64_t *ret_first, int64_t *ret_count)
{
    const struct list *l = list_open(c, self);
    *ret_first = -1;
    *ret_count = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool same;
        if (!compare_equal(c, &l->item[i], what, &same))
            return false;
        *ret_first = same && *ret_first < 0 ? (int64_t)i : *ret_first;
        *ret_count += same;
    }
    return true;
}

METHOD(list_index)
{
    int64_t first, count;
    if (!find_item(c, self, &a->v[0], &first, &count))
        return false;
    *ret = value_int(first);
    return first >= 0 || jinja_fail(c, "the value is not in the %s", value_type(self));
}

METHOD(list_count)
{
    int64_t first, count;
    return find_item(c, self, &a->v[0], &first, &count) && (*ret = value_int(count), true);
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define ROW(word, ...)                                                                             \
    {                                                                                              \
        .name = #word, .call = method_##word, __VA_ARGS__                                          \
    }
#define AS(word, is, ...)                                                                          \
    {                                                                                              \
        .name = #word, .call = method_##is, __VA_ARGS__                                            \
    }
#define REFUSED(word)                                                                              \
    {                                                                                              \
        .name = #word                                                                              \
    }
#define PLACES .needed = 1, .param = {"sub", "start", "end"}

static const struct builtin text_methods[] = {
    AS(strip, strip_both, .param = {"chars"}),
    AS(replace, replace_all, .needed = 2, .param = {"old", "new", "count"}),
    ROW(capitalize, .needed = 0),
    ROW(count, PLACES),
    ROW(endswith, PLACES),
    ROW(find, PLACES),
    ROW(index, PLACES),
    ROW(isalpha, .needed = 0),
    ROW(isdigit, .needed = 0),
    ROW(islower, .needed = 0),
    ROW(isspace, .needed = 0),
    ROW(isupper, .needed = 0),
    ROW(join, .needed = 1, .param = {"iterable"}),
    ROW(lower, .needed = 0),
    ROW(lstrip, .param = {"chars"}),
    ROW(partition, .needed = 1, .param = {"sep"}),
    ROW(removeprefix, .needed = 1, .param = {"prefix"}),
    ROW(removesuffix, .needed = 1, .param = {"suffix"}),
    ROW(rfind, PLACES),
    ROW(rindex, PLACES),
    ROW(rpartition, .needed = 1, .param = {"sep"}),
    ROW(rsplit, .param = {"sep", "maxsplit"}),
    ROW(rstrip, .param = {"chars"}),
    ROW(split, .param = {"sep", "maxsplit"}),
    ROW(splitlines, .param = {"keepends"}),
    ROW(startswith, PLACES),
    ROW(swapcase, .needed = 0),
    ROW(title, .needed = 0),
    ROW(upper, .needed = 0),
    ROW(zfill, .needed = 1, .param = {"width"}),
    REFUSED(casefold),
    REFUSED(center),
    REFUSED(encode),
    REFUSED(expandtabs),
    REFUSED(format),
    REFUSED(format_map),
    REFUSED(isalnum),
    REFUSED(isascii),
    REFUSED(isdecimal),
    REFUSED(isidentifier),
    REFUSED(isnumeric),
    REFUSED(isprintable),
    REFUSED(istitle),
    REFUSED(ljust),
    REFUSED(maketrans),
    REFUSED(rjust),
    REFUSED(translate),
    {.name = NULL},
};

static const struct builtin dict_methods[] = {
    ROW(copy, .needed = 0),
    ROW(get, .needed = 1, .param = {"key", "default"}),
    ROW(items, .needed = 0),
    ROW(keys, .needed = 0),
    ROW(values, .needed = 0),
    REFUSED(fromkeys),
    AS(clear, withheld, .raw = true),
    AS(pop, withheld, .raw = true),
    AS(popitem, withheld, .raw = true),
    AS(setdefault, withheld, .raw = true),
    AS(update, withheld, .raw = true),
    {.name = NULL},
};

static const struct builtin list_methods[] = {
    ROW(copy, .needed = 0),
    AS(count, list_count, .needed = 1, .param = {"value"}),
    AS(index, list_index, .needed = 1, .param = {"value"}),
    AS(append, withheld, .raw = true),
    AS(clear, withheld, .raw = true),
    AS(extend, withheld, .raw = true),
    AS(insert, withheld, .raw = true),
    AS(pop, withheld, .raw = true),
    AS(remove, withheld, .raw = true),
    AS(reverse, withheld, .raw = true),
    AS(sort, withheld, .raw = true),
    {.name = NULL},
};

static const struct builtin tuple_methods[] = {
    AS(count, list_count, .needed = 1, .param = {"value"}),
    AS(index, list_index, .needed = 1, .param = {"value"}),
    {.name = NULL},
};

static const struct builtin number_methods[] = {
    REFUSED(as_integer_ratio),
    REFUSED(bit_count),
    REFUSED(bit_length),
    REFUSED(conjugate),
    REFUSED(denominator),
    REFUSED(from_bytes),
    REFUSED(imag),
    REFUSED(numerator),
    REFUSED(real),
    REFUSED(to_bytes),
    {.name = NULL},
};

static const struct builtin real_methods[] = {
    REFUSED(as_integer_ratio), REFUSED(conjugate), REFUSED(fromhex), REFUSED(hex), REFUSED(imag),
    REFUSED(is_integer),       REFUSED(real),      {.name = NULL},
};

const struct builtin *methods_of(const struct value *v)
{
    static const struct builtin *const of[] = {
        [V_BOOL] = number_methods, [V_INT] = number_methods,     [V_REAL] = real_methods,
        [V_STRING] = text_methods, [V_LIST] = list_methods,      [V_TUPLE] = tuple_methods,
        [V_DICT] = dict_methods,   [V_LOOP] = jinja_loop_methods};
    return v->kind < sizeof(of) / sizeof(*of) ? of[v->kind] : NULL;
}
