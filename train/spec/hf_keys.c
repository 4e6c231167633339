/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The keys of a config.json that several families have, and how every key of a file is judged:
 * one that is in no list of its family stops the reader.
 */

#include <stdio.h>
#include <string.h>

#include "train/spec/family.h"

/* clang-format off */
const struct hf_key hf_keys_all[] = {
    KEY("model_type"),
    KEY("architectures"),
    KEY("vocab_size"),
    KEY("tie_word_embeddings"),
    KEY("initializer_range"),
    {"quantization_config", ONLY, "null", "quantized weights cannot be converted"},
    {"add_cross_attention", ONLY, "false", "weft has no cross attention"},
    {"cross_attention_hidden_size", ONLY, "null", "weft has no cross attention"},
    {"is_encoder_decoder", ONLY, "false", "weft's models are decoders alone"},
    {"tie_encoder_decoder", ONLY, "false", "weft's models are decoders alone"},
    {"pruned_heads", ONLY, "empty", "all layers of a model of weft have all heads"},
    IDLE_KEY("_attn_implementation"),
    IDLE_KEY("_attn_implementation_autoset"),
    IDLE_KEY("_name_or_path"),
    IDLE_KEY("auto_map"),
    IDLE_KEY("bad_words_ids"),
    IDLE_KEY("begin_suppress_tokens"),
    IDLE_KEY("bos_token_id"),
    IDLE_KEY("chunk_size_feed_forward"),
    IDLE_KEY("decoder_start_token_id"),
    IDLE_KEY("diversity_penalty"),
    IDLE_KEY("do_sample"),
    IDLE_KEY("dtype"), /* the tensors' own types count */
    IDLE_KEY("early_stopping"),
    IDLE_KEY("encoder_no_repeat_ngram_size"),
    IDLE_KEY("eos_token_id"),
    IDLE_KEY("exponential_decay_length_penalty"),
    IDLE_KEY("finetuning_task"),
    IDLE_KEY("forced_bos_token_id"),
    IDLE_KEY("forced_eos_token_id"),
    IDLE_KEY("gradient_checkpointing"),
    IDLE_KEY("id2label"),
    IDLE_KEY("is_decoder"),
    IDLE_KEY("label2id"),
    IDLE_KEY("length_penalty"),
    IDLE_KEY("max_length"),
    IDLE_KEY("min_length"),
    IDLE_KEY("no_repeat_ngram_size"),
    IDLE_KEY("num_beam_groups"),
    IDLE_KEY("num_beams"),
    IDLE_KEY("num_return_sequences"),
    IDLE_KEY("output_attentions"),
    IDLE_KEY("output_hidden_states"),
    IDLE_KEY("output_past"),
    IDLE_KEY("output_scores"),
    IDLE_KEY("pad_token_id"),
    IDLE_KEY("prefix"),
    IDLE_KEY("problem_type"),
    IDLE_KEY("remove_invalid_values"),
    IDLE_KEY("repetition_penalty"),
    IDLE_KEY("return_dict"),
    IDLE_KEY("return_dict_in_generate"),
    IDLE_KEY("sep_token_id"),
    IDLE_KEY("suppress_tokens"),
    IDLE_KEY("task_specific_params"),
    IDLE_KEY("temperature"),
    IDLE_KEY("tf_legacy_loss"),
    IDLE_KEY("tokenizer_class"),
    IDLE_KEY("top_k"),
    IDLE_KEY("top_p"),
    IDLE_KEY("torch_dtype"),
    IDLE_KEY("torchscript"),
    IDLE_KEY("transformers_version"),
    IDLE_KEY("typical_p"),
    IDLE_KEY("use_bfloat16"),
    IDLE_KEY("use_cache"),
    END_OF_KEYS,
};

const struct hf_key hf_keys_rope[] = {
    KEY("hidden_size"),
    KEY("num_hidden_layers"),
    KEY("num_attention_heads"),
    KEY("intermediate_size"),
    KEY("max_position_embeddings"),
    KEY("hidden_act"),
    KEY("rope_theta"),
    KEY("rope_scaling"),
    KEY("rope_parameters"),
    KEY("partial_rotary_factor"),
    KEY("attention_dropout"),
    KEY("attention_bias"),
    END_OF_KEYS,
};

const struct hf_key hf_keys_llama[] = {
    KEY("head_dim"),
    KEY("num_key_value_heads"),
    KEY("rms_norm_eps"),
    KEY("sliding_window"),
    KEY("layer_types"),
    END_OF_KEYS,
};

const struct hf_key hf_keys_qwen[] = {
    KEY("use_sliding_window"),
    KEY("max_window_layers"),
    END_OF_KEYS,
};

const struct hf_key hf_keys_experts[] = {
    KEY("num_local_experts"),
    KEY("num_experts_per_tok"),
    IDLE_KEY("output_router_logits"),
    KEY("router_aux_loss_coef"),
    IDLE_KEY("router_jitter_noise"),
    END_OF_KEYS,
};
/* clang-format on */

static const struct hf_key *find_in_list(const char *key, const struct hf_key *list)
{
    while (list->key && strcmp(key, list->key) != 0)
        list++;
    return list->key ? list : NULL;
}

static const struct hf_key *find_key(const char *key, enum hf_family f)
{
    const struct hf_key *found = find_in_list(key, hf_keys_all);
    for (const struct hf_key *const *list = hf_families[f]->keys; !found && *list; list++)
        found = find_in_list(key, *list);
    return found;
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
