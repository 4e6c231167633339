/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/output.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "tests/base/fresh.h"

static const struct output_rule keep = {0}, replace = {.overwrite = true};

static void put(const char *path)
{
    struct err e;
    T_OK(file_replace(path, "old", 3, &e), &e);
}

static void what_exists_is_an_error_unless_overwritten(void)
{
    struct err e;
    const char *file = t_path("there"), *dangling = t_path("dangling");
    put(file);
    T_OK(output_check(t_path("missing"), &keep, &e), &e);
    T_OK(output_check(t_path("no/such/folder/x"), &keep, &e), &e);
    T_ERR(output_check(file, &keep, &e), &e, ERR_USAGE, "there: already exists");
    T_CHECK(strstr(e.hint, "--overwrite"));
    T_OK(output_check(file, &replace, &e), &e);
    T_EQ(symlink("nowhere", dangling), 0);
    T_ERR(output_check(dangling, &keep, &e), &e, ERR_USAGE, "dangling: already exists");
    T_OK(output_check(dangling, &replace, &e), &e);
    expect_text(file, "old");
}

static void all_suffixes_are_looked_at(void)
{
    struct err e;
    static const char *const suffix[] = {".bin", ".idx", NULL};
    const char *prefix = t_path("set");
    T_OK(output_check_all(prefix, suffix, &keep, &e), &e);
    put(t_path("set.idx"));
    T_ERR(output_check_all(prefix, suffix, &keep, &e), &e, ERR_USAGE, "set.idx: already exists");
    T_OK(output_check_all(prefix, suffix, &replace, &e), &e);
}

static void an_input_is_never_an_output(void)
{
    struct err e;
    const char *file = t_path("in"), *hard = t_path("hard"), *soft = t_path("soft");
    const char *again = t_path("./in"), *other = t_path("other");
    put(file);
    put(other);
    T_EQ(link(file, hard), 0);
    T_EQ(symlink("in", soft), 0);
    const char *const inputs[] = {NULL, other, t_path("missing"), file};
    struct output_rule r = {.overwrite = true, .input = inputs, .ninputs = 4};
    const char *const names[] = {hard, soft, again};
    for (int i = 0; i < 2; i++, r.overwrite = false) {
        T_ERR(output_check(file, &r, &e), &e, ERR_USAGE, "in: is both an input and the output");
        T_CHECK(!strstr(e.hint, "--overwrite"));
        for (int k = 0; k < 3; k++)
            T_ERR(output_check(names[k], &r, &e), &e, ERR_USAGE, "is the same file as the input");
    }
    r.overwrite = true;
    r.ninputs = 3;
    T_OK(output_check(file, &r, &e), &e);
}

static void standard_input_is_an_input(void)
{
    struct err e;
    const char *file = t_path("stdin"), *const dash[] = {"-"};
    const struct output_rule r = {.overwrite = true, .input = dash, .ninputs = 1};
    put(file);
    int saved = dup(STDIN_FILENO), fd = open(file, O_RDONLY);
    dup2(fd, STDIN_FILENO);
    int code = output_check(file, &r, &e);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    T_ERR(code, &e, ERR_USAGE, "is the same file as the input on standard input");
}

static void streams_are_exempt(void)
{
    struct err e;
    const char *fifo = t_path("fifo");
    const char *const inputs[] = {"/dev/null", fifo};
    const struct output_rule r = {.input = inputs, .ninputs = 2};
    T_EQ(mkfifo(fifo, 0600), 0);
    T_OK(output_check(fifo, &r, &e), &e);
    T_OK(output_check("/dev/null", &r, &e), &e);
    T_OK(output_check("-", &r, &e), &e);
    T_OK(output_check(NULL, &r, &e), &e);
    T_OK(output_prepare("/dev/null", &e), &e);
    T_OK(output_prepare("-", &e), &e);
    T_OK(output_prepare(NULL, &e), &e);
}

static void a_folder_is_no_file(void)
{
    struct err e;
    const char *folder = t_path("folder");
    T_EQ(mkdir(folder, 0700), 0);
    T_ERR(output_check(folder, &replace, &e), &e, ERR_USAGE,
          "folder: is a folder, but the output is a file");
    T_ERR(output_check(t_path("x/"), &replace, &e), &e, ERR_USAGE,
          "x/: names a folder, but the output is a file");
    T_ERR(output_check("", &replace, &e), &e, ERR_USAGE, "'': names nothing");
}

static void a_prefix_has_a_last_part(void)
{
    struct err e;
    T_OK(output_check_prefix("output-prefix", "out/x", &e), &e);
    T_OK(output_check_prefix("output-prefix", "x", &e), &e);
    T_ERR(output_check_prefix("output-prefix", "out/", &e), &e, ERR_USAGE,
          "--output-prefix: 'out/' names a folder");
    T_CHECK(strstr(e.hint, "--output-prefix out/NAME"));
    T_ERR(output_check_prefix("model_prefix", "", &e), &e, ERR_USAGE,
          "--model_prefix: '' names nothing");
}

static void parents_are_made(void)
{
    struct err e;
    T_OK(output_prepare(t_path("a/b/c/file"), &e), &e);
    T_CHECK(file_is_dir(t_path("a/b/c")) && !file_exists(t_path("a/b/c/file")));
    T_OK(output_prepare(t_path("a/b/c/file"), &e), &e);
    T_OK(output_prepare("file", &e), &e);
    put(t_path("a/plain"));
    T_ERR(output_prepare(t_path("a/plain/x"), &e), &e, ERR_IO, "a/plain");
}

static void a_closed_folder_is_named(void)
{
    struct err e;
    const char *folder = t_path("closed");
    if (!geteuid())
        t_skip("root may write everywhere");
    T_EQ(mkdir(folder, 0500), 0);
    T_ERR(output_prepare(t_path("closed/x"), &e), &e, ERR_IO, "closed: cannot write there");
}

T_MAIN(T_CASE(what_exists_is_an_error_unless_overwritten), T_CASE(all_suffixes_are_looked_at),
       T_CASE(an_input_is_never_an_output), T_CASE(standard_input_is_an_input),
       T_CASE(streams_are_exempt), T_CASE(a_folder_is_no_file), T_CASE(a_prefix_has_a_last_part),
       T_CASE(parents_are_made), T_CASE(a_closed_folder_is_named))
