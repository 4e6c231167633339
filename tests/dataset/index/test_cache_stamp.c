/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/cache_stamp.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io/file.h"
#include "tests/t.h"

static void put(const char *name, const char *text)
{
    struct err e;
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
}

static enum cache_stamp_state look(void)
{
    struct err e;
    struct map idx;
    const char *file[] = {t_path("a"), t_path("b")};
    T_OK(map_open(&idx, t_path("x.idx"), &e), &e);
    enum cache_stamp_state s = cache_stamp_check(t_path("seal"), &idx, file, 2);
    map_close(&idx);
    return s;
}

static void seal(void)
{
    struct err e;
    struct map idx;
    const char *file[] = {t_path("a"), t_path("b")};
    T_OK(map_open(&idx, t_path("x.idx"), &e), &e);
    T_OK(cache_stamp_write(t_path("seal"), &idx, file, 2, &e), &e);
    map_close(&idx);
}

static void it_holds_till_something_is_touched(void)
{
    put("x.idx", "index");
    put("a", "1");
    put("b", "2");
    T_EQ(look(), CACHE_STAMP_NONE);
    seal();
    T_EQ(look(), CACHE_STAMP_HOLDS);
    put("b", "3");
    T_EQ(look(), CACHE_STAMP_STALE);
    seal();
    T_EQ(look(), CACHE_STAMP_HOLDS);
    put("x.idx", "index"); /* the same bytes in a new file */
    T_EQ(look(), CACHE_STAMP_STALE);
    put("x.idx", "other");
    T_EQ(look(), CACHE_STAMP_OTHER);
    seal();
    T_EQ(look(), CACHE_STAMP_HOLDS);
    T_EQ(remove(t_path("a")), 0);
    T_EQ(look(), CACHE_STAMP_STALE);
}

/* Setting mtime back does not help: the change time cannot be set. */
static void a_changed_file_with_its_old_time_is_seen(void)
{
    struct stat st;
    put("x.idx", "index");
    put("a", "1");
    put("b", "2");
    seal();
    T_EQ(stat(t_path("a"), &st), 0);
    put("a", "9");
    T_EQ(utimensat(AT_FDCWD, t_path("a"), (struct timespec[]){st.st_atim, st.st_mtim}, 0), 0);
    T_EQ(look(), CACHE_STAMP_STALE);
}

static void what_is_no_seal_says_nothing(void)
{
    put("x.idx", "index");
    put("a", "1");
    put("b", "2");
    put("seal", "");
    T_EQ(look(), CACHE_STAMP_NONE);
    put("seal", "{\"weft_seal\": 1, \"idx\": {\"xxh3_128\": \"12");
    T_EQ(look(), CACHE_STAMP_NONE);
}

T_MAIN(T_CASE(it_holds_till_something_is_touched), T_CASE(a_changed_file_with_its_old_time_is_seen),
       T_CASE(what_is_no_seal_says_nothing))
