/* SPDX-License-Identifier: Apache-2.0 */
#include "train/comm/skip.h"

#include <stdio.h>

#define FAULT_NAME "comm_skip"

static const char *const groups[GROUP_COUNT] = {
    [GROUP_TP] = "tp",       [GROUP_CP] = "cp",       [GROUP_DP] = "dp",
    [GROUP_DP_CP] = "dp_cp", [GROUP_PP] = "pp",       [GROUP_EP] = "ep",
    [GROUP_ETP] = "etp",     [GROUP_EDP] = "edp",     [GROUP_ENDS] = "ends",
    [GROUP_WORLD] = "world", [GROUP_SHARD] = "shard", [GROUP_REPLICA] = "replica",
};

static bool is(const char *kind, const char *mark, uint64_t n)
{
    char at[32];
    snprintf(at, sizeof(at), "%s%s%llu", kind, mark, (unsigned long long)n);
    return fault_is(FAULT_NAME, at);
}

/* The message to or from `peer`; counted in `count`. */
static bool message_is(const struct comm_call *call, int peer, uint64_t *count)
{
    if (peer == COMM_NOBODY)
        return false;
    BUG_ON(peer >= COMM_COUNTED, "comm_skip counts the messages of %d ranks at most", COMM_COUNTED);
    return is(groups[call->group], ">:", ++count[peer]);
}

bool comm_skips(struct comm *c, struct comm_call *call)
{
    int me = comm_index(c, call->group);
    struct comm_counts *n = &c->counts;
    if (!fault_kind(FAULT_NAME) || c->planning || comm_size(c, call->group) == 1 ||
        call->kind == COMM_BARRIER)
        return false;
    if (call->kind != COMM_EXCHANGE) {
        bool both = is("", "", ++n->all);
        return is(groups[call->group], ":", ++n->group[call->group]) || both;
    }
    if (call->to_rank == me) /* with oneself */
        return false;
    if (message_is(call, call->to_rank, n->to[call->group])) {
        call->to_rank = COMM_NOBODY;
        call->from = (struct tensor){0};
    }
    if (message_is(call, call->from_rank, n->by[call->group])) {
        call->from_rank = COMM_NOBODY;
        call->to = (struct tensor){0};
    }
    return call->to_rank == COMM_NOBODY && call->from_rank == COMM_NOBODY;
}
