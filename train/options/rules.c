/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/rules.h"

/* ---- recipes ----------------------------------------------------------------------------- */

/*
 * What other programs set for a fine-tuning run. Rows that do not change results are left out:
 * activations are recomputed by --recompute-granularity. `unless`: options which, where one of them
 * is given, take the row's place; NULL: only the option itself.
 */
struct recipe {
    const char *name, *value;
    const char *unless[4];
};

#define LENGTHS                                                                                    \
    {                                                                                              \
        "train-iters", "train-samples", "train-tokens"                                             \
    }
#define WARMUPS                                                                                    \
    {                                                                                              \
        "lr-warmup-iters", "lr-warmup-samples", "lr-warmup-tokens"                                 \
    }

/* Defaults of transformers 5.23's TrainingArguments, which both have. */
#define TRAINER_ROWS                                                                               \
    {"optimizer", "adam"}, {"adam-beta1", "0.9"}, {"adam-beta2", "0.999"}, {"adam-eps", "1e-8"},   \
        {"weight-decay", "0"}, {"clip-grad", "1"}, {"lr-rules", "hf"}, {"min-lr", "0"},            \
        {"calculate-per-token-loss", "true"}, {"seed", "42"}, {"bf16", "true", {"fp16"}},          \
        {"gradient-accumulation-steps", "1", {"global-batch-size"}},                               \
    {                                                                                              \
        "save-interval", "500"                                                                     \
    }

/* llm-jp-sft's script for one process. */
static const struct recipe llm_jp_sft[] = {
    TRAINER_ROWS,
    {"lr", "1e-5"},
    {"lr-decay-style", "cosine"},
    {"lr-warmup-fraction", "0.1", WARMUPS},
    {"num-train-epochs", "1", LENGTHS},
    {"micro-batch-size", "1"},
    {"log-interval", "500"},
    {NULL, NULL},
};

/* trl 1.16's SFTConfig. */
static const struct recipe trl[] = {
    TRAINER_ROWS,
    {"lr", "2e-5"},
    {"lr-decay-style", "linear"},
    {"num-train-epochs", "3", LENGTHS},
    {"micro-batch-size", "8"},
    {"log-interval", "10"},
    {NULL, NULL},
};

static const struct {
    const char *where;
    const struct recipe *rows;
} recipes[] = {
    [RECIPE_LLM_JP_SFT] = {"recipe llm-jp-sft", llm_jp_sft},
    [RECIPE_TRL] = {"recipe trl", trl},
};

static bool is_replaced(const struct opts *o, const struct recipe *r)
{
    bool given = false;
    for (int i = 0; r->unless[i]; i++)
        given |= opts_origin(o, r->unless[i]) > FROM_PRESET;
    return given;
}

static int apply_recipe(struct opts *o, int which, struct err *e)
{
    int code = 0;
    for (const struct recipe *r = recipes[which].rows; r && r->name && !code; r++)
        if (!is_replaced(o, r))
            code = opts_set_from(o, FROM_PRESET, recipes[which].where, r->name, r->value, e);
    return code;
}

/* ---- what one option sets ---------------------------------------------------------------- */

/* Unless it is given, or a recipe has set it. */
static int set_default(struct opts *o, const char *by, const char *name, const char *value,
                       struct err *e)
{
    bool set = opts_origin(o, name) != FROM_DEFAULT;
    return set ? 0 : opts_set_from(o, FROM_PRESET, by, name, value, e);
}

/*
 * Epochs are of all the data, as in transformers, where validation has a set of its own; Megatron's
 * default split would keep back a thirtieth. Its evaluations are of all validation data.
 */
static int epochs_set(struct opts *o, struct err *e)
{
    const char *by = "--num-train-epochs";
    int code = set_default(o, by, "split", "100,0,0", e);
    if (!code && opts_origin(o, "eval-iters") == FROM_DEFAULT)
        code = set_default(o, by, "full-validation", "true", e);
    return code;
}

/* transformers' Trainer divides the losses of an update by the number of its learnt tokens. */
static int set_objective(struct opts *o, const char *by, struct err *e)
{
    return set_default(o, by, "calculate-per-token-loss", "true", e);
}

int rules_apply(struct opts *o, struct err *e)
{
    const struct train_options *v = o->values;
    if (o->verb != VERB_RUN && o->verb != VERB_PLAN)
        return 0;
    int code = apply_recipe(o, v->recipe, e);
    bool epochs = v->course.epochs > 0;
    if (!code && epochs)
        code = epochs_set(o, e);
    if (!code && (epochs || v->course.rules == LR_HF))
        code = set_objective(o, epochs ? "--num-train-epochs" : "--lr-rules hf", e);
    return code;
}
