/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Microseconds of tok's kernels on each level that the processor has, in turn, and how many times
 * as fast as plain C: medians of nine rounds, processor time. `bench_kernels [NAME]` takes those
 * whose names hold the word.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/tok/kernel_cases.h"

enum { ROUNDS = 9, REPEAT = 200 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_case(const struct kernel_case *c, struct kernel_input *m)
{
    double took[SIMD_LEVELS][ROUNDS];
    struct buf out = {0};
    c->make(m, 1);
    for (int round = 0; round < ROUNDS; round++)
        for (enum simd_level level = SIMD_PLAIN; level <= simd_best(); level++) {
            double from = seconds();
            for (int i = 0; i < REPEAT; i++) {
                buf_reset(&out);
                c->run(m, level, &out);
            }
            took[level][round] = (seconds() - from) / REPEAT * 1e6;
        }
    for (enum simd_level level = SIMD_PLAIN; level <= simd_best(); level++) {
        qsort(took[level], ROUNDS, sizeof(double), by_size);
        printf("%-20s %-14s %8.1f us %6.2f times\n", c->name, kernel_levels[level],
               took[level][ROUNDS / 2], took[SIMD_PLAIN][ROUNDS / 2] / took[level][ROUNDS / 2]);
    }
    if (c->finish)
        c->finish(m);
    buf_finish(&out);
}

int main(int argc, char **argv)
{
    static struct kernel_input m;
    for (size_t i = 0; i < KERNEL_CASES; i++)
        if (argc < 2 || strstr(kernel_cases[i].name, argv[1]))
            time_case(&kernel_cases[i], &m);
    return 0;
}
