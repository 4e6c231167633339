/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_OPTIM_H
#define TRAIN_OPTIM_OPTIM_H

/*
 * The optimizer's part of a step: norm of all gradients, clipping, update by the rule of
 * a table (choice.h). Under ZeRO (Rajbhandari et al. 2020) a rank keeps a rule's state, Adam's
 * moments, say, of its share of the parameters alone, and updates these. A tensor below has a
 * number for each element of the parameters' slab, or for each that is kept (struct zero_split).
 * Norm, clip factor and skip flag stay on the device; the caller reads them once, when the step is
 * over.
 */

#include "train/comm/comm.h"
#include "train/ops/ops.h"
#include "train/ops/segments.h"
#include "train/optim/choice.h"
#include "train/spec/param.h"
#include "train/zero/split.h"

enum { OPTIM_STATES = 2 };

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

/* A number (F64) that is not of single elements: its group in a checkpoint, of which tensor. */
struct optim_number {
    const char *group;
    const struct param_source *source;
    struct tensor at; /* [1] */
};

typedef void optim_fetch(void *rank, void *to, struct tensor from);

/* An optimizer: what it keeps for each element, by the name that it has in a checkpoint, and how it
 * changes the weights. */
struct optim_rule {
    int states;
    const char *state[OPTIM_STATES];
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
    /* What it keeps beside, in optim.own, of a rank at that place of its mesh; cut from slabs as by
     * optim_take, given back by `close`. NULL, all three: nothing. */
    void (*open)(struct optim *o, struct mesh m, int rank);
    void (*take)(struct optim *o, struct slab *optimizer, struct slab *activations);
    void (*close)(struct optim *o);
    /* A number of `own` that stands for a parameter in a checkpoint; false: there is none. */
    bool (*number)(const struct optim *o, int param, struct optim_number *ret);
    /* ERR_USAGE: by these options it does not train in that layout. NULL: it does in any. */
    int (*check)(const struct optim_tuning *t, const struct layout *l, struct err *e);
    /* After the first step: warns of what its user should know; `fetch` copies a tensor to the
     * host. NULL: of nothing. */
    void (*report)(const struct optim *o, optim_fetch *fetch, void *rank);
};

#define OPTIM_RULES(value, name, kind, rules) extern const struct optim_rule rules[];
OPTIMIZERS(OPTIM_RULES, OPTIM_RULES)
#undef OPTIM_RULES

const struct optim_rule *optim_rule(enum optim_kind kind);

/* What a rule keeps of a parameter as its state i; NULL: nothing. */
const char *optim_state_name(const struct optim_rule *rule, const struct param *q, int i);

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
    void *own;          /* what its rule keeps beside */
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

/* AdamW's update. */
void optim_adam(const struct optim *o, struct ops *ops, const struct optim_piece *x);

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
