/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_GGUF_MODEL_H
#define CONVERT_GGUF_GGUF_MODEL_H

/*
 * A model as llama.cpp reads it: keys, names of tensors and order of rows of the architecture that
 * its family has there (hf_family_gguf).
 */

#include "convert/gguf/gguf.h"
#include "convert/hf/hf_export.h"

/* Types of the matrices (gguf_type.h); vectors and learned positions are always F32. */
#define GGUF_OUTTYPES "auto|f32|f16|bf16|q8_0"

/* A file that is going to be. */
struct gguf_plan {
    struct gguf_keys keys; /* of the model; the caller adds those of the tokenizer */
    struct gguf_tensor *tensor;
    size_t n;
    struct copy_step *step;
    size_t nsteps;
    struct copy_source extra; /* rope_freqs.weight */
    float *freqs;
    int64_t *order[2]; /* rows of queries and keys */
    uint64_t bytes;    /* of tensors in the file */
    size_t narrow;     /* matrices that Q8_0 cannot hold, which are F16 */
    struct arena arena;
};

/*
 * Plans and checks it, from a planned export, which must live on. ERR_USAGE names what of the model
 * GGUF's architectures have no place for, or a family that is not written. `outtype` is one of
 * GGUF_OUTTYPES, `name` the model's.
 */
int gguf_plan(struct gguf_plan *ret, const struct hf_export *x, const char *outtype,
              const char *name, struct err *e);
void gguf_plan_finish(struct gguf_plan *p);

/* Writes it: the file appears whole, or not at all. */
int gguf_write(const struct gguf_plan *p, const struct hf_export *x, const char *dst,
               const struct copy_options *o, struct err *e);

#endif
