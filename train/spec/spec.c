/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/spec.h"

#include <math.h>
#include <string.h>

enum { SIZE_MAX_DIM = 1 << 28, LAYERS_MAX = 10000 };

/* ---- the fields, as a checkpoint names them ------------------------------------------------ */

enum field_kind { FIELD_INT, FIELD_REAL, FIELD_BOOL, FIELD_NOT, FIELD_CHOICE, FIELD_FEATURES };

struct field {
    const char *key; /* the option's name where there is one */
    enum field_kind kind;
    double usual; /* of a model from before the field was there: what weft did then; NEEDED: it was
                     always there; DERIVED: derive() has it */
    size_t offset;
    const char *choice[3]; /* texts of an enum's values, in its order */
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
    FIELD("rope-scaling", FIELD_CHOICE, SPEC_ROPE_PLAIN, rope_scaling, "none", "llama3"),
    FIELD("rope-scaling-factor", FIELD_REAL, 8, rope_factor, NULL),
    FIELD("rope-low-freq-factor", FIELD_REAL, 1, rope_low, NULL),
    FIELD("rope-high-freq-factor", FIELD_REAL, 4, rope_high, NULL),
    FIELD("rope-original-max-positions", FIELD_INT, 8192, rope_old_length, NULL),
    FIELD("normalization", FIELD_CHOICE, SPEC_LAYERNORM, norm, "LayerNorm", "RMSNorm"),
    FIELD("norm-epsilon", FIELD_REAL, 1e-5, norm_eps, NULL),
    FIELD("activation", FIELD_CHOICE, SPEC_GELU_TANH, act, "gelu-tanh", "gelu-erf", "swiglu"),
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
    {SPEC_ROPE_OTHER, "rope-other", "rotary scaling other than llama3"},
    {SPEC_GATED_GELU, "gated-gelu", "a gated MLP with GELU"},
    {SPEC_EMBED_SCALE, "embedding-scale", "scaled embeddings"},
    {SPEC_QUERY_SCALE, "query-scale", "a query scale of its own"},
    {SPEC_PART_BIAS, "part-bias", "biases on some linear layers alone"},
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

int spec_can_run(const struct spec *s, const char *name, struct err *e)
{
    struct buf b = {0};
    spec_feature_words(s->features, &b);
    int code = b.len ? err_set(e, ERR_USAGE, "%s: train cannot run this model yet: it has %s", name,
                               buf_str(&b))
                     : 0;
    buf_finish(&b);
    return code;
}

/* ---- JSON both ways ------------------------------------------------------------------------ */

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
    case FIELD_FEATURES:
        write_features(s->features, out);
        break;
    }
}

static bool is_usual(const struct field *f, const struct spec *s)
{
    const char *p = (const char *)s + f->offset;
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
    case FIELD_FEATURES:
        return !s->features;
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
    for (int i = 0; v && v->kind == JSON_STRING && i < 3 && f->choice[i]; i++) {
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
    case FIELD_FEATURES:
        *(unsigned *)p = 0;
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
    case FIELD_FEATURES:
        return read_features(f, v, name, p, e);
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

int spec_from_json(const struct json *o, const char *name, struct spec *ret, struct err *e)
{
    return spec_from_manifest(o, NULL, name, ret, e);
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
    s.features &= ~(unsigned)SPEC_QK_NORM;
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
            f->offset == offsetof(struct spec, attention_dropout))
            continue;
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

/* ---- judging ------------------------------------------------------------------------------- */

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
        {"num-layers", s->layers, LAYERS_MAX},
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

static int check_rope(const struct spec *s, struct err *e)
{
    if (s->position != SPEC_ROPE)
        return 0;
    if (!(s->rope_base >= 1) || !isfinite(s->rope_base))
        return err_set(e, ERR_USAGE, "rotary-base is %g: it must be at least 1", s->rope_base);
    if (!(s->rope_percent > 0 && s->rope_percent <= 1))
        return err_set(e, ERR_USAGE, "rotary-percent is %g: it must be above 0 and at most 1",
                       s->rope_percent);
    int64_t turned = (int64_t)(s->rope_percent * (double)s->head_dim);
    if (turned < 2 || turned % 2)
        return err_set(e, ERR_USAGE,
                       "%lld of %lld dimensions of a head would be turned, which "
                       "is not a positive even number",
                       (long long)turned, (long long)s->head_dim);
    if (s->rope_scaling == SPEC_ROPE_PLAIN)
        return 0;
    if (!(s->rope_factor >= 1) || !isfinite(s->rope_factor))
        return err_set(e, ERR_USAGE, "rope-scaling-factor is %g: it must be at least 1",
                       s->rope_factor);
    if (!(s->rope_low > 0 && s->rope_high > s->rope_low) || !isfinite(s->rope_high) ||
        s->rope_old_length < 1)
        return err_set(e, ERR_USAGE,
                       "rotary scaling with the factors %g and %g over %lld "
                       "positions cannot be",
                       s->rope_low, s->rope_high, (long long)s->rope_old_length);
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
    if (s->topk == 1 && !s->route_before) {
        err_set(e, ERR_USAGE, "moe-router-topk 1: the weight of the one expert would always be 1");
        return err_hint(e, "give --moe-router-pre-softmax");
    }
    if (s->act != SPEC_SWIGLU || s->bias)
        return err_set(e, ERR_USAGE,
                       "num-experts %lld: expected experts with swiglu and without biases",
                       (long long)s->experts);
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

void spec_settle(struct spec *s)
{
    if (s->position != SPEC_ROPE) {
        s->rope_base = 10000;
        s->rope_percent = 1;
        s->rope_scaling = SPEC_ROPE_PLAIN;
    }
    if (s->rope_scaling == SPEC_ROPE_PLAIN) {
        s->rope_factor = 8;
        s->rope_low = 1;
        s->rope_high = 4;
        s->rope_old_length = 8192;
    }
    if (s->bias)
        s->qkv_bias = false;
    if (s->experts)
        s->ffn = s->expert_ffn; /* no layer has another MLP */
    if (!s->experts) {
        s->topk = s->expert_ffn = 0;
        s->route_before = false;
        s->balance_coeff = s->z_coeff = 0;
    }
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
    double ffn = s->experts ? (double)(s->topk * s->expert_ffn) : (double)s->ffn;
    double mlp = ffn / C * (s->act == SPEC_SWIGLU ? 1.5 : 1.0);
    double head = (double)s->padded_vocab / (2 * L * C);
    return 12 * B * T * L * C * C * ((1 + groups + T / (2 * C)) * queries + mlp + head);
}
