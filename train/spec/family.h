/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_FAMILY_H
#define TRAIN_SPEC_FAMILY_H

/*
 * What a family is: one row (struct hf_family_row) in one file, family_*.c. The row has the keys of
 * its config.json and their reader, the names of its tensors, which models of weft it can have, and
 * the words of GGUF for it. For hf_*.c and family_*.c alone.
 */

#include "train/spec/hf_read.h"

/* ---- keys ---------------------------------------------------------------------------------- */

/* SHAPE: the reader of the family has it. NOTHING: of no effect on the model. ONLY: any other
 * value than `only`, or null, is another model. */
enum hf_effect { SHAPE, NOTHING, ONLY };

struct hf_key {
    const char *key;
    enum hf_effect effect;
    const char *only; /* true, false, null, "empty" or a number */
    const char *why;
};

#define KEY(name)                                                                                  \
    {                                                                                              \
        name, SHAPE, NULL, NULL                                                                    \
    }
#define IDLE_KEY(name)                                                                             \
    {                                                                                              \
        name, NOTHING, NULL, NULL                                                                  \
    }
#define END_OF_KEYS                                                                                \
    {                                                                                              \
        NULL, NOTHING, NULL, NULL                                                                  \
    }

/* Keys that several families have, each list ended by one without a name: all of them (hf_keys.c);
 * those with rotary positions; with the names of Llama; windows as Qwen has them; experts. */
extern const struct hf_key hf_keys_all[], hf_keys_rope[], hf_keys_llama[], hf_keys_qwen[],
    hf_keys_experts[];

/* ---- names of tensors ---------------------------------------------------------------------- */

enum hf_dim {
    D_ONE,
    D_HIDDEN,
    D_VOCAB,
    D_POSITIONS,
    D_QUERIES,
    D_KEYS,
    D_HEAD,
    D_FFN,
    D_EXPERTS,
    D_EXPERT_FFN,
    D_SHARED_FFN,
    D_COUNT
};

enum hf_lie {
    ROWS,   /* rows below each other */
    COLS,   /* transposed: [in, out], columns beside each other (GPT-2's Conv1D) */
    HEADS,  /* rows of each head in turn: q, k, v of the first, then of the next (GPT-NeoX) */
    STACK3, /* matrices of a tensor of rank 3, an expert after the other */
};

enum hf_when {
    ALWAYS,
    UNTIED,
    BIAS_QKV,
    BIAS_OUT,
    BIAS_MLP,
    QK_NORM,
    DENSE, /* a layer without experts */
    DENSE_BIAS,
    SPARSE,       /* a layer with experts */
    SPARSE_ONE,   /* and they are stored one by one */
    SPARSE_FUSED, /* and they are stored as one tensor */
    SHARED,       /* a layer with experts and a shared one */
};

/*
 * Which tensor of a file holds which global tensor, its sizes, and how it lies there. {l} stands
 * for a layer, {e} for an expert. Rows that follow each other with one foreign name are stacked in
 * that tensor, in their order. The embedding comes first, the head last.
 */
struct hf_row {
    const char *foreign, *global;
    enum hf_dim rows, cols; /* of the global tensor; D_ONE: rank 1 */
    enum hf_when when;
    enum hf_lie lie;
};

/* clang-format off */
#define G "layers.{l}."
#define LAYER "model.layers.{l}."
#define EMBED(name) {name, "embed.weight", D_VOCAB, D_HIDDEN, ALWAYS, ROWS}
#define HEAD(name) {name, "head.weight", D_VOCAB, D_HIDDEN, UNTIED, ROWS}
#define NORM(foreign, global) {foreign, global, D_HIDDEN, D_ONE, ALWAYS, ROWS}
#define ATTENTION                                                                                 \
    {LAYER "self_attn.q_proj.weight", G "attn.q.weight", D_QUERIES, D_HIDDEN, ALWAYS, ROWS},      \
    {LAYER "self_attn.q_proj.bias", G "attn.q.bias",   D_QUERIES, D_ONE, BIAS_QKV, ROWS},         \
    {LAYER "self_attn.k_proj.weight", G "attn.k.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},         \
    {LAYER "self_attn.k_proj.bias", G "attn.k.bias",   D_KEYS, D_ONE, BIAS_QKV, ROWS},            \
    {LAYER "self_attn.v_proj.weight", G "attn.v.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},         \
    {LAYER "self_attn.v_proj.bias", G "attn.v.bias",   D_KEYS, D_ONE, BIAS_QKV, ROWS},            \
    {LAYER "self_attn.o_proj.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, ROWS},    \
    {LAYER "self_attn.o_proj.bias", G "attn.out.bias", D_HIDDEN, D_ONE, BIAS_OUT, ROWS},          \
    {LAYER "self_attn.q_norm.weight", G "attn.q_norm.weight", D_HEAD, D_ONE, QK_NORM, ROWS},      \
    {LAYER "self_attn.k_norm.weight", G "attn.k_norm.weight", D_HEAD, D_ONE, QK_NORM, ROWS}
#define MLP                                                                                       \
    {LAYER "mlp.gate_proj.weight", G "mlp.gate.weight", D_FFN, D_HIDDEN, DENSE, ROWS},            \
    {LAYER "mlp.gate_proj.bias", G "mlp.gate.bias",   D_FFN, D_ONE, DENSE_BIAS, ROWS},            \
    {LAYER "mlp.up_proj.weight", G "mlp.up.weight",   D_FFN, D_HIDDEN, DENSE, ROWS},              \
    {LAYER "mlp.up_proj.bias", G "mlp.up.bias",     D_FFN, D_ONE, DENSE_BIAS, ROWS},              \
    {LAYER "mlp.down_proj.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, DENSE, ROWS},            \
    {LAYER "mlp.down_proj.bias", G "mlp.down.bias",   D_HIDDEN, D_ONE, DENSE_BIAS, ROWS}
#define NORMS                                                                                     \
    NORM(LAYER "input_layernorm.weight", G "attn_norm.weight"),                                   \
    NORM(LAYER "post_attention_layernorm.weight", G "mlp_norm.weight")
#define END_OF_MODEL NORM("model.norm.weight", "norm.weight"), HEAD("lm_head.weight")
/* Experts as one tensor per kind: [E, 2F, H] with gate above up, and [E, H, F]. */
#define FUSED                                                                                     \
    {LAYER "mlp.experts.gate_up_proj", G "mlp.experts.{e}.gate.weight",                           \
     D_EXPERT_FFN, D_HIDDEN, SPARSE_FUSED, STACK3},                                               \
    {LAYER "mlp.experts.gate_up_proj", G "mlp.experts.{e}.up.weight",                             \
     D_EXPERT_FFN, D_HIDDEN, SPARSE_FUSED, STACK3},                                               \
    {LAYER "mlp.experts.down_proj", G "mlp.experts.{e}.down.weight",                              \
     D_HIDDEN, D_EXPERT_FFN, SPARSE_FUSED, STACK3}
#define SINGLE(gate, up, down)                                                                    \
    {gate, G "mlp.experts.{e}.gate.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},            \
    {up, G "mlp.experts.{e}.up.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},                \
    {down, G "mlp.experts.{e}.down.weight", D_HIDDEN, D_EXPERT_FFN, SPARSE_ONE, ROWS}
#define ROUTER(name, when) {name, G "mlp.router.weight", D_EXPERTS, D_HIDDEN, when, ROWS}
#define LLAMA_ROWS EMBED("model.embed_tokens.weight"), ATTENTION, MLP, NORMS, END_OF_MODEL
/* clang-format on */

/* ---- GGUF ---------------------------------------------------------------------------------- */

/* clang-format off */
#define GGUF_LLAMA_ROWS \
    {"embed.weight", "token_embd.weight", HF_GGUF_PLAIN}, \
    {"norm.weight", "output_norm.weight", HF_GGUF_PLAIN}, \
    {"head.weight", "output.weight", HF_GGUF_PLAIN}, \
    {"attn_norm.weight", "attn_norm.weight", HF_GGUF_PLAIN}, \
    {"attn.q.weight", "attn_q.weight", HF_GGUF_QUERIES}, \
    {"attn.q.bias", "attn_q.bias", HF_GGUF_QUERIES}, \
    {"attn.k.weight", "attn_k.weight", HF_GGUF_KEYS}, \
    {"attn.k.bias", "attn_k.bias", HF_GGUF_KEYS}, \
    {"attn.v.weight", "attn_v.weight", HF_GGUF_PLAIN}, \
    {"attn.v.bias", "attn_v.bias", HF_GGUF_PLAIN}, \
    {"attn.out.weight", "attn_output.weight", HF_GGUF_PLAIN}, \
    {"attn.out.bias", "attn_output.bias", HF_GGUF_PLAIN}, \
    {"mlp_norm.weight", "ffn_norm.weight", HF_GGUF_PLAIN}, \
    {"mlp.gate.weight", "ffn_gate.weight", HF_GGUF_PLAIN}, \
    {"mlp.gate.bias", "ffn_gate.bias", HF_GGUF_PLAIN}, \
    {"mlp.up.weight", "ffn_up.weight", HF_GGUF_PLAIN}, \
    {"mlp.up.bias", "ffn_up.bias", HF_GGUF_PLAIN}, \
    {"mlp.down.weight", "ffn_down.weight", HF_GGUF_PLAIN}, \
    {"mlp.down.bias", "ffn_down.bias", HF_GGUF_PLAIN}
/* clang-format on */

/* ---- the row ------------------------------------------------------------------------------- */

/* Windows that the layers may have, of a model of weft that never had a config.json. */
enum hf_windows { HF_WINDOWS_NONE, HF_WINDOWS_ALL, HF_WINDOWS_ANY };

struct hf_family_row {
    const char *architecture, *bare; /* classes with and without the head */
    const struct hf_key *keys[7];    /* lists beside hf_keys_all */
    void (*read)(struct hf_reader *h, struct hf_model *m);

    const struct hf_row *row;
    size_t rows;
    const char *prefix;     /* of names; a bare model's lack it */
    const char *ignored[3]; /* ends of names of buffers below a layer, rotary ones apart */

    /* Whether a model of weft that never had a config.json is one of it; no two families say so of
     * one model. NULL: none is. */
    bool (*fits)(const struct spec *s);
    enum hf_windows windows;

    bool rope_by_type;          /* rope_parameters has one object for each type of layer */
    const struct hf_gguf *gguf; /* NULL: weft does not write it as GGUF */
};

#define HF_ROWS(names) .row = (names), .rows = sizeof(names) / sizeof((names)[0])

extern const struct hf_family_row *const hf_families[];

/* ---- what readers and judges share --------------------------------------------------------- */

/* An activation; `gated`: of an MLP with a gate. */
void hf_read_act(struct hf_reader *h, const char *key, const char *missing, bool gated,
                 struct spec *s);
/* Sizes and norms under the names of Llama; then its activation. */
void hf_read_llama_like(struct hf_reader *h, struct hf_model *m, double eps, double theta);
void hf_read_silu(struct hf_reader *h, struct hf_model *m);
/* "resid_pdrop" and "embd_pdrop", which must be equal. */
void hf_read_hidden_dropout(struct hf_reader *h, double def, struct spec *s);

/* Layers with a window: of each `every` all but the last, from `first` on; every 0: all. */
struct spec_layers hf_window_layers(const struct spec *s, int64_t first, int64_t every);
/* A window over fewer positions than the model has, of layers that are listed, or else of these. */
void hf_read_window(struct hf_reader *h, int64_t missing, struct spec_layers layers,
                    struct spec *s);

/* Whether every layer has a window. */
bool hf_windows_all(const struct spec *s);
/* A model of RMSNorm, rotary positions and SwiGLU without experts; one with them. */
bool hf_fits_llama_like(const struct spec *s);
bool hf_fits_experts(const struct spec *s);
/* Heads that are together as wide as the stream, which some families cannot have otherwise. */
bool hf_fits_heads(const struct spec *s);

#endif
