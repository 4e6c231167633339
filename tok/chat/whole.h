/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_WHOLE_H
#define TOK_CHAT_WHOLE_H

/*
 * A JSON record as a published template sees it: its messages as they are, with all their keys, and
 * what stands beside them. As transformers 5.23 hands them on, keys of a message whose value is
 * null are left out, and reasoning is there under the names `reasoning_content` and `thinking`,
 * whichever of these and `reasoning` the message has. The other forms of read.h become messages
 * with a role and a content.
 */

#include "base/core/arena.h"
#include "tok/chat/read.h"
#include "base/format/json.h"

struct chat_whole {
    struct json messages;          /* a list of objects, each with a string `role` */
    const struct json *tools;      /* NULL: none; also read out of a string of JSON */
    const struct json *documents;  /* NULL: none */
    const struct json *parameters; /* the object chat_template_kwargs; NULL: none */

    struct chat_record record;
    struct json_doc *tools_doc;
    struct arena nodes;
};

/* Valid until the next call; a zeroed struct is empty. ERR_DATA as chat_read. */
int chat_whole_read(struct chat_whole *c, const char *line, size_t n, struct err *e);
/* Messages that need no record. */
void chat_whole_set(struct chat_whole *c, const struct chat_message *m, size_t n);
void chat_whole_finish(struct chat_whole *c);

/* "weight": 0 or "train": false: the message is not to be learnt. */
bool chat_is_unlearnt(const struct json *message);

#endif
