/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TALK_H
#define TRAIN_TALK_H

/* Prompts of `train generate --chat`: conversations as ids (tok/chat/chat.h). A zeroed struct is
 * closed; for one thread. */

#include "tok/chat/read.h"
#include "train/job.h"

struct chat_session {
    struct tokenizer *bare, *framed;
    struct chat *chat;
    struct chat_work *work;
    struct chat_record record;
    struct buf mask; /* of no use here */
    struct chat_stop stop;
};

/* The job's tokenizer is open. ERR_USAGE: no such template, or it lacks special tokens. */
int chat_session_open(struct chat_session *t, const struct job *j, const char *template,
                      struct err *e);
void chat_session_close(struct chat_session *t);

/* Appends the ids of a conversation, in which the assistant speaks next: a JSON record if the
 * prompt begins with a brace, else a user message. ERR_DATA for an invalid record. */
int chat_session_encode(struct chat_session *t, const char *prompt, struct tok_ids *ids,
                        struct err *e);

#endif
