/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_SPEC_FAMILIES_H
#define TRAIN_SPEC_FAMILIES_H

/*
 * The families of Hugging Face transformers that weft has models of, in the order of help texts and
 * messages: enumerator, what its row is called (family_*.c), model_type. The first one is FIRST.
 */
#define HF_FAMILY_LIST(FIRST, X)                                                                   \
    FIRST(HF_GPT2, gpt2, "gpt2")                                                                   \
    X(HF_GPT_NEOX, gpt_neox, "gpt_neox")                                                           \
    X(HF_LLAMA, llama, "llama")                                                                    \
    X(HF_MISTRAL, mistral, "mistral")                                                              \
    X(HF_MIXTRAL, mixtral, "mixtral")                                                              \
    X(HF_PHI3, phi3, "phi3")                                                                       \
    X(HF_QWEN2, qwen2, "qwen2")                                                                    \
    X(HF_QWEN3, qwen3, "qwen3")                                                                    \
    X(HF_QWEN2_MOE, qwen2_moe, "qwen2_moe")                                                        \
    X(HF_QWEN3_MOE, qwen3_moe, "qwen3_moe")                                                        \
    X(HF_GEMMA2, gemma2, "gemma2")                                                                 \
    X(HF_GEMMA3, gemma3, "gemma3_text")

/* "gpt2, gpt_neox, ...", for a text of the preprocessor's. */
#define HF_FAMILY_WORD(family, row, type) type
#define HF_FAMILY_NEXT_WORD(family, row, type) ", " type
#define HF_FAMILY_WORDS HF_FAMILY_LIST(HF_FAMILY_WORD, HF_FAMILY_NEXT_WORD)

#endif
