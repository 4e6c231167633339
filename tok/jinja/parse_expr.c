/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "tok/jinja/builtins.h"

bool parse_push(struct parser *p, const struct node *n)
{
    if (!n)
        return false;
    parse_push_none(p);
    p->stack[p->nstack - 1] = n;
    return true;
}

void parse_push_none(struct parser *p)
{
    ARRAY_GROW(p->stack, p->nstack, p->stack_cap);
    p->stack[p->nstack++] = NULL;
}

struct node *parse_node(struct parser *p, enum node_kind kind, uint32_t at, size_t n)
{
    struct node *node = arena_take(&p->t->arena, 1, sizeof(*node));
    node->kind = (uint8_t)kind;
    node->at = at;
    node->n = (uint32_t)n;
    node->sub = arena_take(&p->t->arena, n, sizeof(*node->sub));
    p->nstack -= n;
    for (size_t i = 0; i < n; i++) {
        node->sub[i] = p->stack[p->nstack + i];
        if (node->sub[i] && node->sub[i]->height >= node->height)
            node->height = (uint16_t)(node->sub[i]->height + 1);
    }
    if (node->height <= JINJA_MAX_HEIGHT)
        return node;
    parse_fail(p, at, "more than %d operators and blocks are inside one another", JINJA_MAX_HEIGHT);
    return NULL;
}

static const struct node *make_unary(struct parser *p, enum node_kind kind, uint32_t at,
                                     const struct node *of)
{
    return parse_push(p, of) ? parse_node(p, kind, at, 1) : NULL;
}

static const struct node *make_binary(struct parser *p, enum node_kind kind, int op,
                                      const struct node *left, const struct node *right)
{
    if (!parse_push(p, left) || !parse_push(p, right))
        return NULL;
    struct node *n = parse_node(p, kind, left->at, 2);
    if (n)
        n->op = (uint8_t)op;
    return n;
}

static bool nest_in(struct parser *p)
{
    if (p->nest++ < JINJA_MAX_HEIGHT)
        return true;
    return parse_fail(p, p->now->at, "more than %d operators are inside one another",
                      JINJA_MAX_HEIGHT);
}

static const struct node *make_const(struct parser *p, struct value v)
{
    struct node *n = parse_node(p, N_CONST, p->now->at, 0);
    if (n)
        n->value = v;
    return n;
}

/* ---- primaries ------------------------------------------------------------------------------- */

static const struct node *parse_strings(struct parser *p)
{
    struct buf joined = {0};
    const struct token *first = p->now;
    uint32_t at = first->at;
    for (; p->now->kind == T_STRING; p->now++)
        buf_add(&joined, p->now->text, p->now->n);
    const char *text = first->text;
    if (p->now > first + 1)
        text = arena_strndup(&p->t->arena, buf_str(&joined), joined.len);
    struct node *n = parse_node(p, N_CONST, at, 0);
    if (n)
        n->value = value_text(text, joined.len, TAG_TEMPLATE);
    buf_finish(&joined);
    return n;
}

static void note_special(struct parser *p, const struct token *t)
{
    p->macro |= token_is_name(t, "varargs")  ? MACRO_VARARGS
                : token_is_name(t, "kwargs") ? MACRO_KWARGS
                : token_is_name(t, "caller") ? MACRO_CALLER
                                             : 0;
}

static const struct node *parse_name(struct parser *p, bool with_namespace)
{
    const struct token *t = p->now++;
    uint32_t name = 0;
    struct node *n = NULL;
    if (token_is_name(t, "true") || token_is_name(t, "True") || token_is_name(t, "false") ||
        token_is_name(t, "False")) {
        n = parse_node(p, N_CONST, t->at, 0);
        n->value = value_bool((t->text[0] | 32) == 't');
        return n;
    }
    if (token_is_name(t, "none") || token_is_name(t, "None")) {
        n = parse_node(p, N_CONST, t->at, 0);
        n->value = value_none();
        return n;
    }
    name = parse_intern(p, t->text, t->n);
    note_special(p, t);
    if (with_namespace && parse_skip_op(p, '.')) {
        n = parse_node(p, N_NAMESPACE_REF, t->at, 0);
        if (p->now->kind != T_NAME)
            return parse_fail(p, p->now->at, "expected the name of an attribute"), NULL;
        n->value = value_text(p->now->text, p->now->n, TAG_TEMPLATE);
        p->now++;
    } else {
        n = parse_node(p, N_NAME, t->at, 0);
    }
    n->name = name;
    return n;
}

/* Items up to a closing bracket, with an optional comma at the end; a dict's are pairs. */
static const struct node *parse_items(struct parser *p, enum node_kind kind, int close)
{
    uint32_t at = p->now++->at;
    size_t first = p->nstack;
    while (!parse_is_op(p, close)) {
        if (p->nstack > first && !parse_expect_op(p, ',', "',' or the closing bracket"))
            return NULL;
        if (parse_is_op(p, close))
            break;
        if (!parse_push(p, parse_expression(p, true)))
            return NULL;
        if (kind == N_DICT && (!parse_expect_op(p, ':', "':' after a key") ||
                               !parse_push(p, parse_expression(p, true))))
            return NULL;
    }
    p->now++;
    return parse_node(p, kind, at, p->nstack - first);
}

const struct node *parse_primary(struct parser *p, bool with_namespace)
{
    const struct token *t = p->now;
    const struct node *n = NULL;
    char words[64];
    if (t->kind == T_NAME)
        return parse_name(p, with_namespace);
    if (t->kind == T_STRING)
        return parse_strings(p);
    if (t->kind == T_INT || t->kind == T_REAL) {
        n = make_const(p, t->kind == T_INT ? value_int(t->integer) : value_real(t->real));
        p->now++;
        return n;
    }
    if (parse_skip_op(p, '(')) {
        n = parse_tuple(p, TUPLE_EXPLICIT);
        return n && parse_expect_op(p, ')', "')'") ? n : NULL;
    }
    if (parse_is_op(p, '['))
        return parse_items(p, N_LIST, ']');
    if (parse_is_op(p, '{'))
        return parse_items(p, N_DICT, '}');
    parse_fail(p, t->at, "expected an expression, found %s", token_words(t, words));
    return NULL;
}

static bool is_tuple_end(const struct parser *p, unsigned flags)
{
    enum token_kind k = p->now->kind;
    return k == T_PRINT_END || k == T_BLOCK_END || parse_is_op(p, ')') ||
           (flags & TUPLE_TO_IN && parse_is_name(p, "in"));
}

const struct node *parse_tuple(struct parser *p, unsigned flags)
{
    uint32_t at = p->now->at;
    size_t first = p->nstack;
    bool tuple = false;
    for (;;) {
        if (p->nstack > first && !parse_expect_op(p, ',', "','"))
            return NULL;
        if (is_tuple_end(p, flags))
            break;
        const struct node *n = flags & TUPLE_NAMES ? parse_primary(p, flags & TUPLE_NAMESPACE)
                                                   : parse_expression(p, !(flags & TUPLE_NO_COND));
        if (!parse_push(p, n))
            return NULL;
        if (!parse_is_op(p, ','))
            break;
        tuple = true;
    }
    if (!tuple && p->nstack > first)
        return p->stack[--p->nstack];
    if (!tuple && !(flags & TUPLE_EXPLICIT)) {
        char words[64];
        parse_fail(p, p->now->at, "expected an expression, found %s", token_words(p->now, words));
        return NULL;
    }
    return parse_node(p, N_TUPLE, at, p->nstack - first);
}

/* ---- subscripts, calls, filters, tests ------------------------------------------------------- */

static const struct node *parse_dot(struct parser *p, const struct node *of)
{
    const struct token *t = ++p->now;
    if (t->kind != T_NAME && t->kind != T_INT)
        return parse_fail(p, t->at, "expected the name of an attribute or a number"), NULL;
    if (!parse_push(p, of))
        return NULL;
    if (t->kind == T_INT && !parse_push(p, make_const(p, value_int(t->integer))))
        return NULL;
    struct node *n =
        parse_node(p, t->kind == T_INT ? N_ITEM : N_ATTR, t->at, t->kind == T_INT ? 2 : 1);
    if (n && t->kind == T_NAME)
        n->value = value_text(t->text, t->n, TAG_TEMPLATE);
    p->now++;
    return n;
}

/* A part of a slice, absent before ':' or ']'. */
static bool push_bound(struct parser *p)
{
    if (!parse_is_op(p, ':') && !parse_is_op(p, ']'))
        return parse_push(p, parse_expression(p, true));
    parse_push_none(p);
    return true;
}

static const struct node *parse_subscript(struct parser *p, const struct node *of)
{
    uint32_t at = p->now++->at;
    enum node_kind kind = N_ITEM;
    size_t n = 2;
    if (!parse_push(p, of) || !push_bound(p))
        return NULL;
    if (parse_skip_op(p, ':')) {
        kind = N_SLICE;
        n = 4;
        if (!push_bound(p))
            return NULL;
        if (!parse_skip_op(p, ':'))
            parse_push_none(p);
        else if (!push_bound(p))
            return NULL;
    } else if (!p->stack[p->nstack - 1]) {
        return parse_fail(p, p->now->at, "expected an index"), NULL;
    }
    if (!parse_expect_op(p, ']', "']'"))
        return NULL;
    return parse_node(p, kind, at, n);
}

/* One argument; the names of keyword arguments are collected in `keys`. */
static bool parse_argument(struct parser *p, uint32_t **keys, size_t *nkeys)
{
    uint32_t at = p->now->at;
    if (parse_skip_op(p, '*'))
        return parse_push(p, make_unary(p, N_SPREAD, at, parse_expression(p, true)));
    if (parse_skip_op(p, OP_POW))
        return parse_push(p, make_unary(p, N_SPREAD_KEYS, at, parse_expression(p, true)));
    if (p->now->kind == T_NAME && p->now[1].kind == T_OPERATOR && p->now[1].op == '=') {
        *keys = array_more(*keys, *nkeys, sizeof(**keys));
        (*keys)[(*nkeys)++] = parse_intern(p, p->now->text, p->now->n);
        p->now += 2;
        return parse_push(p, parse_expression(p, true));
    }
    if (*nkeys)
        return parse_fail(p, at, "an argument without a name follows one with a name");
    return parse_push(p, parse_expression(p, true));
}

static bool parse_arguments(struct parser *p, uint32_t **keys, size_t *nkeys)
{
    bool first = true, spread = false;
    p->now++;
    while (!parse_is_op(p, ')')) {
        if (!first && !parse_expect_op(p, ',', "',' or ')'"))
            return false;
        if (!first && parse_is_op(p, ')'))
            break;
        bool spreads = parse_is_op(p, '*') || parse_is_op(p, OP_POW);
        if (spread && !spreads && !(p->now->kind == T_NAME && p->now[1].op == '='))
            return parse_fail(p, p->now->at, "an argument follows '*' or '**'");
        if (!parse_argument(p, keys, nkeys))
            return false;
        spread |= spreads;
        first = false;
    }
    p->now++;
    return true;
}

/* The arguments after what is on top of the stack, if a parenthesis is open. */
static struct node *parse_applied(struct parser *p, enum node_kind kind, uint32_t at, size_t first)
{
    uint32_t *keys = NULL;
    size_t nkeys = 0;
    struct node *n = NULL;
    if (!parse_is_op(p, '(') || parse_arguments(p, &keys, &nkeys))
        n = parse_node(p, kind, at, p->nstack - first);
    if (n && nkeys) {
        n->key = arena_take(&p->t->arena, nkeys, sizeof(*keys));
        memcpy(n->key, keys, nkeys * sizeof(*keys));
        n->nkeys = (uint32_t)nkeys;
    }
    free(keys);
    return n;
}

static const struct node *parse_call(struct parser *p, const struct node *of)
{
    size_t first = p->nstack;
    return parse_push(p, of) ? parse_applied(p, N_CALL, p->now->at, first) : NULL;
}

const struct node *parse_postfix(struct parser *p, const struct node *n)
{
    while (n && p->now->kind == T_OPERATOR) {
        if (p->now->op == '.')
            n = parse_dot(p, n);
        else if (p->now->op == '[')
            n = parse_subscript(p, n);
        else if (p->now->op == '(')
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* The row of a filter or test; in an if, one that is unknown is refused when it is reached. */
static bool name_builtin(struct parser *p, struct node *n, const struct token *t, bool test)
{
    n->value = value_text(t->text, t->n, TAG_TEMPLATE);
    n->def = builtin_find(test ? jinja_tests : jinja_filters, t->text, t->n);
    if (n->def || p->soft)
        return true;
    return parse_fail(p, t->at, "there is no %s '%.*s'", test ? "test" : "filter",
                      (int)(t->n < 64 ? t->n : 64), t->text);
}

const struct node *parse_filters(struct parser *p, const struct node *of, bool inside)
{
    while (inside || parse_skip_op(p, '|')) {
        const struct token *t = p->now;
        size_t first = p->nstack;
        inside = false;
        if (t->kind != T_NAME)
            return parse_fail(p, t->at, "expected the name of a filter"), NULL;
        p->now++;
        parse_push_none(p);
        p->stack[p->nstack - 1] = of;
        struct node *n = parse_applied(p, N_FILTER, t->at, first);
        if (!n || !name_builtin(p, n, t, false))
            return NULL;
        of = n;
    }
    return of;
}

/* A test's single argument without parentheses. */
static bool push_test_argument(struct parser *p)
{
    enum token_kind k = p->now->kind;
    bool starts = k == T_NAME || k == T_STRING || k == T_INT || k == T_REAL ||
                  parse_is_op(p, '[') || parse_is_op(p, '{');
    if (!starts || parse_is_name(p, "else") || parse_is_name(p, "or") || parse_is_name(p, "and"))
        return true;
    if (parse_is_name(p, "is"))
        return parse_fail(p, p->now->at, "tests cannot be chained with 'is'");
    return parse_push(p, parse_postfix(p, parse_primary(p, false)));
}

static const struct node *parse_test(struct parser *p, const struct node *of)
{
    p->now++;
    bool negated = parse_skip_name(p, "not");
    const struct token *t = p->now;
    size_t first = p->nstack;
    if (t->kind != T_NAME)
        return parse_fail(p, t->at, "expected the name of a test"), NULL;
    p->now++;
    if (!parse_push(p, of) || (!parse_is_op(p, '(') && !push_test_argument(p)))
        return NULL;
    struct node *n = p->nstack == first + 1 ? parse_applied(p, N_TEST, t->at, first)
                                            : parse_node(p, N_TEST, t->at, 2);
    if (!n || !name_builtin(p, n, t, true))
        return NULL;
    return negated ? make_unary(p, N_NOT, t->at, n) : n;
}

static const struct node *parse_filtered(struct parser *p, const struct node *n)
{
    while (n) {
        if (parse_is_op(p, '|'))
            n = parse_filters(p, n, false);
        else if (parse_is_name(p, "is"))
            n = parse_test(p, n);
        else if (parse_is_op(p, '('))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* ---- operators, the tightest first ----------------------------------------------------------- */

static const struct node *parse_unary(struct parser *p, bool with_filters)
{
    uint32_t at = p->now->at;
    const struct node *n = NULL;
    bool minus = parse_is_op(p, '-');
    if (minus || parse_is_op(p, '+')) {
        p->now++;
        n = nest_in(p) ? make_unary(p, minus ? N_NEGATE : N_PLUS, at, parse_unary(p, false)) : NULL;
        p->nest--;
    } else {
        n = parse_primary(p, false);
    }
    n = parse_postfix(p, n);
    return with_filters ? parse_filtered(p, n) : n;
}

static const struct node *parse_power(struct parser *p)
{
    const struct node *n = parse_unary(p, true);
    while (n && parse_skip_op(p, OP_POW))
        n = make_binary(p, N_BINARY, BIN_POW, n, parse_unary(p, true));
    return n;
}

static const struct node *parse_product(struct parser *p)
{
    const struct node *n = parse_power(p);
    while (n && p->now->kind == T_OPERATOR) {
        int op = p->now->op;
        if (op != '*' && op != '/' && op != OP_FLOOR && op != '%')
            break;
        p->now++;
        enum binary b = op == '*' ? BIN_MUL : op == '/' ? BIN_DIV : op == '%' ? BIN_MOD : BIN_FLOOR;
        n = make_binary(p, N_BINARY, (int)b, n, parse_power(p));
    }
    return n;
}

static const struct node *parse_concat(struct parser *p)
{
    size_t first = p->nstack;
    uint32_t at = p->now->at;
    if (!parse_push(p, parse_product(p)))
        return NULL;
    while (parse_skip_op(p, '~'))
        if (!parse_push(p, parse_product(p)))
            return NULL;
    if (p->nstack == first + 1)
        return p->stack[--p->nstack];
    return parse_node(p, N_CONCAT, at, p->nstack - first);
}

static const struct node *parse_sum(struct parser *p)
{
    const struct node *n = parse_concat(p);
    while (n && (parse_is_op(p, '+') || parse_is_op(p, '-'))) {
        enum binary b = p->now++->op == '+' ? BIN_ADD : BIN_SUB;
        n = make_binary(p, N_BINARY, (int)b, n, parse_concat(p));
    }
    return n;
}

/* The comparison at this place; -1: there is none. */
static int take_comparison(struct parser *p)
{
    static const struct {
        int op;
        enum comparison is;
    } of[] = {{OP_EQ, CMP_EQ}, {OP_NE, CMP_NE}, {'<', CMP_LT},
              {OP_LE, CMP_LE}, {'>', CMP_GT},   {OP_GE, CMP_GE}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        if (parse_skip_op(p, of[i].op))
            return (int)of[i].is;
    if (parse_skip_name(p, "in"))
        return CMP_IN;
    if (!parse_is_name(p, "not") || !token_is_name(p->now + 1, "in"))
        return -1;
    p->now += 2;
    return CMP_NOT_IN;
}

static const struct node *parse_compare(struct parser *p)
{
    size_t first = p->nstack, n = 0;
    uint32_t at = p->now->at, *ops = NULL;
    struct node *node = NULL;
    bool ok = parse_push(p, parse_sum(p));
    for (int op; ok && (op = take_comparison(p)) >= 0;) {
        ops = array_more(ops, n, sizeof(*ops));
        ops[n++] = (uint32_t)op;
        ok = parse_push(p, parse_sum(p));
    }
    if (ok && !n)
        return p->stack[--p->nstack];
    if (ok)
        node = parse_node(p, N_COMPARE, at, p->nstack - first);
    if (node) {
        node->key = arena_take(&p->t->arena, n, sizeof(*ops));
        memcpy(node->key, ops, n * sizeof(*ops));
    }
    free(ops);
    return node;
}

static const struct node *parse_not(struct parser *p)
{
    uint32_t at = p->now->at;
    if (!parse_skip_name(p, "not"))
        return parse_compare(p);
    const struct node *n = nest_in(p) ? make_unary(p, N_NOT, at, parse_not(p)) : NULL;
    p->nest--;
    return n;
}

static const struct node *parse_and(struct parser *p)
{
    const struct node *n = parse_not(p);
    while (n && parse_skip_name(p, "and"))
        n = make_binary(p, N_AND, 0, n, parse_not(p));
    return n;
}

static const struct node *parse_or(struct parser *p)
{
    const struct node *n = parse_and(p);
    while (n && parse_skip_name(p, "or"))
        n = make_binary(p, N_OR, 0, n, parse_and(p));
    return n;
}

/* `value if condition else other`: the condition comes second and is evaluated first. */
static const struct node *parse_condition(struct parser *p)
{
    bool soft = p->soft;
    const struct node *n = parse_or(p);
    while (n && parse_skip_name(p, "if")) {
        p->soft = true;
        bool ok = parse_push(p, parse_or(p)) && parse_push(p, n);
        if (ok && parse_skip_name(p, "else"))
            ok = parse_push(p, parse_expression(p, true));
        else
            parse_push_none(p);
        n = ok ? parse_node(p, N_COND, n->at, 3) : NULL;
    }
    p->soft = soft;
    return n;
}

/* Whether a conditional follows an expression is known only behind it: its first part may use
 * filters that are unknown, too. */
static bool is_conditional(const struct parser *p)
{
    unsigned open = 0;
    for (const struct token *t = p->now; t->kind != T_END && t->kind != T_PRINT_END; t++) {
        if (t->kind == T_BLOCK_END)
            break;
        if (t->kind == T_OPERATOR && strchr("([{", t->op < 256 ? t->op : ' '))
            open++;
        if (t->kind == T_OPERATOR && strchr(")]}", t->op < 256 ? t->op : ' ') && !open--)
            break;
        if (!open && t->kind == T_OPERATOR && t->op == ',')
            break;
        if (!open && token_is_name(t, "if"))
            return true;
    }
    return false;
}

const struct node *parse_expression(struct parser *p, bool with_cond)
{
    bool soft = p->soft;
    const struct node *n = NULL;
    if (nest_in(p)) {
        p->soft |= with_cond && is_conditional(p);
        n = with_cond ? parse_condition(p) : parse_or(p);
    }
    p->soft = soft;
    p->nest--;
    return n;
}
