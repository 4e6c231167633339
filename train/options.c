/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options.h"

#include "base/program.h"

#define RUN (1u << VERB_RUN)
#define EVAL (1u << VERB_EVAL)
#define GENERATE (1u << VERB_GENERATE)
#define PLAN (1u << VERB_PLAN)
#define TRAINS (RUN | PLAN)
#define DATA (RUN | EVAL)

#define ROW(...) OPT_ROW(struct train_options, __VA_ARGS__)

static const struct opt rows[] = {
    SPEC_FLAG_ROWS(struct train_options, model, TRAINS),
    TOK_FLAG_ROWS(struct train_options, tokenizer, RUN | PLAN | GENERATE),
    TOK_FLAG_VOCAB_SIZE_ROW(struct train_options, tokenizer, RUN | PLAN | GENERATE),

    DATA_FLAG_ROWS(struct train_options, data, DATA),
    ROW("split", OPT_TEXT, split, "969, 30, 1", "A,B,C", "data", DATA, 0, 0, false,
        "shares of the data for training, validation and test"),
    ROW("seq-length", OPT_INT, seq_length, NULL, "N", "data", RUN | PLAN | EVAL, 0, 1e7, true,
        "tokens of a sequence (the model's positions)"),
    ROW("micro-batch-size", OPT_INT, micro_batch, "1", "N", "data", RUN | PLAN | EVAL, 1, 1e6, true,
        "sequences that go through the model at once"),
    ROW("global-batch-size", OPT_INT, global_batch, NULL, "N", "data", RUN | PLAN | EVAL, 0, 1e8,
        true, "sequences of a step (the micro-batch)"),
    ROW("no-index-cache", OPT_SWITCH, no_index_cache, NULL, NULL, "data", DATA, 0, 0, false,
        "leave no index maps behind"),
    ROW("fim-rate", OPT_REAL, fim_rate, "0", "X", "data", DATA, 0, 1, false,
        "share of documents told as prefix, suffix, middle (fill in the middle)"),
    ROW("fim-spm-rate", OPT_REAL, fim_spm_rate, "0.5", "X", "data", DATA, 0, 1, false,
        "share of these that begin with the suffix"),
    ROW("fim-prefix-token", OPT_TEXT, fim_prefix, "<fim_prefix>", "PIECE", "data", DATA, 0, 0,
        false, "piece before a prefix"),
    ROW("fim-middle-token", OPT_TEXT, fim_middle, "<fim_middle>", "PIECE", "data", DATA, 0, 0,
        false, "piece before a middle"),
    ROW("fim-suffix-token", OPT_TEXT, fim_suffix, "<fim_suffix>", "PIECE", "data", DATA, 0, 0,
        false, "piece before a suffix"),
    ROW("eod-mask-loss", OPT_SWITCH, eod_mask_loss, NULL, NULL, "data", DATA, 0, 0, false,
        "no loss for what is told from an end of document"),
    ROW("reset-position-ids", OPT_SWITCH, reset_position_ids, NULL, NULL, "data", DATA, 0, 0, false,
        "positions begin anew behind each end of document"),
    ROW("reset-attention-mask", OPT_SWITCH, reset_attention_mask, NULL, NULL, "data", DATA, 0, 0,
        false, "documents do not see those before them in a sequence"),

    ROW("train-iters", OPT_INT, train_iters, NULL, "N", "training", TRAINS, 0, 1e12, true,
        "steps to train"),
    ROW("train-samples", OPT_INT, train_samples, NULL, "N", "training", TRAINS, 0, 1e15, false,
        "sequences to train, instead of --train-iters"),
    ROW("seed", OPT_INT, seed, "1234", "N", "training", RUN | PLAN | EVAL | GENERATE, 0,
        4294967295.0, false, "of weights, data order, dropout and sampling"),
    ROW("optimizer", OPT_CHOICE, optimizer, "adam", "adam", "training", TRAINS, 0, 0, false,
        "optimizer: AdamW"),
    ROW("lr", OPT_REAL, lr, NULL, "X", "training", TRAINS, 0, 1e6, true, "highest learning rate"),
    ROW("min-lr", OPT_REAL, min_lr, "0", "X", "training", TRAINS, 0, 1e6, false,
        "lowest learning rate of the decay"),
    ROW("lr-decay-style", OPT_CHOICE, lr_style, "linear",
        "linear|cosine|constant|inverse-square-root", "training", TRAINS, 0, 0, false,
        "how the learning rate falls"),
    ROW("lr-decay-iters", OPT_INT, decay_iters, NULL, "N", "training", TRAINS, 0, 1e12, false,
        "steps of the decay (--train-iters)"),
    ROW("lr-decay-samples", OPT_INT, decay_samples, NULL, "N", "training", TRAINS, 0, 1e15, false,
        "sequences of the decay (--train-samples)"),
    ROW("lr-warmup-iters", OPT_INT, warmup_iters, "0", "N", "training", TRAINS, 0, 1e12, false,
        "steps over which the learning rate rises"),
    ROW("lr-warmup-samples", OPT_INT, warmup_samples, "0", "N", "training", TRAINS, 0, 1e15, false,
        "sequences over which the learning rate rises"),
    ROW("lr-warmup-fraction", OPT_REAL, warmup_fraction, NULL, "X", "training", TRAINS, 0, 1, false,
        "share of the decay over which the learning rate rises"),
    ROW("lr-warmup-init", OPT_REAL, warmup_init, "0", "X", "training", TRAINS, 0, 1e6, false,
        "learning rate at the start of the rise"),
    ROW("weight-decay", OPT_REAL, weight_decay, "0.01", "X", "training", TRAINS, 0, 1e3, false,
        "decay of matrices; vectors have none"),
    ROW("clip-grad", OPT_REAL, clip_grad, "1.0", "X", "training", TRAINS, 0, 1e9, false,
        "largest norm of all gradients; 0: no limit"),
    ROW("adam-beta1", OPT_REAL, beta1, "0.9", "X", "training", TRAINS, 0, 1, false,
        "decay of the first moment"),
    ROW("adam-beta2", OPT_REAL, beta2, "0.999", "X", "training", TRAINS, 0, 1, false,
        "decay of the second moment"),
    ROW("adam-eps", OPT_REAL, adam_eps, "1e-8", "X", "training", TRAINS, 0, 1, false,
        "added to the root of the second moment"),

    ROW("save", OPT_TEXT, save, NULL, "DIR", "checkpoints", RUN, 0, 0, true,
        "folder of the run; one that is there goes on"),
    ROW("load", OPT_TEXT, load, NULL, "DIR", "checkpoints", RUN | EVAL | GENERATE, 0, 0, true,
        "checkpoints to start from"),
    ROW("iteration", OPT_INT, iteration, NULL, "N", "checkpoints", EVAL | GENERATE, 0, 1e12, false,
        "checkpoint to load (the newest)"),
    ROW("save-interval", OPT_INT, save_interval, NULL, "N", "checkpoints", RUN, 0, 1e12, true,
        "steps between checkpoints (only at the end)"),
    ROW("keep-checkpoints", OPT_INT, keep, NULL, "N", "checkpoints", RUN, 0, 1e6, false,
        "newest checkpoints that stay (all)"),
    ROW("finetune", OPT_SWITCH, finetune, NULL, NULL, "checkpoints", RUN, 0, 0, false,
        "take weights only from --load, and start at step 0"),
    ROW("exit-on-missing-checkpoint", OPT_SWITCH, exit_on_missing, NULL, NULL, "checkpoints", RUN,
        0, 0, false, "do not start from nothing when --load has no checkpoint"),

    ROW("eval-interval", OPT_INT, eval_interval, "1000", "N", "log", RUN, 1, 1e12, true,
        "steps between evaluations"),
    ROW("eval-iters", OPT_INT, eval_iters, "100", "N", "log", DATA, 0, 1e9, true,
        "batches of an evaluation; 0: none"),
    ROW("full-validation", OPT_SWITCH, full_validation, NULL, NULL, "log", RUN, 0, 0, false,
        "each evaluation takes all of the validation share once, whatever --eval-iters says"),
    ROW("log-interval", OPT_INT, log_interval, "100", "N", "log", RUN, 1, 1e12, true,
        "steps between log lines"),
    ROW("log-throughput", OPT_SWITCH, log_throughput, NULL, NULL, "log", RUN, 0, 0, false,
        "log TFLOP/s too"),
    ROW("log-format", OPT_CHOICE, log_format, "megatron-core",
        "megatron-core|megatron-v3|megatron-deepspeed", "log", RUN, 0, 0, false,
        "whose log line it is"),
    ROW("metrics", OPT_TEXT, metrics, NULL, "FILE", "log", RUN, 0, 0, false,
        "a line of JSON for every step (metrics.jsonl in --save)"),
    ROW("data-part", OPT_CHOICE, part, "valid", "train|valid|test", "log", EVAL, 0, 0, true,
        "share of --split to evaluate on"),

    ROW("prompt", OPT_TEXT, prompt, NULL, "TEXT", "generation", GENERATE, 0, 0, true,
        "text to continue; without it, each line of standard input"),
    ROW("chat", OPT_TEXT, chat, NULL, "TEMPLATE", "generation", GENERATE, 0, 0, false,
        "a prompt is a conversation (a record of JSON with messages) or what a user says, put into "
        "this template (chatml, llama3, alpaca, vicuna, guanaco, llm-jp); the answer is printed"),
    ROW("max-new-tokens", OPT_INT, max_new, "64", "N", "generation", GENERATE, 1, 1e7, true,
        "tokens of a continuation"),
    ROW("num-samples", OPT_INT, samples, "1", "N", "generation", GENERATE, 1, 1e6, false,
        "continuations of each prompt"),
    ROW("temperature", OPT_REAL, temperature, "1.0", "X", "generation", GENERATE, 0, 1e3, true,
        "below 1 safer, above 1 wilder; 0: always the likeliest"),
    ROW("top-k", OPT_INT, top_k, "0", "N", "generation", GENERATE, 0, 1e9, true,
        "draw from the N likeliest only; 0: from all"),
    ROW("top-p", OPT_REAL, top_p, "0", "X", "generation", GENERATE, 0, 1, true,
        "draw from the fewest that together have this share; 0: from all"),
    ROW("ignore-eod", OPT_SWITCH, ignore_eod, NULL, NULL, "generation", GENERATE, 0, 0, false,
        "go on behind the end of a document"),

    ROW("threads", OPT_INT, threads, NULL, "N", "machine", RUN | PLAN | EVAL | GENERATE, 0, 4096,
        false, "threads (one for each processor); results do not depend on it"),
    ROW("kernels", OPT_TEXT, kernels, NULL, "LEVEL", "machine", RUN | PLAN | EVAL | GENERATE, 0, 0,
        false, "most that may be used: ref, plain, avx2, avx512 (the best that is there)"),
    ROW("exit-interval", OPT_INT, exit_interval, NULL, "N", "machine", RUN, 0, 1e12, false,
        "save and leave at every step that N divides"),
    ROW("exit-duration-in-mins", OPT_REAL, exit_minutes, NULL, "X", "machine", RUN, 0, 1e9, false,
        "save and leave after X minutes"),
    {.name = NULL},
};

static const struct opt_verb verbs[] = {
    [VERB_RUN] = {"run", "", "train a model, or go on with a run that stopped",
                  "  " WEFT_PREFIX
                  "train run --preset gpt-1m --data-path data/tales_text_document \\\n"
                  "      --tokenizer tales.model --lr 1e-3 --train-iters 500 --save runs/tales\n"
                  "  " WEFT_PREFIX "train run --config samples/quickstart.toml --train-iters 50\n",
                  false},
    [VERB_EVAL] = {"eval", "", "mean loss of a checkpoint over data",
                   "  " WEFT_PREFIX
                   "train eval --load runs/tales --data-path data/tales_text_document\n",
                   false},
    [VERB_GENERATE] = {"generate", "", "continue texts with a trained model",
                       "  " WEFT_PREFIX
                       "train generate --load runs/tales --prompt 'Once upon a time' \\\n"
                       "      --temperature 0.8 --top-k 40\n"
                       "  " WEFT_PREFIX
                       "train generate --load runs/chat --chat chatml --prompt 'Who are you?'\n",
                       false},
    [VERB_PLAN] =
        {"plan", "", "parameters, memory and work of a run",
         "  " WEFT_PREFIX
         "train plan --preset gpt2-124m --vocab-size 50257 --tokenizer-type NullTokenizer\n",
         false},
    {.name = NULL},
};

const struct opt_table train_table = {
    .program = WEFT_PREFIX "train",
    .help = "train language models and let them write",
    .examples =
        "  " WEFT_PREFIX "train run --config samples/quickstart.toml\n"
        "  " WEFT_PREFIX "train generate --load runs/quickstart --prompt 'Once upon a time'\n",
    .verb = verbs,
    .opt = rows,
    .preset = spec_presets,
};
