/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_FORM_H
#define TOK_CHAT_FORM_H

/* The table of templates; for chat.c. */

#include <stdbool.h>

#include "tok/chat/chat.h"

/*
 * {NAME} is the special token of that name; {eos} the tokenizer's end of sequence; {bos?} and
 * {eos?} are there if the tokenizer's own template puts them round a text.
 */
struct chat_turn {
    const char *open; /* NULL: the role has no place */
    const char *lead; /* before the text; belongs to it */
    const char *close;
    const char *after; /* belongs to nobody */
};

struct chat_form {
    const char *name;
    const char *begin;
    const char *preamble;       /* the system's text where there is none; NULL: no turn of it */
    const char *preamble_input; /* the same with a CHAT_INPUT among the messages */
    bool system_first;          /* that turn stands nowhere else */
    bool trim;                  /* white space at the ends of texts goes */
    struct chat_turn turn[CHAT_ROLES];
    const char *end;
};

const struct chat_form *chat_form_find(const char *name); /* NULL: none */
const char *chat_form_names(void);                        /* "chatml, llama3, ..." */

#endif
