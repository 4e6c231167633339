/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hugging Face config.json to a model. Keys that give the shape are needed; others have the default
 * of that family's configuration class in transformers.
 */

#include <string.h>

#include "train/spec/hf_read.h"

enum { CONFIG_MAX = 16 << 20 };

/* ---- what families share ------------------------------------------------------------------- */

static void read_act(struct hf_reader *h, const char *key, const char *missing, bool gated,
                     struct spec *s)
{
    static const struct {
        const char *name;
        enum spec_act act;
    } acts[] = {{"gelu_new", SPEC_GELU_TANH},
                {"gelu_fast", SPEC_GELU_TANH},
                {"gelu_pytorch_tanh", SPEC_GELU_TANH},
                {"gelu_python_tanh", SPEC_GELU_TANH},
                {"gelu_accurate", SPEC_GELU_TANH},
                {"gelu", SPEC_GELU_ERF},
                {"gelu_python", SPEC_GELU_ERF},
                {"silu", SPEC_SWIGLU},
                {"swish", SPEC_SWIGLU}};
    /* what else transformers has; train runs none of them */
    static const char *const others[] = {"gelu_10",      "hardswish", "laplace",    "leaky_relu",
                                         "linear",       "mish",      "quick_gelu", "relu",
                                         "relu2",        "relu6",     "sigmoid",    "silu",
                                         "sqrtsoftplus", "swish",     "tanh"};
    const char *name = hf_text(h, key, missing);
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(name, acts[i].name) != 0 || (acts[i].act == SPEC_SWIGLU && !gated))
            continue;
        s->act = !gated                          ? acts[i].act
                 : acts[i].act == SPEC_SWIGLU    ? SPEC_SWIGLU
                 : acts[i].act == SPEC_GELU_TANH ? SPEC_GEGLU_TANH
                                                 : SPEC_GEGLU_ERF;
        return;
    }
    s->act = gated ? SPEC_SWIGLU : SPEC_GELU_TANH;
    s->features |= SPEC_OTHER_ACT;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (!strcmp(name, others[i]))
            return;
    hf_refuse(h, key, name, "transformers has no such activation without weights of its own");
}

/* The layers with a window, where "layer_types" lists them. */
static void read_layer_types(struct hf_reader *h, const struct json *v, const struct spec *s,
                             struct spec_layers *ret)
{
    *ret = (struct spec_layers){0};
    if (v->kind != JSON_ARRAY) {
        hf_malformed(h, "layer_types", "an array of texts");
        return;
    }
    if ((int64_t)v->length != s->layers) {
        hf_malformed(h, "layer_types", "as long as there are layers");
        return;
    }
    for (size_t i = 0; i < v->length && i < SPEC_LAYERS_MAX && !h->code; i++) {
        const struct json *t = &v->child[i];
        if (t->kind != JSON_STRING)
            hf_malformed(h, "layer_types", "an array of texts");
        else if (!strcmp(t->string, "sliding_attention"))
            spec_layers_add(ret, (int64_t)i);
        else if (strcmp(t->string, "full_attention"))
            hf_refuse(h, "layer_types", t->string, "this type of layer is not known");
    }
}

/* Layers with a window: of each `every` all but the last, from `first` on; every 0: all. */
static struct spec_layers window_layers(const struct spec *s, int64_t first, int64_t every)
{
    struct spec_layers p = {0};
    for (int64_t l = first > 0 ? first : 0; l < s->layers && l < SPEC_LAYERS_MAX; l++)
        if (!every || (l + 1) % every)
            spec_layers_add(&p, l);
    return p;
}

/* A window over fewer positions than the model has, of layers that are listed, or else of these. */
static void read_window(struct hf_reader *h, int64_t missing, struct spec_layers layers,
                        struct spec *s)
{
    /* a missing key has the class's default, null says that there is no window */
    const struct json *v = json_get(h->o, "sliding_window"), *types = hf_get(h, "layer_types");
    static const struct spec_layers none;
    if (types)
        read_layer_types(h, types, s, &layers);
    s->windowed = layers;
    if ((v && v->kind == JSON_NULL) || h->code || !memcmp(&layers, &none, sizeof(none)))
        return;
    int64_t window = hf_int(h, "sliding_window", missing);
    if (window < 0)
        hf_malformed(h, "sliding_window", "0 or more");
    if (window < s->max_positions)
        s->window = window;
}

/* Sizes and norms under the names of Llama. */
static void read_llama_like(struct hf_reader *h, struct hf_model *m, double eps, double theta)
{
    struct spec *s = &m->spec;
    s->hidden = hf_need_int(h, "hidden_size");
    s->layers = hf_need_int(h, "num_hidden_layers");
    s->heads = hf_need_int(h, "num_attention_heads");
    s->ffn = hf_need_int(h, "intermediate_size");
    s->max_positions = hf_need_int(h, "max_position_embeddings");
    s->norm = SPEC_RMSNORM;
    s->norm_eps = hf_real(h, "rms_norm_eps", eps);
    s->tied = hf_bool(h, "tie_word_embeddings", false);
    s->attention_dropout = hf_real(h, "attention_dropout", 0);
    hf_read_rope(h, theta, s);
    if (h->code)
        return;
    if (s->heads < 1 || s->hidden < 1) {
        hf_malformed(h, s->heads < 1 ? "num_attention_heads" : "hidden_size", "above 0");
        return;
    }
    s->head_dim = hf_int(h, "head_dim", s->hidden / s->heads);
    m->qkv_bias = m->out_bias = hf_bool(h, "attention_bias", false);
}

static void read_silu(struct hf_reader *h, struct hf_model *m)
{
    read_act(h, "hidden_act", "silu", true, &m->spec);
}

/* ---- dense families ------------------------------------------------------------------------ */

static void read_hidden_dropout(struct hf_reader *h, double def, struct spec *s)
{
    s->hidden_dropout = hf_real(h, "resid_pdrop", def);
    if (hf_real(h, "embd_pdrop", def) != s->hidden_dropout)
        hf_refuse(h, "embd_pdrop", "another than \"resid_pdrop\"", "weft has one dropout for both");
}

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
    read_act(h, "activation_function", "gelu_new", false, s);
    s->tied = hf_bool(h, "tie_word_embeddings", true);
    m->qkv_bias = m->out_bias = m->mlp_bias = true;
    if (!hf_bool(h, "scale_attn_weights", true))
        s->query_scalar = 1;
    if (hf_bool(h, "scale_attn_by_inverse_layer_idx", false))
        s->features |= SPEC_SCORE_LAYER;
    s->attention_dropout = hf_real(h, "attn_pdrop", 0.1);
    read_hidden_dropout(h, 0.1, s);
    if (h->code)
        return;
    if (s->heads < 1 || s->hidden % s->heads)
        h->code =
            err_set(h->e, ERR_DATA, "%s: \"n_embd\" %lld is not a multiple of \"n_head\" %lld",
                    h->path, (long long)s->hidden, (long long)s->heads);
    else
        s->head_dim = s->hidden / s->heads;
}

static void read_llama(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", m->spec.heads);
    m->mlp_bias = hf_bool(h, "mlp_bias", false);
}

static void read_mistral(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 8);
    m->qkv_bias = m->out_bias = false;
    read_window(h, 4096, window_layers(&m->spec, 0, 0), &m->spec);
}

/* Qwen's window is that of the layers from max_window_layers on, once it is used. */
static void read_qwen_window(struct hf_reader *h, int64_t max_window_layers, struct spec *s)
{
    bool used = hf_bool(h, "use_sliding_window", false);
    int64_t first = hf_int(h, "max_window_layers", max_window_layers);
    if (used)
        read_window(h, 4096, window_layers(s, first, 0), s);
}

static void read_qwen2(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 32);
    m->qkv_bias = true;
    m->out_bias = false;
    read_qwen_window(h, 28, &m->spec);
}

static void read_qwen3(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 32);
    m->spec.head_dim = hf_int(h, "head_dim", 128);
    m->spec.qk_norm = true;
    read_qwen_window(h, 28, &m->spec);
}

static void read_phi3(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-5, 10000);
    read_silu(h, m);
    read_hidden_dropout(h, 0, &m->spec);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", m->spec.heads);
    m->qkv_bias = m->out_bias = false;
    if (hf_bool(h, "attention_bias", false))
        hf_refuse(h, "attention_bias", "true", "Phi-3 has no biases");
    read_window(h, 0, window_layers(&m->spec, 0, 0), &m->spec);
}

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
    read_act(h, "hidden_act", "gelu", false, s);
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

/* ---- Gemma --------------------------------------------------------------------------------- */

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
    read_llama_like(h, m, 1e-6, theta);
    s->tied = hf_bool(h, "tie_word_embeddings", true);
    s->head_dim = hf_int(h, "head_dim", 256);
    s->kv_heads = hf_int(h, "num_key_value_heads", 4);
    /* "hidden_act" says gelu in some files and was never read */
    read_act(h, "hidden_activation", "gelu_pytorch_tanh", true, s);
    s->post_norm = s->zero_centered = s->embed_scale = true;
    s->score_cap = read_cap(h, "attn_logit_softcapping", cap[0]);
    s->head_cap = read_cap(h, "final_logit_softcapping", cap[1]);
    s->query_scalar = hf_real(h, "query_pre_attn_scalar", 256);
    if (!(s->query_scalar > 0))
        hf_malformed(h, "query_pre_attn_scalar", "above 0");
    read_window(h, 4096, window_layers(s, 0, every), s);
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

/* ---- mixtures of experts ------------------------------------------------------------------- */

static void read_mixtral(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-5, 1000000);
    read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 8);
    m->qkv_bias = m->out_bias = false;
    m->spec.experts = hf_int(h, "num_local_experts", 8);
    m->spec.expert_ffn = m->spec.ffn;
    m->spec.topk = hf_int(h, "num_experts_per_tok", 2);
    m->spec.balance_coeff = hf_real(h, "router_aux_loss_coef", 0.001);
    read_window(h, 0, window_layers(&m->spec, 0, 0), &m->spec);
}

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
static void read_moe_window(struct hf_reader *h, struct hf_model *m)
{
    bool used = hf_bool(h, "use_sliding_window", false), all = m->family == HF_QWEN3_MOE;
    int64_t first = hf_int(h, "max_window_layers", 28);
    struct spec_layers layers = {0};
    for (int64_t l = 0; l < m->spec.layers && l < SPEC_LAYERS_MAX; l++)
        if (all || (l < first && l % 2 == 0))
            spec_layers_add(&layers, l);
    if (!used)
        return;
    read_window(h, 4096, layers, &m->spec);
    if (all && !h->code && memcmp(&m->spec.windowed, &layers, sizeof(layers)) != 0)
        hf_refuse(h, "layer_types", "full_attention",
                  "with \"use_sliding_window\" all layers of this family have the window");
}

static void read_qwen_moe(struct hf_reader *h, struct hf_model *m, int64_t experts, int64_t ffn,
                          int64_t topk)
{
    read_silu(h, m);
    m->spec.experts =
        hf_int(h, hf_get(h, "num_experts") ? "num_experts" : "num_local_experts", experts);
    m->spec.expert_ffn = hf_int(h, "moe_intermediate_size", ffn);
    m->spec.topk = hf_int(h, "num_experts_per_tok", topk);
    m->spec.route_before = !hf_bool(h, "norm_topk_prob", false);
    m->spec.balance_coeff = hf_real(h, "router_aux_loss_coef", 0.001);
    read_dense(h, m);
    read_moe_window(h, m);
}

static void read_qwen2_moe(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 16);
    m->qkv_bias = hf_bool(h, "qkv_bias", true);
    m->out_bias = false;
    read_qwen_moe(h, m, 60, 1408, 4);
    m->spec.shared_ffn = hf_int(h, "shared_expert_intermediate_size", 5632);
    m->spec.shared_gate = m->spec.shared_ffn > 0;
}

static void read_qwen3_moe(struct hf_reader *h, struct hf_model *m)
{
    read_llama_like(h, m, 1e-6, 10000);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 4);
    m->spec.qk_norm = true;
    read_qwen_moe(h, m, 128, 768, 8);
}

/* ---- the families -------------------------------------------------------------------------- */

static const struct hf_reader_of {
    const char *type, *architecture, *bare;
    void (*read)(struct hf_reader *h, struct hf_model *m);
} readers[HF_FAMILIES] = {
    [HF_GPT2] = {"gpt2", "GPT2LMHeadModel", "GPT2Model", read_gpt2},
    [HF_LLAMA] = {"llama", "LlamaForCausalLM", "LlamaModel", read_llama},
    [HF_MISTRAL] = {"mistral", "MistralForCausalLM", "MistralModel", read_mistral},
    [HF_QWEN2] = {"qwen2", "Qwen2ForCausalLM", "Qwen2Model", read_qwen2},
    [HF_GPT_NEOX] = {"gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXModel", read_gpt_neox},
    [HF_QWEN3] = {"qwen3", "Qwen3ForCausalLM", "Qwen3Model", read_qwen3},
    [HF_MIXTRAL] = {"mixtral", "MixtralForCausalLM", "MixtralModel", read_mixtral},
    [HF_QWEN2_MOE] = {"qwen2_moe", "Qwen2MoeForCausalLM", "Qwen2MoeModel", read_qwen2_moe},
    [HF_QWEN3_MOE] = {"qwen3_moe", "Qwen3MoeForCausalLM", "Qwen3MoeModel", read_qwen3_moe},
    [HF_PHI3] = {"phi3", "Phi3ForCausalLM", "Phi3Model", read_phi3},
    [HF_GEMMA2] = {"gemma2", "Gemma2ForCausalLM", "Gemma2Model", read_gemma2},
    [HF_GEMMA3] = {"gemma3_text", "Gemma3ForCausalLM", "Gemma3TextModel", read_gemma3},
};

const char *hf_family_name(enum hf_family f)
{
    return readers[f].type;
}

const char *hf_family_architecture(enum hf_family f)
{
    return readers[f].architecture;
}

static enum hf_family find_family(struct hf_reader *h)
{
    const char *type = NULL;
    struct buf all = {0};
    if (!h->code)
        h->code = json_need_str(h->o, h->path, "model_type", &type, h->e);
    for (int i = 0; type && i < HF_FAMILIES; i++)
        if (strcmp(type, readers[i].type) == 0)
            return (enum hf_family)i;
    for (int i = 0; i < HF_FAMILIES; i++)
        buf_addf(&all, "%s%s", i ? ", " : "weft knows ", readers[i].type);
    if (type)
        hf_refuse(h, "model_type", type, buf_str(&all));
    buf_finish(&all);
    return HF_FAMILIES;
}

static void check_architecture(struct hf_reader *h, enum hf_family f)
{
    const struct json *v = hf_get(h, "architectures");
    if (!v || h->code)
        return;
    if (v->kind != JSON_ARRAY || !v->length || v->child[0].kind != JSON_STRING) {
        hf_malformed(h, "architectures", "an array of texts");
        return;
    }
    const char *name = v->child[0].string;
    if (strcmp(name, readers[f].architecture) != 0 && strcmp(name, readers[f].bare) != 0)
        hf_refuse(h, "architectures", name,
                  "weft converts language models, with a head over the vocabulary");
}

/* Biases as the spec has them: on all linear layers, on queries, keys and values, or neither. */
static void settle(struct hf_model *m)
{
    struct spec *s = &m->spec;
    s->bias = m->qkv_bias && m->out_bias && m->mlp_bias;
    s->qkv_bias = m->qkv_bias && !m->out_bias && !m->mlp_bias;
    if (!s->bias && !s->qkv_bias && (m->qkv_bias || m->out_bias || m->mlp_bias))
        s->features |= SPEC_PART_BIAS;
    if (s->experts && s->topk == 1 && !s->route_before)
        s->features |= SPEC_ROUTE_ONE;
    spec_settle(s);
}

static int check_model(struct hf_reader *h, const struct hf_model *m)
{
    if (spec_check(&m->spec, h->e)) {
        if (h->e)
            h->e->code = ERR_DATA;
        err_wrap(h->e, "%s", h->path);
        return ERR_DATA;
    }
    return 0;
}

static int read_root(struct hf_reader *h, const struct hf_ignore *ignore, struct hf_model *ret)
{
    enum hf_family f = find_family(h);
    if (h->code)
        return h->code;
    *ret = (struct hf_model){.family = f};
    check_architecture(h, f);
    hf_check_keys(h, f, ignore);
    if (!h->code)
        readers[f].read(h, ret);
    ret->spec.vocab = ret->spec.padded_vocab = hf_need_int(h, "vocab_size");
    ret->spec.init_std = hf_real(h, "initializer_range", 0.02);
    settle(ret);
    return h->code ? h->code : check_model(h, ret);
}

static int read_doc(const char *name, struct json_doc *doc, const struct hf_ignore *ignore,
                    struct hf_model *ret, struct err *e)
{
    struct hf_reader h = {json_root(doc), name, e, 0};
    int code = h.o->kind == JSON_OBJECT ? read_root(&h, ignore, ret)
                                        : err_set(e, ERR_DATA, "%s: not a JSON object", name);
    json_close(doc);
    return code;
}

int hf_config_open(const char *path, const struct hf_ignore *ignore, struct hf_model *ret,
                   struct err *e)
{
    struct json_doc *doc;
    int code = json_open(path, CONFIG_MAX, &doc, e);
    return code ? code : read_doc(path, doc, ignore, ret, e);
}

int hf_config_parse(const char *name, const char *text, size_t n, const struct hf_ignore *ignore,
                    struct hf_model *ret, struct err *e)
{
    struct json_doc *doc;
    int code = json_parse(name, text, n, &doc, e);
    return code ? code : read_doc(name, doc, ignore, ret, e);
}
