/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_CUDA_SKELETON_H
#define TESTS_BENCH_CUDA_SKELETON_H

/*
 * A skeleton of a training step in bf16: everything that no implementation of the step can leave
 * out, and nothing else. Its time is the limit that a trainer is measured against.
 *
 * Of each layer all products, forward, of the input and of the weight (added up in fp32), GPT-2's
 * with their epilogues; cuDNN's attention, whose deterministic backward does the work of all keys
 * also with a window, so there it is the one with atomic adds; a copy of the bytes that the
 * elementwise work cannot avoid; the LM head; and the optimizer. Not in it: the arithmetic of loss
 * and norms, dropout, the host. Three layers' buffers take turns, so models fit whose optimizer
 * state would not; operands are normal random numbers (zeros would draw less power and run a
 * quarter faster).
 *
 * Bytes for each token of a layer with width C, feed-forward F, heads of Q and KV numbers in all:
 * residual and norm 16 C forward and 16 C backward; GPT-2 6 C (gradient of the qkv bias) and
 * 2 F, or 6 F where GELU's gradient is not in the product; Llama 8 (Q + KV) for RoPE and 6 F
 * forward, 10 F backward for SwiGLU. Once, 4 V for the loss and 14 C for the last norm and the
 * embedding. The optimizer moves 34 bytes for each parameter: fp32 master and moments read and
 * written, the fp32 gradient read twice, the bf16 parameter written. Narrow: gradients of weights
 * and moments in bf16, no master, 16 bytes.
 */

#include "train/ops/cuda/gemm/lt.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/ops/cuda/sdpa.h"

struct limit_model {
    const char *name;
    int64_t layers, width, heads, groups, dim, inner, vocabulary;
    bool gpt;                                 /* bias, GELU; else SwiGLU and RoPE */
    int64_t tokens, micro_batch, step_tokens; /* step_tokens: of one optimizer step */
    int64_t window;                           /* of attention; 0: none */
    int64_t full_every;                       /* every so many-th layer has none; 0: all have one */
};

enum part { PART_PRODUCTS = 1, PART_ATTENTION = 2, PART_BYTES = 4, PART_OPTIMIZER = 8 };

struct bench_gpu {
    struct dev dev;
    struct slab workspace, memory;
    struct ops ops;
    struct lt *lt;
    struct sdpa *sdpa; /* or NULL: its parts cost nothing */
    float *pattern;    /* normal random numbers on the host; NULL before the first are wanted */
};

enum { SITES = 5, SLOTS = 3 };

/* One linear layer: y[n,O] = x[n,I] w[O,I]^T. */
struct site {
    const char *name;
    int64_t out, in;
    enum lt_epilogue forward, backward;
    void *x[SLOTS], *w[SLOTS], *y[SLOTS], *dy[SLOTS], *dx[SLOTS], *dw[SLOTS], *aux[SLOTS];
    const struct lt_plan *plan[3]; /* forward, of the input, of the weight */
};

struct skeleton_mode {
    bool gelu_apart; /* GELU's gradient is not in the product */
    bool deterministic;
    bool narrow;    /* gradients and moments in bf16, no master weights */
    bool gradients; /* in bf16, beside master weights and moments in fp32 */
};

struct skeleton {
    struct bench_gpu *gpu;
    struct limit_model m;
    struct skeleton_mode mode;
    int64_t n;                      /* tokens of a micro-batch */
    struct site site[SITES];        /* qkv, proj, fc, down, head */
    struct sdpa_plan *attention[2]; /* of all keys, and with the window; NULL: no layer has it */
    void *qkv[SLOTS], *o[SLOTS], *dout[SLOTS], *dqkv[SLOTS];
    float *lse[SLOTS];
    void *workspace; /* of attention */
    void *from, *to; /* of copies */
    size_t copies;   /* bytes of each of them */
    void *bias;      /* of any site */
    void *state[4];  /* p, g, m, v of STATE parameters, in turns */
};

int64_t limit_parameters(const struct limit_model *m);
/* Floating-point operations of a token, forward and backward: products, and causal attention. */
double limit_flops(const struct limit_model *m);

/* Normal random numbers in bf16, in gpu->memory. */
void *skeleton_numbers(struct bench_gpu *gpu, int64_t count, double scale);

/* Prepares all of it in gpu->memory, which is reset. */
int skeleton_init(struct skeleton *s, struct bench_gpu *gpu, const struct limit_model *m,
                  struct skeleton_mode mode, struct err *e);
void skeleton_free(struct skeleton *s);

/* Issues the parts of one micro-batch, and PART_OPTIMIZER's of a step. */
void skeleton_micro_batch(struct skeleton *s, int parts);
void skeleton_optimizer(struct skeleton *s);

#endif
