/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPS_CUDA_ATTEND_H
#define TRAIN_OPS_CUDA_ATTEND_H

/*
 * Which attention takes a call of the table: cuDNN's (sdpa.h) where it is installed and has a
 * kernel for the shape, else our own (flash.h, attention.cu). It is chosen by shape while the step
 * is planned, so a run has one for each shape, and its forward and backward have the same.
 *
 * cuDNN is asked for rows of one length (`even` of struct attention_args) of 16 bits without
 * dropout, with windows and caps. Its deterministic backward needs heads * tokens^2 * 2 bytes for
 * each sequence, also with a window, so a call is made in parts of at most attend_bytes of these:
 * some sequences, or some heads of one. Each part costs six launches, and processors that idle
 * while its last blocks end; 2 GiB are what the logits of a part of the rows take, too, and at
 * another time. Where any order of its sums will do (`any_order`), it needs fp32 sums of dq
 * instead.
 */

#include "train/ops/ops.h"

static const int64_t attend_bytes = (int64_t)2 << 30;

struct attend;

/* Never NULL: without cuDNN it takes no call. `d` may be a device that is not open; then nothing
 * can be prepared. */
struct attend *attend_open(struct dev *d, const char *library_path);
void attend_close(struct attend *a);

/* What a table may call its attention: "cuDNN 9.19.0", or "own" if cuDNN is not used. */
const char *attend_name(const struct attend *a);
/* Why there is no cuDNN; "" if there is. */
const char *attend_why(const struct attend *a);

/* What of a call cuDNN is not asked for, as in "takes no ..."; NULL: it is asked for all of it. */
const char *attend_lacks(const struct dev_desc *d, const struct attention_args *a);

/* How a call falls into parts. false: cuDNN is not asked for it. */
struct attend_parts {
    int64_t sequences, groups; /* of a part */
    size_t bytes;              /* of workspace that a part may take */
};
bool attend_cut(const struct dev_desc *d, const struct attention_args *a, struct attend_parts *ret);

/* True: cuDNN takes calls of this shape from now on, and those without statistics, which are of
 * the forward alone. *ret_why: why it does not, owned by `a`. */
bool attend_prepare(struct attend *a, const struct attention_args *args, const char **ret_why);

/* False: the call is not cuDNN's. Workspace: `bytes` of attend_cut. */
bool attend_forward(struct attend *a, const struct attention_args *args, void *workspace);
bool attend_backward(struct attend *a, const struct attention_bwd_args *args, void *workspace);

#endif
