/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/call.h"

#include <stdio.h>
#include <string.h>

static const char *const names[COMM_KINDS] = {
    [COMM_ALL_REDUCE] = "all-reduce",
    [COMM_ALL_GATHER] = "all-gather",
    [COMM_REDUCE_SCATTER] = "reduce-scatter",
    [COMM_BROADCAST] = "broadcast",
    [COMM_EXCHANGE] = "exchange",
    [COMM_ALL_TO_ALL] = "all-to-all",
    [COMM_BARRIER] = "barrier",
};

const char *comm_kind_name(enum comm_kind k)
{
    return (unsigned)k < COMM_KINDS ? names[k] : "unknown call";
}

int64_t comm_elements(struct tensor t)
{
    return tensor_none(t) ? 0 : tensor_count(t);
}

int64_t comm_offset(struct tensor t, const int64_t *rows, int k)
{
    int64_t row = 1, n = 0;
    for (int d = 1; d < t.rank; d++)
        row *= t.size[d];
    for (int i = 0; i < k; i++)
        n += rows[i];
    return n * row;
}

bool comm_alone(struct comm *c, const struct comm_call *call)
{
    int n = comm_size(c, call->group);
    bool oneself = call->kind == COMM_EXCHANGE && call->to_rank == comm_index(c, call->group);
    bool nobody = call->kind == COMM_EXCHANGE && call->to_rank == COMM_NOBODY &&
                  call->from_rank == COMM_NOBODY;
    if (n > 1 && !oneself && !nobody)
        return false;
    if (tensor_none(call->from) || nobody) /* in place, or a barrier */
        return true;
    BUG_ON(comm_elements(call->to) != comm_elements(call->from) ||
               call->to.dtype != call->from.dtype,
           "%s of a rank with itself between tensors that differ", comm_kind_name(call->kind));
    if (call->to.data != call->from.data)
        memcpy(call->to.data, call->from.data, tensor_bytes(call->from));
    return true;
}

struct comm_slice comm_slice_of(const struct comm_call *call, int n, int k)
{
    struct tensor whole = call->kind == COMM_ALL_REDUCE ? call->to : call->from;
    int64_t count = comm_elements(whole), each = count / n, more = count % n;
    return (struct comm_slice){.begin = each * k + (k < more ? k : more),
                               .end = each * (k + 1) + (k + 1 < more ? k + 1 : more)};
}

/* One side of what two ranks exchange about a call: `t` and the rows of it that concern the other.
 */
static struct comm_hello hello(const struct comm_call *call, struct tensor t, const int64_t *rows,
                               int k, uint64_t order)
{
    struct comm_hello h = {.kind = (int32_t)call->kind,
                           .reduce = (int32_t)call->reduce,
                           .dtype = (int32_t)t.dtype,
                           .elements = comm_elements(t),
                           .order = (int64_t)order};
    if (call->kind == COMM_BROADCAST)
        h.root = call->from_rank;
    if (call->kind == COMM_ALL_TO_ALL)
        h.elements = comm_offset(t, rows, k + 1) - comm_offset(t, rows, k);
    return h;
}

struct comm_hello comm_hello_to(const struct comm_call *call, int k, uint64_t order)
{
    bool in_place = tensor_none(call->from);
    return hello(call, in_place ? call->to : call->from, call->give, k, order);
}

struct comm_hello comm_hello_from(const struct comm_call *call, int k, uint64_t order)
{
    if (call->kind == COMM_EXCHANGE || call->kind == COMM_ALL_TO_ALL)
        return hello(call, call->to, call->take, k, order);
    return comm_hello_to(call, k, order);
}

static void describe_call(struct comm_hello h, char *to, size_t size)
{
    const char *type = (unsigned)h.dtype < DTYPE_COUNT ? dtype_name((enum dtype)h.dtype) : "values";
    int n = snprintf(to, size, "%s", comm_kind_name((enum comm_kind)h.kind));
    if (h.kind != COMM_BARRIER)
        n += snprintf(to + n, size - (size_t)n, " of %lld %s", (long long)h.elements, type);
    if (h.kind == COMM_BROADCAST)
        snprintf(to + n, size - (size_t)n, " from its rank %d", h.root);
    else if (h.reduce == REDUCE_MAX)
        snprintf(to + n, size - (size_t)n, " (maximum)");
}

bool comm_hello_fits(const struct comm_call *call, struct comm_hello got, struct comm_hello want,
                     int from, int to, char *sentence, size_t size)
{
    if (got.kind == want.kind && got.reduce == want.reduce && got.dtype == want.dtype &&
        got.root == want.root && got.elements == want.elements && got.order == want.order)
        return true;
    char a[96], b[96];
    describe_call(got, a, sizeof(a));
    describe_call(want, b, sizeof(b));
    snprintf(sentence, size, "call %lld of the %s group: rank %d calls %s, rank %d calls %s",
             (long long)want.order, mesh_group_name(call->group), from, a, to, b);
    return false;
}
