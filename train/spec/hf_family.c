/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* The family of transformers that has a model of weft. */

bool hf_windows_all(const struct spec *s)
{
    bool all = s->window > 0;
    for (int64_t l = 0; l < s->layers; l++)
        all &= spec_window(s, l) > 0;
    return all;
}

bool hf_fits_heads(const struct spec *s)
{
    return s->hidden == s->heads * s->head_dim;
}

static bool is_rotated_whole(const struct spec *s)
{
    return s->norm == SPEC_RMSNORM && s->position == SPEC_ROPE && s->rope_percent == 1 &&
           !s->parallel;
}

bool hf_fits_llama_like(const struct spec *s)
{
    return !s->experts && is_rotated_whole(s) && s->act == SPEC_SWIGLU;
}

bool hf_fits_experts(const struct spec *s)
{
    return s->experts && is_rotated_whole(s);
}

static int fit_windows(enum hf_windows may, const struct spec *s, const char *name, struct err *e)
{
    if (!s->window || may == HF_WINDOWS_ANY || (may == HF_WINDOWS_ALL && hf_windows_all(s)))
        return 0;
    return err_set(e, ERR_USAGE,
                   "%s: no family of transformers has such a model with windows in these layers",
                   name);
}

static int fit_none(const struct spec *s, const char *name, struct err *e)
{
    if (s->experts)
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has these experts with such a model", name);
    if (s->parallel)
        return err_set(e, ERR_USAGE,
                       "%s: no family of transformers has such a model with a parallel residual",
                       name);
    return err_set(e, ERR_USAGE, "%s: no family of transformers has %s with %s positions, %s, %s",
                   name, s->norm == SPEC_LAYERNORM ? "LayerNorm" : "RMSNorm",
                   s->position == SPEC_ROPE ? "rotary" : "learned",
                   s->act == SPEC_SWIGLU ? "SwiGLU" : "GELU",
                   s->bias       ? "biases"
                   : s->qkv_bias ? "biases on queries, keys and values"
                                 : "no biases");
}

int hf_model_of_spec(const struct spec *s, const char *name, struct hf_model *ret, struct err *e)
{
    struct hf_model m = {.spec = *s};
    m.qkv_bias = s->bias || s->qkv_bias;
    m.out_bias = m.mlp_bias = s->bias;
    if ((s->features & ~(unsigned)SPEC_WINDOW) || s->rope_scaling == SPEC_ROPE_LONG ||
        s->rope_local_base > 0)
        return err_set(e, ERR_USAGE, "%s: it has no config.json, which its family needs", name);
    int f = 0;
    while (f < HF_FAMILIES && !(hf_families[f]->fits && hf_families[f]->fits(s)))
        f++;
    if (f == HF_FAMILIES)
        return fit_none(s, name, e);
    m.family = (enum hf_family)f;
    int code = fit_windows(hf_families[f]->windows, s, name, e);
    if (!code)
        *ret = m;
    return code;
}
