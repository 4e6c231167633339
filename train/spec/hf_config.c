/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Hugging Face config.json to a model: what families share, and the reader that asks the file's
 * family. Keys that give the shape are needed; others have the default of that family's
 * configuration class in transformers.
 */

#include <string.h>

#include "train/spec/family.h"

enum { CONFIG_MAX = 16 << 20 };

/* ---- what families share ------------------------------------------------------------------- */

void hf_read_act(struct hf_reader *h, const char *key, const char *missing, bool gated,
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

struct spec_layers hf_window_layers(const struct spec *s, int64_t first, int64_t every)
{
    struct spec_layers p = {0};
    for (int64_t l = first > 0 ? first : 0; l < s->layers && l < SPEC_LAYERS_MAX; l++)
        if (!every || (l + 1) % every)
            spec_layers_add(&p, l);
    return p;
}

void hf_read_window(struct hf_reader *h, int64_t missing, struct spec_layers layers, struct spec *s)
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

void hf_read_llama_like(struct hf_reader *h, struct hf_model *m, double eps, double theta)
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

void hf_read_silu(struct hf_reader *h, struct hf_model *m)
{
    hf_read_act(h, "hidden_act", "silu", true, &m->spec);
}

void hf_read_hidden_dropout(struct hf_reader *h, double def, struct spec *s)
{
    s->hidden_dropout = hf_real(h, "resid_pdrop", def);
    if (hf_real(h, "embd_pdrop", def) != s->hidden_dropout)
        hf_refuse(h, "embd_pdrop", "another than \"resid_pdrop\"", "weft has one dropout for both");
}

/* ---- the families -------------------------------------------------------------------------- */

#define DECLARE_ROW(family, row, type) extern const struct hf_family_row hf_##row;
HF_FAMILY_LIST(DECLARE_ROW, DECLARE_ROW)

#define NAME_ROW(family, row, type) [family] = &hf_##row,
const struct hf_family_row *const hf_families[HF_FAMILIES] = {HF_FAMILY_LIST(NAME_ROW, NAME_ROW)};

#define NAME_TYPE(family, row, type) [family] = (type),
static const char *const types[HF_FAMILIES] = {HF_FAMILY_LIST(NAME_TYPE, NAME_TYPE)};

const char *hf_family_name(enum hf_family f)
{
    return types[f];
}

const char *hf_family_architecture(enum hf_family f)
{
    return hf_families[f]->architecture;
}

bool hf_family_rope_by_type(enum hf_family f)
{
    return hf_families[f]->rope_by_type;
}

const struct hf_gguf *hf_family_gguf(enum hf_family f)
{
    return hf_families[f]->gguf;
}

static enum hf_family find_family(struct hf_reader *h)
{
    const char *type = NULL;
    if (!h->code)
        h->code = json_need_str(h->o, h->path, "model_type", &type, h->e);
    for (int i = 0; type && i < HF_FAMILIES; i++)
        if (strcmp(type, types[i]) == 0)
            return (enum hf_family)i;
    if (type)
        hf_refuse(h, "model_type", type, "weft knows " HF_FAMILY_WORDS);
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
    if (strcmp(name, hf_families[f]->architecture) != 0 && strcmp(name, hf_families[f]->bare) != 0)
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
        hf_families[f]->read(h, ret);
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
