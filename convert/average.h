/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_AVERAGE_H
#define CONVERT_AVERAGE_H

/*
 * The average of the weights of several checkpoints of one model, element by element: summed in
 * fp32 in the order in which they are named, divided, and rounded once to the type of the first. A
 * checkpoint of iteration 0 with weights alone.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "convert/copy/copy.h"

struct average {
    const char *const *from; /* checkpoints, or folders of them: the newest of each */
    size_t n;
    const char *to;         /* a folder of checkpoints; made if missing */
    uint64_t max_file_size; /* 0: the writer's own */
    bool overwrite;
    struct copy_options copy;
};

/* ERR_USAGE for checkpoints of different models and where something stands; as reshard_run. */
int average_run(const struct average *a, struct err *e);

#endif
