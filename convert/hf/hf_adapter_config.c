/* SPDX-License-Identifier: Apache-2.0 */

/* adapter_config.json: which keys count, which change nothing, which stop the reader. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "convert/hf/hf_adapter.h"

/* Keys that say how an adapter was trained, or that its tensors say themselves. */
static const char *const passed_keys[] = {
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "lora_dropout",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
};

/* Adapters that are merged in another way, by the key that switches them on. */
static const struct {
    const char *key, *what;
} refused_keys[] = {
    {"use_dora", "DoRA"},
    {"lora_bias", "a bias of lora_B"},
    {"layer_replication", "replicated layers"},
    {"use_qalora", "QALoRA"},
    {"alora_invocation_tokens", "activated LoRA"},
    {"trainable_token_indices", "single trained tokens"},
    {"target_parameters", "updates of parameters that belong to no linear layer"},
    {"arrow_config", "Arrow"},
    {"use_bdlora", "block-diagonal LoRA"},
    {"kasa_config", "KaSA"},
    {"megatron_config", "Megatron's layers"},
    {"loftq_config", "LoftQ"},
    {"corda_config", "CorDA"},
    {"lora_ga_config", "LoRA-GA"},
};

/* null, false, 0, "", [] and {}: a key that is there and switches nothing on. */
static bool is_off(const struct json *v)
{
    switch (v->kind) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !v->boolean;
    case JSON_INT:
    case JSON_REAL:
        return v->real == 0;
    default:
        return !v->length;
    }
}

static int adapter_refuse(const char *name, const char *what, const struct json *v, struct err *e)
{
    err_set(e, ERR_DATA, "%s: \"%.100s\": %s, which weft does not merge", name, v->key, what);
    return err_hint(e, "merge it with PEFT (merge_and_unload) and import the result");
}

/* Names of ways to begin that leave the base model as it is; the others take something from it. */
static int check_init(const char *name, const struct json *v, struct err *e)
{
    static const char *const plain[] = {"gaussian", "eva", "orthogonal"};
    bool fine = v->kind == JSON_BOOL || v->kind == JSON_NULL;
    for (size_t i = 0; v->kind == JSON_STRING && i < sizeof(plain) / sizeof(plain[0]); i++)
        fine |= !strcmp(v->string, plain[i]);
    if (fine)
        return 0;
    char *what = mem_printf("it changes the base model (%.60s)",
                            v->kind == JSON_STRING ? v->string : "unknown");
    int code = adapter_refuse(name, what, v, e);
    free(what);
    return code;
}

static int read_patterns(struct hf_adapter_config *c, const char *name, const struct json *v,
                         struct hf_pattern **ret, size_t *ret_n, struct err *e)
{
    if (v->kind == JSON_NULL)
        return 0;
    if (v->kind != JSON_OBJECT || v->length > HF_PATTERNS_MAX)
        return err_set(e, ERR_DATA, "%s: \"%s\" is not an object of at most %d numbers", name,
                       v->key, HF_PATTERNS_MAX);
    *ret = arena_take(&c->arena, v->length + 1, sizeof(**ret));
    for (size_t i = 0; i < v->length; i++) {
        const struct json *p = &v->child[i];
        if ((p->kind != JSON_INT && p->kind != JSON_REAL) || !isfinite(p->real) ||
            strlen(p->key) != p->key_length)
            return err_set(e, ERR_DATA, "%s: \"%s\" of '%.100s' is not a number", name, v->key,
                           p->key);
        (*ret)[(*ret_n)++] = (struct hf_pattern){arena_strdup(&c->arena, p->key), p->real};
    }
    return 0;
}

/* Names of modules that PEFT keeps a trained copy of. */
static int read_saved(struct hf_adapter_config *c, const char *name, const struct json *v,
                      struct err *e)
{
    if (v->kind == JSON_NULL)
        return 0;
    bool fine = v->kind == JSON_ARRAY && v->length <= HF_PATTERNS_MAX;
    if (fine)
        c->saved = arena_take(&c->arena, v->length + 1, sizeof(*c->saved));
    for (size_t i = 0; fine && i < v->length; i++) {
        fine = v->child[i].kind == JSON_STRING;
        if (fine)
            c->saved[c->nsaved++] = arena_strdup(&c->arena, v->child[i].string);
    }
    if (!fine)
        return err_set(e, ERR_DATA, "%s: \"%s\" is not an array of at most %d texts", name, v->key,
                       HF_PATTERNS_MAX);
    return 0;
}

static bool is_passed(const char *key, const struct hf_ignore *ignore)
{
    bool passed = false;
    for (size_t i = 0; i < sizeof(passed_keys) / sizeof(passed_keys[0]); i++)
        passed |= !strcmp(key, passed_keys[i]);
    for (size_t i = 0; ignore && i < ignore->n; i++)
        passed |= !strcmp(key, ignore->key[i]);
    return passed;
}

/* A key that is not one of those that have numbers. */
static int judge_key(const char *name, const struct json *v, const struct hf_ignore *ignore,
                     struct err *e)
{
    if (is_passed(v->key, ignore) || is_off(v))
        return 0;
    for (size_t i = 0; i < sizeof(refused_keys) / sizeof(refused_keys[0]); i++)
        if (!strcmp(v->key, refused_keys[i].key))
            return adapter_refuse(name, refused_keys[i].what, v, e);
    err_set(e, ERR_DATA, "%s: the key \"%.100s\" is not one that weft knows of LoRA adapters", name,
            v->key);
    return err_hint(e, "--ignore-config-key %.100s passes over it", v->key);
}

static int adapter_key(struct hf_adapter_config *c, const char *name, const struct json *v,
                       const struct hf_ignore *ignore, struct err *e)
{
    if (!strcmp(v->key, "peft_type")) {
        if (v->kind == JSON_STRING && !strcmp(v->string, "LORA"))
            return 0;
        char *what =
            mem_printf("an adapter of type %.60s", v->kind == JSON_STRING ? v->string : "unknown");
        int code = adapter_refuse(name, what, v, e);
        free(what);
        return code;
    }
    if (!strcmp(v->key, "init_lora_weights"))
        return check_init(name, v, e);
    if (!strcmp(v->key, "rank_pattern"))
        return read_patterns(c, name, v, &c->rank_of, &c->nranks, e);
    if (!strcmp(v->key, "alpha_pattern"))
        return read_patterns(c, name, v, &c->alpha_of, &c->nalphas, e);
    if (!strcmp(v->key, "modules_to_save"))
        return read_saved(c, name, v, e);
    if (!strcmp(v->key, "ensure_weight_tying") && v->kind == JSON_BOOL) {
        c->tying = v->boolean;
        return 0;
    }
    if (!strcmp(v->key, "use_rslora") && (v->kind == JSON_BOOL || v->kind == JSON_NULL)) {
        c->root = v->boolean;
        return 0;
    }
    if (!strcmp(v->key, "r") && v->kind == JSON_INT && v->integer > 0 && v->integer < 1 << 20) {
        c->r = v->integer;
        return 0;
    }
    if (!strcmp(v->key, "lora_alpha") && (v->kind == JSON_INT || v->kind == JSON_REAL) &&
        isfinite(v->real)) {
        c->alpha = v->real;
        return 0;
    }
    if (!strcmp(v->key, "r") || !strcmp(v->key, "lora_alpha") || !strcmp(v->key, "use_rslora") ||
        (!strcmp(v->key, "ensure_weight_tying") && !is_off(v)))
        return err_set(e, ERR_DATA, "%s: \"%s\" has a value that no adapter has", name, v->key);
    return judge_key(name, v, ignore, e);
}

int hf_adapter_parse(struct hf_adapter_config *ret, const char *name, const char *text, size_t n,
                     const struct hf_ignore *ignore, struct err *e)
{
    struct json_doc *doc = NULL;
    struct hf_adapter_config c = {.r = 8, .alpha = 8};
    int code = json_parse(name, text, n, &doc, e);
    if (code)
        return code;
    const struct json *o = json_root(doc);
    if (o->kind != JSON_OBJECT || !json_get(o, "peft_type"))
        code =
            err_set(e, ERR_DATA, "%s: is not an adapter's configuration: no \"peft_type\"", name);
    const struct json *type = json_get(o, "peft_type");
    if (!code)
        code = adapter_key(&c, name, type, ignore, e); /* says most, so it comes first */
    for (size_t i = 0; !code && i < o->length; i++)
        code = adapter_key(&c, name, &o->child[i], ignore, e);
    json_close(doc);
    if (code)
        hf_adapter_config_finish(&c);
    else
        *ret = c;
    return code;
}

void hf_adapter_config_finish(struct hf_adapter_config *c)
{
    arena_finish(&c->arena);
    *c = (struct hf_adapter_config){0};
}
