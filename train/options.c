/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options.h"

#include "base/program.h"

#define RUN (1u << VERB_RUN)
#define EVAL (1u << VERB_EVAL)
#define GENERATE (1u << VERB_GENERATE)
#define PLAN (1u << VERB_PLAN)
#define TRAINS (RUN | PLAN)
#define DATA (RUN | EVAL)

#define AT(member) .offset = offsetof(struct train_options, member)

static const struct opt rows[] = {
    SPEC_FLAG_ROWS(struct train_options, model, TRAINS),
    TOK_FLAG_ROWS(struct train_options, tokenizer, RUN | PLAN | GENERATE),
    TOK_FLAG_VOCAB_SIZE_ROW(struct train_options, tokenizer, RUN | PLAN | GENERATE),

    DATA_FLAG_ROWS(struct train_options, data, DATA | PLAN),
    OPT_ROW(.name = "split", .type = OPT_TEXT, AT(split), .def = "969, 30, 1", .meta = "A,B,C",
            .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .needs =
                "!train-data-path; !valid-data-path; !test-data-path; !per-split-data-args-path",
            .help = "shares of the data for training, validation and test"),
    OPT_ROW(.name = "seq-length", .type = OPT_INT, AT(seq_length), .max = 1e7, .meta = "N",
            .group = "data", .verbs = RUN | PLAN | EVAL, .basic = true,
            .help = "tokens of a sequence (the model's positions)"),
    OPT_ROW(.name = "micro-batch-size", .type = OPT_INT, AT(micro_batch), .def = "1", .min = 1,
            .max = 1e6, .meta = "N", .group = "data", .verbs = RUN | PLAN | EVAL, .basic = true,
            .help = "sequences that go through the model at once"),
    OPT_ROW(.name = "global-batch-size", .type = OPT_INT, AT(global_batch), .max = 1e8, .meta = "N",
            .group = "data", .verbs = RUN | PLAN | EVAL, .basic = true,
            .help = "sequences of a step (the micro-batch)"),
    OPT_ROW(.name = "no-index-cache", .type = OPT_SWITCH, AT(no_index_cache), .group = "data",
            .verbs = DATA | PLAN, .idle = PLAN, .help = "leave no index maps behind"),
    OPT_ROW(.name = "fim-rate", .type = OPT_REAL, AT(fim_rate), .def = "0", .max = 1, .meta = "X",
            .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .help = "share of documents told as prefix, suffix, middle (fill in the middle)"),
    OPT_ROW(.name = "fim-spm-rate", .type = OPT_REAL, AT(fim_spm_rate), .def = "0.5", .max = 1,
            .meta = "X", .group = "data", .verbs = DATA | PLAN, .idle = PLAN, .needs = "fim-rate",
            .help = "share of these that begin with the suffix"),
    OPT_ROW(.name = "fim-prefix-token", .type = OPT_TEXT, AT(fim_prefix), .def = "<fim_prefix>",
            .meta = "PIECE", .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .needs = "fim-rate", .help = "piece before a prefix"),
    OPT_ROW(.name = "fim-middle-token", .type = OPT_TEXT, AT(fim_middle), .def = "<fim_middle>",
            .meta = "PIECE", .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .needs = "fim-rate", .help = "piece before a middle"),
    OPT_ROW(.name = "fim-suffix-token", .type = OPT_TEXT, AT(fim_suffix), .def = "<fim_suffix>",
            .meta = "PIECE", .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .needs = "fim-rate", .help = "piece before a suffix"),
    OPT_ROW(.name = "eod-mask-loss", .type = OPT_SWITCH, AT(eod_mask_loss), .group = "data",
            .verbs = DATA | PLAN, .idle = PLAN,
            .help = "no loss for what is told from an end of document"),
    OPT_ROW(.name = "reset-position-ids", .type = OPT_SWITCH, AT(reset_position_ids),
            .group = "data", .verbs = DATA | PLAN, .idle = PLAN,
            .help = "positions begin anew behind each end of document"),
    OPT_ROW(.name = "reset-attention-mask", .type = OPT_SWITCH, AT(reset_attention_mask),
            .group = "data", .verbs = DATA | PLAN,
            .help = "documents do not see those before them in a sequence"),

    OPT_ROW(.name = "train-iters", .type = OPT_INT, AT(train_iters), .min = 1, .max = 1e12,
            .meta = "N", .group = "training", .verbs = TRAINS, .basic = true,
            .help = "steps to train"),
    OPT_ROW(.name = "train-samples", .type = OPT_INT, AT(train_samples), .min = 1, .max = 1e15,
            .meta = "N", .group = "training", .verbs = TRAINS,
            .help = "sequences to train, instead of --train-iters"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(seed), .def = "1234", .max = 4294967295.0,
            .meta = "N", .group = "training", .verbs = RUN | PLAN | EVAL | GENERATE, .idle = PLAN,
            .help = "of weights, data order, dropout and sampling"),
    OPT_ROW(.name = "optimizer", .type = OPT_CHOICE, AT(optimizer), .def = "adam", .meta = "adam",
            .group = "training", .verbs = TRAINS, .idle = PLAN, .help = "optimizer: AdamW"),
    OPT_ROW(.name = "lr", .type = OPT_REAL, AT(lr), .max = 1e6, .meta = "X", .group = "training",
            .verbs = TRAINS, .basic = true, .idle = PLAN, .help = "highest learning rate"),
    OPT_ROW(.name = "min-lr", .type = OPT_REAL, AT(min_lr), .def = "0", .max = 1e6, .meta = "X",
            .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "lowest learning rate of the decay"),
    OPT_ROW(.name = "lr-decay-style", .type = OPT_CHOICE, AT(lr_style), .def = "linear",
            .meta = "linear|cosine|constant|inverse-square-root", .group = "training",
            .verbs = TRAINS, .idle = PLAN, .help = "how the learning rate falls"),
    OPT_ROW(.name = "lr-decay-iters", .type = OPT_INT, AT(decay_iters), .max = 1e12, .meta = "N",
            .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "steps of the decay (--train-iters)"),
    OPT_ROW(.name = "lr-decay-samples", .type = OPT_INT, AT(decay_samples), .max = 1e15,
            .meta = "N", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "sequences of the decay (--train-samples)"),
    OPT_ROW(.name = "lr-warmup-iters", .type = OPT_INT, AT(warmup_iters), .def = "0", .max = 1e12,
            .meta = "N", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "steps over which the learning rate rises"),
    OPT_ROW(.name = "lr-warmup-samples", .type = OPT_INT, AT(warmup_samples), .def = "0",
            .max = 1e15, .meta = "N", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "sequences over which the learning rate rises"),
    OPT_ROW(.name = "lr-warmup-fraction", .type = OPT_REAL, AT(warmup_fraction), .max = 1,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "share of the decay over which the learning rate rises"),
    OPT_ROW(.name = "lr-warmup-init", .type = OPT_REAL, AT(warmup_init), .def = "0", .max = 1e6,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .needs = "lr-warmup-iters, lr-warmup-samples, lr-warmup-fraction",
            .help = "learning rate at the start of the rise"),
    OPT_ROW(.name = "weight-decay", .type = OPT_REAL, AT(weight_decay), .def = "0.01", .max = 1e3,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "decay of matrices; vectors have none"),
    OPT_ROW(.name = "clip-grad", .type = OPT_REAL, AT(clip_grad), .def = "1.0", .max = 1e9,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "largest norm of all gradients; 0: no limit"),
    OPT_ROW(.name = "adam-beta1", .type = OPT_REAL, AT(beta1), .def = "0.9", .max = 1, .meta = "X",
            .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "decay of the first moment"),
    OPT_ROW(.name = "adam-beta2", .type = OPT_REAL, AT(beta2), .def = "0.999", .max = 1,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "decay of the second moment"),
    OPT_ROW(.name = "adam-eps", .type = OPT_REAL, AT(adam_eps), .def = "1e-8", .max = 1,
            .meta = "X", .group = "training", .verbs = TRAINS, .idle = PLAN,
            .help = "added to the root of the second moment"),

    OPT_ROW(.name = "save", .type = OPT_TEXT, AT(save), .meta = "DIR", .group = "checkpoints",
            .verbs = RUN | PLAN, .idle = PLAN, .basic = true,
            .brief = "folder of the run; resumes what is there",
            .help = "folder that takes the checkpoints; a run that is there is resumed"),
    OPT_ROW(.name = "no-save", .type = OPT_SWITCH, AT(no_save), .group = "checkpoints",
            .verbs = RUN | PLAN, .idle = PLAN,
            .help = "do not warn that without --save the model is not kept"),
    OPT_ROW(.name = "load", .type = OPT_TEXT, AT(load), .meta = "DIR", .group = "checkpoints",
            .verbs = RUN | EVAL | GENERATE | PLAN, .idle = PLAN, .basic = true,
            .brief = "run, or checkpoint of it, to start from",
            .help = "folder that was a run's --save, or one checkpoint of it (RUN/iter_0000100), "
                    "to start from; checkpoints in --save come first"),
    OPT_ROW(.name = "ckpt-step", .type = OPT_INT, AT(ckpt_step), .max = 1e12, .meta = "N",
            .group = "checkpoints", .verbs = RUN | EVAL | GENERATE | PLAN, .idle = PLAN,
            .alias = "iteration", .brief = "step of the checkpoint (the newest)",
            .help = "step of the checkpoint to load (the newest); train run keeps what --save "
                    "holds of later steps in SAVE/replaced_after_N"),
    OPT_ROW(.name = "save-interval", .type = OPT_INT, AT(save_interval), .max = 1e12, .meta = "N",
            .group = "checkpoints", .verbs = RUN | PLAN, .idle = PLAN, .basic = true,
            .help = "steps between checkpoints (only at the end)"),
    OPT_ROW(.name = "keep-checkpoints", .type = OPT_INT, AT(keep), .max = 1e6, .meta = "N",
            .group = "checkpoints", .verbs = RUN | PLAN, .idle = PLAN, .needs = "save",
            .help = "newest checkpoints that stay (all)"),
    OPT_ROW(.name = "finetune", .type = OPT_SWITCH, AT(finetune), .group = "checkpoints",
            .verbs = RUN | PLAN, .idle = PLAN,
            .help = "take weights only from --load, and start at step 0"),
    OPT_ROW(.name = "exit-on-missing-checkpoint", .type = OPT_SWITCH, AT(exit_on_missing),
            .group = "checkpoints", .verbs = RUN | PLAN, .idle = PLAN, .needs = "load",
            .help = "fail where --load is the folder of --save and has no checkpoint yet"),

    OPT_ROW(.name = "eval-interval", .type = OPT_INT, AT(eval_interval), .def = "1000", .min = 1,
            .max = 1e12, .meta = "N", .group = "log", .verbs = RUN | PLAN, .idle = PLAN,
            .basic = true, .help = "steps between evaluations"),
    OPT_ROW(.name = "eval-iters", .type = OPT_INT, AT(eval_iters), .def = "100", .max = 1e9,
            .meta = "N", .group = "log", .verbs = DATA | PLAN, .idle = PLAN, .basic = true,
            .help = "batches of an evaluation; 0: none"),
    OPT_ROW(.name = "full-validation", .type = OPT_SWITCH, AT(full_validation), .group = "log",
            .verbs = RUN | PLAN, .idle = PLAN,
            .help = "each evaluation takes all of the validation share once, whatever --eval-iters "
                    "says"),
    OPT_ROW(.name = "log-interval", .type = OPT_INT, AT(log_interval), .def = "100", .min = 1,
            .max = 1e12, .meta = "N", .group = "log", .verbs = RUN | PLAN, .idle = PLAN,
            .basic = true, .help = "steps between log lines"),
    OPT_ROW(.name = "log-throughput", .type = OPT_SWITCH, AT(log_throughput), .group = "log",
            .verbs = RUN | PLAN, .idle = PLAN, .help = "log TFLOP/s too"),
    OPT_ROW(.name = "log-format", .type = OPT_CHOICE, AT(log_format), .def = "megatron-core",
            .meta = "megatron-core|megatron-v3|megatron-deepspeed", .group = "log",
            .verbs = RUN | PLAN, .idle = PLAN,
            .help = "whose log line it is; a terminal gets a short line unless this is given"),
    OPT_ROW(.name = "metrics", .type = OPT_TEXT, AT(metrics), .meta = "FILE", .group = "log",
            .verbs = RUN | PLAN, .idle = PLAN,
            .help = "a line of JSON for every step (metrics.jsonl in --save)"),
    OPT_ROW(.name = "data-part", .type = OPT_CHOICE, AT(part), .def = "valid",
            .meta = "train|valid|test", .group = "log", .verbs = EVAL, .basic = true,
            .help = "share of --split to evaluate on"),

    OPT_ROW(.name = "prompt", .type = OPT_TEXT, AT(prompt), .meta = "TEXT", .group = "generation",
            .verbs = GENERATE, .basic = true,
            .help = "text to continue; without it, each line of standard input"),
    OPT_ROW(.name = "chat", .type = OPT_TEXT, AT(chat), .meta = "TEMPLATE", .group = "generation",
            .verbs = GENERATE,
            .help = "a prompt is a conversation (a record of JSON with messages) or what a user "
                    "says, put into "
                    "this template (chatml, llama3, alpaca, vicuna, guanaco, llm-jp); the answer "
                    "is printed"),
    OPT_ROW(.name = "max-new-tokens", .type = OPT_INT, AT(max_new), .def = "64", .min = 1,
            .max = 1e7, .meta = "N", .group = "generation", .verbs = GENERATE, .basic = true,
            .help = "tokens of a continuation"),
    OPT_ROW(.name = "num-samples", .type = OPT_INT, AT(samples), .def = "1", .min = 1, .max = 1e6,
            .meta = "N", .group = "generation", .verbs = GENERATE,
            .help = "continuations of each prompt"),
    OPT_ROW(.name = "temperature", .type = OPT_REAL, AT(temperature), .def = "1.0", .max = 1e3,
            .meta = "X", .group = "generation", .verbs = GENERATE, .basic = true,
            .help = "below 1 safer, above 1 wilder; 0: always the likeliest"),
    OPT_ROW(.name = "top-k", .type = OPT_INT, AT(top_k), .def = "0", .max = 1e9, .meta = "N",
            .group = "generation", .verbs = GENERATE, .basic = true, .needs = "!temperature=0",
            .help = "draw from the N likeliest only; 0: from all"),
    OPT_ROW(.name = "top-p", .type = OPT_REAL, AT(top_p), .def = "0", .max = 1, .meta = "X",
            .group = "generation", .verbs = GENERATE, .basic = true, .needs = "!temperature=0",
            .help = "draw from the fewest that together have this share; 0: from all"),
    OPT_ROW(.name = "ignore-eod", .type = OPT_SWITCH, AT(ignore_eod), .group = "generation",
            .verbs = GENERATE, .help = "go on behind the end of a document"),

    OPT_ROW(.name = "threads", .type = OPT_INT, AT(threads), .max = 4096, .meta = "N",
            .group = "machine", .verbs = RUN | PLAN | EVAL | GENERATE,
            .help = "threads (one for each processor); results do not depend on it"),
    OPT_ROW(.name = "kernels", .type = OPT_TEXT, AT(kernels), .meta = "LEVEL", .group = "machine",
            .verbs = RUN | PLAN | EVAL | GENERATE,
            .help = "most that may be used: ref, plain, avx2, avx512 (the best that is there)"),
    OPT_ROW(.name = "exit-interval", .type = OPT_INT, AT(exit_interval), .max = 1e12, .meta = "N",
            .group = "machine", .verbs = RUN | PLAN, .idle = PLAN,
            .help = "save and leave at every step that N divides"),
    OPT_ROW(.name = "exit-duration-in-mins", .type = OPT_REAL, AT(exit_minutes), .max = 1e9,
            .meta = "X", .group = "machine", .verbs = RUN | PLAN, .idle = PLAN,
            .help = "save and leave after X minutes"),
    {.name = NULL},
};

static const struct opt_verb verbs[] = {
    [VERB_RUN] = {"run", "", "train a model, or go on with a run that stopped",
                  "  " WEFT_PREFIX
                  "train run --preset gpt-1m --data-path data/tales_text_document \\\n"
                  "      --tokenizer tales.model --split 95,5,0 --lr 1e-3 --train-iters 500 \\\n"
                  "      --save runs/tales\n"
                  "  " WEFT_PREFIX
                  "train run --config samples/quickstart.toml --train-iters 200 \\\n"
                  "      --data-path runs/quickstart/stories_text_document --save runs/short\n",
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
        "  " WEFT_PREFIX "train run --config samples/quickstart.toml \\\n"
        "      --data-path runs/quickstart/stories_text_document --save runs/mine\n"
        "  " WEFT_PREFIX "train generate --load runs/quickstart/run --prompt 'Once upon a time'\n",
    .verb = verbs,
    .opt = rows,
    .preset = spec_presets,
};
