/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shapes by name. The gpt-*b sizes are GPT-3's table, with the standard deviations that
 * Megatron-DeepSpeed's data-efficiency scripts give them; gpt2-* are OpenAI's four, llama-*
 * Meta's. A preset holds the model only: batch, learning rate and sequence length belong to a
 * run. The vocabulary is the tokenizer's, but where a preset is a configuration of transformers.
 */

#include "train/spec/options.h"

/* clang-format off */
#define V(name) static const char *const name[][2]
#define END {NULL, NULL}
#define STD(x) {"init-method-std", x}
#define SHAPE(layers, hidden, heads, positions) \
    {"num-layers", layers}, {"hidden-size", hidden}, {"num-attention-heads", heads}, \
    {"max-position-embeddings", positions}
#define LLAMA \
    {"position-embedding-type", "rope"}, {"normalization", "RMSNorm"}, {"swiglu", "true"}, \
    {"disable-bias-linear", "true"}, {"group-query-attention", "true"}, \
    {"attention-dropout", "0"}, {"hidden-dropout", "0"}
#define LLAMA3 \
    LLAMA, {"rotary-base", "500000"}, {"use-rope-scaling", "true"}, {"num-query-groups", "8"}
#define UNTIED {"untie-embeddings-and-output-weights", "true"}

V(gpt_1m)   = {SHAPE("4", "128", "4", "256"), {"attention-dropout", "0"}, {"hidden-dropout", "0"},
               END};
V(llama_1m) = {SHAPE("4", "128", "4", "256"), LLAMA, {"num-query-groups", "2"},
               {"ffn-hidden-size", "384"}, END};

V(gpt_0_125b) = {SHAPE("12", "768",   "12", "2048"), STD("0.02"),  END};
V(gpt_0_35b)  = {SHAPE("24", "1024",  "16", "2048"), STD("0.018"), END};
V(gpt_0_76b)  = {SHAPE("24", "1536",  "16", "2048"), STD("0.015"), END};
V(gpt_1_3b)   = {SHAPE("24", "2048",  "16", "2048"), STD("0.013"), END};
V(gpt_2_7b)   = {SHAPE("32", "2560",  "32", "2048"), STD("0.011"), END};
V(gpt_6_7b)   = {SHAPE("32", "4096",  "32", "2048"), STD("0.009"), END};
V(gpt_13b)    = {SHAPE("40", "5120",  "40", "2048"), STD("0.008"), END};
V(gpt_175b)   = {SHAPE("96", "12288", "96", "2048"), STD("0.005"), END};

V(gpt2_124m)  = {SHAPE("12", "768",  "12", "1024"), END};
V(gpt2_345m)  = {SHAPE("24", "1024", "16", "1024"), END};
V(gpt2_774m)  = {SHAPE("36", "1280", "20", "1024"), END};
V(gpt2_1558m) = {SHAPE("48", "1600", "25", "1024"), END};

V(llama_3_2_1b)  = {SHAPE("16", "2048", "32", "131072"), LLAMA3, {"ffn-hidden-size", "8192"},
                    {"rope-scaling-factor", "32"}, END};
V(llama_3_1_8b)  = {SHAPE("32", "4096", "32", "131072"), LLAMA3, {"ffn-hidden-size", "14336"},
                    UNTIED, END};
V(llama_3_1_70b) = {SHAPE("80", "8192", "64", "131072"), LLAMA3, {"ffn-hidden-size", "28672"},
                    UNTIED, END};

#define GQA(groups) {"group-query-attention", "true"}, {"num-query-groups", groups}
#define MODERN \
    {"position-embedding-type", "rope"}, {"normalization", "RMSNorm"}, {"swiglu", "true"}, \
    {"disable-bias-linear", "true"}, {"attention-dropout", "0"}, {"hidden-dropout", "0"}
#define QWEN MODERN, {"rotary-base", "1000000"}, {"norm-epsilon", "1e-6"}
#define QWEN2 QWEN, {"add-qkv-bias", "true"}
#define QWEN3 QWEN, {"qk-layernorm", "true"}, {"kv-channels", "128"}
#define NEOX \
    {"position-embedding-type", "rope"}, {"rotary-percent", "0.25"}, \
    {"use-parallel-residual", "true"}, \
    {"attention-dropout", "0"}, {"hidden-dropout", "0"}, UNTIED
#define EXPERTS(n, k, ffn) \
    {"num-experts", n}, {"moe-router-topk", k}, {"moe-ffn-hidden-size", ffn}, \
    {"moe-aux-loss-coeff", "1e-3"}

V(qwen25_05b) = {SHAPE("24", "896",  "14", "32768"),  QWEN2, GQA("2"),
                 {"ffn-hidden-size", "4864"}, END};
V(qwen25_15b) = {SHAPE("28", "1536", "12", "131072"), QWEN2, GQA("2"),
                 {"ffn-hidden-size", "8960"}, END};
V(qwen25_7b)  = {SHAPE("28", "3584", "28", "131072"), QWEN2, GQA("4"),
                 {"ffn-hidden-size", "18944"}, UNTIED, END};
V(qwen3_06b)  = {SHAPE("28", "1024", "16", "40960"),  QWEN3, GQA("8"),
                 {"ffn-hidden-size", "3072"}, END};
V(qwen3_8b)   = {SHAPE("36", "4096", "32", "40960"),  QWEN3, GQA("8"),
                 {"ffn-hidden-size", "12288"}, UNTIED, END};
V(qwen3_30b)  = {SHAPE("48", "2048", "32", "40960"),  QWEN3, GQA("4"),
                 {"ffn-hidden-size", "6144"}, EXPERTS("128", "8", "768"), UNTIED, END};
V(pythia_70m) = {SHAPE("6",  "512",  "8",  "2048"), NEOX,
                 {"bias-gelu-fusion", "false"}, END};
V(neox_20b)   = {SHAPE("44", "6144", "64", "2048"), NEOX,
                 {"bias-gelu-fusion", "true"}, END};
V(mistral_7b) = {SHAPE("32", "4096", "32", "32768"), MODERN, GQA("8"), UNTIED,
                 {"ffn-hidden-size", "14336"}, {"rotary-base", "1000000"}, END};
V(mistral_01) = {SHAPE("32", "4096", "32", "32768"), MODERN, GQA("8"), UNTIED,
                 {"ffn-hidden-size", "14336"}, {"window-size", "4095,0"}, END};
V(mixtral)    = {SHAPE("32", "4096", "32", "32768"), MODERN, GQA("8"), UNTIED,
                 {"ffn-hidden-size", "14336"}, {"rotary-base", "1000000"},
                 EXPERTS("8", "2", "14336"), END};
V(qwen15_moe) = {SHAPE("24", "2048", "16", "8192"), QWEN2, GQA("16"), UNTIED,
                 {"ffn-hidden-size", "5632"}, EXPERTS("60", "4", "1408"),
                 {"moe-router-pre-softmax", "true"},
                 {"moe-shared-expert-intermediate-size", "5632"},
                 {"moe-shared-expert-gate", "true"}, END};

/* Families for which there are no options: the configuration, and with it the vocabulary. */
#define CONFIG(text) {"hf-config", "{" text "}"}
#define SIZES(hidden, layers, heads, groups, ffn, positions, vocab) \
    "\"hidden_size\": " hidden ", \"num_hidden_layers\": " layers \
    ", \"num_attention_heads\": " heads ", \"num_key_value_heads\": " groups \
    ", \"intermediate_size\": " ffn ", \"max_position_embeddings\": " positions \
    ", \"vocab_size\": " vocab
#define GEMMA "\"head_dim\": 256, \"query_pre_attn_scalar\": 256, "
V(phi3_mini) = {CONFIG("\"model_type\": \"phi3\", \"sliding_window\": 2047, "
                       SIZES("3072", "32", "32", "32", "8192", "4096", "32064")), END};
V(gemma2_2b) = {CONFIG("\"model_type\": \"gemma2\", " GEMMA
                       SIZES("2304", "26", "8", "4", "9216", "8192", "256000")), END};
V(gemma2_9b) = {CONFIG("\"model_type\": \"gemma2\", " GEMMA
                       SIZES("3584", "42", "16", "8", "14336", "8192", "256000")), END};
V(gemma3_1b) = {CONFIG("\"model_type\": \"gemma3_text\", \"sliding_window\": 512, " GEMMA
                       SIZES("1152", "26", "4", "1", "6912", "32768", "262144")), END};
/* clang-format on */

const struct opt_preset spec_presets[] = {
    {"gpt-1m", "GPT of 1 M parameters with 2048 ids", gpt_1m},
    {"llama-1m", "Llama of 1 M parameters with 2048 ids", llama_1m},
    {"gpt-0.125b", "GPT, 12 layers of 768", gpt_0_125b},
    {"gpt-0.35b", "GPT, 24 layers of 1024", gpt_0_35b},
    {"gpt-0.76b", "GPT, 24 layers of 1536", gpt_0_76b},
    {"gpt-1.3b", "GPT, 24 layers of 2048", gpt_1_3b},
    {"gpt-2.7b", "GPT, 32 layers of 2560", gpt_2_7b},
    {"gpt-6.7b", "GPT, 32 layers of 4096", gpt_6_7b},
    {"gpt-13b", "GPT, 40 layers of 5120", gpt_13b},
    {"gpt-175b", "GPT, 96 layers of 12288", gpt_175b},
    {"gpt2-124m", "GPT-2", gpt2_124m},
    {"gpt2-345m", "GPT-2 medium", gpt2_345m},
    {"gpt2-774m", "GPT-2 large", gpt2_774m},
    {"gpt2-1558m", "GPT-2 XL", gpt2_1558m},
    {"llama-3.2-1b", "Llama 3.2 1B", llama_3_2_1b},
    {"llama-3.1-8b", "Llama 3.1 8B", llama_3_1_8b},
    {"llama-3.1-70b", "Llama 3.1 70B", llama_3_1_70b},
    {"qwen2.5-0.5b", "Qwen 2.5 0.5B", qwen25_05b},
    {"qwen2.5-1.5b", "Qwen 2.5 1.5B", qwen25_15b},
    {"qwen2.5-7b", "Qwen 2.5 7B", qwen25_7b},
    {"qwen3-0.6b", "Qwen 3 0.6B", qwen3_06b},
    {"qwen3-8b", "Qwen 3 8B", qwen3_8b},
    {"qwen3-30b-a3b", "Qwen 3 30B, 3B of which work on a token", qwen3_30b},
    {"pythia-70m", "Pythia, GPT-NeoX of 70 M parameters", pythia_70m},
    {"gpt-neox-20b", "GPT-NeoX 20B", neox_20b},
    {"mistral-7b", "Mistral 7B v0.2, without a window", mistral_7b},
    {"mistral-7b-v0.1", "Mistral 7B v0.1, with a window of 4096", mistral_01},
    {"mixtral-8x7b", "Mixtral, 8 experts", mixtral},
    {"qwen1.5-moe-a2.7b", "Qwen 1.5 MoE, 2.7B of which work on a token", qwen15_moe},
    {"phi-3-mini-4k", "Phi-3 mini, with a window of 2047", phi3_mini},
    {"gemma-2-2b", "Gemma 2 2B", gemma2_2b},
    {"gemma-2-9b", "Gemma 2 9B", gemma2_9b},
    {"gemma-3-1b", "Gemma 3 1B", gemma3_1b},
    {NULL, NULL, NULL},
};
