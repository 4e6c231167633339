/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/form.h"

#include <string.h>

#include "tok/chat/templates.h"

#define CHATML(role)                                                                               \
    {                                                                                              \
        "{<|im_start|>}" role "\n", "", "{<|im_end|>}", "\n"                                       \
    }
#define LLAMA3(role)                                                                               \
    {                                                                                              \
        "{<|start_header_id|>}" role "{<|end_header_id|>}\n\n", "", "{<|eot_id|>}", ""             \
    }

static const struct chat_form forms[] = {
    {.name = "chatml",
     .begin = "",
     .turn = {[CHAT_SYSTEM] = CHATML("system"),
              [CHAT_USER] = CHATML("user"),
              [CHAT_ASSISTANT] = CHATML("assistant"),
              [CHAT_TOOL] = CHATML("tool")},
     .end = ""},
    {.name = "llama3",
     .begin = "{<|begin_of_text|>}",
     .trim = true,
     .turn = {[CHAT_SYSTEM] = LLAMA3("system"),
              [CHAT_USER] = LLAMA3("user"),
              [CHAT_ASSISTANT] = LLAMA3("assistant"),
              [CHAT_TOOL] = LLAMA3("tool")},
     .end = ""},
    {.name = "alpaca",
     .begin = "{bos?}",
     .preamble = "Below is an instruction that describes a task. Write a response that "
                 "appropriately completes the request.",
     .preamble_input = "Below is an instruction that describes a task, paired with an input that "
                       "provides further context. Write a response that appropriately completes "
                       "the request.",
     .system_first = true,
     .turn = {[CHAT_SYSTEM] = {"", "", "\n\n", ""},
              [CHAT_USER] = {"### Instruction:\n", "", "\n\n", ""},
              [CHAT_INPUT] = {"### Input:\n", "", "\n\n", ""},
              [CHAT_ASSISTANT] = {"### Response:\n", "", "{eos}", ""}},
     .end = ""},
    {.name = "vicuna",
     .begin = "{bos?}",
     .preamble = "A chat between a curious user and an artificial intelligence assistant. The "
                 "assistant gives helpful, detailed, and polite answers to the user's questions.",
     .system_first = true,
     .turn = {[CHAT_SYSTEM] = {"", "", " ", ""},
              [CHAT_USER] = {"USER: ", "", " ", ""},
              [CHAT_ASSISTANT] = {"ASSISTANT:", " ", "{eos}", ""}},
     .end = ""},
    {.name = "guanaco",
     .begin = "{bos?}",
     .turn = {[CHAT_USER] = {"### Human: ", "", "", ""},
              [CHAT_ASSISTANT] = {"### Assistant:", " ", "", ""}},
     .end = "{eos?}"},
    {.name = "llm-jp",
     .begin = "{bos?}",
     .turn = {[CHAT_USER] = {"### 指示：", "", " ", ""},
              [CHAT_INPUT] = {"### 質問：", "", " ", ""},
              [CHAT_ASSISTANT] = {"### 回答：", "", "", ""}},
     .end = "{eos?}"},
};

enum { FORMS = sizeof(forms) / sizeof(*forms) };

#define COUNT_ONE(name) +1
_Static_assert(FORMS == 0 CHAT_TEMPLATE_LIST(COUNT_ONE, COUNT_ONE), "a form for each template");

const struct chat_form *chat_form_find(const char *name)
{
    for (size_t i = 0; i < FORMS; i++)
        if (!strcmp(forms[i].name, name))
            return &forms[i];
    return NULL;
}

const char *chat_role_name(enum chat_role r)
{
    static const char *const name[CHAT_ROLES] = {"system", "user", "input", "assistant", "tool"};
    return name[r];
}
