/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIM_MUON_H
#define TRAIN_OPTIM_MUON_H

/*
 * Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): matrices move by their momentum,
 * made orthogonal by Newton-Schulz steps. With g' the clipped gradient of a matrix
 *     m = momentum m + (1 - momentum) g',  u = momentum m + (1 - momentum) g' (Nesterov), else m
 *     p = p (1 - lr decay) - lr scale orthogonal(u)
 * A matrix is one tensor of a checkpoint: queries, keys and values apart, gate and up, each expert.
 * Embeddings, positions, the head and all vectors follow AdamW with the same learning rate.
 *
 * The matrices are whole whatever cuts them: each rank puts what it counts of `u` in its place,
 * the sum over tensor-parallel ranks and those that share out the optimizer's state (ZeRO) is u,
 * and every rank computes all of it in the type of the master weights and takes its own part.
 *
 * Scales, for [rows, columns]: shape_scaling sqrt(max(1, rows / columns)), as published; spectral
 * sqrt(max(rows, columns)); unit_rms_norm sqrt(rows / columns); each by muon_settings.extra.
 */

#include <stdbool.h>
#include <stdint.h>

#include "train/ops/ops.h"

/* The size of a step by the sizes of a matrix. */
enum muon_scale { MUON_SHAPE_SCALING, MUON_SPECTRAL, MUON_UNIT_RMS_NORM };

struct muon_settings {
    double momentum, extra;
    bool nesterov;
    int scale; /* enum muon_scale */
    int64_t steps;
};

/* Its options, as in sai.h. */
#define MUON_ROWS(S, m, v, i)                                                                      \
    OPT_ROW(.name = "muon-momentum", .type = OPT_REAL, .offset = offsetof(S, m.muon.momentum),     \
            .def = "0.95", .max = 1, .meta = "X", .group = "training", .verbs = v, .idle = i,      \
            .needs = "optimizer=muon", .resumed = RESUMED_WARNED,                                  \
            .help = "momentum of the matrices of --optimizer muon"),                               \
        OPT_ROW(.name = "muon-nesterov", .type = OPT_SWITCH,                                       \
                .offset = offsetof(S, m.muon.nesterov), .def = "true", .group = "training",        \
                .verbs = v, .idle = i, .needs = "optimizer=muon", .resumed = RESUMED_WARNED,       \
                .brief = "Nesterov's momentum for muon",                                           \
                .help = "Nesterov's momentum for --optimizer muon, as published"),                 \
        OPT_ROW(.name = "muon-num-ns-steps", .type = OPT_INT, .offset = offsetof(S, m.muon.steps), \
                .def = "5", .min = 1, .max = 99, .meta = "N", .group = "training", .verbs = v,     \
                .needs = "optimizer=muon", .resumed = RESUMED_WARNED,                              \
                .brief = "Newton-Schulz steps of muon",                                            \
                .help = "Newton-Schulz steps that make a step of --optimizer muon orthogonal"),    \
        OPT_ROW(.name = "muon-scale-mode", .type = OPT_CHOICE,                                     \
                .offset = offsetof(S, m.muon.scale), .def = "shape_scaling",                       \
                .meta = "shape_scaling|spectral|unit_rms_norm", .group = "training", .verbs = v,   \
                .idle = i, .needs = "optimizer=muon", .resumed = RESUMED_WARNED,                   \
                .brief = "size of a step of muon by the shape",                                    \
                .help = "what --optimizer muon multiplies a step of a matrix by: shape_scaling "   \
                        "sqrt(max(1, rows / columns)), spectral sqrt(max(rows, columns)), "        \
                        "unit_rms_norm sqrt(rows / columns)"),                                     \
        OPT_ROW(.name = "muon-extra-scale-factor", .type = OPT_REAL,                               \
                .offset = offsetof(S, m.muon.extra), .def = "1", .max = 1e6, .meta = "X",          \
                .group = "training", .verbs = v, .idle = i, .needs = "optimizer=muon",             \
                .resumed = RESUMED_WARNED, .brief = "further factor of a step of muon",            \
                .help =                                                                            \
                    "further factor of a step of --optimizer muon; 0.2 with spectral gives steps " \
                    "of AdamW's size")

double muon_scale_of(const struct muon_settings *t, int64_t rows, int64_t columns);

/* x [m, n] of the type `master`, without gaps: orthogonal by so many Newton-Schulz steps. Takes
 * workspace. */
void muon_orthogonal(struct ops *ops, struct tensor x, int64_t steps);

#endif
