/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_MEMORY_FIT_H
#define TRAIN_ENGINE_MEMORY_FIT_H

/* Whether a planned rank fits into the memory that this process may still take. */

#include "base/core/limit.h"
#include "train/engine/rank.h"

/* Bytes that communication takes beside the slabs, at most: on a GPU those of NCCL there, on a host
 * those of messages between processes (train/comm/footprint.h). */
uint64_t memory_fit_communication(const struct rank *r);

/* Bytes that a planned rank takes, with what config says of others: all that is touched, and all
 * that is mapped; of the host. */
struct memory_fit_need {
    uint64_t touched, mapped;
};
struct memory_fit_need memory_fit_need(const struct rank *r);

/*
 * Of a device with memory of its own: what the driver and other programs took of it before, and
 * that with the slabs and communication, of all: "526.8 MiB of ...; with the slabs 22.8 GiB of
 * 139.8 GiB". Nothing of a host.
 */
void memory_fit_describe(const struct rank *r, struct buf *out);

/*
 * The slabs of `r` are measured and not yet bound. ERR_RESOURCE names the need, the limit that it
 * exceeds, what of it is free, and in the hint the option to lower.
 */
int memory_fit_check(const struct rank *r, const struct mem_limit *limit, int n, struct err *e);

/* The micro-batch that `c` becomes in the search for one that fits: the next smaller divisor of
 * `from`, with as many more of them as keep the samples of a step. False: it is 1. */
bool memory_fit_lower_batch(struct rank_config *c, int64_t from);

#endif
