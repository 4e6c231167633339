/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/eval.h"

#include "tok/jinja/arith.h"
#include "tok/jinja/attr.h"
#include "tok/jinja/compare.h"
#include "tok/jinja/exec.h"
#include "tok/jinja/repr.h"

/* ---- arguments ------------------------------------------------------------------------------- */

/* Arguments while they are collected: as many as are written, more where one is spread. */
struct collected {
    struct value *v, *key, *key_v;
    size_t n, cap, nkeys, keys_cap;
};

static bool add_argument(struct jinja_context *c, struct value **v, size_t *n, size_t *cap,
                         const struct value *add)
{
    if (*n == *cap) {
        size_t more = *cap ? 2 * *cap : 4;
        if (!jinja_need(c, more * sizeof(**v)))
            return false;
        struct value *p = pool_take(&c->values, more * sizeof(*p));
        if (*n)
            memcpy(p, *v, *n * sizeof(*p));
        *v = p;
        *cap = more;
    }
    (*v)[(*n)++] = *add;
    return true;
}

static bool add_keyword(struct jinja_context *c, struct collected *a, const struct value *key,
                        const struct value *v)
{
    size_t n = a->nkeys, cap = a->keys_cap;
    for (size_t i = 0; i < n; i++)
        if (compare_plain_equal(&a->key[i], key))
            return jinja_fail(c, "the argument %.*s is given twice", (int)key->n, key->text);
    return add_argument(c, &a->key, &n, &cap, key) &&
           add_argument(c, &a->key_v, &a->nkeys, &a->keys_cap, v);
}

static bool spread(struct jinja_context *c, struct collected *a, const struct node *n)
{
    struct value v;
    const struct value *item;
    size_t count;
    if (!eval(c, n->sub[0], &v))
        return false;
    if (n->kind == N_SPREAD) {
        if (!value_items(c, &v, &item, &count))
            return false;
        for (size_t i = 0; i < count; i++)
            if (!add_argument(c, &a->v, &a->n, &a->cap, &item[i]))
                return false;
        return true;
    }
    if (v.kind != V_DICT)
        return jinja_fail(c, "'**' needs a dict, not a %s", value_type(&v));
    const struct dict *d = dict_open(c, &v);
    for (size_t i = 0; i < d->n; i++) {
        if (d->pair[i].key.kind != V_STRING)
            return jinja_fail(c, "'**' needs keys that are strings");
        if (!add_keyword(c, a, &d->pair[i].key, &d->pair[i].value))
            return false;
    }
    return true;
}

bool eval_arguments(struct jinja_context *c, const struct node *n, struct args *ret)
{
    struct collected a = {0};
    size_t named = 0, plain = 0;
    for (uint32_t i = 1; i < n->n; i++)
        plain += n->sub[i]->kind != N_SPREAD && n->sub[i]->kind != N_SPREAD_KEYS;
    for (uint32_t i = 1; i < n->n; i++) {
        struct value v;
        const struct node *sub = n->sub[i];
        bool spreads = sub->kind == N_SPREAD || sub->kind == N_SPREAD_KEYS;
        if (spreads ? !spread(c, &a, sub) : !eval(c, sub, &v))
            return false;
        if (spreads)
            continue;
        bool is_named = plain-- <= n->nkeys;
        if (!is_named && !add_argument(c, &a.v, &a.n, &a.cap, &v))
            return false;
        if (is_named) {
            const struct jinja_name *name = &c->t->names[n->key[named++]];
            struct value key = value_text(name->text, name->n, TAG_TEMPLATE);
            if (!add_keyword(c, &a, &key, &v))
                return false;
        }
    }
    *ret = (struct args){a.v, a.n, a.key, a.key_v, a.nkeys};
    return true;
}

static bool place_keywords(struct jinja_context *c, const struct builtin *def, const struct args *a,
                           struct value *to)
{
    for (size_t k = 0; k < a->nkeys; k++) {
        size_t i = 0;
        while (i < BUILTIN_PARAMS && def->param[i] && !value_is(&a->key[k], def->param[i]))
            i++;
        if (i == BUILTIN_PARAMS || !def->param[i])
            return jinja_fail(c, "%s has no argument '%.*s'", def->name,
                              (int)(a->key[k].n < 64 ? a->key[k].n : 64), a->key[k].text);
        if (!value_is_missing(&to[i]))
            return jinja_fail(c, "the argument %s of %s is given twice", def->param[i], def->name);
        to[i] = a->key_v[k];
    }
    return true;
}

bool eval_builtin(struct jinja_context *c, const struct builtin *def, const struct value *self,
                  const struct args *a, struct value *ret)
{
    struct value placed[BUILTIN_PARAMS];
    size_t most = 0;
    if (!def->call)
        return jinja_fail(c, "%s is not supported", def->name);
    if (def->raw)
        return def->call(c, self, a, ret);
    while (most < BUILTIN_PARAMS && def->param[most])
        most++;
    if (a->n > most)
        return jinja_fail(c, "%s takes at most %zu arguments, not %zu", def->name, most, a->n);
    for (size_t i = 0; i < BUILTIN_PARAMS; i++)
        placed[i] =
            i < a->n ? a->v[i] : (struct value){.kind = V_UNDEFINED, .flags = VALUE_MISSING};
    if (!place_keywords(c, def, a, placed))
        return false;
    for (size_t i = 0; i < def->needed; i++)
        if (value_is_missing(&placed[i]))
            return jinja_fail(c, "%s needs the argument %s", def->name, def->param[i]);
    return def->call(c, self, &(struct args){.v = placed, .n = a->n}, ret);
}

bool eval_call(struct jinja_context *c, const struct value *f, const struct args *a,
               struct value *ret)
{
    switch ((enum value_kind)f->kind) {
    case V_MACRO:
        return exec_macro(c, f->macro, a, ret);
    case V_METHOD:
        return eval_builtin(c, f->method->def, &f->method->self, a, ret);
    case V_FUNCTION:
        return eval_builtin(c, f->function, NULL, a, ret);
    case V_UNDEFINED:
        return jinja_fail_undefined(c, f);
    default:
        return jinja_fail(c, "a %s cannot be called", value_type(f));
    }
}

/* ---- assignments ----------------------------------------------------------------------------- */

static bool assign_attribute(struct jinja_context *c, const struct node *n, const struct value *v)
{
    struct value space = scope_get(c, n->name);
    if (space.kind != V_NAMESPACE)
        return jinja_fail(c, "cannot assign an attribute to a %s: expected a namespace",
                          value_type(&space));
    if (n->value.n && n->value.text[0] == '_')
        return jinja_fail(c, "a namespace has no attributes that begin with '_'");
    return dict_put(c, space.dict, &n->value, v);
}

bool eval_assign(struct jinja_context *c, const struct node *target, const struct value *v)
{
    const struct value *item;
    size_t n;
    if (target->kind == N_NAME) {
        scope_set(c, c->scope, target->name, v);
        return true;
    }
    c->at = target->at;
    if (target->kind == N_NAMESPACE_REF)
        return assign_attribute(c, target, v);
    if (!value_items(c, v, &item, &n))
        return false;
    if (n != target->n)
        return jinja_fail(c, "expected %u values to assign, found %zu", target->n, n);
    for (uint32_t i = 0; i < target->n; i++)
        if (!eval_assign(c, target->sub[i], &item[i]))
            return false;
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool eval_items(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value v = n->kind == N_LIST ? value_list(c, n->n) : value_tuple(c, n->n);
    for (uint32_t i = 0; i < n->n; i++)
        if (!eval(c, n->sub[i], &v.list->item[i]))
            return false;
    *ret = v;
    return true;
}

static bool eval_dict(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value key, v;
    *ret = value_dict(c, V_DICT, n->n / 2);
    for (uint32_t i = 0; i < n->n; i += 2)
        if (!eval(c, n->sub[i], &key) || !eval(c, n->sub[i + 1], &v) ||
            !dict_put(c, ret->dict, &key, &v))
            return false;
    return true;
}

static bool eval_slice(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value of, bound[3];
    if (!eval(c, n->sub[0], &of))
        return false;
    for (int i = 0; i < 3; i++) {
        bound[i] = value_none();
        if (n->sub[i + 1] && !eval(c, n->sub[i + 1], &bound[i]))
            return false;
    }
    c->at = n->at;
    return attr_slice(c, &of, bound, ret);
}

static bool eval_called(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value f;
    struct args a;
    if (!eval(c, n->sub[0], &f) || !eval_arguments(c, n, &a))
        return false;
    c->at = n->at;
    return eval_call(c, &f, &a, ret);
}

/* A filter or test applied to a value. */
static bool eval_applied(struct jinja_context *c, const struct node *n, const struct value *v,
                         struct value *ret)
{
    struct args a;
    if (!n->def) {
        c->at = n->at;
        return jinja_fail(c, "there is no %s '%.*s'", n->kind == N_TEST ? "test" : "filter",
                          (int)(n->value.n < 64 ? n->value.n : 64), n->value.text);
    }
    if (!eval_arguments(c, n, &a))
        return false;
    c->at = n->at;
    return eval_builtin(c, n->def, v, &a, ret);
}

bool eval_filters(struct jinja_context *c, const struct node *n, const struct value *v,
                  struct value *ret)
{
    struct value inner = *v;
    if (n->sub[0] && !eval_filters(c, n->sub[0], v, &inner))
        return false;
    return eval_applied(c, n, &inner, ret);
}

static bool eval_compare(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value left, right;
    bool holds = true;
    if (!eval(c, n->sub[0], &left))
        return false;
    for (uint32_t i = 1; i < n->n && holds; i++) {
        if (!eval(c, n->sub[i], &right))
            return false;
        c->at = n->at;
        if (!compare_by(c, (enum comparison)n->key[i - 1], &left, &right, &holds))
            return false;
        left = right;
    }
    *ret = value_bool(holds);
    return true;
}

static bool eval_concat(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value left, right;
    if (!eval(c, n->sub[0], &left) || !repr_str(c, &left, &left))
        return false;
    left.flags &= (uint8_t)~VALUE_SAFE;
    for (uint32_t i = 1; i < n->n; i++) {
        if (!eval(c, n->sub[i], &right) || !repr_str(c, &right, &right))
            return false;
        right.flags &= (uint8_t)~VALUE_SAFE;
        if (!text_concat(c, &left, &right, &left))
            return false;
    }
    *ret = left;
    return true;
}

static bool eval_condition(struct jinja_context *c, const struct node *n, struct value *ret)
{
    static const char hint[] = "the condition does not hold, and there is no else";
    struct value test;
    if (!eval(c, n->sub[0], &test))
        return false;
    if (value_truth(&test))
        return eval(c, n->sub[1], ret);
    if (n->sub[2])
        return eval(c, n->sub[2], ret);
    *ret = value_undefined(hint, sizeof(hint) - 1);
    return true;
}

static bool eval_access(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value of, index;
    if (!eval(c, n->sub[0], &of))
        return false;
    if (n->kind == N_ATTR) {
        c->at = n->at;
        return attr_get(c, &of, &n->value, ret);
    }
    if (!eval(c, n->sub[1], &index))
        return false;
    c->at = n->at;
    return attr_item(c, &of, &index, ret);
}

static bool eval_two(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value left, right;
    if (!eval(c, n->sub[0], &left))
        return false;
    if (n->kind != N_BINARY) {
        if (value_truth(&left) == (n->kind == N_OR))
            return *ret = left, true;
        return eval(c, n->sub[1], ret);
    }
    if (!eval(c, n->sub[1], &right))
        return false;
    c->at = n->at;
    return arith_binary(c, (enum binary)n->op, &left, &right, ret);
}

static bool eval_one(struct jinja_context *c, const struct node *n, struct value *ret)
{
    struct value v;
    if (!eval(c, n->sub[0], &v))
        return false;
    c->at = n->at;
    if (n->kind == N_NOT)
        return *ret = value_bool(!value_truth(&v)), true;
    if (n->kind == N_NEGATE)
        return arith_negate(c, &v, ret);
    if (n->kind == N_PLUS)
        return arith_plus(c, &v, ret);
    return eval_applied(c, n, &v, ret);
}

static bool eval_node(struct jinja_context *c, const struct node *n, struct value *ret)
{
    switch ((enum node_kind)n->kind) {
    case N_LIST:
    case N_TUPLE:
        return eval_items(c, n, ret);
    case N_DICT:
        return eval_dict(c, n, ret);
    case N_ATTR:
    case N_ITEM:
        return eval_access(c, n, ret);
    case N_SLICE:
        return eval_slice(c, n, ret);
    case N_CALL:
        return eval_called(c, n, ret);
    case N_BINARY:
    case N_AND:
    case N_OR:
        return eval_two(c, n, ret);
    case N_CONCAT:
        return eval_concat(c, n, ret);
    case N_COMPARE:
        return eval_compare(c, n, ret);
    case N_COND:
        return eval_condition(c, n, ret);
    default:
        return eval_one(c, n, ret);
    }
}

bool eval(struct jinja_context *c, const struct node *n, struct value *ret)
{
    if (n->kind == N_CONST) {
        *ret = n->value;
        if (ret->kind == V_STRING)
            ret->tag = c->tag;
        return true;
    }
    if (n->kind == N_NAME) {
        *ret = scope_get(c, n->name);
        return true;
    }
    bool ok = jinja_enter(c) && jinja_step(c, 1) && eval_node(c, n, ret);
    c->depth--;
    return ok;
}
