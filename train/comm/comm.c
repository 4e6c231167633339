/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/comm.h"

#include <stdio.h>

#include "train/comm/call.h"
#include "train/comm/skip.h"

/* Calls that are wrong on any rank are bugs; calls that differ between ranks are faults of the run.
 */
static void check(const struct comm *c, const struct comm_call *call)
{
    int n = comm_size(c, call->group), me = comm_index(c, call->group);
    const char *name = comm_kind_name(call->kind);
    BUG_ON(me < 0, "rank %d is not in the %s group", c->rank, mesh_group_name(call->group));
    BUG_ON(!tensor_none(call->to) && !tensor_contiguous(call->to), "%s into gaps", name);
    BUG_ON(!tensor_none(call->from) && !tensor_contiguous(call->from), "%s out of gaps", name);
    int64_t to = comm_elements(call->to), from = comm_elements(call->from);
    if (!tensor_none(call->to) && !tensor_none(call->from) && call->kind != COMM_EXCHANGE)
        BUG_ON(call->to.dtype != call->from.dtype, "%s of two types", name);
    switch (call->kind) {
    case COMM_ALL_GATHER:
        BUG_ON(to != n * from, "%s of %lld x %d elements into %lld", name, (long long)from, n,
               (long long)to);
        break;
    case COMM_REDUCE_SCATTER:
        BUG_ON(from != n * to, "%s of %lld elements into %lld x %d", name, (long long)from,
               (long long)to, n);
        break;
    case COMM_BROADCAST:
        BUG_ON(call->from_rank < 0 || call->from_rank >= n, "%s from rank %d", name,
               call->from_rank);
        break;
    case COMM_EXCHANGE:
        BUG_ON(call->to_rank < COMM_NOBODY || call->to_rank >= n || call->from_rank < COMM_NOBODY ||
                   call->from_rank >= n,
               "%s with ranks %d and %d", name, call->to_rank, call->from_rank);
        BUG_ON((call->to_rank == me) != (call->from_rank == me), "%s with oneself by half", name);
        break;
    case COMM_ALL_TO_ALL:
        BUG_ON(comm_offset(call->from, call->give, n) != from ||
                   comm_offset(call->to, call->take, n) != to,
               "%s whose counts do not add up", name);
        BUG_ON(
            comm_offset(call->from, call->give, me + 1) - comm_offset(call->from, call->give, me) !=
                comm_offset(call->to, call->take, me + 1) - comm_offset(call->to, call->take, me),
            "%s with other counts given to oneself than taken", name);
        break;
    default:
        break;
    }
}

static struct comm_ticket issue(struct comm *c, struct comm_call call)
{
    check(c, &call);
    if (comm_skips(c, &call))
        return (struct comm_ticket){0};
    return c->fn->issue(c, &call);
}

struct comm_ticket comm_all_reduce(struct comm *c, enum group g, struct tensor t, enum reduce r)
{
    return issue(c, (struct comm_call){.kind = COMM_ALL_REDUCE, .group = g, .reduce = r, .to = t});
}

struct comm_ticket comm_all_gather(struct comm *c, enum group g, struct tensor whole,
                                   struct tensor part)
{
    return issue(
        c, (struct comm_call){.kind = COMM_ALL_GATHER, .group = g, .to = whole, .from = part});
}

struct comm_ticket comm_reduce_scatter(struct comm *c, enum group g, struct tensor part,
                                       struct tensor whole, enum reduce r)
{
    return issue(
        c, (struct comm_call){
               .kind = COMM_REDUCE_SCATTER, .group = g, .reduce = r, .to = part, .from = whole});
}

struct comm_ticket comm_broadcast(struct comm *c, enum group g, struct tensor t, int from)
{
    return issue(
        c, (struct comm_call){.kind = COMM_BROADCAST, .group = g, .to = t, .from_rank = from});
}

struct comm_ticket comm_exchange(struct comm *c, enum group g, struct tensor give, int to,
                                 struct tensor take, int from)
{
    return issue(c, (struct comm_call){.kind = COMM_EXCHANGE,
                                       .group = g,
                                       .to = take,
                                       .from = give,
                                       .to_rank = to,
                                       .from_rank = from});
}

struct comm_ticket comm_all_to_all(struct comm *c, enum group g, struct tensor take,
                                   const int64_t *take_rows, struct tensor give,
                                   const int64_t *give_rows)
{
    return issue(c, (struct comm_call){.kind = COMM_ALL_TO_ALL,
                                       .group = g,
                                       .to = take,
                                       .from = give,
                                       .give = give_rows,
                                       .take = take_rows});
}

struct comm_ticket comm_barrier(struct comm *c, enum group g)
{
    return issue(c, (struct comm_call){.kind = COMM_BARRIER, .group = g});
}

int comm_fault(const struct comm *c, struct err *e)
{
    if (!c->fault)
        return 0;
    err_set(e, c->fault, "%s", c->fault_text);
    if (e) {
        e->finder = c->fault_heard ? ERR_FOUND_ELSEWHERE : ERR_FOUND_BY_JOB;
        e->step = c->fault_step;
    }
    return c->fault;
}

int comm_code(int code)
{
#define SAME(name, number, meaning) code == (number) ||
    bool known = ERR_CODES(SAME) false;
#undef SAME
    return known && code ? code : ERR_FAULT;
}

void comm_abort(struct comm *c, const struct err *why)
{
    c->fn->abort(c, why);
}

void comm_interrupt(const struct comm *c, const struct err *why)
{
    if (c->fn->interrupt)
        c->fn->interrupt(c, why);
}

void comm_look(const struct comm *c, struct comm_state *ret)
{
    *ret = (struct comm_state){.missing = COMM_NOBODY};
    if (c->fn->look)
        c->fn->look(c, ret);
}

void comm_close(struct comm *c)
{
    if (c->fn)
        c->fn->close(c);
    *c = (struct comm){0};
}
