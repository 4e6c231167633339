/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/utf8.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/text/specials.h"

/*
 * Under TOK_SPECIALS_ERROR: the position in raw text of the special string that encoding found,
 * perhaps in normalized text. It is searched only then, so that encoding need not track positions.
 */

/* The first special token of `a` from `at` on, its position in at->from. */
static const struct added_token *next_special(const struct added *a, const char *text, size_t n,
                                              struct added_at *at)
{
    while (a && added_next(a, text, n, false, at, NULL)) {
        at->done = at->end;
        if (at->token->special)
            return at->token;
    }
    return NULL;
}

static const struct added_token *find_normal(const struct pipe *p, struct pipe_work *w,
                                             const char *text, size_t n, unsigned edge)
{
    struct err ignored;
    struct added_at at = {0};
    if (pipe_normalize_edge(&p->spec, w, text, n, edge, &w->norm, &ignored))
        return NULL;
    const struct added_token *t = next_special(p->normal, w->norm.data, w->norm.len, &at);
    added_end(&at);
    return t;
}

/* A start of a character between the two, `low` if there is none. */
static size_t middle(const char *text, size_t low, size_t high)
{
    size_t half = low + (high - low) / 2;
    while (half > low && ((unsigned char)text[half] & 0xc0) == 0x80)
        half--;
    size_t k;
    utf8_at(text + low, &k);
    return half > low || low + k >= high ? half : low + k;
}

/*
 * The shortest prefix of a part that has it once normalized, and the shortest suffix of that
 * prefix, by bisection, since longer text has it, too. Returns the start of that suffix, in *ret
 * the token.
 */
static size_t place_in(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                       unsigned edge, const struct added_token **ret)
{
    size_t none = 0, end = n, begin = 0, late = n;
    for (size_t half; (half = middle(text, none, end)) > none;)
        if (find_normal(p, w, text, half, edge))
            end = half;
        else
            none = half;
    *ret = find_normal(p, w, text, end, edge);
    late = end;
    for (size_t half; (half = middle(text, begin, late)) > begin;)
        if (find_normal(p, w, text + half, end - half, EDGE_CUT))
            begin = half;
        else
            late = half;
    return begin;
}

static const struct added_token *find_special(const struct pipe *p, struct pipe_work *w,
                                              const char *text, size_t n, size_t *ret_at)
{
    struct added_at at = {0};
    const struct added_token *t = NULL;
    for (bool more = true; more;) {
        size_t done = at.done;
        more = p->raw && added_next(p->raw, text, n, false, &at, NULL);
        size_t end = more ? at.start : n;
        unsigned edge = done ? 0 : EDGE_ZERO;
        if (p->normal && done < end && find_normal(p, w, text + done, end - done, edge)) {
            *ret_at = done + place_in(p, w, text + done, end - done, edge, &t);
            break;
        }
        if (more && at.token->special) {
            *ret_at = at.from - at.token->length;
            t = at.token;
            break;
        }
        at.done = at.end;
    }
    added_end(&at);
    return t;
}

int pipe_refuse_special(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        const char *raw, size_t nraw, struct err *e)
{
    size_t at = 0;
    const struct added_token *t = find_special(p, w, text, n, &at);
    if (!t)
        return err_set(e, ERR_DATA, "the text contains the string of a special token");
    return special_refuse(pipe_piece(p, t->id).p, utf8_before_mending(raw, nraw, at), e);
}
