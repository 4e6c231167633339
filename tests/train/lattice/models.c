/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/lattice/models.h"

#include "tests/train/tiny.h"

struct spec cell_gpt(void)
{
    struct spec s = tiny_gpt();
    s.layers = 4;
    s.hidden = 24;
    s.heads = s.kv_heads = 8;
    s.head_dim = 3;
    s.ffn = 40;
    return s;
}

struct spec cell_llama(void)
{
    struct spec s = tiny_llama();
    s.layers = 4;
    s.hidden = 20;
    s.heads = 8;
    return s;
}

struct spec cell_qwen3(void)
{
    struct spec s = cell_llama();
    s.head_dim = 6; /* 8 heads are wider than the model */
    s.qk_norm = true;
    return s;
}

struct spec cell_neox(void)
{
    struct spec s = cell_gpt();
    s.position = SPEC_ROPE;
    s.head_dim = 4;
    s.rope_percent = 0.5;
    s.act = SPEC_GELU_ERF;
    s.tied = false;
    s.parallel = true;
    return s;
}

struct spec cell_phi3(void)
{
    struct spec s = cell_llama();
    s.rope_percent = 0.5;
    s.head_dim = 8;
    s.rope_scaling = SPEC_ROPE_LONG;
    s.rope_old_length = 4;
    s.longrope = (struct spec_longrope){{1, 1.5}, {1.25, 3}, 1.19};
    return s;
}

struct spec cell_mixtral(void)
{
    struct spec s = cell_llama();
    s.experts = 4;
    s.topk = 2;
    s.expert_ffn = 16;
    s.balance_coeff = 0.05;
    s.z_coeff = 0.02;
    return s;
}

struct spec cell_mistral(void)
{
    struct spec s = cell_llama();
    s.window = 3;
    for (int64_t l = 0; l < SPEC_LAYERS_MAX; l++)
        if (l % 3 != 2)
            spec_layers_add(&s.windowed, l);
    return s;
}

struct spec cell_qwen_moe(void)
{
    struct spec s = cell_mixtral();
    s.qkv_bias = true;
    s.route_before = true;
    s.shared_ffn = 24;
    s.shared_gate = true;
    s.ffn = 32;
    spec_layers_add(&s.dense, 1);
    return s;
}

struct spec cell_qwen3_moe(void)
{
    struct spec s = cell_mixtral();
    s.qk_norm = true;
    s.head_dim = 6;
    return s;
}

struct spec cell_gemma2(void)
{
    struct spec s = cell_mistral();
    s.act = SPEC_GEGLU_TANH;
    s.tied = true;
    s.zero_centered = s.post_norm = s.embed_scale = true;
    s.score_cap = 2;
    s.head_cap = 3;
    s.query_scalar = 7;
    return s;
}

struct spec cell_gemma3(void)
{
    struct spec s = cell_gemma2();
    s.score_cap = s.head_cap = 0;
    s.qk_norm = true;
    s.rope_scaling = SPEC_ROPE_LINEAR;
    s.rope_factor = 8;
    s.rope_base = 1000;
    s.rope_local_base = 10;
    return s;
}
