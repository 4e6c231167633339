/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/keys.h"

#include <string.h>

#include "tests/t.h"

static const struct key_field *find(const struct key_field *f, const char *name)
{
    return key_find(f, name, strlen(name));
}

static void paths_share_their_beginnings(void)
{
    static const char *const key[] = {"a.b", "text", "a", "a.c.d", "a.b"};
    struct key_tree t;
    key_tree_init(&t, key, 5);
    T_EQ(t.depth, 3);
    T_EQ(t.longest, 4);
    T_EQ(t.root.ninner, 2);
    const struct key_field *a = find(&t.root, "a"), *b = find(a, "b");
    T_EQ(a->nkeys, 1);
    T_EQ(a->key[0], 2);
    T_EQ(a->ninner, 2);
    T_EQ(b->nkeys, 2);
    T_EQ(b->key[1], 4);
    T_EQ(find(find(a, "c"), "d")->key[0], 3);
    T_CHECK(!find(&t.root, "b"));
    T_CHECK(!find(&t.root, "tex"));
    T_CHECK(!find(a, "text"));
    key_tree_finish(&t);
}

static void dots_and_backslashes(void)
{
    static const char *const key[] = {"a\\.b", "c\\d", "", "e."};
    struct key_tree t;
    key_tree_init(&t, key, 4);
    T_EQ(find(&t.root, "a.b")->key[0], 0);
    T_EQ(find(&t.root, "c\\d")->key[0], 1);
    T_EQ(find(&t.root, "")->key[0], 2);
    T_EQ(find(find(&t.root, "e"), "")->key[0], 3);
    key_tree_finish(&t);
}

T_MAIN(T_CASE(paths_share_their_beginnings), T_CASE(dots_and_backslashes))
