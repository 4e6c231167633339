/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_OPTIONS_SFT_H
#define PREP_OPTIONS_SFT_H

/* Rows of prep's table that are for `sft` and `unpack` alone; S_ is struct prep_options. */

#include <stddef.h>

#include "base/opt.h"
#include "tok/options.h"

#define PREP_AT(S_, m) .offset = offsetof(S_, m)

#define PREP_SFT_ROWS(S_, SFT_, UNPACK_)                                                           \
    TOK_FLAG_ROWS(S_, tokenizer, SFT_ | UNPACK_),                                                  \
        TOK_FLAG_VOCAB_SIZE_ROW(S_, tokenizer, SFT_ | UNPACK_),                                    \
        {.name = "overwrite",                                                                      \
         .type = OPT_SWITCH,                                                                       \
         PREP_AT(S_, overwrite),                                                                   \
         .section = "output",                                                                      \
         .help = "replaces outputs that are there already",                                        \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "output-prefix",                                                                  \
         .type = OPT_TEXT,                                                                         \
         PREP_AT(S_, output_prefix),                                                               \
         .meta = "PREFIX",                                                                         \
         .section = "output",                                                                      \
         .help = "writes PREFIX.bin, .idx, .pack and .manifest.json",                              \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "template",                                                                       \
         .type = OPT_CHOICE,                                                                       \
         PREP_AT(S_, sft_template),                                                                \
         .def = "text",                                                                            \
         .meta = "text|chatml|llama3|alpaca|vicuna|guanaco|llm-jp",                                \
         .section = "examples",                                                                    \
         .help = "how a conversation is written down; text: records hold the text itself",         \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "text-key",                                                                       \
         .type = OPT_TEXT,                                                                         \
         PREP_AT(S_, text_key),                                                                    \
         .def = "text",                                                                            \
         .meta = "KEY",                                                                            \
         .section = "examples",                                                                    \
         .help = "key of the text, for --template text",                                           \
         .verbs = SFT_},                                                                           \
        {.name = "response-template",                                                              \
         .type = OPT_TEXT,                                                                         \
         PREP_AT(S_, response_template),                                                           \
         .meta = "STRING",                                                                         \
         .section = "examples",                                                                    \
         .help =                                                                                   \
             "string that begins an answer: what follows it is learnt. Its first id is left out "  \
             "when it is looked for",                                                              \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "instruction-template",                                                           \
         .type = OPT_TEXT,                                                                         \
         PREP_AT(S_, instruction_template),                                                        \
         .meta = "STRING",                                                                         \
         .section = "examples",                                                                    \
         .help =                                                                                   \
             "string that begins a question, for texts with several: each answer is learnt up to " \
             "the next question",                                                                  \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "learn",                                                                          \
         .type = OPT_CHOICE,                                                                       \
         PREP_AT(S_, learn),                                                                       \
         .def = "answers",                                                                         \
         .meta = "answers|all",                                                                    \
         .section = "examples",                                                                    \
         .help = "which tokens have a loss: those of answers (of a text without "                  \
                 "--response-template: all), or all",                                              \
         .verbs = SFT_,                                                                            \
         .basic = true},                                                                           \
        {.name = "seq-length",                                                                     \
         .type = OPT_INT,                                                                          \
         PREP_AT(S_, sft_seq_length),                                                              \
         .def = "2048",                                                                            \
         .meta = "N",                                                                              \
         .section = "packing",                                                                     \
         .help = "most tokens of a sequence, and of an example",                                   \
         .verbs = SFT_,                                                                            \
         .min = 2,                                                                                 \
         .max = 2147483646,                                                                        \
         .basic = true},                                                                           \
        {.name = "overlong",                                                                       \
         .type = OPT_CHOICE,                                                                       \
         PREP_AT(S_, overlong),                                                                    \
         .def = "cut",                                                                             \
         .meta = "cut|drop",                                                                       \
         .section = "packing",                                                                     \
         .help = "a longer example loses its end, or is left out",                                 \
         .verbs = SFT_},                                                                           \
        {.name = "loss-mask",                                                                      \
         .type = OPT_CHOICE,                                                                       \
         PREP_AT(S_, loss_mask),                                                                   \
         .def = "own",                                                                             \
         .meta = "own|next",                                                                       \
         .section = "output",                                                                      \
         .help = "each place of loss_mask says whether the token there is learnt, or the next "    \
                 "one, as in NeMo's packed files",                                                 \
         .verbs = UNPACK_},                                                                        \
    {                                                                                              \
        .name = "packing", .type = OPT_CHOICE, PREP_AT(S_, packing), .def = "best-fit",            \
        .meta = "best-fit|none", .section = "packing",                                             \
        .help = "examples side by side in a sequence, or each in one of its own", .verbs = SFT_,   \
        .basic = true                                                                              \
    }

#endif
