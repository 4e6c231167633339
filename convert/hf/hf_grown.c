/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_grown.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "convert/hf/hf_rows.h"

static int sum_rows(const struct hf_folder *f, const struct hf_global *g, double *sum,
                    struct err *e)
{
    enum { AT_ONCE = 1 << 20 };
    int64_t rows = g->size[0], columns = g->size[1];
    int64_t most = columns < AT_ONCE ? AT_ONCE / (columns + !columns) : 1;
    float *some = mem_block((size_t)(most * columns) * sizeof(*some));
    int code = 0;
    for (int64_t at = 0, n; !code && at < rows; at += n) {
        n = rows - at < most ? rows - at : most;
        const struct box_mem to = {some, DTYPE_F32, {{at, 0}, {n, columns}}, columns};
        code = hf_folder_read(f, g->name, g->rank, g->size, to, e);
        for (int64_t i = 0; !code && i < n * columns; i++)
            sum[i % columns] += (double)some[i];
    }
    free(some);
    return code;
}

int hf_grown_open(struct hf_grown *ret, const struct hf_folder *f, int64_t is, struct err *e)
{
    size_t n = 0;
    int code = 0;
    *ret = (struct hf_grown){.folder = f, .is = is};
    for (size_t i = 0; !code && i < f->map.globals; i++) {
        const struct hf_global *g = &f->map.global[i];
        if (!hf_rows_has(g->name))
            continue;
        size_t columns = (size_t)g->size[1];
        double *sum = mem_new(columns + 1, sizeof(*sum));
        float *mean = mem_new(columns + 1, sizeof(*mean));
        code = sum_rows(f, g, sum, e);
        for (size_t c = 0; c < columns; c++)
            mean[c] = (float)(sum[c] / (double)g->size[0]);
        free(sum);
        ret->was = g->size[0];
        ret->table[n].name = g->name;
        ret->table[n++].mean = mean;
    }
    return code;
}

void hf_grown_finish(struct hf_grown *g)
{
    for (int i = 0; i < HF_GROWN_TABLES; i++)
        free(g->table[i].mean);
    *g = (struct hf_grown){0};
}

/* Rows from `at` on of the box that are new. */
static void fill_grown(const float *mean, int64_t at, struct box_mem to)
{
    int64_t first = to.box.begin[0] > at ? to.box.begin[0] : at;
    int64_t end = to.box.begin[0] + to.box.count[0];
    for (int64_t row = first; row < end; row++) {
        struct box_mem one = to;
        one.data =
            (char *)to.data + (size_t)((row - to.box.begin[0]) * to.stride) * dtype_size(to.dtype);
        one.box.begin[0] = row;
        one.box.count[0] = 1;
        float *from = mem_block((size_t)to.box.count[1] * sizeof(*from));
        memcpy(from, mean + to.box.begin[1], (size_t)to.box.count[1] * sizeof(*from));
        box_copy(one, (struct box_mem){from, DTYPE_F32, one.box, to.box.count[1]});
        free(from);
    }
}

int hf_grown_read(const struct hf_grown *g, const char *name, int rank, const int64_t *size,
                  struct box_mem to, struct err *e)
{
    for (int i = 0; i < HF_GROWN_TABLES; i++) {
        if (!g->table[i].name || strcmp(g->table[i].name, name) != 0)
            continue;
        const int64_t was[2] = {g->was, size[1]};
        struct box_mem old = to;
        int64_t left = g->was - to.box.begin[0];
        old.box.count[0] = left < 0 ? 0 : left < to.box.count[0] ? left : to.box.count[0];
        fill_grown(g->table[i].mean, g->was, to);
        return old.box.count[0] ? hf_folder_read(g->folder, name, rank, was, old, e) : 0;
    }
    return hf_folder_read(g->folder, name, rank, size, to, e);
}
