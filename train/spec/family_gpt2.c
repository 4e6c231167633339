/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* clang-format off */
static const struct hf_key gpt2_keys[] = {
    KEY("n_embd"),
    KEY("n_layer"),
    KEY("n_head"),
    KEY("n_inner"),
    KEY("n_positions"),
    KEY("n_ctx"),
    KEY("layer_norm_epsilon"),
    KEY("activation_function"),
    KEY("attn_pdrop"),
    KEY("resid_pdrop"),
    KEY("embd_pdrop"),
    KEY("scale_attn_weights"),
    KEY("scale_attn_by_inverse_layer_idx"),
    IDLE_KEY("reorder_and_upcast_attn"),
    IDLE_KEY("summary_activation"),
    IDLE_KEY("summary_first_dropout"),
    IDLE_KEY("summary_proj_to_labels"),
    IDLE_KEY("summary_type"),
    IDLE_KEY("summary_use_proj"),
    END_OF_KEYS,
};

#undef LAYER
#define LAYER "transformer.h.{l}."
static const struct hf_row gpt2_rows[] = {
    EMBED("transformer.wte.weight"),
    {"transformer.wpe.weight", "position.weight", D_POSITIONS, D_HIDDEN, ALWAYS, ROWS},
    NORM(LAYER "ln_1.weight", G "attn_norm.weight"),
    NORM(LAYER "ln_1.bias", G "attn_norm.bias"),
    {LAYER "attn.c_attn.weight", G "attn.q.weight", D_QUERIES, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.weight", G "attn.k.weight", D_KEYS, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.weight", G "attn.v.weight", D_KEYS, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.bias", G "attn.q.bias", D_QUERIES, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_attn.bias", G "attn.k.bias", D_KEYS, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_attn.bias", G "attn.v.bias", D_KEYS, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_proj.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, COLS},
    NORM(LAYER "attn.c_proj.bias", G "attn.out.bias"),
    NORM(LAYER "ln_2.weight", G "mlp_norm.weight"),
    NORM(LAYER "ln_2.bias", G "mlp_norm.bias"),
    {LAYER "mlp.c_fc.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, COLS},
    {LAYER "mlp.c_fc.bias", G "mlp.up.bias", D_FFN, D_ONE, ALWAYS, ROWS},
    {LAYER "mlp.c_proj.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, COLS},
    NORM(LAYER "mlp.c_proj.bias", G "mlp.down.bias"),
    NORM("transformer.ln_f.weight", "norm.weight"),
    NORM("transformer.ln_f.bias", "norm.bias"),
    HEAD("lm_head.weight"),
};

static const struct hf_gguf_row gguf_rows[] = {
    {"embed.weight", "token_embd.weight", HF_GGUF_PLAIN},
    {"position.weight", "position_embd.weight", HF_GGUF_PLAIN},
    {"norm.weight", "output_norm.weight", HF_GGUF_PLAIN},
    {"norm.bias", "output_norm.bias", HF_GGUF_PLAIN},
    {"head.weight", "output.weight", HF_GGUF_PLAIN},
    {"attn_norm.weight", "attn_norm.weight", HF_GGUF_PLAIN},
    {"attn_norm.bias", "attn_norm.bias", HF_GGUF_PLAIN},
    {"attn.q.weight", "attn_qkv.weight", HF_GGUF_PLAIN},
    {"attn.k.weight", "attn_qkv.weight", HF_GGUF_PLAIN},
    {"attn.v.weight", "attn_qkv.weight", HF_GGUF_PLAIN},
    {"attn.q.bias", "attn_qkv.bias", HF_GGUF_PLAIN},
    {"attn.k.bias", "attn_qkv.bias", HF_GGUF_PLAIN},
    {"attn.v.bias", "attn_qkv.bias", HF_GGUF_PLAIN},
    {"attn.out.weight", "attn_output.weight", HF_GGUF_PLAIN},
    {"attn.out.bias", "attn_output.bias", HF_GGUF_PLAIN},
    {"mlp_norm.weight", "ffn_norm.weight", HF_GGUF_PLAIN},
    {"mlp_norm.bias", "ffn_norm.bias", HF_GGUF_PLAIN},
    {"mlp.up.weight", "ffn_up.weight", HF_GGUF_PLAIN},
    {"mlp.up.bias", "ffn_up.bias", HF_GGUF_PLAIN},
    {"mlp.down.weight", "ffn_down.weight", HF_GGUF_PLAIN},
    {"mlp.down.bias", "ffn_down.bias", HF_GGUF_PLAIN},
    {NULL, NULL, HF_GGUF_PLAIN},
};
/* clang-format on */

static const struct hf_gguf gguf = {"gpt2", gguf_rows, false, 0};

static void read_gpt2(struct hf_reader *h, struct hf_model *m)
{
    struct spec *s = &m->spec;
    s->hidden = hf_need_int(h, "n_embd");
    s->layers = hf_need_int(h, "n_layer");
    s->heads = s->kv_heads = hf_need_int(h, "n_head");
    s->max_positions = hf_need_int(h, hf_get(h, "n_positions") ? "n_positions" : "n_ctx");
    s->ffn = hf_int(h, "n_inner", 4 * (s->hidden > 0 && s->hidden < 1 << 28 ? s->hidden : 1));
    s->norm = SPEC_LAYERNORM;
    s->norm_eps = hf_real(h, "layer_norm_epsilon", 1e-5);
    hf_read_act(h, "activation_function", "gelu_new", false, s);
    s->tied = hf_bool(h, "tie_word_embeddings", true);
    m->qkv_bias = m->out_bias = m->mlp_bias = true;
    if (!hf_bool(h, "scale_attn_weights", true))
        s->query_scalar = 1;
    if (hf_bool(h, "scale_attn_by_inverse_layer_idx", false))
        s->features |= SPEC_SCORE_LAYER;
    s->attention_dropout = hf_real(h, "attn_pdrop", 0.1);
    hf_read_hidden_dropout(h, 0.1, s);
    if (h->code)
        return;
    if (s->heads < 1 || s->hidden % s->heads)
        h->code =
            err_set(h->e, ERR_DATA, "%s: \"n_embd\" %lld is not a multiple of \"n_head\" %lld",
                    h->path, (long long)s->hidden, (long long)s->heads);
    else
        s->head_dim = s->hidden / s->heads;
}

static bool gpt2_fits(const struct spec *s)
{
    return !s->experts && s->norm == SPEC_LAYERNORM && s->position != SPEC_ROPE &&
           s->act != SPEC_SWIGLU && s->bias && !s->parallel && s->kv_heads == s->heads &&
           hf_fits_heads(s);
}

const struct hf_family_row hf_gpt2 = {
    .architecture = "GPT2LMHeadModel",
    .bare = "GPT2Model",
    .keys = {gpt2_keys},
    .read = read_gpt2,
    HF_ROWS(gpt2_rows),
    .prefix = "transformer.",
    .ignored = {".attn.bias", ".attn.masked_bias"},
    .fits = gpt2_fits,
    .gguf = &gguf,
};
