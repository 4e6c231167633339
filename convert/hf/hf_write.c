/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_write.h"

#include <string.h>

#include "base/format/json.h"

struct family_writer {
    /* the configuration of a model that never had one, and what the family has in it */
    void (*put_new)(const struct hf_model *m, struct buf *b);
    void (*put_own)(const struct hf_model *m, struct buf *b);
    /* what only it has in the spelling of transformers 4; `put_scaling`: members of rope_scaling */
    void (*put_older)(struct buf *b, const struct json *o, const struct hf_model *m);
    void (*put_scaling)(struct buf *b, const struct json *of);
};
static const struct family_writer writers[HF_FAMILIES];

/* ---- members of an object ------------------------------------------------------------------ */

static void put_key(struct buf *b, const char *key)
{
    buf_adds(b, b->len && b->data[b->len - 1] != '{' ? ",\n  " : "\n  ");
    jsonw_key(b, key);
    buf_addc(b, ' ');
}

static void put_text(struct buf *b, const char *key, const char *value)
{
    put_key(b, key);
    jsonw_string(b, value, strlen(value));
}

static void put_int(struct buf *b, const char *key, int64_t v)
{
    put_key(b, key);
    buf_addf(b, "%lld", (long long)v);
}

static void put_real(struct buf *b, const char *key, double v)
{
    put_key(b, key);
    jsonw_real(b, v);
}

static void put_bool(struct buf *b, const char *key, bool v)
{
    put_key(b, key);
    buf_adds(b, v ? "true" : "false");
}

static void put_id(struct buf *b, const char *key, int64_t id)
{
    put_key(b, key);
    if (id < 0)
        buf_adds(b, "null");
    else
        buf_addf(b, "%lld", (long long)id);
}

static void put_json(struct buf *b, const struct json *v)
{
    switch (v->kind) {
    case JSON_NULL:
        buf_adds(b, "null");
        return;
    case JSON_BOOL:
        buf_adds(b, v->boolean ? "true" : "false");
        return;
    case JSON_INT:
        buf_addf(b, "%lld", (long long)v->integer);
        return;
    case JSON_REAL:
        jsonw_real(b, v->real);
        return;
    case JSON_STRING:
        jsonw_string(b, v->string, v->length);
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    buf_addc(b, v->kind == JSON_ARRAY ? '[' : '{');
    for (size_t i = 0; i < v->length; i++) {
        buf_adds(b, i ? ", " : "");
        if (v->kind == JSON_OBJECT) {
            jsonw_key(b, v->child[i].key);
            buf_addc(b, ' ');
        }
        put_json(b, &v->child[i]);
    }
    buf_addc(b, v->kind == JSON_ARRAY ? ']' : '}');
}

/* ---- rotary positions in both spellings ---------------------------------------------------- */

static const struct json *member(const struct json *o, const char *key)
{
    const struct json *v = json_get(o, key);
    return v && v->kind != JSON_NULL ? v : NULL;
}

/* The members of a scaling but those that have a key of their own in the older spelling. */
static size_t put_scaling(struct buf *b, const struct json *v, const char *comma)
{
    size_t n = 0;
    for (size_t i = 0; v && i < v->length; i++) {
        const char *key = v->child[i].key;
        if (!strcmp(key, "rope_theta") || !strcmp(key, "partial_rotary_factor") ||
            !strcmp(key, "type"))
            continue;
        buf_adds(b, n++ ? ", " : comma);
        jsonw_key(b, key);
        buf_addc(b, ' ');
        put_json(b, &v->child[i]);
    }
    return n;
}

static void put_parameters(struct buf *b, double theta, double percent, const struct json *scaling)
{
    const struct json *type = scaling ? member(scaling, "rope_type") : NULL;
    if (scaling && !type)
        type = member(scaling, "type");
    buf_adds(b, "{\"rope_theta\": ");
    jsonw_real(b, theta);
    if (percent != 1) {
        buf_adds(b, ", \"partial_rotary_factor\": ");
        jsonw_real(b, percent);
    }
    if (!scaling || !member(scaling, "rope_type")) {
        buf_adds(b, ", \"rope_type\": ");
        if (type)
            put_json(b, type);
        else
            buf_adds(b, "\"default\"");
    }
    put_scaling(b, scaling, ", ");
    buf_addc(b, '}');
}

static double real_of(const struct json *o, const char *key, double missing)
{
    const struct json *v = o ? member(o, key) : NULL;
    return v ? v->real : missing;
}

/* What transformers 5 writes, from what transformers 4 wrote. */
static void add_newer(struct buf *b, const struct json *o, const struct hf_model *m)
{
    const struct spec *s = &m->spec;
    put_key(b, "rope_parameters");
    if (!hf_family_rope_by_type(m->family)) {
        put_parameters(b, s->rope_base, s->rope_percent, member(o, "rope_scaling"));
        return;
    }
    buf_adds(b, "{\"full_attention\": ");
    put_parameters(b, s->rope_base, 1, member(o, "rope_scaling"));
    buf_adds(b, ", \"sliding_attention\": ");
    put_parameters(b, real_of(o, "rope_local_base_freq", 10000), 1, NULL);
    buf_addc(b, '}');
}

/* Phi-3 of transformers 4 takes these three members and no others. */
static void put_phi3_scaling(struct buf *b, const struct json *of)
{
    static const char *const lists[] = {"short_factor", "long_factor"};
    jsonw_key(b, "type");
    buf_addc(b, ' ');
    put_json(b, member(of, "rope_type"));
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
        const struct json *v = member(of, lists[i]);
        if (!v)
            continue;
        buf_adds(b, ", ");
        jsonw_key(b, lists[i]);
        buf_addc(b, ' ');
        put_json(b, v);
    }
}

static void put_neox_older(struct buf *b, const struct json *o, const struct hf_model *m)
{
    if (!json_get(o, "rotary_emb_base"))
        put_real(b, "rotary_emb_base", m->spec.rope_base);
    if (!json_get(o, "rotary_pct"))
        put_real(b, "rotary_pct", m->spec.rope_percent);
}

/* What transformers 4 reads, from what transformers 5 wrote. */
static void add_older(struct buf *b, const struct json *o, const struct hf_model *m)
{
    const struct json *p = member(o, "rope_parameters");
    const struct json *full = p ? member(p, "full_attention") : NULL;
    const struct json *local = p ? member(p, "sliding_attention") : NULL;
    const struct json *of = full ? full : local ? NULL : p;
    const struct json *type = of ? member(of, "rope_type") : NULL;
    const struct family_writer *w = &writers[m->family];
    if (!json_get(o, "rope_theta"))
        put_real(b, "rope_theta", m->spec.rope_base);
    if (w->put_older)
        w->put_older(b, o, m);
    if (m->spec.rope_percent != 1 && !json_get(o, "partial_rotary_factor"))
        put_real(b, "partial_rotary_factor", m->spec.rope_percent);
    if (local && !json_get(o, "rope_local_base_freq"))
        put_real(b, "rope_local_base_freq", real_of(local, "rope_theta", 10000));
    if (json_get(o, "rope_scaling"))
        return;
    put_key(b, "rope_scaling");
    if (!type || type->kind != JSON_STRING || !strcmp(type->string, "default")) {
        buf_adds(b, "null");
        return;
    }
    buf_addc(b, '{');
    if (w->put_scaling)
        w->put_scaling(b, of);
    else
        put_scaling(b, of, "");
    buf_addc(b, '}');
}

/* ---- a text that is changed ---------------------------------------------------------------- */

/* The end of a JSON string that begins at p. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p + 1;
}

/* The end of a value that begins at p. */
static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;
    do {
        if (*p == '"')
            p = skip_string(p, end) - 1;
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
    } while (p < end && (depth || !strchr(",}] \t\r\n", *p)));
    return p;
}

bool hf_text_find(const char *text, size_t n, const char *key, size_t *ret_at, size_t *ret_n)
{
    const char *end = text + n;
    int depth = 0;
    bool at_key = true;
    for (const char *p = text; p < end; p++) {
        if (*p == '{' || *p == '[')
            depth++;
        else if (*p == '}' || *p == ']')
            depth--;
        else if (*p == ',' && depth == 1)
            at_key = true;
        if (*p != '"')
            continue;
        const char *after = skip_string(p, end);
        bool is = depth == 1 && at_key && (size_t)(after - p - 2) == strlen(key) &&
                  !strncmp(p + 1, key, strlen(key));
        at_key = at_key && depth != 1;
        p = after - 1;
        if (!is)
            continue;
        while (p < end && *p != ':')
            p++;
        for (p++; p < end && strchr(" \t\r\n", *p);)
            p++;
        *ret_at = (size_t)(p - text);
        *ret_n = (size_t)(skip_value(p, end) - p);
        return true;
    }
    return false;
}

void hf_text_set(struct buf *b, const char *key, const struct buf *value)
{
    size_t at, n;
    struct buf again = {0};
    if (!hf_text_find(b->data, b->len, key, &at, &n))
        return;
    buf_add(&again, b->data, at);
    buf_add(&again, value->data, value->len);
    buf_add(&again, b->data + at + n, b->len - at - n);
    buf_finish(b);
    *b = again;
}

void hf_text_put(struct buf *b, const char *key, const struct buf *value)
{
    size_t at, n;
    struct buf again = {0};
    if (hf_text_find(b->data, b->len, key, &at, &n)) {
        hf_text_set(b, key, value);
        return;
    }
    const char *open = memchr(b->data, '{', b->len);
    BUG_ON(!open, "'%s' for a text without an object", key);
    at = (size_t)(open - b->data) + 1;
    for (n = at; n < b->len && strchr(" \t\r\n", b->data[n]);)
        n++;
    bool alone = n < b->len && b->data[n] == '}';
    buf_add(&again, b->data, at);
    put_key(&again, key);
    buf_add(&again, value->data, value->len);
    buf_adds(&again, alone ? "" : ",");
    buf_add(&again, b->data + at, b->len - at);
    buf_finish(b);
    *b = again;
}

/* The key, if it is there, gets the text. */
static void set_text(struct buf *b, const char *key, const char *value)
{
    struct buf v = {0};
    jsonw_string(&v, value, strlen(value));
    hf_text_set(b, key, &v);
    buf_finish(&v);
}

int hf_config_again(const char *name, const char *text, size_t n, const struct hf_model *m,
                    enum dtype d, struct buf *out, struct err *e)
{
    struct json_doc *doc;
    int code = json_parse(name, text, n, &doc, e);
    if (code)
        return code;
    const struct json *o = json_root(doc);
    const struct json *old = json_get(o, "torch_dtype"), *new = json_get(o, "dtype");
    buf_reset(out);
    while (n && strchr("} \t\r\n", text[n - 1])) {
        n--;
        if (text[n] == '}')
            break;
    }
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    buf_add(out, text, n);
    if (!old)
        put_text(out, "torch_dtype", dtype_word(d));
    else if (old->kind != JSON_STRING || strcmp(old->string, dtype_word(d)))
        set_text(out, "torch_dtype", dtype_word(d));
    if (!new)
        put_text(out, "dtype", dtype_word(d));
    else if (new->kind != JSON_STRING || strcmp(new->string, dtype_word(d)))
        set_text(out, "dtype", dtype_word(d));
    if (m->spec.position == SPEC_ROPE) {
        bool newer = member(o, "rope_parameters") != NULL;
        add_older(out, o, m);
        if (!newer)
            add_newer(out, o, m);
    }
    buf_adds(out, "\n}\n");
    json_close(doc);
    return 0;
}

/* ---- a new one ----------------------------------------------------------------------------- */

static void new_gpt2(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    put_text(b, "activation_function", s->act == SPEC_GELU_ERF ? "gelu" : "gelu_new");
    put_real(b, "attn_pdrop", s->attention_dropout);
    put_real(b, "embd_pdrop", s->hidden_dropout);
    put_real(b, "resid_pdrop", s->hidden_dropout);
    put_real(b, "layer_norm_epsilon", s->norm_eps);
    put_int(b, "n_embd", s->hidden);
    put_int(b, "n_head", s->heads);
    put_int(b, "n_inner", s->ffn);
    put_int(b, "n_layer", s->layers);
    put_int(b, "n_positions", s->max_positions);
    put_int(b, "n_ctx", s->max_positions);
}

static void new_gpt_neox(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    put_text(b, "hidden_act", s->act == SPEC_GELU_ERF ? "gelu" : "gelu_new");
    put_real(b, "layer_norm_eps", s->norm_eps);
    put_real(b, "hidden_dropout", s->hidden_dropout);
    put_bool(b, "use_parallel_residual", s->parallel);
    put_real(b, "rotary_pct", s->rope_percent);
    put_real(b, "rotary_emb_base", s->rope_base);
}

/* What families with the names of Llama have. */
static void new_llama_like(const struct hf_model *m, struct buf *b)
{
    put_text(b, "hidden_act", "silu");
    put_real(b, "rms_norm_eps", m->spec.norm_eps);
    put_int(b, "num_key_value_heads", m->spec.kv_heads);
}

static void new_llama(const struct hf_model *m, struct buf *b)
{
    new_llama_like(m, b);
    put_int(b, "head_dim", m->spec.head_dim);
    put_bool(b, "attention_bias", m->spec.bias);
    put_bool(b, "mlp_bias", m->spec.bias);
}

/* The window of layers that all have one. */
static void new_window(const struct hf_model *m, struct buf *b)
{
    put_key(b, "sliding_window");
    if (m->spec.window)
        buf_addf(b, "%lld", (long long)m->spec.window);
    else
        buf_adds(b, "null");
}

static void new_mistral(const struct hf_model *m, struct buf *b)
{
    new_llama_like(m, b);
    put_int(b, "head_dim", m->spec.head_dim);
    new_window(m, b);
}

static void new_mixtral(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    new_llama_like(m, b);
    put_int(b, "num_local_experts", s->experts);
    put_int(b, "num_experts_per_tok", s->topk);
    put_real(b, "router_aux_loss_coef", s->balance_coeff);
    put_bool(b, "output_router_logits", s->balance_coeff > 0);
    new_window(m, b);
}

/* The windows of layers that are listed. */
static void new_qwen_window(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    int64_t first = 0;
    if (!s->window)
        return;
    while (first < s->layers && !spec_window(s, first))
        first++;
    put_int(b, "sliding_window", s->window);
    put_bool(b, "use_sliding_window", true);
    put_int(b, "max_window_layers", first);
    put_key(b, "layer_types");
    for (int64_t l = 0; l < s->layers; l++)
        buf_addf(b, "%s\"%s\"", l ? ", " : "[",
                 spec_window(s, l) ? "sliding_attention" : "full_attention");
    buf_addc(b, ']');
}

static void new_qwen2(const struct hf_model *m, struct buf *b)
{
    new_llama_like(m, b);
    new_qwen_window(m, b);
}

static void new_qwen3(const struct hf_model *m, struct buf *b)
{
    new_llama_like(m, b);
    put_int(b, "head_dim", m->spec.head_dim);
    put_bool(b, "attention_bias", false);
    new_qwen_window(m, b);
}

static void new_qwen_moe(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    const char *comma = "";
    new_llama_like(m, b);
    put_int(b, "num_experts", s->experts);
    put_int(b, "num_experts_per_tok", s->topk);
    put_int(b, "moe_intermediate_size", s->expert_ffn);
    put_bool(b, "norm_topk_prob", !s->route_before);
    put_real(b, "router_aux_loss_coef", s->balance_coeff);
    put_bool(b, "output_router_logits", s->balance_coeff > 0);
    put_int(b, "decoder_sparse_step", 1);
    put_key(b, "mlp_only_layers");
    buf_addc(b, '[');
    for (int64_t l = 0; l < s->layers; l++)
        if (!spec_has_experts(s, l)) {
            buf_addf(b, "%s%lld", comma, (long long)l);
            comma = ", ";
        }
    buf_addc(b, ']');
}

static void new_qwen2_moe(const struct hf_model *m, struct buf *b)
{
    new_qwen_moe(m, b);
    put_int(b, "shared_expert_intermediate_size", m->spec.shared_ffn);
    put_bool(b, "qkv_bias", true);
    new_qwen_window(m, b);
}

static void new_qwen3_moe(const struct hf_model *m, struct buf *b)
{
    new_qwen_moe(m, b);
    put_int(b, "head_dim", m->spec.head_dim);
    put_bool(b, "attention_bias", false);
    new_qwen_window(m, b);
}

static void add_number(struct buf *b, const char *key, double v)
{
    buf_addf(b, ", \"%s\": ", key);
    jsonw_real(b, v);
}

/* The members of rope_scaling; none: positions are not scaled. */
static void new_scaling(const struct spec *s, struct buf *b)
{
    static const char *const type[] = {[SPEC_ROPE_LLAMA3] = "llama3",
                                       [SPEC_ROPE_LINEAR] = "linear",
                                       [SPEC_ROPE_YARN] = "yarn",
                                       [SPEC_ROPE_DYNAMIC] = "dynamic"};
    bool yarn = s->rope_scaling == SPEC_ROPE_YARN, llama3 = s->rope_scaling == SPEC_ROPE_LLAMA3;
    if (s->rope_scaling == SPEC_ROPE_PLAIN)
        return;
    buf_addf(b, "\"rope_type\": \"%s\"", type[s->rope_scaling]);
    add_number(b, "factor", s->rope_factor);
    if (llama3) {
        add_number(b, "low_freq_factor", s->rope_low);
        add_number(b, "high_freq_factor", s->rope_high);
    }
    if (yarn) {
        add_number(b, "beta_fast", s->yarn.fast);
        add_number(b, "beta_slow", s->yarn.slow);
        add_number(b, "attention_factor", s->yarn.attention);
        buf_adds(b, s->yarn.exact ? ", \"truncate\": false" : "");
    }
    if (yarn || llama3)
        buf_addf(b, ", \"original_max_position_embeddings\": %lld", (long long)s->rope_old_length);
}

static void new_rotary(const struct hf_model *m, struct buf *b)
{
    const struct spec *s = &m->spec;
    /* what is beyond it follows from the factor */
    bool longer = s->rope_scaling == SPEC_ROPE_DYNAMIC || s->rope_scaling == SPEC_ROPE_YARN;
    put_int(b, "hidden_size", s->hidden);
    put_int(b, "intermediate_size", s->ffn);
    put_int(b, "num_hidden_layers", s->layers);
    put_int(b, "num_attention_heads", s->heads);
    put_int(b, "max_position_embeddings", longer ? s->rope_old_length : s->max_positions);
    put_real(b, "attention_dropout", s->attention_dropout);
    writers[m->family].put_own(m, b);
    if (s->rope_percent != 1)
        put_real(b, "partial_rotary_factor", s->rope_percent);
    put_real(b, "rope_theta", s->rope_base);
    struct buf scaling = {0};
    new_scaling(s, &scaling);
    put_key(b, "rope_scaling");
    buf_addf(b, scaling.len ? "{%s}" : "null", buf_str(&scaling));
    put_key(b, "rope_parameters");
    buf_adds(b, "{\"rope_theta\": ");
    jsonw_real(b, s->rope_base);
    if (s->rope_percent != 1) {
        buf_adds(b, ", \"partial_rotary_factor\": ");
        jsonw_real(b, s->rope_percent);
    }
    buf_addf(b, ", %s}", scaling.len ? buf_str(&scaling) : "\"rope_type\": \"default\"");
    buf_finish(&scaling);
}

/*
 * What is written for a family in its own way. A family that models without a config.json can be of
 * has `put_new`; a family without a row is only ever exported with the configuration that it came
 * with, and has nothing of its own there.
 */
static const struct family_writer writers[HF_FAMILIES] = {
    [HF_GPT2] = {.put_new = new_gpt2},
    [HF_GPT_NEOX] = {new_rotary, new_gpt_neox, .put_older = put_neox_older},
    [HF_LLAMA] = {new_rotary, new_llama},
    [HF_MISTRAL] = {new_rotary, new_mistral},
    [HF_MIXTRAL] = {new_rotary, new_mixtral},
    [HF_PHI3] = {.put_scaling = put_phi3_scaling},
    [HF_QWEN2] = {new_rotary, new_qwen2},
    [HF_QWEN3] = {new_rotary, new_qwen3},
    [HF_QWEN2_MOE] = {new_rotary, new_qwen2_moe},
    [HF_QWEN3_MOE] = {new_rotary, new_qwen3_moe},
};

void hf_config_new(const struct hf_model *m, enum dtype d, struct hf_ids ids, struct buf *out)
{
    buf_reset(out);
    buf_addc(out, '{');
    put_key(out, "architectures");
    buf_addf(out, "[\"%s\"]", hf_family_architecture(m->family));
    put_text(out, "model_type", hf_family_name(m->family));
    put_int(out, "vocab_size", m->spec.vocab);
    put_bool(out, "tie_word_embeddings", m->spec.tied);
    put_real(out, "initializer_range", m->spec.init_std);
    BUG_ON(!writers[m->family].put_new, "a new %s model", hf_family_name(m->family));
    writers[m->family].put_new(m, out);
    put_id(out, "bos_token_id", ids.bos);
    put_id(out, "eos_token_id", ids.eos);
    put_id(out, "pad_token_id", ids.pad);
    put_text(out, "torch_dtype", dtype_word(d));
    put_text(out, "dtype", dtype_word(d));
    put_bool(out, "use_cache", true);
    buf_adds(out, "\n}\n");
}

void hf_generation_new(struct hf_ids ids, struct buf *out)
{
    buf_reset(out);
    buf_addc(out, '{');
    put_id(out, "bos_token_id", ids.bos);
    put_id(out, "eos_token_id", ids.eos);
    put_id(out, "pad_token_id", ids.pad);
    buf_adds(out, "\n}\n");
}
