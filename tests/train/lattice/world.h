/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LATTICE_WORLD_H
#define TESTS_TRAIN_LATTICE_WORLD_H

/*
 * A few training steps of a tiny model, by one rank or by many that are threads, on samples that
 * are functions of their numbers alone. What every rank of a layout holds afterwards is compared
 * with what the single rank held: the printed numbers of all steps and of an evaluation, the
 * gradients of the first step, the weights after the last (in fp32 by SGD only).
 *
 * Two values agree if they differ by at most `tolerance` of the largest value of the tensor, or of
 * 1 % (fp32: 10 %) of the largest value of any tensor of its kind, whichever is more: a tensor that
 * is zero but for rounding (the bias of keys without rotary positions) has no size of its own, and
 * 1e-5 of 1 % is a single rounding of fp32.
 */

#include "tests/train/lattice/models.h"
#include "train/engine/rank.h"

enum {
    CELL_STEPS = 3,
    CELL_SAVED = 2 /* steps before a checkpoint */,
    CELL_ROWS = 2,
    CELL_LENGTH = 8,
    CELL_WORLD_MAX = 8,
    CELL_INIT = 1234,
    CELL_BUCKET = 3000 /* elements: several buckets in each model */
};

/* Numbers of a rank's flat slab, of which it may hold some. */
struct cell_numbers {
    double *at; /* [params.elements] */
    bool *held;
};

/* Of all ranks together. */
struct cell_bytes {
    uint64_t digest;      /* of losses, norms, gradients and weights */
    uint64_t activations; /* bytes of the slabs */
};

struct cell {
    const struct rank_backends *backends; /* NULL: the host's */
    struct spec spec;
    struct layout layout;
    enum dtype real;
    enum optim_kind optimizer;
    struct optim_tuning tuning;
    struct recompute recompute;
    double noise;         /* on embeddings; 0: none */
    double expert_factor; /* of a model with experts; 0: the usual */
    int64_t rows;         /* of a micro-batch; 0: CELL_ROWS */
    bool per_token;       /* the objective */
    bool other_grads;     /* they are those of another multiple of the objective: not compared */
    struct cell_bytes *bytes; /* what is set by a run; NULL: nothing */
    int steps;                /* the last one */
    const char *load, *save;  /* folders: of the checkpoint to start from, and of that which is
                                 written after the last step; NULL: none */
    /* Called by each rank's thread after the last step, before it saves; NULL: nobody looks. The
     * loader is at the samples that come next. */
    void (*look)(void *arg, struct rank *r, struct loader *in);
    void *look_arg;
    double *crowded;    /* of the last step (step.h), by the first rank; NULL: nobody asks */
    bool documents;     /* samples are cut into documents that do not see each other */
    int64_t micros;     /* micro-batches of a step, of all data-parallel ranks */
    uint64_t seed;      /* of the delays of collectives */
    unsigned overlap;   /* bits of enum cell_overlap */
    uint64_t init;      /* seed of weights and dropout; 0: CELL_INIT */
    bool ramp;          /* from the third step on twice as many micro-batches */
    bool evaluates;     /* after the first step, on other samples; a single rank without
                          `begin` always does */
    const char *rewind; /* a folder: after CELL_SAVED steps a checkpoint is written there, and the
                           step after it taken twice, the second time from this; NULL: no */
    struct ops_narrow narrow;
    bool round; /* stochastically */
    struct loss_scale scale;
    /* Each rank before its first step, or NULL. */
    void (*begin)(void *arg, struct rank *r);
    /* Instead of the comparison with a single rank, which may be NULL then: each rank with the
     * gradients of its first step. */
    void (*judge)(void *arg, const struct rank *r, const struct cell_numbers *grads);
    void *arg; /* of both */
};

enum cell_overlap { OVERLAP_GRADIENTS = 1, OVERLAP_WEIGHTS = 2 };

/* A layout in short: degrees, what is shared out, and the layers of each stage. */
struct cell_shares {
    int tp, dp, pp, chunks;
    bool sequence;
    int zero;
    int64_t layers[8]; /* of 4 */
    int cp;            /* 0: 1 */
};
struct layout cell_layout(const struct cell_shares *s);

/* "gpt F64 tp2 cp1 dp1 pp2x1 3-1 sequence zero1, 8 micro-batches, dropout" */
void cell_name(const struct cell *c, char *ret, size_t size);

/* The largest values of a flat slab. */
struct cell_sizes {
    double (*source)[PARAM_SOURCES]; /* [params.n]: of each tensor */
    double kind[PARAM_KINDS];
};

/* The numbers of the log. */
struct cell_printed {
    double loss[CELL_STEPS], norm[CELL_STEPS], balance[CELL_STEPS], z[CELL_STEPS];
    int64_t samples[CELL_STEPS];
    double evaluation;
};

/* What a single rank ends with. Zeroed: nothing yet. */
struct cell_single {
    int steps;
    struct params params;
    struct cell_numbers grads, weights;
    struct cell_sizes grad_sizes, weight_sizes;
    struct cell_printed printed;
};

/* 0, or -1 with a sentence. cell_single_finish frees. */
int cell_run_single(const struct cell *c, struct cell_single *ret, char *why, size_t size);
void cell_single_finish(struct cell_single *s);

/* All ranks of the cell's layout; 0, or -1 with the sentence of the first rank that differs. `want`
 * NULL: none is compared. */
int cell_run(const struct cell *c, const struct cell_single *want, double tolerance, char *why,
             size_t size);

/* One rank of the cell's layout, of which each is a process: `comm`, open, is taken over. */
int cell_run_process(const struct cell *c, const struct cell_single *want, double tolerance,
                     struct comm *comm, char *why, size_t size);

/* The same layout run twice, with and without overlap: every bit of losses, norms, gradients and
 * weights. */
int cell_run_overlap(const struct cell *c, char *why, size_t size);

#endif
