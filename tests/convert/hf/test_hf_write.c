/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/t.h"
#include "convert/hf/hf_index.h"
#include "convert/hf/hf_write.h"
#include "train/spec/family.h"

#define SIZES                                                                                      \
    "\"model_type\": \"llama\", \"hidden_size\": 24, \"intermediate_size\": 20,"                   \
    " \"num_hidden_layers\": 3, \"num_attention_heads\": 6, \"max_position_embeddings\": 64,"      \
    " \"vocab_size\": 37"
#define SCALING                                                                                    \
    "\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0,"                        \
    " \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 32"

static void read_model(const char *text, struct hf_model *ret)
{
    struct err e;
    T_OK(hf_config_parse("config.json", text, strlen(text), NULL, ret, &e), &e);
}

static void again(const char *text, enum dtype d, struct buf *ret)
{
    struct hf_model m, n;
    struct err e;
    struct buf what = {0};
    read_model(text, &m);
    T_OK(hf_config_again("config.json", text, strlen(text), &m, d, ret, &e), &e);
    read_model(buf_str(ret), &n);
    T_CHECK(!spec_differ(&m.spec, &n.spec, &what));
    buf_finish(&what);
}

static void both_spellings(void)
{
    static const char older[] = "{" SIZES ", \"rms_norm_eps\": 1e-05, \"rope_theta\": 7.5,"
                                " \"rope_scaling\": {" SCALING "}, \"torch_dtype\": \"bfloat16\"}";
    static const char newer[] = "{" SIZES ", \"rope_parameters\": {\"rope_theta\": 7.5, " SCALING
                                "}, \"dtype\": \"bfloat16\"}";
    static const char plain[] = "{" SIZES "}";
    struct buf b = {0};
    again(older, DTYPE_BF16, &b);
    T_CHECK(!strncmp(b.data, older, sizeof(older) - 2)); /* up to the brace, byte for byte */
    T_CHECK(strstr(b.data, "\"rope_parameters\": {\"rope_theta\": 7.5, " SCALING "}"));
    T_CHECK(strstr(b.data, "\"dtype\": \"bfloat16\""));
    again(newer, DTYPE_BF16, &b);
    T_CHECK(!strncmp(b.data, newer, sizeof(newer) - 2));
    T_CHECK(strstr(b.data, "\"rope_theta\": 7.5"));
    T_CHECK(strstr(b.data, "\"rope_scaling\": {" SCALING "}"));
    T_CHECK(strstr(b.data, "\"torch_dtype\": \"bfloat16\""));
    again(plain, DTYPE_F32, &b);
    T_CHECK(strstr(b.data, "\"rope_theta\": 10000.0"));
    T_CHECK(strstr(b.data, "\"rope_scaling\": null"));
    T_CHECK(strstr(b.data, "\"rope_type\": \"default\""));
    buf_finish(&b);
}

static void another_type_of_the_weights(void)
{
    static const char text[] = "{\"_name_or_path\": \"a \\\"torch_dtype\\\": b\", " SIZES
                               ", \"torch_dtype\": \"bfloat16\", \"dtype\": null, \"id2label\":"
                               " {\"torch_dtype\": \"inside\"}}";
    struct buf b = {0};
    again(text, DTYPE_F32, &b);
    T_CHECK(strstr(b.data, ", \"torch_dtype\": \"float32\", \"dtype\": \"float32\", "));
    T_CHECK(strstr(b.data, "{\"torch_dtype\": \"inside\"}"));
    T_CHECK(strstr(b.data, "\"a \\\"torch_dtype\\\": b\""));
    buf_finish(&b);
}

static struct spec small_gpt(void)
{
    return (struct spec){.layers = 2,
                         .hidden = 24,
                         .heads = 3,
                         .kv_heads = 3,
                         .head_dim = 8,
                         .ffn = 96,
                         .vocab = 37,
                         .padded_vocab = 128,
                         .max_positions = 16,
                         .norm_eps = 1e-5,
                         .tied = true,
                         .bias = true,
                         .init_std = 0.02};
}

/* A configuration is made of the model, and read again it is the same. */
static bool written[HF_FAMILIES];

static void there_and_back(struct spec *s)
{
    static const struct hf_ids ids = {1, 6, -1};
    struct hf_model m, n;
    struct err e;
    struct buf b = {0}, what = {0};
    spec_settle(s);
    T_OK(hf_model_of_spec(s, "run", &m, &e), &e);
    hf_config_new(&m, DTYPE_F32, ids, &b);
    read_model(buf_str(&b), &n);
    T_CHECK(n.family == m.family);
    written[m.family] = true;
    T_CHECK(!spec_differ(s, &n.spec, &what));
    T_CHECK(strstr(b.data, "\"eos_token_id\": 6") && strstr(b.data, "\"pad_token_id\": null"));
    buf_finish(&b);
    buf_finish(&what);
}

static void a_model_of_ours(void)
{
    struct spec s = small_gpt(), neox = s;
    for (int i = 0; i < 9; i++) {
        if (i == 1)
            s.position = SPEC_ROPE, s.rope_base = 500, s.rope_percent = 0.5, spec_settle(&s),
            neox = s;
        if (i == 2)
            s.norm = SPEC_RMSNORM, s.act = SPEC_SWIGLU, s.rope_percent = 1, s.kv_heads = 1;
        if (i == 3)
            s.bias = false, s.qkv_bias = true;
        if (i == 4)
            s.qkv_bias = false, s.qk_norm = true, s.head_dim = 16;
        if (i == 5) /* again from GPT-NeoX on */
            s = neox, s.parallel = true;
        if (i == 6)
            s.rope_scaling = SPEC_ROPE_LINEAR, s.rope_factor = 3.5;
        if (i == 7)
            s.rope_scaling = SPEC_ROPE_DYNAMIC, s.rope_old_length = 16, s.max_positions = 56;
        if (i == 8)
            s.rope_scaling = SPEC_ROPE_YARN, s.yarn = (struct spec_yarn){8, 0.5, 1.25, true};
        there_and_back(&s);
    }
}

static void a_model_of_ours_with_windows(void)
{
    struct spec s = small_gpt(), dense;
    struct hf_model m;
    struct err e;
    s.position = SPEC_ROPE;
    s.rope_base = 500;
    s.rope_percent = 1;
    s.norm = SPEC_RMSNORM;
    s.act = SPEC_SWIGLU;
    s.bias = false;
    s.window = 3;
    s.windowed.bits[0] = 3;
    there_and_back(&s); /* Mistral */
    dense = s;
    dense.windowed.bits[0] = 1;
    T_ERR(hf_model_of_spec(&dense, "run", &m, &e), &e, ERR_USAGE, "windows in these layers");
    dense.qkv_bias = true;
    there_and_back(&dense); /* Qwen 2 */
    s.experts = 4;
    s.topk = 2;
    s.expert_ffn = 8;
    there_and_back(&s); /* Mixtral */
    s.dense.bits[0] = 1;
    s.qk_norm = true;
    there_and_back(&s); /* Qwen 3 with experts */
    s.windowed.bits[0] = 2;
    T_ERR(hf_model_of_spec(&s, "run", &m, &e), &e, ERR_USAGE, "windows in these layers");
    s.qkv_bias = true;
    s.qk_norm = false;
    s.shared_ffn = 12;
    s.shared_gate = true;
    there_and_back(&s); /* Qwen 2 with experts */
}

/* Each family that a model of ours can be of has a writer that was tried. */
static void every_family_of_ours_is_written(void)
{
    a_model_of_ours();
    a_model_of_ours_with_windows();
    for (int f = 0; f < HF_FAMILIES; f++)
        T_EQ(written[f], hf_families[f]->fits != NULL);
}

static void index_as_transformers_writes_it(void)
{
    static const struct hf_place place[] = {{"b", "2.safetensors"}, {"a\"", "1.safetensors"}};
    struct buf b = {0};
    hf_index_write(place, 2, 12, &b);
    T_STR(buf_str(&b), "{\n  \"metadata\": {\n    \"total_size\": 12\n  },\n  \"weight_map\": {\n"
                       "    \"a\\\"\": \"1.safetensors\",\n    \"b\": \"2.safetensors\"\n  }\n}\n");
    buf_finish(&b);
}

T_MAIN(T_CASE(both_spellings), T_CASE(another_type_of_the_weights), T_CASE(a_model_of_ours),
       T_CASE(a_model_of_ours_with_windows), T_CASE(every_family_of_ours_is_written),
       T_CASE(index_as_transformers_writes_it))
