/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
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

/* A folder with one file, "SAVE/NAME/file". */
static const char *folder(const char *dir, const char *name)
{
    struct err e;
    char *path = path_join(dir, name), *inside = path_join(path, "file");
    const char *ret = t_path(inside + strlen(t_dir()) + 1);
    T_OK(file_mkdirs(path, &e), &e);
    T_OK(file_replace(inside, name, strlen(name), &e), &e);
    free(path);
    free(inside);
    return ret;
}

static void expect_file(const char *dir, const char *name, const char *text)
{
    struct err e;
    struct buf b = {0};
    char *path = path_join(dir, name), *inside = path_join(path, "file");
    T_OK(file_read(inside, 100, &b, &e), &e);
    T_STR(b.data, text);
    buf_finish(&b);
    free(path);
    free(inside);
}

static void only_what_nobody_holds_is_cleaned(void)
{
    const char *dir = t_path("clean");
    const char *dead = folder(dir, ".iter_0000003.tmp.0");
    const char *held = folder(dir, ".iter_0000003.tmp.1");
    const char *trash = folder(dir, ".trash_iter_0000003.0");
    const char *trash_before = folder(dir, ".trash_iter_0000003.host.17");
    const char *far = folder(dir, ".iter_0000003.tmp.elsewhere.17");
    const char *odd = folder(dir, ".iter_0000003.tmp"), *note = folder(dir, ".iter_x");
    int fd = open(held, O_WRONLY | O_CLOEXEC);
    T_CHECK(fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB));
    place_clean(dir);
    T_CHECK(!file_exists(dead) && !file_exists(trash) && !file_exists(trash_before));
    T_CHECK(!file_exists(t_path("clean/.iter_0000003.tmp.0")));
    T_CHECK(file_exists(held) && file_exists(far) && file_exists(odd) && file_exists(note));
    close(fd);
    place_clean(dir);
    T_CHECK(!file_exists(t_path("clean/.iter_0000003.tmp.1")));
    place_clean(t_path("nothing there"));
}

/* Its writer was killed between the two renames, or behind them. */
static void what_was_moved_aside_comes_back_or_goes(void)
{
    int64_t it = 0;
    const char *dir = t_path("aside");
    folder(dir, ".iter_0000004.old");
    folder(dir, ".iter_0000005.old");
    folder(dir, "iter_0000005");
    place_clean(dir);
    expect_file(dir, "iter_0000004", ".iter_0000004.old");
    expect_file(dir, "iter_0000005", "iter_0000005");
    T_CHECK(!file_exists(t_path("aside/.iter_0000004.old")));
    T_CHECK(!file_exists(t_path("aside/.iter_0000005.old")));
    char *old = place_old(dir, 7);
    T_CHECK(place_old_iteration(old, &it) && it == 7);
    T_CHECK(!place_iteration(old, &it));
    free(old);
    static const char *const no[] = {"iter_0000007.old", ".iter_0000007", ".old", ".iter_007.old",
                                     ".iter_0000007.olds"};
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        T_CHECK(!place_old_iteration(no[i], &it));
}

static void publishes_and_replaces(void)
{
    struct err e;
    const char *dir = t_path("publish"), *tmp = t_path("publish/.iter_0000001.tmp.0");
    folder(dir, ".iter_0000001.tmp.0");
    T_OK(place_publish(dir, 1, tmp, &e), &e);
    place_replaced(dir, 1, tmp);
    expect_file(dir, "iter_0000001", ".iter_0000001.tmp.0");
    folder(dir, ".iter_0000001.tmp.1");
    T_OK(place_publish(dir, 1, t_path("publish/.iter_0000001.tmp.1"), &e), &e);
    expect_file(dir, "iter_0000001", ".iter_0000001.tmp.1");
    place_replaced(dir, 1, t_path("publish/.iter_0000001.tmp.1"));
    T_CHECK(!file_exists(t_path("publish/.iter_0000001.tmp.1")));
    T_ERR(place_publish(dir, 2, t_path("publish/none"), &e), &e, ERR_IO, "iter_0000002");
}

static void removes_by_way_of_the_trash(void)
{
    struct err e;
    const char *dir = t_path("remove");
    T_OK(file_mkdirs(t_path("remove/iter_0000001/deep"), &e), &e);
    T_OK(file_mkdirs(t_path("remove/iter_0000002"), &e), &e);
    folder(dir, ".trash_iter_0000001.0"); /* of one that was killed there */
    T_OK(place_remove(dir, 1, &e), &e);
    T_CHECK(!file_exists(t_path("remove/iter_0000001")));
    T_CHECK(file_exists(t_path("remove/iter_0000002")));
    T_CHECK(!file_exists(t_path("remove/.trash_iter_0000001.1")));
    T_ERR(place_remove(dir, 1, &e), &e, ERR_IO, "iter_0000001");
}

T_MAIN(T_CASE(names_of_iterations), T_CASE(only_what_nobody_holds_is_cleaned),
       T_CASE(what_was_moved_aside_comes_back_or_goes), T_CASE(publishes_and_replaces),
       T_CASE(removes_by_way_of_the_trash))
