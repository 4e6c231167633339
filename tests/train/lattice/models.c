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
    tiny_as_qwen3(&s); /* 8 heads are wider than the model */
    return s;
}

struct spec cell_neox(void)
{
    struct spec s = cell_gpt();
    s.head_dim = 4;
    tiny_as_neox(&s);
    return s;
}

struct spec cell_phi3(void)
{
    struct spec s = cell_llama();
    s.rope_percent = 0.5;
    s.head_dim = 8;
    tiny_as_phi3(&s, 4);
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
    tiny_as_mistral(&s, 3);
    return s;
}

struct spec cell_qwen_moe(void)
{
    struct spec s = cell_mixtral();
    s.ffn = 32;
    tiny_as_qwen_moe(&s, 24);
    return s;
}

struct spec cell_qwen3_moe(void)
{
    struct spec s = cell_mixtral();
    tiny_as_qwen3(&s);
    return s;
}

struct spec cell_gemma2(void)
{
    struct spec s = cell_mistral();
    tiny_as_gemma2(&s);
    return s;
}

struct spec cell_gemma3(void)
{
    struct spec s = cell_mistral();
    tiny_as_gemma3(&s);
    return s;
}
