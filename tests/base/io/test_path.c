/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/path.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
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
    T_ERR(file_read(in(dir, "a"), 4, &b, &e), &e, ERR_DATA, "a: larger than 4 bytes");
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

/* Nothing here may wait for the pipe's writer, or read the device to its end. */
static void plain_files(void)
{
    struct err e;
    struct buf b = {0};
    int fd;
    uint64_t size;
    const char *dir = fresh_dir("d");
    T_OK(file_replace(in(dir, "a"), "abc", 3, &e), &e);
    T_EQ(symlink(in(dir, "a"), in(dir, "link")), 0);
    T_OK(file_read_plain(in(dir, "link"), 3, &b, &e), &e);
    T_MEM(b.data, "abc", 4);
    buf_finish(&b);
    T_OK(file_open_plain(in(dir, "a"), 3, &fd, &size, &e), &e);
    T_EQ(size, 3);
    close(fd);
    T_ERR(file_read_plain(in(dir, "a"), 2, &b, &e), &e, ERR_DATA, "a: larger than 2 bytes");
    T_ERR(file_read_plain(dir, 9, &b, &e), &e, ERR_DATA, "is a folder, expected a regular file");
    T_ERR(file_read_plain(in(dir, "b"), 9, &b, &e), &e, ERR_IO, "b: cannot open: No such file");
    T_EQ(mkfifo(in(dir, "pipe"), 0600), 0);
    T_ERR(file_read_plain(in(dir, "pipe"), 9, &b, &e), &e, ERR_DATA, "pipe: is a pipe");
    T_ERR(file_open_plain(in(dir, "pipe"), 9, &fd, NULL, &e), &e, ERR_DATA, "pipe: is a pipe");
    T_EQ(symlink("/dev/zero", in(dir, "zero")), 0);
    T_ERR(file_read_plain(in(dir, "zero"), 9, &b, &e), &e, ERR_DATA, "zero: is a device");
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
    T_ERR(file_mkdirs(in(dir, "x/file"), &e), &e, ERR_IO, "x/file: exists but is not a directory");
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

static void folders_taken_back(void)
{
    struct err e;
    const char *dir = fresh_dir("d");
    T_OK(file_mkdirs(in(dir, "there"), &e), &e);
    T_CHECK(!file_first_missing(in(dir, "there/")));
    char *first = file_first_missing(in(dir, "there/a/b//c/"));
    T_STR(first, in(dir, "there/a"));
    T_OK(file_mkdirs(in(dir, "there/a/b//c/"), &e), &e);
    file_prune(in(dir, "there/a/b//c/"), NULL);
    T_CHECK(file_is_dir(in(dir, "there/a/b/c")));
    T_OK(file_replace(in(dir, "there/a/file"), "text", 4, &e), &e);
    file_prune(in(dir, "there/a/b//c/"), first);
    T_CHECK(file_exists(in(dir, "there/a/file")) && !file_exists(in(dir, "there/a/b")));
    T_EQ(unlink(in(dir, "there/a/file")), 0);
    file_prune(in(dir, "there/a/b//c/"), first);
    T_CHECK(file_is_dir(in(dir, "there")) && !file_exists(in(dir, "there/a")));
    free(first);
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

static void put_names(const char *dir, const char *const *name, size_t n)
{
    struct err e;
    for (size_t i = 0; i < n; i++) {
        char *folder = path_dir(in(dir, name[i]));
        T_OK(file_mkdirs(folder, &e), &e);
        T_OK(file_replace(in(dir, name[i]), "x", 1, &e), &e);
        free(folder);
    }
}

/* What `asked`, below dir, expands to: the names below dir, with a space after each. */
static void expect_names(const char *dir, const char *asked, bool folders, const char *want)
{
    struct err e;
    struct buf all = {0};
    char **got, *name = *asked ? mem_strdup(in(dir, asked)) : mem_strdup(dir);
    const char *list = name;
    size_t n;
    struct names_passed passed;
    T_OK(names_expand(&list, 1, folders ? &passed : NULL, &got, &n, &e), &e);
    if (folders)
        free(passed.first);
    for (size_t i = 0; i < n; i++)
        buf_addf(&all, "%s ", got[i] + strlen(dir) + 1);
    T_STR(buf_str(&all), want);
    names_free(got, n);
    buf_finish(&all);
    free(name);
}

static void folders_are_their_files(void)
{
    static const char *const name[] = {"s/b/z", "s/b.txt",  "s/a",        "s/.hidden",
                                       "s/B",   "s/.git/x", "other/file", "empty/.keep"};
    struct err e;
    struct names_passed passed;
    char **got;
    size_t n;
    const char *dir = fresh_dir("d"), *list;
    put_names(dir, name, sizeof(name) / sizeof(*name));
    expect_names(dir, "s", true, "s/B s/a s/b.txt s/b/z "); /* '.' is before '/' */
    expect_names(dir, "s/b*", true, "s/b/z s/b.txt ");
    T_EQ(symlink(in(dir, "other"), in(dir, "s/link")), 0);
    T_EQ(symlink("..", in(dir, "s/b/loop")), 0);
    expect_names(dir, "s", true, "s/B s/a s/b.txt s/b/z s/link/file ");
    T_EQ(mkfifo(in(dir, "s/fifo"), 0600), 0);
    expect_names(dir, "s/", true, "s/B s/a s/b.txt s/b/z s/link/file ");
    list = in(dir, "empty");
    T_ERR(names_expand(&list, 1, &passed, &got, &n, &e), &e, ERR_IO, "this folder has no files");
    list = in(dir, "s");
    T_ERR(names_expand(&list, 1, NULL, &got, &n, &e), &e, ERR_IO, "s: is a folder, not a file");
    T_CHECK(strstr(e.hint, "/s/*'"));
}

static void documents_are_known_by_their_names(void)
{
    static const char *const yes[] = {"a.jsonl",    "x/b.json.gz", "c.txt.zst", "d.parquet",
                                      "part-00000", "e.ndjson",    "f.v2.text", "g.zst",
                                      "h.tsv.xz",   "README.txt"};
    static const char *const no[] = {"README.md",   "README",     "x/LICENSE",
                                     "a.jsonl.tmp", "b.py",       "_SUCCESS",
                                     "c.jsonl.bz2", "LICENSE.gz", "d.idx"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
        T_STR(path_holds_documents(yes[i]) ? yes[i] : "not known", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
        T_STR(path_holds_documents(no[i]) ? "known" : no[i], no[i]);
}

static void what_is_passed_over_is_counted(void)
{
    static const char *const name[] = {"s/z.md", "s/a.jsonl", "s/README.md", "s/b/x.py",
                                       "none/a.md"};
    struct err e;
    struct names_passed passed;
    char **got;
    size_t n;
    const char *dir = fresh_dir("d"), *list;
    put_names(dir, name, sizeof(name) / sizeof(*name));
    list = in(dir, "s");
    T_OK(names_expand(&list, 1, &passed, &got, &n, &e), &e);
    T_EQ(n, 1);
    T_EQ(passed.n, 3);
    T_STR(passed.first, in(dir, "s/README.md"));
    free(passed.first);
    names_free(got, n);
    list = in(dir, "none");
    T_ERR(names_expand(&list, 1, &passed, &got, &n, &e), &e, ERR_IO, "no files of documents");
    T_CHECK(strstr(e.msg, "none/a.md") && strstr(e.hint, "/none/*'"));
}

static void addresses_name_the_pipe(void)
{
    struct err e;
    char **got;
    size_t n;
    const char *list = "s3://bucket/a.jsonl";
    T_ERR(names_expand(&list, 1, NULL, &got, &n, &e), &e, ERR_IO, "is an address, not a file");
    T_STR(e.hint, "pipe it in: aws s3 cp 's3://bucket/a.jsonl' - | ... -");
    T_ERR(path_refuse_address("s3://bucket/run", &e), &e, ERR_IO, "nothing is fetched");
    T_STR(e.hint, "fetch it first: aws s3 cp --recursive 's3://bucket/run' FOLDER; then name what "
                  "is there");
    T_ERR(path_refuse_address("https://huggingface.co/org/model-1.5", &e), &e, ERR_IO, "address");
    T_CHECK(strstr(e.hint, "huggingface-cli download org/model-1.5 --local-dir FOLDER;"));
    T_ERR(path_refuse_address("https://huggingface.co/m/resolve/main/a.json", &e), &e, ERR_IO, "");
    T_CHECK(strstr(e.hint, "curl -fLO 'https://huggingface.co/m/resolve/main/a.json';"));
    T_OK(path_refuse_address("s3", &e), &e);
}

static void names_that_exist_are_no_patterns(void)
{
    static const char *const name[] = {"[x].jsonl", "x.jsonl", "a*", "ab"};
    struct err e;
    char **got;
    size_t n;
    const char *dir = fresh_dir("d"), *const both[] = {"-", in(dir, "ab"), "-"};
    put_names(dir, name, sizeof(name) / sizeof(*name));
    expect_names(dir, "[x].jsonl", false, "[x].jsonl ");
    expect_names(dir, "a*", false, "a* ");
    expect_names(dir, "?b", false, "ab ");
    T_EQ(unlink(in(dir, "[x].jsonl")), 0);
    expect_names(dir, "[x].jsonl", false, "x.jsonl ");
    T_OK(names_expand(both, 3, NULL, &got, &n, &e), &e);
    T_EQ(n, 3);
    T_STR(got[0], "-");
    T_STR(got[2], "-");
    names_free(got, n);
}

T_MAIN(T_CASE(whole_files), T_CASE(plain_files), T_CASE(folders), T_CASE(folders_taken_back),
       T_CASE(parts_of_paths), T_CASE(patterns), T_CASE(folders_are_their_files),
       T_CASE(documents_are_known_by_their_names), T_CASE(what_is_passed_over_is_counted),
       T_CASE(addresses_name_the_pipe), T_CASE(names_that_exist_are_no_patterns))
