/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_STAGES_H
#define TRAIN_OPTIONS_STAGES_H

/*
 * Options that say which layers a pipeline stage has and which of them are computed again for the
 * backward pass, and how sequences and experts are shared: rows of `train`'s table, and what
 * follows from them and the model.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cli/opt.h"
#include "base/core/buf.h"
#include "train/engine/rank.h"

struct stage_flags {
    const char *balance, *method, *layout;
    int64_t first, last;            /* -1: not given */
    bool embedding, loss;           /* counted as layers */
    bool before_data;               /* ranks: mesh.pp_before_dp */
    int64_t virtual_layers, chunks; /* 0: not given */
};

struct recompute_flags {
    int granularity; /* 0: none, 1: selective, 2: full */
    int method;      /* 0: none, 1: uniform, 2: block */
    int64_t layers;  /* 0: not given */
    bool activations, checkpoint, distribute;
};

struct expert_flags {
    int64_t parallel, tensor_parallel; /* 0: --tensor-model-parallel-size */
    double buffer;
};

#define EXPERT_FLAG_ROWS(S, m, v)                                                                  \
    OPT_ROW(.name = "expert-model-parallel-size", .alias = "ep", .type = OPT_INT,                  \
            .offset = offsetof(S, m.parallel), .def = "1", .min = 1, .max = 4096, .meta = "N",     \
            .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                              \
            .brief = "processes that share out the experts",                                       \
            .help =                                                                                \
                "processes of a pipeline stage, of any other axis, that share out the experts "    \
                "of each layer"),                                                                  \
        OPT_ROW(.name = "expert-tensor-parallel-size", .type = OPT_INT,                            \
                .offset = offsetof(S, m.tensor_parallel), .unset = "--tensor-model-parallel-size", \
                .min = 1, .max = 4096, .meta = "N", .group = "parallel", .verbs = v,               \
                .resumed = RESUMED_FREE, .brief = "processes that share each expert",              \
                .help = "processes that share each expert: as many as share a layer, or 1"),       \
        OPT_ROW(.name = "expert-buffer-factor", .type = OPT_REAL, .offset = offsetof(S, m.buffer), \
                .def = "2", .min = 1, .max = 4096, .meta = "X", .group = "parallel", .verbs = v,   \
                .resumed = RESUMED_FREE, .brief = "room for experts' rows, by an even share",      \
                .help =                                                                            \
                    "tokens that a process's experts have room for, as a multiple of what each "   \
                    "process gets when all get the same; where one gets more, they travel in "     \
                    "several rounds and are computed again in the backward pass: slower, and "     \
                    "nothing is dropped")

#define STAGE_FLAG_ROWS(S, m, v)                                                                   \
    OPT_ROW(.name = "balance", .type = OPT_TEXT, .offset = offsetof(S, m.balance),                 \
            .meta = "N-N-...", .group = "parallel", .verbs = v, .alias = "pipeline-partition",     \
            .resumed = RESUMED_FREE, .brief = "layers of each pipeline stage",                     \
            .help = "layers of each pipeline stage, as 0-11-8-8-8-8-5-0: one without layers has "  \
                    "the embedding or the head alone"),                                            \
        OPT_ROW(.name = "decoder-first-pipeline-num-layers", .type = OPT_INT,                      \
                .offset = offsetof(S, m.first), .def = "-1", .min = -1, .max = 1e4, .meta = "N",   \
                .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                          \
                .brief = "layers of the first pipeline stage",                                     \
                .help = "layers of the first pipeline stage; the others share the rest evenly"),   \
        OPT_ROW(.name = "decoder-last-pipeline-num-layers", .type = OPT_INT,                       \
                .offset = offsetof(S, m.last), .def = "-1", .min = -1, .max = 1e4, .meta = "N",    \
                .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                          \
                .brief = "layers of the last pipeline stage",                                      \
                .help = "layers of the last pipeline stage; the others share the rest evenly"),    \
        OPT_ROW(.name = "account-for-embedding-in-pipeline-split", .type = OPT_SWITCH,             \
                .offset = offsetof(S, m.embedding), .group = "parallel", .verbs = v,               \
                .resumed = RESUMED_FREE, .brief = "count the embedding as a layer",                \
                .help = "count the embedding as a layer of the first pipeline stage, which then "  \
                        "has one less"),                                                           \
        OPT_ROW(.name = "account-for-loss-in-pipeline-split", .type = OPT_SWITCH,                  \
                .offset = offsetof(S, m.loss), .group = "parallel", .verbs = v,                    \
                .resumed = RESUMED_FREE, .brief = "count the head and loss as a layer",            \
                .help = "count the head and its loss as a layer of the last pipeline stage, "      \
                        "which then has one less"),                                                \
        OPT_ROW(.name = "use-tp-pp-dp-mapping", .type = OPT_SWITCH,                                \
                .offset = offsetof(S, m.before_data), .group = "parallel", .verbs = v,             \
                .resumed = RESUMED_FREE, .brief = "number stages before data-parallel ranks",      \
                .help = "number the processes so that the stages of a pipeline follow each "       \
                        "other, and data-parallel processes are furthest apart"),                  \
        OPT_ROW(.name = "pp-partition-method", .type = OPT_TEXT, .offset = offsetof(S, m.method),  \
                .meta = "METHOD", .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,        \
                .brief = "Megatron-DeepSpeed's way to share out layers",                           \
                .help = "Megatron-DeepSpeed's name for how layers are shared out: "                \
                        "type:transformer evenly, type:transformer|embedding with the embedding "  \
                        "and the head counted as layers"),                                         \
        OPT_ROW(.name = "pipeline-model-parallel-layout", .type = OPT_TEXT,                        \
                .offset = offsetof(S, m.layout), .meta = "LAYOUT", .group = "parallel",            \
                .verbs = v, .resumed = RESUMED_FREE, .brief = "every stage, as E|(t|)*3,ttL",      \
                .help = "every (virtual) pipeline stage, as Et*3|(tt|)*29,t|L: E the embedding, "  \
                        "t a layer, L the head and loss, *N a repeat, | between stages"),          \
        OPT_ROW(.name = "num-layers-per-virtual-pipeline-stage", .type = OPT_INT,                  \
                .offset = offsetof(S, m.virtual_layers), .min = 1, .max = 1e4, .meta = "N",        \
                .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                          \
                .brief = "interleaved stages of so many layers",                                   \
                .help = "the interleaved schedule, with virtual stages of so many layers"),        \
        OPT_ROW(.name = "num-virtual-stages-per-pipeline-rank", .type = OPT_INT,                   \
                .offset = offsetof(S, m.chunks), .min = 1, .max = 1e4, .meta = "N",                \
                .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                          \
                .brief = "interleaved stages on each process",                                     \
                .help = "the interleaved schedule, with so many virtual stages on each pipeline "  \
                        "process")

#define RECOMPUTE_FLAG_ROWS(S, m, v)                                                               \
    OPT_ROW(.name = "recompute-granularity", .type = OPT_CHOICE,                                   \
            .offset = offsetof(S, m.granularity), .def = "none", .meta = "none|selective|full",    \
            .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                              \
            .brief = "compute activations again, not keep them",                                   \
            .help = "activations that are computed again for the backward pass instead of kept: "  \
                    "selective those of attention's core, full all of a layer"),                   \
        OPT_ROW(.name = "recompute-activations", .type = OPT_SWITCH,                               \
                .offset = offsetof(S, m.activations), .group = "parallel", .verbs = v,             \
                .resumed = RESUMED_FREE, .help = "same as --recompute-granularity selective"),     \
        OPT_ROW(.name = "checkpoint-activations", .type = OPT_SWITCH,                              \
                .offset = offsetof(S, m.checkpoint), .group = "parallel", .verbs = v,              \
                .alias = "deepspeed-activation-checkpointing", .resumed = RESUMED_FREE,            \
                .brief = "recompute every layer",                                                  \
                .help = "same as --recompute-granularity full --recompute-method uniform, of 1 "   \
                        "layer unless --recompute-num-layers is given"),                           \
        OPT_ROW(.name = "recompute-method", .type = OPT_CHOICE, .offset = offsetof(S, m.method),   \
                .def = "none", .meta = "none|uniform|block", .group = "parallel", .verbs = v,      \
                .resumed = RESUMED_FREE, .brief = "which layers are recomputed in full",           \
                .help = "with --recompute-granularity full: uniform all layers, in groups that "   \
                        "keep the input of their first one; block the first ones of each stage"),  \
        OPT_ROW(.name = "recompute-num-layers", .type = OPT_INT, .offset = offsetof(S, m.layers),  \
                .min = 1, .max = 1e4, .meta = "N", .group = "parallel", .verbs = v,                \
                .alias = "checkpoint-num-layers",                                                  \
                .needs = "recompute-granularity=full, checkpoint-activations",                     \
                .resumed = RESUMED_FREE, .brief = "layers of a group (uniform), or of a stage",    \
                .help = "layers of a group with --recompute-method uniform, layers of each stage " \
                        "with block"),                                                             \
        OPT_ROW(.name = "distribute-saved-activations", .type = OPT_SWITCH,                        \
                .offset = offsetof(S, m.distribute), .group = "parallel", .verbs = v,              \
                .alias = "distribute-checkpointed-activations,partition-activations",              \
                .resumed = RESUMED_FREE, .brief = "split kept inputs over tensor-parallel ones",   \
                .help = "each tensor-parallel process keeps its part of the inputs of recomputed " \
                        "layers; needs full recomputation, without --sequence-parallel")

/* ERR_USAGE names the option that is missing or does not fit. `layers`: of the model. */
int stages_recompute(const struct recompute_flags *f, const struct layout *l, int64_t layers,
                     struct recompute *ret, struct err *e);

/*
 * Puts the stages of a model of `layers` layers into `l`, whose mesh is set. *ret_layers is what
 * l->layers points to (free), or NULL. ERR_USAGE names the option that does not fit.
 */
int stages_share(const struct stage_flags *f, int64_t layers, struct layout *l,
                 int64_t **ret_layers, struct err *e);

/* "0-11-8-8": the layers of all stages. */
void stages_describe(const struct layout *l, int64_t layers, struct buf *out);

/* Context parallelism. */
struct context_flags {
    int64_t size;
    struct opt_list comm;
};

#define CONTEXT_FLAG_ROWS(S, m, v)                                                                 \
    OPT_ROW(.name = "context-parallel-size", .type = OPT_INT, .offset = offsetof(S, m.size),       \
            .def = "1", .min = 1, .max = 4096, .meta = "N", .group = "parallel", .verbs = v,       \
            .alias = "cp", .resumed = RESUMED_FREE, .brief = "processes that share each sequence", \
            .help = "processes that share each sequence: of 2 N equal pieces the first has the "   \
                    "first and the last, the second those next to them, and so on"),               \
        OPT_ROW(.name = "cp-comm-type", .type = OPT_LIST, .offset = offsetof(S, m.comm),           \
                .last_in = "Megatron-LM", .unset = "p2p", .meta = "p2p|all_gather|a2a...",         \
                .group = "parallel", .verbs = v, .resumed = RESUMED_FREE,                          \
                .brief = "how keys reach the other processes",                                     \
                .help = "how keys and values reach the queries of the processes that share a "     \
                        "sequence: p2p sends them round while others are used, all_gather "        \
                        "gathers all of a layer, a2a exchanges tokens for heads; one for all "     \
                        "layers, or one for each")

/*
 * l->context and context_of of a model of so many layers; *ret_of holds the latter and is the
 * caller's to free. ERR_USAGE: an unknown name, or not as many as layers.
 */
int context_share(const struct context_flags *f, int64_t layers, struct layout *l,
                  enum context_comm **ret_of, struct err *e);

/* "2 processes share each sequence (p2p)" */
void context_describe(const struct layout *l, int64_t layers, struct buf *out);

#endif
