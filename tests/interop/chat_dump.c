/* SPDX-License-Identifier: Apache-2.0 */

/*
 * chat_dump TOKENIZER TEMPLATE [open]: conversations, one JSON record a line of standard input, as
 * {"ids":[...],"mask":[...],"text":"..."}, or {"error":"..."}; with `open` the assistant is about
 * to speak.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "tok/chat/read.h"

static void list(struct buf *b, const char *key, const struct tok_ids *ids, const char *mask)
{
    buf_addf(b, "\"%s\":[", key);
    for (size_t i = 0; i < ids->n; i++)
        buf_addf(b, "%s%d", i ? "," : "", mask ? mask[i] : ids->id[i]);
    buf_adds(b, "],");
}

static void answer(const struct chat *chat, struct chat_work *w, bool open, const char *line,
                   size_t n, struct buf *b)
{
    struct chat_record r = {0};
    struct tok_ids ids = {0};
    struct buf mask = {0}, text = {0};
    struct err e;
    int code = chat_read(&r, line, n, &e);
    if (!code)
        code = chat_encode(chat, w, r.m, r.n, open, &ids, &mask, &e);
    if (!code)
        code = chat_text(chat, w, r.m, r.n, open, &text, &e);
    buf_adds(b, "{");
    if (code) {
        jsonw_key(b, "error");
        jsonw_string(b, e.msg, strlen(e.msg));
    } else {
        list(b, "ids", &ids, NULL);
        list(b, "mask", &ids, buf_str(&mask));
        jsonw_key(b, "text");
        jsonw_string(b, buf_str(&text), text.len);
    }
    buf_adds(b, "}\n");
    chat_record_finish(&r);
    tok_ids_finish(&ids);
    buf_finish(&mask);
    buf_finish(&text);
}

int main(int argc, char **argv)
{
    struct tokenizer *t[2] = {NULL};
    struct chat *chat;
    struct err e;
    if (argc != 3 && argc != 4)
        return 2;
    int code = 0;
    for (int i = 0; i < 2 && !code; i++)
        code =
            tok_open(&(struct tok_options){.path = argv[1],
                                           .no_template = !i,
                                           .specials = i ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT},
                     &t[i], &e);
    if (!code)
        code = chat_open(argv[2], t[0], t[1], &chat, &e);
    if (code) {
        fprintf(stderr, "%s\n", e.msg);
        return code;
    }
    struct chat_work *w = chat_work_create(chat);
    struct buf b = {0};
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        buf_reset(&b);
        answer(chat, w, argc == 4, line, (size_t)(n - (line[n - 1] == '\n')), &b);
        fwrite(b.data, 1, b.len, stdout);
    }
    free(line);
    buf_finish(&b);
    chat_work_destroy(w);
    chat_close(chat);
    tok_close(t[0]);
    tok_close(t[1]);
    return ferror(stdin) || fflush(stdout);
}
