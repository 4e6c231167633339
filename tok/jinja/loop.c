/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/loop.h"

#include "tok/jinja/compare.h"
#include "tok/jinja/eval.h"
#include "tok/jinja/text.h"

/* The next item that passes the loop's test, whether or not it was looked for ahead. */
static bool find_next(struct jinja_context *c, struct loop *l, struct value *ret, bool *ret_more)
{
    const struct node *test = l->node->sub[2];
    *ret_more = false;
    while (l->at < l->n) {
        *ret = l->item[l->at++];
        *ret_more = true;
        if (!test)
            return jinja_step(c, 1);
        struct scope *was = c->scope, *s = scope_open(c, l->scope);
        struct value holds;
        c->scope = s;
        bool ok = jinja_step(c, 1) && eval_assign(c, l->node->sub[0], ret) && eval(c, test, &holds);
        c->scope = was;
        scope_close(c, s);
        if (!ok)
            return false;
        if (value_truth(&holds))
            return true;
        *ret_more = false;
    }
    return true;
}

static void add_ahead(struct jinja_context *c, struct loop *l, const struct value *v)
{
    if (l->nahead == l->cap_ahead) {
        size_t cap = l->cap_ahead ? 2 * l->cap_ahead : 4;
        struct value *more = pool_take(&c->values, cap * sizeof(*more));
        if (l->nahead)
            memcpy(more, l->ahead, l->nahead * sizeof(*more));
        l->ahead = more;
        l->cap_ahead = cap;
    }
    l->ahead[l->nahead++] = *v;
}

bool loop_next(struct jinja_context *c, struct loop *l, struct value *ret, bool *ret_more)
{
    bool ok = true;
    if (l->taken < l->nahead) {
        *ret = l->ahead[l->taken++];
        *ret_more = true;
        if (l->taken == l->nahead)
            l->taken = l->nahead = 0;
    } else {
        ok = find_next(c, l, ret, ret_more);
    }
    if (!ok || !*ret_more)
        return ok;
    l->index += l->began;
    l->began = true;
    l->before = l->now;
    l->now = *ret;
    return true;
}

bool loop_peek(struct jinja_context *c, struct loop *l, struct value *ret, bool *ret_more)
{
    *ret_more = l->taken < l->nahead;
    if (!*ret_more) {
        if (!find_next(c, l, ret, ret_more))
            return false;
        if (*ret_more)
            add_ahead(c, l, ret);
        return true;
    }
    *ret = l->ahead[l->taken];
    return true;
}

size_t loop_length(struct jinja_context *c, struct loop *l)
{
    struct value v;
    bool more = true;
    if (!l->node->sub[2])
        return l->n;
    while (find_next(c, l, &v, &more) && more)
        add_ahead(c, l, &v);
    return l->index + l->began + l->nahead - l->taken;
}

/* ---- the variable `loop` --------------------------------------------------------------------- */

/* The item before or after; V_UNDEFINED at the ends. */
static bool neighbour(struct jinja_context *c, struct loop *l, bool after, struct value *ret)
{
    static const char first[] = "there is no previous item", last[] = "there is no next item";
    bool more = l->index > 0;
    if (after && !loop_peek(c, l, ret, &more))
        return false;
    if (!more)
        *ret = value_undefined(after ? last : first, after ? sizeof(last) - 1 : sizeof(first) - 1);
    else if (!after)
        *ret = l->before;
    return true;
}

bool loop_attribute(struct jinja_context *c, struct loop *l, const struct value *name,
                    struct value *ret)
{
    struct value next;
    bool more;
    int64_t index = (int64_t)l->index;
    if (value_is(name, "index0"))
        *ret = value_int(index);
    else if (value_is(name, "index"))
        *ret = value_int(index + 1);
    else if (value_is(name, "first"))
        *ret = value_bool(index == 0);
    else if (value_is(name, "last"))
        return loop_peek(c, l, &next, &more) && (*ret = value_bool(!more), true);
    else if (value_is(name, "previtem"))
        return neighbour(c, l, false, ret);
    else if (value_is(name, "nextitem"))
        return neighbour(c, l, true, ret);
    else if (value_is(name, "length"))
        *ret = value_int((int64_t)loop_length(c, l));
    else if (value_is(name, "revindex"))
        *ret = value_int((int64_t)loop_length(c, l) - index);
    else if (value_is(name, "revindex0"))
        *ret = value_int((int64_t)loop_length(c, l) - index - 1);
    else if (value_is(name, "depth") || value_is(name, "depth0"))
        *ret = value_int(value_is(name, "depth"));
    return !c->failed;
}

static bool loop_cycle(struct jinja_context *c, const struct value *self, const struct args *a,
                       struct value *ret)
{
    if (!a->n)
        return jinja_fail(c, "loop.cycle() needs a value");
    *ret = a->v[self->loop->index % a->n];
    return true;
}

static bool loop_changed(struct jinja_context *c, const struct value *self, const struct args *a,
                         struct value *ret)
{
    struct value now = value_tuple(c, a->n);
    bool same = false;
    if (a->n)
        memcpy(now.list->item, a->v, a->n * sizeof(*a->v));
    if (self->loop->changed.kind == V_TUPLE && !compare_equal(c, &self->loop->changed, &now, &same))
        return false;
    self->loop->changed = now;
    *ret = value_bool(!same);
    return true;
}

const struct builtin jinja_loop_methods[] = {{.name = "cycle", .call = loop_cycle, .raw = true},
                                             {.name = "changed", .call = loop_changed, .raw = true},
                                             {.name = NULL}};
