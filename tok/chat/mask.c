/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/mask.h"

#include <string.h>

static int encode_mark(const struct tokenizer *t, const char *text, const char *what,
                       struct tok_ids *ret, struct err *e)
{
    struct tok_work *w = tok_work_create(t);
    int code = tok_encode(t, w, text, strlen(text), ret, e);
    tok_work_destroy(w);
    if (code)
        return err_wrap(e, "the string that begins %s", what);
    if (ret->n < 2)
        return err_set(e, ERR_USAGE,
                       "the string '%s' that begins %s needs two ids or more: the first is dropped",
                       text, what);
    ret->n--;
    memmove(ret->id, ret->id + 1, ret->n * sizeof(*ret->id));
    return 0;
}

int chat_marks_init(struct chat_marks *m, const struct tokenizer *bare, const char *answer,
                    const char *question, struct err *e)
{
    *m = (struct chat_marks){0};
    int code = encode_mark(bare, answer, "an answer", &m->answer, e);
    if (!code && question)
        code = encode_mark(bare, question, "a question", &m->question, e);
    if (code)
        chat_marks_finish(m);
    return code;
}

void chat_marks_finish(struct chat_marks *m)
{
    tok_ids_finish(&m->answer);
    tok_ids_finish(&m->question);
    *m = (struct chat_marks){0};
}

/* The next occurrence of the mark from `at` on; n: none. */
static size_t mask_find(const struct tok_ids *mark, const int32_t *id, size_t n, size_t at,
                        int64_t pad)
{
    for (; mark->n <= n && at <= n - mark->n; at++) {
        size_t k = 0;
        while (k < mark->n && id[at + k] == mark->id[k] && id[at + k] != pad)
            k++;
        if (k == mark->n)
            return at;
    }
    return n;
}

/* Masks all up to the last answer's mark. */
static bool mask_before(const struct chat_marks *m, const int32_t *id, size_t n, int64_t pad,
                        char *mask)
{
    size_t end = 0;
    for (size_t at = mask_find(&m->answer, id, n, 0, pad); at < n;
         at = mask_find(&m->answer, id, n, at + 1, pad))
        end = at + m->answer.n;
    memset(mask, 0, end);
    return end > 0;
}

/*
 * Pairs in order: the k-th question belongs to the k-th answer, whatever is between. Both are
 * walked in step, so that nothing need be stored.
 */
static bool mask_between(const struct chat_marks *m, const int32_t *id, size_t n, int64_t pad,
                         char *mask)
{
    size_t answer = mask_find(&m->answer, id, n, 0, pad),
           question = mask_find(&m->question, id, n, 0, pad);
    if (answer == n || question == n)
        return false;
    bool first = true, zero = question > answer + m->answer.n;
    size_t last = 0;
    while (answer < n && (zero || question < n)) {
        size_t from = zero || first ? 0 : question, to = answer + m->answer.n;
        if (from < to)
            memset(mask + from, 0, to - from);
        if (!zero)
            question = mask_find(&m->question, id, n, question + 1, pad);
        answer = mask_find(&m->answer, id, n, answer + 1, pad);
        zero = first = false;
    }
    for (; question < n; question = mask_find(&m->question, id, n, question + 1, pad))
        last = question;
    if (last)
        memset(mask + last, 0, n - last);
    return true;
}

bool chat_mask(const struct chat_marks *m, const int32_t *id, size_t n, int64_t pad, char *mask)
{
    memset(mask, 1, n);
    bool found =
        m->question.n ? mask_between(m, id, n, pad, mask) : mask_before(m, id, n, pad, mask);
    for (size_t i = 0; i < n; i++)
        mask[i] = found && mask[i] && id[i] != pad;
    return found;
}
