/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_JOB_H
#define TRAIN_JOB_JOB_H

/*
 * What the verbs share: from options to a tokenizer, a checkpoint, a model, data. Each function
 * does one step and says in a sentence why it cannot; job_close takes whatever stage was reached.
 */

#include "base/io/file.h"
#include "dataset/sample/batch.h"
#include "dataset/sample/epochs.h"
#include "dataset/sample/fim.h"
#include "dataset/shard/manifest.h"
#include "dataset/sample/blend_set.h"
#include "dataset/sample/mock.h"
#include "dataset/sample/packed_feed.h"
#include "tok/tokenizer/tokenizer.h"
#include "train/ckpt/ckpt.h"
#include "train/course/course.h"
#include "train/engine/rank.h"
#include "convert/hf/hf_documents.h"
#include "convert/hf/hf_folder.h"
#include "convert/hf/hf_grown.h"
#include "train/options/options.h"
#include "train/tune/tune.h"
#include "convert/vocabulary/files.h"
#include "convert/vocabulary/vocabulary.h"

/* The lock of --save (checkpoint.h). */
struct save_lock {
    char *path; /* NULL: not taken */
    int fd;
    char *made; /* the outermost folder that this process created for it; NULL: none */
};

/* The processes that a job is. */
struct job_world {
    int rank, ranks;
    int local, locals; /* the rank among those of this machine, and how many these are */
    /* The collectives of this process on a mesh of `ranks`; NULL where there is one process. */
    int (*open)(struct comm *ret, void *state, struct mesh m, struct err *e);
    void *state;
    bool one_output; /* mpirun or srun passes on what they write: to stderr from all of them into
                      * one place, and stdout need not end at a terminal where it is one */
};

struct job {
    struct opts *opts;
    const struct train_options *o;
    struct tokenizer *tokenizer; /* NULL: none was named and none is known */
    struct data_lists lists;
    const char *data_prefix; /* of the first data set; NULL: none */
    const char *data_name;   /* for sentences: that, or "the blend" */
    struct manifest manifest;
    bool has_manifest;
    char data_digest[SHA_TEXT]; /* SHA-256 of the manifest, or of all of them; "" without */
    struct ckpt *ckpt;          /* NULL: from nothing, or from `hf` */
    struct hf_folder *hf;       /* --load is a model of Hugging Face; NULL: it is not */
    bool ckpt_is_own;           /* found in --save: the run resumes */
    bool ckpt_is_chosen;        /* and by its step, perhaps an older one */
    bool started;               /* it is not loaded for the first time */
    const char *ckpt_step_of;   /* the folder of which it was taken by its step; NULL: it was not */
    const char *ckpt_among;     /* the folder whose newest one it is; NULL: it was named */
    struct save_lock lock;
    struct buf kept[2];            /* files that checkpoints have of a model of Hugging Face */
    struct vocabulary_files files; /* and those of the tokenizer */
    struct hf_documents documents; /* and its licence, readme and the like */
    struct spec spec;
    struct hf_grown grown; /* --resize-vocab: `hf` with more rows; is 0: as it is */
    int64_t pad_id;        /* of --freeze-pad-embedding */
    int64_t vocab;         /* true size, of tokenizer or data */
    int64_t micros, global_batch, seq_length;
    int64_t epoch;         /* samples of an epoch of --num-train-epochs; 0: not in epochs, or not
                              counted yet */
    struct course course;  /* of training */
    int64_t eval_interval; /* steps */
    struct layout layout;
    enum context_comm *context_of; /* of layout.context_of */
    int64_t *stage_layers;         /* of layout.layers; NULL: evenly shared out */
    struct comm comm;              /* of several processes, until the rank takes it over */
    struct rank rank;
    bool rank_open;
    struct tune tune;      /* --tune-gemm */
    struct watch *watch;   /* of several processes (watchdog.h); NULL: one, or not yet */
    struct copies *copies; /* what several of them hold, likewise */
    int64_t compared;      /* samples consumed when that was compared last */
    struct blend_set data;
    bool mocked; /* no data sets: `mock` */
    struct mock mock[PARTS];
    bool packed; /* the data sets are packed ones: in `pack`, not in `data` */
    struct packed_data pack;
    struct epochs epochs; /* of training data that are not packed, with --num-train-epochs */
    struct fim fim[PARTS];
};

/*
 * The layout that the options ask for, and the collectives of the job's processes. ERR_USAGE: their
 * number does not fit. Comes first: job_agree needs it.
 */
int job_open_world(struct job *j, struct err *e);

/* The collectives of this process. */
struct comm *job_comm(struct job *j);

/*
 * Of several processes: that all have the same settings (settings.c). ERR_USAGE names the first
 * that differs, its values and the ranks. Options, before anything else; by those that have met at
 * job_open_world. With job_agree of `code`: where the run starts, tokenizer and data; the
 * checkpoint alone, which may be another one after it was loaded; the model.
 */
int job_same_options(struct job *j, struct err *e);
int job_same_start(struct job *j, int code, struct err *e);
int job_same_checkpoint(struct job *j, int code, struct err *e);
int job_same_model(struct job *j, int code, struct err *e);

/* A line that says which ranks are on which machines, and how they are laid out; with --verbose one
 * for each rank. */
int job_tell_ranks(struct job *j, struct err *e);

/* 0 if `code` is 0 on all processes (all_ranks_agree). What one of them may fail in alone is
 * followed by this, before anything that they do together. */
int job_agree(struct job *j, int code, struct err *e);

/* Layout, recomputation and objective of a rank: shares out the layers to pipeline stages as the
 * options of training say. ERR_USAGE: the model and the batch cannot be cut so.
 */
int job_settle_layout(struct job *j, bool trains, struct rank_config *ret, struct err *e);

/* The optimizer of a rank, and its numbers but for the schedule's. */
void job_settle_optimizer(const struct train_options *o, struct rank_config *ret);

/* After batch arithmetic: with --use-checkpoint-opt_param-scheduler, learning rate and weight decay
 * of the run that the checkpoint is of. */
int job_adopt_schedule(struct job *j, struct err *e);

/* Threads of this process: those of a job are taken to share a machine's processors. 0: all. */
int job_threads(const struct job *j);

/* The backends that --device leaves: one by its name, or for auto all, where several processes must
 * have the same. Called by all processes. */
int job_choose_device(struct job *j, struct rank_config *ret, struct err *e);

/* Whether this process is the first, which writes what there is one of, or the last, which prints
 * the log. */
bool job_is_first(const struct job *j);
bool job_is_last(const struct job *j);

/* The data sets that are named, and the first one's manifest, if it has one; the others' must have
 * its tokenizer. */
int job_open_manifest(struct job *j, struct err *e);

/* The tokenizer of the options, else that of the data, as the model's folder or the manifest's file
 * has it, else the model's own. Checks that all that are known do the same: ERR_USAGE names two and
 * what they differ in, unless --tokenizer-differs makes a warning of it (tokenizer.c). */
int job_open_tokenizer(struct job *j, struct err *e);

/* Likewise for one more data set beside the first. */
int job_same_data_tokenizer(const struct job *j, const struct manifest *m, const char *prefix,
                            struct err *e);

/* What a checkpoint says of it. */
void job_describe_tokenizer(const struct job *j, struct ckpt_meta *m);

/* The tokenizer that is open once more, in another manner (tok/tokenizer/tokenizer.h); the caller
 * closes it. */
int job_tokenizer_again(const struct job *j, bool no_template, enum tok_specials specials,
                        struct tokenizer **ret, struct err *e);

/* Tokens of a sequence: of --seq-length, or the model's. ERR_USAGE: it has fewer positions. */
int job_set_length(struct job *j, enum model_use use, struct err *e);

/* Spec from the options and the vocabulary, or from the checkpoint; the two must agree. */
int job_spec(struct job *j, bool from_checkpoint, struct err *e);

/* Batch arithmetic and what a rank that trains is to be, on which device. */
int job_configure_rank(struct job *j, struct rank_config *ret, struct dev_desc *desc,
                       struct err *e);

/* The same, and a rank that is planned and not bound. */
int job_plan_rank(struct job *j, struct err *e);

/* Batch arithmetic, learning rate and rank; weights from the checkpoint if there is one. */
int job_open_rank(struct job *j, enum model_use use, struct err *e);

/* Goes back to the newest checkpoint of --save: all but the samples consumed. ERR_ANOMALY: there is
 * none. Called by all processes. */
int job_go_back(struct job *j, struct err *e);

/* With --num-train-epochs: the training data's samples, before batch arithmetic, which needs them.
 * ERR_USAGE: there are none, or a blend by weights, which has no epochs. */
int job_count_epoch(struct job *j, struct err *e);

/* The data's shares, each with as many samples as the run takes. */
int job_open_data(struct job *j, const uint64_t samples[PARTS], struct err *e);

/* With --mock-data: there are no data sets. ERR_USAGE where some are named. */
int job_open_mock(struct job *j, struct err *e);

/* What a part gives, or why it gives nothing (ERR_USAGE). Ready: it can be asked; empty: it was
 * wanted and comes out empty; once: its first samples in which no token comes twice. */
struct feed job_feed(const struct job *j, enum part p);
int job_need(const struct job *j, enum part p, struct err *e);
bool job_ready(const struct job *j, enum part p);
bool job_empty(const struct job *j, enum part p);
uint64_t job_once(const struct job *j, enum part p);
uint64_t job_there(const struct job *j, enum part p); /* the same, if more samples were wanted */

/*
 * What an evaluation reads: micro-batches, as many as the rank computes in a pass, from which
 * sample on. The samples follow from the step alone: the k-th evaluation of a run takes the k-th
 * stretch of the share, so that a resumed run evaluates on what an unbroken one does; or each takes
 * all of it (`full`), where rows of the last micro-batches may be missing.
 */
struct stretch {
    uint64_t from;
    int64_t passes;
    uint64_t all; /* samples; 0: each pass has as many as it has rows */
};
struct stretch job_stretch(const struct job *j, enum part p, int64_t step, int64_t interval,
                           bool full);

/* How a part's batches are cut, and those of training's steps; ready after job_open_data. */
struct batch_layout job_layout(const struct job *j);
struct batch_layout job_train_layout(const struct job *j);
struct batch_layout job_stretch_layout(const struct job *j, const struct stretch *s);

/* All that `train run` does before its first step: world, checkpoint, tokenizer, model, data
 * (prepare.c). */
int job_prepare(struct job *j, struct err *e);

void job_close(struct job *j);

/* train run --export-hf OUT: the model at the end of a run as a folder of Hugging Face. Before the
 * first step: ERR_USAGE for a model that no family of transformers has, and where something stands
 * under OUT or, with --test-prompt-text, under OUT.unanswered (export.c). */
int export_check(const struct job *j, struct err *e);
/* Tries the folder before it is named OUT; one that fails becomes OUT.unanswered. */
typedef int export_trial(const struct job *j, const char *folder, struct err *e);
/* Of the checkpoint of that step in `dir`, with its tokenizer; `trial` may be NULL. */
int export_model(const struct job *j, const char *dir, int64_t step, export_trial *trial,
                 struct err *e);

/* Without --save: a folder beside OUT for the checkpoint that is exported, of the first process. It
 * is removed by export_place_close, or, where the process was killed, by the next one that opens
 * it. Zeroed: none. */
struct export_place {
    struct outfile lock;
    char *folder;
    char *made; /* the first folder that was made for it; NULL: none */
};
int export_place_open(struct export_place *p, const char *out, struct err *e);
void export_place_close(struct export_place *p, const char *out);

/* Files that checkpoints have beside tensors: those of --hf-config or of the checkpoint to start
 * from are read at once, for that may be removed later; then with the configuration and the
 * tokenizer they are put into each (export.c). */
int job_read_kept(struct job *j, struct err *e);
int job_put_files(struct job *j, struct ckpt_writer *w, struct err *e);

/* Whether log lines are short: on a terminal, unless a format was named. */
bool job_for_people(const struct job *j);
/* Says what is about to run: parameters, device, memory, steps. */
void job_introduce(const struct job *j);

#endif
