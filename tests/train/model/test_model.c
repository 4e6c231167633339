/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/generate.h"

static struct rank rank;

/*
 * d loss / d weight against (loss(w + h) - loss(w - h)) / 2h in double: for every parameter of the
 * table, its first, last and some elements between. float scale and dropout factors cost about
 * 1e-7.
 */
static void check_gradients(struct spec spec)
{
    struct err e;
    struct rank_config c = tiny_config(spec, DTYPE_F64);
    T_OK(rank_open(&rank, &c, &e), &e);
    struct batch b;
    tiny_batch(&b, 11);
    tiny_loss(&rank, &b, true);
    double *w = rank.zero.weights.data, *g = mem_new((size_t)rank.params.elements, sizeof(*g));
    memcpy(g, rank.zero.grads.data, (size_t)rank.params.elements * sizeof(*g));
    double *moved = mem_new((size_t)rank.params.n, sizeof(*moved));
    for (int i = 0; i < rank.params.n; i++) {
        const struct param *p = &rank.params.at[i];
        int64_t stride = p->count / 23 + 1;
        for (int64_t k = 0; k < p->count; k += stride) {
            double *at = &w[p->offset + k], kept = *at, h = 1e-5;
            *at = kept + h;
            double up = tiny_loss(&rank, &b, false);
            *at = kept - h;
            double down = tiny_loss(&rank, &b, false);
            *at = kept;
            double numeric = (up - down) / (2 * h), ours = g[p->offset + k];
            moved[i] += fabs(ours);
            if (!(fabs(numeric - ours) <= 2e-6 * (fabs(numeric) + 1e-2)))
                t_fail(__FILE__, __LINE__, "%s[%lld] layer %d: %.9g, by differences %.9g",
                       p->source[0].name, (long long)k, p->layer, ours, numeric);
        }
    }
    for (int i = 0; i < rank.params.n; i++)
        if (moved[i] == 0 && rank.params.at[i].expert < 0) /* no token may have chosen an expert */
            t_fail(__FILE__, __LINE__, "%s has no gradient", rank.params.at[i].source[0].name);
    free(moved);
    free(g);
    batch_finish(&b);
    rank_close(&rank);
}

/*
 * Rows cut at an end of document, with positions from 0 behind it, are to the model what rows of
 * that length are: one loss, one gradient.
 */
static void check_documents(struct spec spec, enum dtype real, double tolerance)
{
    struct err e;
    double loss[2];
    double *g[2];
    int64_t n = 0;
    enum { PART = 3, PARTS_OF = TINY_LENGTH / PART };
    enum { ALL = TINY_ROWS * TINY_LENGTH };
    for (int cut = 0; cut < 2; cut++) {
        struct rank_config c = tiny_config(spec, real);
        c.documents = cut;
        c.micro_batch = cut ? TINY_ROWS : PARTS_OF * TINY_ROWS;
        c.seq_length = cut ? TINY_LENGTH : PART;
        T_OK(rank_open(&rank, &c, &e), &e);
        struct batch full, b;
        tiny_batch(&full, 11);
        batch_init(&b, (uint32_t)c.micro_batch, (uint32_t)c.seq_length);
        memcpy(b.tokens, full.tokens, ALL * 4);
        memcpy(b.labels, full.labels, ALL * 4);
        memcpy(b.loss_mask, full.loss_mask, ALL * 4);
        b.nstretch = PARTS_OF * TINY_ROWS;
        for (uint32_t s = 0; cut && s <= b.nstretch; s++)
            b.start[s] = (int32_t)(s * PART);
        for (uint32_t i = 0; cut && i < ALL; i++)
            b.position[i] = (int32_t)(i % PART);
        loss[cut] = tiny_loss(&rank, &b, true);
        n = rank.params.elements;
        g[cut] = mem_new((size_t)n, sizeof(double));
        for (int64_t i = 0; i < n; i++)
            g[cut][i] = real == DTYPE_F64 ? ((double *)rank.zero.grads.data)[i]
                                          : (double)((float *)rank.zero.grads.data)[i];
        batch_finish(&full);
        batch_finish(&b);
        rank_close(&rank);
    }
    T_NEAR(loss[1], loss[0], tolerance);
    for (int64_t i = 0; i < n; i++)
        T_NEAR(g[1][i], g[0][i], tolerance);
    free(g[0]);
    free(g[1]);
}

static void documents_do_not_see_each_other(void)
{
    struct spec plain[] = {tiny_gpt(), tiny_llama(), tiny_gemma2()};
    for (int i = 0; i < 3; i++) {
        plain[i].attention_dropout = plain[i].hidden_dropout = 0;
        check_documents(plain[i], DTYPE_F64, 1e-12);
        check_documents(plain[i], DTYPE_F32, 1e-5);
    }
}

static void gpt_gradients(void)
{
    check_gradients(tiny_gpt());
}

static void gpt_gradients_with_dropout(void)
{
    struct spec s = tiny_gpt();
    s.hidden_dropout = 0.2;
    s.attention_dropout = 0.3;
    check_gradients(s);
}

static void gpt_gradients_erf_untied(void)
{
    struct spec s = tiny_gpt();
    s.act = SPEC_GELU_ERF;
    s.tied = false;
    check_gradients(s);
}

static void llama_gradients(void)
{
    check_gradients(tiny_llama());
}

static void llama_gradients_tied_partial_rotary_qkv_bias(void)
{
    struct spec s = tiny_llama();
    s.tied = true;
    s.qkv_bias = true;
    s.rope_percent = 0.5;
    s.hidden_dropout = 0.1;
    check_gradients(s);
}

static void qwen3_gradients(void)
{
    struct spec s = tiny_qwen3();
    check_gradients(s);
    s.rope_percent = 0.7;
    s.attention_dropout = 0.1;
    check_gradients(s);
}

static void neox_gradients(void)
{
    struct spec s = tiny_neox(), mixture = tiny_mixtral();
    check_gradients(s);
    s.hidden_dropout = 0.2;
    check_gradients(s);
    mixture.parallel = true;
    check_gradients(mixture);
}

static void phi3_gradients(void)
{
    check_gradients(tiny_phi3());
}

static void gemma2_gradients(void)
{
    struct spec s = tiny_gemma2();
    check_gradients(tiny_mistral());
    check_gradients(s);
    s.act = SPEC_GEGLU_ERF;
    s.hidden_dropout = s.attention_dropout = 0.1;
    check_gradients(s);
}

static void mixtral_gradients(void)
{
    struct spec s = tiny_mixtral();
    check_gradients(s);
    s.hidden_dropout = 0.1;
    s.route_before = true; /* Qwen-MoE's weights */
    s.topk = 1;
    s.balance_coeff = 0;
    check_gradients(s);
}

static void qwen_moe_gradients(void)
{
    struct spec s = tiny_qwen_moe();
    check_gradients(s);
    s.shared_gate = false;
    s.route_before = s.qkv_bias = false;
    s.qk_norm = true; /* Qwen3-MoE */
    s.hidden_dropout = 0.1;
    check_gradients(s);
}

/* The same text, token by token through the cache and at once. */
static void check_cache(struct spec spec)
{
    struct err e;
    struct rank_config c = tiny_config(spec, DTYPE_F32);
    c.use = MODEL_DECODE;
    c.micro_batch = 1;
    T_OK(rank_open(&rank, &c, &e), &e);
    int32_t id[TINY_LENGTH];
    double whole[TINY_VOCAB];
    for (int i = 0; i < TINY_LENGTH; i++)
        id[i] = (int32_t)(t_rand(3, (uint64_t)i) % TINY_VOCAB);
    for (int n = 1; n <= TINY_LENGTH; n++) {
        struct decoder d;
        decoder_init(&d, &rank);
        T_OK(decoder_feed(&d, id, n, &e), &e);
        memcpy(whole, d.host, sizeof(whole));
        d.past = 0;
        T_OK(decoder_feed(&d, id, n / 2 + 1, &e), &e);
        for (int i = n / 2 + 1; i < n; i++)
            T_OK(decoder_feed(&d, &id[i], 1, &e), &e);
        for (int v = 0; v < TINY_VOCAB; v++)
            T_NEAR(d.host[v], whole[v], 2e-5);
        slab_reset(&rank.slab[SLAB_WORKSPACE], 0);
        decoder_finish(&d);
    }
    rank_close(&rank);
}

static void gpt_cache_equals_whole(void)
{
    check_cache(tiny_gpt());
}

static void llama_cache_equals_whole(void)
{
    check_cache(tiny_llama());
}

static void qwen3_cache_equals_whole(void)
{
    check_cache(tiny_qwen3());
}

static void neox_cache_equals_whole(void)
{
    check_cache(tiny_neox());
}

/* Logits of the last of n ids, once with the keys of all others in the cache. */
static void phi3_cache_equals_whole(void)
{
    struct spec s = tiny_phi3();
    s.init_std = 0.5; /* so that other positions are other logits */
    check_cache(s);
}

/* Logits of the last of n ids of a decoder that begins with them. */
static void logits_of_text(struct spec s, int n, double ret[TINY_VOCAB])
{
    struct err e;
    struct decoder d;
    int32_t id[TINY_LENGTH] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    struct rank_config c = tiny_config(s, DTYPE_F32);
    c.use = MODEL_DECODE;
    c.micro_batch = 1;
    T_OK(rank_open(&rank, &c, &e), &e);
    decoder_init(&d, &rank);
    T_OK(decoder_feed(&d, id, n, &e), &e);
    memcpy(ret, d.host, TINY_VOCAB * sizeof(*ret));
    slab_reset(&rank.slab[SLAB_WORKSPACE], 0);
    decoder_finish(&d);
    rank_close(&rank);
}

/* Up to the old length nothing is scaled, then the base is what another model has always. */
static void dynamic_grows_the_base(void)
{
    struct spec plain = tiny_llama(), s;
    double a[TINY_VOCAB], b[TINY_VOCAB];
    plain.head_dim = 6;
    plain.init_std = 0.5;
    s = plain;
    s.rope_scaling = SPEC_ROPE_DYNAMIC;
    s.rope_factor = 4;
    s.rope_old_length = 4;
    logits_of_text(plain, 4, a);
    logits_of_text(s, 4, b);
    T_MEM(a, b, sizeof(a));
    plain.rope_base *= pow(4.0 * 8 / 4 - 3, 6.0 / 4);
    logits_of_text(plain, 8, a);
    logits_of_text(s, 8, b);
    T_MEM(a, b, sizeof(a));
}

/* The base grows with each id, for those of the cache, too. */
static void dynamic_cache_equals_whole(void)
{
    struct spec s = tiny_llama();
    s.head_dim = 6;
    s.rope_scaling = SPEC_ROPE_DYNAMIC;
    s.rope_factor = 4;
    s.rope_old_length = TINY_LENGTH / 2;
    s.init_std = 0.5;
    check_cache(s);
}

/* The tables follow the text's length: with factors that differ, so do the logits of a long one. */
static void longrope_follows_the_length(void)
{
    struct err e;
    int32_t id[TINY_LENGTH] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
    double logits[2][3][TINY_VOCAB];
    for (int k = 0; k < 2; k++) {
        struct spec s = tiny_phi3();
        struct decoder d;
        s.longrope.far[1] = k ? 3 : 30;
        struct rank_config c = tiny_config(s, DTYPE_F32);
        c.use = MODEL_DECODE;
        c.micro_batch = 1;
        T_OK(rank_open(&rank, &c, &e), &e);
        decoder_init(&d, &rank);
        for (int i = 0; i < 3; i++) { /* short, long, short again */
            d.past = 0;
            T_OK(decoder_feed(&d, id, i == 1 ? TINY_LENGTH : TINY_LENGTH / 2, &e), &e);
            memcpy(logits[k][i], d.host, sizeof(logits[k][i]));
        }
        slab_reset(&rank.slab[SLAB_WORKSPACE], 0);
        decoder_finish(&d);
        rank_close(&rank);
    }
    T_MEM(logits[0][0], logits[1][0], sizeof(logits[0][0]));
    T_MEM(logits[0][0], logits[0][2], sizeof(logits[0][0]));
    T_CHECK(memcmp(logits[0][1], logits[1][1], sizeof(logits[0][1])));
}

static void qwen_moe_cache_equals_whole(void)
{
    struct spec s = tiny_qwen_moe();
    s.init_std = 0.5;
    check_cache(s);
}

static void gemma3_gradients(void)
{
    check_gradients(tiny_gemma3());
}

static void gemma2_cache_equals_whole(void)
{
    check_cache(tiny_gemma3());
    check_cache(tiny_mistral());
    check_cache(tiny_gemma2());
}

static void mixtral_cache_equals_whole(void)
{
    struct spec s = tiny_mixtral();
    s.init_std = 0.5;
    check_cache(s);
}

/* Any number of threads gives the same bytes: loss, gradients. */
static void threads_do_not_change_a_bit(void)
{
    struct err e;
    struct spec s = tiny_gpt();
    s.hidden_dropout = s.attention_dropout = 0.1;
    float *first = NULL;
    size_t bytes = 0;
    for (int threads = 1; threads <= 5; threads += 2) {
        struct rank_config c = tiny_config(s, DTYPE_F32);
        c.threads = threads;
        T_OK(rank_open(&rank, &c, &e), &e);
        struct batch b;
        tiny_batch(&b, 12);
        tiny_loss(&rank, &b, true);
        bytes = tensor_bytes(rank.zero.grads);
        if (!first) {
            first = mem_new(1, bytes);
            memcpy(first, rank.zero.grads.data, bytes);
        } else {
            T_MEM(rank.zero.grads.data, first, bytes);
        }
        batch_finish(&b);
        rank_close(&rank);
    }
    free(first);
}

T_MAIN(T_CASE(documents_do_not_see_each_other), T_CASE(gpt_gradients),
       T_CASE(gpt_gradients_with_dropout), T_CASE(gpt_gradients_erf_untied),
       T_CASE(llama_gradients), T_CASE(qwen3_gradients), T_CASE(qwen_moe_gradients),
       T_CASE(qwen_moe_cache_equals_whole), T_CASE(gemma2_gradients), T_CASE(gemma3_gradients),
       T_CASE(gemma2_cache_equals_whole), T_CASE(phi3_gradients), T_CASE(phi3_cache_equals_whole),
       T_CASE(longrope_follows_the_length), T_CASE(dynamic_cache_equals_whole),
       T_CASE(dynamic_grows_the_base), T_CASE(neox_gradients), T_CASE(neox_cache_equals_whole),
       T_CASE(qwen3_cache_equals_whole), T_CASE(mixtral_gradients),
       T_CASE(mixtral_cache_equals_whole), T_CASE(llama_gradients_tied_partial_rotary_qkv_bias),
       T_CASE(gpt_cache_equals_whole), T_CASE(llama_cache_equals_whole),
       T_CASE(threads_do_not_change_a_bit))
