/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* clang-format off */
static const struct hf_key gpt_neox_keys[] = {
    KEY("layer_norm_eps"),
    KEY("rotary_pct"),
    KEY("rotary_emb_base"),
    KEY("use_parallel_residual"),
    KEY("hidden_dropout"),
    IDLE_KEY("classifier_dropout"),
    END_OF_KEYS,
};

#undef LAYER
#define LAYER "gpt_neox.layers.{l}."
static const struct hf_row gpt_neox_rows[] = {
    EMBED("gpt_neox.embed_in.weight"),
    NORM(LAYER "input_layernorm.weight", G "attn_norm.weight"),
    NORM(LAYER "input_layernorm.bias", G "attn_norm.bias"),
    NORM(LAYER "post_attention_layernorm.weight", G "mlp_norm.weight"),
    NORM(LAYER "post_attention_layernorm.bias", G "mlp_norm.bias"),
    {LAYER "attention.query_key_value.weight", G "attn.q.weight",
     D_QUERIES, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.weight", G "attn.k.weight",
     D_KEYS, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.weight", G "attn.v.weight",
     D_KEYS, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.q.bias", D_QUERIES, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.k.bias", D_KEYS, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.v.bias", D_KEYS, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.dense.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, ROWS},
    {LAYER "attention.dense.bias", G "attn.out.bias", D_HIDDEN, D_ONE, BIAS_OUT, ROWS},
    {LAYER "mlp.dense_h_to_4h.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.dense_h_to_4h.bias", G "mlp.up.bias", D_FFN, D_ONE, BIAS_MLP, ROWS},
    {LAYER "mlp.dense_4h_to_h.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, ROWS},
    {LAYER "mlp.dense_4h_to_h.bias", G "mlp.down.bias", D_HIDDEN, D_ONE, BIAS_MLP, ROWS},
    NORM("gpt_neox.final_layer_norm.weight", "norm.weight"),
    NORM("gpt_neox.final_layer_norm.bias", "norm.bias"),
    HEAD("embed_out.weight"),
};
/* clang-format on */

static void read_gpt_neox(struct hf_reader *h, struct hf_model *m)
{
    struct spec *s = &m->spec;
    s->hidden = hf_need_int(h, "hidden_size");
    s->layers = hf_need_int(h, "num_hidden_layers");
    s->heads = s->kv_heads = hf_need_int(h, "num_attention_heads");
    s->ffn = hf_need_int(h, "intermediate_size");
    s->max_positions = hf_need_int(h, "max_position_embeddings");
    s->norm = SPEC_LAYERNORM;
    s->norm_eps = hf_real(h, "layer_norm_eps", 1e-5);
    hf_read_act(h, "hidden_act", "gelu", false, s);
    s->tied = hf_bool(h, "tie_word_embeddings", false);
    s->attention_dropout = hf_real(h, "attention_dropout", 0);
    s->hidden_dropout = hf_real(h, "hidden_dropout", 0);
    m->qkv_bias = m->out_bias = hf_bool(h, "attention_bias", true);
    m->mlp_bias = true;
    hf_read_rope(h, 10000, s);
    if (!hf_get(h, "rotary_pct") && !hf_get(h, "partial_rotary_factor") &&
        !hf_get(h, "rope_parameters"))
        s->rope_percent = 0.25;
    s->parallel = hf_bool(h, "use_parallel_residual", true);
    if (!h->code && (s->heads < 1 || s->hidden % s->heads))
        h->code = err_set(h->e, ERR_DATA,
                          "%s: \"hidden_size\" %lld is not a multiple of \"num_attention_heads\" "
                          "%lld",
                          h->path, (long long)s->hidden, (long long)s->heads);
    if (!h->code)
        s->head_dim = s->hidden / s->heads;
}

static bool gpt_neox_fits(const struct spec *s)
{
    return !s->experts && s->norm == SPEC_LAYERNORM && s->position == SPEC_ROPE &&
           s->act != SPEC_SWIGLU && s->bias && s->kv_heads == s->heads && hf_fits_heads(s);
}

const struct hf_family_row hf_gpt_neox = {
    .architecture = "GPTNeoXForCausalLM",
    .bare = "GPTNeoXModel",
    .keys = {hf_keys_rope, gpt_neox_keys},
    .read = read_gpt_neox,
    HF_ROWS(gpt_neox_rows),
    .prefix = "gpt_neox.",
    .ignored = {".attention.bias", ".attention.masked_bias"},
    .fits = gpt_neox_fits,
};
