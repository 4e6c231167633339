/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hugging Face config.json to a spec. Keys that give the shape are needed; others have the default
 * of that family's configuration class in transformers. Whatever would make another model than the
 * one weft runs is refused by name, because to pass over it would train or run a different one.
 */

#include <stdio.h>
#include <string.h>

#include "train/spec/spec.h"

enum { CONFIG_MAX = 16 << 20 };

/* A config.json being read. After the first failure `code` is set and all getters give 0. */
struct hf {
    const struct json *o;
    const char *path;
    struct err *e;
    int code;
};

static const struct json *get(const struct hf *h, const char *key)
{
    const struct json *v = json_get(h->o, key);
    return v && v->kind != JSON_NULL ? v : NULL;
}

static void hf_config_refuse(struct hf *h, const char *key, const char *value, const char *why)
{
    if (!h->code)
        h->code = err_set(h->e, ERR_USAGE, "%s: \"%s\" is %s: %s", h->path, key, value, why);
}

static void malformed(struct hf *h, const char *key, const char *want)
{
    if (!h->code)
        h->code = err_set(h->e, ERR_DATA, "%s: \"%s\" is not %s", h->path, key, want);
}

static int64_t need_int(struct hf *h, const char *key)
{
    int64_t v = 0;
    if (!h->code)
        h->code = json_need_int(h->o, h->path, key, &v, h->e);
    return v;
}

static int64_t int_or(struct hf *h, const char *key, int64_t missing)
{
    const struct json *v = get(h, key);
    if (v && v->kind != JSON_INT)
        malformed(h, key, "a whole number");
    return v ? v->integer : missing;
}

static double real_or(struct hf *h, const char *key, double missing)
{
    const struct json *v = get(h, key);
    if (v && v->kind != JSON_INT && v->kind != JSON_REAL)
        malformed(h, key, "a number");
    return v ? v->real : missing;
}

static bool bool_or(struct hf *h, const char *key, bool missing)
{
    const struct json *v = get(h, key);
    if (v && v->kind != JSON_BOOL)
        malformed(h, key, "true or false");
    return v ? v->boolean : missing;
}

static const char *text_or(struct hf *h, const char *key, const char *missing)
{
    const struct json *v = get(h, key);
    if (v && v->kind != JSON_STRING)
        malformed(h, key, "a text");
    return v && v->kind == JSON_STRING ? v->string : missing;
}

static void refuse_true(struct hf *h, const char *key, bool missing, const char *why)
{
    if (bool_or(h, key, missing))
        hf_config_refuse(h, key, "true", why);
}

/* ---- what the families share --------------------------------------------------------------- */

static void read_act(struct hf *h, const char *key, const char *missing, struct spec *s)
{
    static const struct {
        const char *name;
        enum spec_act act;
    } acts[] = {{"gelu_new", SPEC_GELU_TANH},
                {"gelu_fast", SPEC_GELU_TANH},
                {"gelu_pytorch_tanh", SPEC_GELU_TANH},
                {"gelu", SPEC_GELU_ERF},
                {"gelu_python", SPEC_GELU_ERF},
                {"silu", SPEC_SWIGLU},
                {"swish", SPEC_SWIGLU}};
    const char *name = text_or(h, key, missing);
    bool gated = strcmp(missing, "silu") == 0;
    for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
        if (strcmp(name, acts[i].name) == 0 && (acts[i].act == SPEC_SWIGLU) == gated) {
            s->act = acts[i].act;
            return;
        }
    }
    hf_config_refuse(h, key, name,
                     gated ? "the gated MLP of this family runs with silu only"
                           : "the MLP of this family runs with gelu_new (tanh) or gelu (erf)");
}

static void read_scaling(struct hf *h, const char *key, struct spec *s)
{
    const struct json *v = get(h, key);
    if (!v || h->code)
        return;
    if (v->kind != JSON_OBJECT) {
        malformed(h, key, "an object");
        return;
    }
    struct hf in = {v, h->path, h->e, 0};
    const char *type = text_or(&in, "rope_type", text_or(&in, "type", "default"));
    s->rope_base = real_or(&in, "rope_theta", s->rope_base); /* transformers 5 keeps it here */
    s->rope_percent = real_or(&in, "partial_rotary_factor", s->rope_percent);
    if (strcmp(type, "llama3") == 0) {
        s->rope_scaling = SPEC_ROPE_LLAMA3;
        s->rope_factor = real_or(&in, "factor", 0);
        s->rope_low = real_or(&in, "low_freq_factor", 0);
        s->rope_high = real_or(&in, "high_freq_factor", 0);
        s->rope_old_length = need_int(&in, "original_max_position_embeddings");
    } else if (strcmp(type, "default") != 0) {
        hf_config_refuse(&in, key, type, "rotary scaling runs in the way of llama3 only");
    }
    h->code = in.code;
}

static void read_rope(struct hf *h, struct spec *s)
{
    s->position = SPEC_ROPE;
    s->rope_base = real_or(h, "rope_theta", 10000);
    s->rope_percent = real_or(h, "partial_rotary_factor", 1);
    read_scaling(h, "rope_scaling", s);
    read_scaling(h, "rope_parameters", s);
}

static void read_window(struct hf *h, const struct spec *s, int64_t missing)
{
    /* a missing key has the class's default, null says that there is no window */
    const struct json *v = json_get(h->o, "sliding_window");
    if (v && v->kind == JSON_NULL)
        return;
    int64_t window = int_or(h, "sliding_window", missing);
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)window);
    if (window < s->max_positions)
        hf_config_refuse(h, "sliding_window", value,
                         "weft attends to all positions before a token");
}

/* Llama, Mistral, Qwen 2: one inventory but for biases and windows. */
static void read_llama_like(struct hf *h, struct spec *s)
{
    s->hidden = need_int(h, "hidden_size");
    s->layers = need_int(h, "num_hidden_layers");
    s->heads = need_int(h, "num_attention_heads");
    s->ffn = need_int(h, "intermediate_size");
    s->max_positions = need_int(h, "max_position_embeddings");
    s->norm = SPEC_RMSNORM;
    read_act(h, "hidden_act", "silu", s);
    s->norm_eps = real_or(h, "rms_norm_eps", 1e-6);
    s->tied = bool_or(h, "tie_word_embeddings", false);
    s->attention_dropout = real_or(h, "attention_dropout", 0);
    read_rope(h, s);
    if (h->code)
        return;
    if (s->heads < 1 || s->hidden < 1) {
        malformed(h, s->heads < 1 ? "num_attention_heads" : "hidden_size", "above 0");
        return;
    }
    s->head_dim = int_or(h, "head_dim", s->hidden / s->heads);
}

/* ---- the families -------------------------------------------------------------------------- */

static void read_gpt2(struct hf *h, struct spec *s)
{
    s->hidden = need_int(h, "n_embd");
    s->layers = need_int(h, "n_layer");
    s->heads = s->kv_heads = need_int(h, "n_head");
    s->max_positions = need_int(h, get(h, "n_positions") ? "n_positions" : "n_ctx");
    s->ffn = int_or(h, "n_inner", 4 * (s->hidden > 0 && s->hidden < 1 << 28 ? s->hidden : 1));
    s->norm = SPEC_LAYERNORM;
    s->norm_eps = real_or(h, "layer_norm_epsilon", 1e-5);
    read_act(h, "activation_function", "gelu_new", s);
    s->tied = bool_or(h, "tie_word_embeddings", true);
    s->bias = true;
    s->attention_dropout = real_or(h, "attn_pdrop", 0.1);
    s->hidden_dropout = real_or(h, "resid_pdrop", 0.1);
    if (real_or(h, "embd_pdrop", 0.1) != s->hidden_dropout)
        hf_config_refuse(h, "embd_pdrop", "another than \"resid_pdrop\"",
                         "weft has one dropout for both");
    if (!bool_or(h, "scale_attn_weights", true))
        hf_config_refuse(h, "scale_attn_weights", "false",
                         "weft always scales by the head's width");
    refuse_true(h, "scale_attn_by_inverse_layer_idx", false, "weft scales all layers alike");
    refuse_true(h, "add_cross_attention", false, "weft has no cross attention");
    if (h->code)
        return;
    if (s->heads < 1 || s->hidden % s->heads) {
        h->code =
            err_set(h->e, ERR_DATA, "%s: \"n_embd\" %lld is not a multiple of \"n_head\" %lld",
                    h->path, (long long)s->hidden, (long long)s->heads);
        return;
    }
    s->head_dim = s->hidden / s->heads;
}

static void read_llama(struct hf *h, struct spec *s)
{
    read_llama_like(h, s);
    s->kv_heads = int_or(h, "num_key_value_heads", s->heads);
    s->bias = bool_or(h, "attention_bias", false);
    if (bool_or(h, "mlp_bias", false) != s->bias)
        hf_config_refuse(
            h, "mlp_bias", "another than \"attention_bias\"",
            "weft has biases on all linear layers or on queries, keys and values alone");
}

static void read_mistral(struct hf *h, struct spec *s)
{
    read_llama_like(h, s);
    s->kv_heads = int_or(h, "num_key_value_heads", 8);
    read_window(h, s, 4096);
}

static void read_qwen2(struct hf *h, struct spec *s)
{
    read_llama_like(h, s);
    s->kv_heads = int_or(h, "num_key_value_heads", 32);
    s->qkv_bias = true;
    if (bool_or(h, "use_sliding_window", false))
        read_window(h, s, 4096);
}

static const struct family {
    const char *type, *architecture, *bare;
    void (*read)(struct hf *h, struct spec *s);
} families[] = {
    {"gpt2", "GPT2LMHeadModel", "GPT2Model", read_gpt2},
    {"llama", "LlamaForCausalLM", "LlamaModel", read_llama},
    {"mistral", "MistralForCausalLM", "MistralModel", read_mistral},
    {"qwen2", "Qwen2ForCausalLM", "Qwen2Model", read_qwen2},
};

static const struct family *find_family(struct hf *h)
{
    const char *type = NULL;
    if (!h->code)
        h->code = json_need_str(h->o, h->path, "model_type", &type, h->e);
    for (size_t i = 0; !h->code && i < sizeof(families) / sizeof(families[0]); i++)
        if (strcmp(type, families[i].type) == 0)
            return &families[i];
    if (type)
        hf_config_refuse(h, "model_type", type, "weft runs gpt2, llama, mistral and qwen2");
    return NULL;
}

static void check_architecture(struct hf *h, const struct family *f)
{
    const struct json *v = get(h, "architectures");
    if (!v)
        return;
    if (v->kind != JSON_ARRAY || !v->length || v->child[0].kind != JSON_STRING) {
        malformed(h, "architectures", "an array of texts");
        return;
    }
    const char *name = v->child[0].string;
    if (strcmp(name, f->architecture) != 0 && strcmp(name, f->bare) != 0)
        hf_config_refuse(h, "architectures", name,
                         "weft runs language models, with a head over the vocabulary");
}

static int read_root(struct hf *h, struct spec *ret)
{
    struct spec s = {0};
    const struct family *f = find_family(h);
    if (f) {
        check_architecture(h, f);
        f->read(h, &s);
        s.vocab = s.padded_vocab = need_int(h, "vocab_size");
        s.init_std = real_or(h, "initializer_range", 0.02);
    }
    if (h->code)
        return h->code;
    spec_settle(&s);
    if (spec_check(&s, h->e))
        return err_wrap(h->e, "%s", h->path);
    *ret = s;
    return 0;
}

int spec_from_hf(const char *path, struct spec *ret, struct err *e)
{
    struct json_doc *doc;
    int code = json_open(path, CONFIG_MAX, &doc, e);
    if (code)
        return code;
    struct hf h = {json_root(doc), path, e, 0};
    code = h.o->kind == JSON_OBJECT ? read_root(&h, ret)
                                    : err_set(e, ERR_DATA, "%s: not a JSON object", path);
    json_close(doc);
    return code;
}
