/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

#include <string.h>

#include "train/ops/cpu/cpu.h"

/* From the slowest up; a level includes those before it. */
static const struct level {
    const char *name;
    void (*fill)(struct ops *o);
} levels[] = {
    {"ref", ref32_fill_table},
};
enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

static int level_of(const char *name)
{
    for (int i = 0; i < LEVELS; i++)
        if (strcmp(levels[i].name, name) == 0)
            return i;
    return -1;
}

int ops_cpu_init(struct ops *o, struct dev *d, struct slab *workspace, enum dtype real,
                 const char *level, struct err *e)
{
    int last = level ? level_of(level) : LEVELS - 1;
    BUG_ON(real != DTYPE_F32 && real != DTYPE_F64, "ops in %s", dtype_name(real));
    if (last < 0)
        return err_set(e, ERR_USAGE, "no level '%s' of the ops table; there are ref", level);
    *o = (struct ops){.dev = d, .workspace = workspace, .real = real, .call = ops_run};
    if (real == DTYPE_F64)
        ref64_fill_table(o);
    for (int i = 0; i <= last && real == DTYPE_F32; i++)
        levels[i].fill(o);
    return 0;
}
