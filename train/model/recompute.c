/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/recompute.h"

#include "base/core/fault.h"

static bool whole_layers(const struct model *m)
{
    return m->use == MODEL_TRAIN &&
           (m->recompute.kind == RECOMPUTE_UNIFORM || m->recompute.kind == RECOMPUTE_BLOCK);
}

/* Layers of a group. */
static int group_layers(const struct model *m)
{
    return m->recompute.kind == RECOMPUTE_UNIFORM ? m->recompute.layers : 1;
}

int recompute_sets(const struct model *m)
{
    int n = group_layers(m);
    return whole_layers(m) ? (n < m->most_layers ? n : m->most_layers) : 0;
}

int recompute_set(const struct model *m, int l)
{
    if (!whole_layers(m) || (m->recompute.kind == RECOMPUTE_BLOCK && l >= m->recompute.layers))
        return -1;
    return l % group_layers(m);
}

/* ---- inputs that are shared out ---------------------------------------------------------- */

bool recompute_distributes(const struct model *m, int l)
{
    return m->recompute.distribute && recompute_set(m, l) == 0;
}

int64_t recompute_part(const struct model *m)
{
    return m->tokens * m->spec->hidden / comm_size(m->comm, GROUP_TP);
}

static struct tensor group_input(const struct model *m, int l)
{
    return l ? m->a.layer[l].r1 : m->a.x;
}

/* All as one row of numbers. */
static struct tensor flat(struct tensor t)
{
    return tensor_1d(t.data, t.dtype, tensor_count(t));
}

void recompute_keep(struct model *m, const struct model_pass *p, int l)
{
    if (recompute_set(m, l) == 0)
        m->held = p->train ? &m->a.layer[l] : NULL;
    if (l == 0)
        m->held_input = m->held;
    if (!p->train || !recompute_distributes(m, l))
        return;
    int64_t part = recompute_part(m);
    struct tensor mine =
        tensor_rows(flat(group_input(m, l)), part * comm_index(m->comm, GROUP_TP), part);
    op_copy(m->ops, &(struct copy_args){.y = m->a.layer[l].kept, .x = mine});
}

/* ---- forward once more ------------------------------------------------------------------- */

/* Whether a group ends with this layer. */
static bool ends(const struct model *m, int l)
{
    return recompute_set(m, l) >= 0 && (l + 1 == m->stage.layers || recompute_set(m, l + 1) <= 0);
}

/* That of a stage may still be there. */
static void gather_input(struct model *m, int first)
{
    const struct layer_acts *group = &m->a.layer[first];
    if (first == 0 && m->held_input == group)
        return;
    comm_wait(m->comm,
              comm_all_gather(m->comm, GROUP_TP, flat(group_input(m, first)), group->kept));
    m->held_input = first == 0 ? group : m->held_input;
}

void recompute_group(struct model *m, const struct model_pass *p, int l)
{
    struct model_pass again = *p;
    int first = l - recompute_set(m, l);
    struct tensor none = {0}, sub = stream_rows(m, p, m->a.sub);
    if (!ends(m, l) || m->held == &m->a.layer[first])
        return;
    m->held = &m->a.layer[first];
    again.again = true;
    again.last = l;
    if (recompute_distributes(m, first) && !FAULT("saved_parts"))
        gather_input(m, first);
    block_forward(m, &again, first, stream_rows(m, p, group_input(m, first)), none, none);
    for (int i = first + 1; i <= l; i++)
        block_forward(m, &again, i, stream_rows(m, p, m->a.layer[i - 1].r2), sub,
                      m->w.layer[i - 1].down_b);
}
