/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_PARSE_H
#define TOK_JINJA_PARSE_H

/*
 * Tokens into nodes, by jinja2's grammar. A function that returns NULL or false has set the error.
 * parse.c has the statements, parse_expr.c the expressions.
 */

#include "tok/jinja/lexer.h"
#include "tok/jinja/node.h"

struct parser {
    struct jinja *t;
    struct tokens tokens;
    const struct token *now;
    struct err *err;
    const struct node **stack; /* children of nodes that are being read */
    size_t nstack, stack_cap;
    uint32_t *hash; /* of names: their number plus 1 */
    size_t hash_cap;
    unsigned nest, blocks;
    unsigned loops; /* loops round this place, up to the next macro */
    unsigned macro; /* which of MACRO_VARARGS ... the macro round this place uses */
    bool soft;      /* in an if: an unknown filter is refused when it is reached */
    unsigned fors;  /* loops round this place */
};

bool parse_fail(struct parser *p, uint32_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Number of a name, a new one if it has none. */
uint32_t parse_intern(struct parser *p, const char *text, size_t n);

static inline bool parse_is_op(const struct parser *p, int op)
{
    return p->now->kind == T_OPERATOR && p->now->op == op;
}

static inline bool token_is_name(const struct token *t, const char *name)
{
    return t->kind == T_NAME && t->n == __builtin_strlen(name) &&
           !__builtin_memcmp(t->text, name, t->n);
}

static inline bool parse_is_name(const struct parser *p, const char *name)
{
    return token_is_name(p->now, name);
}

bool parse_skip_op(struct parser *p, int op); /* true: it was there */
bool parse_skip_name(struct parser *p, const char *name);
bool parse_expect_op(struct parser *p, int op, const char *what);

/* A node with `n` children from the top of the stack, which are taken off it. */
struct node *parse_node(struct parser *p, enum node_kind kind, uint32_t at, size_t n);
bool parse_push(struct parser *p, const struct node *n); /* false: NULL was handed on */
void parse_push_none(struct parser *p);                  /* an absent child */

const struct node *parse_expression(struct parser *p, bool with_cond);

/* What may end or limit a tuple without parentheses. */
enum {
    TUPLE_NAMES = 1,
    TUPLE_NAMESPACE = 2,
    TUPLE_NO_COND = 4,
    TUPLE_TO_IN = 8,
    TUPLE_EXPLICIT = 16
};
const struct node *parse_tuple(struct parser *p, unsigned flags);

const struct node *parse_postfix(struct parser *p, const struct node *n);
/* Filters one after another; `n` may be NULL: of a block. With `inside`, the first bar is absent.
 */
const struct node *parse_filters(struct parser *p, const struct node *n, bool inside);
const struct node *parse_primary(struct parser *p, bool with_namespace);

/* A target of an assignment. */
const struct node *parse_target(struct parser *p, unsigned flags);

/* Fills t->root and names. */
int jinja_build(struct jinja *t, struct err *e);

#endif
