/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

static const char think[] = "<think>", think_end[] = "</think>";

enum { ENDS = 3 };

struct sft_checker {
    const struct tokenizer *tok;
    struct tok_work *work;
    int64_t end[ENDS]; /* -1: none */
    int64_t bos, think;
    struct buf text;
};

struct sft_checker *sft_checker_create(const struct tokenizer *tok, const struct chat *chat)
{
    const struct tok_info *i = tok_info(tok);
    struct sft_checker *c = mem_new(1, sizeof(*c));
    *c = (struct sft_checker){.tok = tok,
                              .work = tok_work_create(tok),
                              .end = {i->eod, i->eos, chat ? chat_stop(chat).id : -1},
                              .bos = i->bos,
                              .think = tok_find(tok, think)};
    return c;
}

void sft_checker_destroy(struct sft_checker *c)
{
    if (!c)
        return;
    tok_work_destroy(c->work);
    buf_finish(&c->text);
    free(c);
}

bool sft_checker_ends(const struct sft_checker *c, int32_t id)
{
    for (int i = 0; i < ENDS; i++)
        if (c->end[i] >= 0 && c->end[i] == id)
            return true;
    return false;
}

static bool has_empty_thought(const char *text, size_t n)
{
    const char *end = text + n;
    for (const char *p = text; (p = memmem(p, (size_t)(end - p), think, sizeof(think) - 1));) {
        p += sizeof(think) - 1;
        const char *q = p;
        while (q < end && strchr(" \t\r\n", *q) && *q)
            q++;
        if ((size_t)(end - q) >= sizeof(think_end) - 1 &&
            !memcmp(q, think_end, sizeof(think_end) - 1))
            return true;
    }
    return false;
}

/* A thought may be spelled by one token or by many, so that text is searched: of each stretch that
 * is learnt. */
static bool learns_empty_thought(struct sft_checker *c, const int32_t *id, const char *learn,
                                 size_t n)
{
    bool found = false;
    struct err ignored;
    for (size_t i = 0, end; i < n && !found; i = end) {
        for (end = i + 1; end < n && learn[end] == learn[i];)
            end++;
        buf_reset(&c->text);
        if (learn[i] && !tok_decode(c->tok, c->work, id + i, end - i, &c->text, &ignored))
            found = has_empty_thought(buf_str(&c->text), c->text.len);
    }
    return found;
}

void sft_check(struct sft_checker *c, const struct sft_example *x, struct sft_checks *sum)
{
    bool some = false, ends = false, known = false, twice = false;
    bool thinks = memmem(x->line, x->bytes, think, sizeof(think) - 1) != NULL;
    for (size_t i = 0; i < x->n; i++) {
        int32_t id = x->id[i];
        some |= x->learn[i] != 0;
        ends |= x->learn[i] && sft_checker_ends(c, id);
        thinks |= c->think >= 0 && id == c->think;
        twice |= i && c->bos >= 0 && id == c->bos && x->id[i - 1] == c->bos;
    }
    for (int i = 0; i < ENDS; i++)
        known |= c->end[i] >= 0;
    sum->endless += known && some && !ends && !x->cut;
    sum->twice += twice;
    sum->thought += thinks && learns_empty_thought(c, x->id, x->learn, x->n);
}
