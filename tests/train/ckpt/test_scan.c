/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/train/ckpt/sample.h"

/* A folder with the checkpoints 1 to n. */
static const char *folder(const char *name, int n)
{
    struct err e;
    const char *dir = t_path(name);
    T_OK(file_remove_tree(dir, &e), &e);
    for (int i = 1; i <= n; i++)
        T_OK(sample_save(dir, i, &e), &e);
    return dir;
}

static void damage(const char *dir, int iteration)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/iter_%07d/param-00000.safetensors", dir, iteration);
    sample_flip(path, 700, 4);
}

static void cut(const char *dir, int iteration)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/iter_%07d/param-00000.safetensors", dir, iteration);
    T_CHECK(truncate(path, 100) == 0);
}

/* "5 3 1" */
static void expect_list(const char *dir, const char *want)
{
    struct err e;
    int64_t *list;
    size_t n;
    struct buf b = {0};
    T_OK(ckpt_list(dir, &list, &n, &e), &e);
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%lld", i ? " " : "", (long long)list[i]);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    free(list);
}

static void lists_by_name_alone(void)
{
    struct err e;
    const char *dir = t_path("list");
    expect_list(dir, "");
    static const char *const names[] = {"iter_0000005",
                                        "iter_0000040",
                                        "iter_12345678",
                                        "iter_005",
                                        "iter_00000050",
                                        "iter_0000006.old",
                                        ".iter_0000007.tmp.host.1",
                                        "iter_000000a",
                                        "latest",
                                        "iter_"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        T_OK(file_mkdirs(path, &e), &e);
    }
    expect_list(dir, "12345678 40 5");
}

static void takes_the_newest(void)
{
    struct err e;
    struct ckpt *c;
    struct ckpt_skips skips;
    T_OK(ckpt_open_newest(t_path("nowhere"), &c, &skips, &e), &e);
    T_CHECK(!c && !skips.n);
    const char *dir = folder("newest", 3);
    T_OK(ckpt_open_newest(dir, &c, &skips, &e), &e);
    sample_check(c, 3);
    T_EQ(skips.n, 0);
    ckpt_close(c);
    /* the hint may say what it will */
    T_OK(file_replace(t_path("newest/latest_checkpointed_iteration.txt"), "1", 1, &e), &e);
    T_OK(ckpt_open_newest(dir, &c, NULL, &e), &e);
    sample_check(c, 3);
    ckpt_close(c);
}

static void passes_over_damage_and_says_so(void)
{
    struct err e;
    struct ckpt *c;
    struct ckpt_skips skips;
    const char *dir = folder("skip", 4);
    damage(dir, 4);
    cut(dir, 3);
    T_OK(ckpt_open_newest(dir, &c, &skips, &e), &e);
    sample_check(c, 2);
    ckpt_close(c);
    T_EQ(skips.n, 2);
    T_CHECK(strstr(skips.at[0].path, "iter_0000004") && strstr(skips.at[1].path, "iter_0000003"));
    T_CHECK(strstr(skips.at[0].why.msg, "not those that were written"));
    T_CHECK(strstr(skips.at[1].why.msg, "cut short"));
    T_EQ(skips.at[0].why.code, ERR_INTEGRITY);
    ckpt_skips_finish(&skips);
    damage(dir, 2);
    cut(dir, 1);
    T_ERR(ckpt_open_newest(dir, &c, &skips, &e), &e, ERR_INTEGRITY,
          "none of its 4 checkpoints is intact");
    T_EQ(skips.n, 4);
    ckpt_skips_finish(&skips);
    T_ERR(ckpt_open_newest(dir, &c, NULL, &e), &e, ERR_INTEGRITY, "iter_0000004");
}

static void one_iteration_names_the_intact_one(void)
{
    struct err e;
    struct ckpt *c;
    const char *dir = folder("one", 4);
    T_OK(ckpt_open_iteration(dir, 2, &c, &e), &e);
    sample_check(c, 2);
    ckpt_close(c);
    damage(dir, 4);
    damage(dir, 3);
    T_ERR(ckpt_open_iteration(dir, 3, &c, &e), &e, ERR_INTEGRITY, "iter_0000003");
    T_CHECK(strstr(e.hint, "iter_0000002 is the newest intact one"));
    T_ERR(ckpt_open_iteration(dir, 9, &c, &e), &e, ERR_IO, "iter_0000009: no such checkpoint");
    damage(dir, 1);
    damage(dir, 2);
    T_ERR(ckpt_open_iteration(dir, 3, &c, &e), &e, ERR_INTEGRITY, "iter_0000003");
    T_CHECK(strstr(e.hint, "no other checkpoint"));
}

static void keeps_the_newest(void)
{
    struct err e;
    const char *dir = folder("keep", 5);
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 5, .every = 0}, 5, &e), &e);
    expect_list(dir, "5 4 3 2 1");
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 2, .every = 0}, 5, &e), &e);
    expect_list(dir, "5 4");
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 0}, -1, &e), &e);
    expect_list(dir, "5");
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 0}, -1, &e), &e);
    expect_list(dir, "5");
    T_CHECK(!file_exists(t_path("keep/.trash_iter_0000004")));
    dir = folder("every", 5);
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 2}, 5, &e), &e);
    expect_list(dir, "5 4 2");
    dir = folder("best", 5);
    struct ckpt_keep best = {.newest = 1, .best = (int64_t[]){1, 9, 3}, .nbest = 3};
    T_OK(ckpt_retain(dir, &best, 5, &e), &e);
    expect_list(dir, "5 3 1");
}

static void the_last_good_one_stays(void)
{
    struct err e;
    const char *dir = folder("good", 5);
    cut(dir, 5); /* seen by its size: it does not count */
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 0}, -1, &e), &e);
    expect_list(dir, "5 4");
    dir = folder("good", 4);
    damage(dir, 4); /* seen by its hash alone */
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 0}, -1, &e), &e);
    expect_list(dir, "4 3 2 1");
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 2, .every = 0}, -1, &e),
         &e); /* 3 is intact, so 2 and 1 may go */
    expect_list(dir, "4 3");
    cut(dir, 4);
    cut(dir, 3);
    T_OK(ckpt_retain(dir, &(struct ckpt_keep){.newest = 1, .every = 0}, -1, &e), &e);
    expect_list(dir, "4 3");
}

static void empty_folders_have_nothing_to_keep(void)
{
    struct err e;
    T_OK(ckpt_retain(t_path("none"), &(struct ckpt_keep){.newest = 1}, -1, &e), &e);
}

T_MAIN(T_CASE(lists_by_name_alone), T_CASE(takes_the_newest),
       T_CASE(passes_over_damage_and_says_so), T_CASE(one_iteration_names_the_intact_one),
       T_CASE(keeps_the_newest), T_CASE(the_last_good_one_stays),
       T_CASE(empty_folders_have_nothing_to_keep))
