/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* clang-format off */
#define MIX LAYER "block_sparse_moe.experts.{e}."

static const struct hf_row mixtral_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION,
    ROUTER(LAYER "block_sparse_moe.gate.weight", SPARSE_ONE),
    ROUTER(LAYER "mlp.gate.weight", SPARSE_FUSED), FUSED,
    {MIX "w1.weight", G "mlp.experts.{e}.gate.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},
    {MIX "w2.weight", G "mlp.experts.{e}.down.weight", D_HIDDEN, D_EXPERT_FFN, SPARSE_ONE, ROWS},
    {MIX "w3.weight", G "mlp.experts.{e}.up.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},
    NORMS, END_OF_MODEL,
};
/* clang-format on */

static void read_mixtral(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-5, 1000000);
    hf_read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 8);
    m->qkv_bias = m->out_bias = false;
    m->spec.experts = hf_int(h, "num_local_experts", 8);
    m->spec.expert_ffn = m->spec.ffn;
    m->spec.topk = hf_int(h, "num_experts_per_tok", 2);
    m->spec.balance_coeff = hf_real(h, "router_aux_loss_coef", 0.001);
    hf_read_window(h, 0, hf_window_layers(&m->spec, 0, 0), &m->spec);
}

static bool mixtral_fits(const struct spec *s)
{
    return hf_fits_experts(s) && !s->qkv_bias && !s->qk_norm && !s->shared_ffn &&
           !s->route_before && spec_layers_none(&s->dense) && s->rope_scaling == SPEC_ROPE_PLAIN &&
           hf_fits_heads(s);
}

const struct hf_family_row hf_mixtral = {
    .architecture = "MixtralForCausalLM",
    .bare = "MixtralModel",
    .keys = {hf_keys_rope, hf_keys_llama, hf_keys_experts},
    .read = read_mixtral,
    HF_ROWS(mixtral_rows),
    .prefix = "model.",
    .fits = mixtral_fits,
    .windows = HF_WINDOWS_ALL,
};
