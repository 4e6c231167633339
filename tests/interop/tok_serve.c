/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tok_serve TYPE SPECIALS TOKENIZER: a tokenizer as a process, for tests/interop/tok_hf.py. TYPE is
 * a name of --tokenizer-type, "auto", or "tiktoken:PATTERN" for ranks with that --tiktoken-pattern;
 * SPECIALS is "text" or "parse".
 *
 * Prints "ready" and the number of ids, or the error's sentence, as a line. Then takes batches from
 * standard input, all numbers u32: 'E' or 'D' (a byte), how many items, each item's length and its
 * bytes; for 'D' an item is ids of 4 bytes. Answers with each item's result in the same way: ids
 * for 'E', text for 'D'. A failed item is the length 0xffffffff and nothing more.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "tok/tokenizer/tokenizer.h"

struct server {
    struct tokenizer *tok;
    struct tok_work *work;
    struct tok_ids ids;
    struct buf in, text, answer;
};

static int open_it(struct server *s, char **arg)
{
    struct err e = {0};
    struct tok_options o = {.path = arg[3]};
    o.specials = strcmp(arg[2], "parse") == 0 ? TOK_SPECIALS_PARSE : TOK_SPECIALS_TEXT;
    bool ranks = strncmp(arg[1], "tiktoken:", 9) == 0;
    if (ranks)
        o.pattern = arg[1] + 9;
    if (!ranks && strcmp(arg[1], "auto") != 0) {
        o.type = tok_type_named(arg[1]);
        if (o.type == TOK_AUTO)
            return ERR_USAGE;
    }
    int code = tok_open(&o, &s->tok, &e);
    if (code) {
        for (char *p = e.msg; *p; p++)
            *p = *p == '\n' ? ' ' : *p;
        printf("%s\n", e.msg);
        fflush(stdout);
        return code;
    }
    s->work = tok_work_create(s->tok);
    printf("ready %lld\n", (long long)tok_info(s->tok)->vocab_size);
    fflush(stdout);
    return 0;
}

static void put(struct server *s, const void *p, size_t n, bool failed)
{
    char head[4];
    store_u32(head, failed ? UINT32_MAX : (uint32_t)n);
    buf_add(&s->answer, head, 4);
    if (!failed)
        buf_add(&s->answer, p, n);
}

static void one(struct server *s, char what, size_t n)
{
    struct err e = {0};
    if (what == 'E') {
        /* an own block of just this size, so that a sanitizer sees what reads beyond it */
        char *exact = memcpy(mem_grow(NULL, n + 1, 1), s->in.data, n);
        s->ids.n = 0;
        int code = tok_encode(s->tok, s->work, exact, n, &s->ids, &e);
        put(s, s->ids.id, s->ids.n * 4, code != 0);
        free(exact);
    } else {
        buf_reset(&s->text);
        const int32_t *id = (const int32_t *)(const void *)s->in.data;
        int code = tok_decode(s->tok, s->work, id, n / 4, &s->text, &e);
        put(s, s->text.data, s->text.len, code != 0);
    }
}

static bool batch(struct server *s)
{
    char head[5], length[4];
    if (fread(head, 1, 5, stdin) != 5)
        return false;
    buf_reset(&s->answer);
    for (uint32_t i = load_u32(head + 1); i > 0; i--) {
        if (fread(length, 1, 4, stdin) != 4)
            return false;
        size_t n = load_u32(length);
        buf_reset(&s->in);
        if (fread(buf_reserve(&s->in, n + 1), 1, n, stdin) != n)
            return false;
        one(s, head[0], n);
    }
    fwrite(s->answer.data, 1, s->answer.len, stdout);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    struct server s = {0};
    if (argc != 4)
        return ERR_USAGE;
    int code = open_it(&s, argv);
    while (!code && batch(&s))
        ;
    tok_work_destroy(s.work);
    tok_close(s.tok);
    tok_ids_finish(&s.ids);
    buf_finish(&s.in);
    buf_finish(&s.text);
    buf_finish(&s.answer);
    return code;
}
