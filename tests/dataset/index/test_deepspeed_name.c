/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "dataset/index/deepspeed_name.h"
#include "tests/t.h"

static void array_is(const double *a, size_t n, const char *want)
{
    struct buf b = {0};
    deepspeed_put_array(a, n, &b);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
}

/* Texts are numpy 1.24.2's. */
static void arrays_are_numpys(void)
{
    array_is((double[]){0.3, 0.7}, 2, "[0.3 0.7]");
    array_is((double[]){1}, 1, "[1.]");
    array_is((double[]){1 / 3.0, 0.5, 1 / 6.0}, 3, "[0.33333333 0.5        0.16666667]");
    array_is((double[]){0.001953125, 0.5}, 2, "[0.00195312 0.5       ]"); /* half to even */
    array_is((double[]){100, 0.25}, 2, "[100.     0.25]");
    array_is((double[]){1e-5, 0.5}, 2, "[1.e-05 5.e-01]");
    array_is((double[]){1e-3, 0.99, 1 - 1e-9}, 3, "[0.001 0.99  1.   ]");
    array_is((double[]){1e-4, 0.9}, 2, "[1.e-04 9.e-01]"); /* 1000 times apart */
    array_is((double[]){0.125, 1e-9, 1 / 3.0}, 3, "[1.25000000e-01 1.00000000e-09 3.33333333e-01]");
}

static void long_arrays_are_broken(void)
{
    double a[20];
    for (int i = 0; i < 20; i++)
        a[i] = i == 6 ? 0.5 : 1 / 21.0;
    array_is(a, 20,
             "[0.04761905 0.04761905 0.04761905 0.04761905 0.04761905 0.04761905\n"
             " 0.5        0.04761905 0.04761905 0.04761905 0.04761905 0.04761905\n"
             " 0.04761905 0.04761905 0.04761905 0.04761905 0.04761905 0.04761905\n"
             " 0.04761905 0.04761905]");
    for (int i = 0; i < 12; i++)
        a[i] = i == 5 ? 0.5 : 1 / 21.0; /* what fills a line up to its end is dropped there */
    array_is(a, 12,
             "[0.04761905 0.04761905 0.04761905 0.04761905 0.04761905 0.5\n"
             " 0.04761905 0.04761905 0.04761905 0.04761905 0.04761905 0.04761905]");
}

static void texts_and_names(void)
{
    struct buf b = {0}, all = {0};
    deepspeed_gpt_text(&(struct deepspeed_gpt){"d/a", PART_VALID, 30, 2, 128, 1234, "969, 30, 1"},
                       &b);
    T_STR(buf_str(&b), "GPT Dataset\n\nData prefix d/a\nDataset name valid\nNumber of samples 30\n"
                       "Number of epochs 2\nSequence length 128\nRandom seed 1234\n"
                       "Split 969, 30, 1\n");
    deepspeed_blend_text(&b, 1, (double[]){1}, 31, &all);
    T_CHECK(!strncmp(buf_str(&all), "Blendable dataset\n\nDatasets:\nGPT Dataset\n", 41));
    T_CHECK(strstr(buf_str(&all), "Split 969, 30, 1\n\n\nWeights: [1.]\nSize: 31\n") != NULL);
    buf_reset(&b);
    char *path = deepspeed_path("cache", &b, ".dsc");
    T_STR(path, "cache/d41d8cd98f00b204e9800998ecf8427e.dsc");
    free(path);
    buf_finish(&b);
    buf_finish(&all);
}

T_MAIN(T_CASE(arrays_are_numpys), T_CASE(long_arrays_are_broken), T_CASE(texts_and_names))
