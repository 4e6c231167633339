/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_OPTIONS_SFT_H
#define PREP_OPTIONS_SFT_H

/* Rows of prep's table for `sft` and `unpack` only; S_ is struct prep_options. */

#include <stddef.h>

#include "base/cli/opt.h"
#include "tok/chat/templates.h"
#include "tok/tokenizer/options.h"

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
                .brief = "writes PREFIX.bin, .idx and .pack",                                      \
                .help = "writes PREFIX.bin, .idx, .pack and .manifest.json"),                      \
        OPT_ROW(.name = "template", .type = OPT_TEXT, .offset = offsetof(S_, sft_template),        \
                .def = "text", .meta = "text|auto|NAME|FILE", .group = "conversation",             \
                .verbs = SFT_, .basic = true, .brief = "chat template of the conversations",       \
                .help = "chat template of the conversations: auto, the one in the tokenizer's "    \
                        "folder; a name (" CHAT_TEMPLATE_WORDS "); a file in Jinja; text: "        \
                        "records have the text itself"),                                           \
        OPT_ROW(.name = "text-key", .type = OPT_TEXT, .offset = offsetof(S_, text_key),            \
                .def = "text", .meta = "KEY", .group = "conversation", .verbs = SFT_,              \
                .needs = "template=text", .help = "key of the text, for --template text"),         \
        OPT_ROW(.name = "response-template", .type = OPT_TEXT,                                     \
                .offset = offsetof(S_, response_template), .meta = "STRING",                       \
                .group = "conversation", .verbs = SFT_, .basic = true, .needs = "template=text",   \
                .brief = "string that begins an answer",                                           \
                .help =                                                                            \
                    "string that begins an answer: the loss covers what follows; its first id is " \
                    "ignored in the search"),                                                      \
        OPT_ROW(.name = "instruction-template", .type = OPT_TEXT,                                  \
                .offset = offsetof(S_, instruction_template), .meta = "STRING",                    \
                .group = "conversation", .verbs = SFT_, .basic = true,                             \
                .needs = "template=text; response-template",                                       \
                .brief = "string that begins a question",                                          \
                .help = "string that begins a question, for texts with several: each answer is "   \
                        "learnt up to the next question"),                                         \
        OPT_ROW(.name = "learn", .type = OPT_CHOICE, .offset = offsetof(S_, learn),                \
                .def = "answers", .meta = "answers|last|all", .group = "conversation",             \
                .verbs = SFT_, .basic = true, .brief = "tokens that have a loss",                  \
                .help = "tokens that have a loss: those of answers (of a text without "            \
                        "--response-template: all), of the last answer of a conversation, or "     \
                        "all; a message with \"weight\": 0 or \"train\": false is no answer "      \
                        "to learn"),                                                               \
        OPT_ROW(.name = "add-generation-prompt", .type = OPT_SWITCH,                               \
                .offset = offsetof(S_, add_prompt), .def = "false", .group = "conversation",       \
                .verbs = SFT_, .needs = "!template=text",                                          \
                .brief = "end with the begin of an answer",                                        \
                .help = "end conversations with what the template writes where the assistant is "  \
                        "to speak, as transformers' add_generation_prompt does"),                  \
        OPT_ROW(.name = "learn-think", .type = OPT_SWITCH, .offset = offsetof(S_, learn_think),    \
                .def = "false", .group = "conversation", .verbs = SFT_,                            \
                .needs = "!template=text; !learn=all",                                             \
                .brief = "learn empty thoughts of the template",                                   \
                .help = "learn an empty <think></think> that a template in Jinja puts before an "  \
                        "answer by itself, too"),                                                  \
        OPT_ROW(.name = "seq-length", .type = OPT_INT, .offset = offsetof(S_, sft_seq_length),     \
                .def = "2048", .min = 2, .max = 2147483646, .meta = "N", .group = "packing",       \
                .verbs = SFT_, .basic = true, .help = "longest sequence and example, in tokens"),  \
        OPT_ROW(.name = "overlong", .type = OPT_CHOICE, .offset = offsetof(S_, overlong),          \
                .def = "truncate", .meta = "truncate|drop|split", .group = "packing",              \
                .verbs = SFT_, .brief = "what to do with longer examples",                         \
                .help =                                                                            \
                    "longer examples are truncated at the end, or dropped, or split: the rest "    \
                    "of one becomes further examples (trl's bfd_split)"),                          \
        OPT_ROW(.name = "show", .type = OPT_INT, .offset = offsetof(S_, show), .max = 1e6,         \
                .meta = "N", .group = "output", .verbs = SFT_,                                     \
                .brief = "print the first N examples with their masks",                            \
                .help = "print the tokens of the first N examples and which of them are learnt: "  \
                        "in colour on a terminal, else a line for each token; without "            \
                        "--output-prefix nothing else is done"),                                   \
        OPT_ROW(.name = "loss-mask", .type = OPT_CHOICE, .offset = offsetof(S_, loss_mask),        \
                .def = "own", .meta = "own|next", .group = "output", .verbs = UNPACK_,             \
                .brief = "what loss_mask refers to",                                               \
                .help = "each entry of loss_mask is for the token there, or for the "              \
                        "next one, as in NeMo's packed files"),                                    \
        OPT_ROW(.name = "packing", .type = OPT_CHOICE, .offset = offsetof(S_, packing),            \
                .def = "best-fit", .meta = "best-fit|none", .group = "packing", .verbs = SFT_,     \
                .basic = true, .brief = "pack several examples per sequence",                      \
                .help = "pack several examples into a sequence, or put each in its own")

#endif
