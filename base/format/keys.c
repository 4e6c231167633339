/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"

const struct key_field *key_find(const struct key_field *f, const char *name, size_t n)
{
    for (size_t i = 0; i < f->ninner; i++)
        if (f->inner[i].n == n && !memcmp(f->inner[i].name, name, n))
            return &f->inner[i];
    return NULL;
}

static struct key_field *find_or_add(struct key_field *f, const char *name, size_t n)
{
    const struct key_field *there = key_find(f, name, n);
    if (there)
        return f->inner + (there - f->inner);
    f->inner = mem_grow(f->inner, f->ninner + 1, sizeof(*f->inner));
    f->inner[f->ninner] = (struct key_field){.name = mem_strndup(name, n), .n = n};
    return &f->inner[f->ninner++];
}

/* The next name of a path, unescaped; the rest of the path, or NULL. */
static const char *next_name(const char *p, struct buf *name)
{
    buf_reset(name);
    for (; *p && *p != '.'; p++) {
        p += p[0] == '\\' && p[1] == '.';
        buf_addc(name, *p);
    }
    buf_str(name);
    return *p ? p + 1 : NULL;
}

static void keys_add(struct key_tree *t, const char *path, size_t number)
{
    struct buf name = {0};
    struct key_field *f = &t->root;
    size_t depth = 0;
    do {
        path = next_name(path, &name);
        f = find_or_add(f, name.data, name.len);
        t->longest = name.len > t->longest ? name.len : t->longest;
        depth++;
    } while (path);
    t->depth = depth > t->depth ? depth : t->depth;
    f->key = mem_grow(f->key, f->nkeys + 1, sizeof(*f->key));
    f->key[f->nkeys++] = number;
    buf_finish(&name);
}

void key_tree_init(struct key_tree *t, const char *const *key, size_t n)
{
    *t = (struct key_tree){0};
    for (size_t k = 0; k < n; k++)
        keys_add(t, key[k], k);
}

static void keys_finish(struct key_field *f)
{
    for (size_t i = 0; i < f->ninner; i++)
        keys_finish(&f->inner[i]);
    free(f->inner);
    free(f->name);
    free(f->key);
}

void key_tree_finish(struct key_tree *t)
{
    keys_finish(&t->root);
    *t = (struct key_tree){0};
}
