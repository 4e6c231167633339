/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/copy_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"

enum { ROWS_MAX = 1 << 28 };

/* ---- the map ------------------------------------------------------------------------------- */

struct reader {
    const char *name, *p, *end;
    size_t line;
};

static int bad_map(const struct reader *r, const char *expected, struct err *e)
{
    return err_set(e, ERR_DATA, "%s, line %zu: expected %s", r->name, r->line, expected);
}

/* A decimal number after `before`; -1 where negative is allowed. */
static bool take_number(struct reader *r, const char *before, bool negative, int64_t *ret)
{
    size_t n = strlen(before);
    if ((size_t)(r->end - r->p) <= n || memcmp(r->p, before, n) != 0)
        return false;
    const char *p = r->p + n, *first = p;
    if (negative && r->end - p >= 2 && p[0] == '-' && p[1] == '1') {
        *ret = -1;
        r->p = p + 2;
        return true;
    }
    for (*ret = 0; p < r->end && *p >= '0' && *p <= '9' && *ret < ROWS_MAX; p++)
        *ret = *ret * 10 + (*p - '0');
    r->p = p;
    return p > first && *ret <= ROWS_MAX;
}

static bool take_newline(struct reader *r)
{
    if (r->p == r->end || *r->p != '\n')
        return false;
    r->p++;
    r->line++;
    return true;
}

static int take_row(struct reader *r, struct copy_rows *m, int64_t id, size_t *cap, struct err *e)
{
    int64_t number;
    size_t n = m->start[id];
    if (!take_number(r, "", false, &number) || number != id)
        return bad_map(r, "the next id", e);
    if (!take_number(r, " ", true, &m->old[id]) || m->old[id] >= m->was)
        return bad_map(r, "an old row or -1", e);
    while (m->old[id] < 0 && r->p < r->end && *r->p == ' ') {
        if (n == *cap)
            m->from = mem_grow(m->from, *cap = *cap ? 2 * *cap : 64, sizeof(*m->from));
        if (!take_number(r, " ", false, &m->from[n]) || m->from[n] >= m->was)
            return bad_map(r, "old rows of which this one is the mean", e);
        n++;
    }
    m->start[id + 1] = n;
    return take_newline(r) ? 0 : bad_map(r, "the end of the line", e);
}

int copy_rows_parse(struct copy_rows *ret, const char *name, const char *text, size_t n,
                    struct err *e)
{
    struct reader r = {name, text, text + n, 1};
    struct copy_rows m = {0};
    size_t cap = 0;
    if (!take_number(&r, "weft-rows 1 ", false, &m.was) || !take_number(&r, " ", false, &m.is) ||
        !take_newline(&r) || !m.was || !m.is)
        return bad_map(&r, "\"weft-rows 1 OLD NEW\"", e);
    if ((uint64_t)m.is > n) /* a line has more than one byte */
        return err_set(e, ERR_DATA, "%s: too short for %lld rows", name, (long long)m.is);
    m.old = mem_new((size_t)m.is, sizeof(*m.old));
    m.start = mem_new((size_t)m.is + 1, sizeof(*m.start));
    int code = 0;
    for (int64_t id = 0; !code && id < m.is; id++)
        code = take_row(&r, &m, id, &cap, e);
    if (!code && r.p != r.end)
        code = bad_map(&r, "the end of the file", e);
    if (code)
        copy_rows_finish(&m);
    else
        *ret = m;
    return code;
}

int copy_rows_open(struct copy_rows *ret, const char *path, struct err *e)
{
    enum { FILE_MAX = 1 << 30 };
    struct buf text = {0};
    int code = file_read(path, FILE_MAX, &text, e);
    if (!code)
        code = copy_rows_parse(ret, path, text.data, text.len, e);
    buf_finish(&text);
    return code;
}

void copy_rows_finish(struct copy_rows *r)
{
    free(r->old);
    free(r->start);
    free(r->from);
    *r = (struct copy_rows){0};
}

int64_t copy_rows_find(const struct copy_rows *r, int64_t old)
{
    for (int64_t id = 0; id < r->is; id++)
        if (r->old[id] == old)
            return id;
    return -1;
}

/* ---- a tensor through the map -------------------------------------------------------------- */

/* Columns of rows that are summed up. */
struct row_sum {
    const struct copy_source *of;
    int64_t begin, n; /* columns */
    double *sum;      /* [n] */
    void *raw;        /* for `most` rows, in the source's type */
    float *wide;
};

static struct row_sum row_sum_create(const struct copy_source *of, int64_t begin, int64_t n,
                                     int64_t most)
{
    size_t some = (size_t)(n * most) + 1;
    return (struct row_sum){.of = of,
                            .begin = begin,
                            .n = n,
                            .sum = mem_new((size_t)n + 1, sizeof(double)),
                            .raw = mem_block(some * dtype_size(of->dtype)),
                            .wide = mem_block(some * sizeof(float))};
}

/* Leaves the sum. */
static void row_sum_finish(struct row_sum *s)
{
    free(s->raw);
    free(s->wide);
}

static int sum_rows(struct row_sum *s, int64_t row, int64_t rows, struct err *e)
{
    struct box_mem m = {s->raw, s->of->dtype, {{row, s->begin}, {rows, s->n}}, s->n};
    struct box_mem f = {s->wide, DTYPE_F32, m.box, s->n};
    int code = s->of->read(s->of, m, e);
    if (code)
        return code;
    box_copy(f, m);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < s->n; c++)
            s->sum[c] += s->wide[r * s->n + c];
    return 0;
}

static int mean_of_all(struct copy_mapped *m, struct err *e)
{
    enum { AT_ONCE = 1 << 20 };
    int64_t cols = m->of->size[1], most = cols < AT_ONCE ? AT_ONCE / (cols + !cols) : 1;
    struct row_sum s = row_sum_create(m->of, 0, cols, most);
    int code = 0;
    for (int64_t r = 0; !code && r < m->rows->was; r += most)
        code = sum_rows(&s, r, m->rows->was - r < most ? m->rows->was - r : most, e);
    for (int64_t c = 0; c < cols; c++)
        s.sum[c] /= (double)m->rows->was;
    m->mean = s.sum;
    row_sum_finish(&s);
    return code;
}

/* One new row of `to`. */
static int make_row(const struct copy_mapped *m, int64_t id, struct box_mem to, struct err *e)
{
    const struct copy_rows *r = m->rows;
    int64_t n = to.box.count[1], col = to.box.begin[1];
    size_t from = r->start[id], sources = r->start[id + 1] - from;
    struct row_sum s = row_sum_create(m->of, col, n, 1);
    int code = 0;
    for (size_t i = 0; !code && i < sources; i++)
        code = sum_rows(&s, r->from[from + i], 1, e);
    for (int64_t c = 0; c < n; c++)
        s.wide[c] = (float)(sources ? s.sum[c] / (double)sources : m->mean[col + c]);
    if (!code)
        box_copy(to, (struct box_mem){s.wide, DTYPE_F32, to.box, n});
    free(s.sum);
    row_sum_finish(&s);
    return code;
}

/* Rows that follow one another before and after at once, new ones one by one. */
static int read_mapped(const struct copy_source *s, struct box_mem to, struct err *e)
{
    const struct copy_mapped *m = s->file;
    int64_t first = to.box.begin[0], end = first + to.box.count[0];
    int code = 0;
    for (int64_t id = first, n; !code && id < end; id += n) {
        const int64_t *old = m->rows->old + id;
        struct box_mem part = to;
        for (n = 1; id + n < end && old[0] >= 0 && old[n] == old[0] + n;)
            n++;
        part.data = (char *)to.data + (size_t)((id - first) * to.stride) * dtype_size(to.dtype);
        part.box.begin[0] = old[0] >= 0 ? old[0] : id;
        part.box.count[0] = n;
        code = old[0] >= 0 ? m->of->read(m->of, part, e) : make_row(m, id, part, e);
    }
    return code;
}

int copy_from_rows(const struct copy_rows *rows, const char *name, const struct copy_source *of,
                   struct copy_mapped *m, struct copy_source *ret, struct err *e)
{
    *m = (struct copy_mapped){.rows = rows, .of = of, .name = name};
    if (of->size[0] < rows->was)
        return err_set(e, ERR_DATA, "%s: maps %lld rows, but %.300s has only %lld", name,
                       (long long)rows->was, of->name, (long long)of->size[0]);
    *ret = (struct copy_source){.name = of->name,
                                .size = {rows->is, of->size[1]},
                                .dtype = of->dtype,
                                .read = read_mapped,
                                .file = m};
    for (int64_t id = 0; id < rows->is; id++)
        if (rows->old[id] < 0 && rows->start[id] == rows->start[id + 1])
            return mean_of_all(m, e);
    return 0;
}
