/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/utf8.h"
#include "base/io/path.h"
#include "tests/t.h"

static void sentence_and_code(void)
{
    struct err e;
    memset(&e, 'x', sizeof(e));
    T_EQ(err_set(&e, ERR_DATA, "%s: line %d", "a.jsonl", 7), ERR_DATA);
    T_EQ(e.code, ERR_DATA);
    T_STR(e.msg, "a.jsonl: line 7");
    T_STR(e.hint, "");
    T_EQ(err_hint(&e, "try %s", "this"), ERR_DATA);
    T_STR(e.hint, "try this");
    T_EQ(err_wrap(&e, "while reading %s", "all"), ERR_DATA);
    T_STR(e.msg, "while reading all: a.jsonl: line 7");
    T_STR(e.hint, "try this");
    T_EQ(err_set(&e, ERR_USAGE, "other"), ERR_USAGE);
    T_STR(e.hint, "");
}

static void what_a_caller_has_to_know_is_a_field(void)
{
    struct err e;
    memset(&e, 'x', sizeof(e));
    err_set(&e, ERR_DATA, "byte 7");
    T_EQ(e.kind, ERR_KIND_NONE);
    T_EQ(e.finder, ERR_FOUND_HERE);
    T_EQ(e.step, 0);
    T_EQ(err_mark(&e, ERR_KIND_CR_LINES), ERR_DATA);
    e.finder = ERR_FOUND_BY_JOB;
    e.step = 5;
    err_wrap(&e, "a.jsonl");
    err_hint(&e, "convert it");
    T_EQ(e.kind, ERR_KIND_CR_LINES);
    T_EQ(e.finder, ERR_FOUND_BY_JOB);
    T_EQ(e.step, 5);
    err_sys(&e, ENOENT, "a");
    T_EQ(e.kind, ERR_KIND_NONE);
    T_EQ(e.finder, ERR_FOUND_HERE);
    T_EQ(e.step, 0);
    T_EQ(err_mark(NULL, ERR_KIND_CR_LINES), ERR_FAIL);
}

static void system_errors(void)
{
    struct err e;
    T_EQ(err_sys(&e, ENOENT, "%s: cannot open", "a"), ERR_IO);
    T_STR(e.msg, "a: cannot open: No such file or directory");
    T_EQ(e.code, ERR_IO);
    T_EQ(err_sys(&e, ENOMEM, "a"), ERR_RESOURCE);
    T_EQ(e.code, ERR_RESOURCE);
}

static void the_limit_on_files_is_named(void)
{
    struct err e;
    struct rlimit was, r;
    T_EQ(getrlimit(RLIMIT_FSIZE, &was), 0);
    r = was;
    r.rlim_cur = 1 << 30;
    T_EQ(setrlimit(RLIMIT_FSIZE, &r), 0);
    T_EQ(err_sys(&e, EFBIG, "a: cannot write"), ERR_IO);
    T_CHECK(strstr(e.hint, "1073741824 bytes") && strstr(e.hint, "ulimit -f"));
    r.rlim_cur = RLIM_INFINITY;
    if (was.rlim_max == RLIM_INFINITY) {
        T_EQ(setrlimit(RLIMIT_FSIZE, &r), 0);
        T_EQ(err_sys(&e, EFBIG, "a: cannot write"), ERR_IO);
        T_STR(e.hint, "");
    }
    T_EQ(setrlimit(RLIMIT_FSIZE, &was), 0);
}

static void the_limit_on_open_files_is_named(void)
{
    struct err e;
    struct rlimit was, r;
    T_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    r = was;
    r.rlim_cur = 100;
    T_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    T_ERR(err_sys(&e, EMFILE, "a: cannot open"), &e, ERR_RESOURCE, "a: cannot open");
    T_STR(e.hint, "the limit is 100 open files: raise it with 'ulimit -n 1024'");
    T_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
    T_EQ(err_sys(&e, ENFILE, "a: cannot open"), ERR_RESOURCE);
    T_CHECK(strstr(e.hint, "fs.file-max"));
}

static void nobody_listens(void)
{
    T_EQ(err_set(NULL, ERR_DATA, "x"), ERR_DATA);
    T_EQ(err_sys(NULL, ENOENT, "x"), ERR_IO);
    T_CHECK(err_wrap(NULL, "x") != 0);
    T_CHECK(err_hint(NULL, "x") != 0);
}

static void long_sentences_are_cut(void)
{
    struct err e;
    char big[3000];
    for (size_t i = 0; i + 1 < sizeof(big); i++)
        big[i] = i % 10 == 9 ? ' ' : 'a';
    big[sizeof(big) - 1] = '\0';
    T_EQ(err_set(&e, ERR_DATA, "%s", big), ERR_DATA);
    T_EQ(strlen(e.msg), sizeof(e.msg) - 1);
    T_EQ(err_wrap(&e, "%s", big), ERR_DATA);
    T_EQ(strlen(e.msg), sizeof(e.msg) - 1);
    T_EQ(err_sys(&e, EIO, "%s", big), ERR_IO);
    T_EQ(strlen(e.msg), sizeof(e.msg) - 1);
    T_EQ(err_hint(&e, "%s", big), ERR_IO);
    T_EQ(strlen(e.hint), sizeof(e.hint) - 1);
}

/* A path of thousands of bytes leaves room for what is wrong with it. */
static void long_words_are_cut_in_their_middle(void)
{
    struct err e;
    char path[5001], want[400];
    for (size_t i = 0; i < 5000; i++)
        path[i] = i < 2500 ? 'a' : 'b';
    path[5000] = '\0';
    snprintf(want, sizeof(want), "%.200s...%.100s", path, path + 4900);
    T_EQ(err_sys(&e, ENOENT, "%s: cannot open", path), ERR_IO);
    T_CHECK(!strncmp(e.msg, want, 302)); /* the colon is of the word */
    T_CHECK(strstr(e.msg, "bbb: cannot open: No such file") != NULL);
    T_EQ(err_wrap(&e, "%s", path), ERR_IO);
    T_CHECK(strstr(e.msg, "bbb: aaa") != NULL);
    for (size_t i = 0; i + 1 < sizeof(path); i += 2)
        memcpy(path + i, "\xc3\xa9", 2);
    err_set(&e, ERR_DATA, "x%s is wrong", path);
    T_EQ(utf8_invalid(e.msg, strlen(e.msg)), 0);
    T_CHECK(strstr(e.msg, " is wrong") != NULL);
}

/* The arguments may point into the error that is being written. */
static void arguments_from_itself(void)
{
    struct err e;
    err_set(&e, ERR_DATA, "inner");
    T_EQ(err_set(&e, ERR_USAGE, "outer(%s)", e.msg), ERR_USAGE);
    T_STR(e.msg, "outer(inner)");
    err_wrap(&e, "%s", e.msg);
    T_STR(e.msg, "outer(inner): outer(inner)");
}

static void bugs_abort_with_place_and_values(void)
{
    struct err e;
    struct buf said = {0};
    const char *path = t_path("stderr");
    pid_t child = fork();
    if (!child) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        BUG_ON(1 + 1 == 3, "not this");
        BUG_ON(1 + 1 == 2, "the value is %d", 42);
        _exit(0);
    }
    int status;
    T_EQ(waitpid(child, &status, 0), child);
    T_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    T_OK(file_read(path, 1000, &said, &e), &e);
    T_CHECK(strstr(said.data, "bug at ") && strstr(said.data, "test_err.c:"));
    T_CHECK(strstr(said.data, ": the value is 42\n") && !strstr(said.data, "not this"));
    buf_finish(&said);
}

T_MAIN(T_CASE(sentence_and_code), T_CASE(what_a_caller_has_to_know_is_a_field),
       T_CASE(system_errors), T_CASE(the_limit_on_files_is_named),
       T_CASE(the_limit_on_open_files_is_named), T_CASE(nobody_listens),
       T_CASE(long_sentences_are_cut), T_CASE(long_words_are_cut_in_their_middle),
       T_CASE(arguments_from_itself), T_CASE(bugs_abort_with_place_and_values))
