/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/copy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/ranges.h"
#include "base/thread/each.h"
#include "convert/copy/copy_journal.h"
#include "train/tensor/box_ops.h"

enum {
    UNIT = 4 << 20,   /* bytes of a target that are made at once */
    BLOCK = 64,       /* elements: a row is cut at multiples of it, for sinks that quantize */
    TURNED = 32 << 20 /* of a transposed one, of whose source each row then gives a longer run */
};

/* Some rows of a target, or a range of one row. */
struct unit {
    size_t target;
    struct box box;
};

/* Memory of one thread; buffers grow to what the largest unit needs. */
struct scratch {
    struct scratch *next;
    void *at[4];
    size_t size[4];
};

enum { OUT, IN, SUM, TERM };

struct run {
    const struct copy *c;
    const struct copy_options *o;
    const struct copy_step **step; /* sorted by target */
    size_t *first;                 /* of each target; one more */
    struct unit *unit;
    size_t units;
    pthread_mutex_t lock; /* of what follows */
    struct scratch *spare;
    uint64_t done;
};

/* ---- memory -------------------------------------------------------------------------------- */

static void *grow_buffer(struct scratch *s, int which, size_t n)
{
    if (s->size[which] < n) {
        free(s->at[which]);
        s->at[which] = mem_block(n);
        s->size[which] = n;
    }
    return s->at[which];
}

static struct scratch *take_scratch(struct run *r)
{
    pthread_mutex_lock(&r->lock);
    struct scratch *s = r->spare;
    if (s)
        r->spare = s->next;
    pthread_mutex_unlock(&r->lock);
    return s ? s : mem_new(1, sizeof(*s));
}

static void give_scratch(struct run *r, struct scratch *s, uint64_t done)
{
    pthread_mutex_lock(&r->lock);
    s->next = r->spare;
    r->spare = s;
    r->done += done;
    if (r->o->progress && done)
        r->o->progress(r->o->arg, r->done);
    pthread_mutex_unlock(&r->lock);
}

/* ---- one step ------------------------------------------------------------------------------- */

/* A box of a source, as it lies there, into `to`, which has the same shape. */
static int take_box(const struct copy_source *f, int64_t row, int64_t col, struct box_mem to,
                    struct scratch *s, struct err *e)
{
    struct box_mem raw = to;
    if (!box_count(to.box))
        return 0;
    raw.box.begin[0] = row;
    raw.box.begin[1] = col;
    if (f->dtype == to.dtype)
        return f->read(f, raw, e);
    raw.dtype = f->dtype;
    raw.stride = to.box.count[1];
    raw.data = grow_buffer(s, IN, (size_t)box_count(to.box) * dtype_size(f->dtype));
    int code = f->read(f, raw, e);
    raw.box = to.box;
    if (!code)
        box_copy(to, raw);
    return code;
}

static struct box_mem copy_rows_of(struct box_mem m, int64_t first, int64_t n)
{
    m.data = (char *)m.data + (size_t)(first * m.stride) * dtype_size(m.dtype);
    m.box.begin[0] += first;
    m.box.count[0] = n;
    return m;
}

/* Rows [first, first + n) of the step in their order: those that follow one another at once. */
static int take_ordered(const struct copy_step *s, const struct copy_source *f, int64_t first,
                        int64_t col, struct box_mem to, struct scratch *m, struct err *e)
{
    const int64_t *order = s->order + first;
    int code = 0;
    for (int64_t r = 0, n; !code && r < to.box.count[0]; r += n) {
        for (n = 1; r + n < to.box.count[0] && order[r + n] == order[r] + n;)
            n++;
        code = take_box(f, s->row + order[r], col, copy_rows_of(to, r, n), m, e);
    }
    return code;
}

/* The source is read as it lies and turned on the way. */
static int take_turned(const struct copy_source *f, int64_t row, int64_t col, struct box_mem to,
                       struct scratch *m, struct err *e)
{
    struct box_mem raw = {.dtype = f->dtype, .stride = to.box.count[0]};
    raw.box = (struct box){{col, row}, {to.box.count[1], to.box.count[0]}};
    if (!box_count(to.box))
        return 0;
    raw.data = grow_buffer(m, IN, (size_t)box_count(to.box) * dtype_size(f->dtype));
    int code = f->read(f, raw, e);
    raw.box.begin[0] = to.box.begin[1];
    raw.box.begin[1] = to.box.begin[0];
    if (!code)
        box_copy_transposed(to, raw);
    return code;
}

/* The elements of one source that a step puts into `to`, a box of the step's target. */
static int take(const struct copy_step *s, const struct copy_source *f, struct box_mem to,
                struct scratch *m, struct err *e)
{
    int64_t row = to.box.begin[0] - s->to.begin[0], col = to.box.begin[1] - s->to.begin[1];
    int code = 0;
    if (!s->order)
        return s->transpose ? take_turned(f, s->row + row, s->column + col, to, m, e)
                            : take_box(f, s->row + row, s->column + col, to, m, e);
    if (!s->transpose)
        return take_ordered(s, f, row, s->column + col, to, m, e);
    for (int64_t r = 0; !code && r < to.box.count[0]; r++)
        code = take_turned(f, s->row + s->order[row + r], s->column + col, copy_rows_of(to, r, 1),
                           m, e);
    return code;
}

static void scale(float *v, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= by;
}

static void divide(float *v, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] /= by;
}

static void add_scaled(float *v, const float *x, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] += by * x[i];
}

/* The same with arithmetic, in float. */
static int calculate(const struct copy_step *s, struct box_mem to, struct scratch *m, struct err *e)
{
    int64_t n = box_count(to.box);
    struct box_mem sum = {.dtype = DTYPE_F32, .box = to.box, .stride = to.box.count[1]}, term = sum;
    sum.data = grow_buffer(m, SUM, (size_t)n * sizeof(float) + 1);
    int code = take(s, s->from, sum, m, e);
    if (!code && s->weight)
        scale(sum.data, s->weight[0], n);
    for (size_t k = 0; !code && k < s->nmore; k++) {
        term.data = grow_buffer(m, TERM, (size_t)n * sizeof(float) + 1);
        code = take(s, s->more[k], term, m, e);
        if (!code)
            add_scaled(sum.data, term.data, s->weight[k + 1], n);
    }
    if (code)
        return code;
    if (s->divisor != 0)
        divide(sum.data, s->divisor, n);
    if (s->add != 0)
        box_add(sum, s->add);
    if (s->update) {
        struct box_mem local = sum;
        local.box.begin[0] -= s->to.begin[0];
        local.box.begin[1] -= s->to.begin[1];
        box_add_low_rank(local, s->update->b, s->update->a, s->update->rank, s->to.count[1],
                         s->update->scale);
    }
    box_copy(to, sum);
    return 0;
}

static void clear(struct box_mem to)
{
    size_t size = dtype_size(to.dtype);
    for (int64_t r = 0; r < to.box.count[0]; r++)
        memset((char *)to.data + (size_t)(r * to.stride) * size, 0, (size_t)to.box.count[1] * size);
}

static int make(const struct copy_step *s, struct box_mem to, struct scratch *m, struct err *e)
{
    if (!s->from) {
        clear(to);
        return 0;
    }
    if (s->add != 0 || s->update || s->weight)
        return calculate(s, to, m, e);
    return take(s, s->from, to, m, e);
}

/* ---- one unit ------------------------------------------------------------------------------- */

static uint64_t unit_at(const struct run *r, const struct unit *u)
{
    const struct copy_target *t = &r->c->sink.target[u->target];
    return (uint64_t)(u->box.begin[0] * t->size[1] + u->box.begin[1]) * dtype_size(t->dtype);
}

/* The unit's bytes, made in memory. */
static int make_unit(const struct run *r, const struct unit *u, struct box_mem out,
                     struct scratch *m, struct err *e)
{
    int code = 0;
    for (size_t k = r->first[u->target]; !code && k < r->first[u->target + 1]; k++) {
        struct box_mem to = out;
        if (!box_intersect(r->step[k]->to, u->box, &to.box))
            continue;
        int64_t at =
            (to.box.begin[0] - u->box.begin[0]) * out.stride + to.box.begin[1] - u->box.begin[1];
        to.data = (char *)out.data + (size_t)at * dtype_size(out.dtype);
        code = make(r->step[k], to, m, e);
    }
    return code;
}

/* An earlier run wrote the unit, and its bytes still are what they were. */
static bool unit_stands(const struct run *r, const struct unit *u, void *p, size_t n)
{
    const struct copy_sink *s = &r->c->sink;
    struct fingerprint was, is = {0};
    uint64_t at = unit_at(r, u);
    if (!r->o->journal || !copy_journal_find(r->o->journal, r->o->part, u->target, at, n, &was) ||
        !s->read(s->arg, u->target, at, p, n))
        return false;
    fingerprint_add(&is, 0, p, n);
    return fingerprint_equal(was, is);
}

static int write_unit(const struct run *r, const struct unit *u, const void *p, size_t n,
                      struct err *e)
{
    const struct copy_sink *s = &r->c->sink;
    uint64_t at = unit_at(r, u);
    struct fingerprint sum = {0};
    int code = s->write(s->arg, u->target, at, p, n, e);
    if (code || !r->o->journal)
        return code;
    fingerprint_add(&sum, 0, p, n);
    return copy_journal_add(r->o->journal, r->o->part, u->target, at, n, sum, e);
}

/* Memory that lies in its pages as the unit will in those of its file. */
static void *out_buffer(const struct run *r, const struct unit *u, struct scratch *m, size_t n)
{
    const struct copy_sink *s = &r->c->sink;
    uint64_t place = s->place ? s->place(s->arg, u->target, unit_at(r, u)) : 0;
    char *p = grow_buffer(m, OUT, n + 2 * OUTFILE_PAGE);
    return p + (-(uintptr_t)p % OUTFILE_PAGE + place % OUTFILE_PAGE);
}

static int run_unit(void *arg, size_t i, struct err *e)
{
    struct run *r = arg;
    const struct unit *u = &r->unit[i];
    const struct copy_sink *s = &r->c->sink;
    enum dtype type = s->target[u->target].dtype;
    size_t bytes = (size_t)box_count(u->box) * dtype_size(type);
    struct scratch *m = take_scratch(r);
    struct box_mem out = {out_buffer(r, u, m, bytes), type, u->box, u->box.count[1]};
    int code = 0;
    if (unit_stands(r, u, out.data, bytes)) {
        s->keep(s->arg, u->target, unit_at(r, u), out.data, bytes);
    } else {
        code = make_unit(r, u, out, m, e);
        if (!code)
            code = write_unit(r, u, out.data, bytes, e);
    }
    give_scratch(r, m, code ? 0 : bytes);
    return code;
}

/* ---- the list ------------------------------------------------------------------------------- */

static int by_target(const void *a, const void *b)
{
    const struct copy_step *x = *(const struct copy_step *const *)a;
    const struct copy_step *y = *(const struct copy_step *const *)b;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    return (x->to.begin[0] > y->to.begin[0]) - (x->to.begin[0] < y->to.begin[0]);
}

static void sort_steps(struct run *r)
{
    const struct copy *c = r->c;
    r->step = mem_new(c->nsteps + 1, sizeof(*r->step));
    r->first = mem_new(c->sink.n + 1, sizeof(*r->first));
    for (size_t i = 0; i < c->nsteps; i++)
        r->step[i] = &c->step[i];
    if (c->nsteps)
        qsort(r->step, c->nsteps, sizeof(*r->step), by_target);
    for (size_t t = 0, i = 0; t <= c->sink.n; t++) {
        while (i < c->nsteps && r->step[i]->target < t)
            i++;
        r->first[t] = i;
    }
}

/* How many elements of a target are made at once: the buffers of a thread must hold them. */
static int64_t unit_elements(const struct run *r, size_t target)
{
    const struct copy_target *t = &r->c->sink.target[target];
    uint64_t memory = r->o->memory ? r->o->memory : COPY_MEMORY;
    uint64_t own = memory / (uint64_t)each_threads(r->o->threads);
    size_t size = dtype_size(t->dtype), in = 0, floats = 0;
    bool turned = false;
    for (size_t k = r->first[target]; k < r->first[target + 1]; k++) {
        const struct copy_step *s = r->step[k];
        if (s->add != 0 || s->update || s->weight)
            floats = 2 * sizeof(float);
        turned |= s->transpose;
        for (size_t j = 0; s->from && j <= s->nmore; j++) {
            size_t width = dtype_size(j ? s->more[j - 1]->dtype : s->from->dtype);
            in = width > in ? width : in;
        }
    }
    uint64_t most = (turned ? TURNED : UNIT) / size, fit = own / (size + in + floats);
    uint64_t n = most < fit ? most : fit;
    n -= n > BLOCK ? n % BLOCK : 0;
    return n ? (int64_t)n : 1;
}

static void add_unit(struct run *r, size_t target, struct box b)
{
    r->unit = mem_grow(r->unit, r->units + 1, sizeof(*r->unit));
    r->unit[r->units++] = (struct unit){target, b};
}

static void cut_target(struct run *r, size_t target)
{
    const struct copy_target *t = &r->c->sink.target[target];
    int64_t rows = t->size[0], cols = t->size[1], most = unit_elements(r, target);
    if (!rows || !cols)
        return;
    if (cols <= most) {
        int64_t k = most / cols;
        for (int64_t at = 0; at < rows; at += k)
            add_unit(r, target, (struct box){{at, 0}, {rows - at < k ? rows - at : k, cols}});
        return;
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t at = 0; at < cols; at += most)
            add_unit(r, target, (struct box){{row, at}, {1, cols - at < most ? cols - at : most}});
}

int copy_run(const struct copy *c, const struct copy_options *o, struct err *e)
{
    struct run r = {.c = c, .o = o};
    pthread_mutex_init(&r.lock, NULL);
    sort_steps(&r);
    for (size_t i = 0; i < c->sink.n; i++)
        cut_target(&r, c->sink.order ? c->sink.order[i] : i);
    int code = each_run(r.units, o->threads, run_unit, &r, e);
    while (r.spare) {
        struct scratch *s = r.spare;
        r.spare = s->next;
        for (int i = 0; i < 4; i++)
            free(s->at[i]);
        free(s);
    }
    pthread_mutex_destroy(&r.lock);
    free(r.unit);
    free(r.first);
    free(r.step);
    return code;
}
