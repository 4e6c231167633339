/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_VALUE_H
#define TOK_JINJA_VALUE_H

/*
 * Values of expressions. They are copied freely; what they point to lives in the context's memory
 * until the rendering ends, in the template, or in the caller's JSON.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/format/json.h"

enum value_kind {
    V_UNDEFINED,
    V_NONE,
    V_BOOL,
    V_INT,
    V_REAL,
    V_STRING,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_RANGE,
    V_STREAM, /* a generator: its items can be taken once */
    V_VIEW,   /* what keys(), values() and items() of a dict give */
    V_NAMESPACE,
    V_MACRO,
    V_METHOD,
    V_FUNCTION,
    V_LOOP
};

/*
 * An origin: 0 is data of no message. TAG_TEMPLATE marks the template's own bytes, TAG_GENERATED
 * what a {% generation %} block wrote; from TAG_MESSAGE on it is the number of a message plus 1.
 */
enum { TAG_TEMPLATE = 1, TAG_GENERATED = 2, TAG_SHIFT = 2 };

enum {
    VALUE_SAFE = 1,     /* a string that is Markup: what is added to it is escaped */
    VALUE_RUNS = 2,     /* a string of several origins: `tag` is the number of its list of runs */
    VALUE_DATA = 4,     /* came with a variable, so that its text has `tag` */
    VALUE_LITERAL = 8,  /* a variable that counts as the template's text */
    VALUE_MISSING = 16, /* an argument that was not given */
    VALUE_HINT = 32,    /* of V_UNDEFINED: `text` is the whole message */
    VALUE_INDEX = 64    /* of V_UNDEFINED: `n` is an index that a sequence lacks */
};

struct value {
    uint8_t kind;
    uint8_t flags;
    uint16_t of;  /* of V_UNDEFINED: 1 + the kind that lacks the attribute; 0: a variable */
    uint32_t tag; /* of strings, and of values with VALUE_DATA */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; /* UTF-8; of V_UNDEFINED: the name */
        struct list *list;
        struct dict *dict;
        struct range *range;
        struct stream *stream;
        struct view *view;
        struct macro *macro;
        struct method *method;
        const struct builtin *function;
        struct loop *loop;
    };
    size_t n; /* bytes of text */
};

struct list {
    const struct json *source; /* not yet made values; NULL: made */
    bool messages;             /* the items are messages */
    size_t n;
    struct value *item;
};

struct pair {
    struct value key, value;
};

/* A dict, or the attributes of a namespace: in the order of insertion. */
struct dict {
    const struct json *source;
    uint32_t message; /* number of the message that it is, plus 1; 0: none */
    size_t n, cap;
    struct pair *pair;
};

struct range {
    int64_t start, stop, step;
    size_t n;
};

struct stream {
    const struct value *item;
    size_t n, at;
};

enum view_kind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

struct view {
    enum view_kind kind;
    struct dict *dict;
};

struct method {
    struct value self;
    const struct builtin *def;
};

/* Arguments as written; a builtin that is not raw gets them in the order of its parameters, absent
 * ones with VALUE_MISSING. */
struct args {
    const struct value *v;
    size_t n;
    const struct value *key; /* strings: names of the keyword arguments */
    const struct value *key_v;
    size_t nkeys;
};

struct jinja_context;

enum { BUILTIN_PARAMS = 6 };

/* A filter, method or function. A test gives a V_BOOL. */
struct builtin {
    const char *name;
    bool (*call)(struct jinja_context *c, const struct value *self, const struct args *a,
                 struct value *ret);
    uint8_t needed; /* arguments that must be given */
    bool raw;       /* gets its arguments as written */
    const char *param[BUILTIN_PARAMS];
};

/* A table ends with a row without a name. NULL: not found. */
const struct builtin *builtin_find(const struct builtin *table, const char *name, size_t n);

static inline struct value value_none(void)
{
    return (struct value){.kind = V_NONE};
}

static inline struct value value_bool(bool b)
{
    return (struct value){.kind = V_BOOL, .boolean = b};
}

static inline struct value value_int(int64_t i)
{
    return (struct value){.kind = V_INT, .integer = i};
}

static inline struct value value_real(double d)
{
    return (struct value){.kind = V_REAL, .real = d};
}

static inline struct value value_text(const char *text, size_t n, uint32_t tag)
{
    return (struct value){.kind = V_STRING, .tag = tag, .text = text, .n = n};
}

static inline struct value value_undefined(const char *hint, size_t n)
{
    return (struct value){.kind = V_UNDEFINED, .flags = VALUE_HINT, .text = hint, .n = n};
}

static inline bool value_is_missing(const struct value *v)
{
    return v->flags & VALUE_MISSING && v->kind == V_UNDEFINED;
}

/* bool and int: what Python's int is. */
static inline bool value_is_int(const struct value *v)
{
    return v->kind == V_INT || v->kind == V_BOOL;
}

static inline bool value_is_number(const struct value *v)
{
    return value_is_int(v) || v->kind == V_REAL;
}

static inline int64_t value_integer(const struct value *v)
{
    return v->kind == V_BOOL ? v->boolean : v->integer;
}

static inline double value_number(const struct value *v)
{
    return v->kind == V_REAL ? v->real : (double)value_integer(v);
}

static inline bool value_is(const struct value *v, const char *text)
{
    return v->kind == V_STRING && v->n == __builtin_strlen(text) &&
           !__builtin_memcmp(v->text, text, v->n);
}

/* Python's name of the type: "str", "dict", ... */
const char *value_type(const struct value *v);
bool value_truth(const struct value *v);

/* A JSON value with its origin; lists and objects are made values when they are first used. */
struct value value_of_json(struct jinja_context *c, const struct json *j, uint32_t tag);

struct value value_list(struct jinja_context *c, size_t n); /* items are V_UNDEFINED */
struct value value_tuple(struct jinja_context *c, size_t n);
struct value value_dict(struct jinja_context *c, enum value_kind kind, size_t cap);
struct value value_stream(struct jinja_context *c, const struct value *item, size_t n);

/* The items of a V_LIST or V_TUPLE, the pairs of a V_DICT or V_NAMESPACE. */
struct list *list_open(struct jinja_context *c, const struct value *v);
struct dict *dict_open(struct jinja_context *c, const struct value *v);

/* NULL: absent. False from dict_put: the key is a list or dict, which is told. */
struct value *dict_find(struct dict *d, const struct value *key);
struct value *dict_find_text(struct dict *d, const char *text, size_t n);
bool dict_put(struct jinja_context *c, struct dict *d, const struct value *key,
              const struct value *value);

/* How many items len() finds; false: it has no length. */
bool value_length(struct jinja_context *c, const struct value *v, size_t *ret);

/* All items of what can be iterated, those of a stream for the last time; false: it cannot be,
 * which is told. They are not to be changed. */
bool value_items(struct jinja_context *c, const struct value *v, const struct value **ret,
                 size_t *ret_n);
bool value_is_iterable(const struct value *v);

#endif
