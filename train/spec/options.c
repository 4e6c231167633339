/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/spec/hf.h"
#include "train/spec/pattern.h"
#include "base/format/json.h"

struct alone {
    struct spec_flags m;
};

static const struct opt rows[] = {
    SPEC_FLAG_ROWS(struct alone, m, 0), SPEC_IGNORE_ROW(struct alone, m, 0), {.name = NULL}};

_Static_assert(sizeof(rows) / sizeof(rows[0]) - 1 <= 64, "spec_flags.given has 64 bits");

static const char *name_at(size_t offset)
{
    for (int i = 0; rows[i].name; i++)
        if (rows[i].offset == offset)
            return rows[i].name;
    BUG("no model option at offset %zu", offset);
}

static bool is_given(const struct spec_flags *f, const char *name)
{
    int i = 0;
    while (strcmp(rows[i].name, name) != 0)
        i++;
    return f->given >> i & 1;
}

/* The sizes that an option beside a preset changes in the preset's configuration. */
static const struct {
    const char *key;
    size_t offset;
} config_sizes[] = {
    {"hidden_size", offsetof(struct alone, m.hidden)},
    {"num_hidden_layers", offsetof(struct alone, m.layers)},
    {"num_attention_heads", offsetof(struct alone, m.heads)},
    {"num_key_value_heads", offsetof(struct alone, m.query_groups)},
    {"head_dim", offsetof(struct alone, m.kv_channels)},
    {"intermediate_size", offsetof(struct alone, m.ffn)},
    {"max_position_embeddings", offsetof(struct alone, m.max_positions)},
};

/* The preset's configuration with the sizes that were given. */
static const char *resize_config(const struct spec_flags *f, struct opts *o)
{
    struct buf text = {0};
    buf_adds(&text, f->hf_config);
    for (size_t i = 0; i < sizeof(config_sizes) / sizeof(*config_sizes); i++) {
        int64_t size;
        const char *key = arena_printf(&o->arena, "\"%s\": ", config_sizes[i].key);
        char *at = strstr(buf_str(&text), key);
        if (!at || !is_given(f, name_at(config_sizes[i].offset)))
            continue;
        memcpy(&size, (const char *)f + config_sizes[i].offset, sizeof(size));
        at += strlen(key);
        const char *rest = arena_strdup(&o->arena, at + strspn(at, "0123456789"));
        text.len = (size_t)(at - text.data);
        buf_addf(&text, "%lld%s", (long long)size, rest);
    }
    const char *ret = arena_strdup(&o->arena, buf_str(&text));
    buf_finish(&text);
    return ret;
}

void spec_flags_note(struct spec_flags *f, struct opts *o)
{
    f->given = 0;
    for (int i = 0; rows[i].name; i++)
        if (opts_origin(o, rows[i].name) != FROM_DEFAULT)
            f->given |= UINT64_C(1) << i;
    f->preset_config = spec_flags_text(f) && opts_origin(o, "hf-config") == FROM_PRESET;
    if (f->preset_config)
        f->hf_config = resize_config(f, o);
}

/* A value of the option as its user writes it. */
static void put_value(struct buf *b, const char *name, double v)
{
    const struct opt *o = rows;
    while (strcmp(o->name, name) != 0)
        o++;
    if (o->type == OPT_INT) {
        buf_addf(b, "%.0f", v);
    } else if (o->type == OPT_CHOICE) {
        const char *word = o->meta;
        for (int i = 0; i < (int)v && strchr(word, '|'); i++)
            word = strchr(word, '|') + 1;
        buf_add(b, word, strcspn(word, "|"));
    } else if (o->type == OPT_SWITCH) {
        buf_adds(b, v != 0 ? "true" : "false");
    } else {
        jsonw_real(b, v);
    }
}

static const char of_preset[] = "the preset";

static int hint_of_config(const char *name, struct err *e)
{
    return err_hint(e,
                    name == of_preset
                        ? "the preset decides all but the sizes: leave the option or the preset out"
                        : "the configuration decides the model's shape: leave the option or "
                          "--hf-config out");
}

static int options_refuse(const char *name, double flag, const char *path, double file,
                          struct err *e)
{
    struct buf said = {0}, found = {0};
    put_value(&said, name, flag);
    put_value(&found, name, file);
    err_set(e, ERR_USAGE, "--%s %s differs from %s, which has %s", name, buf_str(&said), path,
            buf_str(&found));
    buf_finish(&said);
    buf_finish(&found);
    return hint_of_config(path, e);
}

const char *spec_flags_text(const struct spec_flags *f)
{
    return f->hf_config && f->hf_config[0] == '{' ? f->hf_config : NULL;
}

char *spec_flags_config(const struct spec_flags *f)
{
    if (!f->hf_config || spec_flags_text(f))
        return NULL;
    return file_is_dir(f->hf_config) ? path_join(f->hf_config, "config.json")
                                     : mem_strdup(f->hf_config);
}

bool spec_flags_shaped(const struct spec_flags *f)
{
    return f->hf_config || f->layers || f->hidden || f->heads || f->max_positions;
}

/* ---- beside a config.json ------------------------------------------------------------------ */

/* An option of the model's shape: its value, and the one that the file asks for. */
struct shape_value {
    const char *name;
    double flag, file;
};

enum { SHAPE_VALUES = 33 };

#define NAME(member) name_at(offsetof(struct alone, m.member))

static void shape_values(const struct spec_flags *f, const struct spec *s,
                         struct shape_value ret[SHAPE_VALUES])
{
    bool gelu = !spec_gated(s);
    const struct shape_value all[SHAPE_VALUES] = {
        {NAME(layers), (double)f->layers, (double)s->layers},
        {NAME(hidden), (double)f->hidden, (double)s->hidden},
        {NAME(ffn), (double)f->ffn, (double)s->ffn},
        {NAME(heads), (double)f->heads, (double)s->heads},
        {NAME(gqa), f->gqa, s->kv_heads != s->heads},
        {NAME(query_groups), (double)f->query_groups, (double)s->kv_heads},
        {NAME(kv_heads), (double)f->kv_heads, (double)s->kv_heads},
        {NAME(kv_channels), (double)f->kv_channels, (double)s->head_dim},
        {NAME(max_positions), (double)f->max_positions, (double)s->max_positions},
        {NAME(position), f->position, (double)s->position},
        {NAME(rotary), f->rotary, s->position == SPEC_ROPE},
        {NAME(rotary_base), f->rotary_base, s->rope_base},
        {NAME(rotary_percent), f->rotary_percent, s->rope_percent},
        {NAME(rope_scaling), f->rope_scaling, s->rope_scaling == SPEC_ROPE_LLAMA3},
        {NAME(rope_factor), f->rope_factor,
         s->rope_scaling == SPEC_ROPE_LLAMA3 ? s->rope_factor : f->rope_factor},
        {NAME(rope_linear), f->rope_linear,
         s->rope_scaling == SPEC_ROPE_LINEAR ? s->rope_factor : 0},
        {NAME(norm), f->norm, (double)s->norm},
        {NAME(norm_eps), f->norm_eps, s->norm_eps},
        {NAME(swiglu), f->swiglu, s->act == SPEC_SWIGLU},
        /* which form of GELU has no meaning with SwiGLU */
        {NAME(gelu_tanh), f->gelu_tanh, gelu ? s->act == SPEC_GELU_TANH : f->gelu_tanh},
        {NAME(no_bias), f->no_bias, !s->bias},
        {NAME(qkv_bias), f->qkv_bias, s->bias || s->qkv_bias},
        {NAME(qk_norm), f->qk_norm, s->qk_norm},
        {NAME(zero_centered), f->zero_centered, s->zero_centered},
        {NAME(parallel), f->parallel, s->parallel},
        {NAME(no_position), f->no_position, s->position == SPEC_ROPE && f->no_position},
        {NAME(shared_ffn), (double)f->shared_ffn, (double)s->shared_ffn},
        {NAME(shared_gate), f->shared_gate, s->shared_gate},
        {NAME(untie), f->untie, !s->tied},
        {NAME(experts), (double)f->experts, (double)s->experts},
        /* these have no meaning without experts */
        {NAME(topk), (double)f->topk, (double)(s->experts ? s->topk : f->topk)},
        {NAME(expert_ffn), (double)f->expert_ffn,
         (double)(s->experts ? s->expert_ffn : f->expert_ffn)},
        {NAME(route_before), f->route_before, s->experts ? s->route_before : f->route_before},
    };
    memcpy(ret, all, sizeof(all));
}

/* ---- layers that differ --------------------------------------------------------------------- */

static void complement(struct spec_layers *p, int64_t layers)
{
    for (int64_t l = 0; l < layers; l++)
        p->bits[l / 8] ^= (uint8_t)(1 << l % 8);
}

/* Layers with a window: all but each Nth, or those of the list. */
static int window_layers(const char *text, int64_t layers, struct spec_layers *ret, struct err *e)
{
    int64_t every = SPEC_LAYERS_MAX + 1;
    *ret = (struct spec_layers){0};
    int code = text ? pattern_read(NAME(window_layers), text, layers, &every, ret, e) : 0;
    for (int64_t l = 0; !code && every && l < layers; l++)
        if ((l + 1) % every)
            spec_layers_add(ret, l);
    return code;
}

/* Layers without experts: all but the first of each N, or the zeros of the list. */
static int dense_layers(const char *text, int64_t layers, struct spec_layers *ret, struct err *e)
{
    int64_t every = 1;
    *ret = (struct spec_layers){0};
    int code = text ? pattern_read(NAME(moe_layers), text, layers, &every, ret, e) : 0;
    if (!code && !every)
        complement(ret, layers);
    for (int64_t l = 0; !code && every && l < layers; l++)
        if (l % every)
            spec_layers_add(ret, l);
    return code;
}

/* The windows and dense layers of the options, into a spec whose layers and positions are known. */
static int read_patterns(const struct spec_flags *f, struct spec *s, struct err *e)
{
    int code = f->window ? pattern_window(f->window, &s->window, e) : 0;
    if (!code && s->window >= s->max_positions)
        s->window = 0;
    if (!code && f->window)
        code = window_layers(f->window_layers, s->layers, &s->windowed, e);
    if (!code)
        code = dense_layers(f->moe_layers, s->layers, &s->dense, e);
    return code;
}

/* As the options would name them; empty: not at all. */
static void put_window(const struct spec *s, struct buf *b)
{
    if (s->window)
        buf_addf(b, "%lld,0", (long long)s->window - 1);
}

static void put_window_layers(const struct spec *s, struct buf *b)
{
    if (s->window)
        pattern_write(&s->windowed, s->layers, b);
}

static void put_moe_layers(const struct spec *s, struct buf *b)
{
    struct spec_layers with = s->dense;
    complement(&with, s->layers);
    if (s->experts && !spec_layers_none(&s->dense))
        pattern_write(&with, s->layers, b);
}

static const struct {
    size_t offset;
    void (*put)(const struct spec *s, struct buf *b);
} patterns[] = {{offsetof(struct alone, m.window), put_window},
                {offsetof(struct alone, m.window_layers), put_window_layers},
                {offsetof(struct alone, m.moe_layers), put_moe_layers}};
enum { PATTERNS = sizeof(patterns) / sizeof(patterns[0]) };

static bool same_layers(const struct spec_layers *a, const struct spec_layers *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* Those that somebody named must be the model's. */
static int patterns_agree(const struct spec_flags *f, const struct spec *s, const char *name,
                          struct err *e)
{
    struct spec other = *s;
    int code = 0;
    if (is_given(f, NAME(window))) {
        code = pattern_window(f->window, &other.window, e);
        if (other.window >= s->max_positions)
            other.window = 0;
    }
    if (!code && is_given(f, NAME(window_layers)) && s->window)
        code = window_layers(f->window_layers, s->layers, &other.windowed, e);
    if (!code && is_given(f, NAME(moe_layers)) && s->experts)
        code = dense_layers(f->moe_layers, s->layers, &other.dense, e);
    if (code)
        return code;
    const bool differ[PATTERNS] = {other.window != s->window,
                                   !same_layers(&other.windowed, &s->windowed),
                                   !same_layers(&other.dense, &s->dense)};
    for (int i = 0; i < PATTERNS; i++) {
        if (!differ[i])
            continue;
        struct buf found = {0};
        patterns[i].put(s, &found);
        err_set(e, ERR_USAGE, "--%s differs from %s, which has %s", name_at(patterns[i].offset),
                name, found.len ? buf_str(&found) : "none");
        buf_finish(&found);
        return hint_of_config(name, e);
    }
    return 0;
}

/* Every option of the shape that somebody named must have the value of the model from `name`. */
static int check_agreement(const struct spec_flags *f, const struct spec *s, const char *name,
                           struct err *e)
{
    struct shape_value v[SHAPE_VALUES];
    shape_values(f, s, v);
    for (int i = 0; i < SHAPE_VALUES; i++)
        if (is_given(f, v[i].name) && v[i].flag != v[i].file)
            return options_refuse(v[i].name, v[i].flag, name, v[i].file, e);
    return patterns_agree(f, s, name, e);
}

/* A model that is known: what may be named beside it, and the vocabulary. */
static int beside_model(const struct spec_flags *f, const char *name, int64_t vocab, struct spec *s,
                        struct err *e)
{
    int code = spec_can_run(s, name, e);
    if (!code)
        code = check_agreement(f, s, name, e);
    if (code)
        return code;
    if (vocab > s->vocab)
        return err_set(e, ERR_USAGE, "the tokenizer has %lld ids, but the model of %s only %lld",
                       (long long)vocab, name, (long long)s->vocab);
    if (is_given(f, NAME(init_std)))
        s->init_std = f->init_std;
    if (is_given(f, NAME(balance_coeff)))
        s->balance_coeff = f->balance_coeff;
    if (f->balancing)
        s->balance_coeff = 0;
    if (is_given(f, NAME(z_coeff)))
        s->z_coeff = f->z_coeff;
    if (is_given(f, NAME(attention_dropout)))
        s->attention_dropout = f->attention_dropout;
    if (is_given(f, NAME(hidden_dropout)))
        s->hidden_dropout = f->hidden_dropout;
    return 0;
}

static int from_file(const struct spec_flags *f, int64_t vocab, struct spec *s, struct err *e)
{
    struct hf_ignore ignore = {f->ignored_keys.item, f->ignored_keys.n, false};
    struct hf_model m;
    char *path = spec_flags_config(f);
    const char *text = spec_flags_text(f);
    const char *name = f->preset_config ? of_preset : text ? "--hf-config" : path;
    int code = text ? hf_config_parse(name, text, strlen(text), &ignore, &m, e)
                    : hf_config_open(path, &ignore, &m, e);
    *s = m.spec;
    if (!code)
        code = beside_model(f, name, vocab, s, e);
    free(path);
    return code;
}

static int fill_one(struct opts *o, const char *name, double v, const char *where, struct err *e)
{
    struct buf text = {0};
    put_value(&text, name, v);
    int code = opts_set_from(o, FROM_PRESET, where, name, buf_str(&text), e);
    buf_finish(&text);
    return code;
}

static int fill_patterns(struct opts *o, const struct spec *s, const char *where, struct err *e)
{
    int code = 0;
    for (int i = 0; i < PATTERNS && !code; i++) {
        struct buf text = {0};
        patterns[i].put(s, &text);
        if (text.len)
            code = opts_set_from(o, FROM_PRESET, where, name_at(patterns[i].offset), buf_str(&text),
                                 e);
        buf_finish(&text);
    }
    return code;
}

/* Whether the option concerns experts: of a dense model it has no value to show. */
static bool of_experts(const char *name)
{
    return !strcmp(name, NAME(experts)) || !strncmp(name, "moe-", 4);
}

int spec_flags_fill(const struct spec_flags *f, struct opts *o, struct err *e)
{
    struct shape_value v[SHAPE_VALUES];
    struct spec s = {0};
    int code = f->hf_config ? from_file(f, 0, &s, e) : 0;
    if (code || !f->hf_config)
        return code;
    const char *where =
        spec_flags_text(f) ? "hf-config" : arena_printf(&o->arena, "file %s", f->hf_config);
    shape_values(f, &s, v);
    for (int i = 0; i < SHAPE_VALUES && !code; i++)
        if (s.experts || !of_experts(v[i].name))
            code = fill_one(o, v[i].name, v[i].file, where, e);
    if (!code)
        code = fill_patterns(o, &s, where, e);
    if (!code)
        code = fill_one(o, NAME(init_std), s.init_std, where, e);
    if (!code && s.experts)
        code = fill_one(o, NAME(balance_coeff), s.balance_coeff, where, e);
    if (!code && s.experts)
        code = fill_one(o, NAME(z_coeff), s.z_coeff, where, e);
    if (!code)
        code = fill_one(o, NAME(attention_dropout), s.attention_dropout, where, e);
    if (!code)
        code = fill_one(o, NAME(hidden_dropout), s.hidden_dropout, where, e);
    return code;
}

/* ---- from the options alone ---------------------------------------------------------------- */

static int options_need(const char *name, int64_t v, struct err *e)
{
    if (v)
        return 0;
    err_set(e, ERR_USAGE, "--%s is not given", name);
    return err_hint(e, "give it, or take a whole model by --preset NAME or --hf-config PATH");
}

static int check_needed(const struct spec_flags *f, int64_t vocab, struct err *e)
{
    int code = options_need("num-layers", f->layers, e);
    if (!code)
        code = options_need("hidden-size", f->hidden, e);
    if (!code)
        code = options_need("num-attention-heads", f->heads, e);
    if (!code)
        code = options_need("max-position-embeddings", f->max_positions, e);
    if (code)
        return code;
    if (f->no_position && !f->rotary && f->position != SPEC_ROPE) {
        err_set(e, ERR_USAGE, "--no-position-embedding: the model would know no positions");
        return err_hint(e, "give --position-embedding-type rope");
    }
    if (f->rope_linear > 0 && f->rope_scaling)
        return err_set(e, ERR_USAGE,
                       "--use-rope-scaling and --rotary-seq-len-interpolation-factor exclude each "
                       "other");
    if (f->rope_linear != 0 && !(f->rope_linear >= 1))
        return err_set(e, ERR_USAGE,
                       "--rotary-seq-len-interpolation-factor %g: expected at least 1",
                       f->rope_linear);
    if (vocab < 1) {
        err_set(e, ERR_USAGE, "the size of the vocabulary is not known");
        return err_hint(e, "name the tokenizer");
    }
    if (!f->kv_channels && f->hidden % f->heads)
        return err_set(e, ERR_USAGE,
                       "--hidden-size %lld is not a multiple of "
                       "--num-attention-heads %lld, and --kv-channels is not given",
                       (long long)f->hidden, (long long)f->heads);
    int64_t width = f->kv_channels ? 0 : f->hidden / f->heads;
    if (width > SPEC_HEAD_MAX) {
        err_set(e, ERR_USAGE,
                "--hidden-size %lld over --num-attention-heads %lld gives heads of %lld "
                "channels, and weft has at most %d",
                (long long)f->hidden, (long long)f->heads, (long long)width, SPEC_HEAD_MAX);
        return err_hint(e, "give more heads, or --kv-channels");
    }
    if (f->kv_heads && f->gqa && f->kv_heads != f->query_groups)
        return err_set(e, ERR_USAGE,
                       "--num-key-value-heads %lld and --num-query-groups %lld differ",
                       (long long)f->kv_heads, (long long)f->query_groups);
    if (!f->gqa && f->query_groups != 1 && f->query_groups != f->heads) {
        err_set(e, ERR_USAGE,
                "--num-query-groups %lld has no effect without "
                "--group-query-attention",
                (long long)f->query_groups);
        return err_hint(e, "give both or none");
    }
    return 0;
}

static struct spec from_options(const struct spec_flags *f, int64_t vocab)
{
    int64_t ffn = f->swiglu ? f->hidden * 8 / 3 / 64 * 64 : f->hidden * 4;
    struct spec s = {
        .layers = f->layers,
        .hidden = f->hidden,
        .heads = f->heads,
        .kv_heads = f->gqa        ? f->query_groups
                    : f->kv_heads ? f->kv_heads
                                  : f->heads,
        .head_dim = f->kv_channels ? f->kv_channels : f->hidden / f->heads,
        .ffn = f->ffn ? f->ffn : ffn,
        .vocab = vocab,
        .max_positions = f->max_positions,
        .norm = (enum spec_norm)f->norm,
        .act = f->swiglu      ? SPEC_SWIGLU
               : f->gelu_tanh ? SPEC_GELU_TANH
                              : SPEC_GELU_ERF,
        .position = f->rotary ? SPEC_ROPE : (enum spec_position)f->position,
        .rope_scaling = f->rope_scaling      ? SPEC_ROPE_LLAMA3
                        : f->rope_linear > 0 ? SPEC_ROPE_LINEAR
                                             : SPEC_ROPE_PLAIN,
        .norm_eps = f->norm_eps,
        .rope_base = f->rotary_base,
        .rope_percent = f->rotary_percent,
        .rope_factor = f->rope_linear > 0 ? f->rope_linear : f->rope_factor,
        .rope_low = 1,
        .rope_high = 4,
        .rope_old_length = 8192,
        .tied = !f->untie,
        .bias = !f->no_bias,
        .qkv_bias = f->qkv_bias,
        .qk_norm = f->qk_norm,
        .zero_centered = f->zero_centered,
        .parallel = f->parallel,
        .init_std = f->init_std,
        .hidden_dropout = f->hidden_dropout,
        .attention_dropout = f->attention_dropout,
        .experts = f->experts,
        .topk = f->topk,
        .expert_ffn = f->expert_ffn ? f->expert_ffn
                      : f->ffn      ? f->ffn
                                    : ffn,
        .route_before = f->route_before,
        .shared_ffn = f->shared_ffn,
        .shared_gate = f->shared_gate,
        .balance_coeff = f->balancing ? 0 : f->balance_coeff,
        .z_coeff = f->z_coeff,
    };
    return s;
}

int spec_from_flags(const struct spec_flags *f, int64_t vocab, int tp, struct spec *ret,
                    struct err *e)
{
    struct spec s = {0};
    int code = f->hf_config ? from_file(f, vocab, &s, e) : check_needed(f, vocab, e);
    if (code)
        return code;
    if (!f->hf_config)
        s = from_options(f, vocab);
    if (!f->hf_config && (code = read_patterns(f, &s, e)) != 0)
        return code;
    if (!f->hf_config)
        spec_settle(&s);
    s.padded_vocab = spec_pad_vocab(s.vocab, f->vocab_divisor, tp);
    code = spec_check(&s, e);
    if (!code)
        *ret = s;
    return code;
}

int spec_from_model(const struct spec_flags *f, const char *name, int64_t vocab, int tp,
                    struct spec *s, struct err *e)
{
    int code = beside_model(f, name, vocab, s, e);
    if (code)
        return code;
    s->padded_vocab = spec_pad_vocab(s->vocab, f->vocab_divisor, tp);
    return spec_check(s, e);
}
