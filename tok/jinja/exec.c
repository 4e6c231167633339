/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/exec.h"

#include "base/core/array.h"
#include "tok/jinja/eval.h"
#include "tok/jinja/loop.h"
#include "tok/jinja/repr.h"

/* How a statement ended. */
enum flow { FLOW_FAIL, FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE };

static enum flow exec_body(struct jinja_context *c, const struct node *n);

static enum flow flow_of(bool ok)
{
    return ok ? FLOW_NEXT : FLOW_FAIL;
}

/* A body in a scope of its own, whose names end with it. */
static enum flow exec_scoped(struct jinja_context *c, const struct node *body)
{
    struct scope *was = c->scope, *s = scope_open(c, was);
    c->scope = s;
    enum flow f = exec_body(c, body);
    c->scope = was;
    scope_close(c, s);
    return f;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* The message that an item is, or has at its first level as loops over pairs have it. */
static uint32_t message_of(const struct value *v)
{
    if (v->kind == V_DICT)
        return v->dict->message;
    for (size_t i = 0; v->kind == V_TUPLE && i < v->list->n; i++)
        if (v->list->item[i].kind == V_DICT && v->list->item[i].dict->message)
            return v->list->item[i].dict->message;
    return 0;
}

static enum flow exec_turn(struct jinja_context *c, const struct node *n, struct loop *l,
                           const struct value *item)
{
    uint32_t tag = c->tag, message = message_of(item);
    struct scope *was = c->scope, *s = scope_open(c, was);
    struct value variable = {.kind = V_LOOP, .loop = l};
    c->scope = s;
    if (message)
        c->tag = TAG_TEMPLATE | message << TAG_SHIFT;
    enum flow f = flow_of(eval_assign(c, n->sub[0], item));
    if (f == FLOW_NEXT && c->t->loop_name != UINT32_MAX)
        scope_set(c, s, c->t->loop_name, &variable);
    if (f == FLOW_NEXT)
        f = exec_body(c, n->sub[3]);
    c->tag = tag;
    c->scope = was;
    scope_close(c, s);
    return f;
}

static enum flow exec_for(struct jinja_context *c, const struct node *n)
{
    struct value over, item;
    struct loop *l = jinja_take(c, 1, sizeof(*l));
    enum flow f = FLOW_NEXT;
    bool more = true, any = false;
    l->node = n;
    l->scope = c->scope;
    if (!eval(c, n->sub[1], &over))
        return FLOW_FAIL;
    c->at = n->at;
    if (!value_items(c, &over, &l->item, &l->n))
        return FLOW_FAIL;
    while (f != FLOW_BREAK && f != FLOW_FAIL) {
        if (!loop_next(c, l, &item, &more))
            return FLOW_FAIL;
        if (!more)
            break;
        /* As in jinja2: a turn that ends by `continue` does not keep the else from its turn. */
        f = exec_turn(c, n, l, &item);
        any |= f == FLOW_NEXT;
    }
    if (f == FLOW_FAIL)
        return f;
    return !any && n->sub[4] ? exec_scoped(c, n->sub[4]) : FLOW_NEXT;
}

/* ---- other statements ------------------------------------------------------------------------ */

static enum flow exec_if(struct jinja_context *c, const struct node *n)
{
    struct value test;
    for (uint32_t i = 0; i + 1 < n->n; i += 2) {
        if (!eval(c, n->sub[i], &test))
            return FLOW_FAIL;
        if (value_truth(&test))
            return exec_body(c, n->sub[i + 1]);
    }
    return n->n % 2 ? exec_body(c, n->sub[n->n - 1]) : FLOW_NEXT;
}

static bool exec_print(struct jinja_context *c, const struct node *n)
{
    struct value v;
    for (uint32_t i = 0; i < n->n; i++) {
        if (!eval(c, n->sub[i], &v))
            return false;
        c->at = n->at;
        if (!repr_write_str(c, &v))
            return false;
    }
    return true;
}

static bool exec_set(struct jinja_context *c, const struct node *n)
{
    struct value v;
    return eval(c, n->sub[1], &v) && eval_assign(c, n->sub[0], &v);
}

/* The text of a body as a value. */
static bool collect(struct jinja_context *c, const struct node *body, struct value *ret)
{
    struct text_mark m = text_begin(c);
    return exec_scoped(c, body) != FLOW_FAIL && text_end(c, m, ret);
}

static bool exec_set_block(struct jinja_context *c, const struct node *n)
{
    struct value v;
    return collect(c, n->sub[2], &v) && (!n->sub[1] || eval_filters(c, n->sub[1], &v, &v)) &&
           eval_assign(c, n->sub[0], &v);
}

static bool exec_filter_block(struct jinja_context *c, const struct node *n)
{
    struct value v;
    return collect(c, n->sub[1], &v) && eval_filters(c, n->sub[0], &v, &v) && repr_write_str(c, &v);
}

static struct value make_macro_value(struct jinja_context *c, const struct node *n)
{
    struct value v = {.kind = V_MACRO, .macro = jinja_take(c, 1, sizeof(*v.macro))};
    *v.macro = (struct macro){n, c->scope};
    for (struct scope *s = c->scope; s && !s->kept; s = s->up)
        s->kept = true;
    return v;
}

static bool exec_call_block(struct jinja_context *c, const struct node *n)
{
    const struct node *call = n->sub[0];
    struct value caller = make_macro_value(c, n->sub[1]), f, text;
    struct args a;
    if (!eval(c, call->sub[0], &f) || !eval_arguments(c, call, &a))
        return false;
    struct value *key = pool_take(&c->values, (a.nkeys + 1) * sizeof(*key));
    struct value *key_v = pool_take(&c->values, (a.nkeys + 1) * sizeof(*key));
    for (size_t i = 0; i < a.nkeys; i++) {
        key[i] = a.key[i];
        key_v[i] = a.key_v[i];
    }
    key[a.nkeys] = value_text("caller", 6, TAG_TEMPLATE);
    key_v[a.nkeys] = caller;
    a = (struct args){a.v, a.n, key, key_v, a.nkeys + 1};
    c->at = n->at;
    return eval_call(c, &f, &a, &text) && repr_write_str(c, &text);
}

static enum flow exec_with(struct jinja_context *c, const struct node *n)
{
    struct scope *was = c->scope, *s = scope_open(c, was);
    enum flow f = FLOW_NEXT;
    for (uint32_t i = 0; i + 1 < n->n && f == FLOW_NEXT; i += 2) {
        struct value v;
        f = flow_of(eval(c, n->sub[i + 1], &v));
        c->scope = s;
        if (f == FLOW_NEXT)
            f = flow_of(eval_assign(c, n->sub[i], &v));
        c->scope = was;
    }
    c->scope = s;
    if (f == FLOW_NEXT)
        f = exec_body(c, n->sub[n->n - 1]);
    c->scope = was;
    scope_close(c, s);
    return f;
}

static bool exec_generation(struct jinja_context *c, const struct node *n)
{
    uint32_t was = c->generated;
    c->generated = TAG_GENERATED;
    enum flow f = exec_scoped(c, n->sub[0]);
    c->generated = was;
    return f != FLOW_FAIL;
}

static enum flow exec_statement(struct jinja_context *c, const struct node *n)
{
    struct value v;
    switch ((enum node_kind)n->kind) {
    case N_TEXT:
        return flow_of(text_write(c, n->value.text, n->value.n, c->tag));
    case N_PRINT:
        return flow_of(exec_print(c, n));
    case N_FOR:
        return exec_for(c, n);
    case N_IF:
        return exec_if(c, n);
    case N_SET:
        return flow_of(exec_set(c, n));
    case N_SET_BLOCK:
        return flow_of(exec_set_block(c, n));
    case N_MACRO:
        v = make_macro_value(c, n);
        scope_set(c, c->scope, n->name, &v);
        return FLOW_NEXT;
    case N_CALL_BLOCK:
        return flow_of(exec_call_block(c, n));
    case N_FILTER_BLOCK:
        return flow_of(exec_filter_block(c, n));
    case N_WITH:
        return exec_with(c, n);
    case N_GENERATION:
        return flow_of(exec_generation(c, n));
    case N_BREAK:
        return FLOW_BREAK;
    default:
        return FLOW_CONTINUE;
    }
}

static enum flow exec_body(struct jinja_context *c, const struct node *n)
{
    enum flow f = flow_of(jinja_enter(c));
    for (uint32_t i = 0; i < n->n && f == FLOW_NEXT; i++)
        f = jinja_step(c, 1) ? exec_statement(c, n->sub[i]) : FLOW_FAIL;
    c->depth--;
    return f;
}

/* ---- macros ---------------------------------------------------------------------------------- */

static uint32_t find_keyword(struct jinja_context *c, const struct args *a, uint32_t name)
{
    const struct jinja_name *n = &c->t->names[name];
    for (size_t k = 0; k < a->nkeys; k++)
        if (a->key[k].n == n->n && !memcmp(a->key[k].text, n->text, n->n))
            return (uint32_t)k;
    return UINT32_MAX;
}

/* A parameter's value: given, by name, its default, or undefined. */
static bool bind_parameter(struct jinja_context *c, const struct node *n, const struct args *a,
                           uint32_t i, uint8_t *used)
{
    uint32_t k = find_keyword(c, a, n->key[i]), first = n->nkeys - (n->n - 1);
    const struct jinja_name *name = &c->t->names[n->key[i]];
    struct value v = {.kind = V_UNDEFINED, .text = name->text, .n = name->n};
    if (i < a->n) {
        v = a->v[i];
    } else if (k != UINT32_MAX) {
        v = a->key_v[k];
        used[k] = 1;
    } else if (i >= first && !eval(c, n->sub[1 + i - first], &v)) {
        return false;
    }
    scope_set(c, c->scope, n->key[i], &v);
    return true;
}

static void set_named(struct jinja_context *c, const char *name, const struct value *v)
{
    for (uint32_t i = 0; i < c->t->nnames; i++)
        if (c->t->names[i].n == strlen(name) && !memcmp(c->t->names[i].text, name, strlen(name)))
            scope_set(c, c->scope, i, v);
}

/* varargs, kwargs and caller, where the body names them. */
static bool bind_rest(struct jinja_context *c, const struct node *n, const struct args *a,
                      uint8_t *used)
{
    size_t more = a->n > n->nkeys ? a->n - n->nkeys : 0;
    struct value rest = value_tuple(c, more), named = value_dict(c, V_DICT, a->nkeys);
    static const char hint[] = "there is no caller";
    struct value caller = value_undefined(hint, sizeof(hint) - 1);
    const struct value *unknown = NULL;
    for (size_t i = 0; i < more; i++)
        rest.list->item[i] = a->v[n->nkeys + i];
    for (size_t k = 0; k < a->nkeys; k++) {
        bool calls = n->op & MACRO_CALLER && value_is(&a->key[k], "caller");
        if (!used[k] && calls)
            caller = a->key_v[k];
        else if (!used[k] && !dict_put(c, named.dict, &a->key[k], &a->key_v[k]))
            return false;
        unknown = used[k] || calls ? unknown : &a->key[k];
    }
    if (more && !(n->op & MACRO_VARARGS))
        return jinja_fail(c, "the macro takes at most %u arguments, not %zu", n->nkeys, a->n);
    if (unknown && !(n->op & MACRO_KWARGS))
        return jinja_fail(c, "the macro has no parameter '%.*s'",
                          (int)(unknown->n < 64 ? unknown->n : 64), unknown->text);
    if (n->op & MACRO_VARARGS)
        set_named(c, "varargs", &rest);
    if (n->op & MACRO_KWARGS)
        set_named(c, "kwargs", &named);
    if (n->op & MACRO_CALLER)
        set_named(c, "caller", &caller);
    return true;
}

static bool run_macro(struct jinja_context *c, const struct node *n, const struct args *a,
                      struct value *ret)
{
    uint8_t *used = jinja_take(c, a->nkeys, 1);
    struct text_mark m = text_begin(c);
    for (uint32_t i = 0; i < n->nkeys; i++)
        if (!bind_parameter(c, n, a, i, used))
            return false;
    return bind_rest(c, n, a, used) && exec_body(c, n->sub[0]) != FLOW_FAIL && text_end(c, m, ret);
}

bool exec_macro(struct jinja_context *c, const struct macro *m, const struct args *a,
                struct value *ret)
{
    struct scope *was = c->scope, *s = scope_open(c, m->scope);
    c->scope = s;
    bool ok = run_macro(c, m->node, a, ret);
    c->scope = was;
    scope_close(c, s);
    return ok;
}

/* ---- a rendering ----------------------------------------------------------------------------- */

static void prepare(struct jinja_context *c, const struct jinja *t, struct err *e)
{
    c->t = t;
    c->err = e;
    c->failed = false;
    pool_reset(&c->values);
    pool_reset(&c->runs);
    c->free_scopes = NULL;
    c->nruns = c->nsets = c->nresults = 0;
    c->tag = TAG_TEMPLATE;
    c->generated = 0;
    c->steps = c->depth = c->at = 0;
    buf_reset(&c->out);
    if (c->globals_cap < t->nnames) {
        c->globals_cap = t->nnames;
        c->global = mem_grow(c->global, c->globals_cap, sizeof(*c->global));
        c->bound = mem_grow(c->bound, c->globals_cap, sizeof(*c->bound));
    }
    if (t->nnames)
        memset(c->bound, 0, t->nnames);
    c->scope = scope_open(c, NULL);
}

static void give_runs(struct jinja_context *c)
{
    for (size_t i = 0; i < c->nruns; i++) {
        size_t end = i + 1 < c->nruns ? c->run[i + 1].begin : c->out.len;
        uint32_t tag = c->run[i].tag;
        ARRAY_GROW(c->result, c->nresults, c->results_cap);
        c->result[c->nresults++] = (struct jinja_run){.n = end - c->run[i].begin,
                                                      .message = (int32_t)(tag >> TAG_SHIFT) - 1,
                                                      .is_data = !(tag & TAG_TEMPLATE),
                                                      .is_generated = (tag & TAG_GENERATED) != 0};
    }
}

int jinja_render(const struct jinja *t, struct jinja_context *c, struct jinja_output *ret,
                 struct err *e)
{
    prepare(c, t, e);
    if (exec_body(c, t->root) == FLOW_FAIL)
        return ERR_DATA;
    give_runs(c);
    *ret = (struct jinja_output){buf_str(&c->out), c->out.len, c->result, c->nresults};
    return 0;
}
