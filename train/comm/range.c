/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/range.h"

#include "train/comm/call.h"

struct comm_range comm_range(struct tensor t, int64_t begin, int64_t end)
{
    int64_t size = (int64_t)dtype_size(t.dtype);
    return (struct comm_range){comm_at(t, begin), (end - begin) * size};
}

static struct comm_range whole_range(struct tensor t)
{
    return comm_range(t, 0, comm_elements(t));
}

static struct comm_range rows_range(struct tensor t, const int64_t *rows, int k)
{
    return comm_range(t, comm_offset(t, rows, k), comm_offset(t, rows, k + 1));
}

struct comm_range comm_given(const struct comm_call *call, int me, int k)
{
    switch (call->kind) {
    case COMM_ALL_GATHER:
        return whole_range(call->from);
    case COMM_BROADCAST:
        return me == call->from_rank ? whole_range(call->to) : (struct comm_range){0};
    case COMM_EXCHANGE:
        return k == call->to_rank ? whole_range(call->from) : (struct comm_range){0};
    case COMM_ALL_TO_ALL:
        return rows_range(call->from, call->give, k);
    default:
        return (struct comm_range){0};
    }
}

struct comm_range comm_taken(const struct comm_call *call, int k)
{
    int64_t n;
    switch (call->kind) {
    case COMM_ALL_GATHER:
        n = comm_elements(call->from);
        return comm_range(call->to, k * n, (k + 1) * n);
    case COMM_BROADCAST:
    case COMM_EXCHANGE:
        return k == call->from_rank ? whole_range(call->to) : (struct comm_range){0};
    case COMM_ALL_TO_ALL:
        return rows_range(call->to, call->take, k);
    default:
        return (struct comm_range){0};
    }
}

struct comm_range comm_piece(struct comm_range r, int64_t round, int64_t most)
{
    int64_t begin = round * most;
    if (begin >= r.bytes)
        return (struct comm_range){0};
    return (struct comm_range){r.at + begin, r.bytes - begin < most ? r.bytes - begin : most};
}
