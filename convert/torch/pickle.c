/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/torch/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

enum { VALUES_MAX = 8 << 20 };

struct machine {
    const struct pickle_globals *globals;
    const char *name;
    const unsigned char *p;
    size_t n, at, op_at; /* bytes, those read, where the opcode at work began */
    struct arena *arena;
    struct pickle_value **stack;
    size_t depth, stack_cap;
    size_t *mark; /* depths */
    size_t marks, marks_cap;
    struct pickle_value **memo;
    size_t memo_cap, memos; /* memos: those that MEMOIZE numbered */
    size_t values;
    struct err *e;
    int code; /* of the first failure; all functions below then do nothing */
};

static void pickle_fail(struct machine *m, const char *why)
{
    if (!m->code)
        m->code = err_set(m->e, ERR_DATA, "%s: byte %zu of the pickle: %s", m->name, m->op_at, why);
}

/* ---- bytes, stack, memo --------------------------------------------------------------------- */

static const unsigned char *take(struct machine *m, uint64_t n)
{
    static const unsigned char zeros[8];
    if (!m->code && n > m->n - m->at)
        pickle_fail(m, "it is cut short");
    if (m->code)
        return zeros;
    const unsigned char *p = m->p + m->at;
    m->at += (size_t)n;
    return p;
}

static struct pickle_value *new_value(struct machine *m, enum pickle_kind kind)
{
    if (++m->values > VALUES_MAX)
        pickle_fail(m, "too many values");
    struct pickle_value *v = arena_take(m->arena, 1, sizeof(*v));
    v->kind = kind;
    return v;
}

static void push(struct machine *m, struct pickle_value *v)
{
    if (m->code)
        return;
    if (m->depth == m->stack_cap)
        m->stack = mem_grow(m->stack, m->stack_cap = m->stack_cap ? 2 * m->stack_cap : 64,
                            sizeof(struct pickle_value *));
    m->stack[m->depth++] = v;
}

/* The depth below which nothing may be taken: that of the last mark. */
static size_t stack_floor(const struct machine *m)
{
    return m->marks ? m->mark[m->marks - 1] : 0;
}

/* NULL after a failure. */
static struct pickle_value *pop(struct machine *m)
{
    if (!m->code && m->depth == stack_floor(m))
        pickle_fail(m, "there is nothing on the stack");
    return m->code ? NULL : m->stack[--m->depth];
}

static struct pickle_value *top(struct machine *m)
{
    if (!m->code && m->depth == stack_floor(m))
        pickle_fail(m, "there is nothing on the stack");
    return m->code ? NULL : m->stack[m->depth - 1];
}

static void push_mark(struct machine *m)
{
    if (m->marks == m->marks_cap)
        m->mark =
            mem_grow(m->mark, m->marks_cap = m->marks_cap ? 2 * m->marks_cap : 64, sizeof(size_t));
    m->mark[m->marks++] = m->depth;
}

/* How many values lie above the last mark, which is taken away. */
static size_t pop_mark(struct machine *m)
{
    if (!m->code && !m->marks)
        pickle_fail(m, "there is no mark on the stack");
    return m->code ? 0 : m->depth - m->mark[--m->marks];
}

static void memo_put(struct machine *m, size_t i)
{
    struct pickle_value *v = top(m);
    if (!m->code && i > m->n)
        pickle_fail(m, "a memo number that no pickle of this size needs");
    if (m->code)
        return;
    if (i >= m->memo_cap) {
        size_t cap = i < 64 ? 128 : 2 * i;
        m->memo = mem_grow(m->memo, cap, sizeof(struct pickle_value *));
        memset(m->memo + m->memo_cap, 0, (cap - m->memo_cap) * sizeof(struct pickle_value *));
        m->memo_cap = cap;
    }
    m->memo[i] = v;
}

static void memo_get(struct machine *m, size_t i)
{
    if (i >= m->memo_cap || !m->memo[i])
        pickle_fail(m, "a memo number that was not stored");
    else
        push(m, m->memo[i]);
}

/* ---- values --------------------------------------------------------------------------------- */

static void add_child(struct machine *m, struct pickle_value *v, struct pickle_value *child)
{
    if (m->code)
        return;
    if (v->n == v->cap) {
        size_t cap = v->cap ? 2 * v->cap : 4;
        struct pickle_value **more = arena_take(m->arena, cap, sizeof(*more));
        if (v->n)
            memcpy(more, v->child, v->n * sizeof(*more));
        v->child = more;
        v->cap = cap;
    }
    v->child[v->n++] = child;
}

static void push_int(struct machine *m, enum pickle_kind kind, int64_t i)
{
    struct pickle_value *v = new_value(m, kind);
    v->integer = i;
    push(m, v);
}

/* n bytes, little-endian, two's complement. */
static void push_long(struct machine *m, uint64_t n)
{
    const unsigned char *p = take(m, n);
    uint64_t v = 0;
    if (m->code)
        return;
    bool negative = n && p[n - 1] & 0x80;
    for (uint64_t i = 8; i < n; i++)
        if (p[i] != (negative ? 0xff : 0)) {
            pickle_fail(m, "a number of more than 64 bits");
            return;
        }
    for (uint64_t i = 0; i < 8; i++)
        v |= (uint64_t)(i < n ? p[i] : negative ? 0xff : 0) << 8 * i;
    if (n > 8 && (bool)(v >> 63) != negative)
        pickle_fail(m, "a number of more than 64 bits");
    push_int(m, PICKLE_INT, (int64_t)v);
}

static void push_real(struct machine *m)
{
    const unsigned char *p = take(m, 8);
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | p[i];
    struct pickle_value *v = new_value(m, PICKLE_REAL);
    memcpy(&v->real, &bits, sizeof(v->real));
    push(m, v);
}

static void push_text(struct machine *m, enum pickle_kind kind, uint64_t n)
{
    const unsigned char *p = take(m, n);
    if (kind == PICKLE_TEXT && !m->code && utf8_good((const char *)p, (size_t)n) < n)
        pickle_fail(m, "a text that is not UTF-8");
    if (m->code)
        return;
    struct pickle_value *v = new_value(m, kind);
    v->text = arena_strndup(m->arena, (const char *)p, (size_t)n);
    v->n = (size_t)n;
    push(m, v);
}

/* The n values on top of the stack as the children of one. */
static void push_tuple(struct machine *m, size_t n)
{
    if (!m->code && m->depth - stack_floor(m) < n)
        pickle_fail(m, "there is nothing on the stack");
    if (m->code)
        return;
    struct pickle_value *v = new_value(m, PICKLE_TUPLE);
    for (size_t i = m->depth - n; i < m->depth; i++)
        add_child(m, v, m->stack[i]);
    m->depth -= n;
    push(m, v);
}

/* The n values on top of the stack go into the list or dictionary below them. */
static void add_items(struct machine *m, enum pickle_kind kind, size_t n)
{
    if (!m->code && m->depth - stack_floor(m) < n + 1)
        pickle_fail(m, "there is nothing on the stack");
    if (m->code)
        return;
    struct pickle_value *v = m->stack[m->depth - n - 1];
    if (v->kind != kind || (kind == PICKLE_DICT && n % 2)) {
        pickle_fail(m, kind == PICKLE_DICT ? "items for something that is not a dictionary"
                                           : "items for something that is not a list");
        return;
    }
    for (size_t i = m->depth - n; i < m->depth; i++)
        add_child(m, v, m->stack[i]);
    m->depth -= n;
}

/* ---- globals and calls ---------------------------------------------------------------------- */

static void push_global(struct machine *m, const char *text)
{
    int64_t index = m->globals->find(text);
    if (index >= 0) {
        struct pickle_value *v = new_value(m, PICKLE_GLOBAL);
        v->integer = index;
        push(m, v);
        return;
    }
    if (m->code)
        return;
    m->code = err_set(m->e, ERR_DATA,
                      "%s: byte %zu of the pickle names '%.200s', which no file of tensors needs; "
                      "nothing of it was run",
                      m->name, m->op_at, text);
    err_hint(m->e, "if you trust the file, save the tensors alone: torch.save(model.state_dict(), "
                   "...)");
}

/* Two lines: module and name. */
static void read_global(struct machine *m)
{
    size_t begin = m->at, lines = 0;
    while (lines < 2) {
        lines += *take(m, 1) == '\n';
        if (m->code)
            return;
    }
    size_t n = m->at - begin - 1;
    if (utf8_good((const char *)m->p + begin, n) < n) {
        pickle_fail(m, "a name that is not UTF-8");
        return;
    }
    char *text = arena_strndup(m->arena, (const char *)m->p + begin, n);
    char *line = memchr(text, '\n', n);
    *line = '.';
    push_global(m, text);
}

static void stack_global(struct machine *m)
{
    const struct pickle_value *name = pop(m), *module = pop(m);
    if (m->code)
        return;
    if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
        pickle_fail(m, "the name of a global is not a text");
    else
        push_global(m, arena_printf(m->arena, "%s.%s", module->text, name->text));
}

/* OrderedDict(), OrderedDict([(key, value), ...]) */
static void ordered_dict(struct machine *m, const struct pickle_value *args)
{
    struct pickle_value *v = new_value(m, PICKLE_DICT);
    const struct pickle_value *pairs = args->n ? args->child[0] : NULL;
    bool fine = !pairs || (args->n == 1 && pairs->kind == PICKLE_LIST);
    for (size_t i = 0; fine && pairs && i < pairs->n; i++) {
        const struct pickle_value *pair = pairs->child[i];
        fine = (pair->kind == PICKLE_TUPLE || pair->kind == PICKLE_LIST) && pair->n == 2;
        m->values += 2;
        if (fine && m->values <= VALUES_MAX) {
            add_child(m, v, pair->child[0]);
            add_child(m, v, pair->child[1]);
        }
    }
    if (!fine)
        pickle_fail(m, "an OrderedDict of something else than pairs");
    push(m, v);
}

static void call(struct machine *m)
{
    struct pickle_value *args = pop(m), *callee = pop(m);
    if (m->code)
        return;
    if (args->kind != PICKLE_TUPLE || callee->kind != PICKLE_GLOBAL) {
        pickle_fail(m, "a call of something that is not a global's name with a tuple");
    } else if (callee->integer == m->globals->ordered) {
        ordered_dict(m, args);
    } else {
        struct pickle_value *v = new_value(m, PICKLE_CALL);
        add_child(m, v, callee);
        add_child(m, v, args);
        push(m, v);
    }
}

static void persistent(struct machine *m)
{
    struct pickle_value *id = pop(m), *v = new_value(m, PICKLE_PERSISTENT);
    add_child(m, v, id);
    push(m, v);
}

/* ---- opcodes -------------------------------------------------------------------------------- */

/* Those that push a value of their own. False: another one. */
static bool run_value(struct machine *m, unsigned char op)
{
    switch (op) {
    case 'N':
        push(m, new_value(m, PICKLE_NONE));
        return true;
    case 0x88: /* NEWTRUE */
    case 0x89: /* NEWFALSE */
        push_int(m, PICKLE_BOOL, op == 0x88);
        return true;
    case 'J':
        push_int(m, PICKLE_INT, load_i32(take(m, 4)));
        return true;
    case 'K':
        push_int(m, PICKLE_INT, *take(m, 1));
        return true;
    case 'M':
        push_int(m, PICKLE_INT, load_u16(take(m, 2)));
        return true;
    case 0x8a: /* LONG1 */
        push_long(m, *take(m, 1));
        return true;
    case 0x8b: /* LONG4 */
        push_long(m, load_u32(take(m, 4)));
        return true;
    case 'G':
        push_real(m);
        return true;
    default:
        return false;
    }
}

static bool run_text(struct machine *m, unsigned char op)
{
    switch (op) {
    case 'X':
        push_text(m, PICKLE_TEXT, load_u32(take(m, 4)));
        return true;
    case 0x8c: /* SHORT_BINUNICODE */
    case 'U':  /* SHORT_BINSTRING of Python 2 */
        push_text(m, PICKLE_TEXT, *take(m, 1));
        return true;
    case 'T': /* BINSTRING */
        push_text(m, PICKLE_TEXT, load_u32(take(m, 4)));
        return true;
    case 0x8d: /* BINUNICODE8 */
        push_text(m, PICKLE_TEXT, load_u64(take(m, 8)));
        return true;
    case 'B':
        push_text(m, PICKLE_BYTES, load_u32(take(m, 4)));
        return true;
    case 'C':
        push_text(m, PICKLE_BYTES, *take(m, 1));
        return true;
    case 0x8e: /* BINBYTES8 */
    case 0x96: /* BYTEARRAY8 */
        push_text(m, PICKLE_BYTES, load_u64(take(m, 8)));
        return true;
    default:
        return false;
    }
}

static bool run_collection(struct machine *m, unsigned char op)
{
    switch (op) {
    case '(':
        push_mark(m);
        return true;
    case ')':
        push_tuple(m, 0);
        return true;
    case 't':
        push_tuple(m, pop_mark(m));
        return true;
    case 0x85: /* TUPLE1 */
    case 0x86:
    case 0x87:
        push_tuple(m, op - 0x84U);
        return true;
    case ']':
    case 0x8f: /* EMPTY_SET */
        push(m, new_value(m, PICKLE_LIST));
        return true;
    case '}':
        push(m, new_value(m, PICKLE_DICT));
        return true;
    case 'a':
        add_items(m, PICKLE_LIST, 1);
        return true;
    case 'e':
    case 0x90: /* ADDITEMS */
        add_items(m, PICKLE_LIST, pop_mark(m));
        return true;
    case 's':
        add_items(m, PICKLE_DICT, 2);
        return true;
    case 'u':
        add_items(m, PICKLE_DICT, pop_mark(m));
        return true;
    default:
        return false;
    }
}

static bool run_memo(struct machine *m, unsigned char op)
{
    switch (op) {
    case 'q':
        memo_put(m, *take(m, 1));
        return true;
    case 'r':
        memo_put(m, load_u32(take(m, 4)));
        return true;
    case 0x94: /* MEMOIZE */
        memo_put(m, m->memos++);
        return true;
    case 'h':
        memo_get(m, *take(m, 1));
        return true;
    case 'j':
        memo_get(m, load_u32(take(m, 4)));
        return true;
    default:
        return false;
    }
}

static void run_call(struct machine *m, unsigned char op)
{
    switch (op) {
    case 'c':
        read_global(m);
        break;
    case 0x93: /* STACK_GLOBAL */
        stack_global(m);
        break;
    case 'R':
    case 0x81: /* NEWOBJ */
        call(m);
        break;
    case 'b': /* BUILD: attributes, of which none belongs to a tensor */
        pop(m);
        top(m);
        break;
    case 'Q':
        persistent(m);
        break;
    case 0x80: /* PROTO */
        if (*take(m, 1) > 5)
            pickle_fail(m, "a protocol above 5");
        break;
    case 0x95: /* FRAME */
        take(m, 8);
        break;
    default:
        if (!m->code)
            m->code = err_set(m->e, ERR_DATA,
                              "%s: byte %zu of the pickle: opcode 0x%02x, which no file of tensors "
                              "needs",
                              m->name, m->op_at, op);
    }
}

int pickle_read(const struct pickle_globals *globals, const char *name, const void *p, size_t n,
                struct arena *arena, struct pickle_value **ret, struct err *e)
{
    struct machine m = {.globals = globals, .name = name, .p = p, .n = n, .arena = arena, .e = e};
    if (n > PICKLE_MAX)
        return err_set(e, ERR_DATA, "%s: a pickle of %zu bytes, more than %d", name, n, PICKLE_MAX);
    for (;;) {
        m.op_at = m.at;
        unsigned char op = *take(&m, 1);
        if (m.code || op == '.')
            break;
        if (!run_value(&m, op) && !run_text(&m, op) && !run_collection(&m, op) && !run_memo(&m, op))
            run_call(&m, op);
    }
    if (!m.code && (m.depth != 1 || m.marks))
        pickle_fail(&m, "it ends with something else than one value");
    if (!m.code)
        *ret = m.stack[0];
    free(m.stack);
    free(m.mark);
    free(m.memo);
    return m.code;
}
