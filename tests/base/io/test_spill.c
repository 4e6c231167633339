/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/spill.h"
#include "tests/t.h"

static int files(void)
{
    int n = 0;
    DIR *d = opendir(t_dir());
    for (struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.' || strlen(f->d_name) > 2;
    closedir(d);
    return n;
}

static void what_is_added_comes_back(void)
{
    enum { SIZE = 3000000 };
    struct err e;
    struct spill s;
    char *text = mem_new(SIZE, 1), *got = mem_new(SIZE, 1);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = (char)t_rand(1, i);
    T_OK(spill_open(&s, t_path("out"), &e), &e);
    T_EQ(files(), 0);
    for (int round = 0; round < 2; round++) {
        size_t at = 0;
        for (uint64_t i = 0; at < SIZE; i++) {
            size_t n = t_rand(2, i) % (i % 5 ? 3000 : 600000);
            n = n < SIZE - at ? n : SIZE - at;
            T_OK(spill_add(&s, text + at, n, &e), &e);
            at += n;
        }
        T_OK(spill_flush(&s, &e), &e);
        T_EQ(s.size, SIZE);
        T_OK(spill_read(&s, 0, got, SIZE, &e), &e);
        T_MEM(got, text, SIZE);
        T_OK(spill_read(&s, 999999, got, 12345, &e), &e);
        T_MEM(got, text + 999999, 12345);
        T_OK(spill_clear(&s, &e), &e);
        T_EQ(s.size, 0);
    }
    T_ERR(spill_read(&s, 0, got, 1, &e), &e, ERR_IO, "out");
    spill_close(&s);
    spill_close(&s);
    T_EQ(files(), 0);
    free(text);
    free(got);
}

static void a_missing_folder_is_named(void)
{
    struct err e;
    struct spill s;
    T_ERR(spill_open(&s, t_path("none/out"), &e), &e, ERR_IO, "none/out");
}

static void a_named_one_stays_and_is_cut(void)
{
    struct err e;
    struct spill s;
    char got[8];
    T_OK(spill_open_at(&s, t_path("named"), 0, t_path("out"), &e), &e);
    T_OK(spill_add(&s, "abcdef", 6, &e), &e);
    T_OK(spill_sync(&s, &e), &e);
    T_OK(spill_add(&s, "lost", 4, &e), &e);
    spill_close(&s);
    T_OK(spill_open_at(&s, t_path("named"), 4, t_path("out"), &e), &e);
    T_EQ(s.size, 4);
    T_OK(spill_add(&s, "XY", 2, &e), &e);
    T_OK(spill_flush(&s, &e), &e);
    T_OK(spill_read(&s, 0, got, 6, &e), &e);
    T_MEM(got, "abcdXY", 6);
    spill_close(&s);
    T_ERR(spill_open_at(&s, t_path("named"), 7, t_path("out"), &e), &e, ERR_DATA,
          "has 6 bytes, and 7 were there");
}

T_MAIN(T_CASE(what_is_added_comes_back), T_CASE(a_missing_folder_is_named),
       T_CASE(a_named_one_stays_and_is_cut))
