/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tok/chat/chat_internal.h"

/* Parts as ids with their mask. */

enum { BORDERS = 16 /* mask changes in a run, above which offsets are used */ };

/* A message became a special token of the template although it is text: some vocabularies always
 * match theirs. */
static int check_forged(const struct chat *c, const struct tok_ids *ids, size_t from, struct err *e)
{
    size_t near = 0; /* by vectors */
    for (size_t i = from; i < ids->n; i++)
        near += ids->id[i] >= c->first && ids->id[i] <= c->last;
    for (size_t i = from; i < ids->n && near; i++)
        for (size_t k = 0; k < c->nspecials; k++)
            if (ids->id[i] == c->special[k].id)
                return err_set(e, ERR_DATA,
                               "a message spells %s, which this tokenizer always encodes as the "
                               "token that the template %s uses",
                               c->special[k].piece, c->form ? c->form->name : "auto");
    return 0;
}

/* Replaces the ids from `first` on by those that n bytes of the run have after their special token;
 * no change if the token's string does not encode to that token. */
static int encode_behind(struct chat_work *w, size_t n, size_t first, struct tok_ids *ids,
                         struct tok_ranges *ranges, struct err *e)
{
    const struct chat *c = w->chat;
    size_t piece = strlen(w->behind->piece), head = c->before + 1, round = head + c->after;
    struct tok_ids *all = &w->with;
    buf_reset(&w->spelt);
    buf_add(&w->spelt, w->behind->piece, piece);
    buf_add(&w->spelt, w->run.data, n);
    all->n = w->places.n = 0;
    int code = ranges ? tok_encode_offsets(c->framed, w->framed, w->spelt.data, w->spelt.len,
                                           TOK_BYTES, all, &w->places, e)
                      : tok_encode(c->framed, w->framed, w->spelt.data, w->spelt.len, all, e);
    if (code || all->n < round || all->id[c->before] != w->behind->id)
        return code;
    size_t count = all->n - round;
    ids->n = first;
    if (count)
        memcpy(tok_ids_reserve(ids, count), all->id + head, count * sizeof(*all->id));
    ids->n += count;
    if (ranges)
        ranges->n = 0;
    for (size_t i = 0; ranges && i < count; i++) {
        struct tok_range *r = tok_ranges_add(ranges);
        *r = w->places.at[head + i];
        r->begin -= r->begin < piece ? r->begin : piece;
        r->end -= r->end < piece ? r->end : piece;
    }
    return 0;
}

/*
 * The ids of the first n bytes of the run. Where it matters, text after a special token is encoded
 * together with the token, unless the text has a special string, which would then become a token,
 * too.
 */
static int encode_text(struct chat_work *w, size_t n, struct tok_ids *ids,
                       struct tok_ranges *ranges, struct err *e)
{
    const struct tokenizer *t = w->chat->tok;
    size_t first = ids->n;
    uint64_t specials = tok_work_specials(w->work);
    if (ranges)
        ranges->n = 0;
    int code = ranges ? tok_encode_offsets(t, w->work, w->run.data, n, TOK_BYTES, ids, ranges, e)
                      : tok_encode(t, w->work, w->run.data, n, ids, e);
    if (code || !w->framed || !w->behind || tok_work_specials(w->work) > specials)
        return code;
    return encode_behind(w, n, first, ids, ranges, e);
}

/* The mask of a run from the offsets of its ids. */
static int mask_by_places(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    int code = encode_text(w, w->run.len, ids, &w->ranges, e);
    for (size_t i = 0; i < w->ranges.n && !code; i++) {
        const struct tok_range *r = &w->ranges.at[i];
        char learnt = 0;
        for (size_t at = r->begin; at < r->end && at < w->run_mask.len && !learnt; at++)
            learnt = w->run_mask.data[at];
        if (r->begin == r->end && r->begin < w->run_mask.len)
            learnt = w->run_mask.data[r->begin];
        buf_addc(mask, learnt);
    }
    return code;
}

/* Where the run's mask changes next, after byte `at`; its end if nowhere. */
static size_t next_border(const struct buf *run_mask, size_t at)
{
    const char *p = memchr(run_mask->data + at, !run_mask->data[at], run_mask->len - at);
    return p ? (size_t)(p - run_mask->data) : run_mask->len;
}

/*
 * The mask from its borders: mostly a token ends there, and then the ids of the text before are the
 * first ids of the whole run, so that no offsets are needed. False: they are not, or there are too
 * many borders.
 */
static bool mask_by_borders(struct chat_work *w, const int32_t *id, size_t n, struct buf *mask,
                            int *ret_code, struct err *e)
{
    size_t done = 0, from = 0, len = w->run.len;
    for (int borders = 0; from < len; borders++) {
        size_t to = next_border(&w->run_mask, from), end = n;
        if (to < len) {
            w->head.n = 0;
            *ret_code = borders < BORDERS ? encode_text(w, to, &w->head, NULL, e) : 0;
            end = w->head.n;
            if (*ret_code || borders == BORDERS || end < done || end > n ||
                (end && memcmp(w->head.id, id, end * sizeof(*id))))
                return false;
        }
        if (end > done)
            memset(buf_reserve(mask, end - done), w->run_mask.data[from], end - done);
        mask->len += end - done;
        done = end;
        from = to;
    }
    return true;
}

static int encode_run(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    size_t first = ids->n, was = mask->len;
    int code = encode_text(w, w->run.len, ids, NULL, e);
    uint64_t specials = tok_work_specials(w->work);
    if (code)
        return code;
    if (!mask_by_borders(w, ids->n ? ids->id + first : NULL, ids->n - first, mask, &code, e) &&
        !code) {
        ids->n = first;
        mask->len = was;
        code = mask_by_places(w, ids, mask, e);
    }
    w->twice += tok_work_specials(w->work) - specials;
    return code;
}

static int end_run(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    size_t first = ids->n;
    int code = w->run.len ? encode_run(w, ids, mask, e) : 0;
    if (!code)
        code = check_forged(w->chat, ids, first, e);
    buf_reset(&w->run);
    buf_reset(&w->run_mask);
    return code;
}

/* The tokenizer puts this one in front by itself. */
static bool is_framed(const struct chat_special *s)
{
    return s->n == 4 && !memcmp(s->name, "bos?", 4);
}

static int encode_apart(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    int code = 0;
    w->behind = NULL;
    buf_reset(&w->run);
    buf_reset(&w->run_mask);
    for (size_t i = 0; i < w->nparts && !code; i++) {
        const struct chat_part *p = &w->part[i];
        if (!p->special) {
            buf_add(&w->run, p->text, p->n);
            memset(buf_reserve(&w->run_mask, p->n), p->learnt, p->n);
            w->run_mask.len += p->n;
            continue;
        }
        code = end_run(w, ids, mask, e);
        w->behind = is_framed(p->special) ? NULL : p->special;
        *tok_ids_reserve(ids, 1) = p->special->id;
        ids->n++;
        buf_addc(mask, p->learnt);
    }
    return code ? code : end_run(w, ids, mask, e);
}

/* ---- whole texts ------------------------------------------------------------------------------
 */

enum { MASK_LEARNT = 1, MASK_DATA = 2 };

static void join_parts(struct chat_work *w)
{
    buf_reset(&w->run);
    buf_reset(&w->run_mask);
    for (size_t i = 0; i < w->nparts; i++) {
        const struct chat_part *p = &w->part[i];
        size_t n = p->special ? strlen(p->special->piece) : p->n;
        int bits = (p->learnt ? MASK_LEARNT : 0) | (p->data ? MASK_DATA : 0);
        buf_add(&w->run, p->special ? p->special->piece : p->text, n);
        memset(buf_reserve(&w->run_mask, n + 1), bits, n);
        w->run_mask.len += n;
    }
}

/* All bits of the bytes of an id. */
static int mask_bits_of(const struct chat_work *w, const struct tok_range *r)
{
    int bits = 0;
    for (size_t at = r->begin; at < r->end && at < w->run_mask.len; at++)
        bits |= w->run_mask.data[at];
    if (r->begin == r->end && r->begin < w->run_mask.len)
        bits = w->run_mask.data[r->begin];
    return bits;
}

/* The whole text as transformers encodes it. Unless that is what was asked for, *ret_forged: data
 * became a special token, and nothing was appended. */
static int encode_whole(struct chat_work *w, struct tok_ids *ids, struct buf *mask,
                        bool *ret_forged, struct err *e)
{
    const struct chat *c = w->chat;
    struct tok_ids *all = &w->with;
    join_parts(w);
    all->n = w->places.n = 0;
    *ret_forged = false;
    int code = tok_encode_offsets(c->framed, w->framed, buf_str(&w->run), w->run.len, TOK_BYTES,
                                  all, &w->places, e);
    size_t round = c->before + c->after;
    if (code || all->n < round)
        return code;
    size_t count = all->n - round;
    const int32_t *id = all->id + c->before;
    const struct tok_range *place = w->places.at + c->before;
    for (size_t i = 0; i < count && !c->rules.parse; i++)
        *ret_forged |= tok_is_special(c->tok, id[i]) && mask_bits_of(w, &place[i]) & MASK_DATA;
    for (size_t i = 0; i < count && !*ret_forged; i++) {
        *tok_ids_reserve(ids, 1) = id[i];
        ids->n++;
        buf_addc(mask, (mask_bits_of(w, &place[i]) & MASK_LEARNT) != 0);
    }
    return 0;
}

int chat_encode_parts(struct chat_work *w, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    bool forged = true;
    int code = 0;
    if (w->chat->rules.parse || (w->chat->strips && w->chat->framed))
        code = encode_whole(w, ids, mask, &forged, e);
    return code || !forged ? code : encode_apart(w, ids, mask, e);
}
