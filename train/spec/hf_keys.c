/* SPDX-License-Identifier: Apache-2.0 */

/* Every key of a config.json that weft knows, and what it means for the families that have it. */

#include <stdio.h>
#include <string.h>

#include "train/spec/hf_read.h"

#define BIT(f) (1u << (f))
#define ALL (BIT(HF_FAMILIES) - 1)
#define GPT2 BIT(HF_GPT2)
#define NEOX BIT(HF_GPT_NEOX)
#define GEMMA (BIT(HF_GEMMA2) | BIT(HF_GEMMA3))
#define GATED (ALL & ~GPT2 & ~NEOX) /* the names of Llama */
#define ROPE (ALL & ~GPT2)
#define QWEN (BIT(HF_QWEN2) | BIT(HF_QWEN3) | QWEN_MOE)
#define QWEN_MOE (BIT(HF_QWEN2_MOE) | BIT(HF_QWEN3_MOE))
#define MOE (BIT(HF_MIXTRAL) | QWEN_MOE)
#define PHI3 BIT(HF_PHI3)

/* SHAPE: the reader of the family has it. NOTHING: of no effect on the model. ONLY: any other
 * value than `only`, or null, is another model. */
enum hf_effect { SHAPE, NOTHING, ONLY };

struct hf_key {
    const char *key;
    unsigned families;
    enum hf_effect effect;
    const char *only; /* true, false, null, "empty" or a number */
    const char *why;
};

/* clang-format off */
static const struct hf_key keys[] = {
    {"model_type", ALL, SHAPE, NULL, NULL},
    {"architectures", ALL, SHAPE, NULL, NULL},
    {"vocab_size", ALL, SHAPE, NULL, NULL},
    {"tie_word_embeddings", ALL, SHAPE, NULL, NULL},
    {"initializer_range", ALL, SHAPE, NULL, NULL},

    {"n_embd", GPT2, SHAPE, NULL, NULL},
    {"n_layer", GPT2, SHAPE, NULL, NULL},
    {"n_head", GPT2, SHAPE, NULL, NULL},
    {"n_inner", GPT2, SHAPE, NULL, NULL},
    {"n_positions", GPT2, SHAPE, NULL, NULL},
    {"n_ctx", GPT2, SHAPE, NULL, NULL},
    {"layer_norm_epsilon", GPT2, SHAPE, NULL, NULL},
    {"activation_function", GPT2, SHAPE, NULL, NULL},
    {"attn_pdrop", GPT2, SHAPE, NULL, NULL},
    {"resid_pdrop", GPT2 | PHI3, SHAPE, NULL, NULL},
    {"embd_pdrop", GPT2 | PHI3, SHAPE, NULL, NULL},
    {"scale_attn_weights", GPT2, SHAPE, NULL, NULL},
    {"scale_attn_by_inverse_layer_idx", GPT2, SHAPE, NULL, NULL},
    {"reorder_and_upcast_attn", GPT2, NOTHING, NULL, NULL},
    {"summary_activation", GPT2, NOTHING, NULL, NULL},
    {"summary_first_dropout", GPT2, NOTHING, NULL, NULL},
    {"summary_proj_to_labels", GPT2, NOTHING, NULL, NULL},
    {"summary_type", GPT2, NOTHING, NULL, NULL},
    {"summary_use_proj", GPT2, NOTHING, NULL, NULL},

    {"hidden_size", ROPE, SHAPE, NULL, NULL},
    {"num_hidden_layers", ROPE, SHAPE, NULL, NULL},
    {"num_attention_heads", ROPE, SHAPE, NULL, NULL},
    {"intermediate_size", ROPE, SHAPE, NULL, NULL},
    {"max_position_embeddings", ROPE, SHAPE, NULL, NULL},
    {"hidden_act", ROPE, SHAPE, NULL, NULL},
    {"rope_theta", ROPE, SHAPE, NULL, NULL},
    {"rope_scaling", ROPE, SHAPE, NULL, NULL},
    {"rope_parameters", ROPE, SHAPE, NULL, NULL},
    {"partial_rotary_factor", ROPE, SHAPE, NULL, NULL},
    {"attention_dropout", ROPE, SHAPE, NULL, NULL},
    {"attention_bias", ROPE, SHAPE, NULL, NULL},
    {"head_dim", GATED, SHAPE, NULL, NULL},
    {"num_key_value_heads", GATED, SHAPE, NULL, NULL},
    {"rms_norm_eps", GATED, SHAPE, NULL, NULL},
    {"mlp_bias", BIT(HF_LLAMA), SHAPE, NULL, NULL},
    {"sliding_window", GATED, SHAPE, NULL, NULL},
    {"use_sliding_window", QWEN, SHAPE, NULL, NULL},
    {"max_window_layers", QWEN, SHAPE, NULL, NULL},
    {"layer_types", GATED, SHAPE, NULL, NULL},
    {"pretraining_tp", BIT(HF_LLAMA), NOTHING, NULL, NULL}, /* cuts the products, not the model */
    {"qkv_bias", BIT(HF_QWEN2_MOE), SHAPE, NULL, NULL},

    {"layer_norm_eps", NEOX, SHAPE, NULL, NULL},
    {"rotary_pct", NEOX, SHAPE, NULL, NULL},
    {"rotary_emb_base", NEOX, SHAPE, NULL, NULL},
    {"use_parallel_residual", NEOX, SHAPE, NULL, NULL},
    {"hidden_dropout", NEOX, SHAPE, NULL, NULL},
    {"classifier_dropout", NEOX, NOTHING, NULL, NULL},

    {"num_local_experts", MOE, SHAPE, NULL, NULL},
    {"num_experts", QWEN_MOE, SHAPE, NULL, NULL},
    {"moe_intermediate_size", QWEN_MOE, SHAPE, NULL, NULL},
    {"shared_expert_intermediate_size", BIT(HF_QWEN2_MOE), SHAPE, NULL, NULL},
    {"decoder_sparse_step", QWEN_MOE, SHAPE, NULL, NULL},
    {"mlp_only_layers", QWEN_MOE, SHAPE, NULL, NULL},
    {"num_experts_per_tok", MOE, SHAPE, NULL, NULL},
    {"norm_topk_prob", QWEN_MOE, SHAPE, NULL, NULL},
    {"output_router_logits", MOE, NOTHING, NULL, NULL},
    {"router_aux_loss_coef", MOE, SHAPE, NULL, NULL},
    {"router_jitter_noise", MOE, NOTHING, NULL, NULL},

    {"original_max_position_embeddings", PHI3, SHAPE, NULL, NULL}, /* of longrope */

    {"hidden_activation", GEMMA, SHAPE, NULL, NULL},
    {"attn_logit_softcapping", GEMMA, SHAPE, NULL, NULL},
    {"final_logit_softcapping", GEMMA, SHAPE, NULL, NULL},
    {"query_pre_attn_scalar", GEMMA, SHAPE, NULL, NULL},
    {"cache_implementation", GEMMA, NOTHING, NULL, NULL},
    {"rope_local_base_freq", BIT(HF_GEMMA3), SHAPE, NULL, NULL},
    {"sliding_window_pattern", BIT(HF_GEMMA3), SHAPE, NULL, NULL},
    {"_sliding_window_pattern", BIT(HF_GEMMA3), SHAPE, NULL, NULL},
    {"use_bidirectional_attention", GEMMA, ONLY, "false", "weft's models are causal"},

    {"quantization_config", ALL, ONLY, "null", "quantized weights cannot be converted"},
    {"add_cross_attention", ALL, ONLY, "false", "weft has no cross attention"},
    {"cross_attention_hidden_size", ALL, ONLY, "null", "weft has no cross attention"},
    {"is_encoder_decoder", ALL, ONLY, "false", "weft's models are decoders alone"},
    {"tie_encoder_decoder", ALL, ONLY, "false", "weft's models are decoders alone"},
    {"pruned_heads", ALL, ONLY, "empty", "all layers of a model of weft have all heads"},

    {"_attn_implementation", ALL, NOTHING, NULL, NULL},
    {"_attn_implementation_autoset", ALL, NOTHING, NULL, NULL},
    {"_name_or_path", ALL, NOTHING, NULL, NULL},
    {"auto_map", ALL, NOTHING, NULL, NULL},
    {"bad_words_ids", ALL, NOTHING, NULL, NULL},
    {"begin_suppress_tokens", ALL, NOTHING, NULL, NULL},
    {"bos_token_id", ALL, NOTHING, NULL, NULL},
    {"chunk_size_feed_forward", ALL, NOTHING, NULL, NULL},
    {"decoder_start_token_id", ALL, NOTHING, NULL, NULL},
    {"diversity_penalty", ALL, NOTHING, NULL, NULL},
    {"do_sample", ALL, NOTHING, NULL, NULL},
    {"dtype", ALL, NOTHING, NULL, NULL}, /* the tensors' own types count */
    {"early_stopping", ALL, NOTHING, NULL, NULL},
    {"encoder_no_repeat_ngram_size", ALL, NOTHING, NULL, NULL},
    {"eos_token_id", ALL, NOTHING, NULL, NULL},
    {"exponential_decay_length_penalty", ALL, NOTHING, NULL, NULL},
    {"finetuning_task", ALL, NOTHING, NULL, NULL},
    {"forced_bos_token_id", ALL, NOTHING, NULL, NULL},
    {"forced_eos_token_id", ALL, NOTHING, NULL, NULL},
    {"gradient_checkpointing", ALL, NOTHING, NULL, NULL},
    {"id2label", ALL, NOTHING, NULL, NULL},
    {"is_decoder", ALL, NOTHING, NULL, NULL},
    {"label2id", ALL, NOTHING, NULL, NULL},
    {"length_penalty", ALL, NOTHING, NULL, NULL},
    {"max_length", ALL, NOTHING, NULL, NULL},
    {"min_length", ALL, NOTHING, NULL, NULL},
    {"no_repeat_ngram_size", ALL, NOTHING, NULL, NULL},
    {"num_beam_groups", ALL, NOTHING, NULL, NULL},
    {"num_beams", ALL, NOTHING, NULL, NULL},
    {"num_return_sequences", ALL, NOTHING, NULL, NULL},
    {"output_attentions", ALL, NOTHING, NULL, NULL},
    {"output_hidden_states", ALL, NOTHING, NULL, NULL},
    {"output_past", ALL, NOTHING, NULL, NULL},
    {"output_scores", ALL, NOTHING, NULL, NULL},
    {"pad_token_id", ALL, NOTHING, NULL, NULL},
    {"prefix", ALL, NOTHING, NULL, NULL},
    {"problem_type", ALL, NOTHING, NULL, NULL},
    {"remove_invalid_values", ALL, NOTHING, NULL, NULL},
    {"repetition_penalty", ALL, NOTHING, NULL, NULL},
    {"return_dict", ALL, NOTHING, NULL, NULL},
    {"return_dict_in_generate", ALL, NOTHING, NULL, NULL},
    {"sep_token_id", ALL, NOTHING, NULL, NULL},
    {"suppress_tokens", ALL, NOTHING, NULL, NULL},
    {"task_specific_params", ALL, NOTHING, NULL, NULL},
    {"temperature", ALL, NOTHING, NULL, NULL},
    {"tf_legacy_loss", ALL, NOTHING, NULL, NULL},
    {"tokenizer_class", ALL, NOTHING, NULL, NULL},
    {"top_k", ALL, NOTHING, NULL, NULL},
    {"top_p", ALL, NOTHING, NULL, NULL},
    {"torch_dtype", ALL, NOTHING, NULL, NULL},
    {"torchscript", ALL, NOTHING, NULL, NULL},
    {"transformers_version", ALL, NOTHING, NULL, NULL},
    {"typical_p", ALL, NOTHING, NULL, NULL},
    {"use_bfloat16", ALL, NOTHING, NULL, NULL},
    {"use_cache", ALL, NOTHING, NULL, NULL},
};
/* clang-format on */

static const struct hf_key *find_key(const char *key, enum hf_family f)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].families & BIT(f) && !strcmp(key, keys[i].key))
            return &keys[i];
    return NULL;
}

static bool is_only(const struct json *v, const char *only)
{
    if (v->kind == JSON_NULL)
        return true;
    if (!strcmp(only, "empty"))
        return (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) && !v->length;
    return v->kind == JSON_BOOL && !strcmp(only, v->boolean ? "true" : "false");
}

static bool is_ignored(const struct hf_ignore *ignore, const char *key)
{
    bool found = ignore && ignore->all;
    for (size_t i = 0; ignore && i < ignore->n; i++)
        found |= !strcmp(key, ignore->key[i]);
    return found;
}

/* A value in a sentence; of an object that it is one. */
static const char *value_words(const struct json *v, char *to, size_t n)
{
    switch (v->kind) {
    case JSON_BOOL:
        return v->boolean ? "true" : "false";
    case JSON_INT:
    case JSON_REAL:
        snprintf(to, n, "%.10g", v->real);
        return to;
    case JSON_STRING:
        snprintf(to, n, "\"%.60s\"", v->string);
        return to;
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_NULL:
        break;
    }
    return "null";
}

void hf_check_keys(struct hf_reader *h, enum hf_family f, const struct hf_ignore *ignore)
{
    char value[80];
    for (size_t i = 0; !h->code && i < h->o->length; i++) {
        const struct json *v = &h->o->child[i];
        const struct hf_key *k = strlen(v->key) == v->key_length ? find_key(v->key, f) : NULL;
        if (k && (k->effect != ONLY || is_only(v, k->only)))
            continue;
        if (is_ignored(ignore, v->key))
            continue;
        if (k)
            h->code = err_set(h->e, ERR_DATA, "%s: \"%s\" is %s: %s", h->path, v->key,
                              value_words(v, value, sizeof(value)), k->why);
        else
            h->code = err_set(h->e, ERR_DATA, "%s: the key \"%.80s\" is not known of a %s model",
                              h->path, v->key, hf_family_name(f));
        err_hint(h->e, "if it does not change the model: --ignore-config-key %.80s", v->key);
    }
}
