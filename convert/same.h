/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_SAME_H
#define CONVERT_SAME_H

/*
 * Whether checkpoints hold the same tensors, however they are cut into files: by the fingerprints
 * of their manifests; those that a manifest lacks (version 1 of the format) are made from the
 * bytes.
 */

#include "base/core/err.h"
#include "train/ckpt/ckpt.h"

/*
 * 0, or ERR_FAIL with the tensors that only one of them has, or that differ in shape, type or
 * values. Says nothing of whether the files are what was written: ckpt_verify does.
 */
int same_tensors(const struct ckpt *a, const struct ckpt *b, struct err *e);

#endif
