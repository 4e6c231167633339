/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LAYOUT_LIST_H
#define TESTS_TRAIN_LAYOUT_LIST_H

#include "base/core/array.h"
#include "train/layout/layout.h"

struct layouts {
    const struct layout_model *model;
    int world;
    struct layout *at;
    size_t n, capacity;
};

static inline void add_if_valid(struct layouts *all, struct layout l)
{
    if (layout_check(all->model, &l, all->world, NULL))
        return;
    ARRAY_GROW(all->at, all->n, all->capacity);
    all->at[all->n++] = l;
}

/* Everything but the mesh. */
static inline void add_switches(struct layouts *all, struct mesh m)
{
    int64_t most_chunks = all->model->layers / m.pp;
    int most_zero = m.dp * m.cp > 1 ? ZERO_MAX : 0, comms = m.cp > 1 ? CONTEXT_COMMS : 1;
    struct layout l = {.mesh = m};
    for (int sequence = 0; sequence <= 1; sequence++)
        for (l.chunks = 1; l.chunks <= most_chunks; l.chunks++)
            for (l.zero = 0; l.zero <= most_zero; l.zero++)
                for (int comm = 0; comm < comms; comm++) {
                    l.sequence = sequence != 0;
                    l.context = (enum context_comm)comm;
                    add_if_valid(all, l);
                }
}

/* Both cuts of the experts, both orders of ranks. */
static inline void add_expert_cuts(struct layouts *all, struct mesh m)
{
    int stage = m.tp * m.cp * m.dp;
    for (int order = 0; order <= (m.pp > 1 && m.dp > 1); order++)
        for (int ep = 1; ep <= stage; ep++)
            for (int etp = 1; etp <= m.tp; etp += m.tp > 1 ? m.tp - 1 : 1) {
                m.ep = ep;
                m.etp = etp;
                m.pp_before_dp = order != 0;
                add_switches(all, m);
            }
}

/*
 * All layouts of `world` ranks that pass layout_check, in a fixed order, in new memory (free).
 * Returns how many; *ret is NULL if there are none. Layouts that a switch does not change are
 * listed once: only ZeRO 0 if one rank has the weights, only tp-cp-dp-pp if pp or dp is 1, only one
 * way of exchanging keys if cp is 1.
 */
static inline size_t layout_list(const struct layout_model *m, int world, struct layout **ret)
{
    struct layouts all = {.model = m, .world = world};
    for (int pp = 1; pp <= world; pp++)
        for (int cp = 1; cp <= world / pp; cp++)
            for (int tp = 1; tp <= world / pp / cp; tp++)
                if (world % (pp * cp * tp) == 0)
                    add_expert_cuts(&all, mesh_dense(tp, cp, world / (pp * cp * tp), pp));
    *ret = all.at;
    return all.n;
}

#endif
