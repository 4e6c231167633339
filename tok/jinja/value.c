/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/value.h"

#include <string.h>

#include "base/core/utf8.h"
#include "tok/jinja/compare.h"
#include "tok/jinja/context.h"
#include "tok/jinja/text.h"

const struct builtin *builtin_find(const struct builtin *table, const char *name, size_t n)
{
    for (; table->name; table++)
        if (!strncmp(table->name, name, n) && !table->name[n])
            return table;
    return NULL;
}

const char *value_type(const struct value *v)
{
    static const char *const name[] = {[V_UNDEFINED] = "Undefined", [V_NONE] = "None",
                                       [V_BOOL] = "bool",           [V_INT] = "int",
                                       [V_REAL] = "float",          [V_STRING] = "str",
                                       [V_LIST] = "list",           [V_TUPLE] = "tuple",
                                       [V_DICT] = "dict",           [V_RANGE] = "range",
                                       [V_STREAM] = "generator",    [V_VIEW] = "view of a dict",
                                       [V_NAMESPACE] = "namespace", [V_MACRO] = "macro",
                                       [V_METHOD] = "method",       [V_FUNCTION] = "function",
                                       [V_LOOP] = "loop variable"};
    return name[v->kind];
}

bool value_truth(const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case V_UNDEFINED:
    case V_NONE:
        return false;
    case V_BOOL:
        return v->boolean;
    case V_INT:
        return v->integer != 0;
    case V_REAL:
        return v->real != 0;
    case V_STRING:
        return v->n > 0;
    case V_LIST:
    case V_TUPLE:
        return v->list->n > 0;
    case V_DICT:
        return v->dict->n > 0;
    case V_RANGE:
        return v->range->n > 0;
    case V_VIEW:
        return v->view->dict->n > 0;
    default:
        return true;
    }
}

/* ---- out of JSON ----------------------------------------------------------------------------- */

struct value value_of_json(struct jinja_context *c, const struct json *j, uint32_t tag)
{
    struct value v = {.flags = VALUE_DATA, .tag = tag};
    switch (j->kind) {
    case JSON_NULL:
        v.kind = V_NONE;
        break;
    case JSON_BOOL:
        v.kind = V_BOOL;
        v.boolean = j->boolean;
        break;
    case JSON_INT:
        v.kind = V_INT;
        v.integer = j->integer;
        break;
    case JSON_REAL:
        v.kind = V_REAL;
        v.real = j->real;
        break;
    case JSON_STRING:
        return value_text(j->string, j->length, tag);
    case JSON_ARRAY:
        v.kind = V_LIST;
        v.list = jinja_take(c, 1, sizeof(*v.list));
        *v.list = (struct list){.source = j, .n = j->length};
        break;
    case JSON_OBJECT:
        v.kind = V_DICT;
        v.dict = jinja_take(c, 1, sizeof(*v.dict));
        *v.dict = (struct dict){.source = j, .n = j->length};
        break;
    }
    return v;
}

struct list *list_open(struct jinja_context *c, const struct value *v)
{
    struct list *l = v->list;
    const struct json *from = l->source;
    if (!from)
        return l;
    l->source = NULL;
    l->item = pool_take(&c->values, l->n * sizeof(*l->item));
    for (size_t i = 0; i < l->n; i++) {
        uint32_t message = (uint32_t)i + 1;
        uint32_t tag = l->messages ? message << TAG_SHIFT : v->tag;
        l->item[i] = value_of_json(c, &from->child[i], tag);
        if (l->messages && l->item[i].kind == V_DICT)
            l->item[i].dict->message = message;
    }
    return l;
}

/* A name of a role: templates put it into special tokens, so that it counts as their own text. */
static bool is_role(const struct json *j)
{
    bool word = !strcmp(j->key, "role") && j->kind == JSON_STRING;
    for (size_t i = 0; i < j->length && word; i++) {
        char low = (char)(j->string[i] | 32);
        word = (low >= 'a' && low <= 'z') || (j->string[i] >= '0' && j->string[i] <= '9') ||
               j->string[i] == '_' || j->string[i] == '-';
    }
    return word;
}

struct dict *dict_open(struct jinja_context *c, const struct value *v)
{
    struct dict *d = v->dict;
    const struct json *from = d->source;
    if (!from)
        return d;
    d->source = NULL;
    d->cap = d->n;
    d->pair = pool_take(&c->values, d->n * sizeof(*d->pair));
    for (size_t i = 0; i < d->n; i++) {
        const struct json *j = &from->child[i];
        d->pair[i].key = value_text(j->key, j->key_length, v->tag);
        uint32_t own = d->message && is_role(j) ? TAG_TEMPLATE : 0;
        d->pair[i].value = value_of_json(c, j, v->tag | own);
    }
    return d;
}

/* ---- containers ------------------------------------------------------------------------------ */

struct value value_list(struct jinja_context *c, size_t n)
{
    struct value v = {.kind = V_LIST, .list = jinja_take(c, 1, sizeof(*v.list))};
    v.list->n = n;
    v.list->item = jinja_take(c, n, sizeof(*v.list->item));
    return v;
}

struct value value_tuple(struct jinja_context *c, size_t n)
{
    struct value v = value_list(c, n);
    v.kind = V_TUPLE;
    return v;
}

struct value value_dict(struct jinja_context *c, enum value_kind kind, size_t cap)
{
    struct value v = {.kind = (uint8_t)kind, .dict = jinja_take(c, 1, sizeof(*v.dict))};
    v.dict->cap = cap;
    v.dict->pair = jinja_take(c, cap, sizeof(*v.dict->pair));
    return v;
}

struct value value_stream(struct jinja_context *c, const struct value *item, size_t n)
{
    struct value v = {.kind = V_STREAM, .stream = jinja_take(c, 1, sizeof(*v.stream))};
    *v.stream = (struct stream){.item = item, .n = n};
    return v;
}

struct value *dict_find_text(struct dict *d, const char *text, size_t n)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct value *k = &d->pair[i].key;
        if (k->kind == V_STRING && k->n == n && !memcmp(k->text, text, n))
            return &d->pair[i].value;
    }
    return NULL;
}

struct value *dict_find(struct dict *d, const struct value *key)
{
    if (key->kind == V_STRING)
        return dict_find_text(d, key->text, key->n);
    for (size_t i = 0; i < d->n; i++)
        if (compare_plain_equal(&d->pair[i].key, key))
            return &d->pair[i].value;
    return NULL;
}

bool dict_put(struct jinja_context *c, struct dict *d, const struct value *key,
              const struct value *value)
{
    if (key->kind == V_LIST || key->kind == V_DICT)
        return jinja_fail(c, "a %s cannot be a key", value_type(key));
    if (!jinja_step(c, 1 + d->n / 8))
        return false;
    struct value *found = dict_find(d, key);
    if (found)
        return *found = *value, true;
    if (d->n == d->cap) {
        size_t cap = d->cap ? 2 * d->cap : 8;
        if (!jinja_need(c, cap * sizeof(*d->pair)))
            return false;
        struct pair *more = pool_take(&c->values, cap * sizeof(*more));
        if (d->n)
            memcpy(more, d->pair, d->n * sizeof(*more));
        d->pair = more;
        d->cap = cap;
    }
    d->pair[d->n++] = (struct pair){*key, *value};
    return true;
}

/* ---- iteration ------------------------------------------------------------------------------- */

bool value_length(struct jinja_context *c, const struct value *v, size_t *ret)
{
    switch ((enum value_kind)v->kind) {
    case V_UNDEFINED:
        return *ret = 0, true;
    case V_STRING:
        return *ret = text_length(v), jinja_step(c, v->n / 64);
    case V_LIST:
    case V_TUPLE:
        return *ret = v->list->n, true;
    case V_DICT:
        return *ret = v->dict->n, true;
    case V_RANGE:
        return *ret = v->range->n, true;
    case V_VIEW:
        return *ret = v->view->dict->n, true;
    default:
        return false;
    }
}

bool value_is_iterable(const struct value *v)
{
    switch ((enum value_kind)v->kind) {
    case V_UNDEFINED:
    case V_STRING:
    case V_LIST:
    case V_TUPLE:
    case V_DICT:
    case V_RANGE:
    case V_STREAM:
    case V_VIEW:
    case V_LOOP:
        return true;
    default:
        return false;
    }
}

static void take_characters(struct jinja_context *c, const struct value *v, struct value *to)
{
    size_t n = 0;
    for (size_t at = 0; at < v->n; n++) {
        size_t k;
        utf8_at(v->text + at, &k);
        to[n] = text_slice(c, v, at, at + k);
        to[n].flags &= (uint8_t)~VALUE_SAFE; /* of Markup, too */
        at += k;
    }
}

static void take_pairs(struct jinja_context *c, const struct value *v, enum view_kind kind,
                       struct value *to)
{
    struct value of = {.kind = V_DICT, .flags = v->flags, .tag = v->tag};
    of.dict = v->kind == V_VIEW ? v->view->dict : v->dict;
    const struct dict *d = dict_open(c, &of);
    for (size_t i = 0; i < d->n; i++) {
        if (kind == VIEW_ITEMS) {
            to[i] = value_tuple(c, 2);
            to[i].flags |= of.flags & VALUE_DATA;
            to[i].tag = of.tag;
            to[i].list->item[0] = d->pair[i].key;
            to[i].list->item[1] = d->pair[i].value;
        } else {
            to[i] = kind == VIEW_KEYS ? d->pair[i].key : d->pair[i].value;
        }
    }
}

static void take_numbers(const struct range *r, struct value *to)
{
    for (size_t i = 0; i < r->n; i++)
        to[i] = value_int(r->start + (int64_t)i * r->step);
}

bool value_items(struct jinja_context *c, const struct value *v, const struct value **ret,
                 size_t *ret_n)
{
    struct value *made = NULL;
    size_t n = 0;
    *ret = NULL;
    *ret_n = 0;
    if (v->kind == V_UNDEFINED)
        return true;
    if (v->kind == V_LIST || v->kind == V_TUPLE) {
        const struct list *l = list_open(c, v);
        return *ret = l->item, *ret_n = l->n, jinja_step(c, l->n);
    }
    if (v->kind == V_STREAM) {
        *ret_n = v->stream->n - v->stream->at;
        *ret = *ret_n ? v->stream->item + v->stream->at : NULL;
        v->stream->at = v->stream->n;
        return jinja_step(c, *ret_n);
    }
    if (!value_length(c, v, &n))
        return jinja_fail(c, "a %s cannot be iterated", value_type(v));
    if (!jinja_step(c, n) || !jinja_need(c, n * sizeof(*made)))
        return false;
    made = pool_take(&c->values, n * sizeof(*made));
    if (v->kind == V_STRING)
        take_characters(c, v, made);
    else if (v->kind == V_RANGE)
        take_numbers(v->range, made);
    else
        take_pairs(c, v, v->kind == V_VIEW ? v->view->kind : VIEW_KEYS, made);
    *ret = made;
    *ret_n = n;
    return true;
}
