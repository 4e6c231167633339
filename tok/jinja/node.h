/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_NODE_H
#define TOK_JINJA_NODE_H

/* A parsed template: nodes that never change. */

#include "tok/jinja/value.h"

enum node_kind {
    N_CONST,       /* value */
    N_NAME,        /* name */
    N_LIST,        /* sub: items */
    N_TUPLE,       /* the same */
    N_DICT,        /* sub: a key, its value, ... */
    N_ATTR,        /* sub[0].value */
    N_ITEM,        /* sub[0][sub[1]] */
    N_SLICE,       /* sub[0][sub[1]:sub[2]:sub[3]], absent ones NULL */
    N_CALL,        /* sub[0](sub[1], ...), the last nkeys of which have the names key */
    N_SPREAD,      /* an argument *sub[0] */
    N_SPREAD_KEYS, /* an argument **sub[0] */
    N_FILTER,      /* sub[0] | name(sub[1], ...); sub[0] is NULL in {% filter %} and {% set %} */
    N_TEST,        /* sub[0] is name(sub[1], ...) */
    N_NOT,
    N_NEGATE,
    N_PLUS,
    N_BINARY, /* sub[0] op sub[1], op of enum binary */
    N_AND,
    N_OR,
    N_CONCAT,        /* sub[0] ~ sub[1] ~ ... */
    N_COMPARE,       /* sub[0] key[0] sub[1] key[1] ..., key of enum comparison */
    N_COND,          /* sub[1] if sub[0] else sub[2], which may be NULL */
    N_NAMESPACE_REF, /* name.value as a target */

    N_BODY,         /* sub: statements */
    N_TEXT,         /* value */
    N_PRINT,        /* sub: expressions */
    N_FOR,          /* for sub[0] in sub[1] if sub[2]: sub[3] else sub[4]; 2 and 4 may be NULL */
    N_IF,           /* sub: a condition, its body, ...; of an odd number, the last is the else */
    N_SET,          /* sub[0] = sub[1] */
    N_SET_BLOCK,    /* sub[0] = the text of sub[2], through the filters sub[1] or NULL */
    N_MACRO,        /* key: parameters; sub[0]: body, then the defaults of the last ones */
    N_CALL_BLOCK,   /* sub[0]: a call, sub[1]: the macro that is its caller() */
    N_FILTER_BLOCK, /* sub[0]: filters of sub[1] */
    N_WITH,         /* sub: a target, its value, ..., the body */
    N_GENERATION,   /* sub[0] */
    N_BREAK,
    N_CONTINUE
};

enum binary { BIN_ADD, BIN_SUB, BIN_MUL, BIN_DIV, BIN_FLOOR, BIN_MOD, BIN_POW };
enum comparison { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE, CMP_IN, CMP_NOT_IN };

/* Of N_MACRO: which of these names its body uses. */
enum { MACRO_VARARGS = 1, MACRO_KWARGS = 2, MACRO_CALLER = 4 };

struct node {
    uint8_t kind, op;
    uint16_t height; /* of the tree below */
    uint32_t at;     /* byte of the template */
    uint32_t name;
    uint32_t n, nkeys;
    const struct node **sub;
    uint32_t *key;
    const struct builtin *def; /* of filters and tests; NULL: unknown */
    struct value value;
};

#endif
