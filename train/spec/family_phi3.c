/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* clang-format off */
static const struct hf_key phi3_keys[] = {
    KEY("resid_pdrop"),
    KEY("embd_pdrop"),
    KEY("original_max_position_embeddings"), /* of longrope */
    END_OF_KEYS,
};

static const struct hf_row phi3_rows[] = {
    EMBED("model.embed_tokens.weight"),
    {LAYER "self_attn.o_proj.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.q.weight", D_QUERIES, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.k.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.v.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.gate_up_proj.weight", G "mlp.gate.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.gate_up_proj.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.down_proj.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, ROWS},
    NORMS, END_OF_MODEL,
};
/* clang-format on */

static void read_phi3(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-5, 10000);
    hf_read_silu(h, m);
    hf_read_hidden_dropout(h, 0, &m->spec);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", m->spec.heads);
    m->qkv_bias = m->out_bias = false;
    if (hf_bool(h, "attention_bias", false))
        hf_refuse(h, "attention_bias", "true", "Phi-3 has no biases");
    hf_read_window(h, 0, hf_window_layers(&m->spec, 0, 0), &m->spec);
}

const struct hf_family_row hf_phi3 = {
    .architecture = "Phi3ForCausalLM",
    .bare = "Phi3Model",
    .keys = {hf_keys_rope, hf_keys_llama, phi3_keys},
    .read = read_phi3,
    HF_ROWS(phi3_rows),
    .prefix = "model.",
};
