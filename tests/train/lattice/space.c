/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/lattice/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/layout/list.h"

/* Of a tensor's largest value. In fp32 sums of other orders are 1.02e-5 apart with vectors of 512
 * bits, 2.3e-5 with 256. */
static const double tolerances[DTYPE_COUNT] = {[DTYPE_F64] = 1e-9, [DTYPE_F32] = 3e-5};

enum { OPTIMIZERS = 22 /* a seed */ };

/* ---- all cells --------------------------------------------------------------------------------
 */

/* Micro-batches must be shared out evenly. */
static bool micros_fit(const struct cell *c, const struct layout *l)
{
    int64_t micros = c->micros / l->mesh.dp;
    return c->micros % l->mesh.dp == 0 && (l->chunks == 1 || micros % l->mesh.pp == 0);
}

static const struct recompute recomputations[] = {
    {RECOMPUTE_NONE, 0, false},    {RECOMPUTE_SELECTIVE, 0, false}, {RECOMPUTE_UNIFORM, 1, false},
    {RECOMPUTE_UNIFORM, 3, false}, {RECOMPUTE_BLOCK, 1, false},     {RECOMPUTE_UNIFORM, 2, true},
    {RECOMPUTE_BLOCK, 1, true}};

enum { RECOMPUTATIONS = sizeof(recomputations) / sizeof(recomputations[0]) };

/* Uneven shares of a model's layers: a stage of the embedding alone, and of 8 stages one that has
 * nothing and one of the head alone. NULL: there is one stage. */
static const int64_t *uneven_layers(int stages, int64_t layers)
{
    static const int64_t four[3][8] = {{1, 3}, {0, 2, 1, 1}, {0, 1, 1, 0, 1, 0, 1, 0}};
    static const int64_t eight[3][8] = {{5, 3}, {1, 3, 0, 4}, {0, 2, 1, 1, 0, 2, 2, 0}};
    if (stages == 1)
        return NULL;
    return (layers == 4 ? four : eight)[stages / 4];
}

/*
 * The optimizer of the cell that is added next: all that there are, of SGD-SaI once by the mean and
 * once by the greatest. In fp32 those that are linear in the gradient: the others divide a gradient
 * by its own size, and a rounding becomes a step.
 */
static enum optim_kind next_optimizer(const struct space *s, enum dtype real)
{
    static const enum optim_kind any[] = {OPTIM_ADAM,      OPTIM_SGD,  OPTIM_SAI,
                                          OPTIM_SAI_PLAIN, OPTIM_MUON, OPTIM_ADAM},
                                 linear[] = {OPTIM_SGD_PLAIN, OPTIM_SGD};
    uint64_t x = t_rand(OPTIMIZERS, s->n);
    return real == DTYPE_F32 ? linear[x % 2] : any[x % 6];
}

static void add_cell(struct space *s, const struct cell *c)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 4096;
        s->at = mem_grow(s->at, s->room, sizeof(*s->at));
    }
    s->at[s->n++] = (struct space_cell){.base = s->bases - 1,
                                        .optimizer = next_optimizer(s, c->real),
                                        .layout = c->layout,
                                        .recompute = c->recompute,
                                        .overlap = c->overlap};
}

/* What alternates: overlap and copies of the optimizer's state, where the layout has them. */
static void take_turn(struct cell *c, const struct layout_model *m, size_t overlap, size_t copies)
{
    static const unsigned overlaps[] = {0, OVERLAP_GRADIENTS, OVERLAP_GRADIENTS | OVERLAP_WEIGHTS};
    struct layout *l = &c->layout;
    int shares = l->mesh.dp * l->mesh.cp;
    c->overlap = shares > 1 ? overlaps[overlap % (l->zero ? 3 : 2)] : 0;
    l->mesh.instances = shares > 2 && l->zero && copies % 2 ? 2 : 0;
    if (layout_check(m, l, mesh_world(l->mesh), NULL))
        l->mesh.instances = 0;
}

static void add_layout(struct space *s, struct cell c, const struct layout_model *m, size_t turn)
{
    const struct layout l = c.layout;
    const int64_t *uneven = uneven_layers(l.mesh.pp * l.chunks, c.spec.layers);
    for (size_t r = 0; r < RECOMPUTATIONS; r++)
        for (size_t k = 0; k <= (uneven != NULL); k++) {
            c.recompute = recomputations[r];
            c.layout = l;
            c.layout.layers = k ? uneven : NULL;
            take_turn(&c, m, turn + r + k, turn + r / 2 + k);
            if (!c.recompute.distribute || (l.mesh.tp > 1 && !l.sequence))
                add_cell(s, &c);
        }
}

/* 8 layers are there for more stages than 4 layers can be. */
static bool adds_stages(const struct cell *c, const struct layout *l)
{
    return c->spec.layers == 4 || l->chunks > 1 || l->mesh.pp > 4;
}

static void add_base(struct space *s, struct cell c)
{
    struct layout_model m = spec_layout_model(&c.spec);
    m.seq_length = CELL_LENGTH;
    s->base = mem_grow(s->base, (size_t)s->bases + 1, sizeof(*s->base));
    s->base[s->bases++] = c;
    for (int world = 1; world <= CELL_WORLD_MAX; world *= 2) {
        struct layout *all;
        size_t n = layout_list(&m, world, &all);
        for (size_t i = 0; i < n; i++)
            if (micros_fit(&c, &all[i]) && adds_stages(&c, &all[i])) {
                c.layout = all[i];
                add_layout(s, c, &m, i);
            }
        free(all);
    }
}

/* Each turn of the loop is a base. 8 layers in double alone: roundings grow over them. In fp32
 * routed models from a seed with which a single rank has gradients within 3e-6 of those in double,
 * so that no rounding chooses an expert: with the usual one they are up to 8e-6 away. */
void space_open(struct space *ret)
{
    *ret = (struct space){0};
    for (int i = 0; i < 128; i++) {
        bool routed = (i & 65) == 65;
        if ((i & 64 && !routed) || (i & 16 && i & 2))
            continue;
        struct cell c = {.spec = routed  ? cell_mixtral()
                                 : i & 1 ? cell_llama()
                                         : cell_gpt(),
                         .real = i & 2 ? DTYPE_F32 : DTYPE_F64,
                         .micros = i & 4 ? 8 : 4,
                         .steps = CELL_STEPS,
                         .init = routed && i & 2 ? 1 : 0,
                         .ramp = !(i & 4) && (i ^ i >> 1 ^ i >> 3 ^ i >> 5) & 1};
        if (i & 8)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        if (i & 16)
            c.spec.layers = 8;
        c.documents = i & 32;
        c.per_token = (i >> 2 ^ i >> 5) & 1;
        add_base(ret, c);
    }
}

void space_open_model(struct space *ret, struct spec model)
{
    *ret = (struct space){0};
    for (int i = 0; i < 8; i++) {
        struct cell c = {.spec = model,
                         .real = DTYPE_F64,
                         .documents = i & 1,
                         .micros = i & 4 ? 8 : 4,
                         .steps = CELL_STEPS};
        if (i & 2)
            c.spec.hidden_dropout = c.spec.attention_dropout = 0.2;
        add_base(ret, c);
    }
}

void space_close(struct space *s)
{
    free(s->at);
    free(s->base);
    *s = (struct space){0};
}

/* ---- a sample ---------------------------------------------------------------------------------
 */

static int log2_of(int n)
{
    return n < 2 ? 0 : 1 + log2_of(n / 2);
}

static int recomputation_of(const struct recompute *have)
{
    for (int r = 0; r < RECOMPUTATIONS; r++)
        if (have->kind == recomputations[r].kind && have->layers == recomputations[r].layers &&
            have->distribute == recomputations[r].distribute)
            return r;
    BUG("a recomputation that no row has");
}

struct cell space_cell(const struct space *s, size_t number)
{
    const struct space_cell *at = &s->at[number];
    struct cell c = s->base[at->base];
    c.optimizer = at->optimizer;
    c.tuning = (struct optim_tuning){.sai.max = at->optimizer == OPTIM_SAI_PLAIN,
                                     .muon.momentum = 0.95,
                                     .muon.extra = 1,
                                     .muon.nesterov = true,
                                     .muon.scale = MUON_SHAPE_SCALING,
                                     .muon.steps = 5};
    c.layout = at->layout;
    c.recompute = at->recompute;
    c.overlap = at->overlap;
    c.evaluates = number & 1;
    c.seed = number + 1;
    return c;
}

void space_axes(const struct space *s, size_t number, int value[SPACE_AXES])
{
    const struct cell *c = &s->base[s->at[number].base];
    const struct layout *l = &s->at[number].layout;
    const int all[SPACE_AXES] = {(c->spec.act == SPEC_SWIGLU) + (c->spec.experts > 0),
                                 c->documents,
                                 c->spec.layers > 4,
                                 c->real == DTYPE_F32,
                                 c->micros > 4 ? 2 : c->ramp,
                                 c->spec.hidden_dropout > 0,
                                 recomputation_of(&s->at[number].recompute),
                                 (int)s->at[number].overlap,
                                 log2_of(l->mesh.tp),
                                 l->mesh.cp > 1 ? 1 + (int)l->context : 0,
                                 log2_of(l->mesh.cp),
                                 log2_of(l->mesh.dp),
                                 log2_of(l->mesh.pp) * 2 + l->mesh.pp_before_dp,
                                 l->sequence,
                                 l->chunks,
                                 l->zero,
                                 l->mesh.instances > 1,
                                 l->layers != NULL,
                                 c->per_token,
                                 log2_of(l->mesh.ep),
                                 l->mesh.etp < l->mesh.tp,
                                 (int)s->at[number].optimizer};
    memcpy(value, all, sizeof(all));
}

/* at[a * SPACE_VALUES + x][b * SPACE_VALUES + y], where axis a has value x, and axis b > a value y:
 * 1 + the number of a cell that has them; 0: none yet. */
enum { SPACE_ROWS = SPACE_AXES * SPACE_VALUES };
struct pairs {
    size_t at[SPACE_ROWS][SPACE_ROWS];
};

/* Pairs of the cell that are not there yet; puts them there if `add`. */
static size_t new_pairs(struct pairs *p, const struct space *s, size_t cell, bool add)
{
    int value[SPACE_AXES];
    size_t n = 0;
    space_axes(s, cell, value);
    for (int a = 0; a < SPACE_AXES; a++)
        for (int b = a + 1; b < SPACE_AXES; b++) {
            size_t *at = &p->at[a * SPACE_VALUES + value[a]][b * SPACE_VALUES + value[b]];
            if (*at)
                continue;
            n++;
            *at = add ? cell + 1 : 0;
        }
    return n;
}

/* All pairs; the cell of each is one of any part of the space. Returns how many. */
static size_t find_pairs(const struct space *s, struct pairs *ret, uint64_t seed)
{
    enum { STEP = 1000003 }; /* a prime */
    size_t pairs = 0, begin = t_rand(seed, 0) % s->n;
    memset(ret, 0, sizeof(*ret));
    BUG_ON(s->n % STEP == 0, "steps of %d do not meet all cells", (int)STEP);
    for (size_t i = 0; i < s->n; i++)
        pairs += new_pairs(ret, s, (begin + i * STEP) % s->n, true);
    return pairs;
}

static size_t cell_of_missing(const struct pairs *all, const struct pairs *covered)
{
    for (int x = 0; x < SPACE_ROWS; x++)
        for (int y = 0; y < SPACE_ROWS; y++)
            if (all->at[x][y] && !covered->at[x][y])
                return all->at[x][y] - 1;
    BUG("no pair is missing");
}

/* The best of some random cells; if none brings a new pair, one that does. */
static size_t next_cell(const struct space *s, const struct pairs *all, struct pairs *covered,
                        uint64_t seed, uint64_t turn)
{
    size_t best = 0, most = 0;
    for (uint64_t k = 0; k < 64; k++) {
        size_t i = t_rand(seed + turn, k) % s->n, n = new_pairs(covered, s, i, false);
        if (n > most) {
            most = n;
            best = i;
        }
    }
    return most ? best : cell_of_missing(all, covered);
}

size_t space_sample(const struct space *s, uint64_t seed, size_t n, size_t *ret, size_t *ret_pairs,
                    size_t *ret_missing)
{
    static struct pairs all, covered;
    bool *taken = mem_new(s->n, sizeof(*taken));
    size_t taken_n = 0, count = 0;
    memset(&covered, 0, sizeof(covered));
    *ret_pairs = *ret_missing = find_pairs(s, &all, seed);
    for (uint64_t turn = 0; taken_n < n && taken_n < s->n; turn++) {
        size_t i = *ret_missing ? next_cell(s, &all, &covered, seed, turn)
                                : t_rand(seed + turn, 65) % s->n;
        *ret_missing -= new_pairs(&covered, s, i, true);
        taken_n += !taken[i];
        taken[i] = true;
    }
    for (size_t i = 0; i < s->n; i++)
        if (taken[i])
            ret[count++] = i;
    free(taken);
    return count;
}

/* ---- running ----------------------------------------------------------------------------------
 */

static void run_single(const struct cell *c, struct cell_single *ret)
{
    struct cell alone = *c;
    char why[600];
    alone.layout = layout_plain(mesh_single());
    alone.recompute = (struct recompute){0};
    alone.overlap = 0;
    BUG_ON(cell_run_single(&alone, ret, why, sizeof(why)), "%s", why);
}

static void finish_singles(struct cell_single single[OPTIM_KINDS])
{
    for (int k = 0; k < OPTIM_KINDS; k++)
        cell_single_finish(&single[k]);
}

/* One cell of eight goes back to a checkpoint. */
static int run_threads(void *arg, const struct cell *c, const struct cell_single *single,
                       double tolerance, struct cell_why *why)
{
    struct cell one = *c;
    char folder[32];
    (void)arg;
    snprintf(folder, sizeof(folder), "rewind%llu", (unsigned long long)c->seed);
    one.rewind = c->seed % 8 == 0 ? t_path(folder) : NULL;
    return cell_run(&one, single, tolerance, why->text, sizeof(why->text));
}

size_t space_run_by(const struct space *s, const size_t *number, size_t n, space_runner *run,
                    void *arg)
{
    struct cell_single single[OPTIM_KINDS] = {{0}};
    size_t differ = 0;
    struct cell_why why;
    char name[160];
    for (size_t i = 0; i < n; i++) {
        const struct cell c = space_cell(s, number[i]);
        if (i == 0 || s->at[number[i]].base != s->at[number[i - 1]].base)
            finish_singles(single);
        if (!single[c.optimizer].steps)
            run_single(&c, &single[c.optimizer]);
        if (!run(arg, &c, &single[c.optimizer], tolerances[c.real], &why))
            continue;
        cell_name(&c, name, sizeof(name));
        printf("# cell %zu, %s, optimizer %d, recomputation %d, overlap %u: %s\n", number[i], name,
               (int)c.optimizer, recomputation_of(&c.recompute), c.overlap, why.text);
        fflush(stdout);
        differ++;
    }
    finish_singles(single);
    return differ;
}

size_t space_run(const struct space *s, const size_t *number, size_t n)
{
    return space_run_by(s, number, n, run_threads, NULL);
}
