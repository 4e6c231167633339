/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/all_ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* Bytes travel as integers, each rank's padded to the longest. */
enum { WORD = sizeof(int32_t), BYTES_MOST = 1 << 28 };

int all_ranks_gather(struct comm *c, const void *bytes, size_t n, struct buf *all, size_t *size,
                     struct err *e)
{
    size_t world = (size_t)c->world, most = 0;
    int32_t mine = (int32_t)n, *sizes = mem_new(world, sizeof(*sizes));
    BUG_ON(n > BYTES_MOST, "%zu bytes for all ranks", n);
    comm_wait(c, comm_all_gather(c, GROUP_WORLD, tensor_1d(sizes, DTYPE_I32, (int64_t)world),
                                 tensor_1d(&mine, DTYPE_I32, 1)));
    int code = comm_fault(c, e);
    for (size_t i = 0; !code && i < world; i++) {
        if (sizes[i] < 0 || sizes[i] > BYTES_MOST) {
            code = err_set(e, ERR_FAULT, "rank %zu has %d bytes for all ranks: expected 0 to %d", i,
                           sizes[i], BYTES_MOST);
            if (e)
                e->finder = ERR_FOUND_BY_JOB;
        }
        size[i] = (size_t)sizes[i];
        most = size[i] > most ? size[i] : most;
    }
    size_t words = (most + WORD - 1) / WORD;
    if (!code && words) {
        int32_t *to = mem_new(words * world, WORD), *from = mem_new(words, WORD);
        if (n)
            memcpy(from, bytes, n);
        comm_wait(c, comm_all_gather(c, GROUP_WORLD,
                                     tensor_1d(to, DTYPE_I32, (int64_t)(words * world)),
                                     tensor_1d(from, DTYPE_I32, (int64_t)words)));
        code = comm_fault(c, e);
        for (size_t i = 0; !code && i < world; i++)
            buf_add(all, (const char *)(to + i * words), size[i]);
        free(to);
        free(from);
    }
    free(sizes);
    return code;
}

int all_ranks_share(struct comm *c, struct buf *b, struct err *e)
{
    struct buf all = {0};
    size_t *size = mem_new((size_t)c->world, sizeof(*size));
    int code = all_ranks_gather(c, b->data, c->rank ? 0 : b->len, &all, size, e);
    if (!code) {
        buf_finish(b);
        *b = all;
    } else {
        buf_finish(&all);
    }
    free(size);
    return code;
}

enum { TOLD = 1 << 16 };

static int first_above(const int32_t *all, int n, int32_t least)
{
    int i = 0;
    while (i < n && all[i] <= least)
        i++;
    return i;
}

int all_ranks_agree(struct comm *c, int code, struct err *e)
{
    if (c->world == 1)
        return code;
    size_t world = (size_t)c->world;
    bool told = code && (!e || e->msg[0]); /* by this rank: no sentence, no agreement before */
    int32_t mine = code + (told ? TOLD : 0), *all = mem_new(world, sizeof(*all));
    struct err fault;
    comm_wait(c, comm_all_gather(c, GROUP_WORLD, tensor_1d(all, DTYPE_I32, c->world),
                                 tensor_1d(&mine, DTYPE_I32, 1)));
    int first = 0, failed = comm_fault(c, &fault);
    if (failed && !code && e)
        *e = fault;
    if (!failed) {
        first = first_above(all, c->world, TOLD);
        first = first < c->world ? first : first_above(all, c->world, 0);
        failed = first < c->world ? comm_code(all[first] % TOLD) : 0;
        if (failed && first != c->rank && e)
            *e = (struct err){.code = failed};
    } else if (code) {
        failed = code;
    }
    free(all);
    return failed;
}

int all_ranks_max(struct comm *c, int value)
{
    int32_t v = value;
    if (c->world == 1)
        return value;
    comm_wait(c, comm_all_reduce(c, GROUP_WORLD, tensor_1d(&v, DTYPE_I32, 1), REDUCE_MAX));
    return c->fault ? value : v;
}
