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
    if (!p->execute && !o->entry[op].run && !p->failed.code)
        err_set(&p->failed, ERR_USAGE, "%s cannot run this model: it has no operation '%s'",
                o->dev->desc.name, op_name(op));
    const char *form = o->dev->desc.host ? NULL : ops_host_form(op, args);
    if (!p->execute && form && !p->failed.code)
        err_set(&p->failed, ERR_USAGE, "%s cannot run this model: its operation '%s' has no %s",
                o->dev->desc.name, op_name(op), form);
    if (!p->execute && o->entry[op].prepare && !p->failed.code &&
        o->entry[op].prepare(o, args, &p->failed))
        err_wrap(&p->failed, "%s", op_name(op));
    if (o->entry[op].run)
        p->call(o, op, args); /* the table is dry: scratch alone is measured */
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

/* As of rings: what is reduced or gathered leaves each rank but for its own share. */
static double bytes_sent(const struct comm_call *call, double to, double from, int n)
{
    double share = (double)(n - 1) / n;
    switch (call->kind) {
    case COMM_ALL_REDUCE:
        return 2 * share * to;
    case COMM_ALL_GATHER:
        return share * to;
    case COMM_REDUCE_SCATTER:
    case COMM_ALL_TO_ALL:
        return share * from;
    case COMM_BROADCAST:
        return share * to;
    case COMM_EXCHANGE:
        return call->to_rank == COMM_NOBODY ? 0 : from;
    default:
        return 0;
    }
}

static struct comm_ticket plan_issue(struct comm *c, const struct comm_call *call)
{
    struct plan *p = of_comm(c);
    size_t to = tensor_none(call->to) ? 0 : tensor_bytes(call->to);
    size_t from = tensor_none(call->from) ? 0 : tensor_bytes(call->from);
    p->collectives++;
    if (comm_size(c, call->group) > 1)
        p->traffic += (double)(to > from ? to : from);
    p->sent[call->group] += bytes_sent(call, (double)to, (double)from, comm_size(c, call->group));
    return p->execute ? p->comm->issue(c, call)
                      : comm_staging_issue(&p->staging, comm_wire_staged(c, call));
}

static void plan_wait(struct comm *c, struct comm_ticket t)
{
    if (of_comm(c)->execute)
        of_comm(c)->comm->wait(c, t);
    else
        comm_staging_wait(&of_comm(c)->staging, t);
}

/* ---- on and off -------------------------------------------------------------------------- */

void plan_wrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c, bool execute)
{
    *p = (struct plan){.execute = execute, .dev = d->fn, .comm = c->fn, .call = o->call};
    p->dev_wrap = d->fn ? *d->fn : (struct dev_table){0};
    p->dev_wrap.alloc = plan_alloc;
    p->dev_wrap.copy = plan_copy;
    p->dev_wrap.zero = plan_zero;
    p->comm_wrap = c->fn ? *c->fn : (struct comm_table){0};
    p->comm_wrap.issue = plan_issue;
    p->comm_wrap.wait = plan_wait;
    d->fn = &p->dev_wrap;
    c->fn = &p->comm_wrap;
    c->planning = !execute;
    o->call = plan_call;
    o->dry = !execute;
    o->wrapper = p;
}

void plan_unwrap(struct plan *p, struct dev *d, struct ops *o, struct comm *c)
{
    d->fn = p->dev;
    c->fn = p->comm;
    c->planning = false;
    o->call = p->call;
    o->dry = false;
    o->wrapper = NULL;
}

double plan_flops(const struct plan *p)
{
    double sum = 0;
    for (int i = 0; i < OP_COUNT; i++)
        sum += p->op[i].flops;
    return sum;
}
