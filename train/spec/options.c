/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/options.h"

#include <string.h>

#include "base/core/buf.h"

struct alone {
    struct spec_flags m;
};

static const struct opt rows[] = {SPEC_FLAG_ROWS(struct alone, m, 0), {.name = NULL}};

_Static_assert(sizeof(rows) / sizeof(rows[0]) - 1 <= 64, "spec_flags.given has 64 bits");

void spec_flags_note(struct spec_flags *f, const struct opts *o)
{
    f->given = 0;
    for (int i = 0; rows[i].name; i++)
        if (opts_origin(o, rows[i].name) != FROM_DEFAULT)
            f->given |= UINT64_C(1) << i;
}

/* The name of the option at this offset if somebody named it. */
static const char *given(const struct spec_flags *f, size_t offset)
{
    for (int i = 0; rows[i].name; i++)
        if (rows[i].offset == offset)
            return f->given >> i & 1 ? rows[i].name : NULL;
    BUG("no model option at offset %zu", offset);
}

#define GIVEN(f, member) given(f, offsetof(struct alone, m.member))

/* A value of the option as its user writes it. */
static void put_value(struct buf *b, const char *name, double v)
{
    const struct opt *o = rows;
    while (strcmp(o->name, name) != 0)
        o++;
    if (o->type == OPT_CHOICE) {
        const char *word = o->meta;
        for (int i = 0; i < (int)v && strchr(word, '|'); i++)
            word = strchr(word, '|') + 1;
        buf_add(b, word, strcspn(word, "|"));
    } else if (o->type == OPT_SWITCH) {
        buf_adds(b, v != 0 ? "true" : "false");
    } else {
        buf_addf(b, "%.10g", v);
    }
}

static int options_refuse(const char *name, double flag, const char *path, double file,
                          struct err *e)
{
    struct buf said = {0}, found = {0};
    put_value(&said, name, flag);
    put_value(&found, name, file);
    err_set(e, ERR_USAGE, "--%s (%s) is not what %s says (%s)", name, buf_str(&said), path,
            buf_str(&found));
    buf_finish(&said);
    buf_finish(&found);
    return err_hint(e, "the file decides the model's shape: leave the option or --hf-config out");
}

/* ---- beside a config.json ------------------------------------------------------------------ */

/* Every option of the shape that somebody named must say what the file says. */
static int check_agreement(const struct spec_flags *f, const struct spec *s, struct err *e)
{
    bool gelu = s->act != SPEC_SWIGLU;
    const struct {
        const char *name;
        double flag, file;
    } pairs[] = {
        {GIVEN(f, layers), (double)f->layers, (double)s->layers},
        {GIVEN(f, hidden), (double)f->hidden, (double)s->hidden},
        {GIVEN(f, ffn), (double)f->ffn, (double)s->ffn},
        {GIVEN(f, heads), (double)f->heads, (double)s->heads},
        {GIVEN(f, gqa), f->gqa, s->kv_heads != s->heads},
        {GIVEN(f, query_groups), (double)f->query_groups, (double)s->kv_heads},
        {GIVEN(f, kv_channels), (double)f->kv_channels, (double)s->head_dim},
        {GIVEN(f, max_positions), (double)f->max_positions, (double)s->max_positions},
        {GIVEN(f, position), f->position, (double)s->position},
        {GIVEN(f, rotary), f->rotary, s->position == SPEC_ROPE},
        {GIVEN(f, rotary_base), f->rotary_base, s->rope_base},
        {GIVEN(f, rotary_percent), f->rotary_percent, s->rope_percent},
        {GIVEN(f, rope_scaling), f->rope_scaling, s->rope_scaling == SPEC_ROPE_LLAMA3},
        {GIVEN(f, rope_factor), f->rope_factor, s->rope_factor},
        {GIVEN(f, norm), f->norm, (double)s->norm},
        {GIVEN(f, norm_eps), f->norm_eps, s->norm_eps},
        {GIVEN(f, swiglu), f->swiglu, !gelu},
        {gelu ? GIVEN(f, gelu_tanh) : NULL, f->gelu_tanh, s->act == SPEC_GELU_TANH},
        {GIVEN(f, no_bias), f->no_bias, !s->bias},
        {GIVEN(f, qkv_bias), f->qkv_bias, s->bias || s->qkv_bias},
        {GIVEN(f, untie), f->untie, !s->tied},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i].name && pairs[i].flag != pairs[i].file)
            return options_refuse(pairs[i].name, pairs[i].flag, f->hf_config, pairs[i].file, e);
    return 0;
}

static int from_file(const struct spec_flags *f, int64_t vocab, struct spec *s, struct err *e)
{
    int code = spec_from_hf(f->hf_config, s, e);
    if (!code)
        code = check_agreement(f, s, e);
    if (code)
        return code;
    if (vocab > s->vocab)
        return err_set(e, ERR_USAGE, "the tokenizer has %lld ids, but the model of %s only %lld",
                       (long long)vocab, f->hf_config, (long long)s->vocab);
    if (GIVEN(f, init_std))
        s->init_std = f->init_std;
    if (GIVEN(f, attention_dropout))
        s->attention_dropout = f->attention_dropout;
    if (GIVEN(f, hidden_dropout))
        s->hidden_dropout = f->hidden_dropout;
    return 0;
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
        .kv_heads = f->gqa ? f->query_groups : f->heads,
        .head_dim = f->kv_channels ? f->kv_channels : f->hidden / f->heads,
        .ffn = f->ffn ? f->ffn : ffn,
        .vocab = vocab,
        .max_positions = f->max_positions,
        .norm = (enum spec_norm)f->norm,
        .act = f->swiglu      ? SPEC_SWIGLU
               : f->gelu_tanh ? SPEC_GELU_TANH
                              : SPEC_GELU_ERF,
        .position = f->rotary ? SPEC_ROPE : (enum spec_position)f->position,
        .rope_scaling = f->rope_scaling ? SPEC_ROPE_LLAMA3 : SPEC_ROPE_PLAIN,
        .norm_eps = f->norm_eps,
        .rope_base = f->rotary_base,
        .rope_percent = f->rotary_percent,
        .rope_factor = f->rope_factor,
        .rope_low = 1,
        .rope_high = 4,
        .rope_old_length = 8192,
        .tied = !f->untie,
        .bias = !f->no_bias,
        .qkv_bias = f->qkv_bias,
        .init_std = f->init_std,
        .hidden_dropout = f->hidden_dropout,
        .attention_dropout = f->attention_dropout,
    };
    spec_settle(&s);
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
    s.padded_vocab = spec_pad_vocab(s.vocab, f->vocab_divisor, tp);
    code = spec_check(&s, e);
    if (!code)
        *ret = s;
    return code;
}
