/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_CHAT_MAKE_H
#define TESTS_TOK_CHAT_MAKE_H

/*
 * A byte-level tokenizer for conversations: ids 0 to 255 are bytes in the order of GPT-2's letters,
 * then "\n\n", " a", "hi" and " hi" as merges, then special tokens.
 */

#include <string.h>

#include "base/core/buf.h"
#include "tests/tok/hf_make.h"
#include "tok/text/byte_alphabet.h"

enum {
    MADE_NN = 256,
    MADE_HI = 257,
    MADE_S_HI = 258,
    MADE_EOS = 259,
    MADE_IM_START,
    MADE_IM_END,
    MADE_BOT,
    MADE_START_HEADER,
    MADE_END_HEADER,
    MADE_EOT,
    MADE_BOS
};

static const char *const chat_made[] = {"</s>",
                                        "<|im_start|>",
                                        "<|im_end|>",
                                        "<|begin_of_text|>",
                                        "<|start_header_id|>",
                                        "<|end_header_id|>",
                                        "<|eot_id|>",
                                        "<s>"};

/* `framed`: the template puts <s> before each text and </s> after it. */
static inline void chat_make(struct tokenizer **ret, bool specials, bool framed,
                             enum tok_specials mode)
{
    struct buf model = {0}, added = {0}, text = {0};
    struct err e;
    buf_adds(&model, "{\"type\":\"BPE\",\"vocab\":{");
    for (int b = 0; b < 256; b++) {
        char letter[4];
        size_t n = letter_put(letter, (uint8_t)b);
        buf_adds(&model, "\"");
        if (b == '"' || b == '\\')
            buf_addc(&model, '\\');
        buf_add(&model, letter, n);
        buf_addf(&model, "\":%d,", b);
    }
    buf_adds(&model, "\"\u010a\u010a\":256,\"hi\":257,\"\u0120hi\":258},"
                     "\"merges\":[\"\u010a \u010a\",\"h i\",\"\u0120 hi\"]}");
    for (int i = 0; i < (specials ? 8 : 1); i++)
        buf_addf(&added,
                 "%s{\"id\":%d,\"content\":\"%s\",\"single_word\":false,\"lstrip\":false,"
                 "\"rstrip\":false,\"normalized\":false,\"special\":true}",
                 i ? "," : "", MADE_EOS + i, chat_made[i]);
    struct hf_make m = {.added = buf_str(&added),
                        .pre = HF_LEVEL("false"),
                        .post = framed ? "{\"type\":\"TemplateProcessing\",\"single\":["
                                         "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
                                         "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
                                         "{\"SpecialToken\":{\"id\":\"</s>\",\"type_id\":0}}],"
                                         "\"pair\":[],\"special_tokens\":{"
                                         "\"<s>\":{\"id\":\"<s>\",\"ids\":[266],\"tokens\":[]},"
                                         "\"</s>\":{\"id\":\"</s>\",\"ids\":[259],\"tokens\":[]}}}"
                                       : NULL,
                        .dec = HF_LEVEL("false"),
                        .model = buf_str(&model)};
    T_OK(hf_open(&m, mode, ret, &e), &e);
    buf_finish(&model);
    buf_finish(&added);
    buf_finish(&text);
}

#endif
