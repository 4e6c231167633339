/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

static const struct hf_row mistral_rows[] = {LLAMA_ROWS};
static const struct hf_gguf_row gguf_rows[] = {GGUF_LLAMA_ROWS, {NULL, NULL, HF_GGUF_PLAIN}};
static const struct hf_gguf gguf = {"llama", gguf_rows, true, SPEC_PART_BIAS};

static void read_mistral(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    hf_read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", 8);
    m->qkv_bias = m->out_bias = false;
    hf_read_window(h, 4096, hf_window_layers(&m->spec, 0, 0), &m->spec);
}

/* Without a window it is Llama's. */
static bool mistral_fits(const struct spec *s)
{
    return hf_fits_llama_like(s) && !s->qkv_bias && !s->qk_norm && !s->bias && hf_windows_all(s);
}

const struct hf_family_row hf_mistral = {
    .architecture = "MistralForCausalLM",
    .bare = "MistralModel",
    .keys = {hf_keys_rope, hf_keys_llama},
    .read = read_mistral,
    HF_ROWS(mistral_rows),
    .prefix = "model.",
    .fits = mistral_fits,
    .windows = HF_WINDOWS_ALL,
    .gguf = &gguf,
};
