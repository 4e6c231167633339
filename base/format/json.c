/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/json.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/format/json_walk.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { MAX_DEPTH = 64, PADDING = 64 };

struct member;

struct json_doc {
    struct buf text;    /* strings without escapes lie here, */
    struct arena arena; /* the others here, as do the nodes */
    struct json root;
    struct json_scan *scan; /* this and the stack are kept by json_again only */
    struct member *stack;
    size_t stack_cap;
};

struct member {
    struct json v;
    size_t at; /* where its key or value begins */
};

/* Builds the tree. Members stay on a stack until their number is known. */
struct builder {
    struct json_walk w;
    struct json_doc *doc;
    char *text; /* doc's, writable */
    struct member *stack;
    size_t n, cap;
};

static void json_push(struct builder *b, const struct member *m)
{
    ARRAY_GROW(b->stack, b->n, b->cap);
    b->stack[b->n++] = *m;
}

static int json_take_text(struct builder *b, const char **ret, size_t *ret_n)
{
    const char *s;
    size_t n;
    bool escaped;
    int rc = json_take_string(&b->w, &s, &n, &escaped);
    if (rc)
        return rc;
    char *dst = b->text + (s - b->text);
    if (escaped) {
        dst = arena_take(&b->doc->arena, n + JSON_SLACK, 1);
        if ((rc = json_unescape(&b->w, dst, s, n, &n)))
            return rc;
    }
    dst[n] = '\0'; /* in place of the closing quote, which is no longer needed */
    *ret = dst;
    *ret_n = n;
    return 0;
}

static void set_number(struct json *v, const char *s, size_t n, char kind)
{
    if (kind == 'i' && json_int(s, n, &v->integer)) {
        v->kind = JSON_INT;
        v->real = !v->integer && s[0] == '-' ? -0.0 : (double)v->integer;
        return;
    }
    v->kind = JSON_REAL;
    v->real = strtod(s, NULL); /* the token ends in a byte that ends the number for strtod, too */
    if (v->real >= -0x1p63 && v->real < 0x1p63)
        v->integer = (int64_t)v->real;
}

static int take_scalar(struct builder *b, struct json *v)
{
    const char *s;
    size_t n;
    char kind;
    int rc = json_take_scalar(&b->w, &s, &n, &kind);
    if (rc)
        return rc;
    if (kind == 't' || kind == 'f') {
        v->kind = JSON_BOOL;
        v->boolean = kind == 't';
    } else if (kind != 'n') {
        set_number(v, s, n, kind);
    }
    return 0;
}

/* ---- duplicate keys: an open-addressed table of the members' keys ---- */

static uint64_t key_hash(const struct json *v)
{
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < v->key_length; i++)
        h = (h ^ (unsigned char)v->key[i]) * 0x100000001b3;
    return h ^ h >> 29;
}

static bool same_key(const struct json *a, const struct json *b)
{
    return a->key_length == b->key_length && !memcmp(a->key, b->key, a->key_length);
}

static const struct member *duplicate(const struct member *m, size_t n)
{
    size_t cap = 16;
    while (cap < n * 2)
        cap *= 2;
    const struct member **slot = mem_new(cap, sizeof(*slot)), *found = NULL;
    for (size_t i = 0; i < n && !found; i++) {
        size_t at = key_hash(&m[i].v) & (cap - 1);
        while (slot[at] && !same_key(&slot[at]->v, &m[i].v))
            at = (at + 1) & (cap - 1);
        if (slot[at])
            found = &m[i];
        slot[at] = &m[i];
    }
    free(slot);
    return found;
}

/* ---- the tree ---- */

static int take_value(struct builder *b, struct json *ret);

static int take_key(struct builder *b, struct json *v)
{
    if (json_peek(&b->w) != '"')
        return json_expected(&b->w, "a key in quotes");
    int rc = json_take_text(b, &v->key, &v->key_length);
    return rc ? rc : json_take(&b->w, ':', "':' after a key");
}

static int take_members(struct builder *b, bool object)
{
    char close = object ? '}' : ']';
    b->w.i++;
    if (json_peek(&b->w) == close) {
        b->w.i++;
        return 0;
    }
    for (;;) {
        struct member m = {.at = b->w.at[b->w.i]};
        int rc = object ? take_key(b, &m.v) : 0;
        if (!rc)
            rc = take_value(b, &m.v);
        if (rc)
            return rc;
        json_push(b, &m);
        if (json_peek(&b->w) == close) {
            b->w.i++;
            return 0;
        }
        if ((rc = json_take(&b->w, ',', object ? "',' or '}'" : "',' or ']'")))
            return rc;
    }
}

static int take_container(struct builder *b, struct json *ret)
{
    bool object = json_peek(&b->w) == '{';
    size_t first = b->n, at = b->w.at[b->w.i];
    if (b->w.depth >= b->w.max_depth)
        return err_set(b->w.e, ERR_DATA, "byte %zu: nested deeper than %u", at, b->w.max_depth);
    b->w.depth++;
    int rc = take_members(b, object);
    if (rc)
        return rc;
    b->w.depth--;
    size_t n = b->n - first;
    const struct member *twice = object && n ? duplicate(b->stack + first, n) : NULL;
    if (twice)
        return err_set(b->w.e, ERR_DATA, "byte %zu: duplicate key \"%.100s\" in an object",
                       twice->at, twice->v.key);
    struct json *child = arena_take(&b->doc->arena, n, sizeof(*child));
    for (size_t i = 0; i < n; i++)
        child[i] = b->stack[first + i].v;
    b->n = first;
    ret->kind = object ? JSON_OBJECT : JSON_ARRAY;
    ret->child = child;
    ret->length = n;
    return 0;
}

static int take_value(struct builder *b, struct json *ret)
{
    char c = json_peek(&b->w);
    if (c == '{' || c == '[')
        return take_container(b, ret);
    if (c != '"')
        return take_scalar(b, ret);
    ret->kind = JSON_STRING;
    return json_take_text(b, &ret->string, &ret->length);
}

static int build(struct json_doc *d, struct err *e)
{
    struct builder b = {.doc = d, .text = d->text.data};
    b.w = (struct json_walk){.p = d->text.data, .max_depth = MAX_DEPTH, .e = e};
    b.stack = d->stack;
    b.cap = d->stack_cap;
    d->scan = d->scan ? d->scan : json_scan_create();
    int rc = json_scan_run(d->scan, d->text.data, d->text.len, &b.w.at, &b.w.n, e);
    if (!rc)
        rc = take_value(&b, &d->root);
    if (!rc && b.w.i < b.w.n)
        rc = json_expected(&b.w, "the end");
    d->stack = b.stack;
    d->stack_cap = b.cap;
    return rc;
}

static void drop_tools(struct json_doc *d)
{
    free(d->stack);
    json_scan_destroy(d->scan);
    d->stack = NULL;
    d->scan = NULL;
    d->stack_cap = 0;
}

/* Takes over `text`. */
static int json_finish(const char *name, struct buf *text, struct json_doc **ret, struct err *e)
{
    struct json_doc *d = mem_new(1, sizeof(*d));
    d->text = *text;
    memset(buf_reserve(&d->text, PADDING), 0, PADDING);
    int rc = build(d, e);
    drop_tools(d);
    if (rc) {
        json_close(d);
        return err_wrap(e, "%s", name), rc;
    }
    *ret = d;
    return 0;
}

static int open_by(int (*read)(const char *path, size_t max, struct buf *ret, struct err *e),
                   const char *path, size_t max, struct json_doc **ret, struct err *e)
{
    struct buf text = {0};
    int rc = read(path, max, &text, e);
    if (rc) {
        buf_finish(&text);
        return rc;
    }
    return json_finish(path, &text, ret, e);
}

int json_open(const char *path, size_t max, struct json_doc **ret, struct err *e)
{
    return open_by(file_read, path, max, ret, e);
}

int json_open_plain(const char *path, size_t max, struct json_doc **ret, struct err *e)
{
    return open_by(file_read_plain, path, max, ret, e);
}

int json_parse(const char *name, const char *p, size_t n, struct json_doc **ret, struct err *e)
{
    struct buf text = {0};
    void *room;
    int rc = mem_try(n + PADDING, 1, name, &room, e);
    if (rc)
        return rc;
    text = (struct buf){.data = room, .cap = n + PADDING};
    buf_add(&text, p, n);
    return json_finish(name, &text, ret, e);
}

int json_again(const char *name, const char *p, size_t n, struct json_doc **doc, struct err *e)
{
    struct json_doc *d = *doc ? *doc : mem_new(1, sizeof(*d));
    *doc = d;
    arena_reset(&d->arena);
    buf_reset(&d->text);
    buf_add(&d->text, p, n);
    memset(buf_reserve(&d->text, PADDING), 0, PADDING);
    d->root = (struct json){.kind = JSON_NULL};
    int rc = build(d, e);
    if (!rc)
        return 0;
    d->root = (struct json){.kind = JSON_NULL};
    return err_wrap(e, "%s", name), rc;
}

const struct json *json_root(const struct json_doc *d)
{
    return &d->root;
}

void json_close(struct json_doc *d)
{
    if (!d)
        return;
    buf_finish(&d->text);
    arena_finish(&d->arena);
    drop_tools(d);
    free(d);
}

/* ---- members ---- */

const struct json *json_get(const struct json *o, const char *key)
{
    if (!o || o->kind != JSON_OBJECT)
        return NULL;
    size_t n = strlen(key);
    for (size_t i = 0; i < o->length; i++)
        if (o->child[i].key_length == n && !memcmp(o->child[i].key, key, n))
            return &o->child[i];
    return NULL;
}

static int json_need(const struct json *o, const char *name, const char *key, enum json_kind kind,
                     const char *what, const struct json **ret, struct err *e)
{
    const struct json *v = json_get(o, key);
    if (!v)
        return err_set(e, ERR_DATA, "%s: no \"%s\", which must be %s", name, key, what);
    if (v->kind != kind)
        return err_set(e, ERR_DATA, "%s: \"%s\" is not %s", name, key, what);
    *ret = v;
    return 0;
}

int json_need_int(const struct json *o, const char *name, const char *key, int64_t *ret,
                  struct err *e)
{
    const struct json *v = NULL;
    int rc = json_need(o, name, key, JSON_INT, "a whole number", &v, e);
    if (!rc)
        *ret = v->integer;
    return rc;
}

int json_need_str(const struct json *o, const char *name, const char *key, const char **ret,
                  struct err *e)
{
    const struct json *v = NULL;
    int rc = json_need(o, name, key, JSON_STRING, "a string", &v, e);
    if (rc)
        return rc;
    if (strlen(v->string) != v->length)
        return err_set(e, ERR_DATA, "%s: \"%s\" contains a NUL", name, key);
    *ret = v->string;
    return 0;
}
