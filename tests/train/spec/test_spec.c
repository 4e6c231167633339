/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/t.h"

static const struct spec gpt = {.layers = 12,
                                .hidden = 768,
                                .heads = 12,
                                .kv_heads = 12,
                                .head_dim = 64,
                                .ffn = 3072,
                                .vocab = 50257,
                                .padded_vocab = 50304,
                                .max_positions = 1024,
                                .norm_eps = 1e-5,
                                .rope_base = 10000,
                                .rope_percent = 1,
                                .rope_factor = 8,
                                .rope_low = 1,
                                .rope_high = 4,
                                .rope_old_length = 8192,
                                .tied = true,
                                .bias = true,
                                .init_std = 0.02,
                                .hidden_dropout = 0.1,
                                .attention_dropout = 0.1};

static struct spec llama(void)
{
    struct spec s = gpt;
    s.kv_heads = 4;
    s.norm = SPEC_RMSNORM;
    s.act = SPEC_SWIGLU;
    s.position = SPEC_ROPE;
    s.rope_scaling = SPEC_ROPE_LLAMA3;
    s.rope_base = 500000;
    s.rope_factor = 32;
    s.rope_old_length = 4096;
    s.tied = s.bias = false;
    s.qkv_bias = true;
    s.norm_eps = 0.1 + 0.2; /* no short decimal text */
    s.init_std = 1.0 / 3;
    s.hidden_dropout = 0;
    return s;
}

/* Windows in every other layer of 12, and in the first two of 4. */
static struct spec windows(int64_t layers)
{
    struct spec s = gpt;
    s.layers = layers;
    s.window = 7;
    for (int64_t l = 0; l < (layers == 4 ? 2 : layers); l += layers == 4 ? 1 : 2)
        spec_layers_add(&s.windowed, l);
    s.features = SPEC_WINDOW;
    return s;
}

static int parse(const char *text, struct spec *ret, struct err *e)
{
    struct json_doc *d;
    int code = json_parse("m.json", text, strlen(text), &d, e);
    T_OK(code, e);
    code = spec_from_manifest(json_root(d), NULL, "m.json", ret, e);
    json_close(d);
    return code;
}

static void json_there_and_back(void)
{
    struct spec all[] = {gpt, llama(), windows(12), windows(4), llama(), llama(), llama()}, back;
    all[4].rope_scaling = SPEC_ROPE_LONG;
    for (int i = 0; i < 32; i++)
        all[4].longrope.near[i] = 1.1 * i + 1, all[4].longrope.far[i] = 1.0 / 3 + i;
    all[4].longrope.attention = 1.1902380714238083;
    all[5].rope_scaling = SPEC_ROPE_YARN;
    all[5].yarn = (struct spec_yarn){16.5, 1.0 / 3, 1.1, true};
    all[6].rope_scaling = SPEC_ROPE_DYNAMIC;
    for (int i = 0; i < 7; i++) {
        struct buf b = {0}, again = {0};
        struct err e;
        spec_to_json(&all[i], &b);
        T_OK(parse(buf_str(&b), &back, &e), &e);
        spec_to_json(&back, &again);
        T_STR(buf_str(&again), b.data);
        T_CHECK(back.norm_eps == all[i].norm_eps && back.init_std == all[i].init_std);
        T_CHECK(!spec_differ(&all[i], &back, &again));
        T_EQ(back.vocab, all[i].vocab);
        T_EQ(back.tied, all[i].tied);
        T_EQ(back.bias, all[i].bias);
        T_EQ(back.qkv_bias, all[i].qkv_bias);
        T_EQ(back.norm, all[i].norm);
        T_EQ(back.act, all[i].act);
        T_EQ(back.position, all[i].position);
        T_EQ(back.rope_scaling, all[i].rope_scaling);
        T_EQ(back.rope_old_length, all[i].rope_old_length);
        for (int64_t l = 0; l < 12; l++)
            T_EQ(spec_window(&back, l), spec_window(&all[i], l));
        T_CHECK(back.yarn.fast == all[i].yarn.fast && back.yarn.slow == all[i].yarn.slow);
        T_CHECK(back.yarn.attention == all[i].yarn.attention &&
                back.yarn.exact == all[i].yarn.exact);
        T_MEM(&back.longrope, &all[i].longrope, sizeof(back.longrope));
        buf_finish(&b);
        buf_finish(&again);
    }
}

/* The text with one piece of it replaced by another. */
static const char *changed(const char *from, const char *to)
{
    static char text[4096];
    struct buf b = {0};
    spec_to_json(&gpt, &b);
    char *at = strstr(buf_str(&b), from);
    T_CHECK(at != NULL);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - b.data), b.data, to, at + strlen(from));
    buf_finish(&b);
    return text;
}

/* A checkpoint that an earlier weft imported names QK norm among what it could not run. */
static void qk_norm_of_an_earlier_weft(void)
{
    struct spec s, again = llama();
    struct err e;
    struct buf b = {0};
    const char *text = changed("\"LayerNorm\"", "\"RMSNorm\", \"features\": [\"qk-layernorm\"]");
    T_OK(parse(text, &s, &e), &e);
    T_CHECK(s.qk_norm && !s.features);
    again.qk_norm = true;
    spec_to_json(&again, &b);
    T_CHECK(strstr(buf_str(&b), "\"qk-layernorm\": true"));
    T_OK(parse(buf_str(&b), &s, &e), &e);
    T_CHECK(s.qk_norm && !s.features);
    buf_finish(&b);
}

static void patterns_of_layers_are_short(void)
{
    struct buf b = {0};
    struct spec every = windows(12), first = windows(4), s;
    struct err e;
    spec_to_json(&every, &b);
    T_CHECK(strstr(buf_str(&b), "\"window-size\": 7, \"window-layers\": \"10\"") != NULL);
    buf_reset(&b);
    spec_to_json(&first, &b);
    T_CHECK(strstr(buf_str(&b), "\"window-layers\": \"1100\"") != NULL);
    static const char *const bad[] = {"\"\"", "\"12\"", "7", "[1]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[2048];
        int n = (int)(strstr(b.data, "\"1100\"") - b.data);
        snprintf(text, sizeof(text), "%.*s%s%s", n, b.data, bad[i], b.data + n + 6);
        T_ERR(parse(text, &s, &e), &e, ERR_DATA, "window-layers");
    }
    buf_finish(&b);
}

/* What no member describes stays a feature that train lacks, as in a checkpoint that was imported
 * before there were such members. */
static void features_that_nothing_describes(void)
{
    struct spec s = gpt, w = windows(4);
    struct err e;
    s.features = SPEC_WINDOW;
    T_EQ(spec_lacking(&s), SPEC_WINDOW);
    T_ERR(spec_can_run(&s, "old", &e), &e, ERR_USAGE, "sliding-window attention");
    T_CHECK(strstr(e.hint, "import it again") != NULL);
    s.features = SPEC_ROPE_OTHER; /* yarn, then */
    T_ERR(spec_can_run(&s, "old", &e), &e, ERR_USAGE, "rotary scaling");
    T_CHECK(strstr(e.hint, "import it again") != NULL);
    T_EQ(spec_lacking(&w), 0);
    T_OK(spec_can_run(&w, "new", &e), &e);
    w.features |= SPEC_SOFTCAP;
    T_EQ(spec_lacking(&w), SPEC_SOFTCAP);
    w.features = 0;
    spec_settle(&w);
    T_EQ(w.features, SPEC_WINDOW);
}

static void json_refuses(void)
{
    static const struct {
        const char *from, *to, *words;
    } c[] = {
        {"\"num-layers\": 12, ", "", "\"num-layers\" of the model is missing"},
        {"\"num-layers\": 12", "\"num-layers\": 12.5", "not a whole number"},
        {"\"num-layers\": 12", "\"num-layers\": 0", "num-layers is 0"},
        {"\"num-layers\": 12", "\"moe\": 1, \"num-layers\": 12", "does not know \"moe\""},
        {"\"LayerNorm\"", "\"GroupNorm\"", "\"GroupNorm\""},
        {"\"LayerNorm\"", "3", "not a text"},
        {"\"disable-bias-linear\": false", "\"disable-bias-linear\": 0", "not true or false"},
        {"1e-05", "\"x\"", "not a number"},
        {"1e-05", "null", "not a number"},
        {"50304", "50000", "does not fit into 50000 padded rows"},
    };
    struct spec s;
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(parse(changed(c[i].from, c[i].to), &s, &e), &e, ERR_DATA, c[i].words);
    T_ERR(parse("[]", &s, &e), &e, ERR_DATA, "not a JSON object");
}

/* A key of a later weft: refused where the manifest says that it must be known, else ignored. */
static void json_with_a_list_of_what_must_be_known(void)
{
    static const char list[] = "[\"model.moe\", \"model.num-layers\"]", empty[] = "[\"moe\"]";
    struct json_doc *model, *must, *others;
    struct spec s;
    struct err e;
    const char *text = changed("\"num-layers\": 12", "\"moe\": 1, \"num-layers\": 12");
    T_OK(json_parse("m.json", text, strlen(text), &model, &e), &e);
    T_OK(json_parse("must", list, sizeof(list) - 1, &must, &e), &e);
    T_OK(json_parse("others", empty, sizeof(empty) - 1, &others, &e), &e);
    T_ERR(spec_from_manifest(json_root(model), NULL, "m.json", &s, &e), &e, ERR_DATA, "\"moe\"");
    T_ERR(spec_from_manifest(json_root(model), json_root(must), "m.json", &s, &e), &e, ERR_DATA,
          "does not know \"moe\"");
    T_OK(spec_from_manifest(json_root(model), json_root(others), "m.json", &s, &e), &e);
    T_EQ(s.layers, 12);
    json_close(model);
    json_close(must);
    json_close(others);
}

/* A model of an earlier weft, which lacks any one of the keys, or all that are not basic sizes. */
static void json_of_before_a_field_was_there(void)
{
    static const char *const needed[] = {"num-layers",      "hidden-size",
                                         "ffn-hidden-size", "num-attention-heads",
                                         "vocab-size",      "max-position-embeddings"};
    struct spec want = gpt, s;
    struct err e;
    struct buf all = {0}, text = {0}, basic = {0};
    want.padded_vocab = want.vocab;
    want.hidden_dropout = want.attention_dropout = 0;
    spec_to_json(&want, &all);
    struct json_doc *d;
    T_OK(json_parse("m.json", buf_str(&all), all.len, &d, &e), &e);
    const struct json *o = json_root(d);
    T_CHECK(o->length >= 26);
    for (size_t i = 0; i < o->length; i++) {
        bool need = false;
        for (size_t k = 0; k < 6; k++)
            need |= !strcmp(o->child[i].key, needed[k]);
        /* a member is cut out of the text with the comma behind or before it */
        char *at = strstr(all.data, o->child[i].key) - 1, *end = strstr(at, ", ");
        buf_reset(&text);
        buf_add(&text, all.data, (size_t)(at - all.data));
        if (end)
            buf_adds(&text, end + 2);
        else
            text.len -= 2, buf_addc(&text, '}');
        if (need) {
            T_ERR(parse(buf_str(&text), &s, &e), &e, ERR_DATA, o->child[i].key);
            buf_addf(&basic, "%s\"%s\": %lld", basic.len ? ", " : "{", o->child[i].key,
                     (long long)o->child[i].integer);
            continue;
        }
        struct buf got = {0};
        T_OK(parse(buf_str(&text), &s, &e), &e);
        spec_to_json(&s, &got);
        T_STR(buf_str(&got), all.data);
        buf_finish(&got);
    }
    buf_addc(&basic, '}');
    buf_reset(&text);
    T_OK(parse(buf_str(&basic), &s, &e), &e);
    spec_to_json(&s, &text);
    T_STR(buf_str(&text), all.data);
    json_close(d);
    buf_finish(&all);
    buf_finish(&text);
    buf_finish(&basic);
}

static void check_names_what_cannot_be(void)
{
    struct err e;
    struct spec s = gpt;
    T_OK(spec_check(&s, &e), &e);
    struct spec l = llama();
    T_OK(spec_check(&l, &e), &e);
#define BAD(base, member, value, words)                                                            \
    do {                                                                                           \
        s = base;                                                                                  \
        s.member = value;                                                                          \
        T_ERR(spec_check(&s, &e), &e, ERR_USAGE, words);                                           \
    } while (0)
    BAD(gpt, layers, 0, "num-layers is 0");
    BAD(gpt, layers, INT64_MAX, "num-layers is 9223372036854775807");
    BAD(gpt, hidden, -1, "hidden-size");
    BAD(gpt, heads, 0, "num-attention-heads");
    BAD(gpt, kv_heads, 5, "12 attention heads cannot be shared out to 5 query groups");
    BAD(gpt, kv_heads, 24, "cannot be shared out");
    BAD(gpt, head_dim, 0, "kv-channels");
    BAD(gpt, heads, 1 << 20, "more than weft can hold");
    BAD(gpt, ffn, 0, "ffn-hidden-size");
    BAD(gpt, vocab, 0, "the vocabulary's size");
    BAD(gpt, padded_vocab, 50000, "does not fit into 50000 padded rows");
    BAD(gpt, max_positions, 0, "max-position-embeddings");
    BAD(gpt, head_cap, 1e-50, "final-logit-softcapping is 1e-50");
    BAD(gpt, score_cap, 1e39, "attn-logit-softcapping");
    BAD(gpt, window, -1, "window-size");
    BAD(gpt, window, 4, "no layer has a window");
    BAD(gpt, norm_eps, 0, "norm-epsilon");
    BAD(gpt, norm_eps, NAN, "norm-epsilon");
    BAD(gpt, init_std, -1, "init-method-std");
    BAD(gpt, init_std, INFINITY, "init-method-std");
    BAD(gpt, hidden_dropout, 1, "hidden-dropout");
    BAD(gpt, attention_dropout, -0.1, "attention-dropout");
    BAD(l, rope_base, 0.5, "rotary-base");
    BAD(l, rope_percent, 0, "rotary-percent");
    BAD(l, rope_percent, 0.05, "3 of 64 dimensions");
    BAD(l, head_dim, 7, "7 of 7 dimensions");
    BAD(l, rope_factor, 0, "rope-scaling-factor");
    BAD(l, rope_high, 1, "cannot be");
    BAD(l, rope_old_length, 0, "cannot be");
    l.rope_scaling = SPEC_ROPE_DYNAMIC;
    BAD(l, rope_old_length, 0, "beyond 0 positions");
    BAD(l, rope_factor, NAN, "rope-scaling-factor");
    BAD(l, rope_percent, 0.04, "2 dimensions of a head would be turned, expected at least 4");
    l.rope_scaling = SPEC_ROPE_YARN;
    BAD(l, yarn.fast, 1, "beta_fast is 1");
    l.yarn = (struct spec_yarn){32, 1, 1, false};
    T_OK(spec_check(&l, &e), &e);
    BAD(l, yarn.attention, NAN, "attention factor");
    BAD(l, rope_base, 1, "with yarn it must be above 1");
    s = gpt;
    s.head_dim = 7; /* positions are learned: no dimension is turned */
    T_OK(spec_check(&s, &e), &e);
}

static void pads_as_megatron(void)
{
    T_EQ(spec_pad_vocab(50257, 128, 1), 50304);
    T_EQ(spec_pad_vocab(50257, 128, 8), 51200);
    T_EQ(spec_pad_vocab(2048, 128, 1), 2048);
    T_EQ(spec_pad_vocab(1, 128, 2), 256);
}

static void differences_are_named(void)
{
    struct spec a = gpt, b = gpt;
    struct buf out = {0};
    b.hidden_dropout = 0;
    b.attention_dropout = 0;
    b.init_std = 1;
    b.padded_vocab = 51200;
    T_CHECK(!spec_differ(&a, &b, &out));
    b.layers = 6;
    b.tied = false;
    T_CHECK(spec_differ(&a, &b, &out));
    T_STR(buf_str(&out), "\"num-layers\": 12 and 6; \"untie-embeddings-and-output-weights\": "
                         "false and true");
    buf_finish(&out);
}

static void settles_what_is_not_used(void)
{
    struct spec a = gpt, b = gpt;
    b.rope_base = 7;
    b.rope_percent = 0.5;
    b.rope_scaling = SPEC_ROPE_LLAMA3;
    b.rope_factor = 3;
    b.qkv_bias = true;
    spec_settle(&b);
    struct buf out = {0};
    T_CHECK(!spec_differ(&a, &b, &out));
    struct spec l = llama(), m = l;
    spec_settle(&m);
    T_CHECK(!spec_differ(&l, &m, &out));
    buf_finish(&out);
}

/*
 * GPT-2's shape once more from the counts of its matrices: per token and layer 2 x 12 C^2 for the
 * matrices and 2 T C for half of the attention square, 2 V C for the head; three times for forward
 * and backward. A Llama with GQA likewise.
 */
static void flops_from_the_matrices(void)
{
    double B = 4, T = 1024, C = 768, L = 12, V = 50304;
    double token = L * (2 * 12 * C * C + 2 * T * C) + 2 * V * C;
    T_NEAR(spec_step_flops(&gpt, 4, 1024) / (3 * B * T * token), 1, 1e-12);
    struct spec l = llama();
    double D = 64, H = 12, K = 4, F = 3072;
    double layer = 2 * C * D * (2 * H + 2 * K) + 2 * 3 * C * F + 2 * T * D * H;
    token = L * layer + 2 * V * C;
    T_NEAR(spec_step_flops(&l, 4, 1024) / (3 * B * T * token), 1, 1e-12);
}

T_MAIN(T_CASE(json_there_and_back), T_CASE(patterns_of_layers_are_short),
       T_CASE(features_that_nothing_describes), T_CASE(json_refuses),
       T_CASE(qk_norm_of_an_earlier_weft), T_CASE(json_with_a_list_of_what_must_be_known),
       T_CASE(json_of_before_a_field_was_there), T_CASE(check_names_what_cannot_be),
       T_CASE(pads_as_megatron), T_CASE(differences_are_named), T_CASE(settles_what_is_not_used),
       T_CASE(flops_from_the_matrices))
