/* SPDX-License-Identifier: Apache-2.0 */

/* Gemma 2 and Gemma 3 (of text alone). */

#include "train/spec/family.h"

/* clang-format off */
static const struct hf_key gemma_keys[] = {
    KEY("hidden_activation"),
    KEY("attn_logit_softcapping"),
    KEY("final_logit_softcapping"),
    KEY("query_pre_attn_scalar"),
    IDLE_KEY("cache_implementation"),
    {"use_bidirectional_attention", ONLY, "false", "weft's models are causal"},
    END_OF_KEYS,
};

static const struct hf_key gemma3_keys[] = {
    KEY("rope_local_base_freq"),
    KEY("sliding_window_pattern"),
    KEY("_sliding_window_pattern"),
    END_OF_KEYS,
};

static const struct hf_row gemma_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION, MLP,
    NORM(LAYER "input_layernorm.weight", G "attn_norm.weight"),
    NORM(LAYER "post_attention_layernorm.weight", G "attn_post_norm.weight"),
    NORM(LAYER "pre_feedforward_layernorm.weight", G "mlp_norm.weight"),
    NORM(LAYER "post_feedforward_layernorm.weight", G "mlp_post_norm.weight"),
    END_OF_MODEL,
};
/* clang-format on */

/* Null: none. */
static double read_cap(struct hf_reader *h, const char *key, double missing)
{
    const struct json *v = json_get(h->o, key);
    double cap = v ? hf_real(h, key, 0) : missing;
    if (!(cap >= 0))
        hf_malformed(h, key, "0 or more");
    return cap;
}

/* Missing caps are those of the attention and of the head; of `every` layers the last one has no
 * window. */
static void read_gemma(struct hf_reader *h, struct hf_model *m, const double cap[2], double theta,
                       int64_t every)
{
    struct spec *s = &m->spec;
    hf_read_llama_like(h, m, 1e-6, theta);
    s->tied = hf_bool(h, "tie_word_embeddings", true);
    s->head_dim = hf_int(h, "head_dim", 256);
    s->kv_heads = hf_int(h, "num_key_value_heads", 4);
    /* "hidden_act" says gelu in some files and was never read */
    hf_read_act(h, "hidden_activation", "gelu_pytorch_tanh", true, s);
    s->post_norm = s->zero_centered = s->embed_scale = true;
    s->score_cap = read_cap(h, "attn_logit_softcapping", cap[0]);
    s->head_cap = read_cap(h, "final_logit_softcapping", cap[1]);
    s->query_scalar = hf_real(h, "query_pre_attn_scalar", 256);
    if (!(s->query_scalar > 0))
        hf_malformed(h, "query_pre_attn_scalar", "above 0");
    hf_read_window(h, 4096, hf_window_layers(s, 0, every), s);
}

static void read_gemma2(struct hf_reader *h, struct hf_model *m)
{
    read_gemma(h, m, (const double[]){50, 30}, 10000, 2);
}

static void read_gemma3(struct hf_reader *h, struct hf_model *m)
{
    const char *key =
        hf_get(h, "sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    int64_t every = hf_int(h, key, 6);
    if (every < 1)
        hf_malformed(h, key, "above 0");
    read_gemma(h, m, (const double[]){0, 0}, 1000000, every < 1 ? 1 : every);
    m->spec.score_cap = 0; /* transformers keeps the key and does not pass it on to attention */
    m->spec.qk_norm = true;
    double local = hf_real(h, "rope_local_base_freq", 10000), *base = &m->spec.rope_local_base;
    if (*base > 0 && hf_get(h, "rope_local_base_freq") && *base != local)
        hf_refuse(h, "rope_local_base_freq", "another", "\"rope_parameters\" has another base");
    *base = *base > 0 ? *base : local;
}

const struct hf_family_row hf_gemma2 = {
    .architecture = "Gemma2ForCausalLM",
    .bare = "Gemma2Model",
    .keys = {hf_keys_rope, hf_keys_llama, gemma_keys},
    .read = read_gemma2,
    HF_ROWS(gemma_rows),
    .prefix = "model.",
};

const struct hf_family_row hf_gemma3 = {
    .architecture = "Gemma3ForCausalLM",
    .bare = "Gemma3TextModel",
    .keys = {hf_keys_rope, hf_keys_llama, gemma_keys, gemma3_keys},
    .read = read_gemma3,
    HF_ROWS(gemma_rows),
    .prefix = "model.",
    .rope_by_type = true,
};
