/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_TEMPLATES_H
#define TOK_CHAT_TEMPLATES_H

/*
 * The names of chat templates, in the order of options and messages. form.c has what each writes:
 *
 *     chatml    <|im_start|>ROLE\nTEXT<|im_end|>\n
 *     llama3    <|begin_of_text|>, then <|start_header_id|>ROLE<|end_header_id|>\n\nTEXT<|eot_id|>;
 *               white space is stripped from both ends of texts
 *     alpaca    a preamble, ### Instruction:, ### Input:, ### Response:, and the end of text
 *     vicuna    a preamble, USER: and ASSISTANT: of v1.1, and the end of text
 *     guanaco   ### Human: ...### Assistant: ...
 *     llm-jp    ### (instruction) ... ### (question) ... ### (answer) ... in Japanese
 */
#define CHAT_TEMPLATE_LIST(FIRST, X)                                                               \
    FIRST("chatml") X("llama3") X("alpaca") X("vicuna") X("guanaco") X("llm-jp")

#define CHAT_TEMPLATE_WORD(name) name
#define CHAT_TEMPLATE_NEXT_WORD(name) ", " name
/* "chatml, llama3, ...", for texts of the preprocessor's. */
#define CHAT_TEMPLATE_WORDS CHAT_TEMPLATE_LIST(CHAT_TEMPLATE_WORD, CHAT_TEMPLATE_NEXT_WORD)

#endif
