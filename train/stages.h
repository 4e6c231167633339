/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_STAGES_H
#define TRAIN_STAGES_H

/*
 * Options that say which layers a pipeline stage has: rows of `train`'s table, and the layout that
 * follows from them and the model.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cli/opt.h"
#include "train/engine/rank.h"

struct stage_flags {
    const char *balance, *method, *layout;
    int64_t first, last;            /* -1: not given */
    bool embedding, loss;           /* counted as layers */
    int64_t virtual_layers, chunks; /* 0: not given */
};

#define STAGE_FLAG_ROWS(S, m, v)                                                                   \
    OPT_ROW(.name = "balance", .type = OPT_TEXT, .offset = offsetof(S, m.balance),                 \
            .meta = "N-N-...", .group = "parallel", .verbs = v, .alias = "pipeline-partition",     \
            .brief = "layers of each pipeline stage",                                              \
            .help = "layers of each pipeline stage, as 0-11-8-8-8-8-5-0: one without layers has "  \
                    "the embedding or the head alone"),                                            \
        OPT_ROW(.name = "decoder-first-pipeline-num-layers", .type = OPT_INT,                      \
                .offset = offsetof(S, m.first), .def = "-1", .min = -1, .max = 1e4, .meta = "N",   \
                .group = "parallel", .verbs = v, .brief = "layers of the first pipeline stage",    \
                .help = "layers of the first pipeline stage; the others share the rest evenly"),   \
        OPT_ROW(.name = "decoder-last-pipeline-num-layers", .type = OPT_INT,                       \
                .offset = offsetof(S, m.last), .def = "-1", .min = -1, .max = 1e4, .meta = "N",    \
                .group = "parallel", .verbs = v, .brief = "layers of the last pipeline stage",     \
                .help = "layers of the last pipeline stage; the others share the rest evenly"),    \
        OPT_ROW(.name = "account-for-embedding-in-pipeline-split", .type = OPT_SWITCH,             \
                .offset = offsetof(S, m.embedding), .group = "parallel", .verbs = v,               \
                .brief = "count the embedding as a layer",                                         \
                .help = "count the embedding as a layer of the first pipeline stage, which then "  \
                        "has one less"),                                                           \
        OPT_ROW(.name = "account-for-loss-in-pipeline-split", .type = OPT_SWITCH,                  \
                .offset = offsetof(S, m.loss), .group = "parallel", .verbs = v,                    \
                .brief = "count the head and loss as a layer",                                     \
                .help = "count the head and its loss as a layer of the last pipeline stage, "      \
                        "which then has one less"),                                                \
        OPT_ROW(.name = "pp-partition-method", .type = OPT_TEXT, .offset = offsetof(S, m.method),  \
                .meta = "METHOD", .group = "parallel", .verbs = v,                                 \
                .brief = "Megatron-DeepSpeed's way to share out layers",                           \
                .help = "Megatron-DeepSpeed's name for how layers are shared out: "                \
                        "type:transformer evenly, type:transformer|embedding with the embedding "  \
                        "and the head counted as layers"),                                         \
        OPT_ROW(.name = "pipeline-model-parallel-layout", .type = OPT_TEXT,                        \
                .offset = offsetof(S, m.layout), .meta = "LAYOUT", .group = "parallel",            \
                .verbs = v, .brief = "every stage, as E|(t|)*3,ttL",                               \
                .help = "every (virtual) pipeline stage, as Et*3|(tt|)*29,t|L: E the embedding, "  \
                        "t a layer, L the head and loss, *N a repeat, | between stages"),          \
        OPT_ROW(.name = "num-layers-per-virtual-pipeline-stage", .type = OPT_INT,                  \
                .offset = offsetof(S, m.virtual_layers), .min = 1, .max = 1e4, .meta = "N",        \
                .group = "parallel", .verbs = v, .brief = "interleaved stages of so many layers",  \
                .help = "the interleaved schedule, with virtual stages of so many layers"),        \
        OPT_ROW(.name = "num-virtual-stages-per-pipeline-rank", .type = OPT_INT,                   \
                .offset = offsetof(S, m.chunks), .min = 1, .max = 1e4, .meta = "N",                \
                .group = "parallel", .verbs = v, .brief = "interleaved stages on each process",    \
                .help = "the interleaved schedule, with so many virtual stages on each pipeline "  \
                        "process")

/*
 * Puts the stages of a model of `layers` layers into `l`, whose mesh is set. *ret_layers is what
 * l->layers points to (free), or NULL. ERR_USAGE names the option that does not fit.
 */
int stages_share(const struct stage_flags *f, int64_t layers, struct layout *l,
                 int64_t **ret_layers, struct err *e);

/* "0-11-8-8": the layers of all stages. */
void stages_describe(const struct layout *l, int64_t layers, struct buf *out);

#endif
