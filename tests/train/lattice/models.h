/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_LATTICE_MODELS_H
#define TESTS_TRAIN_LATTICE_MODELS_H

/* The models of the cells: tiny, and shaped so that any layout of 8 ranks can cut them. */

#include "train/spec/spec.h"

enum { CELL_VOCAB = 37 /* TINY_VOCAB */ };

/* GPT-2: learned positions, LayerNorm, biases, tied ends; 8 heads, a vocabulary of 37. */
struct spec cell_gpt(void);
/* Llama: RMSNorm, rotary, SwiGLU, untied, 2 key/value heads for 8 query heads. */
struct spec cell_llama(void);
/* Qwen 3: Llama with QK norm, heads wider than the model. */
struct spec cell_qwen3(void);
/* GPT-NeoX: parallel residual, partial rotary. */
struct spec cell_neox(void);
/* Phi-3: Llama with longrope over a part of each head. */
struct spec cell_phi3(void);
/* Mixtral: Llama with 4 experts, 2 for each token, balancing and z losses. */
struct spec cell_mixtral(void);
/* Qwen2-MoE: biases on q, k and v, a shared expert with a gate, the second layer dense. */
struct spec cell_qwen_moe(void);
/* Qwen3-MoE: QK norm, the weights of a token's experts sum to 1. */
struct spec cell_qwen3_moe(void);
/* Gemma 2: Mistral with norms less one, four in a layer, soft caps, a query scale, scaled
 * embeddings, GeGLU and a tied head. */
struct spec cell_gemma2(void);
/* Gemma 3: Gemma 2 without caps, with QK norm, linear rotary scaling and two rotary bases. */
struct spec cell_gemma3(void);
/* Mistral: Llama with windows of 3 keys, in two of three layers. */
struct spec cell_mistral(void);

#endif
