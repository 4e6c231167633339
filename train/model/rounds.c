/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/rounds.h"

#include "base/core/fault.h"

/* ---- counts ------------------------------------------------------------------------------ */

/* Pairs of the group's rank `from` whose experts the rank `to` has. */
static int64_t pairs_between(const struct routing *g, int from, int to)
{
    const struct expert_shape *x = &g->shape;
    const int32_t *count = g->a.counts + ((int64_t)from * x->senders + to) * x->experts;
    int64_t sum = 0;
    for (int64_t e = 0; e < x->experts; e++)
        sum += count[e];
    return sum;
}

static void count_rounds(struct routing *g)
{
    int64_t most = 1;
    for (int to = 0; to < g->shape.senders; to++) {
        int64_t sum = 0;
        for (int from = 0; from < g->shape.senders; from++)
            sum += pairs_between(g, from, to);
        most = sum > most ? sum : most;
    }
    g->rounds = (int)((most + g->shape.room - 1) / g->shape.room);
}

/* Whether all rows stay on this rank, or nobody knows how many travel: one round. */
static bool is_simple(const struct model *m, const struct routing *g)
{
    return g->shape.senders == 1 || m->ops->dry;
}

void rounds_exchange(struct model *m, struct routing *g, struct tensor count)
{
    struct dev *dev = m->ops->dev;
    struct tensor all = count;
    g->rounds = 1;
    if (g->shape.senders > 1) {
        all = slab_1d(m->ops->workspace, DTYPE_I32, g->shape.senders * count.size[0]);
        comm_wait(m->comm, comm_all_gather(m->comm, GROUP_EP, all, count));
    }
    if (is_simple(m, g))
        return;
    dev->fn->copy(dev, STREAM_COMPUTE, g->a.counts, all.data, tensor_bytes(all));
    dev->fn->sync(dev, STREAM_COMPUTE);
    count_rounds(g);
}

/* ---- a round ----------------------------------------------------------------------------- */

/* What the planner takes for the rows that travel; of one rank all. */
static void count_as_balanced(struct routing *g)
{
    int n = g->shape.senders;
    for (int i = 0; i < n; i++)
        g->a.give[i] = g->a.take[i] = g->shape.pairs * (i + 1) / n - g->shape.pairs * i / n;
}

/* Of the first `n` rows of a rank, those before and in the round that begins with row `first`:
 * their place in it. */
static int64_t place_in(const struct routing *g, int64_t first, int64_t n)
{
    int64_t at = n - first;
    return at < 0 ? 0 : at < g->shape.room ? at : g->shape.room;
}

/* Rows from each rank, and where each group of rows begins. */
static void count_taken(const struct model *m, struct routing *g, int64_t first)
{
    const struct expert_shape *x = &g->shape;
    int64_t n = 0, E = m->spec->experts;
    for (int i = 0; i < x->senders; i++) {
        int64_t before = place_in(g, first, n);
        for (int64_t e = 0; e < x->experts; e++) {
            g->a.starts[i * x->experts + e] = (int32_t)place_in(g, first, n);
            n += g->a.counts[i * E + x->first + e];
        }
        g->a.take[i] = place_in(g, first, n) - before;
    }
    g->a.starts[x->senders * x->experts] = (int32_t)place_in(g, first, n);
}

/* Rows to each rank, and where they begin: its rows of ranks before this one come first. */
static void count_given(struct routing *g, int me, int64_t first)
{
    int64_t own = 0;
    for (int to = 0; to < g->shape.senders; to++) {
        int64_t before = 0, n = pairs_between(g, me, to);
        for (int from = 0; from < me; from++)
            before += pairs_between(g, from, to);
        g->a.give[to] = place_in(g, first, before + n) - place_in(g, first, before);
        g->a.at[to] = own + (first > before && !FAULT("expert_round") ? first - before : 0);
        own += n;
    }
}

static void cut_received(const struct model *m, struct routing *g)
{
    g->got = 0;
    for (int i = 0; i < g->shape.senders; i++)
        g->got += g->a.take[i];
    if (m->ops->dry)
        g->got = g->shape.room;
    g->in = tensor_rows(g->a.in, 0, g->got);
    g->pre = tensor_rows(g->a.pre, 0, g->got);
    g->h = tensor_rows(g->a.h, 0, g->got);
}

void rounds_begin(struct model *m, struct routing *g, int round)
{
    struct dev *dev = m->ops->dev;
    int64_t first = round * g->shape.room;
    if (is_simple(m, g)) {
        count_as_balanced(g);
        cut_received(m, g);
        return;
    }
    if (round) /* until then the device may not have read what the one before has left here */
        dev->fn->sync(dev, STREAM_COMPUTE);
    count_taken(m, g, first);
    count_given(g, comm_index(m->comm, GROUP_EP), first);
    dev->fn->copy(dev, STREAM_COMPUTE, g->a.start.data, g->a.starts, tensor_bytes(g->a.start));
    cut_received(m, g);
}

void rounds_resume(const struct model *m, struct routing *g)
{
    g->rounds = 1;
    if (!is_simple(m, g))
        count_rounds(g);
    cut_received(m, g);
}

/* ---- rows on their way ------------------------------------------------------------------- */

/* Between this rank's pairs and `together`, where those of a round follow each other. */
static void put_together(struct model *m, const struct routing *g, struct tensor together,
                         struct tensor pairs, bool back)
{
    int64_t at = 0;
    for (int i = 0; i < g->shape.senders; at += g->a.give[i++]) {
        if (!g->a.give[i])
            continue;
        struct tensor there = tensor_rows(together, at, g->a.give[i]);
        struct tensor here = tensor_rows(pairs, g->a.at[i], g->a.give[i]);
        op_copy(m->ops, &(struct copy_args){.y = back ? here : there, .x = back ? there : here});
    }
}

static struct tensor all_given(const struct routing *g, struct tensor spare)
{
    int64_t n = 0;
    for (int i = 0; i < g->shape.senders; i++)
        n += g->a.give[i];
    return tensor_rows(spare, 0, n);
}

/* The planner's rows. */
static struct tensor balanced(const struct model *m, const struct routing *g, struct tensor rows)
{
    return m->ops->dry ? tensor_rows(rows, 0, g->shape.pairs) : rows;
}

void rounds_send(struct model *m, const struct routing *g, struct tensor rows, struct tensor pairs,
                 struct tensor spare)
{
    struct tensor give = g->rounds > 1 ? all_given(g, spare) : pairs;
    if (g->shape.senders == 1)
        return;
    if (g->rounds > 1)
        put_together(m, g, give, pairs, false);
    comm_wait(m->comm,
              comm_all_to_all(m->comm, GROUP_EP, balanced(m, g, rows), g->a.take, give, g->a.give));
}

void rounds_return(struct model *m, const struct routing *g, struct tensor pairs,
                   struct tensor rows, struct tensor spare)
{
    struct tensor take = g->rounds > 1 ? all_given(g, spare) : pairs;
    if (g->shape.senders == 1)
        return;
    comm_wait(m->comm,
              comm_all_to_all(m->comm, GROUP_EP, take, g->a.give, balanced(m, g, rows), g->a.take));
    if (g->rounds > 1)
        put_together(m, g, take, pairs, true);
}
