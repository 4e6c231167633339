/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex_prog.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

#if WEFT_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { NODES_MAX = 4096, MANY = -1 };

enum node_kind { NODE_EMPTY, NODE_CHAR, NODE_TEST, NODE_THEN, NODE_OR, NODE_REPEAT };

struct node {
    enum node_kind kind;
    enum prog_test test;
    int a, b; /* nodes; of NODE_CHAR and NODE_TEST, a: the atom */
    int low, high;
    bool lazy, possessive, nullable;
};

struct parser {
    const char *p;
    size_t n, i;
    bool lines, bad;
    char flags[4]; /* of i and s, those that apply */
    struct node *node;
    size_t nnodes, cap;
    struct regex_prog *g;
    char *atom_text[PROG_ATOMS];
};

/* ---- nodes ----------------------------------------------------------------------------------- */

static int refuse(struct parser *s)
{
    s->bad = true;
    return 0;
}

static int put_node(struct parser *s, struct node x)
{
    if (s->nnodes == NODES_MAX)
        return refuse(s);
    ARRAY_GROW(s->node, s->nnodes, s->cap);
    s->node[s->nnodes] = x;
    return (int)s->nnodes++;
}

static int put_pair(struct parser *s, enum node_kind kind, int a, int b)
{
    bool x = s->node[a].nullable, y = s->node[b].nullable;
    return put_node(
        s,
        (struct node){.kind = kind, .a = a, .b = b, .nullable = kind == NODE_OR ? x || y : x && y});
}

/* The atom that matches what p[from .. to) does. */
static int put_atom(struct parser *s, size_t from, size_t to)
{
    struct buf b = {0};
    int why, i = 0, n = s->g->natoms;
    PCRE2_SIZE at;
    pcre2_compile_context *c = pcre2_compile_context_create(NULL);
    BUG_ON(!c, "no memory for a pattern");
    pcre2_set_newline(c, PCRE2_NEWLINE_LF);
    buf_addf(&b, "(?^%s:%.*s)", s->flags, (int)(to - from), s->p + from);
    while (i < n && strcmp(s->atom_text[i], buf_str(&b)) != 0)
        i++;
    if (i == n && n < PROG_ATOMS) {
        s->g->atom[n] =
            pcre2_compile((PCRE2_SPTR)b.data, b.len,
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C |
                              PCRE2_ANCHORED | PCRE2_ENDANCHORED,
                          &why, &at, c);
        s->bad |= !s->g->atom[n];
        s->atom_text[n] = mem_strdup(buf_str(&b));
        s->g->natoms++;
    }
    pcre2_compile_context_free(c);
    buf_finish(&b);
    return i < PROG_ATOMS ? i : refuse(s);
}

/* ---- the pattern as a tree ------------------------------------------------------------------- */

static bool parser_at(const struct parser *s, const char *text)
{
    size_t n = strlen(text);
    return s->n - s->i >= n && !memcmp(s->p + s->i, text, n);
}

static bool take_text(struct parser *s, const char *text)
{
    bool is = parser_at(s, text);
    s->i += is ? strlen(text) : 0;
    return is;
}

static int parse_or(struct parser *s);

static int put_char(struct parser *s, size_t from)
{
    return put_node(s, (struct node){.kind = NODE_CHAR, .a = put_atom(s, from, s->i)});
}

static int put_test(struct parser *s, enum prog_test test, int atom)
{
    return put_node(s, (struct node){.kind = NODE_TEST, .test = test, .a = atom, .nullable = true});
}

/* Whether a node matches exactly one character, without a condition. */
static bool is_one(const struct parser *s, int i)
{
    const struct node *x = &s->node[i];
    return x->kind == NODE_CHAR || (x->kind == NODE_OR && is_one(s, x->a) && is_one(s, x->b));
}

/* After "(?=" and the like: one character. */
static int parse_look(struct parser *s, enum prog_test test)
{
    size_t from = s->i;
    int natoms = s->g->natoms, inside = parse_or(s);
    if (s->bad || !is_one(s, inside) || !parser_at(s, ")"))
        return refuse(s);
    while (s->g->natoms > natoms) {
        pcre2_code_free(s->g->atom[--s->g->natoms]);
        free(s->atom_text[s->g->natoms]);
    }
    int atom = put_atom(s, from, s->i++);
    return put_test(s, test, atom);
}

/* After "(?": options up to the colon. */
static bool take_flags(struct parser *s)
{
    bool on = true, i = strchr(s->flags, 'i'), dot = strchr(s->flags, 's');
    for (; s->i < s->n && s->p[s->i] != ':'; s->i++) {
        char c = s->p[s->i];
        if (c == '-')
            on = false;
        else if (c == 'i')
            i = on;
        else if (c == 's')
            dot = on;
        else
            return false;
    }
    s->i++;
    strcpy(s->flags, i && dot ? "is" : i ? "i" : dot ? "s" : "");
    return s->i <= s->n;
}

/* After "(?": the name of a group. */
static bool take_name(struct parser *s)
{
    const char *end = parser_at(s, "<") ? memchr(s->p + s->i, '>', s->n - s->i) : NULL;
    s->i = end ? (size_t)(end - s->p) + 1 : s->i;
    return end;
}

/* After an opening parenthesis. */
static int parse_group(struct parser *s)
{
    static const struct {
        const char *text;
        enum prog_test test;
    } look[] = {
        {"?=", TEST_AHEAD}, {"?!", TEST_NOT_AHEAD}, {"?<=", TEST_BEHIND}, {"?<!", TEST_NOT_BEHIND}};
    char flags[sizeof(s->flags)];
    memcpy(flags, s->flags, sizeof(flags));
    if (take_text(s, "?C")) { /* a callout */
        while (s->i < s->n && s->p[s->i] != ')')
            s->i++;
        s->i++;
        return put_node(s, (struct node){.kind = NODE_EMPTY, .nullable = true});
    }
    for (size_t i = 0; i < sizeof(look) / sizeof(*look); i++)
        if (take_text(s, look[i].text))
            return parse_look(s, look[i].test);
    if (take_text(s, "?") && !take_name(s) && !take_flags(s))
        return refuse(s);
    int inside = parse_or(s);
    if (!take_text(s, ")"))
        return refuse(s);
    memcpy(s->flags, flags, sizeof(flags));
    return inside;
}

/* After a backslash: \x{..}, and where the text begins and ends. */
static int parse_escape(struct parser *s)
{
    size_t from = s->i - 1;
    if (take_text(s, "x{")) {
        while (s->i < s->n && s->p[s->i] != '}')
            s->i++;
        s->i++;
        return put_char(s, from);
    }
    if (take_text(s, "A"))
        return put_test(s, TEST_TEXT_BEGINS, 0);
    return take_text(s, "z") ? put_test(s, TEST_TEXT_ENDS, 0) : refuse(s);
}

static int parse_one(struct parser *s)
{
    size_t from = s->i;
    if (take_text(s, "("))
        return parse_group(s);
    if (take_text(s, "\\"))
        return parse_escape(s);
    if (take_text(s, "^"))
        return put_test(s, s->lines ? TEST_LINE_BEGINS : TEST_TEXT_BEGINS, 0);
    if (take_text(s, "$"))
        return put_test(s, s->lines ? TEST_LINE_ENDS : TEST_TEXT_ENDS, 0);
    if (take_text(s, "[")) { /* code points alone, each as \x{..} */
        while (s->i < s->n && s->p[s->i] != ']')
            s->i++;
        s->i++;
        return put_char(s, from);
    }
    size_t k = utf8_char(s->p + s->i, s->p + s->n);
    s->i += k ? k : 1;
    return put_char(s, from);
}

static bool take_number(struct parser *s, int *ret)
{
    size_t from = s->i;
    for (*ret = 0; s->i < s->n && s->p[s->i] >= '0' && s->p[s->i] <= '9'; s->i++)
        *ret = *ret < PROG_STEPS ? *ret * 10 + (s->p[s->i] - '0') : *ret;
    return s->i > from;
}

/* The item `a`, and a repetition if one follows. */
static int parse_repeat(struct parser *s, int a)
{
    struct node x = {.kind = NODE_REPEAT, .a = a, .high = MANY};
    if (take_text(s, "+")) {
        x.low = 1;
    } else if (take_text(s, "?")) {
        x.high = 1;
    } else if (take_text(s, "{")) {
        bool least = take_number(s, &x.low);
        x.high = x.low;
        if (take_text(s, ",") && !take_number(s, &x.high))
            x.high = MANY;
        if (!least || !take_text(s, "}") || (x.high != MANY && x.high < x.low))
            return refuse(s);
    } else if (!take_text(s, "*")) {
        return a;
    }
    x.lazy = take_text(s, "?");
    x.possessive = !x.lazy && take_text(s, "+");
    x.nullable = !x.low || s->node[a].nullable;
    /* what PCRE2 does where nothing is repeated for ever is its own */
    if (s->node[a].nullable || (x.possessive && s->node[a].kind != NODE_CHAR))
        return refuse(s);
    return put_node(s, x);
}

static int parse_then(struct parser *s)
{
    int all = put_node(s, (struct node){.kind = NODE_EMPTY, .nullable = true});
    while (!s->bad && s->i < s->n && s->p[s->i] != '|' && s->p[s->i] != ')') {
        int one = parse_one(s);
        if (!s->bad)
            one = parse_repeat(s, one);
        if (!s->bad)
            all = s->node[all].kind == NODE_EMPTY   ? one
                  : s->node[one].kind == NODE_EMPTY ? all
                                                    : put_pair(s, NODE_THEN, all, one);
    }
    return all;
}

static int parse_or(struct parser *s)
{
    int all = parse_then(s);
    if (s->bad || !take_text(s, "|"))
        return all;
    int rest = parse_or(s);
    return s->bad ? 0 : put_pair(s, NODE_OR, all, rest);
}

/* ---- the tree as instructions ---------------------------------------------------------------- */

static int put_step(struct parser *s, struct prog_step x)
{
    if (s->g->nsteps == PROG_STEPS)
        return refuse(s);
    s->g->step[s->g->nsteps] = x;
    return s->g->nsteps++;
}

static int emit(struct parser *s, int i, int next);

static int put_split(struct parser *s, bool lazy, int body, int after)
{
    return put_step(s, (struct prog_step){
                           .kind = PROG_SPLIT, .x = lazy ? after : body, .y = lazy ? body : after});
}

/* Whether a match follows from instruction `i` on, whatever the text; false if that takes more than
 * *tries to see. */
static bool always_matches(const struct parser *s, int i, int *tries)
{
    const struct prog_step *x = &s->g->step[i < 0 ? 0 : i];
    if (s->bad || i < 0 || *tries == 0)
        return false;
    --*tries;
    if (x->kind == PROG_MATCH)
        return true;
    return x->kind == PROG_SPLIT &&
           (always_matches(s, x->y, tries) || always_matches(s, x->x, tries));
}

/* Nothing makes a match give back what it repeats if the rest of the pattern always matches. */
static int emit_repeat(struct parser *s, const struct node *x, int next)
{
    int after = next, entry, tries = 1000;
    if (x->possessive && !always_matches(s, next, &tries))
        after = put_step(
            s, (struct prog_step){
                   .kind = PROG_TEST, .test = TEST_NOT_AHEAD, .atom = s->node[x->a].a, .x = next});
    entry = next;
    if (x->high == MANY) {
        entry = put_split(s, x->lazy, -1, after);
        int body = emit(s, x->a, entry);
        *(x->lazy ? &s->g->step[entry].y : &s->g->step[entry].x) = body;
    }
    for (int i = x->low; i < x->high && !s->bad; i++)
        entry = put_split(s, x->lazy, emit(s, x->a, entry), after);
    for (int i = 0; i < x->low && !s->bad; i++)
        entry = emit(s, x->a, entry);
    return entry;
}

/* Instructions for a node, after which `next` follows; returns the first. */
static int emit(struct parser *s, int i, int next)
{
    struct node x = s->node[i];
    if (s->bad)
        return 0;
    switch (x.kind) {
    case NODE_EMPTY:
        return next;
    case NODE_CHAR:
        return put_step(s, (struct prog_step){.kind = PROG_CHAR, .atom = x.a, .x = next});
    case NODE_TEST:
        return put_step(
            s, (struct prog_step){.kind = PROG_TEST, .test = x.test, .atom = x.a, .x = next});
    case NODE_THEN:
        return emit(s, x.a, emit(s, x.b, next));
    case NODE_OR: {
        int a = emit(s, x.a, next);
        return put_split(s, false, a, emit(s, x.b, next));
    }
    case NODE_REPEAT:
        return emit_repeat(s, &x, next);
    }
    return 0;
}

struct regex_prog *regex_prog_create(const char *spelled, size_t n, bool lines)
{
    struct regex_prog *g = mem_new(1, sizeof(*g));
    struct parser s = {.p = spelled, .n = n, .lines = lines, .g = g};
    g->step = mem_new(PROG_STEPS, sizeof(*g->step));
    int root = parse_or(&s);
    s.bad |= s.i < n;
    if (!s.bad)
        g->entry = emit(&s, root, put_step(&s, (struct prog_step){.kind = PROG_MATCH}));
    for (int i = 0; i < g->natoms; i++)
        free(s.atom_text[i]);
    free(s.node);
    if (s.bad) {
        regex_prog_destroy(g);
        return NULL;
    }
    g->step = mem_grow(g->step, (size_t)g->nsteps, sizeof(*g->step));
    return g;
}

void regex_prog_destroy(struct regex_prog *g)
{
    for (int i = 0; g && i < g->natoms; i++)
        pcre2_code_free(g->atom[i]);
    free(g ? g->step : NULL);
    free(g);
}

#else

struct regex_prog *regex_prog_create(const char *spelled, size_t n, bool lines)
{
    (void)spelled, (void)n, (void)lines;
    return NULL;
}

void regex_prog_destroy(struct regex_prog *g)
{
    (void)g;
}

#endif
