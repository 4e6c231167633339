/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_REPORT_OPTIONS_H
#define TRAIN_REPORT_OPTIONS_H

/* The options of what a run tells and is told: rows for a struct S with the member m, a struct
 * report_flags. `v`: the verbs that take them; `i`: those of them on which they have no effect. */

#include <stdbool.h>
#include <stdint.h>

#include "base/cli/opt.h"

struct report_flags {
    const char *tensorboard; /* a folder, or NULL */
    int64_t interval;
    bool loss_scale, timers, perplexity, memory, world, batch;
    const char *control; /* a file; NULL: "control" in --save */
};

#define REPORT_ROW_AT(S, m, type_, member) .type = type_, .offset = offsetof(S, m.member)

#define REPORT_FLAG_ROWS(S, m, v, i)                                                               \
    OPT_ROW(.name = "tensorboard-dir", REPORT_ROW_AT(S, m, OPT_TEXT, tensorboard), .meta = "DIR",  \
            .group = "log", .verbs = v, .idle = i, .brief = "folder of TensorBoard's event files", \
            .help = "write the curves of the run for TensorBoard into this folder, under "         \
                    "Megatron-LM's tags"),                                                         \
        OPT_ROW(.name = "tensorboard-log-interval", REPORT_ROW_AT(S, m, OPT_INT, interval),        \
                .def = "1", .min = 1, .max = 1e12, .meta = "N", .group = "log", .verbs = v,        \
                .idle = i, .needs = "tensorboard-dir", .help = "steps between points of a curve"), \
        OPT_ROW(.name = "log-loss-scale-to-tensorboard",                                           \
                REPORT_ROW_AT(S, m, OPT_SWITCH, loss_scale), .def = "true", .group = "log",        \
                .verbs = v, .idle = i, .needs = "tensorboard-dir",                                 \
                .help = "a curve of the loss scale"),                                              \
        OPT_ROW(.name = "log-timers-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, timers),      \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .brief = "curves of the time of a step",                                           \
                .help = "curves of the time of a step, and of throughput with --log-throughput"),  \
        OPT_ROW(.name = "log-validation-ppl-to-tensorboard",                                       \
                REPORT_ROW_AT(S, m, OPT_SWITCH, perplexity), .group = "log", .verbs = v,           \
                .idle = i, .needs = "tensorboard-dir", .help = "curves of perplexity, too"),       \
        OPT_ROW(.name = "log-memory-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, memory),      \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .help = "a curve of the bytes that the last process has"),                         \
        OPT_ROW(.name = "log-world-size-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, world),   \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .help = "a curve of the number of processes"),                                     \
        OPT_ROW(.name = "log-batch-size-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, batch),   \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .help = "a curve of the sequences of a step"),                                     \
        OPT_ROW(.name = "control-file", REPORT_ROW_AT(S, m, OPT_TEXT, control),                    \
                .unset = "control in --save", .meta = "FILE", .group = "machine", .verbs = v,      \
                .idle = i, .brief = "file whose words the run obeys: stop, save",                  \
                .help = "file that the run looks for after each step: 'save' in it saves and "     \
                        "trains on, 'stop' saves and ends; it is removed when it is read")

#endif
