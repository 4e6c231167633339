/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/foreign.h"

/*
 * Options of Megatron-LM core_v0.12.3, and of Megatron-DeepSpeed and v1.1.5 as the scripts of their
 * users have them, that are not options here. What changes the mathematics, or what a run is, is
 * rejected; what would change neither has no effect. A name moves to train/options.c when its
 * option is built.
 */

#define WITHOUT(name, takes, why)                                                                  \
    {                                                                                              \
        name, FOREIGN_##takes, false, why, NULL, NULL                                              \
    }
/* Rejected, except with certain values. */
#define UNLESS(name, takes, why, values, why_then)                                                 \
    {                                                                                              \
        name, FOREIGN_##takes, true, why, values, why_then                                         \
    }
#define REJECTED(name, takes, why)                                                                 \
    {                                                                                              \
        name, FOREIGN_##takes, true, why, NULL, NULL                                               \
    }

static const char why_1[] = "one code computes every model";
static const char why_2[] = "attention has one implementation, chosen by device and shape";
static const char why_3[] = "operations are fused, or not, without a change of results";
static const char why_5[] = "as all runs are";
static const char why_6[] = "softmax, its statistics and sums are in fp32 at least";
static const char why_7[] = "gradients add up and are reduced in fp32 unless --grad-reduce-in-bf16";
static const char why_8[] = "no overlap of this kind: results would be the same";
static const char why_9[] = "buckets of gradients are laid out by the trainer";
static const char why_10[] =
    "collectives go over MPI, sockets or the GPUs' links, whichever is there";
static const char why_11[] = "the launcher's environment says it";
static const char why_12[] = "weights are made on the host, equal for every layout";
static const char why_13[] = "memory is bound once, before the first step";
static const char why_14[] = "runs are deterministic always";
static const char why_15[] = "a step is launched without captured graphs";
static const char why_16[] = "data are mapped and read ahead by one thread";
static const char why_17[] = "signals are always handled: SIGTERM and SIGUSR1 save and end the run";
static const char why_18[] =
    "a checkpoint is read whatever wrote it, and written in one format (train/ckpt/FORMAT.md)";
static const char why_19[] =
    "random numbers follow from seed and sample: there is no state to save or load";
static const char why_21[] = "the points of a step are written after it";
static const char why_22[] =
    "no network service is used: metrics.jsonl in --save can be imported there";
static const char why_23[] = "of further log lines that are not there; --verbose logs more";
static const char why_24[] =
    "of another profiler: see --timing-log-level, and metrics.jsonl for the time of each step";
static const char why_25[] = "the watchdog is always on (--distributed-timeout-minutes)";
static const char why_26[] =
    "a norm that is not finite skips the step, and fifty in a row end the run";
static const char why_27[] = "of inference alone: train generate has its own";
static const char why_28[] = "of BERT and T5 alone: a model here is a decoder";
static const char why_29[] = "of vision models alone";
static const char why_30[] = "of retrieval models alone";
static const char why_31[] = "fp8 is not computed in, so nothing reads it";
static const char why_32[] = "only with --deepspeed-activation-checkpointing's engine, which is "
                             "not here: see --recompute-granularity";
static const char why_33[] =
    "of its mixture-of-experts, state-space or latent-attention models alone";
static const char why_34[] = "of a way of saving that is not here";
static const char why_35[] = "of an optimizer on the host, which is not here";
static const char why_36[] = "runs are in fp32, bf16 or fp16, with sums in fp32";
static const char why_37[] = "attention scores are not scaled by the layer's number";
static const char why_39[] = "a shape of the learning rate that is not there yet";
static const char why_41[] = "the batch has one size in a run";
static const char why_42[] =
    "an old name of --recompute-granularity full --recompute-method, --recompute-num-layers";
static const char why_43[] = "not there yet";
static const char why_45[] = "another code of the same models: remove it";
static const char why_46[] =
    "a sharding of another library: --use-distributed-optimizer, --zero-stage";
static const char why_47[] = "an optimizer on the host is not there";
static const char why_48[] = "train/convert: checkpoints are converted by convert";
static const char why_49[] = "a model here is a decoder";
static const char why_50[] = "a part of a model that is not there";
static const char why_51[] = "mixtures of experts of this kind are not there";
static const char why_52[] = "samples come in the order of one shuffle of all epochs";
static const char why_53[] = "ids beyond the tokenizer's file: tok extend adds them there";
static const char why_54[] = "the length of a sequence does not change in a run";
static const char why_56[] = "tokens reach their experts in one way";
static const char why_57[] = "the old name of --deepspeed, --deepspeed_config";
static const char why_55[] = "all pipeline stages have one tensor-parallel size";

const struct opt_foreign train_foreign[] = {
    WITHOUT("use-mcore-models", SWITCH, why_1),
    WITHOUT("transformer-impl", VALUE, why_1),
    WITHOUT("spec", LIST, why_1),
    WITHOUT("attention-backend", VALUE, why_2),
    WITHOUT("use-flash-attn", SWITCH, why_2),
    WITHOUT("use-flash-attn-v2", SWITCH, why_2),
    WITHOUT("use-flash-attn-triton", SWITCH, why_2),
    WITHOUT("flash-decode", SWITCH, why_2),
    WITHOUT("no-masked-softmax-fusion", SWITCH, why_3),
    WITHOUT("no-bias-swiglu-fusion", SWITCH, why_3),
    WITHOUT("no-bias-dropout-fusion", SWITCH, why_3),
    WITHOUT("no-rope-fusion", SWITCH, why_3),
    WITHOUT("cross-entropy-loss-fusion", SWITCH, why_3),
    WITHOUT("cross-entropy-fusion-impl", VALUE, why_3),
    WITHOUT("no-gradient-accumulation-fusion", SWITCH, why_3),
    WITHOUT("no-persist-layer-norm", SWITCH, why_3),
    WITHOUT("no-gradient-reduce-div-fusion", SWITCH, why_3),
    WITHOUT("moe-grouped-gemm", SWITCH, why_3),
    WITHOUT("moe-use-legacy-grouped-gemm", SWITCH, why_3),
    WITHOUT("moe-permute-fusion", SWITCH, why_3),
    WITHOUT("scaled-upper-triang-masked-softmax-fusion", SWITCH, why_3),
    WITHOUT("scaled-masked-softmax-fusion", SWITCH, why_3),
    WITHOUT("bias-dropout-fusion", SWITCH, why_3),
    WITHOUT("no-query-key-layer-scaling", SWITCH, why_5),
    WITHOUT("attention-softmax-in-fp32", SWITCH, why_6),
    WITHOUT("disable-bf16-reduced-precision-matmul", SWITCH, why_6),
    WITHOUT("accumulate-allreduce-grads-in-fp32", SWITCH, why_7),
    WITHOUT("no-async-tensor-model-parallel-allreduce", SWITCH, why_8),
    WITHOUT("tp-comm-overlap", SWITCH, why_8),
    WITHOUT("tp-comm-overlap-cfg", VALUE, why_8),
    WITHOUT("disable-tp-comm-overlap-ag", SWITCH, why_8),
    WITHOUT("disable-tp-comm-overlap-rs", SWITCH, why_8),
    WITHOUT("tp-comm-overlap-rs-dgrad", SWITCH, why_8),
    WITHOUT("disable-tp-comm-bulk-dgrad", SWITCH, why_8),
    WITHOUT("disable-tp-comm-bulk-wgrad", SWITCH, why_8),
    WITHOUT("disable-tp-comm-split-ag", SWITCH, why_8),
    WITHOUT("disable-tp-comm-split-rs", SWITCH, why_8),
    WITHOUT("tp-comm-bootstrap-backend", VALUE, why_8),
    WITHOUT("no-overlap-p2p-communication", SWITCH, why_8),
    WITHOUT("overlap-p2p-communication-warmup-flush", SWITCH, why_8),
    WITHOUT("defer-embedding-wgrad-compute", SWITCH, why_8),
    WITHOUT("wgrad-deferral-limit", VALUE, why_8),
    WITHOUT("overlap-param-gather-with-optimizer-step", SWITCH, why_8),
    WITHOUT("moe-shared-expert-overlap", SWITCH, why_8),
    WITHOUT("overlap-cpu-optimizer-d2h-h2d", SWITCH, why_8),
    WITHOUT("no-align-grad-reduce", SWITCH, why_9),
    WITHOUT("no-align-param-gather", SWITCH, why_9),
    WITHOUT("ddp-num-buckets", VALUE, why_9),
    WITHOUT("ddp-pad-buckets-for-high-nccl-busbw", SWITCH, why_9),
    WITHOUT("ddp-average-in-collective", SWITCH, why_9),
    WITHOUT("zero-contigious-gradients", SWITCH, why_9),
    WITHOUT("zero-reduce-scatter", SWITCH, why_9),
    WITHOUT("zero-reduce-bucket-size", VALUE, why_9),
    WITHOUT("zero-allgather-bucket-size", VALUE, why_9),
    WITHOUT("no-contiguous-buffers-in-local-ddp", SWITCH, why_9),
    WITHOUT("DDP-impl", VALUE, why_9),
    WITHOUT("distributed-backend", VALUE, why_10),
    WITHOUT("pipeline-model-parallel-comm-backend", VALUE, why_10),
    WITHOUT("disable-gloo-process-groups", SWITCH, why_10),
    WITHOUT("nccl-communicator-config-path", VALUE, why_10),
    WITHOUT("use-ring-exchange-p2p", SWITCH, why_10),
    WITHOUT("no-scatter-gather-tensors-in-pipeline", SWITCH, why_10),
    WITHOUT("suggested-communication-unit-size", VALUE, why_10),
    WITHOUT("use-mpi", SWITCH, why_10),
    WITHOUT("lazy-mpu-init", VALUE, why_10),
    WITHOUT("moe-enable-deepep", SWITCH, why_10),
    WITHOUT("local-rank", VALUE, why_11),
    WITHOUT("use-cpu-initialization", SWITCH, why_12),
    WITHOUT("init-model-with-meta-device", SWITCH, why_12),
    WITHOUT("no-initialization", SWITCH, why_12),
    WITHOUT("empty-unused-memory-level", VALUE, why_13),
    WITHOUT("record-memory-history", SWITCH, why_13),
    WITHOUT("memory-snapshot-path", VALUE, why_13),
    WITHOUT("no-clone-scatter-output-in-embedding", SWITCH, why_13),
    WITHOUT("no-pin-cpu-grads", SWITCH, why_13),
    WITHOUT("no-pin-cpu-params", SWITCH, why_13),
    WITHOUT("manual-gc", SWITCH, why_13),
    WITHOUT("manual-gc-interval", VALUE, why_13),
    WITHOUT("no-manual-gc-eval", SWITCH, why_13),
    WITHOUT("deterministic-mode", SWITCH, why_14),
    WITHOUT("te-rng-tracker", SWITCH, why_14),
    WITHOUT("inference-rng-tracker", SWITCH, why_14),
    WITHOUT("rerun-mode", VALUE, why_14),
    WITHOUT("error-injection-rate", VALUE, why_14),
    WITHOUT("error-injection-type", VALUE, why_14),
    WITHOUT("result-rejected-tracker-filename", VALUE, why_14),
    WITHOUT("enable-cuda-graph", SWITCH, why_15),
    WITHOUT("cuda-graph-warmup-steps", VALUE, why_15),
    WITHOUT("external-cuda-graph", SWITCH, why_15),
    WITHOUT("cuda-graph-scope", VALUE, why_15),
    WITHOUT("train-sync-interval", VALUE, why_15),
    WITHOUT("num-workers", VALUE, why_16),
    WITHOUT("no-mmap-bin-files", SWITCH, why_16),
    WITHOUT("num-dataset-builder-threads", VALUE, why_16),
    WITHOUT("no-create-attention-mask-in-dataloader", SWITCH, why_16),
    WITHOUT("data-impl", VALUE, why_16),
    WITHOUT("mmap-warmup", SWITCH, why_16),
    WITHOUT("s3-cache-path", VALUE, why_16),
    UNLESS("dataloader-type", VALUE, why_52, "single", why_16),
    WITHOUT("exit-signal-handler", SWITCH, why_17),
    WITHOUT("adlr-autoresume", SWITCH, why_17),
    WITHOUT("adlr-autoresume-interval", VALUE, why_17),
    WITHOUT("ckpt-format", VALUE, why_18),
    WITHOUT("dist-ckpt-format", VALUE, why_18),
    WITHOUT("use-dist-ckpt", SWITCH, why_18),
    WITHOUT("auto-detect-ckpt-format", SWITCH, why_18),
    WITHOUT("ckpt-fully-parallel-save", SWITCH, why_18),
    WITHOUT("no-ckpt-fully-parallel-save", SWITCH, why_18),
    WITHOUT("ckpt-fully-parallel-load", SWITCH, why_18),
    WITHOUT("ckpt-assume-constant-structure", SWITCH, why_18),
    WITHOUT("dist-ckpt-strictness", VALUE, why_18),
    WITHOUT("use-persistent-ckpt-worker", SWITCH, why_18),
    WITHOUT("no-use-tokenizer-model-from-checkpoint-args", SWITCH, why_18),
    WITHOUT("universal-checkpoint", SWITCH, why_18),
    WITHOUT("no-pipeline-parallel", SWITCH, why_18),
    WITHOUT("no-save-rng", SWITCH, why_19),
    WITHOUT("no-load-rng", SWITCH, why_19),
    WITHOUT("tensorboard-queue-size", VALUE, why_21),
    WITHOUT("log-learning-rate-to-tensorboard", SWITCH, "that curve is always there"),
    WITHOUT("log-optimizer-states-to-tensorboard", SWITCH,
            "norms of the optimizer's state are not computed"),
    WITHOUT("wandb-save-dir", VALUE, why_22),
    WITHOUT("wandb-tag", VALUE, why_22),
    WITHOUT("use-wandb", SWITCH, why_22),
    WITHOUT("abci-job-id", VALUE, why_22),
    WITHOUT("no-one-logger", SWITCH, why_22),
    WITHOUT("one-logger-project", VALUE, why_22),
    WITHOUT("one-logger-run-name", VALUE, why_22),
    WITHOUT("one-logger-async", SWITCH, why_22),
    WITHOUT("app-tag-run-name", VALUE, why_22),
    WITHOUT("app-tag-run-version", VALUE, why_22),
    WITHOUT("run-workload-inspector-server", SWITCH, why_22),
    WITHOUT("logging-level", VALUE, why_23),
    WITHOUT("log-progress", SWITCH, why_23),
    WITHOUT("log-params-norm", SWITCH, why_23),
    WITHOUT("log-num-zeros-in-grad", SWITCH, why_23),
    WITHOUT("config-logger-dir", VALUE, why_23),
    WITHOUT("moe-per-layer-logging", SWITCH, why_23),
    WITHOUT("no-barrier-with-level-1-timing", SWITCH, why_24),
    WITHOUT("log-straggler", SWITCH, why_24),
    WITHOUT("disable-straggler-on-startup", SWITCH, why_24),
    WITHOUT("straggler-ctrlr-port", VALUE, why_24),
    WITHOUT("straggler-minmax-count", VALUE, why_24),
    WITHOUT("profile", SWITCH, why_24),
    WITHOUT("profile-step-start", VALUE, why_24),
    WITHOUT("profile-step-end", VALUE, why_24),
    WITHOUT("profile-ranks", LIST, why_24),
    WITHOUT("use-pytorch-profiler", SWITCH, why_24),
    WITHOUT("enable-ft-package", SWITCH, why_25),
    WITHOUT("calc-ft-timeouts", SWITCH, why_25),
    WITHOUT("no-check-for-nan-in-loss-and-grad", SWITCH, why_26),
    WITHOUT("check-for-spiky-loss", SWITCH, why_26),
    WITHOUT("check-for-large-grads", SWITCH, why_26),
    WITHOUT("inference-batch-times-seqlen-threshold", VALUE, why_27),
    WITHOUT("max-tokens-to-oom", VALUE, why_27),
    WITHOUT("inference-max-requests", VALUE, why_27),
    WITHOUT("inference-max-seq-length", VALUE, why_27),
    WITHOUT("inference-dynamic-batching", SWITCH, why_27),
    WITHOUT("inference-dynamic-batching-buffer-size-gb", VALUE, why_27),
    WITHOUT("inference-dynamic-batching-buffer-guaranteed-fraction", VALUE, why_27),
    WITHOUT("inference-dynamic-batching-buffer-overflow-factor", VALUE, why_27),
    WITHOUT("inference-dynamic-batching-max-requests-override", VALUE, why_27),
    WITHOUT("inference-dynamic-batching-max-tokens-override", VALUE, why_27),
    WITHOUT("bert-no-binary-head", SWITCH, why_28),
    WITHOUT("bert-embedder-type", VALUE, why_28),
    WITHOUT("mask-prob", VALUE, why_28),
    WITHOUT("short-seq-prob", VALUE, why_28),
    UNLESS("vocab-extra-ids", VALUE, why_53, "0", "that is the default"),
    WITHOUT("relative-attention-num-buckets", VALUE, why_28),
    WITHOUT("relative-attention-max-distance", VALUE, why_28),
    WITHOUT("sample-rate", VALUE, why_28),
    WITHOUT("onnx-safe", VALUE, why_28),
    WITHOUT("num-classes", VALUE, why_29),
    WITHOUT("img-h", VALUE, why_29),
    WITHOUT("img-w", VALUE, why_29),
    WITHOUT("num-channels", VALUE, why_29),
    WITHOUT("patch-dim", VALUE, why_29),
    WITHOUT("classes-fraction", VALUE, why_29),
    WITHOUT("data-per-class-fraction", VALUE, why_29),
    WITHOUT("no-data-sharding", SWITCH, why_29),
    WITHOUT("head-lr-mult", VALUE, why_29),
    WITHOUT("vision-pretraining-type", VALUE, why_29),
    WITHOUT("vision-backbone-type", VALUE, why_29),
    WITHOUT("swin-backbone-type", VALUE, why_29),
    WITHOUT("mask-type", VALUE, why_29),
    WITHOUT("mask-factor", VALUE, why_29),
    WITHOUT("iter-per-epoch", VALUE, why_29),
    WITHOUT("dino-local-img-size", VALUE, why_29),
    WITHOUT("dino-local-crops-number", VALUE, why_29),
    WITHOUT("dino-head-hidden-size", VALUE, why_29),
    WITHOUT("dino-bottleneck-size", VALUE, why_29),
    WITHOUT("dino-freeze-last-layer", VALUE, why_29),
    WITHOUT("dino-norm-last-layer", SWITCH, why_29),
    WITHOUT("dino-warmup-teacher-temp", VALUE, why_29),
    WITHOUT("dino-teacher-temp", VALUE, why_29),
    WITHOUT("dino-warmup-teacher-temp-epochs", VALUE, why_29),
    WITHOUT("retro-project-dir", VALUE, why_30),
    WITHOUT("retro-cyclic-train-iters", VALUE, why_30),
    WITHOUT("retro-encoder-layers", VALUE, why_30),
    WITHOUT("retro-encoder-hidden-dropout", VALUE, why_30),
    WITHOUT("retro-encoder-attention-dropout", VALUE, why_30),
    WITHOUT("retro-num-neighbors", VALUE, why_30),
    WITHOUT("retro-num-retrieved-chunks", VALUE, why_30),
    WITHOUT("retro-attention-gate", VALUE, why_30),
    WITHOUT("retro-no-verify-neighbor-count", SWITCH, why_30),
    WITHOUT("retriever-seq-length", VALUE, why_30),
    WITHOUT("ict-head-size", VALUE, why_30),
    WITHOUT("biencoder-projection-dim", VALUE, why_30),
    WITHOUT("ict-load", VALUE, why_30),
    WITHOUT("bert-load", VALUE, why_30),
    WITHOUT("titles-data-path", VALUE, why_30),
    WITHOUT("query-in-block-prob", VALUE, why_30),
    WITHOUT("evidence-data-path", VALUE, why_30),
    WITHOUT("retriever-report-topk-accuracies", LIST, why_30),
    WITHOUT("retriever-score-scaling", SWITCH, why_30),
    WITHOUT("block-data-path", VALUE, why_30),
    WITHOUT("embedding-path", VALUE, why_30),
    WITHOUT("indexer-batch-size", VALUE, why_30),
    WITHOUT("indexer-log-interval", VALUE, why_30),
    WITHOUT("fp8-recipe", VALUE, why_31),
    WITHOUT("fp8-margin", VALUE, why_31),
    WITHOUT("fp8-interval", VALUE, why_31),
    WITHOUT("fp8-amax-history-len", VALUE, why_31),
    WITHOUT("fp8-amax-compute-algo", VALUE, why_31),
    WITHOUT("no-fp8-wgrad", SWITCH, why_31),
    WITHOUT("fp8-param-gather", SWITCH, why_31),
    WITHOUT("first-last-layers-bf16", SWITCH, why_31),
    WITHOUT("num-layers-at-start-in-bf16", VALUE, why_31),
    WITHOUT("num-layers-at-end-in-bf16", VALUE, why_31),
    WITHOUT("keep-fp8-transpose-cache-when-using-custom-fsdp", SWITCH, why_31),
    WITHOUT("synchronize-each-layer", SWITCH, why_32),
    WITHOUT("profile-backward", SWITCH, why_32),
    WITHOUT("contigious-checkpointing", SWITCH, why_32),
    WITHOUT("checkpoint-in-cpu", SWITCH, why_32),
    WITHOUT("mtp-loss-scaling-factor", VALUE, why_33),
    WITHOUT("mamba-state-dim", VALUE, why_33),
    WITHOUT("mamba-head-dim", VALUE, why_33),
    WITHOUT("mamba-num-groups", VALUE, why_33),
    WITHOUT("hybrid-attention-ratio", VALUE, why_33),
    WITHOUT("hybrid-mlp-ratio", VALUE, why_33),
    WITHOUT("moe-router-bias-update-rate", VALUE, why_33),
    WITHOUT("moe-token-drop-policy", VALUE, why_33),
    WITHOUT("qk-head-dim", VALUE, why_33),
    WITHOUT("qk-pos-emb-head-dim", VALUE, why_33),
    WITHOUT("v-head-dim", VALUE, why_33),
    WITHOUT("rotary-scaling-factor", VALUE, why_33),
    WITHOUT("mscale", VALUE, why_33),
    WITHOUT("mscale-all-dim", VALUE, why_33),
    WITHOUT("kv-lora-rank", VALUE, why_33),
    WITHOUT("q-lora-rank", VALUE, why_33),
    WITHOUT("non-persistent-ckpt-type", VALUE, why_34),
    WITHOUT("non-persistent-global-ckpt-dir", VALUE, why_34),
    WITHOUT("non-persistent-local-ckpt-dir", VALUE, why_34),
    WITHOUT("non-persistent-local-ckpt-algo", VALUE, why_34),
    WITHOUT("replication-jump", VALUE, why_34),
    WITHOUT("replication-factor", VALUE, why_34),
    WITHOUT("optimizer-offload-fraction", VALUE, why_35),
    WITHOUT("use-torch-optimizer-for-cpu-offload", SWITCH, why_35),
    REJECTED("fp8-format", VALUE, why_36),
    REJECTED("fp16-lm-cross-entropy", SWITCH, why_36),
    REJECTED("fp32-residual-connection", SWITCH, why_36),
    REJECTED("apply-query-key-layer-scaling", SWITCH, why_37),
    REJECTED("decoupled-lr", VALUE, why_39),
    REJECTED("decoupled-min-lr", VALUE, why_39),
    REJECTED("decrease-batch-size-if-needed", SWITCH, why_41),
    REJECTED("iterations-to-skip", LIST, why_41),
    REJECTED("activations-checkpoint-method", VALUE, why_42),
    REJECTED("activations-checkpoint-num-layers", VALUE, why_42),
    REJECTED("num-unique-layers", VALUE, why_50),
    REJECTED("param-sharing-style", VALUE, why_50),
    WITHOUT("deepscale", SWITCH, why_57),
    WITHOUT("deepscale_config", VALUE, why_57),
    WITHOUT("deepspeed_mpi", SWITCH, why_10),
    WITHOUT("fp32-allreduce", SWITCH, why_7),
    REJECTED("recompute-modules", LIST, why_43),
    REJECTED("use-tp-pp-dp-mapping", SWITCH, why_43),
    REJECTED("data-parallel-random-init", SWITCH, why_43),
    REJECTED("init-method-xavier-uniform", SWITCH, why_43),
    REJECTED("skip-train", SWITCH, why_43),
    REJECTED("test-mode", SWITCH, why_43),
    REJECTED("pretrained-checkpoint", VALUE, why_43),
    REJECTED("use-mp-args-from-checkpoint-args", SWITCH, why_43),
    REJECTED("non-persistent-save-interval", VALUE, why_43),
    REJECTED("hierarchical-context-parallel-sizes", LIST, why_43),
    REJECTED("microbatch-group-size-per-virtual-pipeline-stage", VALUE, why_43),
    REJECTED("cpu-optimizer", SWITCH, why_47),
    REJECTED("cpu_torch_adam", SWITCH, why_47),
    REJECTED("curriculum-learning-legacy", SWITCH, why_54),
    REJECTED("imbalance-tp-groups", LIST, why_55),
    REJECTED("use-legacy-models", SWITCH, why_45),
    REJECTED("yaml-cfg", VALUE, why_45),
    REJECTED("use-custom-fsdp", SWITCH, why_46),
    REJECTED("use-torch-fsdp2", SWITCH, why_46),
    REJECTED("data-parallel-sharding-strategy", VALUE, why_46),
    REJECTED("replication", SWITCH, why_46),
    REJECTED("optimizer-cpu-offload", SWITCH, why_47),
    REJECTED("ckpt-convert-format", VALUE, why_48),
    REJECTED("ckpt-convert-save", VALUE, why_48),
    REJECTED("ckpt-convert-update-legacy-dist-opt-format", SWITCH, why_48),
    REJECTED("encoder-num-layers", VALUE, why_49),
    REJECTED("decoder-num-layers", VALUE, why_49),
    REJECTED("encoder-seq-length", VALUE, why_49),
    REJECTED("decoder-seq-length", VALUE, why_49),
    REJECTED("encoder-tensor-model-parallel-size", VALUE, why_49),
    REJECTED("encoder-pipeline-model-parallel-size", VALUE, why_49),
    REJECTED("pipeline-model-parallel-split-rank", VALUE, why_49),
    REJECTED("output-bert-embeddings", SWITCH, why_49),
    REJECTED("retro-add-retriever", SWITCH, why_49),
    REJECTED("biencoder-shared-query-context-model", SWITCH, why_49),
    REJECTED("use-one-sent-docs", SWITCH, why_49),
    REJECTED("vision-pretraining", SWITCH, why_49),
    REJECTED("rotary-interleaved", SWITCH, why_50),
    REJECTED("mrope-section", LIST, why_50),
    REJECTED("apply-residual-connection-post-layernorm", SWITCH, why_50),
    REJECTED("openai-gelu", SWITCH, why_50),
    REJECTED("squared-relu", SWITCH, why_50),
    REJECTED("multi-latent-attention", SWITCH, why_50),
    REJECTED("mtp-num-layers", VALUE, why_50),
    REJECTED("heterogeneous-layers-config-path", VALUE, why_50),
    REJECTED("heterogeneous-layers-config-encoded-json", VALUE, why_50),
    REJECTED("hybrid-override-pattern", VALUE, why_50),
    REJECTED("is-hybrid-model", SWITCH, why_50),
    REJECTED("moe-layer-recompute", SWITCH, why_51),
    REJECTED("moe-extended-tp", SWITCH, why_51),
    REJECTED("moe-use-upcycling", SWITCH, why_51),
    WITHOUT("moe-router-dtype", VALUE, why_6),
    UNLESS("moe-router-score-function", VALUE, why_51, "softmax", "that is the default"),
    REJECTED("moe-router-num-groups", VALUE, why_51),
    REJECTED("moe-router-group-topk", VALUE, why_51),
    REJECTED("moe-router-topk-scaling-factor", VALUE, why_51),
    REJECTED("moe-router-enable-expert-bias", SWITCH, why_51),
    REJECTED("moe-input-jitter-eps", VALUE, why_51),
    WITHOUT("moe-token-dispatcher-type", VALUE, why_56),
    REJECTED("moe-expert-capacity-factor", VALUE, why_51),
    REJECTED("moe-pad-expert-input-to-capacity", SWITCH, why_51),
    {NULL, FOREIGN_SWITCH, false, NULL, NULL, NULL},
};
