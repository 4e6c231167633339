/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_FORM_H
#define TOK_CHAT_FORM_H

/* The table of templates; for chat.c. */

#include <stdbool.h>

#include "tok/chat/chat.h"

/*
 * {NAME} is the special token of that name; {eos} the tokenizer's end of sequence; {bos?} and
 * {eos?} are used if the tokenizer's own template has them.
 */
struct chat_turn {
    const char *open; /* NULL: the role is not allowed */
    const char *lead; /* before the text; part of it */
    const char *close;
    const char *after; /* part of no turn */
};

struct chat_form {
    const char *name;
    const char *begin;
    const char *preamble;       /* the default system text; NULL: none */
    const char *preamble_input; /* the same with a CHAT_INPUT among the messages */
    bool system_first;          /* a system turn is allowed only at the beginning */
    bool trim;                  /* strip white space from both ends of texts */
    struct chat_turn turn[CHAT_ROLES];
    const char *end;
};

const struct chat_form *chat_form_find(const char *name); /* NULL: none */

#endif
