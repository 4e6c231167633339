/* SPDX-License-Identifier: Apache-2.0 */
#include "train/talk.h"

#include <string.h>

int chat_session_open(struct chat_session *t, const struct job *j, const char *template,
                      struct err *e)
{
    int code = job_tokenizer_again(j, true, TOK_SPECIALS_TEXT, &t->bare, e);
    if (!code)
        code = job_tokenizer_again(j, false, TOK_SPECIALS_PARSE, &t->framed, e);
    if (!code)
        code = chat_open(template, t->bare, t->framed, &t->chat, e);
    if (code)
        return code;
    t->work = chat_work_create(t->chat);
    t->stop = chat_stop(t->chat);
    return 0;
}

void chat_session_close(struct chat_session *t)
{
    chat_work_destroy(t->work);
    chat_close(t->chat);
    tok_close(t->bare);
    tok_close(t->framed);
    chat_record_finish(&t->record);
    buf_finish(&t->mask);
}

int chat_session_encode(struct chat_session *t, const char *prompt, struct tok_ids *ids,
                        struct err *e)
{
    size_t n = strlen(prompt);
    const struct chat_message said = {.role = CHAT_USER, .text = prompt, .n = n};
    const struct chat_message *m = &said;
    size_t messages = 1;
    if (prompt[0] == '{') {
        int code = chat_read(&t->record, prompt, n, e);
        if (code)
            return code;
        m = t->record.m;
        messages = t->record.n;
    }
    buf_reset(&t->mask);
    return chat_encode(t->chat, t->work, m, messages, true, ids, &t->mask, e);
}
