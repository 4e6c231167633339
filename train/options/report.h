/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_REPORT_H
#define TRAIN_OPTIONS_REPORT_H

/* The options of what a run tells and is told: rows for a struct S with the member m, a struct
 * report_flags. `v`: the verbs that take them; `i`: those of them on which they have no effect. */

#include <stdbool.h>
#include <stdint.h>

#include "base/cli/opt.h"

struct report_flags {
    const char *tensorboard; /* a folder, or NULL */
    int64_t interval;
    bool loss_scale, timers, perplexity, memory, world, batch;
    int64_t timing;    /* level */
    int timing_option; /* enum timer_option */
    int anomaly;       /* enum anomaly_policy */
    double spike;
    const char *project, *name, *entity, *group; /* for Weights & Biases */
    int64_t sample_interval, sample_tokens;
    const char *sample_prompt;
    const char *control; /* a file; NULL: "control" in --save */
};

#define REPORT_ROW_AT(S, m, type_, member) .type = type_, .offset = offsetof(S, m.member)

#define REPORT_FLAG_ROWS(S, m, v, i)                                                               \
    OPT_ROW(.name = "tensorboard-dir", REPORT_ROW_AT(S, m, OPT_TEXT, tensorboard), .meta = "DIR",  \
            .group = "log", .verbs = v, .idle = i, .resumed = RESUMED_FREE, .local = true,         \
            .brief = "folder of TensorBoard's event files",                                        \
            .help = "write the curves and options of the run for TensorBoard into this folder, "   \
                    "under Megatron-LM's tags"),                                                   \
        OPT_ROW(.name = "tensorboard-log-interval", REPORT_ROW_AT(S, m, OPT_INT, interval),        \
                .def = "1", .min = 1, .max = 1e12, .meta = "N", .group = "log", .verbs = v,        \
                .idle = i, .needs = "tensorboard-dir", .resumed = RESUMED_FREE, .local = true,     \
                .help = "steps between points of a curve"),                                        \
        OPT_ROW(.name = "log-loss-scale-to-tensorboard",                                           \
                REPORT_ROW_AT(S, m, OPT_SWITCH, loss_scale), .def = "true", .group = "log",        \
                .verbs = v, .idle = i, .needs = "tensorboard-dir", .resumed = RESUMED_FREE,        \
                .local = true, .help = "a curve of the loss scale"),                               \
        OPT_ROW(.name = "log-timers-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, timers),      \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .resumed = RESUMED_FREE, .local = true, .brief = "curves of the time of a step",   \
                .help = "curves of the time of a step, and of throughput with --log-throughput"),  \
        OPT_ROW(.name = "log-validation-ppl-to-tensorboard",                                       \
                REPORT_ROW_AT(S, m, OPT_SWITCH, perplexity), .group = "log", .verbs = v,           \
                .idle = i, .needs = "tensorboard-dir", .resumed = RESUMED_FREE, .local = true,     \
                .help = "curves of perplexity, too"),                                              \
        OPT_ROW(.name = "log-memory-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, memory),      \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .resumed = RESUMED_FREE, .local = true,                                            \
                .help = "a curve of the bytes that the last process has"),                         \
        OPT_ROW(.name = "log-world-size-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, world),   \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .resumed = RESUMED_FREE, .local = true,                                            \
                .help = "a curve of the number of processes"),                                     \
        OPT_ROW(.name = "log-batch-size-to-tensorboard", REPORT_ROW_AT(S, m, OPT_SWITCH, batch),   \
                .group = "log", .verbs = v, .idle = i, .needs = "tensorboard-dir",                 \
                .resumed = RESUMED_FREE, .local = true,                                            \
                .help = "a curve of the sequences of a step"),                                     \
        OPT_ROW(.name = "timing-log-level", REPORT_ROW_AT(S, m, OPT_INT, timing), .def = "0",      \
                .max = 2, .meta = "0|1|2", .group = "log", .verbs = v, .idle = i,                  \
                .resumed = RESUMED_FREE, .brief = "also log times of phases",                      \
                .help = "also log the times of a step's phases on all processes: 1 forward and "   \
                        "backward together, the sum of gradients and the optimizer, 2 also those " \
                        "of each micro-batch"),                                                    \
        OPT_ROW(.name = "timing-log-option", REPORT_ROW_AT(S, m, OPT_CHOICE, timing_option),       \
                .def = "minmax", .meta = "minmax|max|all", .group = "log", .verbs = v, .idle = i,  \
                .needs = "timing-log-level", .resumed = RESUMED_FREE,                              \
                .brief = "which times: of which processes",                                        \
                .help = "least and longest time of all processes, the longest alone, or that of "  \
                        "each; all also writes start and end of every call into a file for each "  \
                        "process in SAVE/timers"),                                                 \
        OPT_ROW(.name = "wandb-project", REPORT_ROW_AT(S, m, OPT_TEXT, project), .meta = "NAME",   \
                .group = "log", .verbs = v, .idle = i, .resumed = RESUMED_FREE, .local = true,     \
                .brief = "say how to import into Weights & Biases",                                \
                .help = "no service is contacted: at its end the run prints the command that "     \
                        "imports its metrics into this project of Weights & Biases"),              \
        OPT_ROW(.name = "wandb-exp-name", REPORT_ROW_AT(S, m, OPT_TEXT, name), .meta = "NAME",     \
                .group = "log", .verbs = v, .alias = "wandb-name", .idle = i,                      \
                .resumed = RESUMED_FREE, .local = true,                                            \
                .help = "name of the run for that command"),                                       \
        OPT_ROW(.name = "wandb-entity", REPORT_ROW_AT(S, m, OPT_TEXT, entity), .meta = "NAME",     \
                .group = "log", .verbs = v, .idle = i, .resumed = RESUMED_FREE, .local = true,     \
                .help = "entity for that command"),                                                \
        OPT_ROW(.name = "wandb-group", REPORT_ROW_AT(S, m, OPT_TEXT, group), .meta = "NAME",       \
                .group = "log", .verbs = v, .idle = i, .resumed = RESUMED_FREE, .local = true,     \
                .help = "group of runs for that command"),                                         \
        OPT_ROW(.name = "on-anomaly", REPORT_ROW_AT(S, m, OPT_CHOICE, anomaly), .def = "skip",     \
                .meta = "skip|stop|rewind", .group = "training", .verbs = v, .idle = i,            \
                .resumed = RESUMED_FREE, .brief = "what to do where a step goes wrong",            \
                .help = "what to do where loss or gradients are not finite, or the loss is too "   \
                        "high (--loss-spike-factor): skip the update, stop the run, or go back "   \
                        "to the newest checkpoint and pass over the data since then"),             \
        OPT_ROW(.name = "loss-spike-factor", REPORT_ROW_AT(S, m, OPT_REAL, spike), .min = 1,       \
                .max = 1e6, .meta = "X", .unset = "none", .group = "training", .verbs = v,         \
                .idle = i, .resumed = RESUMED_FREE,                                                \
                .brief = "loss that is too high, in recent means",                                 \
                .help = "a loss above X times the mean of the last 64 steps is an anomaly; its "   \
                        "update is not made"),                                                     \
        OPT_ROW(.name = "sample-interval", REPORT_ROW_AT(S, m, OPT_INT, sample_interval),          \
                .max = 1e12, .meta = "N", .unset = "none", .group = "log", .verbs = v, .idle = i,  \
                .needs = "save", .resumed = RESUMED_FREE,                                          \
                .brief = "steps between texts that the model writes",                              \
                .help = "steps between texts that the model writes, on stderr: a checkpoint is "   \
                        "saved and continued as train generate does, on the CPU"),                 \
        OPT_ROW(.name = "sample-prompt", REPORT_ROW_AT(S, m, OPT_TEXT, sample_prompt),             \
                .meta = "TEXT", .unset = "the beginning of a document", .group = "log",            \
                .verbs = v, .idle = i, .needs = "sample-interval", .resumed = RESUMED_FREE,        \
                .local = true, .help = "text to continue"),                                        \
        OPT_ROW(.name = "sample-tokens", REPORT_ROW_AT(S, m, OPT_INT, sample_tokens), .def = "64", \
                .min = 1, .max = 1e6, .meta = "N", .group = "log", .verbs = v, .idle = i,          \
                .needs = "sample-interval", .resumed = RESUMED_FREE, .local = true,                \
                .help = "tokens of such a text"),                                                  \
        OPT_ROW(.name = "control-file", REPORT_ROW_AT(S, m, OPT_TEXT, control),                    \
                .unset = "control in --save", .meta = "FILE", .group = "machine", .verbs = v,      \
                .idle = i, .resumed = RESUMED_FREE, .local = true,                                 \
                .brief = "file whose words the run obeys: stop, save",                             \
                .help = "file that the run looks for after each step: 'save' in it saves and "     \
                        "trains on, 'stop' saves and ends; it is removed when it is read")

#endif
