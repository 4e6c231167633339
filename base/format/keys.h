/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_KEYS_H
#define BASE_FORMAT_KEYS_H

/*
 * Keys to find in records, as a tree: "a.b.c" is the field c of the object b of the
 * object a, "a\.b" a field whose name has a dot. Immutable once made, so threads may share it.
 */

#include <stddef.h>

struct key_field {
    char *name; /* NULL at the root */
    size_t n;   /* bytes of it */
    struct key_field *inner;
    size_t ninner;
    size_t *key; /* which of the keys end here */
    size_t nkeys;
};

struct key_tree {
    struct key_field root;
    size_t depth;   /* names of the longest path */
    size_t longest; /* bytes of the longest name */
};

void key_tree_init(struct key_tree *t, const char *const *key, size_t n);
void key_tree_finish(struct key_tree *t);

/* The field of that name inside f, or NULL. */
const struct key_field *key_find(const struct key_field *f, const char *name, size_t n);

#endif
