/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/spec.h"

#include <math.h>
#include <string.h>

/* ---- the fields, as a checkpoint names them ------------------------------------------------ */

enum field_kind {
    FIELD_INT,
    FIELD_REAL,
    FIELD_BOOL,
    FIELD_NOT,
    FIELD_CHOICE,
    FIELD_LAYERS,
    FIELD_FEATURES,
    FIELD_FACTORS
};

struct field {
    const char *key; /* the option's name where there is one */
    enum field_kind kind;
    double usual; /* of a model from before the field was there: what weft did then; NEEDED: it was
                     always there; DERIVED: derive() has it */
    size_t offset;
    const char *choice[6]; /* texts of an enum's values, in its order */
};

#define NEEDED NAN
#define DERIVED INFINITY

#define FIELD(key, kind, usual, member, ...)                                                       \
    {                                                                                              \
        key, kind, usual, offsetof(struct spec, member),                                           \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct field fields[] = {
    FIELD("num-layers", FIELD_INT, NEEDED, layers, NULL),
    FIELD("hidden-size", FIELD_INT, NEEDED, hidden, NULL),
    FIELD("ffn-hidden-size", FIELD_INT, NEEDED, ffn, NULL),
    FIELD("num-attention-heads", FIELD_INT, NEEDED, heads, NULL),
    FIELD("num-query-groups", FIELD_INT, DERIVED, kv_heads, NULL),
    FIELD("kv-channels", FIELD_INT, DERIVED, head_dim, NULL),
    FIELD("vocab-size", FIELD_INT, NEEDED, vocab, NULL),
    FIELD("padded-vocab-size", FIELD_INT, DERIVED, padded_vocab, NULL),
    FIELD("max-position-embeddings", FIELD_INT, NEEDED, max_positions, NULL),
    FIELD("position-embedding-type", FIELD_CHOICE, SPEC_LEARNED, position, "learned_absolute",
          "rope"),
    FIELD("rotary-base", FIELD_REAL, 10000, rope_base, NULL),
    FIELD("rotary-percent", FIELD_REAL, 1, rope_percent, NULL),
    FIELD("rope-scaling", FIELD_CHOICE, SPEC_ROPE_PLAIN, rope_scaling, "none", "llama3", "longrope",
          "linear", "yarn", "dynamic"),
    FIELD("rope-scaling-factor", FIELD_REAL, 8, rope_factor, NULL),
    FIELD("rope-low-freq-factor", FIELD_REAL, 1, rope_low, NULL),
    FIELD("rope-high-freq-factor", FIELD_REAL, 4, rope_high, NULL),
    FIELD("rope-original-max-positions", FIELD_INT, 8192, rope_old_length, NULL),
    FIELD("normalization", FIELD_CHOICE, SPEC_LAYERNORM, norm, "LayerNorm", "RMSNorm"),
    FIELD("norm-epsilon", FIELD_REAL, 1e-5, norm_eps, NULL),
    FIELD("activation", FIELD_CHOICE, SPEC_GELU_TANH, act, "gelu-tanh", "gelu-erf", "swiglu",
          "geglu-tanh", "geglu-erf"),
    FIELD("disable-bias-linear", FIELD_NOT, false, bias, NULL),
    FIELD("add-qkv-bias", FIELD_BOOL, false, qkv_bias, NULL),
    FIELD("untie-embeddings-and-output-weights", FIELD_NOT, false, tied, NULL),
    FIELD("init-method-std", FIELD_REAL, 0.02, init_std, NULL),
    FIELD("hidden-dropout", FIELD_REAL, 0, hidden_dropout, NULL),
    FIELD("attention-dropout", FIELD_REAL, 0, attention_dropout, NULL),
    FIELD("num-experts", FIELD_INT, 0, experts, NULL),
    FIELD("moe-router-topk", FIELD_INT, 0, topk, NULL),
    FIELD("moe-ffn-hidden-size", FIELD_INT, 0, expert_ffn, NULL),
    FIELD("moe-router-pre-softmax", FIELD_BOOL, false, route_before, NULL),
    FIELD("moe-aux-loss-coeff", FIELD_REAL, 0, balance_coeff, NULL),
    FIELD("moe-z-loss-coeff", FIELD_REAL, 0, z_coeff, NULL),
    FIELD("qk-layernorm", FIELD_BOOL, false, qk_norm, NULL),
    FIELD("apply-layernorm-1p", FIELD_BOOL, false, zero_centered, NULL),
    FIELD("post-norm", FIELD_BOOL, false, post_norm, NULL),
    FIELD("scale-embeddings", FIELD_BOOL, false, embed_scale, NULL),
    FIELD("attn-logit-softcapping", FIELD_REAL, 0, score_cap, NULL),
    FIELD("final-logit-softcapping", FIELD_REAL, 0, head_cap, NULL),
    FIELD("query-pre-attn-scalar", FIELD_REAL, 0, query_scalar, NULL),
    FIELD("window-size", FIELD_INT, 0, window, NULL),
    FIELD("window-layers", FIELD_LAYERS, 0, windowed, NULL),
    FIELD("use-parallel-residual", FIELD_BOOL, false, parallel, NULL),
    FIELD("moe-shared-expert-intermediate-size", FIELD_INT, 0, shared_ffn, NULL),
    FIELD("moe-shared-expert-gate", FIELD_BOOL, false, shared_gate, NULL),
    FIELD("dense-layers", FIELD_LAYERS, 0, dense, NULL),
    FIELD("longrope-short-factors", FIELD_FACTORS, 0, longrope.near, NULL),
    FIELD("longrope-long-factors", FIELD_FACTORS, 0, longrope.far, NULL),
    FIELD("longrope-attention-factor", FIELD_REAL, 0, longrope.attention, NULL),
    FIELD("yarn-beta-fast", FIELD_REAL, 0, yarn.fast, NULL),
    FIELD("yarn-beta-slow", FIELD_REAL, 0, yarn.slow, NULL),
    FIELD("yarn-attention-factor", FIELD_REAL, 0, yarn.attention, NULL),
    FIELD("yarn-exact-range", FIELD_BOOL, false, yarn.exact, NULL),
    FIELD("rotary-base-local", FIELD_REAL, 0, rope_local_base, NULL),
    FIELD("features", FIELD_FEATURES, 0, features, NULL),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Fields from here on came later. They are written where they are not usual, because earlier
 * versions of weft refuse keys that they do not know. */
static const size_t later = offsetof(struct spec, experts);

_Static_assert(sizeof(enum spec_norm) == sizeof(int), "an enum is read and written as an int");

static int spec_wrong(const struct field *f, const char *name, const char *want, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: \"%s\" of the model is missing or is not %s", name, f->key,
                   want);
}

/* ---- features ------------------------------------------------------------------------------ */

static const struct {
    unsigned bit;
    const char *key, *words;
} features[] = {
    {SPEC_QK_NORM, "qk-layernorm", "norms on queries and keys"},
    {SPEC_EXPERTS, "experts", "a mixture of experts"},
    {SPEC_PARALLEL_RESIDUAL, "parallel-residual", "attention and MLP in parallel"},
    {SPEC_POST_NORM, "post-norm", "norms after attention and MLP"},
    {SPEC_ZERO_CENTERED, "zero-centered-norm", "norm weights stored less one"},
    {SPEC_SOFTCAP, "logit-softcapping", "logit soft-capping"},
    {SPEC_WINDOW, "sliding-window", "sliding-window attention"},
    {SPEC_ROPE_OTHER, "rope-other", "rotary scaling of a further kind"},
    {SPEC_GATED_GELU, "gated-gelu", "a gated MLP with GELU"},
    {SPEC_EMBED_SCALE, "embedding-scale", "scaled embeddings"},
    {SPEC_QUERY_SCALE, "query-scale", "a query scale of its own"},
    {SPEC_PART_BIAS, "part-bias", "biases on some linear layers alone"},
    {SPEC_OTHER_ACT, "other-activation", "another activation than GELU and SwiGLU"},
    {SPEC_SCORE_LAYER, "scores-by-layer", "attention scores divided by the layer's number"},
    {SPEC_ROUTE_ONE, "route-one", "one expert a token, whose weight is always 1"},
};

enum { FEATURES = sizeof(features) / sizeof(features[0]) };

static void write_features(unsigned bits, struct buf *out)
{
    const char *comma = "";
    buf_addc(out, '[');
    for (int i = 0; i < FEATURES; i++) {
        if (!(bits & features[i].bit))
            continue;
        buf_addf(out, "%s\"%s\"", comma, features[i].key);
        comma = ", ";
    }
    buf_addc(out, ']');
}

static int read_features(const struct field *f, const struct json *v, const char *name,
                         unsigned *ret, struct err *e)
{
    *ret = 0;
    if (!v || v->kind != JSON_ARRAY)
        return spec_wrong(f, name, "an array of texts", e);
    for (size_t i = 0; i < v->length; i++) {
        int k = 0;
        if (v->child[i].kind != JSON_STRING)
            return spec_wrong(f, name, "an array of texts", e);
        while (k < FEATURES && strcmp(v->child[i].string, features[k].key) != 0)
            k++;
        if (k == FEATURES)
            return err_set(e, ERR_DATA,
                           "%s: this weft does not know the feature \"%s\" of the model", name,
                           v->child[i].string);
        *ret |= features[k].bit;
    }
    return 0;
}

void spec_feature_words(unsigned bits, struct buf *out)
{
    for (int i = 0; i < FEATURES; i++)
        if (bits & features[i].bit)
            buf_addf(out, "%s%s", out->len ? ", " : "", features[i].words);
}

/* ---- patterns of layers -------------------------------------------------------------------- */

/* Whether the pattern repeats after n layers. */
static bool repeats(const struct spec_layers *p, int64_t layers, int64_t n)
{
    for (int64_t l = n; l < layers; l++)
        if (spec_layers_has(p, l) != spec_layers_has(p, l - n))
            return false;
    return true;
}

/* A digit for each layer, 1 for those that are in it, as far as they do not repeat themselves: "10"
 * for every other layer. */
static void write_layers(const struct spec_layers *p, int64_t layers, struct buf *out)
{
    int64_t n = 1;
    while (n < layers && !repeats(p, layers, n))
        n++;
    buf_addc(out, '"');
    for (int64_t l = 0; l < n; l++)
        buf_addc(out, spec_layers_has(p, l) ? '1' : '0');
    buf_addc(out, '"');
}

static int read_layers(const struct field *f, const struct json *v, const char *name,
                       const struct spec *s, struct spec_layers *ret, struct err *e)
{
    const char *text = v && v->kind == JSON_STRING ? v->string : "";
    size_t n = strlen(text);
    *ret = (struct spec_layers){0};
    if (!n || strspn(text, "01") != n || n > SPEC_LAYERS_MAX)
        return spec_wrong(f, name, "a text of the digits 0 and 1", e);
    for (int64_t l = 0; l < s->layers && l < SPEC_LAYERS_MAX; l++)
        if (text[(size_t)l % n] == '1')
            spec_layers_add(ret, l);
    return 0;
}

/* ---- JSON both ways ------------------------------------------------------------------------ */

static void write_factors(const double *v, int64_t n, struct buf *out)
{
    buf_addc(out, '[');
    for (int64_t i = 0; i < n && i < SPEC_LONGROPE_MAX; i++) {
        buf_adds(out, i ? ", " : "");
        jsonw_real(out, v[i]);
    }
    buf_addc(out, ']');
}

static int read_factors(const struct field *f, const struct json *v, const char *name, double *ret,
                        struct err *e)
{
    if (!v || v->kind != JSON_ARRAY || v->length > SPEC_LONGROPE_MAX)
        return spec_wrong(f, name, "an array of at most 64 numbers", e);
    for (size_t i = 0; i < v->length; i++) {
        if (v->child[i].kind != JSON_INT && v->child[i].kind != JSON_REAL)
            return spec_wrong(f, name, "an array of numbers", e);
        ret[i] = v->child[i].real;
    }
    return 0;
}

static void write_field(const struct field *f, const struct spec *s, struct buf *out)
{
    const char *p = (const char *)s + f->offset;
    jsonw_key(out, f->key);
    buf_addc(out, ' ');
    switch (f->kind) {
    case FIELD_INT:
        buf_addf(out, "%lld", (long long)*(const int64_t *)(const void *)p);
        break;
    case FIELD_REAL:
        jsonw_real(out, *(const double *)(const void *)p);
        break;
    case FIELD_BOOL:
    case FIELD_NOT:
        buf_adds(out, *(const bool *)p == (f->kind == FIELD_BOOL) ? "true" : "false");
        break;
    case FIELD_CHOICE: {
        const char *text = f->choice[*(const int *)(const void *)p];
        jsonw_string(out, text, strlen(text));
        break;
    }
    case FIELD_LAYERS:
        write_layers((const void *)p, s->layers, out);
        break;
    case FIELD_FEATURES:
        write_features(s->features, out);
        break;
    case FIELD_FACTORS:
        write_factors((const double *)(const void *)p, spec_rotary(s) / 2, out);
        break;
    }
}

static bool is_usual(const struct field *f, const struct spec *s)
{
    const char *p = (const char *)s + f->offset;
    if (!strncmp(f->key, "longrope-", 9)) /* of that scaling alone */
        return s->rope_scaling != SPEC_ROPE_LONG;
    if (f->offset < later || f->offset > offsetof(struct spec, features))
        return false;
    switch (f->kind) {
    case FIELD_INT:
        return (double)*(const int64_t *)(const void *)p == f->usual;
    case FIELD_REAL:
        return *(const double *)(const void *)p == f->usual;
    case FIELD_BOOL:
    case FIELD_NOT:
        return *(const bool *)p == ((f->usual != 0) == (f->kind == FIELD_BOOL));
    case FIELD_CHOICE:
        return *(const int *)(const void *)p == (int)f->usual;
    case FIELD_LAYERS:
        return spec_layers_none((const void *)p);
    case FIELD_FEATURES:
        return !s->features;
    case FIELD_FACTORS:
        break;
    }
    BUG("field kind %d", (int)f->kind);
}

void spec_to_json(const struct spec *s, struct buf *out)
{
    buf_addc(out, '{');
    for (int i = 0; i < FIELDS; i++) {
        if (is_usual(&fields[i], s))
            continue;
        buf_adds(out, i ? ", " : "");
        write_field(&fields[i], s, out);
    }
    buf_addc(out, '}');
}

static int read_choice(const struct field *f, const struct json *v, const char *name, int *ret,
                       struct err *e)
{
    for (int i = 0; v && v->kind == JSON_STRING && i < 6 && f->choice[i]; i++) {
        if (strcmp(v->string, f->choice[i]) == 0) {
            *ret = i;
            return 0;
        }
    }
    if (v && v->kind == JSON_STRING)
        return err_set(e, ERR_DATA,
                       "%s: \"%s\" of the model is \"%s\", which this weft does not "
                       "know",
                       name, f->key, v->string);
    return spec_wrong(f, name, "a text", e);
}

/* The value of a model whose file does not have the field. */
static void set_usual(const struct field *f, struct spec *s)
{
    void *p = (char *)s + f->offset;
    double v = isinf(f->usual) ? 0 : f->usual;
    switch (f->kind) {
    case FIELD_INT:
        *(int64_t *)p = (int64_t)v;
        return;
    case FIELD_REAL:
        *(double *)p = v;
        return;
    case FIELD_BOOL:
    case FIELD_NOT:
        *(bool *)p = (v != 0) == (f->kind == FIELD_BOOL);
        return;
    case FIELD_CHOICE:
        *(int *)p = (int)v;
        return;
    case FIELD_LAYERS:
        *(struct spec_layers *)p = (struct spec_layers){0};
        return;
    case FIELD_FEATURES:
        *(unsigned *)p = 0;
        return;
    case FIELD_FACTORS:
        memset(p, 0, SPEC_LONGROPE_MAX * sizeof(double));
        return;
    }
}

static void derive(const struct json *o, struct spec *s)
{
    if (!json_get(o, "num-query-groups"))
        s->kv_heads = s->heads;
    if (!json_get(o, "kv-channels"))
        s->head_dim = s->heads > 0 ? s->hidden / s->heads : 0;
    if (!json_get(o, "padded-vocab-size"))
        s->padded_vocab = s->vocab;
}

static int read_field(const struct field *f, const struct json *o, const char *name, struct spec *s,
                      struct err *e)
{
    const struct json *v = json_get(o, f->key);
    void *p = (char *)s + f->offset;
    if (!v && !isnan(f->usual)) {
        set_usual(f, s);
        return 0;
    }
    switch (f->kind) {
    case FIELD_INT:
        if (!v || v->kind != JSON_INT)
            return spec_wrong(f, name, "a whole number", e);
        *(int64_t *)p = v->integer;
        return 0;
    case FIELD_REAL:
        if (!v || (v->kind != JSON_INT && v->kind != JSON_REAL))
            return spec_wrong(f, name, "a number", e);
        *(double *)p = v->real;
        return 0;
    case FIELD_BOOL:
    case FIELD_NOT:
        if (!v || v->kind != JSON_BOOL)
            return spec_wrong(f, name, "true or false", e);
        *(bool *)p = v->boolean == (f->kind == FIELD_BOOL);
        return 0;
    case FIELD_CHOICE:
        return read_choice(f, v, name, p, e);
    case FIELD_LAYERS:
        return read_layers(f, v, name, s, p, e);
    case FIELD_FEATURES:
        return read_features(f, v, name, p, e);
    case FIELD_FACTORS:
        return read_factors(f, v, name, p, e);
    }
    BUG("field kind %d", (int)f->kind);
}

/* Whether a list of texts has "model.KEY". */
static bool lists(const struct json *must_know, const char *key)
{
    static const char prefix[] = "model.";
    for (size_t i = 0; i < must_know->length; i++) {
        const struct json *v = &must_know->child[i];
        if (v->kind == JSON_STRING && !strncmp(v->string, prefix, sizeof(prefix) - 1) &&
            !strcmp(v->string + sizeof(prefix) - 1, key))
            return true;
    }
    return false;
}

int spec_from_manifest(const struct json *o, const struct json *must_know, const char *name,
                       struct spec *ret, struct err *e)
{
    struct spec s = {0};
    if (!o || o->kind != JSON_OBJECT)
        return err_set(e, ERR_DATA, "%s: the model is not a JSON object", name);
    for (int i = 0; i < FIELDS; i++) {
        int code = read_field(&fields[i], o, name, &s, e);
        if (code)
            return code;
    }
    derive(o, &s);
    s.qk_norm |= (s.features & SPEC_QK_NORM) != 0;
    s.parallel |= (s.features & SPEC_PARALLEL_RESIDUAL) != 0;
    s.features &= ~(unsigned)(SPEC_QK_NORM | SPEC_PARALLEL_RESIDUAL);
    for (size_t i = 0; i < o->length; i++) {
        int k = 0;
        while (k < FIELDS && strcmp(o->child[i].key, fields[k].key) != 0)
            k++;
        if (k == FIELDS && (!must_know || lists(must_know, o->child[i].key)))
            /* a later weft's model: to leave a part of it out would be another one */
            return err_set(e, ERR_DATA, "%s: this weft does not know \"%s\" of the model", name,
                           o->child[i].key);
    }
    struct err why;
    if (spec_check(&s, &why))
        return err_set(e, ERR_DATA, "%s: the model cannot be: %s", name, why.msg);
    *ret = s;
    return 0;
}

bool spec_differ(const struct spec *a, const struct spec *b, struct buf *out)
{
    bool differ = false;
    for (int i = 0; i < FIELDS; i++) {
        const struct field *f = &fields[i];
        struct buf x = {0}, y = {0};
        if (f->offset == offsetof(struct spec, padded_vocab) ||
            f->offset == offsetof(struct spec, init_std) ||
            f->offset == offsetof(struct spec, balance_coeff) ||
            f->offset == offsetof(struct spec, z_coeff) ||
            f->offset == offsetof(struct spec, hidden_dropout) ||
            f->offset == offsetof(struct spec, attention_dropout) ||
            (is_usual(f, a) && is_usual(f, b)))
            continue;
        if (f->kind == FIELD_FACTORS && !is_usual(f, a) && !is_usual(f, b)) {
            if (memcmp((const char *)a + f->offset, (const char *)b + f->offset,
                       SPEC_LONGROPE_MAX * sizeof(double)) != 0) {
                buf_addf(out, "%s\"%s\" differ", differ ? "; " : "", f->key);
                differ = true;
            }
            continue;
        }
        write_field(f, a, &x);
        write_field(f, b, &y);
        if (strcmp(buf_str(&x), buf_str(&y)) != 0) {
            const char *value = strchr(y.data, ':') + 2;
            buf_addf(out, "%s%s and %s", differ ? "; " : "", x.data, value);
            differ = true;
        }
        buf_finish(&x);
        buf_finish(&y);
    }
    buf_str(out);
    return differ;
}
