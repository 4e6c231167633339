/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_TINY_H
#define TESTS_TRAIN_TINY_H

/*
 * Tiny models and batches for the tests of train: one of each family, small enough for finite
 * differences in double, odd enough that no size equals another by chance.
 */

#include "train/engine/rank.h"
#include "train/engine/step.h"

enum { TINY_VOCAB = 37, TINY_LENGTH = 9, TINY_ROWS = 2 };

/* GPT-2: learned positions, LayerNorm, GELU, biases, tied head. */
struct spec tiny_gpt(void);
/* Llama: RMSNorm, rotary, SwiGLU, grouped queries, untied. */
struct spec tiny_llama(void);

/* Qwen 3: Llama with QK norm, heads wider than the model. */
struct spec tiny_qwen3(void);

/* GPT-NeoX: parallel residual, partial rotary, LayerNorm, biases, untied. */
struct spec tiny_neox(void);

/* Phi-3: Llama with longrope, whose rows are longer than half of its length. */
struct spec tiny_phi3(void);

/* Mistral: Llama with windows of 3 keys, in its first layer alone. */
struct spec tiny_mistral(void);

/* Gemma 2: norms less one, four in a layer, soft caps, a query scale, windows in every other layer,
 * scaled embeddings, GeGLU, a tied head. */
struct spec tiny_gemma2(void);

/* Gemma 3: Gemma 2 without caps, with QK norm, linear rotary scaling, and another rotary base in
 * layers with a window. */
struct spec tiny_gemma3(void);

/* Mixtral: Llama with 5 experts, 2 for each token, balancing and z losses. */
struct spec tiny_mixtral(void);
/* Qwen2-MoE: a shared expert with a gate, biases on q, k and v, the second of 3 layers dense. */
struct spec tiny_qwen_moe(void);

/*
 * What makes a Llama, of another size, too, a model of that family; of a GPT, GPT-NeoX; of a
 * Mistral, Gemma; of a Mixtral, Qwen2-MoE. Phi-3's longrope turns at most 3 pairs; Mistral's
 * windows are in all layers but each `every`th.
 */
void tiny_as_qwen3(struct spec *s);
void tiny_as_neox(struct spec *s);
void tiny_as_phi3(struct spec *s, int64_t old_length);
void tiny_as_mistral(struct spec *s, int64_t every);
void tiny_as_gemma2(struct spec *s);
void tiny_as_gemma3(struct spec *s);
void tiny_as_qwen_moe(struct spec *s, int64_t shared_ffn);

struct rank_config tiny_config(struct spec spec, enum dtype real);

/* A batch of random ids; every seventh label is masked out. Owned by the caller: batch_finish. */
void tiny_batch(struct batch *b, uint64_t seed);

/* Loss, with those of a mixture's routers, and gradients of one micro-batch with dropout on (if the
 * spec has any), without an update. */

double tiny_loss(struct rank *r, const struct batch *b, bool gradients);

/* Forward, loss and backward of one micro-batch, on a rank without pipeline, by the loss scale of
 * the values in force. */
void tiny_micro(struct rank *r, const struct batch *b, double scale);

/* A step that is issued and completed before the next. */
int tiny_step(struct rank *r, struct loader *in, struct step_result *ret, struct err *e);

/* Puts the values of an optimizer's step, the first being 1, for optim_step. */
void tiny_values(struct rank *r, double lr, double decay, int64_t number);
/* ... and takes it with the gradients that are there. */
void tiny_update(struct rank *r, double lr, double decay, int64_t number);

#endif
