/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CHAT_READ_H
#define TOK_CHAT_READ_H

/*
 * A JSON record as a conversation. The first of these forms whose keys exist:
 *
 *     {"messages": [{"role": "user", "content": "..."}, ...]}
 *     {"conversations": [{"from": "human", "value": "..."}, ...]}
 *     {"prompt": "...", "response": "..."}            or "completion"
 *     {"instruction": "...", "input": "...", "output": "..."}    "input" may be missing or empty
 *
 * Roles are system, user, assistant and tool, or human, gpt and observation; a content may also be
 * a list of {"type": "text", "text": "..."}; prompt and response may be lists of messages. A
 * message with "weight": 0 or "train": false is not learnt. Other keys are ignored.
 */

#include <stddef.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/chat/chat.h"

struct json_doc; /* base/format/json.h */

/* A zeroed struct is empty. Messages are valid until the next call. */
struct chat_record {
    struct chat_message *m;
    size_t n, cap;
    struct json_doc *doc;
    struct buf joined; /* contents that were lists of parts */
};

/* ERR_DATA says what is wrong with the record, which is n bytes. */
int chat_parse(struct chat_record *r, const char *line, size_t n, struct err *e); /* into r->doc */
int chat_read_parsed(struct chat_record *r, struct err *e);
int chat_read(struct chat_record *r, const char *line, size_t n, struct err *e);

void chat_record_finish(struct chat_record *r);

#endif
