/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/hf.h"

/* The family of transformers that has a model of weft. */

/* Whether the layers of the family may have these windows; those of Llama with one are Mistral's.
 */
static int fit_windows(struct hf_model *m, const char *name, struct err *e)
{
    const struct spec *s = &m->spec;
    bool all = true;
    if (!s->window)
        return 0;
    for (int64_t l = 0; l < s->layers; l++)
        all &= spec_window(s, l) > 0;
    if (m->family == HF_LLAMA && all && !s->bias)
        m->family = HF_MISTRAL;
    switch (m->family) {
    case HF_QWEN2:
    case HF_QWEN3:
    case HF_QWEN2_MOE:
        return 0;
    case HF_QWEN3_MOE:
    case HF_MISTRAL:
    case HF_MIXTRAL:
        if (all)
            return 0;
        /* fallthrough */
    default:
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has such a model with windows in these "
                       "layers",
                       name);
    }
}

int hf_model_of_spec(const struct spec *s, const char *name, struct hf_model *ret, struct err *e)
{
    bool rope = s->position == SPEC_ROPE, layernorm = s->norm == SPEC_LAYERNORM;
    bool gated = s->act == SPEC_SWIGLU;
    struct hf_model m = {.spec = *s};
    m.qkv_bias = s->bias || s->qkv_bias;
    m.out_bias = m.mlp_bias = s->bias;
    if ((s->features & ~(unsigned)SPEC_WINDOW) || s->rope_scaling == SPEC_ROPE_LONG ||
        s->rope_local_base > 0)
        return err_set(e, ERR_USAGE, "%s: it has no config.json, which its family needs", name);
    bool moe = s->experts && !layernorm && rope && !s->parallel && s->rope_percent == 1;
    if (moe && !s->qk_norm && s->qkv_bias && s->shared_gate && s->hidden == s->heads * s->head_dim)
        m.family = HF_QWEN2_MOE;
    else if (moe && s->qk_norm && !s->qkv_bias && !s->shared_ffn)
        m.family = HF_QWEN3_MOE;
    else if (moe && !s->qkv_bias && !s->qk_norm && !s->shared_ffn && !s->route_before &&
             spec_layers_none(&s->dense) && s->rope_scaling == SPEC_ROPE_PLAIN &&
             s->hidden == s->heads * s->head_dim)
        m.family = HF_MIXTRAL;
    else if (s->experts)
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has these experts with such a model", name);
    else if (layernorm && !rope && !gated && s->bias && !s->parallel && s->kv_heads == s->heads &&
             s->hidden == s->heads * s->head_dim)
        m.family = HF_GPT2;
    else if (layernorm && rope && !gated && s->bias && s->kv_heads == s->heads &&
             s->hidden == s->heads * s->head_dim)
        m.family = HF_GPT_NEOX;
    else if (s->parallel)
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has such a model with a parallel residual",
                       name);
    else if (!layernorm && rope && gated && !s->bias && !s->qkv_bias && s->rope_percent == 1 &&
             s->qk_norm)
        m.family = HF_QWEN3;
    else if (!layernorm && rope && gated && !s->qkv_bias && s->rope_percent == 1 && !s->qk_norm)
        m.family = HF_LLAMA;
    else if (!layernorm && rope && gated && s->qkv_bias && s->rope_percent == 1 && !s->qk_norm &&
             s->hidden == s->heads * s->head_dim)
        m.family = HF_QWEN2;
    else
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has %s with %s positions, %s, %s", name,
                       layernorm ? "LayerNorm" : "RMSNorm", rope ? "rotary" : "learned",
                       gated ? "SwiGLU" : "GELU",
                       s->bias       ? "biases"
                       : s->qkv_bias ? "biases on queries, keys and values"
                                     : "no biases");
    int code = fit_windows(&m, name, e);
    if (!code)
        *ret = m;
    return code;
}
