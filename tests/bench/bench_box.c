/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Casts and column shares of the copy engine beside memcpy, as shares of its rate: bytes read and
 * written per second, memory far larger than caches, rounds of all in turn, the median of each
 * round's ratio. Processor time, one thread.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "train/tensor/box.h"

enum { ROWS = 4096, COLS = 8192, N = ROWS * COLS, ROUNDS = 9, SHARES = 8, KINDS = 6 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const struct {
    const char *name;
    enum dtype from, to;
} casts[] = {{"bf16 to fp32", DTYPE_BF16, DTYPE_F32},
             {"fp32 to bf16", DTYPE_F32, DTYPE_BF16},
             {"fp16 to fp32", DTYPE_F16, DTYPE_F32},
             {"fp32 to fp16", DTYPE_F32, DTYPE_F16},
             {"bf16 to fp16", DTYPE_BF16, DTYPE_F16}};

/* Eight column shares of a bf16 matrix. */
static void share(void *to, void *from)
{
    enum { WIDTH = COLS / SHARES };
    struct box_mem m = {from, DTYPE_BF16, {{0, 0}, {ROWS, COLS}}, COLS};
    for (int k = 0; k < SHARES; k++)
        box_copy((struct box_mem){(char *)to + (size_t)k * ROWS * WIDTH * 2,
                                  DTYPE_BF16,
                                  {{0, k * WIDTH}, {ROWS, WIDTH}},
                                  WIDTH},
                 m);
}

/* Bytes read and written. */
static double run(int kind, void *to, void *from)
{
    if (kind < 5) {
        box_cast(to, casts[kind].to, from, casts[kind].from, N);
        return (double)N * (double)(dtype_size(casts[kind].from) + dtype_size(casts[kind].to));
    }
    share(to, from);
    return 4.0 * N;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    char *to = mem_new(N, 4), *from = mem_new(N, 4);
    double ratio[KINDS][ROUNDS], rate[ROUNDS];
    memset(to, 1, (size_t)N * 4);
    for (size_t i = 0; i < (size_t)N * 4; i++)
        from[i] = (char)(i * 2654435761u >> 13);
    for (int round = 0; round < ROUNDS; round++) {
        double t = seconds();
        memcpy(to, from, (size_t)N * 4);
        rate[round] = 8.0 * N / (seconds() - t);
        for (int kind = 0; kind < KINDS; kind++) {
            t = seconds();
            double bytes = run(kind, to, from);
            ratio[kind][round] = bytes / (seconds() - t) / rate[round];
        }
    }
    qsort(rate, ROUNDS, sizeof(double), by_value);
    printf("%-24s %6.2f GB/s read and written\n", "memcpy", rate[ROUNDS / 2] * 1e-9);
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(ratio[kind], ROUNDS, sizeof(double), by_value);
        printf("%-24s %6.2f of memcpy (%.2f to %.2f)\n",
               kind < 5 ? casts[kind].name : "8 column shares, bf16", ratio[kind][ROUNDS / 2],
               ratio[kind][0], ratio[kind][ROUNDS - 1]);
    }
    free(to);
    free(from);
    return 0;
}
