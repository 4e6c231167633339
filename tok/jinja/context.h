/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_CONTEXT_H
#define TOK_JINJA_CONTEXT_H

/*
 * What a rendering works with: memory, variables, output, limits, and the first error. A function
 * that returns false has called jinja_fail.
 */

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "tok/jinja/jinja.h"
#include "tok/jinja/value.h"

/* Memory that is dropped as a whole and then used again, not zeroed. */
struct pool {
    struct pool_block *head;
    size_t used;  /* bytes of its first block */
    size_t total; /* bytes taken since it was reset */
};

void *pool_take(struct pool *p, size_t n); /* aligned to 8 bytes */
/* Extends what ends at `end` by n bytes in place, if it was taken last and there is space. */
bool pool_extend(struct pool *p, const char *end, size_t n);
void pool_reset(struct pool *p);
void pool_finish(struct pool *p);

/* From byte `begin` on, up to the next run, a text has this origin. */
struct text_run {
    size_t begin;
    uint32_t tag;
};

struct text_runs {
    const struct text_run *run;
    size_t n;
};

struct slot {
    uint32_t name;
    struct value value;
};

enum { SCOPE_SLOTS = 6 };

struct scope {
    struct scope *up; /* where names are looked for next; in a free scope, the next free one */
    bool kept;        /* a macro was defined here and may outlive it */
    uint32_t n, cap;
    struct slot *slot;
    struct slot first[SCOPE_SLOTS];
};

/* A variable of the caller's: a value, or JSON, which becomes one when it is used. */
struct given {
    const char *name;
    const struct json *json;
    bool messages;
    struct value value;
};

struct macro {
    const struct node *node;
    struct scope *scope;
};

struct jinja_context {
    const struct jinja *t;
    struct pool values, runs;
    struct scope *scope, *free_scopes;
    struct given *given;
    size_t ngiven, given_cap;
    struct value *global; /* by the name's number: a variable of the caller's or a function */
    uint8_t *bound;       /* whether it is there yet */
    size_t globals_cap;
    struct buf out;
    struct text_run *run;
    size_t nruns, runs_cap;
    struct text_runs *set; /* runs of strings, by VALUE_RUNS' tag */
    size_t nsets, sets_cap;
    struct jinja_run *result;
    size_t nresults, results_cap;
    uint32_t tag;       /* of the template's text, where it is now */
    uint32_t generated; /* TAG_GENERATED inside of such a block */
    uint64_t steps;
    unsigned depth;
    uint32_t at; /* the byte of the template that is at work */
    struct jinja_date date;
    bool has_date, failed;
    struct err *err;
};

/* A parsed template. */
struct jinja {
    char *name;
    char *source; /* with \n as the only end of a line */
    size_t n;
    struct arena arena;
    const struct node *root;
    struct jinja_name *names;   /* by number */
    uint32_t nnames, loop_name; /* the number of `loop`, UINT32_MAX: it is not named */
    bool has_generation;
};

struct jinja_name {
    const char *text;
    size_t n;
};

/* Line and column, from 1, of a byte of the template. */
void jinja_place(const struct jinja *t, uint32_t at, size_t *ret_line, size_t *ret_column);

/* Sets the error, the first one only, with the place; returns false. */
bool jinja_fail(struct jinja_context *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails because the value is undefined. */
bool jinja_fail_undefined(struct jinja_context *c, const struct value *v);

/* Counts steps; false: too many, or too much memory is in use. */
bool jinja_step(struct jinja_context *c, size_t n);

/* One level down, given back by depth--; false: too deep. */
bool jinja_enter(struct jinja_context *c);

/* May n more bytes be taken? */
bool jinja_need(struct jinja_context *c, size_t n);
void *jinja_take(struct jinja_context *c, size_t n, size_t size);

struct scope *scope_open(struct jinja_context *c, struct scope *up);
void scope_close(struct jinja_context *c, struct scope *s);
void scope_set(struct jinja_context *c, struct scope *s, uint32_t name, const struct value *v);
/* V_UNDEFINED if there is no such variable. */
struct value scope_get(struct jinja_context *c, uint32_t name);

#endif
