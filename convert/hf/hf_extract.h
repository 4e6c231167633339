/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_EXTRACT_H
#define CONVERT_HF_HF_EXTRACT_H

/*
 * What training changed in a model as a LoRA adapter of PEFT: for each matrix of a linear layer the
 * best factors of a rank, by its singular values; other tensors that changed (embeddings, head,
 * norms) as a whole.
 */

#include "convert/hf/hf_export.h"

struct hf_extract {
    int64_t rank;
    int threads;           /* 0: one for each processor */
    const char *base_name; /* base_model_name_or_path */
};

struct hf_extracted {
    size_t matrices, whole; /* tensors that changed, of each kind */
    uint64_t bytes;         /* of the adapter's file */
    double squares, rest;   /* sums over all matrices: of the changes, and of what is left out */
    double worst;           /* the largest part that is left out of one of them, 0 to 1 */
    char worst_name[200];
};

/*
 * The folder `dst` appears whole, or not at all. ERR_USAGE: it exists, or the two are different
 * models; ERR_DATA: a bias of a linear layer changed, which adapters hold only for all of them, or
 * nothing did. Both exports are planned without `like`, and checked here after they were read.
 */
int hf_extract_adapter(const struct hf_export *tuned, const struct hf_export *base, const char *dst,
                       const struct hf_extract *o, struct hf_extracted *ret, struct err *e);

#endif
