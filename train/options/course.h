/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_COURSE_H
#define TRAIN_OPTIONS_COURSE_H

/* The options of a run's length and rates: rows for a struct S with the member m, a struct
 * course_flags. `v`: the verbs that take them; `i`: those of them on which rates have no effect. */

#include "train/course/course.h"

#define COURSE_ROW_AT(S, m, type_, member) .type = type_, .offset = offsetof(S, m.member)

#define COURSE_FLAG_ROWS(S, m, v, i)                                                               \
    COURSE_LENGTH_ROWS(S, m, v), COURSE_LR_ROWS(S, m, v, i), COURSE_SPAN_ROWS(S, m, v, i),         \
        COURSE_DECAY_ROWS(S, m, v, i)

#define COURSE_LENGTH_ROWS(S, m, v)                                                                \
    OPT_ROW(.name = "train-iters", COURSE_ROW_AT(S, m, OPT_INT, train_iters), .min = 1,            \
            .max = 1e12, .meta = "N", .group = "training", .verbs = v, .basic = true,              \
            .resumed = RESUMED_WARNED, .help = "steps to train"),                                  \
        OPT_ROW(.name = "train-samples", COURSE_ROW_AT(S, m, OPT_INT, train_samples), .min = 1,    \
                .max = 1e15, .meta = "N", .group = "training", .verbs = v,                         \
                .resumed = RESUMED_WARNED, .brief = "sequences to train",                          \
                .help = "sequences to train, instead of --train-iters"),                           \
        OPT_ROW(.name = "train-tokens", COURSE_ROW_AT(S, m, OPT_INT, train_tokens), .min = 1,      \
                .max = 1e17, .meta = "N", .group = "training", .verbs = v,                         \
                .resumed = RESUMED_WARNED, .brief = "tokens to train",                             \
                .help = "end with the step that reaches so many tokens; instead of --train-iters " \
                        "and --train-samples, or beside one of them, of which the shorter "        \
                        "counts"),                                                                 \
        OPT_ROW(.name = "num-train-epochs", COURSE_ROW_AT(S, m, OPT_REAL, epochs), .min = 1e-6,    \
                .max = 1e6, .meta = "X", .group = "training", .verbs = v,                          \
                .resumed = RESUMED_WARNED, .brief = "passes over the training data",               \
                .help = "passes over the training data, of which the last may be a part (2.5), "   \
                        "instead of --train-iters: each in an order of its own; the last step of " \
                        "one has the sequences that are left, and steps are rounded up, as "       \
                        "transformers' Trainer counts them. Without --split or "                   \
                        "--valid-data-path all data are for training"),                            \
        OPT_ROW(.name = "rampup-batch-size", COURSE_ROW_AT(S, m, OPT_LIST, ramp), .numbers = true, \
                .last_in = "Megatron-LM", .meta = "N", .group = "training", .verbs = v,            \
                .resumed = RESUMED_WARNED, .brief = "START INCREMENT SAMPLES of a growing batch",  \
                .help = "three numbers START INCREMENT SAMPLES: the batch begins with START "      \
                        "sequences and grows by INCREMENT to --global-batch-size, each size for "  \
                        "an equal share of the first SAMPLES sequences")

#define COURSE_LR_ROWS(S, m, v, i)                                                                 \
    OPT_ROW(.name = "lr", COURSE_ROW_AT(S, m, OPT_REAL, lr), .max = 1e6, .meta = "X",              \
            .group = "training", .verbs = v, .basic = true, .idle = i,                             \
            .resumed = RESUMED_SCHEDULE, .help = "highest learning rate"),                         \
        OPT_ROW(.name = "min-lr", COURSE_ROW_AT(S, m, OPT_REAL, min_lr), .def = "0", .max = 1e6,   \
                .meta = "X", .group = "training", .verbs = v, .idle = i,                           \
                .resumed = RESUMED_SCHEDULE, .help = "lowest learning rate of the decay"),         \
        OPT_ROW(.name = "lr-decay-style", COURSE_ROW_AT(S, m, OPT_CHOICE, style), .def = "linear", \
                .meta = "linear|cosine|constant|inverse-square-root|WSD|exponential",              \
                .group = "training", .verbs = v, .idle = i, .resumed = RESUMED_SCHEDULE,           \
                .brief = "shape of the learning rate decay",                                       \
                .help = "shape of the learning rate decay; WSD stays at --lr and decays over the " \
                        "last --lr-wsd-decay-iters alone, exponential halves the rate over "       \
                        "the decay, as Megatron-LM v1.1.5"),                                       \
        OPT_ROW(.name = "lr-rules", COURSE_ROW_AT(S, m, OPT_CHOICE, rules), .def = "core",         \
                .meta = "core|v1|hf", .group = "training", .verbs = v, .idle = i,                  \
                .resumed = RESUMED_SCHEDULE, .brief = "whose learning rate decay",                 \
                .help = "whose shape of linear and cosine: Megatron core's and "                   \
                        "Megatron-DeepSpeed's, which end at --min-lr; that of Megatron-LM "        \
                        "v1.1.5, which begins its decay after the warm-up but does not shorten "   \
                        "it, and has --min-lr as a floor; or hf, transformers', counted in "       \
                        "updates: 0 in the first of a warm-up, whose length is rounded up, and "   \
                        "down to 0"),                                                              \
        OPT_ROW(.name = "lr-wsd-decay-style", COURSE_ROW_AT(S, m, OPT_CHOICE, wsd_style),          \
                .def = "exponential", .meta = "exponential|linear|cosine|minus_sqrt",              \
                .group = "training", .verbs = v, .idle = i, .needs = "lr-decay-style=WSD",         \
                .resumed = RESUMED_SCHEDULE, .brief = "shape of the decay of WSD",                 \
                .help = "shape of the last part of --lr-decay-style WSD")

#define COURSE_SPAN_ROWS(S, m, v, i)                                                               \
    OPT_ROW(.name = "lr-decay-iters", COURSE_ROW_AT(S, m, OPT_INT, decay_iters),                   \
            .unset = "--train-iters", .min = 1, .max = 1e12, .meta = "N", .group = "training",     \
            .verbs = v, .idle = i, .resumed = RESUMED_SCHEDULE, .help = "steps of the decay"),     \
        OPT_ROW(.name = "lr-decay-samples", COURSE_ROW_AT(S, m, OPT_INT, decay_samples),           \
                .unset = "--train-samples", .min = 1, .max = 1e15, .meta = "N",                    \
                .group = "training", .verbs = v, .idle = i, .resumed = RESUMED_SCHEDULE,           \
                .help = "sequences of the decay"),                                                 \
        OPT_ROW(.name = "lr-decay-tokens", COURSE_ROW_AT(S, m, OPT_INT, decay_tokens), .min = 1,   \
                .max = 1e17, .meta = "N", .group = "training", .verbs = v, .idle = i,              \
                .resumed = RESUMED_SCHEDULE, .brief = "tokens of the decay",                       \
                .help = "tokens of the decay, whatever the run's length is given in"),             \
        OPT_ROW(.name = "lr-warmup-iters", COURSE_ROW_AT(S, m, OPT_INT, warmup_iters), .def = "0", \
                .max = 1e12, .meta = "N", .group = "training", .verbs = v, .idle = i,              \
                .resumed = RESUMED_SCHEDULE, .help = "steps of the warm-up"),                      \
        OPT_ROW(.name = "lr-warmup-samples", COURSE_ROW_AT(S, m, OPT_INT, warmup_samples),         \
                .def = "0", .max = 1e15, .meta = "N", .group = "training", .verbs = v, .idle = i,  \
                .resumed = RESUMED_SCHEDULE, .help = "sequences of the warm-up"),                  \
        OPT_ROW(.name = "lr-warmup-tokens", COURSE_ROW_AT(S, m, OPT_INT, warmup_tokens),           \
                .def = "0", .max = 1e17, .meta = "N", .group = "training", .verbs = v, .idle = i,  \
                .resumed = RESUMED_SCHEDULE, .brief = "tokens of the warm-up",                     \
                .help = "tokens of the warm-up, whatever the run's length is given in"),           \
        OPT_ROW(.name = "lr-warmup-fraction", COURSE_ROW_AT(S, m, OPT_REAL, warmup_fraction),      \
                .max = 1, .meta = "X", .group = "training", .verbs = v, .alias = "warmup",         \
                .idle = i, .resumed = RESUMED_SCHEDULE,                                            \
                .help = "share of the decay used for warm-up"),                                    \
        OPT_ROW(.name = "lr-warmup-init", COURSE_ROW_AT(S, m, OPT_REAL, warmup_init), .def = "0",  \
                .max = 1e6, .meta = "X", .group = "training", .verbs = v, .idle = i,               \
                .needs = "lr-warmup-iters, lr-warmup-samples, lr-warmup-tokens, "                  \
                         "lr-warmup-fraction",                                                     \
                .resumed = RESUMED_SCHEDULE, .help = "learning rate at the start of the warm-up"), \
        OPT_ROW(.name = "lr-wsd-decay-iters", COURSE_ROW_AT(S, m, OPT_INT, wsd_iters), .min = 1,   \
                .max = 1e12, .meta = "N", .group = "training", .verbs = v, .idle = i,              \
                .needs = "lr-decay-style=WSD", .resumed = RESUMED_SCHEDULE,                        \
                .brief = "steps of the decay of WSD",                                              \
                .help = "steps at the end of WSD in which the learning rate decays"),              \
        OPT_ROW(.name = "lr-wsd-decay-samples", COURSE_ROW_AT(S, m, OPT_INT, wsd_samples),         \
                .min = 1, .max = 1e15, .meta = "N", .group = "training", .verbs = v, .idle = i,    \
                .needs = "lr-decay-style=WSD", .resumed = RESUMED_SCHEDULE,                        \
                .brief = "sequences of the decay of WSD",                                          \
                .help = "sequences at the end of WSD in which the learning rate decays")

#define COURSE_DECAY_ROWS(S, m, v, i)                                                              \
    OPT_ROW(.name = "weight-decay", COURSE_ROW_AT(S, m, OPT_REAL, weight_decay), .def = "0.01",    \
            .max = 1e3, .meta = "X", .group = "training", .verbs = v, .idle = i,                   \
            .needs = "weight-decay-incr-style=constant", .resumed = RESUMED_SCHEDULE,              \
            .brief = "weight decay of matrices",                                                   \
            .help = "weight decay of matrices; vectors have none"),                                \
        OPT_ROW(.name = "start-weight-decay", COURSE_ROW_AT(S, m, OPT_REAL, start_decay),          \
                .def = "-1", .min = -1, .max = 1e3, .meta = "X", .group = "training", .verbs = v,  \
                .idle = i, .resumed = RESUMED_SCHEDULE,                                            \
                .brief = "weight decay at the start of a run",                                     \
                .help = "weight decay at the start of a run, with --weight-decay-incr-style; "     \
                        "-1 for none"),                                                            \
        OPT_ROW(.name = "end-weight-decay", COURSE_ROW_AT(S, m, OPT_REAL, end_decay), .def = "-1", \
                .min = -1, .max = 1e3, .meta = "X", .group = "training", .verbs = v, .idle = i,    \
                .resumed = RESUMED_SCHEDULE, .brief = "weight decay at the end of a run",          \
                .help = "weight decay at the end of a run, with --weight-decay-incr-style; "       \
                        "-1 for none"),                                                            \
        OPT_ROW(.name = "weight-decay-incr-style", COURSE_ROW_AT(S, m, OPT_CHOICE, decay_style),   \
                .def = "constant", .meta = "constant|linear|cosine", .group = "training",          \
                .verbs = v, .idle = i, .resumed = RESUMED_SCHEDULE,                                \
                .brief = "how weight decay grows",                                                 \
                .help = "how weight decay grows from --start-weight-decay to "                     \
                        "--end-weight-decay over the run; constant: it is --weight-decay")

#endif
