/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/chat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/chat/form.h"
#include "tok/chat/templates.h"
#include "tok/unicode/unicode.h"

enum {
    SPECIALS = 8,
    BORDERS = 16 /* mask changes in a run, above which offsets are used */
};

/* What a {NAME} of the template stands for. */
struct chat_special {
    const char *name; /* in the template, not terminated */
    size_t n;
    int32_t id; /* -1: inserts nothing */
    const char *piece;
};

struct chat {
    const struct chat_form *form;
    const struct tokenizer *tok, *framed;
    struct chat_special special[SPECIALS];
    size_t nspecials;
    int32_t first, last;  /* range of their ids */
    size_t before, after; /* ids that the template of `framed` puts around a text */
    bool looks_back;      /* text after a special token has other ids than by itself */
};

/* A run of text, or a special token. */
struct chat_part {
    const char *text;
    size_t n;
    const struct chat_special *special; /* NULL: text */
    bool learnt;
};

struct chat_work {
    const struct chat *chat;
    struct tok_work *work, *framed;
    struct chat_part *part;
    size_t nparts, cap;
    struct buf run;                    /* text between two special tokens */
    struct buf run_mask;               /* one byte for each byte of it */
    const struct chat_special *behind; /* the special token before it; NULL: it begins a text */
    struct tok_ids head;               /* ids of its beginning, which is not learnt */
    struct buf spelt;                  /* that token's string, and the run */
    struct tok_ids with;               /* ids of both */
    uint64_t twice;                    /* special strings in texts that were encoded twice */
    struct tok_ranges ranges, places;
};

/* ---- the template and its special tokens ---------------------------------------------------- */

/* What the tokenizer's own template puts before and after a text; -1: nothing. */
struct chat_frame {
    int32_t bos, eos;
};

static int encode_once(const struct tokenizer *t, const char *text, struct tok_ids *ret,
                       struct err *e)
{
    struct tok_work *w = tok_work_create(t);
    int code = tok_encode(t, w, text, strlen(text), ret, e);
    tok_work_destroy(w);
    return code;
}

static struct chat_frame find_frame(struct chat *c)
{
    struct tok_ids bare = {0}, all = {0};
    struct chat_frame f = {-1, -1};
    struct err e;
    size_t before = 0;
    int code = c->framed ? encode_once(c->tok, "a", &bare, &e) : ERR_USAGE;
    if (!code)
        code = encode_once(c->framed, "a", &all, &e);
    while (!code && bare.n && before + bare.n <= all.n &&
           memcmp(all.id + before, bare.id, bare.n * sizeof(*bare.id)))
        before++;
    if (!code && bare.n && before + bare.n <= all.n) {
        c->before = before;
        c->after = all.n - before - bare.n;
        f.bos = before ? all.id[0] : -1;
        f.eos = c->after ? all.id[all.n - 1] : -1;
    } else {
        c->framed = NULL;
    }
    tok_ids_finish(&bare);
    tok_ids_finish(&all);
    return f;
}

/* Does text after the special token have other ids than by itself? */
static bool is_other_behind(const struct chat *c, const struct chat_special *special,
                            const char *text)
{
    struct tok_ids bare = {0}, all = {0};
    struct err e;
    char *spelt = mem_printf("%s%s", special->piece, text);
    int code = encode_once(c->tok, text, &bare, &e);
    if (!code)
        code = encode_once(c->framed, spelt, &all, &e);
    size_t round = c->before + c->after + 1;
    bool other = !code && all.n >= round && all.id[c->before] == special->id &&
                 (all.n - round != bare.n ||
                  (bare.n && memcmp(all.id + c->before + 1, bare.id, bare.n * sizeof(*bare.id))));
    free(spelt);
    tok_ids_finish(&bare);
    tok_ids_finish(&all);
    return other;
}

static bool looks_back(const struct chat *c)
{
    static const char *const text[] = {"a", "\n", " a", "a\n", "\xe6\x97\xa5"};
    for (size_t k = 0; k < c->nspecials && c->framed; k++)
        for (size_t i = 0; i < sizeof(text) / sizeof(*text) && c->special[k].id >= 0; i++)
            if (is_other_behind(c, &c->special[k], text[i]))
                return true;
    return false;
}

static bool is_name(const struct chat_special *s, const char *name)
{
    return s->n == strlen(name) && !memcmp(s->name, name, s->n);
}

static int find_id(const struct chat *c, struct chat_frame f, struct chat_special *s, struct err *e)
{
    const struct tok_info *info = tok_info(c->tok);
    int64_t id;
    size_t length;
    if (is_name(s, "bos?")) {
        id = f.bos;
    } else if (is_name(s, "eos?")) {
        id = f.eos;
    } else if (is_name(s, "eos")) {
        id = info->eos >= 0 ? info->eos : info->eod;
        if (id < 0)
            return err_set(e, ERR_USAGE,
                           "%s: the template %s ends an answer with the end of text, which this "
                           "vocabulary lacks",
                           info->path ? info->path : info->type_name, c->form->name);
    } else {
        char *piece = mem_strndup(s->name, s->n);
        id = tok_find(c->tok, piece);
        if (id < 0) {
            err_set(e, ERR_USAGE,
                    "%s: the template %s needs the token %s, which the vocabulary lacks",
                    info->path ? info->path : info->type_name, c->form->name, piece);
            err_hint(e, "tok extend adds tokens to a vocabulary; other values of --template: %s",
                     CHAT_TEMPLATE_WORDS);
        }
        free(piece);
        if (id < 0)
            return ERR_USAGE;
    }
    s->id = (int32_t)id;
    s->piece = tok_piece(c->tok, id, &length);
    return 0;
}

/* The special token whose name begins at p, after its brace. */
static const struct chat_special *special_at(const struct chat *c, const char *p, size_t n)
{
    for (size_t i = 0; i < c->nspecials; i++)
        if (c->special[i].n == n && !memcmp(c->special[i].name, p, n))
            return &c->special[i];
    return NULL;
}

static int add_specials(struct chat *c, struct chat_frame f, const char *text, struct err *e)
{
    const char *open = text ? strchr(text, '{') : NULL;
    int code = 0;
    for (; open && !code; open = strchr(open + 1, '{')) {
        size_t n = strcspn(open + 1, "}");
        if (special_at(c, open + 1, n))
            continue;
        BUG_ON(c->nspecials == SPECIALS, "template %s: too many special tokens", c->form->name);
        struct chat_special *s = &c->special[c->nspecials++];
        *s = (struct chat_special){.name = open + 1, .n = n};
        code = find_id(c, f, s, e);
    }
    return code;
}

int chat_open(const char *name, const struct tokenizer *bare, const struct tokenizer *framed,
              struct chat **ret, struct err *e)
{
    const struct chat_form *form = chat_form_find(name);
    if (!form)
        return err_set(e, ERR_USAGE, "unknown template '%s'; the templates are %s", name,
                       CHAT_TEMPLATE_WORDS);
    struct chat *c = mem_new(1, sizeof(*c));
    c->form = form;
    c->tok = bare;
    c->framed = framed;
    struct chat_frame f = find_frame(c);
    int code = add_specials(c, f, form->begin, e);
    for (int r = 0; r < CHAT_ROLES && !code; r++) {
        code = add_specials(c, f, form->turn[r].open, e);
        if (!code)
            code = add_specials(c, f, form->turn[r].close, e);
    }
    if (!code)
        code = add_specials(c, f, form->end, e);
    if (code) {
        chat_close(c);
        return code;
    }
    c->looks_back = looks_back(c);
    c->last = -1;
    for (size_t i = 0; i < c->nspecials; i++) {
        int32_t id = c->special[i].id;
        c->first = id >= 0 && (c->last < 0 || id < c->first) ? id : c->first;
        c->last = id > c->last ? id : c->last;
    }
    *ret = c;
    return 0;
}

void chat_close(struct chat *c)
{
    free(c);
}

struct chat_stop chat_stop(const struct chat *c)
{
    const struct chat_form *f = c->form;
    const struct chat_turn *answer = &f->turn[CHAT_ASSISTANT];
    const char *close = answer->close[0] ? answer->close : f->end;
    size_t n = close[0] == '{' ? strcspn(close + 1, "}") : 0;
    struct chat_stop s = {.id = n ? special_at(c, close + 1, n)->id : -1};
    if (!answer->close[0]) {
        s.text = f->turn[CHAT_USER].open;
        for (s.n = strlen(s.text); s.n && s.text[s.n - 1] == ' ';)
            s.n--;
    }
    return s;
}

struct chat_work *chat_work_create(const struct chat *c)
{
    struct chat_work *w = mem_new(1, sizeof(*w));
    w->chat = c;
    w->work = tok_work_create(c->tok);
    w->framed = c->looks_back ? tok_work_create(c->framed) : NULL;
    return w;
}

void chat_work_destroy(struct chat_work *w)
{
    if (!w)
        return;
    tok_work_destroy(w->work);
    tok_work_destroy(w->framed);
    free(w->part);
    buf_finish(&w->run);
    buf_finish(&w->run_mask);
    tok_ids_finish(&w->head);
    buf_finish(&w->spelt);
    tok_ids_finish(&w->with);
    tok_ranges_finish(&w->ranges);
    tok_ranges_finish(&w->places);
    free(w);
}

uint64_t chat_work_specials(const struct chat_work *w)
{
    return tok_work_specials(w->work) - w->twice;
}

/* ---- messages to parts ---------------------------------------------------------------------- */

static void chat_put(struct chat_work *w, const char *text, size_t n,
                     const struct chat_special *special, bool learnt)
{
    ARRAY_GROW(w->part, w->nparts, w->cap);
    w->part[w->nparts++] =
        (struct chat_part){.text = text, .n = n, .special = special, .learnt = learnt};
}

/* Appends a string of the template. */
static void put_form(struct chat_work *w, const char *text, bool learnt)
{
    while (*text) {
        size_t n = strcspn(text, "{");
        if (n)
            chat_put(w, text, n, NULL, learnt);
        text += n;
        if (!*text)
            return;
        n = strcspn(text, "}");
        const struct chat_special *s = special_at(w->chat, text + 1, n - 1);
        if (s->id >= 0)
            chat_put(w, NULL, 0, s, learnt);
        text += n + 1;
    }
}

/* White space as in Python's str.strip(). */
static size_t space_at(const char *p, const char *end)
{
    size_t k = utf8_char(p, end);
    uint32_t c = k ? utf8_code(p, k) : 'x';
    return uni_space(c) || (c >= 28 && c <= 31) ? k : 0;
}

static void chat_put_text(struct chat_work *w, const char *text, size_t n, bool learnt)
{
    const char *end = text + n;
    if (w->chat->form->trim) {
        size_t k;
        while (text < end && (k = space_at(text, end)))
            text += k;
        while (end > text) {
            const char *p = end - 1;
            while (p > text && (*p & 0xc0) == 0x80)
                p--;
            if (space_at(p, end) != (size_t)(end - p))
                break;
            end = p;
        }
    }
    if (end > text)
        chat_put(w, text, (size_t)(end - text), NULL, learnt);
}

/* ERR_DATA unless the template has a place for every message. */
static int chat_judge(const struct chat *c, const struct chat_message *m, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = chat_role_name(m[i].role);
        bool joined = m[i].role == CHAT_INPUT && i && m[i - 1].role == CHAT_USER;
        if (m[i].role == CHAT_INPUT && !joined)
            return err_set(e, ERR_DATA, "message %zu is an input without an instruction", i + 1);
        if (!c->form->turn[m[i].role].open && !joined)
            return err_set(e, ERR_DATA,
                           "message %zu has the role '%s', for which the template %s has no "
                           "place",
                           i + 1, name, c->form->name);
        if (m[i].role == CHAT_SYSTEM && c->form->system_first && i)
            return err_set(
                e, ERR_DATA,
                "message %zu is the system's; the template %s allows it only as the first", i + 1,
                c->form->name);
    }
    return 0;
}

/* The default system turn, if there is none. */
static void put_preamble(struct chat_work *w, const struct chat_message *m, size_t n)
{
    const struct chat_form *f = w->chat->form;
    const char *text = f->preamble;
    if (!text || (n && m[0].role == CHAT_SYSTEM))
        return;
    for (size_t i = 0; i < n && f->preamble_input; i++)
        if (m[i].role == CHAT_INPUT)
            text = f->preamble_input;
    put_form(w, f->turn[CHAT_SYSTEM].open, false);
    chat_put(w, text, strlen(text), NULL, false);
    put_form(w, f->turn[CHAT_SYSTEM].close, false);
}

static void put_message(struct chat_work *w, const struct chat_message *m,
                        const struct chat_message *joined)
{
    const struct chat_turn *t = &w->chat->form->turn[m->role];
    bool learnt = m->role == CHAT_ASSISTANT;
    put_form(w, t->open, false);
    put_form(w, t->lead, learnt);
    chat_put_text(w, m->text, m->n, learnt);
    if (joined) {
        chat_put(w, "\n", 1, NULL, learnt);
        chat_put_text(w, joined->text, joined->n, learnt);
    }
    put_form(w, t->close, learnt);
    put_form(w, t->after, false);
}

static int chat_lay_out(struct chat_work *w, const struct chat_message *m, size_t n, bool open,
                        struct err *e)
{
    const struct chat_form *f = w->chat->form;
    w->nparts = 0;
    int code = chat_judge(w->chat, m, n, e);
    if (code)
        return code;
    put_form(w, f->begin, false);
    put_preamble(w, m, n);
    for (size_t i = 0; i < n; i++) {
        bool joins = i + 1 < n && m[i + 1].role == CHAT_INPUT && !f->turn[CHAT_INPUT].open;
        put_message(w, &m[i], joins ? &m[i + 1] : NULL);
        i += joins;
    }
    if (open)
        put_form(w, f->turn[CHAT_ASSISTANT].open, false);
    else
        put_form(w, f->end, n && m[n - 1].role == CHAT_ASSISTANT);
    return 0;
}

/* ---- parts to ids --------------------------------------------------------------------------- */

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
                               c->special[k].piece, c->form->name);
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

int chat_encode(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
                bool open, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    BUG_ON(w->chat != c, "work of another chat");
    int code = chat_lay_out(w, m, n, open, e);
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
        w->behind = is_name(p->special, "bos?") ? NULL : p->special;
        *tok_ids_reserve(ids, 1) = p->special->id;
        ids->n++;
        buf_addc(mask, p->learnt);
    }
    return code ? code : end_run(w, ids, mask, e);
}

int chat_text(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
              bool open, struct buf *ret, struct err *e)
{
    BUG_ON(w->chat != c, "work of another chat");
    int code = chat_lay_out(w, m, n, open, e);
    for (size_t i = 0; i < w->nparts && !code; i++) {
        const struct chat_part *p = &w->part[i];
        buf_add(ret, p->special ? p->special->piece : p->text,
                p->special ? strlen(p->special->piece) : p->n);
    }
    return code;
}
