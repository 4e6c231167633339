/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SCHEDULE_SCHEDULE_H
#define TRAIN_SCHEDULE_SCHEDULE_H

/*
 * Pipeline schedules as slot tables: integers only. The model is cut into pp x chunks stages; stage
 * s is chunk s / pp of the pipeline rank s % pp. With one chunk on each rank the schedule is 1F1B,
 * with more the interleaved one, both in the order of Megatron-LM core_v0.12.3 (schedules.py). A
 * rank executes its slots one after the other.
 *
 * Sends are asynchronous: they follow the slot that computes what is sent, and nobody waits for
 * them. A receive is a slot of its own, which issues it; the slot that needs what arrives waits for
 * it. Messages from one rank to another are received in the order in which they are sent (which is
 * all that comm_exchange promises), and receives are issued one computation ahead, so that data
 * travel while the rank computes.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"

enum { SCHEDULE_NOBODY = -1, SCHEDULE_NONE = -1 };

enum slot_kind {
    SLOT_RECEIVE,    /* issue a receive of a chunk's input, or of its output's gradient */
    SLOT_FORWARD,    /* then send the output, except from the last stage */
    SLOT_INPUT_GRAD, /* then send the input's gradient, except from the first stage */
    SLOT_WEIGHT_GRAD /* what the forward has kept is free afterwards */
};

struct slot {
    enum slot_kind kind;
    int chunk, micro; /* of this rank; micro-batch of the step */
    bool grad;        /* SLOT_RECEIVE: a gradient; otherwise an input */
    int peer;         /* pipeline rank that sends, or is sent to; SCHEDULE_NOBODY */
    int tag;          /* of the message: its number, from 0, among those between the two ranks in
                       * this direction, the same on both sides; SCHEDULE_NONE without a message */
    int place;        /* all but SLOT_RECEIVE: what the forward keeps, 0 .. places - 1 */
    int home;         /* likewise: the place of the same micro-batch in chunk 0 */
    int buffer;       /* what is received, or was: 0 .. buffers - 1; SCHEDULE_NONE */
};

struct schedule_shape {
    int pp, chunks, micros; /* each at least 1; micros: of a step and rank */
};

struct schedule {
    struct slot *slot;
    size_t n;
    int warm_up; /* forwards before the first backward */
    int places;  /* most micro-batches of any chunk whose activations are kept at a time */
    int buffers; /* most messages between their SLOT_RECEIVE and the slot that uses them */
};

/*
 * The slots of pipeline rank `rank`, owned by the caller. The shape is one that layout_check takes:
 * several chunks only with several ranks, and then micro-batches in whole groups of pp.
 */
void schedule_build(struct schedule *ret, struct schedule_shape s, int rank);
void schedule_finish(struct schedule *s);

/*
 * The share of a step in which a rank waits, at least, when every stage takes `forward`,
 * `input_grad` and `weight_grad` for a micro-batch and messages take no time. With input_grad as
 * the whole backward it is the published (pp - 1) / (chunks x micros + pp - 1).
 */
double schedule_bubble(struct schedule_shape s, double forward, double input_grad,
                       double weight_grad);

#endif
