/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_METRICS_LOGLINE_H
#define TRAIN_METRICS_LOGLINE_H

/*
 * The training log line: data on stdout that scripts grep, so its bytes are those of the trainer
 * imitated; only the short line is ours. LOG_CORE is Megatron-LM core_v0.12.3's, LOG_V3 the one of
 * Megatron-LM 3 (no date, lr with three decimals), LOG_DEEPSPEED Megatron-DeepSpeed's, LOG_V1 that
 * of Megatron-LM 1.1.5, which has the fewest fields.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/core/buf.h"

enum log_format { LOG_CORE, LOG_V3, LOG_DEEPSPEED, LOG_V1 };

struct log_values {
    time_t when;
    int64_t iteration, iterations, consumed_samples, consumed_tokens, global_batch, seq_length;
    double ms;            /* per iteration */
    double data_ms;       /* of them, waiting for data; only in JSON */
    double tflops;        /* per GPU (here: per rank) */
    bool show_throughput; /* --log-throughput */
    double lr, loss, loss_scale, grad_norm;
    bool has_experts; /* a mixture of experts: the means of its losses, without coefficients */
    double balance, z;
    bool has_loss;        /* core leaves the field out when nothing was counted */
    int64_t skipped, nan; /* iterations since the last line */
    int ranks;
};

/* Appends the line and a newline. */
void logline_format(struct buf *out, enum log_format f, const struct log_values *v);

/* For people at a terminal: the fields that matter, separated by ", ", no newline. */
void logline_short(struct buf *out, const struct log_values *v);

/* One JSON object a step, and a newline: the metrics file. */
void logline_json(struct buf *out, const struct log_values *v);

#endif
