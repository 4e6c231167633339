/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/blend.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "tests/t.h"

static const char *const who = "--data-path";

static void weights_stand_before_prefixes(void)
{
    struct err e;
    struct blend_list l;
    T_OK(blend_list_words(who, (const char *[]){"30", "a", " 0.7 ", " b "}, 4, &l, &e), &e);
    T_EQ(l.n, 2);
    T_STR(l.prefix[1], "b");
    T_CHECK(l.weight[0] == 30 && l.weight[1] == 0.7);
    blend_list_finish(&l);
    T_OK(blend_list_words(who, (const char *[]){"a", "b", "c", "d"}, 4, &l, &e), &e);
    T_EQ(l.n, 4);
    T_CHECK(!l.weight);
    blend_list_finish(&l);
    /* an odd number: no weights, whatever they look like; hexadecimal is not a number to Python */
    T_OK(blend_list_words(who, (const char *[]){"1", "2", "3"}, 3, &l, &e), &e);
    T_EQ(l.n, 3);
    blend_list_finish(&l);
    T_OK(blend_list_words(who, (const char *[]){"0x10", "b"}, 2, &l, &e), &e);
    T_EQ(l.n, 2);
    blend_list_finish(&l);
    blend_list_finish(&l);
}

static void bad_lists_are_told(void)
{
    struct err e;
    struct blend_list l, part[PARTS];
    T_ERR(blend_list_words(who, (const char *[]){"1", "a", "b", "c"}, 4, &l, &e), &e, ERR_USAGE,
          "1 of 2 words at the places of weights are numbers");
    blend_list_finish(&l);
    T_ERR(blend_list_words(who, (const char *[]){"1", "a", "-2", "b"}, 4, &l, &e), &e, ERR_USAGE,
          "the weight -2 of b is not above 0");
    blend_list_finish(&l);
    T_ERR(blend_list_words(who, (const char *[]){"nan", "a"}, 2, &l, &e), &e, ERR_USAGE,
          "the weight nan of a");
    blend_list_finish(&l);
    T_OK(file_replace(t_path("l"), " \n\t", 3, &e), &e);
    T_ERR(blend_list_file(t_path("l"), &l, &e), &e, ERR_USAGE, "names no dataset");
    blend_list_finish(&l);
    T_OK(file_replace(t_path("l"), "a\0b", 3, &e), &e);
    T_ERR(blend_list_file(t_path("l"), &l, &e), &e, ERR_DATA, "NUL");
    T_ERR(blend_list_file(t_path("none"), &l, &e), &e, ERR_IO, "none");
    static const char *const bad[][2] = {
        {"[1]", "not a JSON object"},
        {"{\"train\": 3}", "\"train\" is neither"},
        {"{\"train\": [\"a\", 3]}", "\"train\"[1] is not a string"},
        {"{\"training\": \"a\"}", "\"training\" is not train"},
        {"{\"train\": \"a\", \"dev\": \"b\"}", "\"dev\" is not"},
        {"{\"train\": null}", "names no dataset"},
        {"{\"train\": [\"1\", \"a\", \"b\", \"c\"]}", "weights"}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_OK(file_replace(t_path("j"), bad[i][0], strlen(bad[i][0]), &e), &e);
        T_CHECK(blend_list_parts(t_path("j"), part, &e));
        T_CHECK(strstr(e.msg, bad[i][1]));
        for (int p = 0; p < PARTS; p++)
            blend_list_finish(&part[p]);
    }
}

static void files_hold_lists(void)
{
    struct err e;
    struct blend_list l, part[PARTS];
    static const char words[] = "0.5  a/b\n0.25\tc\r\n";
    T_OK(file_replace(t_path("l"), words, sizeof(words) - 1, &e), &e);
    T_OK(blend_list_file(t_path("l"), &l, &e), &e);
    T_EQ(l.n, 2);
    T_STR(l.prefix[1], "c");
    blend_list_finish(&l);
    static const char json[] = "{\"train\": [\"1\", \"a\"], \"valid\": \"b c\", \"test\": null}";
    T_OK(file_replace(t_path("j"), json, sizeof(json) - 1, &e), &e);
    T_OK(blend_list_parts(t_path("j"), part, &e), &e);
    T_EQ(part[PART_TRAIN].n, 1);
    T_CHECK(part[PART_TRAIN].weight[0] == 1);
    T_EQ(part[PART_VALID].n, 2);
    T_EQ(part[PART_TEST].n, 0);
    for (int p = 0; p < PARTS; p++)
        blend_list_finish(&part[p]);
}

/* numpy 1.24.2 over i * 0.1 + 1 / (i + 1): the sums differ from those from left to right. */
static void sums_are_numpys(void)
{
    static const struct {
        size_t n;
        double sum;
    } known[] = {{1, 0x1.0000000000000p+0},      {3, 0x1.1111111111111p+1},
                 {7, 0x1.2c57c57c57c58p+2},      {8, 0x1.6124924924925p+2},
                 {9, 0x1.9b74374374375p+2},      {20, 0x1.699057756f451p+4},
                 {127, 0x1.92c33e29f7507p+9},    {129, 0x1.9f853c2def603p+9},
                 {200, 0x1.f2f831a8b7c3bp+10},   {1000, 0x1.864af88fa2fa8p+15},
                 {8191, 0x1.997380b45cfbap+21},  {8200, 0x1.9a59fcb69cb3bp+21},
                 {20000, 0x1.3129227b11013p+24}, {32766, 0x1.99899f3cb867cp+25}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = known[i].n;
        double *w = mem_new(n, sizeof(*w)), *got = mem_new(n, sizeof(*got));
        for (size_t k = 0; k < n; k++)
            w[k] = (double)k * 0.1 + 1 / (double)(k + 1);
        blend_normalize(w, n, got);
        for (size_t k = 0; k < n; k++)
            T_CHECK(got[k] == w[k] / known[i].sum);
        free(w);
        free(got);
    }
}

static void margins_are_rounded_up_twice(void)
{
    T_EQ(blend_target(100, 0.3), 30);
    T_EQ(blend_target(3000, 1.0 / 3), 1000);
    T_EQ(blend_target(100, 0.301), 31);
    T_EQ(blend_margin(1000), 1005);
    T_EQ(blend_margin(200), 201);
    T_EQ(blend_margin(1), 2);
    T_EQ(blend_margin(0), 0);
}

static void equal_ones_come_in_turn(void)
{
    int16_t which[7];
    int64_t sample[7];
    uint64_t taken[3];
    double third[] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
    blend_weave(third, 3, 7, which, sample, taken);
    T_MEM(which, ((int16_t[]){0, 1, 2, 0, 1, 2, 0}), sizeof(which));
    T_MEM(sample, ((int64_t[]){0, 0, 0, 1, 1, 1, 2}), sizeof(sample));
    T_EQ(taken[0], 3);
    T_EQ(taken[2], 2);
    blend_weave(third, 3, 6, NULL, NULL, taken);
    T_EQ(taken[0], 2);
}

static void all_takes_each_as_often_as_it_has(void)
{
    static const uint64_t count[] = {5, 1, 300, 44};
    enum { ALL = 350 };
    int16_t which[ALL];
    int64_t sample[ALL];
    uint64_t seen[4] = {0};
    blend_weave_all(count, 4, which, sample);
    for (int k = 0; k < ALL; k++)
        T_EQ(sample[k], seen[which[k]]++);
    for (int d = 0; d < 4; d++)
        T_EQ(seen[d], count[d]);
}

/* The rule as stated: every dataset is examined for every place. */
static void weave_plainly(const double *weight, size_t n, uint64_t size, int16_t *which)
{
    double *cur = mem_new(n, sizeof(*cur));
    for (uint64_t s = 0; s < size; s++) {
        double x = s > 1 ? (double)s : 1.0;
        size_t best = 0;
        for (size_t d = 1; d < n; d++)
            if (weight[d] * x - cur[d] > weight[best] * x - cur[best])
                best = d;
        which[s] = (int16_t)best;
        cur[best]++;
    }
    free(cur);
}

static double weight_of(int kind, uint64_t stream, uint64_t d)
{
    uint32_t r = t_rand(stream, d);
    return kind == 0   ? 1
           : kind == 1 ? 1 + r % 3
           : kind == 2 ? 1 + r
           : kind == 3 ? (d ? 1 : 1e5)
                       : 1.0 / (double)(d + 1);
}

/* Weights that are equal, almost equal, far apart; numbers of sets about those of the groups. */
static void groups_ask_as_the_plain_rule(void)
{
    static const size_t sets[] = {1, 2, 3, 63, 64, 65, 129, 300, 1000};
    enum { SIZE = 4000 };
    int16_t *want = mem_new(SIZE, sizeof(*want)), *got = mem_new(SIZE, sizeof(*got));
    int64_t *sample = mem_new(SIZE, sizeof(*sample));
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
        for (int kind = 0; kind < 5; kind++) {
            size_t n = sets[i];
            double *weight = mem_new(n, sizeof(*weight));
            uint64_t *taken = mem_new(n, sizeof(*taken)), *count = mem_new(n, sizeof(*count));
            for (size_t d = 0; d < n; d++)
                weight[d] = weight_of(kind, i, d);
            blend_normalize(weight, n, weight);
            weave_plainly(weight, n, SIZE, want);
            blend_weave(weight, n, SIZE, got, sample, taken);
            T_MEM(got, want, SIZE * sizeof(*want));
            for (size_t s = 0; s < SIZE; s++)
                T_EQ(sample[s], count[want[s]]++);
            T_MEM(taken, count, n * sizeof(*count));
            free(weight);
            free(taken);
            free(count);
        }
    free(want);
    free(got);
    free(sample);
}

T_MAIN(T_CASE(weights_stand_before_prefixes), T_CASE(bad_lists_are_told), T_CASE(files_hold_lists),
       T_CASE(sums_are_numpys), T_CASE(margins_are_rounded_up_twice),
       T_CASE(equal_ones_come_in_turn), T_CASE(groups_ask_as_the_plain_rule),
       T_CASE(all_takes_each_as_often_as_it_has))
