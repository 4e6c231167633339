/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/fault.h"
#include "train/model/model.h"

/*
 * Between the residual stream and the products that tensor parallelism cuts. Without sequence
 * parallelism every rank of the group has all rows of the stream, and partial sums are added in
 * place. With it a rank has an equal, contiguous part of the rows (Korthikanti et al. 2022): they
 * are gathered in front of a product, and the sum is scattered.
 */

static int64_t parts(const struct model *m)
{
    return m->sequence ? comm_size(m->comm, GROUP_TP) : 1;
}

int64_t stream_count(const struct model *m, int64_t n)
{
    return n / parts(m);
}

void stream_number(const struct model *m, const struct model_pass *p, struct dropout *d)
{
    int at = m->sequence && !FAULT("sequence_dropout") ? comm_index(m->comm, GROUP_TP) : 0;
    int64_t n = stream_count(m, p->n);
    if (tensor_none(m->a.row) || FAULT("context_dropout"))
        d->row0 += (uint64_t)(at * n);
    else
        d->rows = tensor_rows(m->a.row, at * n, n);
}

struct tensor stream_rows(const struct model *m, const struct model_pass *p, struct tensor t)
{
    return tensor_none(t) ? t : tensor_rows(t, 0, stream_count(m, p->n));
}

struct tensor stream_gather(struct model *m, struct tensor part, struct comm_ticket *ret)
{
    *ret = (struct comm_ticket){0};
    if (!m->sequence)
        return part;
    struct tensor all =
        slab_2d(m->ops->workspace, part.dtype, part.size[0] * parts(m), part.size[1]);
    *ret = comm_all_gather(m->comm, GROUP_TP, all, part);
    return all;
}

struct tensor stream_partial(struct model *m, struct tensor sum)
{
    if (!m->sequence)
        return sum;
    return slab_2d(m->ops->workspace, sum.dtype, sum.size[0] * parts(m), sum.size[1]);
}

struct comm_ticket stream_reduce(struct model *m, struct tensor sum, struct tensor partial)
{
    if (!m->sequence)
        return comm_all_reduce(m->comm, GROUP_TP, sum, REDUCE_SUM);
    return comm_reduce_scatter(m->comm, GROUP_TP, sum, partial, REDUCE_SUM);
}
