/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_WANDB_H
#define TRAIN_REPORT_WANDB_H

/* No network service is used: the command that hands the metrics of a run to Weights & Biases. */

#include "base/core/buf.h"

struct wandb_names {
    const char *project, *name, *entity, *group; /* NULL: not given */
};

/* A line for a shell, with Python and the package wandb: each record of the metrics file goes with
 * its step. */
void wandb_command(const struct wandb_names *w, const char *metrics, struct buf *out);

#endif
