/* SPDX-License-Identifier: Apache-2.0 */

/*
 * chat_dump TOKENIZER TEMPLATE [WORD...]: conversations, one JSON record a line of standard input,
 * as {"ids":[...],"mask":[...],"text":"..."}, or {"error":"..."}. Words: open, the assistant is
 * about to speak; parse, last, think, as in struct chat_rules. The last line is {"stop": id,
 * "unwritten": messages}.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "tok/chat/chat.h"

static void list(struct buf *b, const char *key, const struct tok_ids *ids, const char *mask)
{
    buf_addf(b, "\"%s\":[", key);
    for (size_t i = 0; i < ids->n; i++)
        buf_addf(b, "%s%d", i ? "," : "", mask ? mask[i] : ids->id[i]);
    buf_adds(b, "],");
}

static void answer(struct chat_work *w, bool open, const char *line, size_t n, struct buf *b)
{
    struct tok_ids ids = {0};
    struct buf mask = {0}, text = {0};
    struct err e;
    int code = chat_encode_record(w, line, n, open, &ids, &mask, &e);
    buf_adds(b, "{");
    if (code) {
        jsonw_key(b, "error");
        jsonw_string(b, e.msg, strlen(e.msg));
    } else {
        chat_last_text(w, &text);
        list(b, "ids", &ids, NULL);
        list(b, "mask", &ids, buf_str(&mask));
        jsonw_key(b, "text");
        jsonw_string(b, buf_str(&text), text.len);
    }
    buf_adds(b, "}\n");
    tok_ids_finish(&ids);
    buf_finish(&mask);
    buf_finish(&text);
}

static void answer_all(const struct chat *chat, bool open)
{
    struct chat_work *w = chat_work_create(chat);
    struct buf b = {0};
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        buf_reset(&b);
        answer(w, open, line, (size_t)(n - (line[n - 1] == '\n')), &b);
        fwrite(b.data, 1, b.len, stdout);
    }
    printf("{\"stop\":%lld,\"unwritten\":%llu}\n", (long long)chat_stop(chat).id,
           (unsigned long long)chat_work_unwritten(w));
    free(line);
    buf_finish(&b);
    chat_work_destroy(w);
}

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 3; i < argc; i++)
        if (!strcmp(argv[i], word))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct tokenizer *t[2] = {NULL};
    struct chat *chat = NULL;
    struct err e;
    if (argc < 3)
        return 2;
    int code = 0;
    for (int i = 0; i < 2 && !code; i++)
        code =
            tok_open(&(struct tok_options){.path = argv[1],
                                           .no_template = !i,
                                           .specials = i ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT},
                     &t[i], &e);
    const struct chat_rules rules = {.learn = has_word(argc, argv, "last") ? CHAT_LEARN_LAST
                                                                           : CHAT_LEARN_ANSWERS,
                                     .learn_think = has_word(argc, argv, "think"),
                                     .parse = has_word(argc, argv, "parse")};
    if (!code)
        code = chat_open(argv[2], t[0], t[1], &chat, &e);
    if (!code)
        code = chat_set_rules(chat, rules, &e);
    if (code)
        fprintf(stderr, "%s\n", e.msg);
    else
        answer_all(chat, has_word(argc, argv, "open"));
    chat_close(chat);
    tok_close(t[0]);
    tok_close(t[1]);
    return code ? code : ferror(stdin) || fflush(stdout);
}
