/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/space.h"

/*
 * Samples of the lattice's cells that have any two values of two axes together, and, for sweep.sh,
 * one shard of all cells, or for a closer look some of them by number.
 */

enum { SEED = 20 };

static struct space all;

/* `n` cells; `covers`: enough for every pair of values. */
static void run_sample(size_t n, bool covers)
{
    size_t *number = mem_new(n, sizeof(*number)), pairs, missing;
    space_open(&all);
    size_t cells = space_sample(&all, SEED, n, number, &pairs, &missing);
    printf("# %zu of %zu cells, %zu of %zu pairs of values\n", cells, all.n, pairs - missing,
           pairs);
    T_EQ(cells, n);
    T_CHECK(!covers || !missing);
    T_EQ(space_run(&all, number, cells), 0);
    space_close(&all);
    free(number);
}

static void pairs_of_values(void)
{
    run_sample(getenv("WEFT_FULL") ? 500 : 250, true);
}

/* For the thread sanitizer. */
static void fifty_cells(void)
{
    run_sample(50, false);
}

/* WEFT_SHARD=3/200 */
static void shard(void)
{
    const char *text = getenv("WEFT_SHARD");
    size_t i, of, n = 0;
    if (!text || sscanf(text, "%zu/%zu", &i, &of) != 2 || of < 1 || i >= of)
        t_skip("WEFT_SHARD=I/N names no shard; tests/train/lattice/sweep.sh runs all");
    space_open(&all);
    size_t *number = mem_new(all.n / of + 1, sizeof(*number));
    for (size_t k = all.n * i / of; k < all.n * (i + 1) / of; k++)
        number[n++] = k;
    printf("# %zu of %zu cells\n", n, all.n);
    T_EQ(space_run(&all, number, n), 0);
    space_close(&all);
    free(number);
}

/* WEFT_CELLS="15 4711": those of these numbers, ascending. */
static void these(void)
{
    const char *text = getenv("WEFT_CELLS");
    size_t n = 0;
    if (!text)
        t_skip("WEFT_CELLS names no cells: expected their numbers");
    space_open(&all);
    size_t *number = mem_new(strlen(text) / 2 + 1, sizeof(*number));
    for (char *end; *text; text = end + strspn(end, " ")) {
        number[n] = strtoull(text, &end, 10);
        T_CHECK(end > text && number[n++] < all.n);
    }
    T_EQ(space_run(&all, number, n), 0);
    space_close(&all);
    free(number);
}

T_MAIN(T_CASE(pairs_of_values), T_CASE(fifty_cells), T_CASE(shard), T_CASE(these))
