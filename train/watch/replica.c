/* SPDX-License-Identifier: Apache-2.0 */
#include "train/watch/replica.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/fault.h"
#include "base/core/hash.h"
#include "base/core/mem.h"

static uint64_t digest(const struct replica *r)
{
    char text[XXH_TEXT];
    xxh_once(r->at, r->bytes, text);
    text[16] = 0;
    return strtoull(text, NULL, 16);
}

/* The member whose digest of a tensor most members have; the first of several such. */
static int most_common(const uint64_t *all, int members, size_t n, size_t at)
{
    int best = 0, most = 0;
    for (int k = 0; k < members; k++) {
        int same = 0;
        for (int j = 0; j < members; j++)
            same += all[(size_t)j * n + at] == all[(size_t)k * n + at];
        if (same > most) {
            most = same;
            best = k;
        }
    }
    return best;
}

/* Names those that differ from the most common digest. */
static int name_them(const struct comm *c, enum group g, const struct replica *r,
                     const uint64_t *all, size_t n, size_t at, struct err *e)
{
    int members = comm_size(c, g), best = most_common(all, members, n, at), others = 0;
    char ranks[256];
    int len = 0;
    for (int k = 0; k < members; k++)
        if (all[(size_t)k * n + at] != all[(size_t)best * n + at]) {
            others++;
            if (len < (int)sizeof(ranks) - 16)
                len += snprintf(ranks + len, sizeof(ranks) - (size_t)len, "%s%d", len ? ", " : "",
                                mesh_group_rank(c->mesh, c->rank, g, k));
        }
    return err_set(
        e, ERR_FAULT, "%s differs between replicas: rank%s %s%s %s other values than rank %d",
        r[at].name, others > 1 ? "s" : "", ranks, len >= (int)sizeof(ranks) - 16 ? ", ..." : "",
        others > 1 ? "have" : "has", mesh_group_rank(c->mesh, c->rank, g, best));
}

int replicas_compare(struct comm *c, enum group g, const struct replica *r, size_t n, struct err *e)
{
    size_t members = (size_t)comm_size(c, g);
    if (n == 0 || members == 1)
        return 0;
    uint64_t *own = mem_new(n, sizeof(*own)), *all = mem_new(n * members, sizeof(*all));
    for (size_t i = 0; i < n; i++)
        own[i] = digest(&r[i]);
    /* digests travel as the bits of doubles, which nobody computes with */
    comm_wait(c, comm_all_gather(c, g, tensor_1d(all, DTYPE_F64, (int64_t)(n * members)),
                                 tensor_1d(own, DTYPE_F64, (int64_t)n)));
    int code = comm_fault(c, e);
    for (size_t i = 0; i < n && !code; i++)
        for (size_t k = 1; k < members && !code; k++)
            if (all[k * n + i] != all[i] && !FAULT("replicas"))
                code = name_them(c, g, r, all, n, i, e);
    free(own);
    free(all);
    return code;
}
