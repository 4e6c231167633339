/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "tests/t.h"

static void names_of_iterations(void)
{
    int64_t it = 5;
    char *p = place_final("save", 100);
    T_STR(p, "save/iter_0000100");
    T_CHECK(place_iteration(p, &it) && it == 100);
    free(p);
    p = place_final("/a", 123456789012);
    T_STR(p, "/a/iter_123456789012");
    T_CHECK(place_iteration(p, &it) && it == 123456789012);
    free(p);
    static const char *const no[] = {"",
                                     "iter_",
                                     "iter_123",
                                     "iter_00000001",
                                     "iter_0000001x",
                                     "xiter_0000001",
                                     "iter_-000001",
                                     "iter_0000001/",
                                     "iter_9999999999999999999",
                                     ".iter_0000001"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        T_CHECK(!place_iteration(no[i], &it));
    T_CHECK(place_iteration("iter_0000000", &it) && it == 0);
}

static char *with_pid(const char *of, long pid)
{
    const char *dot = strrchr(of, '.');
    return mem_printf("%.*s.%ld", (int)(dot - of), of, pid);
}

static void only_the_dead_of_this_machine_are_cleaned(void)
{
    struct err e;
    const char *dir = t_path("clean");
    T_OK(file_mkdirs(dir, &e), &e);
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
    char *own = place_temporary(dir, 3), *trash = place_trash(dir, 3);
    char *dead = with_pid(own, pid), *dead_trash = with_pid(trash, pid);
    char *far = mem_printf("%s/.iter_0000003.tmp.elsewhere!.%ld", dir, (long)pid);
    char *odd = mem_printf("%s/.iter_0000003.tmp", dir), *note = mem_printf("%s/.iter_x", dir);
    char *const made[] = {own, trash, dead, dead_trash, far, odd, note};
    for (size_t i = 0; i < 7; i++) {
        T_OK(file_mkdirs(made[i], &e), &e);
        char *inside = path_join(made[i], "file");
        T_OK(file_replace(inside, "x", 1, &e), &e);
        free(inside);
    }
    place_clean(dir);
    T_CHECK(!file_exists(dead) && !file_exists(dead_trash));
    T_CHECK(file_exists(own) && file_exists(trash) && file_exists(far));
    T_CHECK(file_exists(odd) && file_exists(note));
    for (size_t i = 0; i < 7; i++)
        free(made[i]);
    place_clean(t_path("nothing there"));
}

static void removes_by_way_of_the_trash(void)
{
    struct err e;
    const char *dir = t_path("remove");
    T_OK(file_mkdirs(t_path("remove/iter_0000001/deep"), &e), &e);
    T_OK(file_mkdirs(t_path("remove/iter_0000002"), &e), &e);
    T_OK(place_remove(dir, 1, &e), &e);
    T_CHECK(!file_exists(t_path("remove/iter_0000001")));
    T_CHECK(file_exists(t_path("remove/iter_0000002")));
    char *trash = place_trash(dir, 1);
    T_CHECK(!file_exists(trash));
    free(trash);
    T_ERR(place_remove(dir, 1, &e), &e, ERR_IO, "iter_0000001");
}

T_MAIN(T_CASE(names_of_iterations), T_CASE(only_the_dead_of_this_machine_are_cleaned),
       T_CASE(removes_by_way_of_the_trash))
