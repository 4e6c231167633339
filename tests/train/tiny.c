/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/tiny.h"

#include "tests/t.h"
#include "train/engine/stage.h"
#include "train/engine/step.h"
#include "train/engine/step_scalars.h"

struct spec tiny_gpt(void)
{
    return (struct spec){.layers = 2,
                         .hidden = 12,
                         .heads = 3,
                         .kv_heads = 3,
                         .head_dim = 4,
                         .ffn = 20,
                         .vocab = TINY_VOCAB,
                         .padded_vocab = 128,
                         .max_positions = 16,
                         .norm = SPEC_LAYERNORM,
                         .act = SPEC_GELU_TANH,
                         .position = SPEC_LEARNED,
                         .norm_eps = 1e-5,
                         .rope_base = 10000,
                         .rope_percent = 1,
                         .tied = true,
                         .bias = true,
                         .qkv_bias = true,
                         .init_std = 0.3};
}

struct spec tiny_llama(void)
{
    return (struct spec){.layers = 2,
                         .hidden = 16,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 4,
                         .ffn = 24,
                         .vocab = TINY_VOCAB,
                         .padded_vocab = 128,
                         .max_positions = 16,
                         .norm = SPEC_RMSNORM,
                         .act = SPEC_SWIGLU,
                         .position = SPEC_ROPE,
                         .norm_eps = 1e-5,
                         .rope_base = 10000,
                         .rope_percent = 1,
                         .tied = false,
                         .bias = false,
                         .init_std = 0.3};
}

/* ---- families, whatever their size ---------------------------------------------------------- */

void tiny_as_qwen3(struct spec *s)
{
    s->head_dim = 6; /* wider together than the model */
    s->qk_norm = true;
}

void tiny_as_neox(struct spec *s)
{
    s->position = SPEC_ROPE;
    s->rope_percent = 0.5;
    s->act = SPEC_GELU_ERF;
    s->tied = false;
    s->parallel = true;
}

void tiny_as_phi3(struct spec *s, int64_t old_length)
{
    static const double near[] = {1, 1.5, 2}, far[] = {1.25, 3, 4};
    s->rope_scaling = SPEC_ROPE_LONG;
    s->rope_old_length = old_length;
    s->longrope = (struct spec_longrope){.attention = 1.19};
    BUG_ON(spec_rotary(s) > 6, "%lld channels are turned", (long long)spec_rotary(s));
    for (int64_t i = 0; i < spec_rotary(s) / 2; i++) {
        s->longrope.near[i] = near[i];
        s->longrope.far[i] = far[i];
    }
}

void tiny_as_mistral(struct spec *s, int64_t every)
{
    s->window = 3;
    for (int64_t l = 0; l < SPEC_LAYERS_MAX; l++)
        if ((l + 1) % every)
            spec_layers_add(&s->windowed, l);
}

void tiny_as_gemma2(struct spec *s)
{
    s->act = SPEC_GEGLU_TANH;
    s->tied = true;
    s->zero_centered = s->post_norm = s->embed_scale = true;
    s->score_cap = 2;
    s->head_cap = 3;
    s->query_scalar = 7;
}

void tiny_as_gemma3(struct spec *s)
{
    tiny_as_gemma2(s);
    s->score_cap = s->head_cap = 0;
    s->qk_norm = true;
    s->rope_scaling = SPEC_ROPE_LINEAR;
    s->rope_factor = 8;
    s->rope_base = 1000;
    s->rope_local_base = 10;
}

void tiny_as_qwen_moe(struct spec *s, int64_t shared_ffn)
{
    s->qkv_bias = true;
    s->route_before = true;
    s->shared_ffn = shared_ffn;
    s->shared_gate = true;
    spec_layers_add(&s->dense, 1);
}

/* ---- one of each ---------------------------------------------------------------------------- */

struct spec tiny_qwen3(void)
{
    struct spec s = tiny_llama();
    tiny_as_qwen3(&s);
    return s;
}

struct spec tiny_neox(void)
{
    struct spec s = tiny_gpt();
    tiny_as_neox(&s);
    return s;
}

struct spec tiny_phi3(void)
{
    struct spec s = tiny_llama();
    s.head_dim = 6;
    tiny_as_phi3(&s, TINY_LENGTH / 2);
    return s;
}

struct spec tiny_mistral(void)
{
    struct spec s = tiny_llama();
    tiny_as_mistral(&s, 2);
    return s;
}

struct spec tiny_gemma2(void)
{
    struct spec s = tiny_mistral();
    tiny_as_gemma2(&s);
    return s;
}

struct spec tiny_gemma3(void)
{
    struct spec s = tiny_mistral();
    tiny_as_gemma3(&s);
    return s;
}

struct spec tiny_mixtral(void)
{
    struct spec s = tiny_llama();
    s.experts = 5;
    s.topk = 2;
    s.expert_ffn = 10;
    s.balance_coeff = 0.5;
    s.z_coeff = 0.3;
    return s;
}

struct spec tiny_qwen_moe(void)
{
    struct spec s = tiny_mixtral();
    s.layers = 3;
    tiny_as_qwen_moe(&s, 14);
    return s;
}

struct rank_config tiny_config(struct spec spec, enum dtype real)
{
    static const struct rank_backends backends = {
        .describe_device = dev_host_describe,
        .open_device = dev_host_start,
        .init_ops = ops_cpu_open,
    };
    return (struct rank_config){.backends = &backends,
                                .layout = layout_plain(mesh_single()),
                                .spec = spec,
                                .use = MODEL_TRAIN,
                                .real = real,
                                .threads = 2,
                                .micro_batch = TINY_ROWS,
                                .seq_length = TINY_LENGTH,
                                .micros = 1,
                                .seed = 1234,
                                .beta1 = 0.9,
                                .beta2 = 0.999,
                                .eps = 1e-8,
                                .decay = {.start = 0.01, .end = 0.01},
                                .clip = 1.0,
                                .lr = {.style = LR_CONSTANT, .max = 1e-3}};
}

void tiny_batch(struct batch *b, uint64_t seed)
{
    batch_init(b, TINY_ROWS, TINY_LENGTH);
    b->first = 5;
    for (uint64_t i = 0; i < TINY_ROWS * TINY_LENGTH; i++) {
        b->tokens[i] = (int32_t)(t_rand(seed, 2 * i) % TINY_VOCAB);
        b->labels[i] = (int32_t)(t_rand(seed, 2 * i + 1) % TINY_VOCAB);
        b->loss_mask[i] = i % 7 == 6 ? 0 : 1;
    }
}

void tiny_micro(struct rank *r, const struct batch *b, double scale)
{
    struct model_pass p = rank_pass(r, b, true);
    rank_stage(r, b, false);
    model_forward(&r->model, &p);
    model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), scale);
    model_backward(&r->model, &p);
}

int tiny_step(struct rank *r, struct loader *loader, struct step_result *ret, struct err *e)
{
    *ret = (struct step_result){0};
    int code = step_issue(r, loader, e);
    return code ? code : step_complete(r, ret, e);
}

double tiny_loss(struct rank *r, const struct batch *b, bool gradients)
{
    const struct spec *s = &r->config.spec;
    double n = 0;
    for (uint32_t i = 0; i < b->rows * b->seq_length; i++)
        n += (double)b->loss_mask[i];
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    if (gradients) {
        op_fill(&r->ops, &(struct fill_args){.y = r->zero.grads, .value = 0});
        tiny_micro(r, b, (float)(1 / n));
    } else {
        struct model_pass p = rank_pass(r, b, true);
        rank_stage(r, b, false);
        model_forward(&r->model, &p);
        p.train = false; /* the loss alone: no gradients behind the head */
        model_loss(&r->model, &p, tensor_rows(r->totals, 0, 1), 0);
        for (int l = 0; l < s->layers; l++)
            if (spec_has_experts(s, l))
                experts_losses(&r->model, &p, l);
    }
    rank_fetch(r, r->host_totals, r->totals);
    return r->host_totals[0] / n + s->balance_coeff * r->host_totals[2] +
           s->z_coeff * r->host_totals[3];
}

void tiny_values(struct rank *r, double lr, double decay, int64_t number)
{
    struct step_values v = step_scalars_of(r, &r->at);
    struct step_values of =
        step_values_make(lr, decay, (double)number, r->config.beta1, r->config.beta2);
    of.scale = v.scale;
    of.route = v.route;
    step_scalars_put(r, of, of);
}

void tiny_update(struct rank *r, double lr, double decay, int64_t number)
{
    tiny_values(r, lr, decay, number);
    optim_step(&r->optim, &r->ops, &r->comm, number == 1);
}
