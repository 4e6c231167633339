/* SPDX-License-Identifier: Apache-2.0 */

/* Whether a model can be, what of it train runs, and what follows from its sizes. */

#include <math.h>
#include <string.h>

#include "train/spec/spec.h"

enum { SIZE_MAX_DIM = 1 << 28 };

/* ---- judging ------------------------------------------------------------------------------- */

bool spec_layers_none(const struct spec_layers *p)
{
    static const struct spec_layers none;
    return memcmp(p, &none, sizeof(none)) == 0;
}

static int bad_size(const char *what, int64_t v, int64_t max, struct err *e)
{
    if (v >= 1 && v <= max)
        return 0;
    return err_set(e, ERR_USAGE, "%s is %lld: it must be 1 to %lld", what, (long long)v,
                   (long long)max);
}

static int check_sizes(const struct spec *s, struct err *e)
{
    const struct {
        const char *what;
        int64_t v, max;
    } sizes[] = {
        {"num-layers", s->layers, SPEC_LAYERS_MAX},
        {"hidden-size", s->hidden, 1 << 20},
        {"num-attention-heads", s->heads, 1 << 20},
        {"num-query-groups", s->kv_heads, 1 << 20},
        {"kv-channels", s->head_dim, SPEC_HEAD_MAX},
        {"ffn-hidden-size", s->ffn, 1 << 24},
        {"the vocabulary's size", s->vocab, SIZE_MAX_DIM},
        {"the padded vocabulary's size", s->padded_vocab, SIZE_MAX_DIM},
        {"max-position-embeddings", s->max_positions, SIZE_MAX_DIM},
    };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int code = bad_size(sizes[i].what, sizes[i].v, sizes[i].max, e);
        if (code)
            return code;
    }
    if (s->heads * s->head_dim > 1 << 22)
        return err_set(e, ERR_USAGE, "%lld heads of %lld channels are more than weft can hold",
                       (long long)s->heads, (long long)s->head_dim);
    if (s->heads % s->kv_heads)
        return err_set(e, ERR_USAGE,
                       "%lld attention heads cannot be shared out to %lld query "
                       "groups",
                       (long long)s->heads, (long long)s->kv_heads);
    if (s->padded_vocab < s->vocab)
        return err_set(e, ERR_USAGE, "a vocabulary of %lld does not fit into %lld padded rows",
                       (long long)s->vocab, (long long)s->padded_vocab);
    return 0;
}

static int check_longrope(const struct spec *s, int64_t pairs, struct err *e)
{
    bool good = s->rope_old_length >= 1 && s->longrope.attention > 0 &&
                isfinite(s->longrope.attention) && pairs <= SPEC_LONGROPE_MAX;
    for (int64_t i = 0; good && i < pairs; i++)
        good = s->longrope.near[i] > 0 && isfinite(s->longrope.near[i]) && s->longrope.far[i] > 0 &&
               isfinite(s->longrope.far[i]);
    for (int64_t i = pairs; good && i < SPEC_LONGROPE_MAX; i++)
        good = s->longrope.near[i] == 0 && s->longrope.far[i] == 0;
    return good
               ? 0
               : err_set(e, ERR_USAGE,
                         "longrope over %lld positions: expected factors above 0, one of each kind "
                         "for each of %lld pairs of channels (at most %d)",
                         (long long)s->rope_old_length, (long long)pairs, SPEC_LONGROPE_MAX);
}

static int check_yarn(const struct spec *s, struct err *e)
{
    const struct spec_yarn *y = &s->yarn;
    if (!(y->slow > 0 && y->fast > y->slow) || !isfinite(y->fast))
        return err_set(e, ERR_USAGE,
                       "yarn's beta_fast is %g and beta_slow %g: expected beta_fast above "
                       "beta_slow above 0",
                       y->fast, y->slow);
    if (!(y->attention > 0) || !isfinite(y->attention))
        return err_set(e, ERR_USAGE, "yarn's attention factor is %g: it must be above 0",
                       y->attention);
    if (!(s->rope_base > 1))
        return err_set(e, ERR_USAGE, "rotary-base is %g: with yarn it must be above 1",
                       s->rope_base);
    return 0;
}

/* Of those with a length from which on positions are scaled. */
static int check_old_length(const struct spec *s, int64_t turned, struct err *e)
{
    if (s->rope_old_length < 1 || s->rope_old_length > SIZE_MAX_DIM)
        return err_set(e, ERR_USAGE,
                       "rotary scaling beyond %lld positions cannot be: expected 1 to %d",
                       (long long)s->rope_old_length, SIZE_MAX_DIM);
    if (s->rope_scaling == SPEC_ROPE_YARN)
        return check_yarn(s, e);
    if (turned < 4)
        return err_set(
            e, ERR_USAGE,
            "dynamic rotary scaling: %lld dimensions of a head would be turned, expected "
            "at least 4",
            (long long)turned);
    return 0;
}

static int check_rope(const struct spec *s, struct err *e)
{
    if (s->position != SPEC_ROPE)
        return 0;
    if (!(s->rope_base >= 1) || !isfinite(s->rope_base))
        return err_set(e, ERR_USAGE, "rotary-base is %g: it must be at least 1", s->rope_base);
    if (!(s->rope_percent > 0 && s->rope_percent <= 1))
        return err_set(e, ERR_USAGE, "rotary-percent is %g: it must be above 0 and at most 1",
                       s->rope_percent);
    int64_t turned = spec_rotary(s), exact = (int64_t)(s->rope_percent * (double)s->head_dim);
    if (exact != turned || turned < 2)
        return err_set(e, ERR_USAGE,
                       "%lld of %lld dimensions of a head would be turned, which "
                       "is not a positive even number",
                       (long long)exact, (long long)s->head_dim);
    if (s->rope_local_base != 0 && (!(s->rope_local_base >= 1) || !isfinite(s->rope_local_base)))
        return err_set(e, ERR_USAGE, "rotary-base-local is %g: it must be at least 1",
                       s->rope_local_base);
    if (s->rope_scaling == SPEC_ROPE_PLAIN)
        return 0;
    if (s->rope_scaling == SPEC_ROPE_LONG)
        return check_longrope(s, turned / 2, e);
    if (!(s->rope_factor >= 1) || !isfinite(s->rope_factor))
        return err_set(e, ERR_USAGE, "rope-scaling-factor is %g: it must be at least 1",
                       s->rope_factor);
    if (s->rope_scaling == SPEC_ROPE_LINEAR)
        return 0;
    if (s->rope_scaling == SPEC_ROPE_YARN || s->rope_scaling == SPEC_ROPE_DYNAMIC)
        return check_old_length(s, turned, e);
    if (!(s->rope_low > 0 && s->rope_high > s->rope_low) || !isfinite(s->rope_high) ||
        s->rope_old_length < 1)
        return err_set(e, ERR_USAGE,
                       "rotary scaling with the factors %g and %g over %lld "
                       "positions cannot be",
                       s->rope_low, s->rope_high, (long long)s->rope_old_length);
    return 0;
}

static int check_window(const struct spec *s, struct err *e)
{
    if (s->window < 0 || s->window > SIZE_MAX_DIM)
        return err_set(e, ERR_USAGE, "window-size is %lld: it must be 0 to %d",
                       (long long)s->window, SIZE_MAX_DIM);
    if (s->window && spec_layers_none(&s->windowed))
        return err_set(e, ERR_USAGE, "window-size is %lld, but no layer has a window",
                       (long long)s->window);
    return 0;
}

static int64_t expert_layers(const struct spec *s)
{
    int64_t n = 0;
    for (int64_t l = 0; l < s->layers; l++)
        n += spec_has_experts(s, l);
    return n;
}

/* What Gemma has beside others. */
static int check_caps(const struct spec *s, struct err *e)
{
    const struct {
        const char *what;
        double v;
    } all[] = {{"attn-logit-softcapping", s->score_cap},
               {"final-logit-softcapping", s->head_cap},
               {"query-pre-attn-scalar", s->query_scalar}};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].v != 0 && !(all[i].v >= 1e-6 && all[i].v <= 1e6))
            return err_set(e, ERR_USAGE, "%s is %g: it must be 0, or from 1e-6 to 1e6", all[i].what,
                           all[i].v);
    if (s->post_norm && (s->bias || s->experts || s->parallel || s->norm != SPEC_RMSNORM))
        return err_set(e, ERR_USAGE,
                       "norms after attention and MLP: expected RMSNorm, no biases, no "
                       "experts and no parallel residual");
    if (s->zero_centered && (s->norm != SPEC_RMSNORM || s->parallel))
        return err_set(
            e, ERR_USAGE,
            "norm weights stored less one: expected --normalization RMSNorm and no parallel "
            "residual");
    return 0;
}

static int check_experts(const struct spec *s, struct err *e)
{
    if (!s->experts)
        return 0;
    int code = bad_size("num-experts", s->experts, 1 << 16, e);
    if (!code)
        code = bad_size("moe-router-topk", s->topk, s->experts, e);
    if (!code)
        code = bad_size("moe-ffn-hidden-size", s->expert_ffn, 1 << 24, e);
    if (code)
        return code;
    if (s->topk == 1 && !s->route_before && !(s->features & SPEC_ROUTE_ONE)) {
        err_set(e, ERR_USAGE, "moe-router-topk 1: the weight of the one expert would always be 1");
        return err_hint(e, "give --moe-router-pre-softmax");
    }
    if (s->act != SPEC_SWIGLU || s->bias)
        return err_set(e, ERR_USAGE,
                       "num-experts %lld: expected experts with swiglu and without biases",
                       (long long)s->experts);
    if (s->shared_ffn < 0 || s->shared_ffn > 1 << 24 || (s->shared_gate && !s->shared_ffn))
        return err_set(e, ERR_USAGE,
                       "moe-shared-expert-intermediate-size is %lld%s: expected 1 to %d, or no "
                       "shared expert",
                       (long long)s->shared_ffn, s->shared_gate ? " with a gate" : "", 1 << 24);
    if (expert_layers(s) == 0)
        return err_set(e, ERR_USAGE, "num-experts %lld: all %lld layers are without experts",
                       (long long)s->experts, (long long)s->layers);
    if (!(s->balance_coeff >= 0) || !isfinite(s->balance_coeff) || !(s->z_coeff >= 0) ||
        !isfinite(s->z_coeff))
        return err_set(e, ERR_USAGE,
                       "moe-aux-loss-coeff %g and moe-z-loss-coeff %g: expected 0 or more",
                       s->balance_coeff, s->z_coeff);
    return 0;
}

int spec_check(const struct spec *s, struct err *e)
{
    int code = check_sizes(s, e);
    if (!code)
        code = check_experts(s, e);
    if (!code)
        code = check_rope(s, e);
    if (!code)
        code = check_window(s, e);
    if (!code)
        code = check_caps(s, e);
    if (code)
        return code;
    if (!(s->norm_eps > 0 && s->norm_eps < 1))
        return err_set(e, ERR_USAGE, "norm-epsilon is %g: it must lie between 0 and 1",
                       s->norm_eps);
    if (s->qk_norm && s->norm != SPEC_RMSNORM)
        return err_set(e, ERR_USAGE, "qk-layernorm: expected --normalization RMSNorm");
    if (!(s->init_std >= 0) || !isfinite(s->init_std))
        return err_set(e, ERR_USAGE, "init-method-std is %g: it must be 0 or more", s->init_std);
    if (!(s->hidden_dropout >= 0 && s->hidden_dropout < 1))
        return err_set(e, ERR_USAGE, "hidden-dropout is %g: it must be at least 0 and below 1",
                       s->hidden_dropout);
    if (!(s->attention_dropout >= 0 && s->attention_dropout < 1))
        return err_set(e, ERR_USAGE, "attention-dropout is %g: it must be at least 0 and below 1",
                       s->attention_dropout);
    return 0;
}

/* ---- what train runs ----------------------------------------------------------------------- */

/* The features that members of the spec describe, which are those that train runs. */
static unsigned spec_described(const struct spec *s)
{
    bool geglu = s->act == SPEC_GEGLU_TANH || s->act == SPEC_GEGLU_ERF;
    return (s->window ? SPEC_WINDOW : 0u) | (s->post_norm ? SPEC_POST_NORM : 0u) |
           (s->zero_centered ? SPEC_ZERO_CENTERED : 0u) | (s->embed_scale ? SPEC_EMBED_SCALE : 0u) |
           (geglu ? SPEC_GATED_GELU : 0u) |
           (s->score_cap > 0 || s->head_cap > 0 ? SPEC_SOFTCAP : 0u) |
           (s->query_scalar > 0 ? SPEC_QUERY_SCALE : 0u);
}

unsigned spec_lacking(const struct spec *s)
{
    return s->features & ~spec_described(s);
}

int spec_can_run(const struct spec *s, const char *name, struct err *e)
{
    /* may be in checkpoints that were imported before the members that describe them were there */
    static const unsigned runs = SPEC_WINDOW | SPEC_POST_NORM | SPEC_ZERO_CENTERED | SPEC_SOFTCAP |
                                 SPEC_GATED_GELU | SPEC_EMBED_SCALE | SPEC_QUERY_SCALE |
                                 SPEC_ROPE_OTHER;
    struct buf b = {0};
    unsigned lacking = spec_lacking(s);
    spec_feature_words(lacking, &b);
    int code = b.len ? err_set(e, ERR_USAGE, "%s: train cannot run this model yet: it has %s", name,
                               buf_str(&b))
                     : 0;
    if (code && !(lacking & ~runs))
        err_hint(e, "import it again if an earlier weft imported it");
    buf_finish(&b);
    return code;
}

void spec_settle(struct spec *s)
{
    if (s->position != SPEC_ROPE) {
        s->rope_base = 10000;
        s->rope_percent = 1;
        s->rope_scaling = SPEC_ROPE_PLAIN;
    }
    if (s->rope_scaling != SPEC_ROPE_LONG)
        s->longrope = (struct spec_longrope){0};
    if (s->rope_scaling != SPEC_ROPE_YARN)
        s->yarn = (struct spec_yarn){0};
    if (s->rope_scaling == SPEC_ROPE_PLAIN || s->rope_scaling == SPEC_ROPE_LONG)
        s->rope_factor = 8;
    if (s->rope_scaling != SPEC_ROPE_LLAMA3) {
        s->rope_low = 1;
        s->rope_high = 4;
    }
    if (s->rope_scaling == SPEC_ROPE_PLAIN || s->rope_scaling == SPEC_ROPE_LINEAR)
        s->rope_old_length = 8192;
    if (s->bias)
        s->qkv_bias = false;
    if (s->query_scalar == (double)s->head_dim)
        s->query_scalar = 0;
    if (s->position != SPEC_ROPE || spec_layers_none(&s->windowed) ||
        (s->rope_local_base == s->rope_base && s->rope_scaling == SPEC_ROPE_PLAIN))
        s->rope_local_base = 0;
    if (!s->window && !(s->rope_local_base > 0))
        s->windowed = (struct spec_layers){0};
    s->features |= spec_described(s);
    if (s->experts && spec_layers_none(&s->dense))
        s->ffn = s->expert_ffn; /* no layer has another MLP */
    if (!s->experts) {
        s->topk = s->expert_ffn = 0;
        s->route_before = false;
        s->balance_coeff = s->z_coeff = 0;
        s->shared_ffn = s->shared_gate = 0;
        s->dense = (struct spec_layers){0};
    }
}

/*
 * Of the MLPs that tensor-parallel ranks cut, those of dense layers and shared experts, the
 * greatest number of channels that divides all; 0: there are none.
 */
static int64_t cut_channels(const struct spec *s)
{
    int64_t a = expert_layers(s) < s->layers ? s->ffn : 0, b = s->shared_ffn;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

struct layout_model spec_layout_model(const struct spec *s)
{
    return (struct layout_model){.layers = s->layers,
                                 .heads = s->heads,
                                 .kv_heads = s->kv_heads,
                                 .ffn = cut_channels(s),
                                 .padded_vocab = s->padded_vocab,
                                 .experts = s->experts,
                                 .expert_ffn = s->expert_ffn};
}

int64_t spec_rotary(const struct spec *s)
{
    return (int64_t)(s->rope_percent * (double)s->head_dim) / 2 * 2;
}

int64_t spec_pad_vocab(int64_t vocab, int64_t divisible_by, int tp)
{
    int64_t step = divisible_by * tp;
    return (vocab + step - 1) / step * step;
}

double spec_step_flops(const struct spec *s, int64_t batch, int64_t length)
{
    double B = (double)batch, T = (double)length, L = (double)s->layers, C = (double)s->hidden;
    double queries = (double)(s->head_dim * s->heads) / C;
    double groups = (double)s->kv_heads / (double)s->heads;
    double mixed = (double)expert_layers(s) / L;
    double ffn =
        mixed * (double)(s->topk * s->expert_ffn + s->shared_ffn) + (1 - mixed) * (double)s->ffn;
    double mlp = ffn / C * (spec_gated(s) ? 1.5 : 1.0);
    double head = (double)s->padded_vocab / (2 * L * C);
    return 12 * B * T * L * C * C * ((1 + groups + T / (2 * C)) * queries + mlp + head);
}
