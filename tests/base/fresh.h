/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BASE_FRESH_H
#define TESTS_BASE_FRESH_H

/* A folder for one case, and paths in it. */

#include <stdio.h>

#include "base/io/path.h"
#include "tests/t.h"

static inline void expect_text(const char *path, const char *want)
{
    struct err e;
    struct buf b = {0};
    T_OK(file_read(path, 100, &b, &e), &e);
    T_STR(b.data, want);
    buf_finish(&b);
}

static inline const char *fresh_dir(const char *name)
{
    struct err e;
    const char *dir = t_path(name);
    T_OK(file_remove_tree(dir, &e), &e);
    T_OK(file_mkdirs(dir, &e), &e);
    return dir;
}

/* Lives until the next call but one. */
static inline char *in(const char *dir, const char *name)
{
    static char path[2][512];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

#endif
