/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_GRAPHS_H
#define TRAIN_ENGINE_GRAPHS_H

/*
 * Passes that are launched as a whole. A small micro-batch takes the host longer to launch, kernel
 * by kernel, than a GPU to compute. So its forward and its backward are recorded by the device
 * (capture, train/tensor/dev.h) when they run for the second time, after libraries have loaded
 * what they load at the first, and replayed from then on: one launch each.
 *
 * What is replayed has the arguments that were recorded. All that differs between micro-batches and
 * steps is read from the device's memory (train/ops/values.h), but for the number of sequences
 * where documents are apart, that of tokens where padding is left out, and whether it is trained
 * on: there is a recording for each. Staging, the optimizer and all that the host waits for stay
 * outside.
 *
 * For a process alone: a rank's collectives and messages are other streams' work.
 */

#include "train/model/model.h"
#include "train/tensor/dev.h"

struct rank;
struct rank_config;

/* auto: where a pass has at most GRAPH_TOKENS tokens. */
enum graphs_use { GRAPHS_AUTO, GRAPHS_ON, GRAPHS_OFF };

/* Further kinds of passes than GRAPH_KINDS are launched kernel by kernel. */
enum { GRAPH_TOKENS = 2048, GRAPH_KINDS = 16 };

enum graph_part { GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_PARTS };

/* Passes that are launched alike. */
struct graph_kind {
    int64_t n, sequences;
    bool train;
    bool ran[GRAPH_PARTS];                   /* once, as it is */
    struct dev_graph *recorded[GRAPH_PARTS]; /* NULL: not yet */
};

struct graphs {
    bool on;
    int n;
    struct graph_kind kind[GRAPH_KINDS];
    uint64_t replays;
};

/* Whether passes of so many tokens are to be recorded; a device that cannot is found out when it is
 * open. */
bool graphs_wanted(const struct rank_config *c, int64_t tokens, const struct dev_desc *desc);

/*
 * Issues a part of a pass that is staged: forward with the loss, or backward. If it cannot be
 * recorded, a warning says why, once, and passes are launched kernel by kernel from then on.
 */
void graphs_pass(struct rank *r, enum graph_part part, const struct model_pass *p);

/* Before the device is closed. */
void graphs_finish(struct rank *r);

#endif
