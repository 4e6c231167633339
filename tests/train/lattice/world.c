/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/lattice/world.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "tests/t.h"
#include "tests/train/lattice/cell_rank.h"
#include "tests/train/spec/same.h"

enum { DELAY_US = 50, TIMEOUT = 60 };

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}

static struct cell_sizes sizes_of(const struct params *ps, const double *flat)
{
    struct cell_sizes ret = {.source = mem_new((size_t)ps->n, sizeof(*ret.source))};
    for (int i = 0; i < ps->n; i++) {
        const struct param *p = &ps->at[i];
        double x = largest(flat + p->offset, p->count), *kind = &ret.kind[p->kind];
        *kind = x > *kind ? x : *kind;
        for (int k = 0; k < p->sources; k++)
            ret.source[i][k] = largest(flat + p->offset + p->source[k].row * p->size[1],
                                       p->source[k].count[0] * p->size[1]);
    }
    return ret;
}

/* ---- the single rank --------------------------------------------------------------------- */

int cell_run_single(const struct cell *c, struct cell_single *ret, char *why, size_t size)
{
    static struct cell_rank r;
    r = (struct cell_rank){.cell = c};
    cell_rank_run(&r);
    if (r.code) {
        snprintf(why, size, "the single rank: %s", r.e.msg);
        cell_rank_close(&r);
        return -1;
    }
    *ret = (struct cell_single){.steps = c->steps,
                                .printed = r.printed,
                                .params = r.rank.params,
                                .grads = r.grads,
                                .weights = r.weights};
    ret->grad_sizes = sizes_of(&ret->params, ret->grads.at);
    ret->weight_sizes = sizes_of(&ret->params, ret->weights.at);
    r.rank.params = (struct params){0};
    r.grads = r.weights = (struct cell_numbers){0};
    cell_rank_close(&r);
    return 0;
}

void cell_single_finish(struct cell_single *s)
{
    params_finish(&s->params);
    cell_numbers_finish(&s->grads);
    cell_numbers_finish(&s->weights);
    free(s->grad_sizes.source);
    free(s->weight_sizes.source);
    *s = (struct cell_single){0};
}

/* ---- comparison -------------------------------------------------------------------------- */

/* The number of a parameter's source; those of one name are one tensor. */
static int same_source(const struct param *p, const char *name)
{
    for (int k = 0; k < p->sources; k++)
        if (!strcmp(p->source[k].name, name))
            return k;
    BUG("%s is not in the single rank's table", name);
}

/* What is compared: the flat slab of a rank. */
struct held {
    const char *what;
    struct cell_numbers got;
    const double *want;
    const struct cell_sizes *sizes;
    double floor; /* share of the kind's largest value */
};

/* The box `s` of the parameter `p` of a rank. */
static int compare_box(const struct cell_single *single, const struct held *h,
                       const struct param *p, const struct param_source *s, double tolerance,
                       char *why, size_t size)
{
    const struct param *w = params_same(&single->params, p);
    int k = same_source(w, s->name);
    const double *whole = h->want + w->offset + w->source[k].row * w->size[1];
    double most = h->sizes->source[w - single->params.at][k];
    double kind = h->floor * h->sizes->kind[p->kind];
    double allowed = tolerance * (most > kind ? most : kind);
    for (int64_t i = 0; i < s->count[0] * s->count[1]; i++) {
        int64_t row = i / s->count[1], col = i % s->count[1];
        int64_t at = p->offset + (s->row + row) * p->size[1] + col;
        double want = whole[(s->begin[0] + row) * w->size[1] + s->begin[1] + col];
        if (!h->got.held[at] || fabs(h->got.at[at] - want) <= allowed)
            continue;
        snprintf(why, size, "%s of %s [%lld, %lld] is %.17g, expected %.17g +- %g", h->what,
                 s->name, (long long)(s->begin[0] + row), (long long)(s->begin[1] + col),
                 h->got.at[at], want, allowed);
        return -1;
    }
    return 0;
}

static int compare_slab(const struct cell_rank *c, const struct cell_single *single, struct held h,
                        double tolerance, char *why, size_t size)
{
    const struct params *ps = &c->rank.params;
    int code = 0;
    for (int i = 0; i < ps->n; i++)
        for (int k = 0; !code && k < ps->at[i].sources; k++)
            code = compare_box(single, &h, &ps->at[i], &ps->at[i].source[k], tolerance, why, size);
    return code;
}

static bool is_near(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * fabs(want);
}

static int compare_printed(const struct cell_rank *c, const struct cell_printed *w,
                           double tolerance, char *why, size_t size)
{
    const struct cell_printed *p = &c->printed;
    for (int i = c->cell->load ? CELL_SAVED : 0; i < c->cell->steps; i++) {
        if (is_near(p->loss[i], w->loss[i], tolerance) &&
            is_near(p->norm[i], w->norm[i], tolerance) &&
            is_near(p->balance[i], w->balance[i], tolerance) &&
            is_near(p->z[i], w->z[i], tolerance) &&
            (p->samples[i] == w->samples[i] || c->cell->rows))
            continue;
        snprintf(why, size,
                 "step %d has loss %.17g, norm %.17g, balance %.17g, z %.17g and %lld samples, "
                 "expected %.17g, %.17g, %.17g, %.17g and %lld",
                 i + 1, p->loss[i], p->norm[i], p->balance[i], p->z[i], (long long)p->samples[i],
                 w->loss[i], w->norm[i], w->balance[i], w->z[i], (long long)w->samples[i]);
        return -1;
    }
    if (c->cell->load || !c->cell->evaluates || is_near(p->evaluation, w->evaluation, tolerance))
        return 0;
    snprintf(why, size, "the evaluation has loss %.17g, expected %.17g", p->evaluation,
             w->evaluation);
    return -1;
}

static int compare_rank(const struct cell_rank *c, const struct cell_single *single,
                        double tolerance, char *why, size_t size)
{
    if (compare_printed(c, &single->printed, tolerance, why, size))
        return -1;
    double share = c->cell->real == DTYPE_F64 ? 0.01 : 0.1;
    struct held grads = {"the gradient", c->grads, single->grads.at, &single->grad_sizes, share};
    struct held weights = {"the weight", c->weights, single->weights.at, &single->weight_sizes,
                           share};
    int code = c->grads.at && !c->cell->other_grads
                   ? compare_slab(c, single, grads, tolerance, why, size)
                   : 0;
    bool rounded = c->cell->real == DTYPE_F32 && c->cell->optimizer == OPTIM_ADAM;
    if (!code && !rounded && c->cell->steps == single->steps)
        code = compare_slab(c, single, weights, tolerance, why, size);
    return code;
}

static uint64_t digest_of(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *b = bytes;
    for (size_t i = 0; i < n; i++) /* FNV-1a */
        h = (h ^ b[i]) * UINT64_C(1099511628211);
    return h;
}

static void add_bytes(struct cell_bytes *b, const struct cell_rank *c)
{
    size_t n = (size_t)c->rank.params.elements * sizeof(double);
    b->activations += c->rank.slab[SLAB_ACTIVATIONS].peak;
    b->digest = digest_of(b->digest, c->printed.loss, sizeof(c->printed.loss));
    b->digest = digest_of(b->digest, c->printed.norm, sizeof(c->printed.norm));
    b->digest = digest_of(b->digest, c->grads.at, n);
    b->digest = digest_of(b->digest, c->weights.at, n);
}

/* ---- a world of threads ------------------------------------------------------------------ */

static int first_fault(const struct cell_rank *r, int n, char *why, size_t size)
{
    for (int i = 0; i < n; i++)
        if (r[i].code && r[i].e.msg[0] && !strstr(r[i].e.msg, "rank ")) {
            snprintf(why, size, "rank %d: %s", i, r[i].e.msg);
            return -1;
        }
    for (int i = 0; i < n; i++)
        if (r[i].code) {
            snprintf(why, size, "rank %d: %s", i, r[i].e.msg);
            return -1;
        }
    return 0;
}

/* All ranks to their ends; 0, or -1 with what one of them says. */
static int run_ranks(const struct cell *c, struct cell_rank *r, char *why, size_t size)
{
    pthread_t thread[CELL_WORLD_MAX];
    int n = mesh_world(c->layout.mesh), started = 0;
    struct comm_options o = {.timeout = TIMEOUT, .delay_us = DELAY_US, .seed = c->seed};
    struct comm_threads *threads = comm_threads_create(c->layout.mesh, &o);
    for (; started < n; started++) {
        r[started] = (struct cell_rank){.cell = c, .index = started, .threads = threads};
        BUG_ON(thread_start(&thread[started], cell_rank_run, &r[started]), "no thread");
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    return first_fault(r, n, why, size);
}

static void close_ranks(const struct cell *c, struct cell_rank *r)
{
    struct comm_threads *threads = r[0].threads;
    for (int i = 0; i < mesh_world(c->layout.mesh); i++)
        cell_rank_close(&r[i]);
    comm_threads_destroy(threads);
}

int cell_run(const struct cell *c, const struct cell_single *want, double tolerance, char *why,
             size_t size)
{
    static struct cell_rank r[CELL_WORLD_MAX];
    int n = mesh_world(c->layout.mesh), code = run_ranks(c, r, why, size);
    for (int i = 0; c->judge && !code && i < n; i++)
        c->judge(c->arg, &r[i].rank, &r[i].grads);
    for (int i = 0; want && !code && i < n; i++) {
        char of[400];
        code = compare_rank(&r[i], want, tolerance, of, sizeof(of));
        if (code)
            snprintf(why, size, "rank %d: %s", i, of);
    }
    for (int i = 0; !code && c->bytes && i < n; i++)
        add_bytes(c->bytes, &r[i]);
    close_ranks(c, r);
    return code;
}

int cell_run_process(const struct cell *c, const struct cell_single *want, double tolerance,
                     struct comm *comm, char *why, size_t size)
{
    static struct cell_rank r;
    char of[400];
    r = (struct cell_rank){.cell = c, .index = comm->rank, .comm = *comm};
    *comm = (struct comm){0};
    cell_rank_run(&r);
    int code = r.code ? -1 : compare_rank(&r, want, tolerance, of, sizeof(of));
    if (code)
        snprintf(why, size, "rank %d: %s", r.index, r.code ? r.e.msg : of);
    cell_rank_close(&r);
    return code;
}

static bool same_numbers(struct cell_numbers a, struct cell_numbers b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a.held[i] != b.held[i] || (a.held[i] && memcmp(&a.at[i], &b.at[i], sizeof(*a.at))))
            return false;
    return true;
}

static bool same_rank(const struct cell_rank *a, const struct cell_rank *b)
{
    int64_t n = a->rank.params.elements;
    return !memcmp(a->printed.loss, b->printed.loss, sizeof(a->printed.loss)) &&
           !memcmp(a->printed.norm, b->printed.norm, sizeof(a->printed.norm)) &&
           same_numbers(a->grads, b->grads, n) && same_numbers(a->weights, b->weights, n);
}

int cell_run_overlap(const struct cell *c, char *why, size_t size)
{
    static struct cell_rank r[2][CELL_WORLD_MAX];
    struct cell cells[2] = {*c, *c};
    int code = 0;
    cells[0].overlap = 0;
    cells[1].overlap = OVERLAP_GRADIENTS | OVERLAP_WEIGHTS;
    for (int k = 0; k < 2 && !code; k++)
        code = run_ranks(&cells[k], r[k], why, size);
    for (int i = 0; !code && i < mesh_world(c->layout.mesh); i++) {
        const struct rank *late = &r[0][i].rank, *early = &r[1][i].rank;
        code = same_rank(&r[0][i], &r[1][i]) ? 0 : -1;
        if (code)
            snprintf(why, size, "rank %d has other bits with overlap", i);
        if (!code && late->zero.split.stage < 2 && (late->zero.early || !early->zero.early)) {
            snprintf(why, size, "rank %d sent %zu buckets early, and without overlap %zu", i,
                     early->zero.early, late->zero.early);
            code = -1;
        }
    }
    for (int k = 0; k < 2; k++)
        close_ranks(&cells[k], r[k]);
    return code;
}
