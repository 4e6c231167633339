/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"
#include "train/spec/hf.h"
#include "train/spec/param.h"

struct values {
    struct opt_common common;
    struct spec_flags model;
};

static const struct opt_verb verbs[] = {{"run", "", "train", "", false}, {NULL}};
static const struct opt rows[] = {SPEC_FLAG_ROWS(struct values, model, 1),
                                  SPEC_IGNORE_ROW(struct values, model, 1),
                                  {.name = NULL}};
static const struct opt_table table = {
    .program = "train", .help = "", .verb = verbs, .opt = rows, .preset = spec_presets};

/* A whole command line, words apart by one space each. */
static int from_line(const char *line, int64_t vocab, int tp, struct spec *ret, struct err *e)
{
    char text[1024], *argv[64];
    int argc = 0;
    snprintf(text, sizeof(text), "train run %s", line);
    for (char *s = strtok(text, " "); s; s = strtok(NULL, " "))
        argv[argc++] = s;
    argv[argc] = NULL;
    struct values v = {0};
    struct opts o;
    int code = opts_init(&o, &table, &v, argc, argv, e);
    if (!code) {
        spec_flags_note(&v.model, &o);
        code = spec_from_flags(&v.model, vocab, tp, ret, e);
    }
    opts_finish(&o);
    return code;
}

#define SMALL                                                                                      \
    "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --max-position-embeddings 128 "

static void defaults_are_megatrons(void)
{
    struct err e;
    struct spec s;
    T_OK(from_line(SMALL, 1000, 2, &s, &e), &e);
    T_EQ(s.layers, 4);
    T_EQ(s.hidden, 96);
    T_EQ(s.heads, 6);
    T_EQ(s.kv_heads, 6);
    T_EQ(s.head_dim, 16);
    T_EQ(s.ffn, 384);
    T_EQ(s.vocab, 1000);
    T_EQ(s.padded_vocab, 1024);
    T_EQ(s.max_positions, 128);
    T_EQ(s.norm, SPEC_LAYERNORM);
    T_EQ(s.act, SPEC_GELU_TANH);
    T_EQ(s.position, SPEC_LEARNED);
    T_CHECK(s.tied && s.bias && !s.qkv_bias);
    T_CHECK(s.norm_eps == 1e-5 && s.init_std == 0.02 && s.rope_base == 10000);
    T_CHECK(s.hidden_dropout == 0.1 && s.attention_dropout == 0.1);
}

static void each_option_has_its_effect(void)
{
    struct err e;
    struct spec s;
    T_OK(from_line(SMALL "--swiglu --use_rotary_position_embeddings --rotary-base 5000 "
                         "--rotary-percent 0.5 --use-rope-scaling --rope-scaling-factor 4 "
                         "--group-query-attention --num-query-groups 2 --kv-channels 32 "
                         "--normalization RMSNorm --layernorm-epsilon 1e-6 --disable-bias-linear "
                         "--add-qkv-bias --untie-embeddings-and-output-weights "
                         "--init-method-std 0.5 --attention-dropout 0 --hidden-dropout 0.25 "
                         "--make-vocab-size-divisible-by 10",
                   1001, 1, &s, &e),
         &e);
    T_EQ(s.act, SPEC_SWIGLU);
    T_EQ(s.ffn, 256); /* 4 x 96 x 2/3 */
    T_EQ(s.position, SPEC_ROPE);
    T_CHECK(s.rope_base == 5000 && s.rope_percent == 0.5 && s.rope_factor == 4);
    T_EQ(s.rope_scaling, SPEC_ROPE_LLAMA3);
    T_EQ(s.kv_heads, 2);
    T_EQ(s.head_dim, 32);
    T_EQ(s.norm, SPEC_RMSNORM);
    T_CHECK(s.norm_eps == 1e-6 && !s.bias && s.qkv_bias && !s.tied && s.init_std == 0.5);
    T_CHECK(s.attention_dropout == 0 && s.hidden_dropout == 0.25);
    T_EQ(s.padded_vocab, 1010);
    T_OK(from_line(SMALL "--num-key-value-heads 3", 1000, 1, &s, &e), &e);
    T_EQ(s.kv_heads, 3);
    T_OK(from_line(SMALL "--no-bias-gelu-fusion --ffn-hidden-size 100", 1000, 1, &s, &e), &e);
    T_EQ(s.act, SPEC_GELU_ERF);
    T_EQ(s.ffn, 100);
    T_OK(from_line(SMALL "--position-embedding-type rope", 1000, 1, &s, &e), &e);
    T_EQ(s.position, SPEC_ROPE);
    T_OK(from_line("--num-layers 1 --hidden-size 4096 --num-attention-heads 32 "
                   "--max-position-embeddings 8 --swiglu",
                   1, 1, &s, &e),
         &e);
    T_EQ(s.ffn, 10880); /* 10922.67 down to a multiple of 64, as Megatron cuts it */
}

/* A digit for each layer. */
static const char *digits(const struct spec *s, bool windows)
{
    static char text[16];
    for (int64_t l = 0; l < s->layers; l++)
        text[l] = (windows ? spec_window(s, l) > 0 : spec_has_experts(s, l)) ? '1' : '0';
    text[s->layers] = 0;
    return text;
}

#define SIX "--num-layers 6 --hidden-size 96 --num-attention-heads 6 --max-position-embeddings 128 "
#define MOE SIX "--num-experts 4 --swiglu --disable-bias-linear "

static void layers_that_differ(void)
{
    static const struct {
        const char *line;
        bool windows;
        const char *want;
    } c[] = {
        {SIX, true, "000000"},
        {SIX "--window-size 3,0", true, "111111"},
        {SIX "--window-size (3,-1) --window-attn-skip-freq 3", true, "110110"},
        {SIX "--window-size 3,0 --window-attn-skip-freq 1*[0,1]+([1]+[0])*2", true, "011010"},
        {SIX "--window-size -1,0", true, "000000"},
        {SIX "--window-size 127,0", true, "000000"},
        {MOE, false, "111111"},
        {MOE "--moe-layer-freq 1", false, "111111"},
        {MOE "--moe-layer-freq 2", false, "101010"},
        {MOE "--moe-layer-freq ([0]*2+[1]*1)*2", false, "001001"},
        {MOE "--moe-layer-freq [0]+[1]*5", false, "011111"},
        {MOE "--moe-layer-freq [0,1,1,1,1,1,]", false, "011111"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        T_OK(from_line(c[i].line, 1000, 1, &s, &e), &e);
        T_STR(digits(&s, c[i].windows), c[i].want);
        T_EQ(s.window, strchr(c[i].want, '1') && c[i].windows ? 4 : 0);
    }
    T_OK(from_line(MOE "--moe-layer-freq 2 --ffn-hidden-size 40 --moe-ffn-hidden-size 24", 1000, 1,
                   &s, &e),
         &e);
    T_CHECK(s.ffn == 40 && s.expert_ffn == 24);
}

static void layers_that_cannot_be(void)
{
    static const struct {
        const char *line, *words;
    } c[] = {
        {SIX "--window-size 3", "expected LEFT,RIGHT"},
        {SIX "--window-size 3,0,0", "expected LEFT,RIGHT"},
        {SIX "--window-size ,0", "expected LEFT,RIGHT"},
        {SIX "--window-size 99999999999,0", "expected LEFT,RIGHT"},
        {SIX "--window-size 3,1", "does not see what follows it"},
        {SIX "--window-size 3,0 --window-attn-skip-freq 0", "expected a number above 0"},
        {SIX "--window-size 3,0 --window-attn-skip-freq [0]*6", "no layer has a window"},
        {MOE "--moe-layer-freq [1]*5", "has 5 values, and the model has 6 layers"},
        {MOE "--moe-layer-freq [2]*6", "expected values of 0 and 1"},
        {MOE "--moe-layer-freq [1*6", "expected a comma or ]"},
        {MOE "--moe-layer-freq ([1]*6", "expected )"},
        {MOE "--moe-layer-freq [1]*[1]", "a product of a list and a number"},
        {MOE "--moe-layer-freq [1]+5", "a sum of lists"},
        {MOE "--moe-layer-freq [1]*6x", "expected the end at 'x'"},
        {MOE "--moe-layer-freq [1]*99999*99999*99999", "longer than any model"},
        {MOE "--moe-layer-freq ((((((((((((((((((((((((((((((((((1", "too many parentheses"},
        {MOE "--moe-layer-freq print(1)", "expected a number, a list or a parenthesis"},
        {MOE "--moe-layer-freq [0]*6", "all 6 layers are without experts"},
        {SIX "--position-embedding-type rope --use-rope-scaling "
             "--rotary-seq-len-interpolation-factor 2",
         "exclude each other"},
        {SIX "--position-embedding-type rope --rotary-seq-len-interpolation-factor 0.5",
         "expected at least 1"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(from_line(c[i].line, 1000, 1, &s, &e), &e, ERR_USAGE, c[i].words);
    T_OK(from_line(SIX "--position-embedding-type rope --rotary-seq-len-interpolation-factor 2.5",
                   1000, 1, &s, &e),
         &e);
    T_CHECK(s.rope_scaling == SPEC_ROPE_LINEAR && s.rope_factor == 2.5);
    T_OK(from_line(SIX "--normalization RMSNorm --apply-layernorm-1p", 1000, 1, &s, &e), &e);
    T_CHECK(s.zero_centered);
}

static void what_is_missing_or_wrong_is_named(void)
{
    static const struct {
        const char *line;
        int64_t vocab;
        const char *words;
    } c[] = {
        {"", 1000, "--num-layers is not given"},
        {"--num-layers 2", 1000, "--hidden-size is not given"},
        {"--num-layers 2 --hidden-size 8", 1000, "--num-attention-heads is not given"},
        {"--num-layers 2 --hidden-size 8 --num-attention-heads 2", 1000,
         "--max-position-embeddings is not given"},
        {SMALL, 0, "the size of the vocabulary is not known"},
        {SMALL "--num-attention-heads 5", 1000, "96 is not a multiple of"},
        {SMALL "--num-query-groups 2", 1000, "no effect without --group-query-attention"},
        {SMALL "--group-query-attention --num-query-groups 4", 1000, "cannot be shared out"},
        {SMALL "--group-query-attention --num-query-groups 2 --num-key-value-heads 3", 1000,
         "--num-key-value-heads 3 and --num-query-groups 2 differ"},
        {SMALL "--num-key-value-heads 4", 1000, "cannot be shared out"},
        {SMALL "--hidden-dropout 1", 1000, "hidden-dropout is 1"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(from_line(c[i].line, c[i].vocab, 1, &s, &e), &e, ERR_USAGE, c[i].words);
}

static void presets_have_their_known_size(void)
{
    static const struct {
        const char *name;
        int64_t vocab, parameters;
    } c[] = {
        {"gpt-1m", 2048, 1088256},
        {"llama-1m", 2048, 1049728},
        {"gpt-0.125b", 2048, 88201728},
        {"gpt2-124m", 50257, 124439808},
        {"gpt2-345m", 50257, 354823168},
        {"gpt2-774m", 50257, 774030080},
        {"gpt2-1558m", 50257, 1557611200},
        {"llama-3.2-1b", 128256, 1235814400},
        {"llama-3.1-8b", 128256, 8030261248},
        {"llama-3.1-70b", 128256, 70553706496},
        {"qwen2.5-0.5b", 151936, 494032768},
        {"qwen2.5-1.5b", 151936, 1543714304},
        {"qwen2.5-7b", 152064, 7615616512},
        {"qwen3-0.6b", 151936, 596049920},
        {"qwen3-8b", 151936, 8190735360},
        {"qwen3-30b-a3b", 151936, 30532122624},
        {"pythia-70m", 50304, 70426624},
        {"gpt-neox-20b", 50432, 20554567680},
        {"mistral-7b", 32000, 7241732096},
        {"mistral-7b-v0.1", 32000, 7241732096},
        {"mixtral-8x7b", 32000, 46702792704},
        {"qwen1.5-moe-a2.7b", 151936, 14315784192},
        {"phi-3-mini-4k", 32064, 3821079552},
        {"gemma-2-2b", 256000, 2614341888},
        {"gemma-2-9b", 256000, 9241705984},
        {"gemma-3-1b", 262144, 999885952},
    };
    struct err e;
    struct spec s;
    char line[64];
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        snprintf(line, sizeof(line), "--preset %s", c[i].name);
        T_OK(from_line(line, c[i].vocab, 1, &s, &e), &e);
        if (s.parallel) /* Pythia's are of erf, the 20B's are not */
            T_EQ(s.act, strstr(line, "20b") ? SPEC_GELU_TANH : SPEC_GELU_ERF);
        T_EQ(spec_parameters(&s), c[i].parameters);
    }
}

/* Every preset is a model, and its name says its size to 10 % where it has one (GPT-3's count with
 * 50 k ids, 2048 positions). */
static void every_preset_is_a_model(void)
{
    struct err e;
    struct spec s;
    char line[64];
    for (const struct opt_preset *p = spec_presets; p->name; p++) {
        double billions = 0;
        snprintf(line, sizeof(line), "--preset %s", p->name);
        T_OK(from_line(line, strncmp(p->name, "gpt", 3) ? 30000 : 50257, 1, &s, &e), &e);
        if (sscanf(p->name, "gpt-%lfb", &billions) == 1 && strchr(p->name, 'b'))
            T_NEAR((double)spec_parameters(&s) / (billions * 1e9), 1, 0.1);
    }
    T_OK(from_line("--preset gpt-1m --num-layers 3", 2048, 1, &s, &e), &e);
    T_EQ(s.layers, 3);
    T_EQ(s.hidden, 128);
}

/* The configuration that a preset is, or NULL for one of options. */
static const char *config_of_preset(const struct opt_preset *p)
{
    return !strcmp(p->values[0][0], "hf-config") ? p->values[0][1] : NULL;
}

static void every_family_has_a_preset(void)
{
    bool found[HF_FAMILIES] = {false};
    struct err e;
    char line[64];
    for (const struct opt_preset *p = spec_presets; p->name; p++) {
        struct hf_model m;
        struct spec s;
        const char *config = config_of_preset(p);
        snprintf(line, sizeof(line), "--preset %s", p->name);
        T_OK(from_line(line, 30000, 1, &s, &e), &e);
        int code = config ? hf_config_parse(p->name, config, strlen(config), NULL, &m, &e)
                          : hf_model_of_spec(&s, p->name, &m, &e);
        T_OK(code, &e);
        if (!code)
            found[m.family] = true;
    }
    for (int f = 0; f < HF_FAMILIES; f++)
        if (!found[f])
            t_fail(__FILE__, __LINE__, "no preset of %s", hf_family_name((enum hf_family)f));
}

static const char *write_llama(void)
{
    static const char text[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128,"
        " \"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
        " \"max_position_embeddings\": 512, \"vocab_size\": 1000, \"initializer_range\": 0.3,"
        " \"tie_word_embeddings\": true, \"attention_dropout\": 0.05}";
    struct err e;
    const char *path = t_path("llama.json");
    T_OK(file_replace(path, text, sizeof(text) - 1, &e), &e);
    return path;
}

static int with_file(const char *more, int64_t vocab, struct spec *s, struct err *e)
{
    char line[512];
    snprintf(line, sizeof(line), "--hf-config %s %s", write_llama(), more);
    return from_line(line, vocab, 1, s, e);
}

static void a_config_file_decides(void)
{
    struct err e;
    struct spec s;
    T_OK(with_file("", 900, &s, &e), &e);
    T_EQ(s.vocab, 1000);
    T_EQ(s.padded_vocab, 1024);
    T_CHECK(s.attention_dropout == 0.05 && s.hidden_dropout == 0 && s.init_std == 0.3);
    T_OK(
        with_file("--attention-dropout 0.1 --hidden-dropout 0.2 --init-method-std 0.02", 0, &s, &e),
        &e);
    T_CHECK(s.attention_dropout == 0.1 && s.hidden_dropout == 0.2 && s.init_std == 0.02);
    T_OK(with_file("--num-layers 2 --swiglu --normalization RMSNorm --group-query-attention "
                   "--num-query-groups 2 --disable-bias-linear --position-embedding-type rope",
                   0, &s, &e),
         &e);
    T_ERR(with_file("", 1001, &s, &e), &e, ERR_USAGE, "the tokenizer has 1001 ids");
    T_ERR(with_file("--num-layers 3", 0, &s, &e), &e, ERR_USAGE, "--num-layers 3 differs from");
    T_ERR(with_file("--normalization LayerNorm", 0, &s, &e), &e, ERR_USAGE,
          "--normalization LayerNorm differs from");
    T_CHECK(strstr(e.msg, "which has RMSNorm") != NULL);
    T_ERR(with_file("--no-swiglu", 0, &s, &e), &e, ERR_USAGE, "--swiglu false differs from");
    T_CHECK(strstr(e.msg, "which has true") != NULL);
    T_ERR(with_file("--untie-embeddings-and-output-weights", 0, &s, &e), &e, ERR_USAGE,
          "--untie-embeddings-and-output-weights");
    T_ERR(with_file("--preset gpt-1m", 0, &s, &e), &e, ERR_USAGE, "differs from");
}

/* The configuration of a command line as it is printed; the model that it stands for. */
static char *print_line(const char *line, struct spec *ret)
{
    struct values v = {0};
    struct opts o;
    struct err e = {0};
    char *words = strdup(line), *rest = words, *argv[32], *text;
    size_t n;
    int argc = 0;
    for (char *w; (w = strsep(&rest, " "));)
        argv[argc++] = w;
    T_OK(opts_init(&o, &table, &v, argc, argv, &e), &e);
    spec_flags_note(&v.model, &o);
    T_OK(spec_flags_fill(&v.model, &o, &e), &e);
    T_OK(spec_from_flags(&v.model, v.model.hf_config ? 0 : 1000, 1, ret, &e), &e);
    FILE *f = open_memstream(&text, &n);
    opts_print_config(&o, f);
    fclose(f);
    opts_finish(&o);
    free(words);
    return text;
}

/* Windows, experts and positions that are scaled: of the file, as options, and read back. */
static void a_printed_configuration_shows_its_layers(void)
{
    static const char file[] =
        "{\"model_type\": \"qwen2_moe\", \"hidden_size\": 64, \"intermediate_size\": 128,"
        " \"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"num_key_value_heads\": 2,"
        " \"shared_expert_intermediate_size\": 48, \"num_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"norm_topk_prob\": "
        "true,"
        " \"moe_intermediate_size\": 32, \"mlp_only_layers\": [1], \"vocab_size\": 1000,"
        " \"use_sliding_window\": true, \"sliding_window\": 8, \"layer_types\":"
        " [\"full_attention\", \"sliding_attention\", \"full_attention\"],"
        " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2},"
        " \"max_position_embeddings\": 512}";
    static const struct {
        const char *more, *words;
    } bad[] = {{"--window-size 8,0", "--window-size differs from"},
               {"--window-attn-skip-freq 2", "which has [0, 1, 0]"},
               {"--moe-layer-freq [1]*3", "which has [1, 0, 1]"},
               {"--rotary-seq-len-interpolation-factor 3", "3.0 differs from"}};
    struct spec a, b;
    struct buf line = {0}, differ = {0};
    const char *path = t_path("windows.json"), *copy = t_path("windows.toml");
    struct err e;
    T_OK(file_replace(path, file, sizeof(file) - 1, &e), &e);
    buf_addf(&line, "train run --hf-config %s --window-size 7,0 --moe-layer-freq [1,0,1]", path);
    char *text = print_line(buf_str(&line), &a), *key = strstr(text, "hf-config = ");
    T_CHECK(!spec_window(&a, 0) && spec_window(&a, 1) == 8 && !spec_has_experts(&a, 1));
    T_CHECK(key != NULL);
    *key = '#';
    T_OK(file_replace(copy, text, strlen(text), &e), &e);
    buf_reset(&line);
    buf_addf(&line, "train run --config %s", copy);
    free(print_line(buf_str(&line), &b));
    T_CHECK(!spec_differ(&a, &b, &differ));
    T_STR(buf_str(&differ), "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        buf_reset(&line);
        buf_addf(&line, "--hf-config %s %s", path, bad[i].more);
        T_ERR(from_line(buf_str(&line), 0, 1, &b, &e), &e, ERR_USAGE, bad[i].words);
    }
    buf_finish(&line);
    buf_finish(&differ);
    free(text);
}

/* "name = value" at the start of a line, with that origin */
static void has_line(const char *config, const char *want, const char *origin)
{
    const char *at = strstr(config, want), *end = at ? strchr(at, '\n') : NULL;
    T_CHECK(end && at[-1] == '\n' && memmem(at, (size_t)(end - at), origin, strlen(origin)));
    if (!end)
        fprintf(stderr, "no '%s' in:\n%s", want, config);
}

static void a_printed_configuration_shows_the_model_of_the_file(void)
{
    struct spec a, b;
    struct buf line = {0}, differ = {0};
    const char *path = write_llama(), *copy = t_path("copy.toml");
    struct err e;
    buf_addf(&line, "train run --hf-config %s --hidden-dropout 0.25 --print-config", path);
    char *text = print_line(buf_str(&line), &a);
    has_line(text, "num-layers = 2 ", path);
    has_line(text, "num-query-groups = 2 ", path);
    has_line(text, "group-query-attention = true ", path);
    has_line(text, "use-rotary-position-embeddings = true ", path);
    has_line(text, "normalization = \"RMSNorm\" ", path);
    has_line(text, "attention-dropout = 0.05 ", path);
    has_line(text, "hidden-dropout = 0.25 ", "# flag");
    T_CHECK(!strstr(text, "num-layers is not set"));

    /* read back, with the file and without it */
    T_OK(file_replace(copy, text, strlen(text), &e), &e);
    buf_reset(&line);
    buf_addf(&line, "train run --config %s", copy);
    free(print_line(buf_str(&line), &b));
    T_CHECK(!spec_differ(&a, &b, &differ));
    T_EQ(b.init_std == a.init_std && b.hidden_dropout == 0.25, 1);
    char *key = strstr(text, "hf-config = ");
    T_CHECK(key != NULL);
    *key = '#';
    T_OK(file_replace(copy, text, strlen(text), &e), &e);
    free(print_line(buf_str(&line), &b));
    T_CHECK(!spec_differ(&a, &b, &differ));
    buf_finish(&line);
    buf_finish(&differ);
    free(text);
}

T_MAIN(T_CASE(defaults_are_megatrons), T_CASE(each_option_has_its_effect),
       T_CASE(layers_that_differ), T_CASE(layers_that_cannot_be),
       T_CASE(what_is_missing_or_wrong_is_named), T_CASE(presets_have_their_known_size),
       T_CASE(every_preset_is_a_model), T_CASE(every_family_has_a_preset),
       T_CASE(a_config_file_decides), T_CASE(a_printed_configuration_shows_the_model_of_the_file),
       T_CASE(a_printed_configuration_shows_its_layers))
