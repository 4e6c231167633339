/* SPDX-License-Identifier: Apache-2.0 */
#include "train/plan/plan.h"

/* Device and comm reach the plan through the table that stands in the place of theirs. */
static struct plan *of_dev(const struct dev *d)
{
    return (struct plan *)((uintptr_t)d->fn - offsetof(struct plan, dev_wrap));
}

static struct plan *of_comm(const struct comm *c)
{
    return (struct plan *)((uintptr_t)c->fn - offsetof(struct plan, comm_wrap));
}

/* ---- ops --------------------------------------------------------------------------------- */

static void plan_call(struct ops *o, enum op op, const void *args)
{
    struct plan *p = o->wrapper;
    struct op_cost cost = op_cost(op, args);
    p->op[op].calls++;
    p->op[op].flops += cost.flops;
    p->op[op].bytes += cost.bytes;
    if (p->execute) {
        p->call(o, op, args);
        return;
    }
    if (o->entry[op].scratch) {
        size_t mark = slab_mark(o->workspace);
        slab_bytes(o->workspace, o->entry[op].scratch(&o->dev->desc, args));
        slab_reset(o->workspace, mark);
    }
}

/* ---- device ------------------------------------------------------------------------------ */

static int plan_alloc(struct dev *d, enum place place, size_t bytes, void **ret, struct err *e)
{
    struct plan *p = of_dev(d);
    p->allocations++;
    return p->dev->alloc(d, place, bytes, ret, e);
}

static void plan_copy(struct dev *d, int stream, void *to, const void *from, size_t bytes)
{
    struct plan *p = of_dev(d);
    p->copied += (double)bytes;
    if (p->execute)
        p->dev->copy(d, stream, to, from, bytes);
}

static void plan_zero(struct dev *d, int stream, void *to, size_t bytes)
{
    struct plan *p = of_dev(d);
    if (p->execute)
        p->dev->zero(d, stream, to, bytes);
}

/* ---- comm -------------------------------------------------------------------------------- */

static bool counted(struct comm *c, enum group g, struct tensor t)
{
    struct plan *p = of_comm(c);
    p->collectives++;
    if (comm_size(c, g) > 1)
        p->traffic += (double)tensor_bytes(t);
    return p->execute;
}

static void plan_all_reduce(struct comm *c, enum group g, struct tensor t, enum reduce r)
{
    if (counted(c, g, t))
        of_comm(c)->comm->all_reduce(c, g, t, r);
}

static void plan_all_gather(struct comm *c, enum group g, struct tensor whole, struct tensor part)
{
    if (counted(c, g, whole))
        of_comm(c)->comm->all_gather(c, g, whole, part);
}

static void plan_reduce_scatter(struct comm *c, enum group g, struct tensor part,
                                struct tensor whole)
{
    if (counted(c, g, whole))
        of_comm(c)->comm->reduce_scatter(c, g, part, whole);
}

static void plan_broadcast(struct comm *c, enum group g, struct tensor t, int from)
{
    if (counted(c, g, t))
        of_comm(c)->comm->broadcast(c, g, t, from);
}

static void plan_send(struct comm *c, enum group g, struct tensor t, int to)
{
    if (counted(c, g, t))
        of_comm(c)->comm->send(c, g, t, to);
}

static void plan_recv(struct comm *c, enum group g, struct tensor t, int from)
{
    if (counted(c, g, t))
        of_comm(c)->comm->recv(c, g, t, from);
}

static void plan_wait(struct comm *c, enum group g)
{
    if (of_comm(c)->execute)
        of_comm(c)->comm->wait(c, g);
}

static void plan_barrier(struct comm *c, enum group g)
{
    if (of_comm(c)->execute)
        of_comm(c)->comm->barrier(c, g);
}

/* ---- on and off -------------------------------------------------------------------------- */

void plan_wrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c, bool execute)
{
    *p = (struct plan){.execute = execute, .dev = d->fn, .comm = c->fn, .call = o->call};
    p->dev_wrap = *d->fn;
    p->dev_wrap.alloc = plan_alloc;
    p->dev_wrap.copy = plan_copy;
    p->dev_wrap.zero = plan_zero;
    p->comm_wrap = *c->fn;
    p->comm_wrap.all_reduce = plan_all_reduce;
    p->comm_wrap.all_gather = plan_all_gather;
    p->comm_wrap.reduce_scatter = plan_reduce_scatter;
    p->comm_wrap.broadcast = plan_broadcast;
    p->comm_wrap.send = plan_send;
    p->comm_wrap.recv = plan_recv;
    p->comm_wrap.wait = plan_wait;
    p->comm_wrap.barrier = plan_barrier;
    d->fn = &p->dev_wrap;
    c->fn = &p->comm_wrap;
    o->call = plan_call;
    o->wrapper = p;
}

void plan_unwrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c)
{
    d->fn = p->dev;
    c->fn = p->comm;
    o->call = p->call;
    o->wrapper = NULL;
}

double plan_flops(const struct plan *p)
{
    double sum = 0;
    for (int i = 0; i < OP_COUNT; i++)
        sum += p->op[i].flops;
    return sum;
}
