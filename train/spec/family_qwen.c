/* SPDX-License-Identifier: Apache-2.0 */

/* Qwen 2 and Qwen 3, without experts. */

#include "train/spec/family.h"

static const struct hf_row qwen_rows[] = {LLAMA_ROWS};
static const struct hf_gguf_row gguf_rows[] = {GGUF_LLAMA_ROWS, {NULL, NULL, HF_GGUF_PLAIN}};
static const struct hf_gguf gguf = {"qwen2", gguf_rows, false, 0};

/* Qwen's window is that of the layers from max_window_layers on, once it is used. */
static void read_qwen_window(struct hf_reader *h, int64_t max_window_layers, struct spec *s)
{
    bool used = hf_bool(h, "use_sliding_window", false);
    int64_t first = hf_int(h, "max_window_layers", max_window_layers);
    if (used)
        hf_read_window(h, 4096, hf_window_layers(s, first, 0), s);
}

static void read_qwen2(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    hf_read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 32);
    m->qkv_bias = true;
    m->out_bias = false;
    read_qwen_window(h, 28, &m->spec);
}

static void read_qwen3(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    hf_read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 32);
    m->spec.head_dim = hf_int(h, "head_dim", 128);
    m->spec.qk_norm = true;
    read_qwen_window(h, 28, &m->spec);
}

static bool qwen2_fits(const struct spec *s)
{
    return hf_fits_llama_like(s) && s->qkv_bias && !s->qk_norm && hf_fits_heads(s);
}

static bool qwen3_fits(const struct spec *s)
{
    return hf_fits_llama_like(s) && !s->bias && !s->qkv_bias && s->qk_norm;
}

const struct hf_family_row hf_qwen2 = {
    .architecture = "Qwen2ForCausalLM",
    .bare = "Qwen2Model",
    .keys = {hf_keys_rope, hf_keys_llama, hf_keys_qwen},
    .read = read_qwen2,
    HF_ROWS(qwen_rows),
    .prefix = "model.",
    .fits = qwen2_fits,
    .windows = HF_WINDOWS_ANY,
    .gguf = &gguf,
};

const struct hf_family_row hf_qwen3 = {
    .architecture = "Qwen3ForCausalLM",
    .bare = "Qwen3Model",
    .keys = {hf_keys_rope, hf_keys_llama, hf_keys_qwen},
    .read = read_qwen3,
    HF_ROWS(qwen_rows),
    .prefix = "model.",
    .fits = qwen3_fits,
    .windows = HF_WINDOWS_ANY,
};
