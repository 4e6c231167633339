/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/charsmap.h"

#include <stdlib.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

/*
 * The trie is an array of 32-bit units (darts-clone). A state is an index s; the step with byte c
 * looks at unit s ^ c and succeeds if that unit's label is c. So a state is safe when the whole
 * 256-aligned block around s lies inside the array. A successful step leads to state
 * (s ^ c) ^ offset(unit); if the unit says that a key ends here, the unit at that state has the
 * offset of its replacement. The check visits every state that a text can reach once.
 */

enum {
    UNIT_MAX = 1 << 21, /* units; SentencePiece's largest rules have 65 thousand */
    RULE_DEPTH = 32     /* keys that are prefixes of one text: the library keeps 32 on its stack */
};

enum mark { NEW, OPEN, DONE };

struct walk {
    const char *name;
    uint64_t offset;
    const unsigned char *trie, *text;
    size_t units, text_size;
    uint32_t *first;     /* by state: the first unit of a step from it, plus 1; 0: none */
    uint32_t *next;      /* by unit: the next one of the same state, likewise */
    unsigned char *mark; /* by state */
    unsigned char *keys; /* by finished state: the most keys that end on one path from it */
};

struct frame {
    uint32_t state;
    uint32_t unit; /* of the next step to try, plus 1 */
    int keys;
};

static uint32_t charsmap_unit_at(const struct walk *w, uint32_t i)
{
    return load_u32(w->trie + (size_t)i * 4);
}

static uint32_t charsmap_unit_offset(uint32_t u)
{
    return (u >> 10) << ((u & (1u << 9)) >> 6);
}

static int bad_unit(const struct walk *w, uint32_t i, struct err *e, const char *what)
{
    return err_set(e, ERR_DATA, "%s: unit %u of the normalizer's trie at byte %llu %s", w->name, i,
                   (unsigned long long)(w->offset + 4 + (uint64_t)i * 4), what);
}

/* Checks the replacement that unit i refers to: inside the strings, and UTF-8 (the last NUL ends
 * it). */
static int check_target(const struct walk *w, uint32_t i, struct err *e)
{
    uint32_t target = charsmap_unit_at(w, i) & 0x7fffffffu;
    if (target >= w->text_size)
        return bad_unit(w, i, e, "names a replacement beyond the end of the strings");
    const char *s = (const char *)w->text + target, *end = (const char *)w->text + w->text_size;
    while (*s) {
        size_t k = utf8_char(s, end);
        if (!k)
            return bad_unit(w, i, e, "names a replacement that is not UTF-8");
        s += k;
    }
    return 0;
}

/* The state after unit i; `from` is the unit's index. */
static int follow(const struct walk *w, uint32_t i, uint32_t *ret, struct err *e)
{
    *ret = i ^ charsmap_unit_offset(charsmap_unit_at(w, i));
    return (*ret | 0xff) < w->units ? 0 : bad_unit(w, i, e, "leads out of the trie");
}

/* A unit of label c is a step from one state alone, its index ^ c. */
static void find_steps(struct walk *w)
{
    for (size_t i = w->units; i-- > 0;) {
        uint32_t label = charsmap_unit_at(w, (uint32_t)i) & 0x800000ffu;
        size_t state = i ^ label;
        if (label > 255 || state >= w->units)
            continue;
        w->next[i] = w->first[state];
        w->first[state] = (uint32_t)i + 1;
    }
}

static struct frame charsmap_begin(const struct walk *w, uint32_t state)
{
    return (struct frame){.state = state, .unit = w->first[state]};
}

/* Tries the steps of the top frame from f->unit on; *ret_next is a new state to descend to, or -1
 * when all are done. */
static int step(struct walk *w, struct frame *f, int64_t *ret_next, struct err *e)
{
    *ret_next = -1;
    for (; f->unit; f->unit = w->next[f->unit - 1]) {
        uint32_t i = f->unit - 1, u = charsmap_unit_at(w, i), to;
        int code = follow(w, i, &to, e);
        bool ends = (u >> 8) & 1;
        if (!code && ends)
            code = check_target(w, to, e);
        if (code)
            return code;
        if (w->mark[to] == OPEN)
            return bad_unit(w, i, e, "leads back to a state on its own path");
        if (w->mark[to] == NEW) {
            *ret_next = to;
            return 0;
        }
        int keys = w->keys[to] + ends;
        if (keys > RULE_DEPTH)
            return bad_unit(w, i, e, "makes more than 32 keys prefixes of one text");
        f->keys = keys > f->keys ? keys : f->keys;
    }
    return 0;
}

static int walk_trie(struct walk *w, struct frame *stack, struct err *e)
{
    uint32_t root;
    int code = follow(w, 0, &root, e);
    if (code)
        return code;
    size_t depth = 1;
    stack[0] = charsmap_begin(w, root);
    w->mark[root] = OPEN;
    while (depth) {
        int64_t next;
        struct frame *f = &stack[depth - 1];
        code = step(w, f, &next, e);
        if (code)
            return code;
        if (next >= 0) {
            w->mark[next] = OPEN;
            stack[depth++] = charsmap_begin(w, (uint32_t)next);
        } else {
            w->mark[f->state] = DONE;
            w->keys[f->state] = (unsigned char)f->keys;
            depth--;
        }
    }
    return 0;
}

int sp_check_charsmap(const char *name, uint64_t offset, const unsigned char *p, size_t n,
                      struct err *e)
{
    uint32_t size = n >= 4 ? load_u32(p) : 0;
    if (n < 4 || size > n - 4 || size % 4 || size / 4 < 256)
        return err_set(
            e, ERR_DATA,
            "%s: the normalizer's rules at byte %llu (%zu bytes) do not hold a trie of the "
            "size they state (%u)",
            name, (unsigned long long)offset, n, size);
    if (size / 4 > UNIT_MAX)
        return err_set(e, ERR_DATA,
                       "%s: the normalizer's trie at byte %llu has %u units, more "
                       "than the %d that are read",
                       name, (unsigned long long)offset, size / 4, UNIT_MAX);
    struct walk w = {.name = name,
                     .offset = offset,
                     .trie = p + 4,
                     .text = p + 4 + size,
                     .units = size / 4,
                     .text_size = n - 4 - size};
    if (!w.text_size || w.text[w.text_size - 1])
        return err_set(e, ERR_DATA,
                       "%s: the normalizer's replacements at byte %llu do not end "
                       "in a zero byte",
                       name, (unsigned long long)(offset + 4 + size));
    w.mark = mem_new(w.units, 1);
    w.keys = mem_new(w.units, 1);
    w.first = mem_new(w.units, sizeof(*w.first));
    w.next = mem_new(w.units, sizeof(*w.next));
    find_steps(&w);
    /* every open state has one frame, and there are at most as many as units */
    struct frame *stack = mem_new(w.units + 1, sizeof(*stack));
    int code = walk_trie(&w, stack, e);
    free(stack);
    free(w.first);
    free(w.next);
    free(w.keys);
    free(w.mark);
    return code;
}
