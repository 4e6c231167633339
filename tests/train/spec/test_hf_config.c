/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"
#include "train/spec/param.h"
#include "train/spec/hf.h"

static int read_text(const char *text, struct spec *ret, struct err *e)
{
    const char *path = t_path("config.json");
    T_OK(file_replace(path, text, strlen(text), e), e);
    struct hf_model m;
    int code = hf_config_open(path, NULL, &m, e);
    *ret = m.spec;
    return code;
}

/* The published figures of five models, in the words of their own config.json. */
static const struct {
    const char *text;
    int64_t parameters, heads, kv_heads, head_dim, ffn;
    bool tied;
} known[] = {
    {"{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2LMHeadModel\"], \"n_embd\": 768,"
     " \"n_layer\": 12, \"n_head\": 12, \"n_positions\": 1024, \"n_ctx\": 1024, \"vocab_size\": "
     "50257, \"activation_function\": \"gelu_new\", \"layer_norm_epsilon\": 1e-05,"
     " \"resid_pdrop\": 0.1, \"embd_pdrop\": 0.1, \"attn_pdrop\": 0.1, \"n_inner\": null}",
     124439808, 12, 12, 64, 3072, true},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 1600, \"n_layer\": 48, \"n_head\": 25,"
     " \"n_positions\": 1024, \"vocab_size\": 50257}",
     1557611200, 25, 25, 64, 6400, true},
    {"{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": "
     "4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
     " \"num_key_value_heads\": 8, \"max_position_embeddings\": 131072, \"vocab_size\": 128256,"
     " \"rms_norm_eps\": 1e-05, \"rope_theta\": 500000.0, \"hidden_act\": \"silu\","
     " \"attention_bias\": false, \"mlp_bias\": false, \"tie_word_embeddings\": false,"
     " \"rope_scaling\": {\"factor\": 8.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0,"
     " \"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}}",
     8030261248, 32, 8, 128, 14336, false},
    {"{\"model_type\": \"llama\", \"hidden_size\": 2048, \"intermediate_size\": 8192, "
     "\"num_hidden_layers\": 16, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
     " \"head_dim\": 64, \"max_position_embeddings\": 131072, \"vocab_size\": 128256,"
     " \"tie_word_embeddings\": true, \"rope_parameters\": {\"factor\": 32.0, "
     "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"rope_theta\": 500000.0,"
     " \"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}}",
     1235814400, 32, 8, 64, 8192, true},
    {"{\"model_type\": \"mistral\", \"hidden_size\": 4096, \"intermediate_size\": 14336,"
     " \"num_hidden_layers\": 32, \"num_attention_heads\": 32, \"num_key_value_heads\": 8,"
     " \"max_position_embeddings\": 32768, \"vocab_size\": 32000, \"sliding_window\": null,"
     " \"rms_norm_eps\": 1e-05, \"rope_theta\": 10000.0}",
     7241732096, 32, 8, 128, 14336, false},
    {"{\"model_type\": \"qwen2\", \"hidden_size\": 896, \"intermediate_size\": 4864,"
     " \"num_hidden_layers\": 24, \"num_attention_heads\": 14, \"num_key_value_heads\": 2,"
     " \"max_position_embeddings\": 32768, \"vocab_size\": 151936, \"rms_norm_eps\": 1e-06,"
     " \"rope_theta\": 1000000.0, \"sliding_window\": 32768, \"use_sliding_window\": false,"
     " \"tie_word_embeddings\": true}",
     494032768, 14, 2, 64, 4864, true},
    {"{\"model_type\": \"qwen2\", \"hidden_size\": 3584, \"intermediate_size\": 18944,"
     " \"num_hidden_layers\": 28, \"num_attention_heads\": 28, \"num_key_value_heads\": 4,"
     " \"max_position_embeddings\": 32768, \"vocab_size\": 152064, \"rms_norm_eps\": 1e-06}",
     7615616512, 28, 4, 128, 18944, false},
};

static void known_models_have_their_known_size(void)
{
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        T_OK(read_text(known[i].text, &s, &e), &e);
        T_EQ(spec_parameters(&s), known[i].parameters);
        T_EQ(s.heads, known[i].heads);
        T_EQ(s.kv_heads, known[i].kv_heads);
        T_EQ(s.head_dim, known[i].head_dim);
        T_EQ(s.ffn, known[i].ffn);
        T_EQ(s.tied, known[i].tied);
        T_EQ(s.padded_vocab, s.vocab);
    }
}

static void details_of_a_family(void)
{
    struct err e;
    struct spec s;
    T_OK(read_text(known[0].text, &s, &e), &e);
    T_EQ(s.act, SPEC_GELU_TANH);
    T_EQ(s.norm, SPEC_LAYERNORM);
    T_EQ(s.position, SPEC_LEARNED);
    T_CHECK(s.bias && s.norm_eps == 1e-5 && s.hidden_dropout == 0.1 && s.attention_dropout == 0.1);
    T_OK(read_text(known[2].text, &s, &e), &e);
    T_EQ(s.act, SPEC_SWIGLU);
    T_EQ(s.norm, SPEC_RMSNORM);
    T_EQ(s.position, SPEC_ROPE);
    T_EQ(s.rope_scaling, SPEC_ROPE_LLAMA3);
    T_CHECK(s.rope_base == 500000 && s.rope_factor == 8 && s.rope_low == 1 && s.rope_high == 4);
    T_EQ(s.rope_old_length, 8192);
    T_CHECK(!s.bias && !s.qkv_bias && s.attention_dropout == 0 && s.hidden_dropout == 0);
    T_OK(read_text(known[3].text, &s, &e), &e); /* theta and scaling in the newer place */
    T_CHECK(s.rope_base == 500000 && s.rope_factor == 32 && s.norm_eps == 1e-6);
    T_OK(read_text(known[5].text, &s, &e), &e);
    T_CHECK(s.qkv_bias && !s.bias && s.rope_base == 1000000);
    T_EQ(s.rope_scaling, SPEC_ROPE_PLAIN);
}

#define TINY                                                                                       \
    "\"hidden_size\": 64, \"intermediate_size\": 128, \"num_hidden_layers\": 2,"                   \
    " \"num_attention_heads\": 4, \"max_position_embeddings\": 8192, \"vocab_size\": 100"
#define TINY_GPT                                                                                   \
    "\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": "   \
    "128, \"vocab_size\": 100"

static void activations(void)
{
    static const struct {
        const char *name;
        enum spec_act act;
    } c[] = {{"gelu_new", SPEC_GELU_TANH},
             {"gelu", SPEC_GELU_ERF},
             {"gelu_pytorch_tanh", SPEC_GELU_TANH}};
    struct err e;
    struct spec s;
    char text[512];
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "{" TINY_GPT ", \"activation_function\": \"%s\"}", c[i].name);
        T_OK(read_text(text, &s, &e), &e);
        T_EQ(s.act, c[i].act);
    }
}

static void biases_of_llama(void)
{
    struct err e;
    struct spec s;
    T_OK(read_text("{\"model_type\": \"llama\", " TINY ", \"attention_bias\": true, \"mlp_bias\": "
                   "true}",
                   &s, &e),
         &e);
    T_CHECK(s.bias);
    T_EQ(s.kv_heads, 4); /* absent: as many as heads */
}

static void what_weft_cannot_run_is_refused_by_name(void)
{
    static const struct {
        int code;
        const char *text, *words;
    } c[] = {
        {ERR_DATA, "{\"model_type\": \"bloom\"}", "\"model_type\" is bloom"},
        {ERR_DATA, "{\"hidden_size\": 5}", "model_type"},
        {ERR_DATA, "[1]", "not a JSON object"},
        {ERR_DATA, "{\"model_type\": \"llama\", ", "config.json"},
        {ERR_DATA, "{\"model_type\": \"llama\", \"hidden_size\": \"big\"}", "hidden_size"},
        {ERR_DATA, "{\"model_type\": \"llama\"}", "hidden_size"},
        {ERR_DATA,
         "{\"model_type\": \"llama\", " TINY ", \"rope_scaling\": {\"rope_type\": \"llama3\"}}",
         "original_max_position_embeddings"},
        {ERR_DATA, "{\"model_type\": \"llama\", " TINY ", \"rope_scaling\": 3}", "not an object"},
        {ERR_DATA,
         "{\"model_type\": \"llama\", " TINY ", \"architectures\": "
         "[\"LlamaForSequenceClassification\"]}",
         "LlamaForSequenceClassification"},
        {ERR_DATA, "{\"model_type\": \"qwen2\", " TINY "}", "32 query groups"},
        {ERR_DATA, "{" TINY_GPT ", \"add_cross_attention\": true}", "add_cross_attention"},
        {ERR_DATA, "{" TINY_GPT ", \"embd_pdrop\": 0.0}", "embd_pdrop"},
        {ERR_DATA, "{" TINY_GPT ", \"tie_word_embeddings\": 1}", "tie_word_embeddings"},
        {ERR_DATA,
         "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 5,"
         " \"n_positions\": 128, \"vocab_size\": 100}",
         "not a multiple"},
        {ERR_DATA,
         "{\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 0,"
         " \"n_positions\": 128, \"vocab_size\": 100}",
         "not a multiple"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(read_text(c[i].text, &s, &e), &e, c[i].code, c[i].words);
    struct hf_model m;
    T_ERR(hf_config_open(t_path("none.json"), NULL, &m, &e), &e, ERR_IO, "none.json");
}

/* Read, so that they can be converted, and refused by train. */
static void what_only_convert_takes(void)
{
    static const char *const text[] = {
        "{\"model_type\": \"llama\", " TINY ", \"hidden_act\": \"relu\"}",
        "{" TINY_GPT ", \"activation_function\": \"relu\"}",
        "{" TINY_GPT ", \"activation_function\": \"silu\"}",
        "{" TINY_GPT ", \"scale_attn_by_inverse_layer_idx\": true}",
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
        T_OK(read_text(text[i], &s, &e), &e);
        T_ERR(spec_can_run(&s, "x", &e), &e, ERR_USAGE, "x: train cannot run this model yet");
    }
    T_OK(read_text("{" TINY_GPT ", \"scale_attn_weights\": false}", &s, &e), &e);
    T_OK(spec_can_run(&s, "x", &e), &e);
    T_ERR(read_text("{" TINY_GPT ", \"activation_function\": \"of my own\"}", &s, &e), &e, ERR_DATA,
          "\"activation_function\" is of my own");
}

/* Windows of the layers of a text, or an error with these words. */
static void windows(void)
{
#define MISTRAL "{\"model_type\": \"mistral\", " TINY ", \"num_key_value_heads\": 4"
#define QWEN                                                                                       \
    "{\"model_type\": \"qwen2\", " TINY ", \"num_key_value_heads\": 4, \"sliding_window\": 512"
#define QWEN_MOE(n)                                                                                \
    "{\"model_type\": \"qwen" n "_moe\", " TINY                                                    \
    ", \"num_key_value_heads\": 4, \"sliding_window\": 512,"                                       \
    " \"use_sliding_window\": true"
    static const struct {
        const char *text;
        int64_t window[2];
    } c[] = {
        {MISTRAL "}", {4096, 4096}},
        {MISTRAL ", \"sliding_window\": 100}", {100, 100}},
        {MISTRAL ", \"sliding_window\": 8192}", {0, 0}},
        {MISTRAL ", \"sliding_window\": null}", {0, 0}},
        {QWEN "}", {0, 0}},
        {QWEN ", \"use_sliding_window\": true}", {0, 0}},
        {QWEN ", \"use_sliding_window\": true, \"max_window_layers\": 1}", {0, 512}},
        {QWEN ", \"use_sliding_window\": true,"
              " \"layer_types\": [\"sliding_attention\", \"full_attention\"]}",
         {512, 0}},
        {QWEN_MOE("2") "}", {512, 0}},
        {QWEN_MOE("2") ", \"max_window_layers\": 0}", {0, 0}},
        {QWEN_MOE("2") ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]}", {0, 512}},
        {QWEN_MOE("3") ", \"max_window_layers\": 1}", {512, 512}},
    };
    static const struct {
        const char *text, *words;
    } bad[] = {
        {MISTRAL ", \"sliding_window\": -1}", "sliding_window"},
        {MISTRAL ", \"layer_types\": [\"full_attention\"]}", "as long as there are layers"},
        {MISTRAL ", \"layer_types\": [\"full_attention\", \"chunked_attention\"]}",
         "chunked_attention"},
        {QWEN_MOE("3") ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]}",
         "all layers of this family have the window"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        T_OK(read_text(c[i].text, &s, &e), &e);
        T_EQ(spec_window(&s, 0), c[i].window[0]);
        T_EQ(spec_window(&s, 1), c[i].window[1]);
        T_EQ(s.features, c[i].window[0] || c[i].window[1] ? SPEC_WINDOW : 0);
        T_OK(spec_can_run(&s, "x", &e), &e);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        T_ERR(read_text(bad[i].text, &s, &e), &e, ERR_DATA, bad[i].words);
}

static void what_train_lacks_is_a_feature(void)
{
    static const struct {
        const char *text;
        unsigned features;
    } c[] = {
        {"{\"model_type\": \"llama\", " TINY ", \"attention_bias\": true}", SPEC_PART_BIAS},
        {"{\"model_type\": \"gemma3_text\", " TINY ", \"rope_parameters\":"
         " {\"full_attention\": {\"rope_theta\": 5e5}, \"sliding_attention\":"
         " {\"rope_type\": \"linear\", \"factor\": 2}}}",
         SPEC_ROPE_OTHER},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        T_OK(read_text(c[i].text, &s, &e), &e);
        T_EQ(s.features & c[i].features, c[i].features);
        T_EQ(spec_can_run(&s, "x", &e), c[i].features ? ERR_USAGE : 0);
    }
    T_ERR(spec_can_run(&s, "x", &e), &e, ERR_USAGE, "rotary scaling of a further kind");
}

static void gemma(void)
{
    const unsigned all = SPEC_POST_NORM | SPEC_ZERO_CENTERED | SPEC_EMBED_SCALE | SPEC_GATED_GELU;
    struct err e;
    struct spec s;
    T_OK(read_text("{\"model_type\": \"llama\", " TINY ", \"hidden_act\": \"gelu\"}", &s, &e), &e);
    T_EQ(s.act, SPEC_GEGLU_ERF);
    T_EQ(s.features, SPEC_GATED_GELU);
    T_OK(
        read_text("{\"model_type\": \"gemma2\", " TINY ", \"query_pre_attn_scalar\": 144}", &s, &e),
        &e);
    T_EQ(s.features, all | SPEC_SOFTCAP | SPEC_QUERY_SCALE | SPEC_WINDOW);
    T_OK(spec_can_run(&s, "x", &e), &e);
    T_CHECK(s.score_cap == 50 && s.head_cap == 30 && s.query_scalar == 144 && s.tied);
    T_EQ(spec_window(&s, 0), 4096);
    T_EQ(spec_window(&s, 1), 0);
    T_OK(read_text("{\"model_type\": \"gemma2\", " TINY ", \"sliding_window\": null,"
                   " \"attn_logit_softcapping\": null, \"final_logit_softcapping\": null,"
                   " \"query_pre_attn_scalar\": 256}",
                   &s, &e),
         &e);
    T_EQ(s.features, all);
    T_OK(read_text("{\"model_type\": \"gemma3_text\", " TINY ", \"sliding_window_pattern\": 2,"
                   " \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}}",
                   &s, &e),
         &e);
    T_OK(spec_can_run(&s, "x", &e), &e);
    T_CHECK(s.qk_norm && s.rope_base == 1e6 && s.rope_local_base == 1e4 && s.rope_factor == 8);
    T_EQ(s.rope_scaling, SPEC_ROPE_LINEAR);
    T_CHECK(spec_rope_local(&s, 0) && !spec_rope_local(&s, 1));
    T_OK(read_text("{\"model_type\": \"gemma3_text\", " TINY ", \"rope_parameters\":"
                   " {\"full_attention\": {\"rope_theta\": 5e5}, \"sliding_attention\":"
                   " {\"rope_theta\": 5e3}}}",
                   &s, &e),
         &e);
    T_CHECK(s.rope_base == 5e5 && s.rope_local_base == 5e3 && spec_rope_local(&s, 1));
}

#define SCALED(...) "{\"model_type\": \"llama\", " TINY ", \"rope_scaling\": {" __VA_ARGS__ "}}"

static void scaled_rotary_positions(void)
{
    struct err e;
    struct spec s;
    T_OK(read_text(SCALED("\"type\": \"dynamic\", \"factor\": 2.5"), &s, &e), &e);
    T_OK(spec_can_run(&s, "x", &e), &e);
    T_CHECK(s.rope_scaling == SPEC_ROPE_DYNAMIC && s.rope_factor == 2.5);
    T_EQ(s.rope_old_length, 8192);
    T_EQ(s.max_positions, 20480);
    T_OK(read_text(SCALED("\"rope_type\": \"yarn\", \"factor\": 4"), &s, &e), &e);
    T_OK(spec_can_run(&s, "x", &e), &e);
    T_CHECK(s.rope_scaling == SPEC_ROPE_YARN && s.yarn.fast == 32 && s.yarn.slow == 1);
    T_NEAR(s.yarn.attention, 1.1386294361119891, 1e-12);
    T_CHECK(!s.yarn.exact && s.max_positions == 32768);
    /* the file's length is the new one, and the factor follows */
    T_OK(read_text(SCALED("\"rope_type\": \"yarn\", \"original_max_position_embeddings\": 2048,"
                          " \"mscale\": 0.5, \"mscale_all_dim\": 1, \"truncate\": false,"
                          " \"beta_fast\": 16, \"beta_slow\": 2"),
                   &s, &e),
         &e);
    T_CHECK(s.rope_factor == 4 && s.rope_old_length == 2048 && s.max_positions == 8192);
    T_CHECK(s.yarn.exact && s.yarn.fast == 16 && s.yarn.slow == 2);
    T_NEAR(s.yarn.attention, 1.0693147180559945 / 1.1386294361119891, 1e-12);
}

static void rotary_positions_that_cannot_be(void)
{
    static const struct {
        const char *text, *words;
    } c[] = {
        {SCALED("\"type\": \"dynamic\""), "rope-scaling-factor"},
        {SCALED("\"type\": \"yarn\", \"factor\": 1e400"), "factor"},
        {SCALED("\"type\": \"yarn\", \"factor\": 4, \"beta_fast\": 1"), "beta_fast"},
        {SCALED("\"type\": \"yarn\", \"factor\": 4, \"attention_factor\": -1"), "attention"},
        {SCALED("\"type\": \"yarn\", \"factor\": 4,"
                " \"original_max_position_embeddings\": 0"),
         "beyond 0 positions"},
        {SCALED("\"type\": \"longrope\", \"short_factor\": [1, 2],"
                " \"long_factor\": [1, 2, 3, 4]"),
         "one of each kind for each of 8 pairs"},
        {SCALED("\"type\": \"longrope\", \"short_factor\": [1, 2, 3, 4, 5, 6, 7, 8],"
                " \"long_factor\": [1, 2, 3, 4, 5, 6, 7, 8, 9]"),
         "one of each kind for each of 8 pairs"},
        {"{\"model_type\": \"llama\", " TINY ", \"partial_rotary_factor\": 1e308}",
         "rotary-percent is 1e+308"},
        {"{\"model_type\": \"llama\", " TINY ", \"partial_rotary_factor\": -1e308}",
         "rotary-percent is -1e+308"},
        {"{\"model_type\": \"llama\", " TINY ", \"rope_scaling\": {\"type\": \"linear\","
         " \"factor\": 2}, \"rope_parameters\": {\"rope_type\": \"default\"}}",
         "different types"},
    };
    struct err e;
    struct spec s;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(read_text(c[i].text, &s, &e), &e, ERR_DATA, c[i].words);
}

static void phi3_has_one_dropout(void)
{
    struct err e;
    struct spec s;
    T_OK(read_text("{\"model_type\": \"phi3\", " TINY
                   ", \"resid_pdrop\": 0.25, \"embd_pdrop\": 0.25}",
                   &s, &e),
         &e);
    T_CHECK(s.hidden_dropout == 0.25);
}

static void unknown_keys_stop_unless_they_are_named(void)
{
    static const char text[] = "{\"model_type\": \"llama\", " TINY ", \"residual_multiplier\": 2}";
    static const char *const key[] = {"residual_multiplier"};
    const struct hf_ignore ignore = {key, 1, false}, all = {.all = true};
    struct hf_model m;
    struct err e;
    T_ERR(hf_config_parse("c", text, sizeof(text) - 1, NULL, &m, &e), &e, ERR_DATA,
          "residual_multiplier");
    T_OK(hf_config_parse("c", text, sizeof(text) - 1, &ignore, &m, &e), &e);
    T_OK(hf_config_parse("c", text, sizeof(text) - 1, &all, &m, &e), &e);
}

T_MAIN(T_CASE(windows), T_CASE(what_train_lacks_is_a_feature), T_CASE(gemma),
       T_CASE(phi3_has_one_dropout), T_CASE(scaled_rotary_positions),
       T_CASE(rotary_positions_that_cannot_be), T_CASE(unknown_keys_stop_unless_they_are_named),
       T_CASE(known_models_have_their_known_size), T_CASE(details_of_a_family), T_CASE(activations),
       T_CASE(biases_of_llama), T_CASE(what_weft_cannot_run_is_refused_by_name),
       T_CASE(what_only_convert_takes))
