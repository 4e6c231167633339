/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

/* A folder with one file, which says what it is. */
static void make(const char *name)
{
    struct err e;
    char *path = path_join(t_path(name), "file");
    T_OK(file_mkdirs(t_path(name), &e), &e);
    T_OK(file_replace(path, name, strlen(name), &e), &e);
    free(path);
}

static bool is(const char *name, const char *what)
{
    struct buf b = {0};
    char *path = path_join(t_path(name), "file");
    bool same = !file_read(path, 100, &b, NULL) && !strcmp(buf_str(&b), what);
    buf_finish(&b);
    free(path);
    return same;
}

static void clear(void)
{
    static const char *const names[] = {"new", "final", "aside"};
    for (int i = 0; i < 3; i++)
        file_remove_tree(t_path(names[i]), NULL);
}

static int publish(void *arg)
{
    (void)arg;
    return folder_publish(t_path("new"), t_path("final"), t_path("aside"), NULL);
}

static void takes_a_free_name(void)
{
    make("new");
    T_EQ(publish(NULL), 0);
    T_CHECK(is("final", "new") && !file_exists(t_path("new")));
    make("new");
    T_EQ(folder_rename(t_path("new"), t_path("final")), EEXIST);
    clear();
}

static void exchanges(void)
{
    make("new");
    make("final");
    T_EQ(publish(NULL), 0);
    T_CHECK(is("final", "new") && is("new", "final") && !file_exists(t_path("aside")));
    clear();
}

/* By two renames; killed before each of them, or failing there, the old one stands somewhere. */
static void without_exchange(void)
{
    struct trace t = {.no_exchange = true};
    make("new");
    make("final");
    if (!trace_run(&t, publish, NULL)) {
        clear();
        t_skip("processes may not be traced here");
    }
    T_CHECK(WIFEXITED(t.status) && !WEXITSTATUS(t.status));
    T_CHECK(is("final", "new") && is("aside", "final"));
    long calls = t.calls;
    T_CHECK(calls >= 2);
    for (int kill = 0; kill < 2; kill++)
        for (long at = 1; at <= calls; at++) {
            clear();
            make("new");
            make("final");
            t = (struct trace){.no_exchange = true,
                               .at = at,
                               .fault = kill ? TRACE_KILL_BEFORE : TRACE_FAIL,
                               .errnum = EIO};
            T_CHECK(trace_run(&t, publish, NULL) && t.struck);
            T_CHECK(is("final", "new") || is("final", "final") || is("aside", "final"));
            if (!kill)
                T_CHECK(is("final", "final") && is("new", "new"));
        }
    clear();
}

T_MAIN(T_CASE(takes_a_free_name), T_CASE(exchanges), T_CASE(without_exchange))
