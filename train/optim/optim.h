/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

/*
 * The optimizer's part of a step: norm of all gradients, clipping, update by the rule of
 * a table (AdamW, SGD, SGD-SaI, Muon). Under ZeRO (Rajbhandari
 * et al. 2020) a rank keeps a rule's state, Adam's moments, say, of its share of the parameters
 * alone, and updates these. A tensor below has a number for each element of the parameters' slab,
 * or for each that is kept (struct zero_split). Norm, clip factor and skip flag stay on the device;
 * the caller reads them once, when the step is over.
 */

#include "train/comm/comm.h"
#include "train/ops/ops.h"
#include "train/ops/segments.h"
#include "train/spec/param.h"
#include "train/zero/split.h"

enum { OPTIM_STATES = 2 };

/* plain: without momentum, which needs no state. */
enum optim_kind {
    OPTIM_ADAM,
    OPTIM_SGD,
    OPTIM_SGD_PLAIN,
    OPTIM_SAI,
    OPTIM_SAI_PLAIN,
    OPTIM_MUON,
    OPTIM_KINDS
};

struct optim;
struct number_run;

/* Elements that a call updates, and what belongs to them. */
struct optim_piece {
    /* of a rule by parameters: the one that they are of, and of its decay */
    const struct param *of;
    bool decays;
    int64_t first; /* of the slab, where optim.segments tell of them */
    struct tensor p, copy, g, state[OPTIM_STATES];
};

/* An optimizer: what it keeps for each element, by the name that it has in a checkpoint, and how it
 * changes the weights. */
struct optim_rule {
    int states;
    const char *state[OPTIM_STATES];
    bool blocks;  /* a number for each block, too: optim.gsnr (sai.h) */
    bool moments; /* they are of the types `moment` (struct ops), else of `master` */
    /* `update` has elements of one parameter, else any that are kept together */
    bool by_parameters;
    void (*update)(const struct optim *o, struct ops *ops, const struct optim_piece *x);
    /* before the updates of the first step, all ranks together; NULL: nothing */
    void (*first)(struct optim *o, struct ops *ops, struct comm *comm);
    /* instead of `update`, of the parameters that `takes` names, all ranks that have parts of them
     * together; NULL: of none. The states of these are `taken`. */
    bool (*takes)(const struct param *q);
    void (*whole)(struct optim *o, struct ops *ops, struct comm *comm, const struct param *q);
    const char *taken[OPTIM_STATES]; /* NULL: they have none */
};
const struct optim_rule *optim_rule(enum optim_kind kind);

/* What a rule keeps of a parameter as its state i; NULL: nothing. */
const char *optim_state_name(const struct optim_rule *rule, const struct param *q, int i);

/* Muon's rule for the size of a step by the sizes of a matrix, [rows, columns] (muon.h). */
enum muon_scale { MUON_SHAPE_SCALING, MUON_SPECTRAL, MUON_UNIT_RMS_NORM };

/* What is its own of a rule, by options. */
struct optim_tuning {
    bool sai_max;   /* SGD-SaI: gsnr by the greatest of all blocks */
    bool sai_shard; /* and of what a tensor-parallel rank holds, as upstream */
    double muon_momentum, muon_extra;
    bool muon_nesterov;
    enum muon_scale muon_scale;
    int muon_steps;
};

struct optim {
    const struct optim_rule *rule;
    struct optim_tuning tuning;
    const struct params *params;
    const struct zero_split *zero;
    struct tensor weights, grads; /* all or kept */
    struct tensor master;         /* what is updated: `weights`, or kept ones of a wider type */
    struct tensor state[OPTIM_STATES]; /* kept */
    struct tensor total, norm, factor; /* F64 [1] */
    struct tensor divisor; /* F64 [1]: gradients are to be divided by it, the count of labels; none:
                              only by the loss scale of `values` */
    struct tensor values;  /* F64 [STEP_VALUES], of the step (ops/values.h) */
    struct tensor segments; /* of the slab (ops/segments.h), those of `segment` once they are put */
    struct update_segment *segment;
    int nsegments;
    /* stochastic rounding of what is kept in BF16 (optim/rounding.h) */
    bool rounds;
    uint64_t seed;
    struct tensor runs; /* of the slab, those of `run` once they are put */
    struct number_run *run;
    int nruns;
    struct tensor skip; /* I32 [1]: 1 if the norm was not finite and nothing was done */
    /* of a rule with blocks: the model's, of columns (sai.h) */
    int columns, column;
    bool second, last_stage;
    struct tensor gsnr, stats;        /* F64 [blocks * columns]; [3 blocks * columns] */
    struct param_source *gsnr_source; /* [params.n] as entries of a checkpoint */
    double beta1, beta2, eps, momentum, clip;
};

/* Of a rank at that place of its mesh; `o` has rule, tuning and params. Free by optim_finish. */
void optim_open(struct optim *o, struct mesh m, int rank);
void optim_finish(struct optim *o);

/* Cuts moments from `optimizer`, with weights of the type `master` of `types` if `weights` are of
 * another, and the scalars from `activations`. Called twice, as slabs are. */
void optim_take(struct optim *o, struct slab *optimizer, struct slab *activations,
                const struct ops *types);

/* Copies to the device what never changes, after binding. */
void optim_put(const struct optim *o, struct dev *d);

/* Gradients are left as they are; of the weights those that are kept are updated. Learning rate,
 * decay and number are those of `values`; `first`: no step was taken before, which a rule with
 * `first` must be told. */
void optim_step(struct optim *o, struct ops *ops, struct comm *comm, bool first);

/* ---- for the rules ----------------------------------------------------------------------- */

/* A piece of what is kept, in one of the tensors. */
struct tensor optim_part(const struct optim *o, struct tensor t, struct zero_piece p);

/* The sum over all ranks of what each has added to `t` (F64), by `add`, of what it counts: first of
 * experts that are spread over ranks, then of the rest. */
typedef void optim_add(struct optim *o, struct ops *ops, bool experts);
void optim_sum(struct optim *o, struct ops *ops, struct comm *comm, struct tensor t,
               optim_add *add);

/* The weights follow their master copy where they are apart. */
void optim_copy(const struct optim *o, struct ops *ops, struct zero_piece p);

#endif
