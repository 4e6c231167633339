/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_RANK_H
#define TRAIN_ENGINE_RANK_H

/*
 * One rank: its three tables, its share of the model, and the memory that both live in. It is made
 * by two calls. rank_plan runs the code of a step over unbound slabs: afterwards the bytes of each
 * slab and the work of a step are known, and no memory, device or other rank was needed. rank_bind
 * opens device and comm, binds each slab once and makes the initial weights; after that nothing
 * allocates. A rank belongs to one thread.
 */

#include "dataset/sample/batch.h"
#include "train/comm/comm.h"
#include "train/engine/graphs.h"
#include "train/engine/save.h"
#include "train/model/model.h"
#include "train/ops/ops.h"
#include "train/ops/values.h"
#include "train/optim/lr.h"
#include "train/optim/optim.h"
#include "train/optim/scale.h"
#include "train/plan/plan.h"
#include "train/schedule/schedule.h"
#include "train/spec/param.h"
#include "train/tensor/slab.h"
#include "train/zero/zero.h"

enum slab_name {
    SLAB_PARAMETERS,
    SLAB_GRADIENTS,
    SLAB_OPTIMIZER,
    SLAB_ACTIVATIONS,
    SLAB_WORKSPACE,
    SLAB_STAGING,  /* host: what goes to the device and comes back */
    SLAB_SNAPSHOT, /* host: what an asynchronous save writes */
    SLAB_COUNT
};

/* Micro-batches that may be on their way to the device at once, each with an event. */
enum { STAGE_SLOTS = 2, EVENT_STAGE = 0 };

enum { TOTALS = 5 };

/* Steps that may be issued and not completed, each with values on their way to the device, with
 * results on their way back, and with an event. */
enum { STEPS_AHEAD = 2, VALUE_SLOTS = STEPS_AHEAD, EVENT_STEP = 2 };

/*
 * What a rank runs on: a program names its own in main.c. Each fills the table that it is given;
 * what it filled is closed by rank_close.
 */
struct rank_backends {
    const char *name; /* "cpu", "cuda": of --device */
    /* What open_device would open. `which`: of the devices of a kind, for processes that share a
     * machine. */
    int (*describe_device)(struct dev_desc *ret, int which, int threads, struct err *e);
    int (*open_device)(struct dev *ret, int which, int threads, struct err *e);
    /* What to plan for where none can be described; NULL: nothing. */
    void (*assume_device)(struct dev_desc *ret);
    /* Called with a device that is not open, which has its `desc` alone, and again with an open
     * one: until then the table's scratch is asked for and nothing runs. */
    int (*init_ops)(struct ops *ret, struct dev *d, struct slab *workspace,
                    const struct ops_config *c, struct err *e);
    /* Replaces the open comm of several processes by one for tensors of the open device; NULL: that
     * one does. Called by all ranks. */
    int (*open_comm)(struct comm *c, struct dev *d, const char *library_path, struct err *e);
};

/* What a rank is at, for a watchdog. */
enum rank_phase { RANK_DATA, RANK_MICRO, RANK_UPDATE, RANK_EVAL };

/* What a step's time is spent on, for timers; those from RANK_TIMER_DETAILS on are of
 * micro-batches. */
enum rank_timer {
    RANK_TIMER_FORWARD_BACKWARD,
    RANK_TIMER_GRADS_SYNC,
    RANK_TIMER_OPTIMIZER,
    RANK_TIMER_DETAILS,
    RANK_TIMER_BATCH = RANK_TIMER_DETAILS,
    RANK_TIMER_FORWARD,
    RANK_TIMER_BACKWARD,
    RANK_TIMER_FORWARD_RECV,
    RANK_TIMER_FORWARD_SEND,
    RANK_TIMER_BACKWARD_RECV,
    RANK_TIMER_BACKWARD_SEND,
    RANK_TIMERS
};

typedef void rank_timer_fn(void *arg, enum rank_timer t, bool begins);

/* What its caller asks for: it stays as it is once the rank is planned. What the engine makes of it
 * is struct rank_effective. */
struct rank_config {
    const struct rank_backends *backends; /* outlive the rank */
    int nbackends; /* the first of so many whose device can be described; 0: there is one */
    struct layout layout;
    int rank;          /* in the world */
    struct comm *comm; /* of that mesh and rank, open; the rank takes it over when it is bound, and
                          leaves zeros. NULL: one rank alone */
    struct spec spec;
    enum model_use use;
    /* DTYPE_F32; DTYPE_BF16 or DTYPE_F16 for weights and activations with fp32 master weights,
     * moments and gradients, but for `narrow`; DTYPE_F64 for gradient checks */
    enum dtype real;
    struct ops_narrow narrow;
    bool round;                       /* stochastically, what the optimizer keeps in BF16 */
    bool tf32;                        /* a GPU's products of F32 in TF32 */
    bool any_order;                   /* attention's backward may add in any order */
    const struct ops_choice *choices; /* of algorithms, as in struct ops_config */
    size_t nchoices;
    bool tune;
    struct loss_scale scale;
    bool per_token;             /* the objective is the mean over labels (step.c) */
    struct recompute recompute; /* checked by the caller (train/stages.h) */
    double expert_factor;       /* as in struct model */
    double noise;               /* likewise */
    int device;                 /* which of the backend's devices */
    int threads;                /* 0: one for each processor */
    const char *kernels;        /* most that init_ops may use; NULL: the best */
    const char *library_path;   /* folders of libraries opened at run time; NULL: none */
    int64_t micro_batch, seq_length;
    int64_t micros; /* micro-batches of a step on this rank; with a ramp, of the longest step */
    /* micro-batches are computed together, several in a pass, up to so many tokens, where nothing
     * but the order of sums tells it (rank_merged); 0: one by one */
    int64_t merge_tokens;
    bool frozen; /* the embedding's row of frozen_id gets no gradient from its lookups */
    int64_t frozen_id;
    bool documents;            /* stretches of a batch may be shorter than its rows */
    enum graphs_use graphs;    /* whether passes are launched as a whole */
    uint64_t beside, mapped;   /* bytes that the caller will take beside the rank, and files that it
                                  will map: for the check that all of it fits */
    uint64_t file_size;        /* bytes of tensors in a file of a checkpoint; 0: CKPT_FILE_SIZE */
    bool loads;                /* weights are loaded before they are used: no random initial ones */
    bool weights_only;         /* checkpoints are written without the optimizer's state */
    bool async_save;           /* checkpoints are written while steps run */
    bool overlap_grad_reduce;  /* gradients are sent while others are computed */
    bool overlap_param_gather; /* and weights gathered while others are used */
    int64_t bucket_size;       /* elements of a bucket of gradients; 0: zero_bucket_size */
    uint64_t seed;
    enum optim_kind optimizer;
    double beta1, beta2, eps, clip;
    double momentum; /* of SGD */
    struct optim_tuning tuning;
    struct lr lr;
    struct decay decay;
    struct ramp ramp; /* a growing batch, of which `micros` is that of its `full` one; or epochs */
    /* Called by the rank's thread when it enters a phase of a step, each micro-batch anew; NULL:
     * nobody asks */
    void (*progress)(void *arg, enum rank_phase p, int64_t step);
    void *progress_arg;
};

/* Where a run stands: all that a checkpoint holds beside tensors. */
struct cursor {
    int64_t iteration; /* steps begun and ended, skipped ones too */
    int64_t consumed;  /* samples of all data-parallel ranks */
    int64_t steps;     /* optimizer steps taken: a skipped one takes none */
    int64_t scheduled; /* samples that moved the learning rate: those of steps that were taken */
    struct loss_scale_state scale;
};

/* Of a step, in the staging slab. */
struct step_back {
    double labels, crowded; /* leave from here */
    double totals[TOTALS], norm;
    int32_t skip;
};

/* A step that is issued. */
struct step_issued {
    double waited; /* seconds, for data */
};

/* Host memory that a micro-batch leaves from, so that the batch it was in may be filled again. */
struct stage_slot {
    int32_t *tokens, *labels, *position;
    float *mask;
    int32_t *start, *lengths; /* of stretches; with documents only */
    int32_t *context;         /* acts.context; with documents only */
    struct micro_values *values;
};

/* Micro-batches that are computed in one pass on such a device. */
int64_t rank_merged(const struct rank_config *c, const struct dev_desc *desc);

/* A micro-batch in flight. */
struct in_flight {
    struct acts acts; /* of place 0: the model's own */
    struct model_pass pass;
    double labels;           /* that count */
    struct comm_ticket sent; /* of its output */
};

/* The stream or its gradient on the way between two stages. */
struct message {
    struct tensor t; /* [rows of the stream, C] */
    struct comm_ticket ticket;
};

enum { PIPELINE_SENDS = 2 }; /* gradients on their way at a time */

/* One of the stages that a rank has. */
struct chunk {
    struct stage stage;
    struct weights w, g; /* of chunk 0: the model's own */
};

/* Training alone. */
struct pipeline {
    struct schedule schedule;
    struct chunk *chunk;                 /* [layout.chunks] */
    struct in_flight *place;             /* [schedule.places] */
    struct message *received;            /* [schedule.buffers + 1] */
    struct message sent[PIPELINE_SENDS]; /* gradients */
    uint64_t sends;
};

/* What the engine decides itself, from the configuration and while it runs. */
struct rank_effective {
    int64_t micro_batch;  /* rows that pass the model at a time: of several micro-batches where they
                             are merged (rank_merged) */
    int64_t micros;       /* passes of the current step */
    rank_timer_fn *timer; /* NULL: nobody asks */
    void *timer_arg;
};

struct rank {
    struct rank_config config;
    struct rank_effective effective;
    struct dev dev;
    struct ops ops;
    struct comm comm;
    struct params params;
    struct model model;
    struct optim optim;
    struct slab slab[SLAB_COUNT];
    struct zero zero;
    struct tensor totals;              /* F64 [TOTALS]: sum of losses, counted labels; sums of the
                                          balancing and z losses of a mixture of experts, its passes
                                          in several rounds */
    struct tensor values, next_values; /* F64 [STEP_VALUES], of this step; [2, STEP_VALUES] */
    struct arena host;                 /* of the model */
    struct step_values *host_values[VALUE_SLOTS]; /* [2] each, in staging */
    int valued;                                   /* the slot that is next */
    struct step_back *back[STEPS_AHEAD];          /* in staging */
    int64_t tokens_passed, tokens_spared;         /* in training; of them, padding not computed */
    double *host_totals;                          /* [TOTALS], of the last completed step */
    double *host_norm;                            /* likewise */
    struct step_issued issued[STEPS_AHEAD];
    int steps_issued, oldest;        /* that are not completed; the slot of the first of them */
    double step_begin, step_seconds; /* of the last completed step: when the next began; its time */
    struct stage_slot stage[STAGE_SLOTS];
    int staged;       /* the slot that is next */
    int32_t *numbers; /* of its rows in a micro-batch; NULL without context parallelism */
    struct pipeline pipe;
    struct graphs graphs;
    struct save save;
    struct plan plan; /* of one step: its counts stay for reports */
    struct cursor at;
    double loss_limit; /* the caller's: a step whose loss is above it is not taken; 0: none */
};

/* Narrows c->backends to the first whose device can be described: by `desc`. Else the last one's
 * error. */
int rank_choose(struct rank_config *c, struct dev_desc *ret, struct err *e);

/*
 * The peaks of r->slab and the counts of r->plan, on a device as `desc` says. ERR_USAGE: the layout
 * cannot cut the model. `r` must stay where it is until rank_close, which takes half-built ones
 * too.
 */
int rank_plan(struct rank *r, const struct rank_config *c, const struct dev_desc *desc,
              struct err *e);

/* Makes a planned rank real. ERR_RESOURCE names the slab that could not be bound, a library that is
 * missing, or an op that the device cannot prepare. All ranks call it together, and the failure of
 * one is that of all (all_ranks.h). */
int rank_bind(struct rank *r, struct err *e);

/* Both calls, for the device of the backends. Between them ERR_RESOURCE: the slabs together do not
 * fit into the memory that is free (memory_fit.h). All ranks together, as rank_bind. */
int rank_open(struct rank *r, const struct rank_config *c, struct err *e);
void rank_close(struct rank *r);

/* Bytes of host memory that rank_bind takes for a while beside the slabs, for the initial weights.
 */
uint64_t rank_fill_bytes(const struct rank *r);

/* The bytes of each slab as planned, and their sum, for the log. */
void rank_describe(const struct rank *r, struct buf *out);

/* The weights that training changes and checkpoints hold; those that the model reads are a copy of
 * them if they are of another type, which follows by rank_spread_master. */
struct tensor rank_master(const struct rank *r);
void rank_spread_master(struct rank *r);

/* What the loss of a micro-batch with so many counted labels is divided by (step.c); 0: it does not
 * count. Of each micro-batch, where several are in a pass. `there`: samples of the step, of all
 * data-parallel ranks; 0: as many as it has rows. */
double rank_loss_divisor(const struct rank *r, double labels, uint64_t there);

/* `fn` is called where a part of a step begins and ends, on a GPU after what was issued before is
 * done. */
void rank_set_timer(struct rank *r, rank_timer_fn *fn, void *arg);

/* Calls it, if somebody asks. */
void rank_timer(struct rank *r, enum rank_timer t, bool begins);

/* Samples of the step after so many, of all data-parallel ranks. */
int64_t rank_samples(const struct rank *r, int64_t consumed);

/* The learning rate of the step after `at`. */
double rank_rate(const struct rank *r, const struct cursor *at);

/* Before a step: makes it as long as the ramp says. */
void rank_follow_ramp(struct rank *r);

/* Makes `l` cut out the micro-batches of this data-parallel rank. */
void rank_share_batches(const struct rank *r, struct batch_layout *l);

/* The count of labels, which goes through *from in pinned memory, is put into `totals`. */
void rank_put_labels(struct rank *r, double *from, double labels);

/* Copies to the device, after the compute issued so far; `from` must stay until that is over. */
void rank_put(struct rank *r, struct tensor to, const void *from);

/* Copies from the device, and waits; or has it copied into the staging slab by the next wait. */
void rank_fetch(struct rank *r, void *to, struct tensor from);
void rank_fetch_later(struct rank *r, void *to, struct tensor from);

#endif
