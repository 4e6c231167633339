/* SPDX-License-Identifier: Apache-2.0 */

/* The file of --tune-gemm and the pairs of a checkpoint, with a table that only has choices. */

#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "train/tune/tune.h"

static struct ops_choice made[4];
static size_t count;

static bool choice(const struct ops *o, size_t i, struct ops_choice *ret)
{
    (void)o;
    if (i >= count)
        return false;
    *ret = made[i];
    return true;
}

static struct dev gpu = {.desc = {.name = "a GPU"}};
static const struct ops table = {
    .choice = choice, .dev = &gpu, .entry = {[OP_NORM] = {.backend = "cuda"}}};

static struct ops_choice row(const char *what, const char *how, enum ops_origin origin)
{
    struct ops_choice c = {.origin = origin};
    snprintf(c.what, sizeof(c.what), "%s", what);
    snprintf(c.how, sizeof(c.how), "%s", how);
    if (origin == OPS_TIMED) {
        c.us = 12.5;
        c.first_us = 14;
    }
    return c;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    T_CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void a_file_is_written_and_read(void)
{
    struct err e;
    struct tune none = {0}, t = {0};
    struct buf text = {0};
    const char *path = t_path("gemm.txt");
    T_OK(tune_open(&none, path, NULL, &e), &e); /* there is none yet */
    T_EQ(none.n, 0);
    made[0] = row("2x3x4", "13_a", OPS_TIMED);
    made[1] = row("5x6x7", "13_b", OPS_FIRST);
    count = 2;
    T_OK(tune_report(&none, &table, path, &e), &e);
    T_OK(file_read(path, 1 << 20, &text, &e), &e);
    T_CHECK(strstr(buf_str(&text), "on a GPU") && strstr(text.data, "2x3x4 13_a 12.500 14.000\n"));
    T_OK(tune_open(&t, path, NULL, &e), &e);
    T_EQ(t.n, 2);
    T_EQ(t.in_file, 2);
    T_STR(t.at[1].what, "5x6x7");
    T_STR(t.at[1].how, "13_b");
    T_NEAR(t.at[0].first_us, 14, 0);
    buf_finish(&text);
    tune_finish(&t);
}

/* Rows of other shapes stay, times of those that are in force too. */
static void a_run_adds_to_the_file(void)
{
    struct err e;
    struct tune t = {0}, again = {0};
    const char *path = t_path("added.txt");
    write_text(path, "# a comment\n\n  1x1x1 12_old 3\n2x3x4 13_a 12.5 14\r\n5x6x7 12_b\n");
    T_OK(tune_open(&t, path, NULL, &e), &e);
    T_EQ(t.n, 3);
    made[0] = row("2x3x4", "13_a", OPS_GIVEN);
    made[1] = row("5x6x7", "13_c", OPS_TIMED);
    made[2] = row("8x8x8", "13_d", OPS_TIMED);
    count = 3;
    struct tune_result r = tune_result(&t, &table);
    T_EQ(r.products, 3);
    T_EQ(r.timed, 2);
    T_EQ(r.lacking, 0);
    T_OK(tune_report(&t, &table, path, &e), &e);
    T_OK(tune_open(&again, path, NULL, &e), &e);
    T_EQ(again.n, 4);
    T_NEAR(again.at[0].us, 12.5, 0);
    T_STR(again.at[1].how, "13_c");
    T_STR(again.at[3].what, "1x1x1");
    tune_finish(&t);
    tune_finish(&again);
}

static void bad_lines_are_named(void)
{
    static const char *const bad[] = {"2x3x4\n", "2x3x4 13_a fast\n", "2x3x4 13_a 1 2 3\n",
                                      "2x3x4 13_a -1\n"};
    struct err e;
    char text[400];
    const char *path = t_path("bad.txt");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tune t = {0};
        snprintf(text, sizeof(text), "# a comment\n%s", bad[i]);
        write_text(path, text);
        T_ERR(tune_open(&t, path, NULL, &e), &e, ERR_DATA, "bad.txt:2: expected the shape");
        tune_finish(&t);
    }
    struct tune t = {0};
    memset(text, 'x', 300);
    strcpy(text + 300, " 13_a\n");
    write_text(path, text);
    T_ERR(tune_open(&t, path, NULL, &e), &e, ERR_DATA, "bad.txt:1:");
    tune_finish(&t);
}

/* The file comes first; what the checkpoint had and is not in force is counted. */
static void a_checkpoint_has_them_too(void)
{
    struct err e;
    struct tune t = {0};
    struct tune_pairs p;
    made[0] = row("2x3x4", "13_a", OPS_FIRST);
    made[1] = row("5x6x7", "13_b", OPS_TIMED);
    count = 2;
    tune_pairs(&p, &table);
    T_EQ(p.n, 5);
    T_STR(p.pair[1].key, "norm");
    T_STR(p.pair[1].value, "cuda");
    T_STR(p.pair[4].key, "matmul 5x6x7");
    T_STR(p.pair[4].value, "13_b");
    const char *path = t_path("first.txt");
    write_text(path, "5x6x7 13_c\n");
    const struct ckpt_meta m = {.kernels = p.pair, .nkernels = p.n};
    T_OK(tune_open(&t, path, &m, &e), &e);
    T_EQ(t.n, 3);
    T_EQ(t.in_file, 1);
    T_EQ(tune_result(&t, &table).others, 0);
    made[1] = row("5x6x7", "13_c", OPS_GIVEN);
    struct tune_result r = tune_result(&t, &table);
    T_EQ(r.others, 1);
    T_STR(r.example, "5x6x7");
    T_EQ(r.lacking, 1);
    tune_pairs_finish(&p);
    tune_finish(&t);
}

T_MAIN(T_CASE(a_file_is_written_and_read), T_CASE(a_run_adds_to_the_file),
       T_CASE(bad_lines_are_named), T_CASE(a_checkpoint_has_them_too))
