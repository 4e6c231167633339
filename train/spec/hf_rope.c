/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rotary positions of a config.json. transformers 4 writes rope_theta, partial_rotary_factor (or
 * rotary_pct, rotary_emb_base) and rope_scaling; transformers 5 writes all of it into
 * rope_parameters, for Gemma 3 once per type of layer. Both may stand in one file and must agree.
 */

#include <math.h>
#include <string.h>

#include "train/spec/hf_read.h"

static const char *const rope_keys[] = {"rope_type",        "type",
                                        "rope_theta",       "partial_rotary_factor",
                                        "factor",           "low_freq_factor",
                                        "high_freq_factor", "original_max_position_embeddings",
                                        "attention_factor", "beta_fast",
                                        "beta_slow",        "mscale",
                                        "mscale_all_dim",   "truncate",
                                        "short_factor",     "long_factor",
                                        "short_mscale",     "long_mscale"};

static bool rope_among(const char *word, const char *const *list, size_t n)
{
    bool found = false;
    for (size_t i = 0; i < n; i++)
        found |= !strcmp(word, list[i]);
    return found;
}

/* One fact under several names, whose values must be equal. `seen`: one of them was there. */
static void rope_number(struct hf_reader *h, const char *key, bool *seen, double *v)
{
    const struct json *j = hf_get(h, key);
    double x = hf_real(h, key, 0);
    if (!j || h->code)
        return;
    if (*seen && x != *v)
        h->code =
            err_set(h->e, ERR_DATA, "%s: \"%s\" is %.10g, and another key for the same says %.10g",
                    h->path, key, x, *v);
    *seen = true;
    *v = x;
}

struct rope_seen {
    bool theta, percent;
};

/* One list of a longrope: as many as there are, of pairs that spec_check counts. */
static void rope_factors(struct hf_reader *in, const char *key, double ret[SPEC_LONGROPE_MAX])
{
    const struct json *v = hf_get(in, key);
    if (!v || v->kind != JSON_ARRAY || v->length > SPEC_LONGROPE_MAX) {
        hf_malformed(in, key, "an array of at most 64 numbers");
        return;
    }
    for (size_t i = 0; i < v->length; i++) {
        if (v->child[i].kind != JSON_INT && v->child[i].kind != JSON_REAL)
            hf_malformed(in, key, "an array of numbers");
        ret[i] = v->child[i].real;
    }
}

/*
 * The length that the model was trained for may stand beside the object, and the factor of the
 * attention follows from how much longer it has become.
 */
static void rope_long(struct hf_reader *in, const struct hf_reader *root, struct spec *s)
{
    static const char old[] = "original_max_position_embeddings";
    s->rope_scaling = SPEC_ROPE_LONG;
    rope_factors(in, "short_factor", s->longrope.near);
    rope_factors(in, "long_factor", s->longrope.far);
    s->rope_old_length = hf_int(in, old, 0);
    if (!s->rope_old_length && hf_get(root, old) && hf_get(root, old)->kind == JSON_INT)
        s->rope_old_length = hf_get(root, old)->integer;
    if (!s->rope_old_length)
        s->rope_old_length = 4096; /* of Phi-3's class */
    double longer = (double)s->max_positions / (double)s->rope_old_length;
    longer = hf_real(in, "factor", longer);
    s->longrope.attention =
        hf_real(in, "attention_factor",
                longer > 1 ? sqrt(1 + log(longer) / log((double)s->rope_old_length)) : 1);
}

/* Positions that the scaling is for, where they are more than those of training. */
static void rope_reach(struct spec *s)
{
    double reach = s->rope_factor * (double)s->rope_old_length;
    if (reach > (double)s->max_positions && reach < 1 << 28)
        s->max_positions = (int64_t)reach;
}

static void rope_dynamic(struct hf_reader *in, struct hf_reader *root, struct spec *s)
{
    s->rope_scaling = SPEC_ROPE_DYNAMIC;
    s->rope_factor = hf_real(in, "factor", 0);
    s->rope_old_length = hf_need_int(root, "max_position_embeddings");
    rope_reach(s);
}

static double yarn_attention(double factor, double scale)
{
    return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

/* What is missing, or 0 in the bounds, has the value of transformers 5. */
static void rope_yarn(struct hf_reader *in, struct hf_reader *root, struct spec *s)
{
    static const char old[] = "original_max_position_embeddings";
    int64_t most = hf_need_int(root, "max_position_embeddings");
    s->rope_scaling = SPEC_ROPE_YARN;
    s->rope_old_length = hf_int(root, old, hf_int(in, old, most));
    s->rope_factor = hf_real(in, "factor", (double)most / (double)s->rope_old_length);
    double fast = hf_real(in, "beta_fast", 0), slow = hf_real(in, "beta_slow", 0);
    double mscale = hf_real(in, "mscale", 0), all = hf_real(in, "mscale_all_dim", 0);
    double f = s->rope_factor, usual = yarn_attention(f, 1);
    if (mscale != 0 && all != 0)
        usual = yarn_attention(f, mscale) / yarn_attention(f, all);
    s->yarn = (struct spec_yarn){.fast = fast != 0 ? fast : 32,
                                 .slow = slow != 0 ? slow : 1,
                                 .attention = hf_real(in, "attention_factor", usual),
                                 .exact = !hf_bool(in, "truncate", true)};
    rope_reach(s);
}

/* rope_scaling, rope_parameters, or one layer type's part of the latter. */
static void rope_object(struct hf_reader *h, const char *key, const struct json *v,
                        struct rope_seen *seen, struct spec *s)
{
    struct hf_reader in = {v, h->path, h->e, h->code};
    if (in.code)
        return;
    for (size_t i = 0; i < v->length; i++)
        if (!rope_among(v->child[i].key, rope_keys, sizeof(rope_keys) / sizeof(*rope_keys))) {
            in.code = err_set(h->e, ERR_DATA, "%s: the key \"%s\" of \"%s\" is not known", h->path,
                              v->child[i].key, key);
            break;
        }
    const char *type = hf_text(&in, "rope_type", hf_text(&in, "type", "default"));
    rope_number(&in, "rope_theta", &seen->theta, &s->rope_base);
    rope_number(&in, "partial_rotary_factor", &seen->percent, &s->rope_percent);
    if (strcmp(type, "llama3") == 0) {
        s->rope_scaling = SPEC_ROPE_LLAMA3;
        s->rope_factor = hf_real(&in, "factor", 0);
        s->rope_low = hf_real(&in, "low_freq_factor", 0);
        s->rope_high = hf_real(&in, "high_freq_factor", 0);
        s->rope_old_length = hf_need_int(&in, "original_max_position_embeddings");
    } else if (!strcmp(type, "linear")) {
        s->rope_scaling = SPEC_ROPE_LINEAR;
        s->rope_factor = hf_real(&in, "factor", 0);
    } else if (!strcmp(type, "longrope") || !strcmp(type, "su")) {
        rope_long(&in, h, s);
    } else if (!strcmp(type, "dynamic")) {
        rope_dynamic(&in, h, s);
    } else if (!strcmp(type, "yarn")) {
        rope_yarn(&in, h, s);
    } else if (strcmp(type, "default") != 0) {
        hf_refuse(&in, key, type, "this type of rotary scaling is not known");
    }
    h->code = in.code;
}

static void rope_scaling(struct hf_reader *h, const char *key, struct rope_seen *seen,
                         struct spec *s)
{
    const struct json *v = hf_get(h, key);
    if (!v || h->code)
        return;
    if (v->kind != JSON_OBJECT) {
        hf_malformed(h, key, "an object");
        return;
    }
    const struct json *full = json_get(v, "full_attention");
    const struct json *local = json_get(v, "sliding_attention");
    if (!full && !local) {
        rope_object(h, key, v, seen, s);
        return;
    }
    struct rope_seen other = {0};
    struct spec scratch = *s; /* of layers with a window */
    scratch.rope_scaling = SPEC_ROPE_PLAIN;
    scratch.rope_base = 10000;
    scratch.features = 0;
    for (size_t i = 0; i < v->length; i++) {
        bool is_full = &v->child[i] == full;
        if (!is_full && &v->child[i] != local)
            hf_refuse(h, key, v->child[i].key, "this type of layer is not known");
        else if (v->child[i].kind == JSON_OBJECT)
            rope_object(h, key, &v->child[i], is_full ? seen : &other, is_full ? s : &scratch);
        else if (v->child[i].kind != JSON_NULL)
            hf_malformed(h, key, "an object of objects");
    }
    s->rope_local_base = scratch.rope_base;
    if (scratch.rope_scaling != SPEC_ROPE_PLAIN || scratch.rope_percent != s->rope_percent)
        s->features |= SPEC_ROPE_OTHER;
    s->features |= scratch.features;
}

void hf_read_rope(struct hf_reader *h, double theta, struct spec *s)
{
    struct rope_seen seen = {0};
    s->position = SPEC_ROPE;
    s->rope_base = theta;
    s->rope_percent = 1;
    rope_number(h, "rope_theta", &seen.theta, &s->rope_base);
    rope_number(h, "rotary_emb_base", &seen.theta, &s->rope_base);
    rope_number(h, "partial_rotary_factor", &seen.percent, &s->rope_percent);
    rope_number(h, "rotary_pct", &seen.percent, &s->rope_percent);
    rope_scaling(h, "rope_scaling", &seen, s);
    enum spec_rope_scaling first = s->rope_scaling;
    bool both = hf_get(h, "rope_scaling") && hf_get(h, "rope_parameters");
    if (both)
        s->rope_scaling = SPEC_ROPE_PLAIN;
    rope_scaling(h, "rope_parameters", &seen, s);
    if (both && !h->code && s->rope_scaling != first)
        h->code =
            err_set(h->e, ERR_DATA,
                    "%s: \"rope_scaling\" and \"rope_parameters\" are of different types", h->path);
}
