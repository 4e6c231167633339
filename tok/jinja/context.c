/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/bytes.h"
#include "tok/jinja/builtins.h"
#include "tok/jinja/lexer.h"
#include "tok/jinja/repr.h"

/* ---- memory ---------------------------------------------------------------------------------- */

struct pool_block {
    struct pool_block *next;
    size_t size;
    _Alignas(16) char data[];
};

enum { POOL_BLOCK = 64 << 10, POOL_KEPT = 8 << 20 };

static void pool_add(struct pool *p, size_t size)
{
    struct pool_block *b = mem_grow(NULL, 1, sizeof(*b) + size);
    *b = (struct pool_block){.next = p->head, .size = size};
    p->head = b;
    p->used = 0;
}

void *pool_take(struct pool *p, size_t n)
{
    size_t from = p->head ? align_up(p->used, 8) : 0;
    if (!p->head || p->head->size < from || p->head->size - from < n) {
        size_t twice = p->head ? 2 * p->head->size : POOL_BLOCK;
        twice = twice > POOL_KEPT ? POOL_KEPT : twice;
        pool_add(p, n > twice ? n : twice);
        from = 0;
    }
    p->used = from + n;
    p->total += n;
    return p->head->data + from;
}

bool pool_extend(struct pool *p, const char *end, size_t n)
{
    if (!p->head || end != p->head->data + p->used || p->head->size - p->used < n)
        return false;
    p->used += n;
    p->total += n;
    return true;
}

/* Blocks become one that has space for all of what they had, within limits. */
void pool_reset(struct pool *p)
{
    size_t size = 0;
    bool many = p->head && (p->head->next || p->head->size > POOL_KEPT);
    while (many && p->head) {
        struct pool_block *next = p->head->next;
        size += p->head->size;
        free(p->head);
        p->head = next;
    }
    if (many)
        pool_add(p, size > POOL_KEPT ? POOL_KEPT : size);
    p->used = p->total = 0;
}

void pool_finish(struct pool *p)
{
    while (p->head) {
        struct pool_block *next = p->head->next;
        free(p->head);
        p->head = next;
    }
}

bool jinja_need(struct jinja_context *c, size_t n)
{
    if (n <= JINJA_MAX_MEMORY && c->values.total + c->runs.total + n <= JINJA_MAX_MEMORY)
        return true;
    return jinja_fail(c, "the template needs more than %d MiB of memory", JINJA_MAX_MEMORY >> 20);
}

void *jinja_take(struct jinja_context *c, size_t n, size_t size)
{
    void *p = pool_take(&c->values, n * size);
    memset(p, 0, n * size);
    return p;
}

/* ---- errors and limits ----------------------------------------------------------------------- */

bool jinja_fail(struct jinja_context *c, const char *fmt, ...)
{
    char what[900];
    va_list ap;
    if (c->failed)
        return false;
    c->failed = true;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    size_t line, column;
    jinja_place(c->t, c->at, &line, &column);
    err_set(c->err, ERR_DATA, "%s: line %zu, column %zu: %s", c->t->name, line, column, what);
    return false;
}

bool jinja_fail_undefined(struct jinja_context *c, const struct value *v)
{
    int n = (int)(v->n < 300 ? v->n : 300);
    const char *of = v->of ? value_type(&(struct value){.kind = (uint8_t)(v->of - 1)}) : "";
    if (v->flags & VALUE_HINT)
        return jinja_fail(c, "%.*s", n, v->text);
    if (v->flags & VALUE_INDEX)
        return jinja_fail(c, "a %s has no element %lld", of, (long long)v->n);
    if (v->of)
        return jinja_fail(c, "a %s has no attribute '%.*s'", of, n, v->text);
    return jinja_fail(c, "'%.*s' is undefined", n, v->text);
}

bool jinja_step(struct jinja_context *c, size_t n)
{
    c->steps += n;
    if (c->steps > JINJA_MAX_STEPS)
        return jinja_fail(c, "the template takes more than %d steps", JINJA_MAX_STEPS);
    return jinja_need(c, 0);
}

bool jinja_enter(struct jinja_context *c)
{
    c->depth++;
    return c->depth <= JINJA_MAX_DEPTH ||
           jinja_fail(c, "more than %d blocks, calls and values are inside one another",
                      JINJA_MAX_DEPTH);
}

/* ---- variables ------------------------------------------------------------------------------- */

struct scope *scope_open(struct jinja_context *c, struct scope *up)
{
    struct scope *s = c->free_scopes;
    if (s) {
        c->free_scopes = s->up;
    } else {
        s = pool_take(&c->values, sizeof(*s));
        s->slot = s->first;
        s->cap = SCOPE_SLOTS;
    }
    s->up = up;
    s->kept = false;
    s->n = 0;
    return s;
}

void scope_close(struct jinja_context *c, struct scope *s)
{
    if (s->kept)
        return;
    s->up = c->free_scopes;
    c->free_scopes = s;
}

void scope_set(struct jinja_context *c, struct scope *s, uint32_t name, const struct value *v)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->slot[i].name == name) {
            s->slot[i].value = *v;
            return;
        }
    if (s->n == s->cap) {
        struct slot *more = pool_take(&c->values, 2 * s->cap * sizeof(*more));
        memcpy(more, s->slot, s->n * sizeof(*more));
        s->slot = more;
        s->cap *= 2;
    }
    s->slot[s->n++] = (struct slot){.name = name, .value = *v};
}

static struct value open_given(struct jinja_context *c, const struct given *g)
{
    if (!g->json)
        return g->value;
    struct value v = value_of_json(c, g->json, 0);
    if (v.kind == V_LIST)
        v.list->messages = g->messages;
    return v;
}

static struct value find_global(struct jinja_context *c, uint32_t name)
{
    const struct jinja_name *n = &c->t->names[name];
    for (size_t i = 0; i < c->ngiven; i++)
        if (!strncmp(c->given[i].name, n->text, n->n) && !c->given[i].name[n->n])
            return open_given(c, &c->given[i]);
    const struct builtin *f = builtin_find(jinja_functions, n->text, n->n);
    if (f)
        return (struct value){.kind = V_FUNCTION, .function = f};
    return (struct value){.kind = V_UNDEFINED, .text = n->text, .n = n->n};
}

struct value scope_get(struct jinja_context *c, uint32_t name)
{
    for (const struct scope *s = c->scope; s; s = s->up)
        for (uint32_t i = 0; i < s->n; i++)
            if (s->slot[i].name == name)
                return s->slot[i].value;
    if (!c->bound[name]) {
        c->global[name] = find_global(c, name);
        c->bound[name] = 1;
    }
    struct value v = c->global[name];
    if (v.flags & VALUE_LITERAL) {
        v.flags = 0;
        v.tag = c->tag;
    }
    return v;
}

/* ---- the public functions -------------------------------------------------------------------- */

struct jinja_context *jinja_context_create(void)
{
    return mem_new(1, sizeof(struct jinja_context));
}

void jinja_context_destroy(struct jinja_context *c)
{
    if (!c)
        return;
    pool_finish(&c->values);
    pool_finish(&c->runs);
    buf_finish(&c->out);
    free(c->given);
    free(c->global);
    free(c->bound);
    free(c->run);
    free(c->set);
    free(c->result);
    free(c);
}

void jinja_forget(struct jinja_context *c)
{
    c->ngiven = 0;
}

static void set_given(struct jinja_context *c, struct given g)
{
    for (size_t i = 0; i < c->ngiven; i++)
        if (!strcmp(c->given[i].name, g.name)) {
            c->given[i] = g;
            return;
        }
    ARRAY_GROW(c->given, c->ngiven, c->given_cap);
    c->given[c->ngiven++] = g;
}

void jinja_set_bool(struct jinja_context *c, const char *name, bool value)
{
    set_given(c, (struct given){.name = name, .value = value_bool(value)});
}

void jinja_set_json(struct jinja_context *c, const char *name, const struct json *value)
{
    set_given(c, (struct given){.name = name, .json = value});
}

void jinja_set_messages(struct jinja_context *c, const char *name, const struct json *value)
{
    set_given(c, (struct given){.name = name, .json = value, .messages = true});
}

void jinja_set_literal(struct jinja_context *c, const char *name, const char *text, size_t n)
{
    struct value v = value_text(text, n, TAG_TEMPLATE);
    v.flags = VALUE_LITERAL;
    set_given(c, (struct given){.name = name, .value = v});
}

void jinja_set_date(struct jinja_context *c, struct jinja_date date)
{
    c->date = date;
    c->has_date = true;
}
