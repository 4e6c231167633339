/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "train/spec/family.h"
#include "train/spec/param.h"

static void model_of(const char *text, struct hf_model *ret)
{
    struct err e;
    T_OK(hf_config_parse("config.json", text, strlen(text), NULL, ret, &e), &e);
}

/* ---- published models ---------------------------------------------------------------------- */

#define LLAMA(type, hidden, ffn, layers, heads, kv, vocab)                                         \
    "{\"model_type\": \"" type "\", \"hidden_size\": " hidden ", \"intermediate_size\": " ffn      \
    ", \"num_hidden_layers\": " layers ", \"num_attention_heads\": " heads                         \
    ", \"num_key_value_heads\": " kv ", \"max_position_embeddings\": 4096, \"vocab_size\": " vocab

static const struct {
    const char *text;
    size_t tensors;
    int64_t parameters;
} known[] = {
    {"{\"model_type\": \"gpt2\", \"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12,"
     " \"n_positions\": 1024, \"vocab_size\": 50257}",
     148, 124439808},
    {"{\"model_type\": \"gpt2\", \"n_embd\": 1600, \"n_layer\": 48, \"n_head\": 25,"
     " \"n_positions\": 1024, \"vocab_size\": 50257}",
     580, 1557611200},
    {"{\"model_type\": \"gpt_neox\", \"hidden_size\": 512, \"intermediate_size\": 2048,"
     " \"num_hidden_layers\": 6, \"num_attention_heads\": 8, \"max_position_embeddings\": 2048,"
     " \"vocab_size\": 50304}",
     76, 70426624},
    {"{\"model_type\": \"gpt_neox\", \"hidden_size\": 6144, \"intermediate_size\": 24576,"
     " \"num_hidden_layers\": 44, \"num_attention_heads\": 64, \"max_position_embeddings\": 2048,"
     " \"vocab_size\": 50432}",
     532, 20554567680},
    {LLAMA("llama", "2048", "8192", "16", "32", "8", "128256") ", \"tie_word_embeddings\": true}",
     146, 1235814400},
    {LLAMA("llama", "8192", "28672", "80", "64", "8", "128256") "}", 723, 70553706496},
    {LLAMA("mistral", "4096", "14336", "32", "32", "8", "32000") "}", 291, 7241732096},
    {LLAMA("mixtral", "4096", "14336", "32", "32", "8", "32000") "}", 995, 46702792704},
    {LLAMA("qwen2", "3584", "18944", "28", "28", "4", "152064") "}", 339, 7615616512},
    {LLAMA("qwen3", "1024", "3072", "28", "16", "8", "151936") ", \"head_dim\": 128,"
                                                               " \"tie_word_embeddings\": true}",
     310, 596049920},
    {LLAMA("qwen3_moe", "2048", "6144", "48", "32", "4", "151936") ", \"head_dim\": 128}", 18867,
     30532122624},
    {LLAMA("phi3", "3072", "8192", "32", "32", "32", "32064") "}", 195, 3821079552},
};

static void known_models_have_their_known_tensors(void)
{
    struct hf_model m;
    struct hf_map map;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int64_t sum = 0;
        model_of(known[i].text, &m);
        hf_map_build(&map, &m, HF_EXPERTS_SINGLE);
        for (size_t k = 0; k < map.tensors; k++) {
            int64_t n = 1;
            for (int d = 0; d < map.tensor[k].rank; d++)
                n *= map.tensor[k].size[d];
            sum += n;
        }
        T_EQ(map.tensors, known[i].tensors);
        T_EQ(sum, known[i].parameters);
        hf_map_finish(&map);
    }
}

/* ---- every element of both sides once ------------------------------------------------------ */

#define TINY(type)                                                                                 \
    "{\"model_type\": \"" type "\", \"hidden_size\": 24, \"intermediate_size\": 20,"               \
    " \"num_hidden_layers\": 3, \"num_attention_heads\": 6, \"num_key_value_heads\": 2,"           \
    " \"head_dim\": 8, \"max_position_embeddings\": 16, \"vocab_size\": 37"

static const char *const tiny[] = {
    "{\"model_type\": \"gpt2\", \"n_embd\": 24, \"n_layer\": 2, \"n_head\": 3, \"n_positions\": 16,"
    " \"vocab_size\": 37, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"gpt_neox\", \"hidden_size\": 24, \"intermediate_size\": 20, \"rotary_pct\":"
    " 0.5, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, \"max_position_embeddings\": 16,"
    " \"vocab_size\": 37}",
    TINY("llama") ", \"attention_bias\": true, \"mlp_bias\": true}",
    TINY("mistral") ", \"sliding_window\": null}",
    TINY("qwen2") "}",
    TINY("qwen3") "}",
    TINY("phi3") "}",
    TINY("gemma2") "}",
    TINY("gemma3_text") "}",
    TINY("mixtral") ", \"num_local_experts\": 3}",
    TINY("qwen2_moe") ", \"num_experts\": 3, \"num_experts_per_tok\": 2, "
                      "\"moe_intermediate_size\": 10,"
                      " \"shared_expert_intermediate_size\": 14, \"mlp_only_layers\": [1]}",
    TINY("qwen3_moe") ", \"num_local_experts\": 3, \"num_experts_per_tok\": 2, "
                      "\"moe_intermediate_size\": 10,"
                      " \"decoder_sparse_step\": 2}",
    TINY("phi3") ", \"original_max_position_embeddings\": 8, \"rope_scaling\": {\"type\": "
                 "\"longrope\","
                 " \"short_factor\": [1, 1, 1.5, 2], \"long_factor\": [1, 2, 3, 4]}}",
};

struct marks {
    uint8_t *at;
    size_t n;
};

static struct marks *marks_new(size_t n)
{
    return mem_new(n, sizeof(struct marks));
}

static void mark(struct marks *m, int64_t cols, int64_t row, int64_t col)
{
    int64_t i = row * cols + col;
    T_CHECK(row >= 0 && col >= 0 && col < cols && (size_t)i < m->n);
    if ((size_t)i < m->n)
        m->at[i]++;
}

static void all_once(struct marks *m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t wrong = 0;
        for (size_t k = 0; k < m[i].n; k++)
            wrong += m[i].at[k] != 1;
        T_EQ(wrong, 0);
        free(m[i].at);
    }
    free(m);
}

static void check_cover(const struct hf_map *map)
{
    struct marks *t = marks_new(map->tensors), *g = marks_new(map->globals);
    for (size_t i = 0; i < map->tensors; i++) {
        const struct hf_tensor *x = &map->tensor[i];
        t[i].n = (size_t)(x->size[0] * x->size[1] * (x->rank == 3 ? x->size[2] : 1));
        t[i].at = mem_new(t[i].n, 1);
    }
    for (size_t i = 0; i < map->globals; i++) {
        g[i].n = (size_t)(map->global[i].size[0] * map->global[i].size[1]);
        g[i].at = mem_new(g[i].n, 1);
    }
    for (size_t i = 0; i < map->links; i++) {
        const struct hf_link *l = &map->link[i];
        const struct hf_tensor *x = &map->tensor[l->tensor];
        int64_t cols = x->size[x->rank == 3 ? 2 : 1];
        for (int64_t r = 0; r < l->count[0]; r++)
            for (int64_t c = 0; c < l->count[1]; c++) {
                int64_t fr = l->from[0] + (l->transposed ? c : r);
                int64_t fc = l->from[1] + (l->transposed ? r : c);
                mark(&t[l->tensor], cols, fr, fc);
                mark(&g[l->global], map->global[l->global].size[1], l->at[0] + r, l->at[1] + c);
            }
    }
    all_once(t, map->tensors);
    all_once(g, map->globals);
}

static void each_element_is_linked_once(void)
{
    struct hf_model m;
    struct hf_map map;
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++)
        for (int fused = 0; fused < 2; fused++) {
            model_of(tiny[i], &m);
            hf_map_build(&map, &m, (enum hf_experts)fused);
            check_cover(&map);
            hf_map_finish(&map);
        }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hf_global *)a)->name, ((const struct hf_global *)b)->name);
}

/* What train runs: the global tensors are those of its own table. */
static void globals_are_the_parameters_of_train(void)
{
    size_t runs = 0;
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++) {
        struct hf_model m;
        struct hf_map map;
        struct params p;
        struct err e;
        size_t n = 0;
        model_of(tiny[i], &m);
        if (spec_lacking(&m.spec))
            continue;
        runs++;
        hf_map_build(&map, &m, HF_EXPERTS_SINGLE);
        qsort(map.global, map.globals, sizeof(*map.global), by_name);
        T_OK(params_build(&p, &m.spec, layout_plain(mesh_single()), 0, &e), &e);
        for (int k = 0; k < p.n; k++)
            for (int s = 0; s < p.at[k].sources; s++, n++) {
                const struct param_source *want = &p.at[k].source[s];
                struct hf_global key = {.name = want->name};
                const struct hf_global *g =
                    bsearch(&key, map.global, map.globals, sizeof(*map.global), by_name);
                T_CHECK(g && g->rank == want->rank && g->size[0] == want->size[0] &&
                        g->size[1] == want->size[1]);
            }
        T_EQ(n, map.globals);
        params_finish(&p);
        hf_map_finish(&map);
    }
    T_EQ(runs, 13);
}

/* ---- what lies where ----------------------------------------------------------------------- */

static const struct hf_link *link_of(const struct hf_map *map, const char *tensor,
                                     const char *global)
{
    for (size_t i = 0; i < map->links; i++)
        if (!strcmp(map->tensor[map->link[i].tensor].name, tensor) &&
            !strcmp(map->global[map->link[i].global].name, global))
            return &map->link[i];
    return NULL;
}

static void places_in_fused_tensors(void)
{
    struct hf_model m;
    struct hf_map map;
    model_of(tiny[0], &m); /* GPT-2: columns of q, k, v beside each other */
    hf_map_build(&map, &m, HF_EXPERTS_SINGLE);
    const struct hf_link *l =
        link_of(&map, "transformer.h.1.attn.c_attn.weight", "layers.1.attn.k.weight");
    T_CHECK(l && l->transposed && l->from[0] == 0 && l->from[1] == 24);
    hf_map_finish(&map);
    model_of(tiny[1], &m); /* GPT-NeoX: of each head q, k, v */
    hf_map_build(&map, &m, HF_EXPERTS_SINGLE);
    l = link_of(&map, "gpt_neox.layers.1.attention.query_key_value.weight",
                "layers.1.attn.v.weight");
    T_CHECK(l && l->from[0] == 16 && l->count[0] == 8 && l[1].from[0] == 40 && l[1].at[0] == 8);
    hf_map_finish(&map);
    model_of(tiny[6], &m); /* Phi-3: rows of q, then k, then v */
    hf_map_build(&map, &m, HF_EXPERTS_SINGLE);
    l = link_of(&map, "model.layers.2.self_attn.qkv_proj.weight", "layers.2.attn.v.weight");
    T_CHECK(l && l->from[0] == 64 && l->count[0] == 16);
    l = link_of(&map, "model.layers.0.mlp.gate_up_proj.weight", "layers.0.mlp.up.weight");
    T_CHECK(l && l->from[0] == 20);
    hf_map_finish(&map);
    model_of(tiny[10], &m); /* fused experts: gate above up, an expert below the other */
    hf_map_build(&map, &m, HF_EXPERTS_FUSED);
    l = link_of(&map, "model.layers.2.mlp.experts.gate_up_proj",
                "layers.2.mlp.experts.1.up.weight");
    T_CHECK(l && l->from[0] == 30);
    if (l) {
        const struct hf_tensor *t = &map.tensor[l->tensor];
        T_CHECK(t->rank == 3 && t->size[0] == 3 && t->size[1] == 20 && t->size[2] == 24);
    }
    T_CHECK(!link_of(&map, "model.layers.1.mlp.experts.gate_up_proj",
                     "layers.1.mlp.experts.0.gate.weight")); /* a dense layer */
    hf_map_finish(&map);
}

static void names_of_a_family(void)
{
    T_CHECK(hf_name_ignored(HF_GPT2, "transformer.h.3.attn.bias"));
    T_CHECK(hf_name_ignored(HF_GPT2, "h.3.attn.masked_bias"));
    T_CHECK(!hf_name_ignored(HF_GPT2, "h.3.attn.c_attn.bias"));
    T_CHECK(hf_name_ignored(HF_LLAMA, "model.layers.0.self_attn.rotary_emb.inv_freq"));
    T_CHECK(!hf_name_ignored(HF_LLAMA, "model.layers.0.self_attn.q_proj.weight"));
    T_STR(hf_name_head(HF_GPT_NEOX), "embed_out.weight");
    T_STR(hf_name_embedding(HF_PHI3), "model.embed_tokens.weight");
}

static void a_spec_finds_its_family(void)
{
    struct hf_model m, again;
    struct err e;
    for (size_t i = 0; i < sizeof(tiny) / sizeof(tiny[0]); i++) {
        model_of(tiny[i], &m);
        if (m.spec.features || m.spec.rope_scaling == SPEC_ROPE_LONG) {
            T_ERR(hf_model_of_spec(&m.spec, "run", &again, &e), &e, ERR_USAGE, "config.json");
            continue;
        }
        int code = hf_model_of_spec(&m.spec, "run", &again, &e);
        if ((m.family == HF_QWEN2 || m.family == HF_MIXTRAL || m.family == HF_QWEN2_MOE) &&
            code) { /* a head_dim of its own, which the class lacks */
            T_ERR(code, &e, ERR_USAGE, "no family");
            continue;
        }
        T_OK(code, &e);
        bool llama = m.family == HF_MISTRAL || m.family == HF_PHI3;
        T_CHECK(again.family == (llama ? HF_LLAMA : m.family));
    }
}

/* Models of all kinds of norm, positions, activation, biases, experts and windows: no two families
 * are said to have one, so that their order says nothing. */
static void at_most_one_family_fits(void)
{
    bool found[HF_FAMILIES] = {false};
    for (unsigned bits = 0; bits < 1 << 13; bits++) {
        struct spec s = {.layers = 2, .hidden = 32, .heads = 4, .kv_heads = bits & 1 ? 4 : 2};
        s.head_dim = bits & 2 ? 8 : 16;
        s.norm = bits & 4 ? SPEC_LAYERNORM : SPEC_RMSNORM;
        s.position = bits & 8 ? SPEC_LEARNED : SPEC_ROPE;
        s.rope_percent = bits & 16 ? 0.5 : 1;
        s.act = bits & 32 ? SPEC_GELU_TANH : SPEC_SWIGLU;
        s.bias = bits & 64;
        s.qkv_bias = bits & 128;
        s.qk_norm = bits & 256;
        s.parallel = bits & 512;
        s.experts = bits & 1024 ? 4 : 0;
        s.shared_ffn = bits & 2048 ? 8 : 0;
        s.shared_gate = bits & 2048;
        s.window = bits & 4096 ? 3 : 0;
        s.windowed.bits[0] = 3;
        int n = 0;
        for (int f = 0; f < HF_FAMILIES; f++)
            if (hf_families[f]->fits && hf_families[f]->fits(&s)) {
                found[f] = true;
                n++;
            }
        T_CHECK(n <= 1);
    }
    for (int f = 0; f < HF_FAMILIES; f++)
        T_EQ(found[f], hf_families[f]->fits != NULL);
}

T_MAIN(T_CASE(at_most_one_family_fits), T_CASE(known_models_have_their_known_tensors),
       T_CASE(each_element_is_linked_once), T_CASE(globals_are_the_parameters_of_train),
       T_CASE(places_in_fused_tensors), T_CASE(names_of_a_family), T_CASE(a_spec_finds_its_family))
