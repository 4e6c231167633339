/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_BOARD_H
#define TRAIN_REPORT_BOARD_H

/*
 * The curves of a run for TensorBoard (--tensorboard-dir): what Megatron-LM core_v0.12.3 writes,
 * under its tags, or under Megatron-DeepSpeed's with that log format. A curve is there over
 * iterations, and once more over samples ("... vs samples"), in Megatron-DeepSpeed's form over
 * tokens, too, and in that of Megatron-LM 1.1.5 over iterations alone.
 */

#include "base/cli/opt.h"
#include "train/metrics/logline.h"
#include "train/report/events.h"

struct board_options {
    const char *dir;    /* NULL: nothing is written */
    const char *save;   /* folder of the run, which keeps the list of its event files; NULL: none */
    bool deepspeed;     /* Megatron-DeepSpeed's tags */
    bool v1;            /* those of Megatron-LM 1.1.5: learning_rate, "lm loss value" */
    int64_t interval;   /* iterations between points */
    bool no_loss_scale; /* each a switch of Megatron's */
    bool timers, perplexity, memory, world, batch;
};

struct board {
    struct board_options o;
    struct events events;
};

/* Where the run stands: what a run that died wrote of later steps goes. ERR_IO. */
int board_open(struct board *ret, const struct board_options *o, const struct events_limit *at,
               struct err *e);

/* After a step. `memory`: bytes that the process has, 0: not known. */
int board_step(struct board *b, const struct log_values *v, double memory, struct err *e);

/* A further curve over iterations: "forward-backward-time". Written with the next step. */
void board_point(struct board *b, int64_t iteration, const char *tag, double value);

/* Loss of "validation" or "test". */
int board_evaluation(struct board *b, const struct events_limit *at, const char *part, double loss,
                     struct err *e);

/* The options of the run, each as a text under its name with underscores, as Megatron-LM writes its
 * arguments. */
int board_arguments(struct board *b, int64_t iteration, const struct opts *o, struct err *e);

/* The run went back to this step: what was written of later ones goes. */
int board_rewind(struct board *b, const struct events_limit *at, struct err *e);

int board_sync(struct board *b, struct err *e);
void board_close(struct board *b);

#endif
