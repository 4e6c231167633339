/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "train/engine/state.h"

/*
 * A checkpoint of each of twelve layouts, loaded by each of the twelve: every byte of the weights
 * and moments is that of the ranks that saved it, all of each tensor is on some rank, the cursor is
 * the same, and so are the samples that come next. WEFT_FULL takes all pairs, otherwise a few for
 * each layout.
 */

/* ---- layouts ----------------------------------------------------------------------------- */

struct shape {
    int tp, cp, dp, pp, chunks, zero;
    bool sequence;
    int ep, etp; /* of a mixture of experts; 0: 1 and tp */
    enum context_comm context;
    int instances;
    int64_t layers[4];
};

static const struct shape shapes[] = {
    {.tp = 1, .cp = 1, .dp = 1, .pp = 1, .layers = {4}},
    {.tp = 1, .cp = 1, .dp = 4, .pp = 1, .zero = 1, .ep = 4, .layers = {4}},
    {.tp = 4, .cp = 1, .dp = 1, .pp = 1, .sequence = true, .ep = 2, .etp = 1, .layers = {4}},
    {.tp = 1, .cp = 1, .dp = 1, .pp = 4, .layers = {0, 2, 1, 1}},
    {.tp = 2, .cp = 1, .dp = 1, .pp = 2, .chunks = 2, .layers = {1, 0, 2, 1}},
    {.tp = 1, .cp = 2, .dp = 2, .pp = 1, .zero = 2, .ep = 2, .context = CONTEXT_P2P, .layers = {4}},
    {.tp = 1, .cp = 1, .dp = 4, .pp = 1, .zero = 3, .ep = 2, .layers = {4}},
    {.tp = 2, .cp = 1, .dp = 4, .pp = 1, .zero = 1, .sequence = true, .ep = 4, .layers = {4}},
    {.tp = 2, .cp = 2, .dp = 2, .pp = 1, .zero = 3, .sequence = true, .ep = 2, .layers = {4}},
    {.tp = 1, .cp = 1, .dp = 2, .pp = 2, .zero = 1, .ep = 2, .layers = {3, 1}},
    {.tp = 2, .cp = 1, .dp = 2, .pp = 2, .sequence = true, .etp = 1, .layers = {2, 2}},
    {.tp = 2, .cp = 1, .dp = 4, .pp = 1, .zero = 2, .instances = 2, .layers = {4}},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct layout layout_of(const struct shape *s, bool experts)
{
    struct layout l = layout_plain(mesh_dense(s->tp, s->cp, s->dp, s->pp));
    l.chunks = s->chunks ? s->chunks : 1;
    l.zero = s->zero;
    l.sequence = s->sequence;
    l.context = s->context;
    l.layers = s->layers;
    l.mesh.instances = s->instances;
    if (experts && s->ep)
        l.mesh.ep = s->ep;
    if (experts && s->etp)
        l.mesh.etp = s->etp;
    return l;
}

/* ---- the state of all ranks -------------------------------------------------------------- */

/* A global tensor of a group. */
struct whole {
    const char *group;
    char name[64];
    int64_t rows, cols;
    char *bytes, *held; /* an element each of `held` */
};

struct state {
    pthread_mutex_t lock;
    struct whole *at;
    size_t n, capacity;
    struct cursor cursor;
    bool known;    /* the cursor */
    char why[400]; /* what is wrong, of the first rank that finds it; "": nothing */
};

static void say(struct state *s, const struct rank *r, const char *what, const char *of)
{
    if (!s->why[0])
        snprintf(s->why, sizeof(s->why), "rank %d: %s %s", r->config.rank, what, of);
}

static struct whole *whole_of(struct state *s, const struct state_entry *t)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->at[i].name, t->source->name) && !strcmp(s->at[i].group, t->group))
            return &s->at[i];
    ARRAY_GROW(s->at, s->n, s->capacity);
    struct whole *w = &s->at[s->n++];
    *w = (struct whole){.group = t->group, .rows = t->source->size[0], .cols = t->source->size[1]};
    size_t count = (size_t)(w->rows * w->cols);
    snprintf(w->name, sizeof(w->name), "%s", t->source->name);
    w->bytes = mem_new(count, sizeof(double));
    w->held = mem_new(count, 1);
    return w;
}

/* What a rank holds of a tensor: as other ranks hold it. */
static void add_box(struct state *s, const struct rank *r, const struct state_entry *t)
{
    struct whole *w = whole_of(s, t);
    size_t size = dtype_size(t->mem.dtype);
    const struct box *b = &t->mem.box;
    for (int64_t row = 0; row < b->count[0]; row++)
        for (int64_t col = 0; col < b->count[1]; col++) {
            int64_t at = (b->begin[0] + row) * w->cols + b->begin[1] + col;
            const char *have =
                (const char *)t->mem.data + (size_t)(row * t->mem.stride + col) * size;
            char *to = w->bytes + (size_t)at * sizeof(double);
            if (w->held[at] && memcmp(to, have, size))
                say(s, r, "holds another value than an earlier rank of", w->name);
            memcpy(to, have, size);
            w->held[at] = 1;
        }
}

/* Samples of a step from the cursor on. */
static void check_samples(struct state *s, struct rank *r, struct loader *in)
{
    struct batch_layout l = {.eod = -1};
    const struct batch *b;
    struct err e;
    rank_share_batches(r, &l);
    for (uint64_t m = 0; m < (uint64_t)r->effective.micros; m++) {
        uint64_t first = (uint64_t)r->at.consumed + (m * l.ranks + l.rank) * l.rows;
        if (loader_next(in, &b, &e) || b->first != first) {
            say(s, r, "reads other samples than", "those that come next");
            return;
        }
        for (uint64_t i = 0; i < (uint64_t)l.rows * CELL_LENGTH; i++)
            if (b->tokens[i] !=
                (int32_t)(t_rand(first + i / CELL_LENGTH, 2 * (i % CELL_LENGTH)) % CELL_VOCAB))
                say(s, r, "reads other tokens than", "those of the sample");
    }
}

/* Called by each rank's thread. */
static void look(void *arg, struct rank *r, struct loader *in)
{
    struct state *s = arg;
    struct state_entries list = state_entries(r, false);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < list.n; i++)
        add_box(s, r, &list.at[i]);
    if (s->known && memcmp(&s->cursor, &r->at, sizeof(s->cursor)))
        say(s, r, "has another cursor than", "an earlier rank");
    s->cursor = r->at;
    s->known = true;
    check_samples(s, r, in);
    pthread_mutex_unlock(&s->lock);
    free(list.at);
}

static void state_init(struct state *s)
{
    *s = (struct state){0};
    pthread_mutex_init(&s->lock, NULL);
}

static void state_finish(struct state *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->at[i].bytes);
        free(s->at[i].held);
    }
    free(s->at);
    pthread_mutex_destroy(&s->lock);
    *s = (struct state){0};
}

static const struct whole *find_whole(const struct state *s, const struct whole *as)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->at[i].name, as->name) && !strcmp(s->at[i].group, as->group))
            return &s->at[i];
    return NULL;
}

/* Every byte of every tensor, and all of them held. */
static void compare(const struct state *saved, const struct state *loaded, const char *pair)
{
    T_EQ(saved->n, loaded->n);
    for (size_t i = 0; i < saved->n; i++) {
        const struct whole *a = &saved->at[i], *b = find_whole(loaded, a);
        size_t count = (size_t)(a->rows * a->cols);
        if (!b || memchr(b->held, 0, count) || memchr(a->held, 0, count))
            t_fail(__FILE__, __LINE__, "%s: not all of %s of %s is on a rank", pair, a->group,
                   a->name);
        if (memcmp(a->bytes, b->bytes, count * sizeof(double)))
            t_fail(__FILE__, __LINE__, "%s: %s of %s has other bytes", pair, a->group, a->name);
    }
    if (memcmp(&saved->cursor, &loaded->cursor, sizeof(saved->cursor)))
        t_fail(__FILE__, __LINE__, "%s: the cursor differs", pair);
}

/* ---- pairs ------------------------------------------------------------------------------- */

static int cells;

static void run(struct cell c, struct state *s, const char *pair)
{
    char why[600];
    state_init(s);
    c.look = look;
    c.look_arg = s;
    c.seed = (uint64_t)++cells;
    if (cell_run(&c, NULL, 0, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s: %s", pair, why);
    if (s->why[0])
        t_fail(__FILE__, __LINE__, "%s: %s", pair, s->why);
}

/* Each layout's checkpoint into `each` of the layouts, beginning `after` places on in the list. */
static void run_pairs(struct cell c, bool experts, int after, int each)
{
    static int folders;
    int pairs = 0;
    for (int i = 0; i < SHAPES; i++) {
        struct state saved, loaded;
        struct cell first = c, then = c;
        char folder[32], pair[64];
        snprintf(folder, sizeof(folder), "save%d", folders++);
        snprintf(pair, sizeof(pair), "layout %d", i);
        first.save = then.load = t_path(folder);
        first.layout = layout_of(&shapes[i], experts);
        run(first, &saved, pair);
        for (int k = 0; k < each; k++, pairs++) {
            int j = (i + after + k) % SHAPES;
            snprintf(pair, sizeof(pair), "layout %d into %d", i, j);
            then.layout = layout_of(&shapes[j], experts);
            run(then, &loaded, pair);
            compare(&saved, &loaded, pair);
            state_finish(&loaded);
        }
        state_finish(&saved);
    }
    printf("# %d pairs of layouts\n", pairs);
}

static struct cell cell_of(struct spec spec, enum optim_kind optimizer)
{
    return (struct cell){
        .spec = spec, .real = DTYPE_F64, .optimizer = optimizer, .micros = 8, .steps = CELL_SAVED};
}

static bool full(void)
{
    return getenv("WEFT_FULL") != NULL;
}

/* Llama with 4 experts, of which ranks have all, two or one, whole or cut. */
static void mixture(void)
{
    run_pairs(cell_of(cell_mixtral(), OPTIM_ADAM), true, full() ? 0 : 1, full() ? SHAPES : 2);
}

/* Tied ends, biases, a vocabulary that no number of ranks divides. */
static void gpt(void)
{
    run_pairs(cell_of(cell_gpt(), OPTIM_ADAM), false, full() ? 0 : 5, full() ? SHAPES : 1);
}

/* Another number of states. */
static void sgd(void)
{
    run_pairs(cell_of(cell_llama(), OPTIM_SGD), false, full() ? 0 : 7, full() ? SHAPES : 1);
}

T_MAIN(T_CASE(mixture), T_CASE(gpt), T_CASE(sgd))
