/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/family.h"

/* clang-format off */
static const struct hf_key llama_keys[] = {
    KEY("mlp_bias"),
    IDLE_KEY("pretraining_tp"), /* cuts the products, not the model */
    END_OF_KEYS,
};
/* clang-format on */

static const struct hf_row llama_rows[] = {LLAMA_ROWS};
static const struct hf_gguf_row gguf_rows[] = {GGUF_LLAMA_ROWS, {NULL, NULL, HF_GGUF_PLAIN}};
static const struct hf_gguf gguf = {"llama", gguf_rows, true, SPEC_PART_BIAS};

static void read_llama(struct hf_reader *h, struct hf_model *m)
{
    hf_read_llama_like(h, m, 1e-6, 10000);
    hf_read_silu(h, m);
    m->spec.kv_heads = hf_int(h, "num_key_value_heads", m->spec.heads);
    m->mlp_bias = hf_bool(h, "mlp_bias", false);
}

/* With a window in every layer and without biases it is Mistral's. */
static bool llama_fits(const struct spec *s)
{
    return hf_fits_llama_like(s) && !s->qkv_bias && !s->qk_norm && (s->bias || !hf_windows_all(s));
}

const struct hf_family_row hf_llama = {
    .architecture = "LlamaForCausalLM",
    .bare = "LlamaModel",
    .keys = {hf_keys_rope, hf_keys_llama, llama_keys},
    .read = read_llama,
    HF_ROWS(llama_rows),
    .prefix = "model.",
    .fits = llama_fits,
    .gguf = &gguf,
};
