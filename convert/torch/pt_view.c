/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/torch/pt_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* ---- reading -------------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const char *x = ((const struct pt_view *)a)->entry.name;
    const char *y = ((const struct pt_view *)b)->entry.name;
    return (x > y) - (x < y);
}

static const struct pt_view *find_view(const struct pt_own *own, const struct st_entry *t)
{
    struct pt_view key = {.entry = {.name = t->name}};
    return own->n ? bsearch(&key, own->view, own->n, sizeof(key), by_address) : NULL;
}

/* Where the first element of a row lies, counted in elements; rows count all sizes but the last. */
static int64_t row_offset(const struct pt_view *v, int64_t row)
{
    int last = v->entry.rank > 1 ? v->entry.rank - 1 : 1;
    int64_t at = 0;
    for (int d = last - 1; d >= 0 && d < v->entry.rank; d--) {
        at += row % v->entry.size[d] * v->stride[d];
        row /= v->entry.size[d];
    }
    return at;
}

/* A line of elements in the file and in memory. */
struct line {
    uint64_t at;  /* of the first in the file, bytes */
    int64_t step; /* between them in the file, elements */
    char *to;
    int64_t to_step; /* in memory, elements */
    int64_t n;
    size_t width;
};

/* Reads a line in spans of the file, with what is between its elements. */
static int read_line(const struct st_file *s, struct line l, char *span, size_t span_size,
                     struct err *e)
{
    size_t apart = (size_t)l.step * l.width;
    int64_t most = apart < span_size / 2 ? (int64_t)((span_size - l.width) / (apart + !apart)) : 1;
    int code = 0;
    for (int64_t i = 0, n; !code && i < l.n; i += n) {
        n = l.n - i < most ? l.n - i : most;
        code = st_bytes(s, l.at + (uint64_t)i * apart, span, (size_t)(n - 1) * apart + l.width, e);
        for (int64_t k = 0; !code && k < n; k++)
            memcpy(l.to + (size_t)((i + k) * l.to_step) * l.width, span + (size_t)k * apart,
                   l.width);
    }
    return code;
}

/* Rows of one matrix, whose elements are `row` and `col` apart in the file: line by line along the
 * narrower of the two. */
static int read_matrix(const struct st_file *s, uint64_t at, int64_t row, int64_t col,
                       struct box_mem to, struct err *e)
{
    enum { SPAN = 1 << 18 };
    size_t width = dtype_size(to.dtype);
    bool down = row < col; /* along the columns of the matrix */
    int64_t lines = to.box.count[down], n = to.box.count[!down];
    char *span = mem_new(SPAN, 1);
    int code = 0;
    for (int64_t i = 0; !code && i < lines; i++) {
        struct line l = {.at = at + (uint64_t)(i * (down ? col : row)) * width,
                         .step = down ? row : col,
                         .to = (char *)to.data + (size_t)(i * (down ? 1 : to.stride)) * width,
                         .to_step = down ? to.stride : 1,
                         .n = n,
                         .width = width};
        code = read_line(s, l, span, SPAN, e);
    }
    free(span);
    return code;
}

/* A box of any tensor: matrix after matrix of its last two sizes. */
static int pt_read_view(const struct st_file *s, const struct st_entry *t, struct box_mem to,
                        bool *ret_done, struct err *e)
{
    const struct pt_view *v = find_view(s->own, t);
    *ret_done = v != NULL;
    if (!v)
        return 0;
    int rank = t->rank, code = 0;
    size_t width = dtype_size(to.dtype);
    int64_t row = rank > 1 ? v->stride[rank - 2] : v->stride[0];
    int64_t col = rank > 1 ? v->stride[rank - 1] : row + 1;
    int64_t height = rank > 1 ? t->size[rank - 2] : INT64_MAX;
    for (int64_t r = 0, n; !code && r < to.box.count[0]; r += n) {
        int64_t first = to.box.begin[0] + r;
        struct box_mem part = to;
        n = height - first % height;
        n = to.box.count[0] - r < n ? to.box.count[0] - r : n;
        part.data = (char *)to.data + (size_t)(r * to.stride) * width;
        part.box.count[0] = n;
        int64_t at = row_offset(v, first) + to.box.begin[1] * col;
        code = read_matrix(s, t->begin + (uint64_t)at * width, row, col, part, e);
    }
    return code;
}

/* ---- taking --------------------------------------------------------------------------------- */

static bool is_contiguous(const struct pt_view *v)
{
    int64_t step = 1;
    bool same = true;
    for (int d = v->entry.rank - 1; d >= 0; d--) {
        same &= v->entry.size[d] == 1 || v->stride[d] == step;
        step *= v->entry.size[d];
    }
    return same || !step;
}

static void free_views(void *p)
{
    struct pt_own *own = p;
    arena_finish(&own->arena);
    pthread_mutex_destroy(&own->lock);
    free(own->member);
    free(own->seen);
    free(own->view);
    free(own);
}

struct pt_own *pt_views_begin(struct st_file *s)
{
    struct pt_own *own = mem_new(1, sizeof(*own));
    pthread_mutex_init(&own->lock, NULL);
    s->own = own;
    s->finish = free_views;
    s->read = pt_read_view;
    return own;
}

int pt_views_take(struct pt_own *own, const char *name, const struct pt_view *view, size_t n,
                  struct st_file *s, struct err *e)
{
    s->entry = mem_new(n + 1, sizeof(*s->entry));
    s->n = n;
    own->view = mem_new(n + 1, sizeof(*own->view));
    for (size_t i = 0; i < n; i++) {
        s->entry[i] = view[i].entry;
        if (!is_contiguous(&view[i]))
            own->view[own->n++] = view[i];
    }
    qsort(own->view, own->n, sizeof(*own->view), by_address);
    st_index(s);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(s->by_name[i - 1]->name, s->by_name[i]->name))
            return err_set(e, ERR_DATA, "%s: tensor '%.200s' comes twice", name,
                           s->by_name[i]->name);
    return 0;
}
