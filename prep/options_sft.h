/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_OPTIONS_SFT_H
#define PREP_OPTIONS_SFT_H

/* Rows of prep's table that are for `sft` and `unpack` alone; S_ is struct prep_options. */

#include <stddef.h>

#include "base/opt.h"
#include "tok/options.h"

#define PREP_SFT_ROWS(S_, SFT_, UNPACK_)                                                           \
    TOK_FLAG_ROWS(S_, tokenizer, SFT_ | UNPACK_),                                                  \
        TOK_FLAG_VOCAB_SIZE_ROW(S_, tokenizer, SFT_ | UNPACK_),                                    \
        OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, .offset = offsetof(S_, overwrite),        \
                .group = "output", .verbs = SFT_, .basic = true,                                   \
                .brief = "replace output files that exist",                                        \
                .help = "replace output files that exist; without it they are an error before "    \
                        "any work begins, unless they are those of the same work"),                \
        OPT_ROW(.name = "output-prefix", .type = OPT_TEXT, .offset = offsetof(S_, output_prefix),  \
                .meta = "PREFIX", .group = "output", .verbs = SFT_, .basic = true,                 \
                .help = "writes PREFIX.bin, .idx, .pack and .manifest.json"),                      \
        OPT_ROW(.name = "template", .type = OPT_CHOICE, .offset = offsetof(S_, sft_template),      \
                .def = "text", .meta = "text|chatml|llama3|alpaca|vicuna|guanaco|llm-jp",          \
                .group = "examples", .verbs = SFT_, .basic = true,                                 \
                .help = "how a conversation is written down; text: records hold the text itself"), \
        OPT_ROW(.name = "text-key", .type = OPT_TEXT, .offset = offsetof(S_, text_key),            \
                .def = "text", .meta = "KEY", .group = "examples", .verbs = SFT_,                  \
                .needs = "template=text", .help = "key of the text, for --template text"),         \
        OPT_ROW(.name = "response-template", .type = OPT_TEXT,                                     \
                .offset = offsetof(S_, response_template), .meta = "STRING", .group = "examples",  \
                .verbs = SFT_, .basic = true, .needs = "template=text",                            \
                .help = "string that begins an answer: what follows it is learnt. Its first id "   \
                        "is left out "                                                             \
                        "when it is looked for"),                                                  \
        OPT_ROW(.name = "instruction-template", .type = OPT_TEXT,                                  \
                .offset = offsetof(S_, instruction_template), .meta = "STRING",                    \
                .group = "examples", .verbs = SFT_, .basic = true,                                 \
                .needs = "template=text; response-template",                                       \
                .help = "string that begins a question, for texts with several: each answer is "   \
                        "learnt up to "                                                            \
                        "the next question"),                                                      \
        OPT_ROW(.name = "learn", .type = OPT_CHOICE, .offset = offsetof(S_, learn),                \
                .def = "answers", .meta = "answers|all", .group = "examples", .verbs = SFT_,       \
                .basic = true,                                                                     \
                .help = "which tokens have a loss: those of answers (of a text without "           \
                        "--response-template: all), or all"),                                      \
        OPT_ROW(.name = "seq-length", .type = OPT_INT, .offset = offsetof(S_, sft_seq_length),     \
                .def = "2048", .min = 2, .max = 2147483646, .meta = "N", .group = "packing",       \
                .verbs = SFT_, .basic = true,                                                      \
                .help = "most tokens of a sequence, and of an example"),                           \
        OPT_ROW(.name = "overlong", .type = OPT_CHOICE, .offset = offsetof(S_, overlong),          \
                .def = "cut", .meta = "cut|drop", .group = "packing", .verbs = SFT_,               \
                .help = "a longer example loses its end, or is left out"),                         \
        OPT_ROW(.name = "loss-mask", .type = OPT_CHOICE, .offset = offsetof(S_, loss_mask),        \
                .def = "own", .meta = "own|next", .group = "output", .verbs = UNPACK_,             \
                .help =                                                                            \
                    "each place of loss_mask says whether the token there is learnt, or the next " \
                    "one, as in NeMo's packed files"),                                             \
        OPT_ROW(.name = "packing", .type = OPT_CHOICE, .offset = offsetof(S_, packing),            \
                .def = "best-fit", .meta = "best-fit|none", .group = "packing", .verbs = SFT_,     \
                .basic = true,                                                                     \
                .help = "examples side by side in a sequence, or each in one of its own")

#endif
