/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/learn.h"

#include <string.h>

/* A stretch of a message's data without other messages' data in it; of an empty message, a stretch
 * of the template's text in its turn. Runs [first, last) lie in it. */
struct stretch {
    size_t message;
    size_t begin, end; /* bytes of the data; begin == end: there is none */
    size_t before;     /* where the data before it ends */
    size_t turn;       /* where the template's text of its turn behind it ends, at least `end` */
    size_t after;      /* where the next data begins, or the text ends */
    bool quoted;       /* the data is written in another message's turn */
};

/* ---- by {% generation %} ----------------------------------------------------------------------
 */

static void learn_generated(const struct learn_request *q, char *learn)
{
    size_t at = 0;
    for (size_t i = 0; i < q->nruns; at += q->run[i++].n) {
        int32_t k = q->run[i].message;
        bool wanted = k < 0 || (size_t)k >= q->nmessages || !(q->message[k] & LEARN_NOT);
        memset(learn + at, q->run[i].is_generated && wanted, q->run[i].n);
    }
}

/* ---- stretches --------------------------------------------------------------------------------
 */

static bool has_data(const struct jinja_run *r)
{
    return r->is_data && r->message >= 0;
}

/* Data of another message, or text of its turn. */
static bool is_of_other(const struct jinja_run *r, size_t k)
{
    return r->message >= 0 && r->message != (int32_t)k;
}

/* Where the text of the turn of message k that begins at run i, byte `at`, ends; and where the next
 * data begins. */
static void look_behind(const struct learn_request *q, size_t i, size_t at, struct stretch *s)
{
    bool in_turn = true;
    s->turn = s->end = at;
    for (; i < q->nruns && !q->run[i].is_data; at += q->run[i++].n) {
        in_turn &= q->run[i].message == (int32_t)s->message;
        if (in_turn)
            s->turn = at + q->run[i].n;
    }
    s->after = i < q->nruns ? at : q->n;
}

/* The next stretch from run *i, byte *at, on; false: there is none. */
static bool next_stretch(const struct learn_request *q, size_t *i, size_t *at, size_t *before,
                         struct stretch *s)
{
    while (*i < q->nruns && !has_data(&q->run[*i])) {
        *at += q->run[(*i)++].n;
        if (q->run[*i - 1].is_data)
            *before = *at;
    }
    if (*i >= q->nruns)
        return false;
    *s = (struct stretch){.message = (size_t)q->run[*i].message, .begin = *at, .before = *before};
    bool inside = *i && !q->run[*i - 1].is_data && is_of_other(&q->run[*i - 1], s->message);
    size_t end = *at, next = *i;
    for (size_t k = *i, to = *at; k < q->nruns; k++) {
        if (is_of_other(&q->run[k], s->message))
            break;
        to += q->run[k].n;
        if (has_data(&q->run[k])) {
            end = to;
            next = k + 1;
        }
    }
    s->quoted = inside && next < q->nruns && q->run[next].message == q->run[*i - 1].message;
    *i = next;
    *at = *before = end;
    look_behind(q, next, end, s);
    return true;
}

/* ---- the ends of a turn -----------------------------------------------------------------------
 */

static size_t common(const char *a, size_t na, const char *b, size_t nb)
{
    size_t n = 0;
    while (n < na && n < nb && a[n] == b[n])
        n++;
    return n;
}

/* Behind a generation prompt in text[from .. to), as far as it goes; 0: it is not there. */
static size_t behind_text(const struct learn_request *q, size_t from, size_t to, const char *prompt,
                          size_t n, bool *ret_whole)
{
    size_t best = 0, end = 0;
    for (size_t p = from; n && p < to; p++) {
        size_t k = common(q->text + p, to - p, prompt, n);
        if (k && k >= best && (k == n || p + k == to || 2 * k >= n)) {
            best = k;
            end = p + k;
        }
    }
    *ret_whole = n && best == n;
    return end;
}

/* Behind the generation prompt of message k there; `otherwise` if it is not there. */
static size_t behind_prompt(const struct learn_request *q, size_t k, size_t from, size_t to,
                            size_t otherwise)
{
    const char *prompt = NULL;
    size_t n = 0, end;
    bool whole;
    q->prompt(q->arg, k, true, &prompt, &n);
    end = behind_text(q, from, to, prompt, n, &whole);
    if (whole)
        return end;
    q->prompt(q->arg, k, false, &prompt, &n);
    end = behind_text(q, from, to, prompt, n, &whole);
    return end ? end : otherwise;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static size_t skip_white(const char *text, size_t at, size_t to)
{
    while (at < to && is_white(text[at]))
        at++;
    return at;
}

/* Behind an empty thought at `at`, or that begins just before it, and which must end by `to`. */
static size_t behind_thought(const char *text, size_t at, size_t to)
{
    static const char open[] = "<think>", close[] = "</think>";
    size_t before = at;
    while (before && is_white(text[before - 1]))
        before--;
    bool begun = before >= sizeof(open) - 1 &&
                 !memcmp(text + before - (sizeof(open) - 1), open, sizeof(open) - 1);
    size_t p = begun ? before - (sizeof(open) - 1) : skip_white(text, at, to);
    if (to - p < sizeof(open) - 1 || memcmp(text + p, open, sizeof(open) - 1))
        return at;
    p = skip_white(text, p + sizeof(open) - 1, to);
    if (to - p < sizeof(close) - 1 || memcmp(text + p, close, sizeof(close) - 1))
        return at;
    return skip_white(text, p + sizeof(close) - 1, to);
}

/* A token that may end a turn: bytes [begin, end); end 0: none. */
struct ending {
    size_t begin, end;
};

/* The first end of text in text[from .. to). */
static struct ending end_of_text(const struct learn_request *q, size_t from, size_t to)
{
    const char *p =
        q->neos && to > from ? memmem(q->text + from, to - from, q->eos, q->neos) : NULL;
    size_t at = p ? (size_t)(p - q->text) : 0;
    return p ? (struct ending){at, at + q->neos} : (struct ending){0, 0};
}

/* The first or the last special token there. */
static struct ending end_of_special(const struct learn_request *q, size_t from, size_t to,
                                    bool first)
{
    struct ending found = {0, 0};
    for (size_t p = from; p < to && !(first && found.end);) {
        const struct chat_special *s = special_at(q->special, q->text + p, to - p);
        if (s)
            found = (struct ending){p, p + s->n};
        p += s ? s->n : 1;
    }
    return found;
}

/* What ends a turn in its own text. */
static struct ending end_within(const struct learn_request *q, size_t from, size_t to)
{
    struct ending found = end_of_text(q, from, to);
    return found.end ? found : end_of_special(q, from, to, false);
}

static size_t end_of_turn(const struct learn_request *q, const struct stretch *s)
{
    const struct chat_special *next = special_at(q->special, q->text + s->turn, s->after - s->turn);
    size_t end = end_within(q, s->end, s->turn).end;
    if (!end && next)
        end = s->turn + next->n;
    if (!end)
        end = end_of_text(q, s->end, s->after).end;
    if (!end && s->turn == s->end)
        end = end_of_special(q, s->end, s->after, true).end;
    if (end)
        return end;
    for (end = s->turn; end > s->end && is_white(q->text[end - 1]);)
        end--;
    return end;
}

/* ---- turns ------------------------------------------------------------------------------------
 */

static void learn_stretch(const struct learn_request *q, const struct stretch *s, char *learn)
{
    size_t from = behind_prompt(q, s->message, s->before, s->begin, s->begin);
    size_t to = end_of_turn(q, s);
    if (!q->think)
        from = behind_thought(q->text, from, s->begin);
    if (from < to)
        memset(learn + from, 1, to - from);
}

/* A message without a byte of its own: its turn is the template's text alone. */
static void learn_empty(const struct learn_request *q, size_t k, char *learn)
{
    size_t begin = 0, end = 0, at = 0;
    for (size_t i = 0; i < q->nruns; at += q->run[i++].n) {
        if (q->run[i].message != (int32_t)k)
            continue;
        begin = end ? begin : at;
        end = at + q->run[i].n;
    }
    const struct ending last = end_within(q, begin, end);
    size_t to = last.end, from = end ? behind_prompt(q, k, begin, end, last.begin) : 0;
    if (!q->think)
        from = behind_thought(q->text, from, end);
    if (from < to)
        memset(learn + from, 1, to - from);
}

void learn_bytes(const struct learn_request *q, char *learn)
{
    size_t i = 0, at = 0, before = 0;
    struct stretch s;
    memset(learn, 0, q->n);
    while (next_stretch(q, &i, &at, &before, &s)) {
        if (s.message >= q->nmessages)
            continue;
        q->message[s.message] |= LEARN_WRITTEN;
        if (!q->generation && !s.quoted && q->message[s.message] & LEARN_WANTED)
            learn_stretch(q, &s, learn);
    }
    for (size_t k = 0; k < q->nmessages && !q->generation; k++)
        if ((q->message[k] & (LEARN_WANTED | LEARN_WRITTEN | LEARN_SAYS)) == LEARN_WANTED)
            learn_empty(q, k, learn);
    if (q->generation)
        learn_generated(q, learn);
}
