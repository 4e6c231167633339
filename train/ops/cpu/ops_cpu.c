/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/ops.h"

#include <string.h>

#include "base/core/cpu.h"
#include "train/ops/cpu/cpu.h"

static bool always(void)
{
    return true;
}

#ifdef __x86_64__
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return has_avx2() && cpu_avx512();
}
#endif

/* From the slowest up. */
static const struct level {
    const char *name;
    bool (*here)(void);
    void (*fill)(struct ops *o);
} levels[] = {
    {"ref", always, ref32_fill_table},
    {"plain", always, vec128_fill_table},
#ifdef __x86_64__
    {"avx2", has_avx2, vec256_fill_table},
    {"avx512", has_avx512, vec512_fill_table},
#endif
};
enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

static int level_of(const char *name)
{
    int best = -1;
    for (int i = 0; i < LEVELS; i++)
        if (levels[i].here() && (!name || strcmp(levels[i].name, name) == 0))
            best = i;
    return best;
}

int ops_cpu_init(struct ops *o, struct dev *d, struct slab *workspace, enum dtype real,
                 const char *level, struct err *e)
{
    int last = level_of(level);
    if (last < 0)
        return err_set(e, ERR_USAGE,
                       "the processor has no ops of level '%s' (ref, plain, avx2, avx512)", level);
    *o = (struct ops){.dev = d, .workspace = workspace, .layer = -1, .call = ops_run};
    ops_set_types(o, real, (struct ops_narrow){0});
    if (real == DTYPE_F64)
        ref64_fill_table(o);
    for (int i = 0; i <= last && real != DTYPE_F64; i++)
        levels[i].fill(o);
    o->widens = dtype_is_narrow(real);
    return 0;
}

int ops_cpu_open(struct ops *o, struct dev *d, struct slab *workspace, const struct ops_config *c,
                 struct err *e)
{
    struct ops_narrow n = c->narrow;
    int code = ops_cpu_init(o, d, workspace, c->real, c->kernels, e);
    if (code)
        return code;
    ops_set_types(o, c->real, n);
    o->widens = o->widens || n.grad || n.master || n.moment[0] || n.moment[1];
    return code;
}
