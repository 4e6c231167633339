/* SPDX-License-Identifier: Apache-2.0 */

/* Qwen 2 and Qwen 3 with experts. */

#include "train/spec/family.h"

#include <string.h>

/* clang-format off */
static const struct hf_key moe_keys[] = {
    KEY("num_experts"),
    KEY("moe_intermediate_size"),
    KEY("decoder_sparse_step"),
    KEY("mlp_only_layers"),
    KEY("norm_topk_prob"),
    END_OF_KEYS,
};

static const struct hf_key qwen2_moe_keys[] = {
    KEY("qkv_bias"),
    KEY("shared_expert_intermediate_size"),
    END_OF_KEYS,
};

#define EXPERT LAYER "mlp.experts.{e}."
#define QWEN_EXPERTS                                                                              \
    ROUTER(LAYER "mlp.gate.weight", SPARSE), FUSED,                                               \
    SINGLE(EXPERT "gate_proj.weight", EXPERT "up_proj.weight", EXPERT "down_proj.weight")

static const struct hf_row qwen_moe_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION, MLP, QWEN_EXPERTS,
    {LAYER "mlp.shared_expert.gate_proj.weight", G "mlp.shared.gate.weight",
     D_SHARED_FFN, D_HIDDEN, SHARED, ROWS},
    {LAYER "mlp.shared_expert.up_proj.weight", G "mlp.shared.up.weight",
     D_SHARED_FFN, D_HIDDEN, SHARED, ROWS},
    {LAYER "mlp.shared_expert.down_proj.weight", G "mlp.shared.down.weight",
     D_HIDDEN, D_SHARED_FFN, SHARED, ROWS},
    {LAYER "mlp.shared_expert_gate.weight", G "mlp.shared_gate.weight",
     D_ONE, D_HIDDEN, SHARED, ROWS},
    NORMS, END_OF_MODEL,
};
/* clang-format on */

/* Which layers are dense: those listed, and those that the step leaves out. */
static void read_dense(struct hf_reader *h, struct hf_model *m)
{
    const struct json *v = hf_get(h, "mlp_only_layers");
    int64_t step = hf_int(h, "decoder_sparse_step", 1);
    if (step < 1)
        hf_malformed(h, "decoder_sparse_step", "above 0");
    if (v && v->kind != JSON_ARRAY)
        hf_malformed(h, "mlp_only_layers", "an array of whole numbers");
    if (h->code)
        return;
    for (int64_t i = 0; i < m->spec.layers && i < SPEC_LAYERS_MAX; i++)
        if ((i + 1) % step)
            spec_layers_add(&m->spec.dense, i);
    for (size_t k = 0; v && k < v->length; k++) {
        int64_t i = v->child[k].integer;
        if (v->child[k].kind != JSON_INT || i < 0)
            hf_malformed(h, "mlp_only_layers", "an array of numbers of layers");
        else if (i < m->spec.layers && i < SPEC_LAYERS_MAX)
            spec_layers_add(&m->spec.dense, i);
    }
}

/*
 * As transformers 5 has them: all layers of Qwen 3's have the window; of Qwen 2's, unless they are
 * listed, each other one of the first max_window_layers.
 */
static void read_moe_window(struct hf_reader *h, struct hf_model *m, bool all)
{
    bool used = hf_bool(h, "use_sliding_window", false);
    int64_t first = hf_int(h, "max_window_layers", 28);
    struct spec_layers layers = {0};
    for (int64_t l = 0; l < m->spec.layers && l < SPEC_LAYERS_MAX; l++)
        if (all || (l < first && l % 2 == 0))
            spec_layers_add(&layers, l);
    if (!used)
        return;
    hf_read_window(h, 4096, layers, &m->spec);
    if (all && !h->code && memcmp(&m->spec.windowed, &layers, sizeof(layers)) != 0)
        hf_refuse(h, "layer_types", "full_attention",
                  "with \"use_sliding_window\" all layers of this family have the window");
}

static void read_qwen_moe(struct hf_reader *h, struct hf_model *m, int64_t experts, int64_t ffn,
                          int64_t topk, bool all_windows)
{
    hf_read_silu(h, m);
    m->spec.experts =
        hf_int(h, hf_get(h, "num_experts") ? "num_experts" : "num_local_experts", experts);
    m->spec.expert_ffn = hf_int(h, "moe_intermediate_size", ffn);
    m->spec.topk = hf_int(h, "num_experts_per_tok", topk);
    m->spec.route_before = !hf_bool(h, "norm_topk_prob", false);
    m->spec.balance_coeff = hf_real(h, "router_aux_loss_coef", 0.001);
    read_dense(h, m);
    read_moe_window(h, m, all_windows);
}

static void read_qwen2_moe(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 16);
    m->qkv_bias = hf_bool(h, "qkv_bias", true);
    m->out_bias = false;
    read_qwen_moe(h, m, 60, 1408, 4, false);
    m->spec.shared_ffn = hf_int(h, "shared_expert_intermediate_size", 5632);
    m->spec.shared_gate = m->spec.shared_ffn > 0;
}

static void read_qwen3_moe(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 4);
    m->spec.qk_norm = true;
    read_qwen_moe(h, m, 128, 768, 8, true);
}

static bool qwen2_moe_fits(const struct spec *s)
{
    return hf_fits_experts(s) && !s->qk_norm && s->qkv_bias && s->shared_gate && hf_fits_heads(s);
}

static bool qwen3_moe_fits(const struct spec *s)
{
    return hf_fits_experts(s) && s->qk_norm && !s->qkv_bias && !s->shared_ffn;
}

const struct hf_family_row hf_qwen2_moe = {
    .architecture = "Qwen2MoeForCausalLM",
    .bare = "Qwen2MoeModel",
    .keys = {hf_keys_rope, hf_keys_llama, hf_keys_qwen, hf_keys_experts, moe_keys, qwen2_moe_keys},
    .read = read_qwen2_moe,
    HF_ROWS(qwen_moe_rows),
    .prefix = "model.",
    .fits = qwen2_moe_fits,
    .windows = HF_WINDOWS_ANY,
};

const struct hf_family_row hf_qwen3_moe = {
    .architecture = "Qwen3MoeForCausalLM",
    .bare = "Qwen3MoeModel",
    .keys = {hf_keys_rope, hf_keys_llama, hf_keys_qwen, hf_keys_experts, moe_keys},
    .read = read_qwen3_moe,
    HF_ROWS(qwen_moe_rows),
    .prefix = "model.",
    .fits = qwen3_moe_fits,
    .windows = HF_WINDOWS_ALL,
};
