/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/space.h"

/*
 * Each family of models in double on a sample of the layouts of 1 to 8 ranks, with and without
 * dropout, documents, recomputation and overlap, against the single rank.
 */

enum { SEED = 21, CELLS = 6, CELLS_FULL = 48, LAYOUTS_FULL = 40 };

/* How many layouts the cells have: their names, up to how gradients and weights are sent. */
static int layouts_of(const struct space *all, const size_t *number, size_t cells)
{
    static char name[CELLS_FULL][160];
    int n = 0, same;
    for (size_t i = 0; i < cells; i++) {
        struct cell c = space_cell(all, number[i]);
        c.overlap = 0;
        cell_name(&c, name[n], sizeof(name[n]));
        name[n][strcspn(name[n], ",")] = 0;
        for (same = 0; strcmp(name[same], name[n]) != 0;)
            same++;
        n += same == n;
    }
    return n;
}

static void run_family(struct spec spec)
{
    struct space all;
    size_t want = getenv("WEFT_FULL") ? CELLS_FULL : CELLS, number[CELLS_FULL], pairs, missing;
    space_open_model(&all, spec);
    size_t cells = space_sample(&all, SEED, want, number, &pairs, &missing);
    int layouts = layouts_of(&all, number, cells);
    printf("# %zu of %zu cells, %d layouts, %zu of %zu pairs of values\n", cells, all.n, layouts,
           pairs - missing, pairs);
    T_EQ(cells, want);
    T_CHECK(want < CELLS_FULL || layouts >= LAYOUTS_FULL);
    T_EQ(space_run(&all, number, cells), 0);
    space_close(&all);
}

#define FAMILY(name)                                                                               \
    static void name(void)                                                                         \
    {                                                                                              \
        run_family(cell_##name());                                                                 \
    }

FAMILY(qwen3)
FAMILY(mistral)
FAMILY(gemma2)
FAMILY(gemma3)
FAMILY(neox)
FAMILY(phi3)
FAMILY(qwen_moe)
FAMILY(qwen3_moe)

T_MAIN(T_CASE(qwen3), T_CASE(mistral), T_CASE(gemma2), T_CASE(gemma3), T_CASE(neox), T_CASE(phi3),
       T_CASE(qwen_moe), T_CASE(qwen3_moe))
