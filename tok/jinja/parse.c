/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/utf8.h"

bool parse_fail(struct parser *p, uint32_t at, const char *fmt, ...)
{
    char what[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    jinja_error(p->t, at, p->err, "%s", what);
    return false;
}

static uint32_t hash_name(const char *text, size_t n)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

static uint32_t *find_name(const struct parser *p, const char *text, size_t n)
{
    size_t at = hash_name(text, n) & (p->hash_cap - 1);
    for (; p->hash[at]; at = (at + 1) & (p->hash_cap - 1)) {
        const struct jinja_name *name = &p->t->names[p->hash[at] - 1];
        if (name->n == n && !memcmp(name->text, text, n))
            break;
    }
    return &p->hash[at];
}

uint32_t parse_intern(struct parser *p, const char *text, size_t n)
{
    if (p->hash_cap <= 2 * (size_t)p->t->nnames) {
        free(p->hash);
        p->hash_cap = p->hash_cap ? 2 * p->hash_cap : 256;
        p->hash = mem_new(p->hash_cap, sizeof(*p->hash));
        for (uint32_t i = 0; i < p->t->nnames; i++)
            *find_name(p, p->t->names[i].text, p->t->names[i].n) = i + 1;
    }
    uint32_t *found = find_name(p, text, n);
    if (!*found) {
        p->t->names = array_more(p->t->names, p->t->nnames, sizeof(*p->t->names));
        p->t->names[p->t->nnames++] = (struct jinja_name){.text = text, .n = n};
        *found = p->t->nnames;
    }
    return *found - 1;
}

bool parse_skip_op(struct parser *p, int op)
{
    bool is = parse_is_op(p, op);
    p->now += is;
    return is;
}

bool parse_skip_name(struct parser *p, const char *name)
{
    bool is = parse_is_name(p, name);
    p->now += is;
    return is;
}

bool parse_expect_op(struct parser *p, int op, const char *what)
{
    char words[64];
    return parse_skip_op(p, op) ||
           parse_fail(p, p->now->at, "expected %s, found %s", what, token_words(p->now, words));
}

static bool expect_kind(struct parser *p, enum token_kind kind, const char *what)
{
    char words[64];
    if (p->now->kind != kind)
        return parse_fail(p, p->now->at, "expected %s, found %s", what, token_words(p->now, words));
    p->now++;
    return true;
}

static bool expect_name(struct parser *p, const char *name)
{
    char words[64];
    return parse_skip_name(p, name) ||
           parse_fail(p, p->now->at, "expected '%s', found %s", name, token_words(p->now, words));
}

/* ---- targets --------------------------------------------------------------------------------- */

static bool can_assign(struct parser *p, const struct node *n)
{
    if (n->kind == N_NAMESPACE_REF)
        return true;
    if (n->kind == N_NAME) {
        const struct jinja_name *name = &p->t->names[n->name];
        if (p->fors && name->n == 4 && !memcmp(name->text, "loop", 4))
            return parse_fail(p, n->at, "the variable loop of a for cannot be assigned to");
        return true;
    }
    if (n->kind != N_TUPLE)
        return parse_fail(p, n->at, "expected a name to assign to");
    for (uint32_t i = 0; i < n->n; i++)
        if (!can_assign(p, n->sub[i]))
            return false;
    return true;
}

const struct node *parse_target(struct parser *p, unsigned flags)
{
    const struct node *n = parse_tuple(p, flags | TUPLE_NAMES);
    return n && can_assign(p, n) ? n : NULL;
}

static const struct node *parse_one_name(struct parser *p)
{
    if (p->now->kind != T_NAME)
        return parse_fail(p, p->now->at, "expected a name"), NULL;
    const struct node *n = parse_primary(p, false);
    return n && can_assign(p, n) ? n : NULL;
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static bool parse_statement(struct parser *p);

static bool push_text(struct parser *p)
{
    struct node *n = parse_node(p, N_TEXT, p->now->at, 0);
    n->value = value_text(p->now->text, p->now->n, TAG_TEMPLATE);
    p->now++;
    return parse_push(p, n);
}

static bool push_print(struct parser *p)
{
    uint32_t at = p->now++->at;
    return parse_push(p, parse_tuple(p, 0)) && expect_kind(p, T_PRINT_END, "'}}'") &&
           parse_push(p, parse_node(p, N_PRINT, at, 1));
}

/* The word of the tag at this place is one of `ends`, which are separated by spaces. */
static bool is_end(const struct parser *p, const char *ends)
{
    const struct token *t = p->now + 1;
    for (const char *at = ends; *at; at += strcspn(at, " "), at += *at == ' ')
        if (t->kind == T_NAME && t->n == strcspn(at, " ") && !memcmp(t->text, at, t->n))
            return true;
    return false;
}

/* Statements up to a tag of `ends`, whose word is the next token then; "": up to the end. */
static const struct node *parse_until(struct parser *p, const char *ends)
{
    size_t first = p->nstack;
    uint32_t at = p->now->at;
    for (;;) {
        if (p->now->kind == T_END && *ends)
            return parse_fail(p, p->now->at, "the template ends here: expected '{%% %.*s %%}'",
                              (int)strcspn(ends, " "), ends),
                   NULL;
        if (p->now->kind == T_END)
            break;
        if (p->now->kind == T_BLOCK_BEGIN && is_end(p, ends)) {
            p->now++;
            break;
        }
        bool ok = p->now->kind == T_DATA          ? push_text(p)
                  : p->now->kind == T_PRINT_BEGIN ? push_print(p)
                                                  : parse_statement(p);
        if (!ok)
            return NULL;
    }
    return parse_node(p, N_BODY, at, p->nstack - first);
}

/* The body of a tag that has been read up to its end. */
static const struct node *parse_body(struct parser *p, const char *ends)
{
    parse_skip_op(p, ':');
    if (!expect_kind(p, T_BLOCK_END, "'%}'"))
        return NULL;
    return parse_until(p, ends);
}

/* The same, and the word that ends it. */
static const struct node *parse_whole_body(struct parser *p, const char *end)
{
    const struct node *n = parse_body(p, end);
    p->now += n != NULL;
    return n;
}

/* A body that is a function of its own: a loop round it cannot be left from inside. */
static const struct node *parse_closed_body(struct parser *p, const char *end)
{
    unsigned loops = p->loops;
    bool soft = p->soft;
    p->loops = 0;
    p->soft = false;
    const struct node *n = parse_whole_body(p, end);
    p->loops = loops;
    p->soft = soft;
    return n;
}

/* ---- statements: each pushes its node -------------------------------------------------------- */

static bool parse_for_body(struct parser *p)
{
    p->loops++;
    p->fors++;
    bool soft = p->soft;
    p->soft = false;
    bool ok = parse_push(p, parse_body(p, "endfor else"));
    p->loops--;
    if (ok && parse_skip_name(p, "else"))
        ok = parse_push(p, parse_whole_body(p, "endfor"));
    else if (ok)
        p->now++, parse_push_none(p);
    p->fors--;
    p->soft = soft;
    return ok;
}

static bool parse_for(struct parser *p, uint32_t at)
{
    p->fors++; /* the target cannot be `loop` either */
    bool ok = parse_push(p, parse_target(p, TUPLE_TO_IN));
    p->fors--;
    if (!ok || !expect_name(p, "in") || !parse_push(p, parse_tuple(p, TUPLE_NO_COND)))
        return false;
    if (parse_skip_name(p, "if"))
        ok = parse_push(p, parse_expression(p, true));
    else
        parse_push_none(p);
    if (ok && parse_is_name(p, "recursive"))
        return parse_fail(p, p->now->at, "recursive loops are not supported");
    return ok && parse_for_body(p) && parse_push(p, parse_node(p, N_FOR, at, 5));
}

static bool parse_if(struct parser *p, uint32_t at)
{
    size_t first = p->nstack;
    bool soft = p->soft, ok = true, more = true;
    p->soft = true;
    while (ok && more) {
        ok = parse_push(p, parse_tuple(p, TUPLE_NO_COND)) &&
             parse_push(p, parse_body(p, "endif elif else"));
        more = ok && parse_skip_name(p, "elif");
    }
    if (ok && parse_skip_name(p, "else"))
        ok = parse_push(p, parse_whole_body(p, "endif"));
    else
        p->now += ok;
    p->soft = soft;
    return ok && parse_push(p, parse_node(p, N_IF, at, p->nstack - first));
}

static bool parse_set(struct parser *p, uint32_t at)
{
    const struct node *target = parse_target(p, TUPLE_NAMESPACE);
    if (!parse_push(p, target))
        return false;
    if (parse_skip_op(p, '='))
        return parse_push(p, parse_tuple(p, 0)) && parse_push(p, parse_node(p, N_SET, at, 2));
    const struct node *filters = NULL;
    bool soft = p->soft;
    p->soft = false;
    bool ok = !parse_is_op(p, '|') || (filters = parse_filters(p, NULL, false));
    p->soft = soft;
    parse_push_none(p);
    p->stack[p->nstack - 1] = filters;
    return ok && parse_push(p, parse_closed_body(p, "endset")) &&
           parse_push(p, parse_node(p, N_SET_BLOCK, at, 3));
}

/* Parameters in parentheses: their names, and defaults on the stack. */
static bool parse_signature(struct parser *p, uint32_t **names, size_t *n)
{
    size_t first = p->nstack;
    if (!parse_expect_op(p, '(', "'('"))
        return false;
    while (!parse_is_op(p, ')')) {
        if (*n && !parse_expect_op(p, ',', "',' or ')'"))
            return false;
        uint32_t at = p->now->at;
        const struct node *name = parse_one_name(p);
        if (!name)
            return false;
        *names = array_more(*names, *n, sizeof(**names));
        (*names)[(*n)++] = name->name;
        if (parse_skip_op(p, '=')) {
            if (!parse_push(p, parse_expression(p, true)))
                return false;
        } else if (p->nstack > first) {
            return parse_fail(p, at, "a parameter without a default follows one with a default");
        }
    }
    p->now++;
    return true;
}

/* A macro's node: its body must be on the stack below its defaults. */
static const struct node *make_macro(struct parser *p, uint32_t at, uint32_t name,
                                     const uint32_t *params, size_t n, size_t first)
{
    struct node *node = parse_node(p, N_MACRO, at, p->nstack - first);
    if (!node)
        return NULL;
    node->name = name;
    node->op = (uint8_t)p->macro;
    node->nkeys = (uint32_t)n;
    node->key = arena_take(&p->t->arena, n, sizeof(*params));
    if (n)
        memcpy(node->key, params, n * sizeof(*params));
    return node;
}

/* A signature, if there is one, and a body, which is read by `rest`. */
static const struct node *parse_macro_of(struct parser *p, uint32_t at, uint32_t name,
                                         bool (*between)(struct parser *p), const char *end)
{
    uint32_t *params = NULL;
    size_t n = 0, first = p->nstack;
    unsigned macro = p->macro;
    bool soft = p->soft;
    const struct node *node = NULL, *body = NULL;
    p->soft = false;
    parse_push_none(p); /* the body */
    bool ok = (between && !parse_is_op(p, '(')) || parse_signature(p, &params, &n);
    size_t call = p->nstack;
    p->soft = soft;
    ok = ok && (!between || between(p));
    const struct node *called = ok && between ? p->stack[call] : NULL;
    p->nstack = ok ? call : p->nstack;
    p->macro = 0;
    if (ok && (body = parse_closed_body(p, end))) {
        p->stack[first] = body;
        node = make_macro(p, at, name, params, n, first);
    }
    p->macro |= macro;
    free(params);
    if (node && between && (!parse_push(p, called) || !parse_push(p, node)))
        return NULL;
    return node;
}

static bool parse_macro(struct parser *p, uint32_t at)
{
    const struct node *name = parse_one_name(p);
    return name && parse_push(p, parse_macro_of(p, at, name->name, NULL, "endmacro"));
}

static bool push_call(struct parser *p)
{
    const struct node *n = parse_expression(p, true);
    if (n && n->kind != N_CALL)
        return parse_fail(p, n->at, "expected a call");
    return parse_push(p, n);
}

static bool parse_call_block(struct parser *p, uint32_t at)
{
    uint32_t name = parse_intern(p, "caller", 6);
    return parse_macro_of(p, at, name, push_call, "endcall") &&
           parse_push(p, parse_node(p, N_CALL_BLOCK, at, 2));
}

static bool parse_filter_block(struct parser *p, uint32_t at)
{
    bool soft = p->soft;
    p->soft = false;
    const struct node *filters = parse_filters(p, NULL, true);
    p->soft = soft;
    return parse_push(p, filters) && parse_push(p, parse_closed_body(p, "endfilter")) &&
           parse_push(p, parse_node(p, N_FILTER_BLOCK, at, 2));
}

static bool parse_with(struct parser *p, uint32_t at)
{
    size_t first = p->nstack;
    while (p->now->kind != T_BLOCK_END) {
        if (p->nstack > first && !parse_expect_op(p, ',', "','"))
            return false;
        if (!parse_push(p, parse_target(p, 0)) || !parse_expect_op(p, '=', "'='") ||
            !parse_push(p, parse_expression(p, true)))
            return false;
    }
    bool soft = p->soft;
    p->soft = false;
    bool ok = parse_push(p, parse_whole_body(p, "endwith"));
    p->soft = soft;
    return ok && parse_push(p, parse_node(p, N_WITH, at, p->nstack - first));
}

static bool parse_generation(struct parser *p, uint32_t at)
{
    p->t->has_generation = true;
    return parse_push(p, parse_closed_body(p, "endgeneration")) &&
           parse_push(p, parse_node(p, N_GENERATION, at, 1));
}

static bool parse_leave(struct parser *p, uint32_t at)
{
    bool breaks = token_is_name(p->now - 1, "break");
    if (!p->loops)
        return parse_fail(p, at, "'%s' is outside of a loop", breaks ? "break" : "continue");
    return parse_push(p, parse_node(p, breaks ? N_BREAK : N_CONTINUE, at, 0));
}

static bool parse_print(struct parser *p, uint32_t at)
{
    size_t first = p->nstack;
    while (p->now->kind != T_BLOCK_END)
        if ((p->nstack > first && !parse_expect_op(p, ',', "','")) ||
            !parse_push(p, parse_expression(p, true)))
            return false;
    return parse_push(p, parse_node(p, N_PRINT, at, p->nstack - first));
}

static const struct {
    const char *name;
    bool (*parse)(struct parser *p, uint32_t at);
} statements[] = {{"for", parse_for},         {"if", parse_if},
                  {"set", parse_set},         {"macro", parse_macro},
                  {"call", parse_call_block}, {"filter", parse_filter_block},
                  {"with", parse_with},       {"generation", parse_generation},
                  {"break", parse_leave},     {"continue", parse_leave},
                  {"print", parse_print}};

static bool parse_statement(struct parser *p)
{
    const struct token *t = ++p->now;
    char words[64];
    if (p->blocks == JINJA_MAX_NEST)
        return parse_fail(p, t->at, "more than %d blocks are inside one another", JINJA_MAX_NEST);
    for (size_t i = 0; i < sizeof(statements) / sizeof(*statements); i++) {
        if (!parse_skip_name(p, statements[i].name))
            continue;
        p->blocks++;
        bool ok = statements[i].parse(p, t->at);
        p->blocks--;
        return ok && expect_kind(p, T_BLOCK_END, "'%}'");
    }
    if (t->kind != T_NAME)
        return parse_fail(p, t->at, "expected the name of a tag, found %s", token_words(t, words));
    return parse_fail(p, t->at, "the tag %s is not one of chat templates", token_words(t, words));
}

int jinja_build(struct jinja *t, struct err *e)
{
    struct parser p = {.t = t, .err = e};
    int code = jinja_lex(t, &p.tokens, e);
    p.now = p.tokens.token;
    if (!code && !(t->root = parse_until(&p, "")))
        code = ERR_DATA;
    free(p.tokens.token);
    free(p.stack);
    free(p.hash);
    return code;
}
