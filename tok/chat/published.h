/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_PUBLISHED_H
#define TOK_CHAT_PUBLISHED_H

/* Templates as published, in Jinja (tok/jinja): opened, and conversations laid out by them. */

#include "tok/chat/chat_internal.h"

/* Sets the chat's template and special tokens; name: "auto" or a file. */
int published_open(struct chat *c, const char *name, struct err *e);
void published_close(struct published *p);

struct published_work *published_work_create(void);
void published_work_destroy(struct published_work *p);

/*
 * Lays out w->whole; with `open`, to where an assistant's turn begins. Sets LEARN_ flags aside for
 * what is counted. ERR_DATA: the template refuses the conversation, or writes nothing of a message
 * whose role is unknown.
 */
int published_lay_out(struct chat_work *w, bool open, struct err *e);

/* How a model ends an answer, found in one that is made up. */
struct chat_stop published_stop(struct chat_work *w);

/* Does the template's source, or one of its tokens, spell the special token? */
bool published_writes(const struct published *p, const struct chat_special *s);

const char *published_digest(const struct published *p);
const char *published_date(const struct published *p);

#endif
