/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One table of names per family. A row says which tensor of a file holds which global tensor, its
 * sizes, and how it lies there. {l} stands for a layer, {e} for an expert. Rows that follow each
 * other with one foreign name are stacked in that tensor, in their order.
 */

#include "train/spec/hf.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

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
#define EXPERT LAYER "mlp.experts.{e}."
#define MIX LAYER "block_sparse_moe.experts.{e}."
#define QWEN_EXPERTS                                                                              \
    ROUTER(LAYER "mlp.gate.weight", SPARSE), FUSED,                                               \
    SINGLE(EXPERT "gate_proj.weight", EXPERT "up_proj.weight", EXPERT "down_proj.weight")

static const struct hf_row llama_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION, MLP, NORMS, END_OF_MODEL,
};

static const struct hf_row mixtral_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION,
    ROUTER(LAYER "block_sparse_moe.gate.weight", SPARSE_ONE),
    ROUTER(LAYER "mlp.gate.weight", SPARSE_FUSED), FUSED,
    {MIX "w1.weight", G "mlp.experts.{e}.gate.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},
    {MIX "w2.weight", G "mlp.experts.{e}.down.weight", D_HIDDEN, D_EXPERT_FFN, SPARSE_ONE, ROWS},
    {MIX "w3.weight", G "mlp.experts.{e}.up.weight", D_EXPERT_FFN, D_HIDDEN, SPARSE_ONE, ROWS},
    NORMS, END_OF_MODEL,
};

static const struct hf_row qwen_moe_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION, MLP, QWEN_EXPERTS,
    {LAYER "mlp.shared_expert.gate_proj.weight", G "mlp.shared.gate.weight",
     D_SHARED_FFN, D_HIDDEN, SHARED, ROWS},
    {LAYER "mlp.shared_expert.up_proj.weight", G "mlp.shared.up.weight",
     D_SHARED_FFN, D_HIDDEN, SHARED, ROWS},
    {LAYER "mlp.shared_expert.down_proj.weight", G "mlp.shared.down.weight",
     D_HIDDEN, D_SHARED_FFN, SHARED, ROWS},
    {LAYER "mlp.shared_expert_gate.weight", G "mlp.shared_gate.weight",
     D_ONE, D_HIDDEN, SHARED, ROWS},
    NORMS, END_OF_MODEL,
};

static const struct hf_row phi3_rows[] = {
    EMBED("model.embed_tokens.weight"),
    {LAYER "self_attn.o_proj.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.q.weight", D_QUERIES, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.k.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "self_attn.qkv_proj.weight", G "attn.v.weight", D_KEYS, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.gate_up_proj.weight", G "mlp.gate.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.gate_up_proj.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.down_proj.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, ROWS},
    NORMS, END_OF_MODEL,
};

static const struct hf_row gemma_rows[] = {
    EMBED("model.embed_tokens.weight"), ATTENTION, MLP,
    NORM(LAYER "input_layernorm.weight", G "attn_norm.weight"),
    NORM(LAYER "post_attention_layernorm.weight", G "attn_post_norm.weight"),
    NORM(LAYER "pre_feedforward_layernorm.weight", G "mlp_norm.weight"),
    NORM(LAYER "post_feedforward_layernorm.weight", G "mlp_post_norm.weight"),
    END_OF_MODEL,
};

#undef LAYER
#define LAYER "transformer.h.{l}."
static const struct hf_row gpt2_rows[] = {
    EMBED("transformer.wte.weight"),
    {"transformer.wpe.weight", "position.weight", D_POSITIONS, D_HIDDEN, ALWAYS, ROWS},
    NORM(LAYER "ln_1.weight", G "attn_norm.weight"),
    NORM(LAYER "ln_1.bias", G "attn_norm.bias"),
    {LAYER "attn.c_attn.weight", G "attn.q.weight", D_QUERIES, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.weight", G "attn.k.weight", D_KEYS, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.weight", G "attn.v.weight", D_KEYS, D_HIDDEN, ALWAYS, COLS},
    {LAYER "attn.c_attn.bias", G "attn.q.bias", D_QUERIES, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_attn.bias", G "attn.k.bias", D_KEYS, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_attn.bias", G "attn.v.bias", D_KEYS, D_ONE, ALWAYS, ROWS},
    {LAYER "attn.c_proj.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, COLS},
    NORM(LAYER "attn.c_proj.bias", G "attn.out.bias"),
    NORM(LAYER "ln_2.weight", G "mlp_norm.weight"),
    NORM(LAYER "ln_2.bias", G "mlp_norm.bias"),
    {LAYER "mlp.c_fc.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, COLS},
    {LAYER "mlp.c_fc.bias", G "mlp.up.bias", D_FFN, D_ONE, ALWAYS, ROWS},
    {LAYER "mlp.c_proj.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, COLS},
    NORM(LAYER "mlp.c_proj.bias", G "mlp.down.bias"),
    NORM("transformer.ln_f.weight", "norm.weight"),
    NORM("transformer.ln_f.bias", "norm.bias"),
    HEAD("lm_head.weight"),
};

#undef LAYER
#define LAYER "gpt_neox.layers.{l}."
static const struct hf_row gpt_neox_rows[] = {
    EMBED("gpt_neox.embed_in.weight"),
    NORM(LAYER "input_layernorm.weight", G "attn_norm.weight"),
    NORM(LAYER "input_layernorm.bias", G "attn_norm.bias"),
    NORM(LAYER "post_attention_layernorm.weight", G "mlp_norm.weight"),
    NORM(LAYER "post_attention_layernorm.bias", G "mlp_norm.bias"),
    {LAYER "attention.query_key_value.weight", G "attn.q.weight",
     D_QUERIES, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.weight", G "attn.k.weight",
     D_KEYS, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.weight", G "attn.v.weight",
     D_KEYS, D_HIDDEN, ALWAYS, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.q.bias", D_QUERIES, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.k.bias", D_KEYS, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.query_key_value.bias", G "attn.v.bias", D_KEYS, D_ONE, BIAS_QKV, HEADS},
    {LAYER "attention.dense.weight", G "attn.out.weight", D_HIDDEN, D_QUERIES, ALWAYS, ROWS},
    {LAYER "attention.dense.bias", G "attn.out.bias", D_HIDDEN, D_ONE, BIAS_OUT, ROWS},
    {LAYER "mlp.dense_h_to_4h.weight", G "mlp.up.weight", D_FFN, D_HIDDEN, ALWAYS, ROWS},
    {LAYER "mlp.dense_h_to_4h.bias", G "mlp.up.bias", D_FFN, D_ONE, BIAS_MLP, ROWS},
    {LAYER "mlp.dense_4h_to_h.weight", G "mlp.down.weight", D_HIDDEN, D_FFN, ALWAYS, ROWS},
    {LAYER "mlp.dense_4h_to_h.bias", G "mlp.down.bias", D_HIDDEN, D_ONE, BIAS_MLP, ROWS},
    NORM("gpt_neox.final_layer_norm.weight", "norm.weight"),
    NORM("gpt_neox.final_layer_norm.bias", "norm.bias"),
    HEAD("embed_out.weight"),
};

#define NAMES(rows) rows, sizeof(rows) / sizeof((rows)[0])
static const struct hf_names {
    const struct hf_row *row;
    size_t rows;
    const char *prefix;
    const char *ignored[4]; /* ends of names below a layer */
} names[HF_FAMILIES] = {
    [HF_GPT2] = {NAMES(gpt2_rows), "transformer.", {".attn.bias", ".attn.masked_bias"}},
    [HF_LLAMA] = {NAMES(llama_rows), "model.", {NULL}},
    [HF_MISTRAL] = {NAMES(llama_rows), "model.", {NULL}},
    [HF_QWEN2] = {NAMES(llama_rows), "model.", {NULL}},
    [HF_GPT_NEOX] = {NAMES(gpt_neox_rows), "gpt_neox.",
        {".attention.bias", ".attention.masked_bias"}},
    [HF_QWEN3] = {NAMES(llama_rows), "model.", {NULL}},
    [HF_MIXTRAL] = {NAMES(mixtral_rows), "model.", {NULL}},
    [HF_QWEN2_MOE] = {NAMES(qwen_moe_rows), "model.", {NULL}},
    [HF_QWEN3_MOE] = {NAMES(qwen_moe_rows), "model.", {NULL}},
    [HF_PHI3] = {NAMES(phi3_rows), "model.", {NULL}},
    [HF_GEMMA2] = {NAMES(gemma_rows), "model.", {NULL}},
    [HF_GEMMA3] = {NAMES(gemma_rows), "model.", {NULL}},
};
/* clang-format on */

/* ---- of a family --------------------------------------------------------------------------- */

/* Frequencies, cosines and sines of rotary positions: of a layer or of the model, of some kinds of
 * layers or of all. transformers calculates them from the configuration and passes over a file's.
 */
static bool is_rotary(const char *name)
{
    const char *module = strstr(name, "rotary_emb"), *dot = strrchr(name, '.');
    if (!module || (module > name && module[-1] != '.') || !dot || dot < module)
        return false;
    size_t n = strlen(dot), freq = strlen("inv_freq");
    return (n > freq && !strcmp(dot + n - freq, "inv_freq")) || !strcmp(dot, ".cos_cached") ||
           !strcmp(dot, ".sin_cached");
}

bool hf_name_ignored(enum hf_family f, const char *name)
{
    size_t n = strlen(name);
    if (f != HF_GPT2 && is_rotary(name))
        return true;
    for (int i = 0; i < 4 && names[f].ignored[i]; i++) {
        const char *end = names[f].ignored[i];
        if (n > strlen(end) && !strcmp(name + n - strlen(end), end))
            return true;
    }
    return false;
}

const char *hf_name_prefix(enum hf_family f)
{
    return names[f].prefix;
}

const char *hf_name_head(enum hf_family f)
{
    return names[f].row[names[f].rows - 1].foreign;
}

const char *hf_name_embedding(enum hf_family f)
{
    return names[f].row[0].foreign;
}

void hf_name_experts(const char *name, enum hf_experts *ret)
{
    if (strstr(name, ".mlp.experts.gate_up_proj"))
        *ret = HF_EXPERTS_FUSED;
}

/* ---- expansion ----------------------------------------------------------------------------- */

struct build {
    struct hf_map *map;
    const struct hf_model *model;
    bool fused;
    size_t tensors, globals, links; /* allocated */
};

static bool is_dense(const struct hf_model *m, int64_t layer)
{
    return !spec_has_experts(&m->spec, layer);
}

static bool row_holds(const struct build *b, enum hf_when when, int64_t layer)
{
    const struct hf_model *m = b->model;
    switch (when) {
    case ALWAYS:
        return true;
    case UNTIED:
        return !m->spec.tied;
    case BIAS_QKV:
        return m->qkv_bias;
    case BIAS_OUT:
        return m->out_bias;
    case BIAS_MLP:
        return m->mlp_bias;
    case QK_NORM:
        return m->spec.qk_norm;
    case DENSE:
        return is_dense(m, layer);
    case DENSE_BIAS:
        return is_dense(m, layer) && m->mlp_bias;
    case SPARSE:
        return !is_dense(m, layer);
    case SPARSE_ONE:
        return !is_dense(m, layer) && !b->fused;
    case SPARSE_FUSED:
        return !is_dense(m, layer) && b->fused;
    case SHARED:
        return !is_dense(m, layer) && m->spec.shared_ffn;
    }
    BUG("when %d", (int)when);
}

static int64_t dim_of(const struct hf_model *m, enum hf_dim d)
{
    const struct spec *s = &m->spec;
    const int64_t size[D_COUNT] = {
        [D_ONE] = 1,
        [D_HIDDEN] = s->hidden,
        [D_VOCAB] = s->vocab,
        [D_POSITIONS] = s->max_positions,
        [D_QUERIES] = s->heads * s->head_dim,
        [D_KEYS] = s->kv_heads * s->head_dim,
        [D_HEAD] = s->head_dim,
        [D_FFN] = s->ffn,
        [D_EXPERTS] = m->spec.experts,
        [D_EXPERT_FFN] = m->spec.expert_ffn,
        [D_SHARED_FFN] = m->spec.shared_ffn,
    };
    return size[d];
}

/* A pattern with its numbers put in. */
static const char *name_of(struct arena *a, const char *pattern, int64_t layer, int64_t expert)
{
    struct buf b = {0};
    for (const char *p = pattern; *p; p++) {
        if (*p == '{') {
            buf_addf(&b, "%lld", (long long)(p[1] == 'l' ? layer : expert));
            p += 2;
        } else {
            buf_addc(&b, *p);
        }
    }
    char *name = arena_strndup(a, b.data, b.len);
    buf_finish(&b);
    return name;
}

/* Memory for one more, doubled when it is full. */
static void *more(void *p, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return p;
    *cap = *cap ? 2 * *cap : 64;
    return mem_grow(p, *cap, size);
}

static void add_link(struct build *b, struct hf_link l)
{
    struct hf_map *m = b->map;
    m->link = more(m->link, m->links, &b->links, sizeof(*m->link));
    m->link[m->links++] = l;
}

/* The rows (of a transposed tensor columns) that are taken so far: where the next go. */
static void add_links(struct build *b, const struct hf_row *r, size_t stacked, int64_t *at)
{
    struct hf_map *m = b->map;
    struct hf_tensor *t = &m->tensor[m->tensors - 1];
    const struct hf_global *g = &m->global[m->globals - 1];
    struct hf_link l = {.tensor = m->tensors - 1,
                        .global = m->globals - 1,
                        .count = {g->size[0], g->size[1]},
                        .transposed = r->lie == COLS};
    if (r->lie == HEADS) { /* as many parts as heads */
        int64_t d = b->model->spec.head_dim, k = *at / g->size[0];
        l.count[0] = d;
        for (int64_t head = 0; head < g->size[0] / d; head++) {
            l.at[0] = head * d;
            l.from[0] = (head * (int64_t)stacked + k) * d;
            add_link(b, l);
        }
    } else {
        l.from[r->lie == COLS] = *at;
        add_link(b, l);
    }
    *at += g->size[0];
    if (r->lie == COLS)
        t->size[1] = *at;
    else if (r->lie != STACK3)
        t->size[0] = *at;
}

static void add_tensor(struct build *b, const struct hf_row *r, int64_t layer, int64_t expert)
{
    struct hf_map *m = b->map;
    int64_t cols = dim_of(b->model, r->cols);
    struct hf_tensor t = {.name = name_of(&m->arena, r->foreign, layer, expert)};
    t.rank = r->lie == STACK3 ? 3 : r->cols == D_ONE ? 1 : 2;
    if (r->lie == COLS)
        t.size[0] = cols;
    else if (r->lie == STACK3)
        t.size[0] = b->model->spec.experts, t.size[2] = cols;
    else
        t.size[1] = cols;
    m->tensor = more(m->tensor, m->tensors, &b->tensors, sizeof(*m->tensor));
    m->tensor[m->tensors++] = t;
}

static void add_global(struct build *b, const struct hf_row *r, int64_t layer, int64_t expert)
{
    struct hf_map *m = b->map;
    m->global = more(m->global, m->globals, &b->globals, sizeof(*m->global));
    m->global[m->globals++] =
        (struct hf_global){.name = name_of(&m->arena, r->global, layer, expert),
                           .rank = r->cols == D_ONE ? 1 : 2,
                           .size = {dim_of(b->model, r->rows), dim_of(b->model, r->cols)}};
}

/* Rows with one foreign name, for one layer and one expert, or all where one tensor has them. */
static void add_rows(struct build *b, const struct hf_row *r, size_t n, int64_t layer,
                     int64_t expert)
{
    bool all = r->lie == STACK3;
    int64_t experts = b->model->spec.experts, at = 0;
    add_tensor(b, r, layer, expert);
    for (int64_t e = all ? 0 : expert; e < (all ? experts : expert + 1); e++)
        for (size_t i = 0; i < n; i++) {
            add_global(b, &r[i], layer, e);
            add_links(b, &r[i], n, &at);
        }
    if (all)
        b->map->tensor[b->map->tensors - 1].size[1] = at / experts;
}

static bool is_layered(const struct hf_row *r)
{
    return strstr(r->foreign, "{l}") != NULL;
}

static bool is_per_expert(const struct hf_row *r)
{
    return strstr(r->foreign, "{e}") != NULL;
}

/* How many rows from i on have its foreign name. */
static size_t same_name(const struct hf_names *f, size_t i)
{
    size_t j = i + 1;
    while (j < f->rows && !strcmp(f->row[j].foreign, f->row[i].foreign))
        j++;
    return j - i;
}

/* The rows [i, end) for one layer. */
static void add_layer(struct build *b, const struct hf_names *f, size_t i, size_t end,
                      int64_t layer)
{
    for (size_t n; i < end; i += n) {
        const struct hf_row *r = &f->row[i];
        n = same_name(f, i);
        if (is_per_expert(r)) /* all tensors of an expert, then those of the next */
            while (i + n < end && is_per_expert(&r[n]))
                n++;
        if (!row_holds(b, r->when, layer))
            continue;
        if (!is_per_expert(r))
            add_rows(b, r, n, layer, 0);
        else
            for (int64_t e = 0; e < b->model->spec.experts; e++)
                for (size_t k = 0; k < n; k++)
                    add_rows(b, &r[k], 1, layer, e);
    }
}

void hf_map_build(struct hf_map *ret, const struct hf_model *m, enum hf_experts experts)
{
    struct build b = {.map = ret, .model = m, .fused = experts == HF_EXPERTS_FUSED};
    const struct hf_names *f = &names[m->family];
    *ret = (struct hf_map){0};
    for (size_t i = 0, end; i < f->rows; i = end) {
        int64_t layers = is_layered(&f->row[i]) ? m->spec.layers : 1;
        for (end = i; end < f->rows && is_layered(&f->row[end]) == is_layered(&f->row[i]);)
            end++;
        for (int64_t layer = 0; layer < layers; layer++)
            add_layer(&b, f, i, end, layer);
    }
}

void hf_map_finish(struct hf_map *m)
{
    free(m->tensor);
    free(m->global);
    free(m->link);
    arena_finish(&m->arena);
    *m = (struct hf_map){0};
}
