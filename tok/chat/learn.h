/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_LEARN_H
#define TOK_CHAT_LEARN_H

/*
 * Which bytes of a rendered conversation are to be learnt, by where they come from.
 *
 * Where a template has {% generation %}, what it encloses. Else of each assistant's turn that is to
 * be learnt, from the first byte after the generation prompt to the end of the token that ends it:
 *
 *   - The generation prompt is the text that add_generation_prompt appends to the turns before. It
 *     is looked for in the template's text between the last data before the message and the
 *     message's first byte, as far as it goes there: a template may write more of it for the answer
 *     to come than for those that were given. Where there is none, learning begins with the
 *     message's first byte.
 *   - The end is, in the template's text of the turn behind the message's last byte, the first end
 *     of text, else the last special token, as those of tool calls may precede it. If the turn has
 *     none, it is the special token right behind it, which begins the next turn, or the first end
 *     of text before other data; without one the turn's text still counts, up to white space.
 *     Where a template does not loop over messages, it is the first special token.
 *   - An empty <think></think> that the template wrote itself is not learnt unless it is asked for.
 */

#include <stdbool.h>
#include <stddef.h>

#include "tok/chat/special.h"
#include "tok/jinja/jinja.h"

/* What messages are, by index. */
enum {
    LEARN_ANSWER = 1,  /* an assistant's */
    LEARN_WANTED = 2,  /* it is to be learnt */
    LEARN_NOT = 4,     /* unlearnt at the record's request, also within {% generation %} */
    LEARN_SAYS = 8,    /* it has something to say */
    LEARN_WRITTEN = 16 /* by learn_bytes: the template wrote some of it */
};

struct learn_request {
    const char *text;
    size_t n;
    const struct jinja_run *run;
    size_t nruns;
    unsigned char *message; /* LEARN_ flags of each */
    size_t nmessages;
    bool generation; /* the template marks what is to be learnt */
    bool think;      /* empty thoughts count */
    const struct special_set *special;
    const char *eos; /* NULL: none */
    size_t neos;
    /* The generation prompt before message k, an answer; n 0: none. With `known`, the one that was
     * given last, which serves if all of it is there. */
    void (*prompt)(void *arg, size_t k, bool known, const char **ret, size_t *ret_n);
    void *arg;
};

/* learn[n]: 1 for bytes that are learnt. */
void learn_bytes(const struct learn_request *q, char *learn);

#endif
