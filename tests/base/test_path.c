/* SPDX-License-Identifier: Apache-2.0 */
#include "base/path.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/base/fresh.h"
#include "tests/t.h"

static void whole_files(void)
{
    struct err e;
    struct buf b = {0};
    const char *dir = fresh_dir("d");
    T_OK(file_replace(in(dir, "a"), "ab\0cd", 5, &e), &e);
    T_OK(file_read(in(dir, "a"), 5, &b, &e), &e);
    T_EQ(b.len, 5);
    T_MEM(b.data, "ab\0cd", 6);
    buf_finish(&b);
    T_ERR(file_read(in(dir, "a"), 4, &b, &e), &e, ERR_DATA, "a: larger than the 4 bytes");
    T_CHECK(!b.data);
    T_OK(file_replace(in(dir, "a"), NULL, 0, &e), &e);
    T_OK(file_read(in(dir, "a"), 0, &b, &e), &e);
    T_EQ(b.len, 0);
    T_STR(b.data, "");
    buf_finish(&b);
    T_ERR(file_read(in(dir, "b"), 4, &b, &e), &e, ERR_IO, "b: cannot open: No such file");
    T_ERR(file_read(dir, 4, &b, &e), &e, ERR_IO, "cannot read: Is a directory");
    uint64_t size;
    T_ERR(file_size(in(dir, "b"), &size, &e), &e, ERR_IO, "b: cannot open");
}

static void folders(void)
{
    struct err e;
    const char *dir = fresh_dir("d");
    T_OK(file_mkdirs(in(dir, "x//y/z/"), &e), &e);
    T_OK(file_mkdirs(in(dir, "x/y/z"), &e), &e);
    T_CHECK(file_is_dir(in(dir, "x/y/z")));
    T_OK(file_replace(in(dir, "x/file"), "text", 4, &e), &e);
    T_CHECK(!file_is_dir(in(dir, "x/file")) && file_exists(in(dir, "x/file")));
    T_ERR(file_mkdirs(in(dir, "x/file"), &e), &e, ERR_IO, "x/file: is there, but is no folder");
    T_ERR(file_mkdirs(in(dir, "x/file/below"), &e), &e, ERR_IO, "x/file");
    T_OK(file_mkdirs(in(dir, "kept"), &e), &e);
    T_OK(file_replace(in(dir, "kept/file"), "text", 4, &e), &e);
    T_EQ(symlink(in(dir, "kept"), in(dir, "x/link")), 0);
    T_OK(file_remove_tree(in(dir, "x"), &e), &e);
    T_OK(file_remove_tree(in(dir, "x"), &e), &e);
    T_CHECK(!file_exists(in(dir, "x")));
    expect_text(in(dir, "kept/file"), "text"); /* links are removed, not followed */
    T_ERR(file_sync_dir(in(dir, "x"), &e), &e, ERR_IO, "x: cannot open the folder");
}

static void parts_of_paths(void)
{
    static const char *const cases[][3] = {
        {"a", ".", "a"}, {"a/b", "a", "b"}, {"/a", "/", "a"}, {"/a/b/c", "/a/b", "c"}};
    for (size_t i = 0; i < 4; i++) {
        char *dir = path_dir(cases[i][0]), *base = path_base(cases[i][0]);
        T_STR(dir, cases[i][1]);
        T_STR(base, cases[i][2]);
        free(dir);
        free(base);
    }
    static const char *const joins[][2] = {{"a", "a/b"}, {"a/", "a/b"}, {"/", "/b"}};
    for (size_t i = 0; i < 3; i++) {
        char *joined = path_join(joins[i][0], "b");
        T_STR(joined, joins[i][1]);
        free(joined);
    }
}

static void patterns(void)
{
    static const char *const names[] = {"b1", "B1", "a10", "a9"};
    static const char *const want[] = {"a10", "a9"};
    struct err e;
    char **got;
    size_t n;
    const char *dir = fresh_dir("d");
    for (size_t i = 0; i < 4; i++)
        T_OK(file_replace(in(dir, names[i]), "", 0, &e), &e);
    T_OK(file_glob(in(dir, "a*"), &got, &n, &e), &e);
    T_EQ(n, 2);
    for (size_t i = 0; i < 2; i++)
        T_STR(got[i], in(dir, want[i]));
    names_free(got, n);
    T_OK(file_glob(in(dir, "?1"), &got, &n, &e), &e);
    T_EQ(n, 2);
    T_STR(got[0], in(dir, "B1")); /* by bytes, not by the user's language */
    names_free(got, n);
    T_OK(file_glob(in(dir, "b1"), &got, &n, &e), &e);
    T_EQ(n, 1);
    names_free(got, n);
    T_ERR(file_glob(in(dir, "b2"), &got, &n, &e), &e, ERR_IO, "b2: no such file");
    T_ERR(file_glob(in(dir, "c*"), &got, &n, &e), &e, ERR_IO, "c*: no such file");
    names_free(NULL, 0);
}

T_MAIN(T_CASE(whole_files), T_CASE(folders), T_CASE(parts_of_paths), T_CASE(patterns))
