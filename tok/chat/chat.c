/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/chat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/chat/chat_internal.h"
#include "tok/chat/published.h"
#include "tok/chat/templates.h"
#include "tok/unicode/unicode.h"

/* ---- the template and its special tokens ---------------------------------------------------- */

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
static const struct chat_special *named_special(const struct chat *c, const char *p, size_t n)
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
        if (named_special(c, open + 1, n))
            continue;
        BUG_ON(c->nspecials == CHAT_FORM_SPECIALS, "template %s: too many special tokens",
               c->form->name);
        struct chat_special *s = &c->own[c->nspecials++];
        *s = (struct chat_special){.name = open + 1, .n = n};
        code = find_id(c, f, s, e);
    }
    return code;
}

static int open_form(struct chat *c, struct err *e)
{
    const struct chat_form *form = c->form;
    struct chat_frame f = chat_find_frame(c);
    c->special = c->own;
    int code = add_specials(c, f, form->begin, e);
    for (int r = 0; r < CHAT_ROLES && !code; r++) {
        code = add_specials(c, f, form->turn[r].open, e);
        if (!code)
            code = add_specials(c, f, form->turn[r].close, e);
    }
    return code ? code : add_specials(c, f, form->end, e);
}

static struct chat_stop stop_of_form(const struct chat *c)
{
    const struct chat_form *f = c->form;
    const struct chat_turn *answer = &f->turn[CHAT_ASSISTANT];
    const char *close = answer->close[0] ? answer->close : f->end;
    size_t n = close[0] == '{' ? strcspn(close + 1, "}") : 0;
    struct chat_stop s = {.id = n ? named_special(c, close + 1, n)->id : -1};
    if (!answer->close[0]) {
        s.text = f->turn[CHAT_USER].open;
        for (s.n = strlen(s.text); s.n && s.text[s.n - 1] == ' ';)
            s.n--;
    }
    return s;
}

int chat_open(const char *name, const struct tokenizer *bare, const struct tokenizer *framed,
              struct chat **ret, struct err *e)
{
    struct chat *c = mem_new(1, sizeof(*c));
    c->form = chat_form_find(name);
    c->tok = bare;
    c->framed = framed;
    int code = c->form ? open_form(c, e) : published_open(c, name, e);
    if (code) {
        chat_close(c);
        return code;
    }
    if (!c->form)
        chat_find_frame(c);
    chat_probe(c);
    if (c->form) {
        c->stop = stop_of_form(c);
    } else {
        struct chat_work *w = chat_work_create(c);
        c->stop = published_stop(w);
        chat_work_destroy(w);
    }
    *ret = c;
    return 0;
}

void chat_close(struct chat *c)
{
    if (!c)
        return;
    published_close(c->published);
    free(c);
}

int chat_set_rules(struct chat *c, struct chat_rules r, struct err *e)
{
    struct tok_ids ids = {0};
    struct tok_ranges ranges = {0};
    int code = 0;
    if (r.parse && !c->framed)
        code = err_set(e, ERR_USAGE,
                       "--specials parse beside a template needs a tokenizer that "
                       "finds special tokens in text");
    struct tok_work *w = r.parse && !code ? tok_work_create(c->framed) : NULL;
    if (w)
        code = tok_encode_offsets(c->framed, w, "a", 1, TOK_BYTES, &ids, &ranges, e);
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_ranges_finish(&ranges);
    c->rules = r;
    return code;
}

const char *chat_digest(const struct chat *c)
{
    return c->published ? published_digest(c->published) : NULL;
}

const char *chat_date(const struct chat *c)
{
    return c->published ? published_date(c->published) : NULL;
}

struct chat_stop chat_stop(const struct chat *c)
{
    return c->stop;
}

struct chat_work *chat_work_create(const struct chat *c)
{
    struct chat_work *w = mem_new(1, sizeof(*w));
    w->chat = c;
    w->work = tok_work_create(c->tok);
    bool whole = c->rules.parse || (c->strips && c->framed);
    w->framed = c->looks_back || whole ? tok_work_create(c->framed) : NULL;
    w->published = c->published ? published_work_create() : NULL;
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
    chat_whole_finish(&w->whole);
    published_work_destroy(w->published);
    free(w);
}

uint64_t chat_work_specials(const struct chat_work *w)
{
    return tok_work_specials(w->work) - w->twice;
}

uint64_t chat_work_unwritten(const struct chat_work *w)
{
    return w->unwritten;
}

/* ---- messages to parts ---------------------------------------------------------------------- */

void chat_put(struct chat_work *w, struct chat_part part)
{
    ARRAY_GROW(w->part, w->nparts, w->cap);
    w->part[w->nparts++] = part;
}

/* Text, or a special token, of a built-in template or of a message. */
static void put_part(struct chat_work *w, const char *text, size_t n,
                     const struct chat_special *special, bool learnt)
{
    chat_put(w, (struct chat_part){.text = text, .n = n, .special = special, .learnt = learnt});
}

/* Appends a string of the template. */
static void put_form(struct chat_work *w, const char *text, bool learnt)
{
    while (*text) {
        size_t n = strcspn(text, "{");
        if (n)
            put_part(w, text, n, NULL, learnt);
        text += n;
        if (!*text)
            return;
        n = strcspn(text, "}");
        const struct chat_special *s = named_special(w->chat, text + 1, n - 1);
        if (s->id >= 0)
            put_part(w, NULL, 0, s, learnt);
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
        put_part(w, text, (size_t)(end - text), NULL, learnt);
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
    put_part(w, text, strlen(text), NULL, false);
    put_form(w, f->turn[CHAT_SYSTEM].close, false);
}

static void put_message(struct chat_work *w, const struct chat_message *m,
                        const struct chat_message *joined, bool learnt)
{
    const struct chat_turn *t = &w->chat->form->turn[m->role];
    put_form(w, t->open, false);
    put_form(w, t->lead, learnt);
    chat_put_text(w, m->text, m->n, learnt);
    if (joined) {
        put_part(w, "\n", 1, NULL, learnt);
        chat_put_text(w, joined->text, joined->n, learnt);
    }
    put_form(w, t->close, learnt);
    put_form(w, t->after, false);
}

static bool is_learnt(const struct chat *c, const struct chat_message *m, bool last)
{
    return m->role == CHAT_ASSISTANT && !m->unlearnt && (last || c->rules.learn != CHAT_LEARN_LAST);
}

static int chat_lay_out(struct chat_work *w, const struct chat_message *m, size_t n, bool open,
                        struct err *e)
{
    const struct chat_form *f = w->chat->form;
    w->nparts = 0;
    if (!f) {
        chat_whole_set(&w->whole, m, n);
        return published_lay_out(w, open, e);
    }
    int code = chat_judge(w->chat, m, n, e);
    if (code)
        return code;
    put_form(w, f->begin, false);
    put_preamble(w, m, n);
    size_t last = n;
    while (last && m[last - 1].role != CHAT_ASSISTANT)
        last--;
    for (size_t i = 0; i < n; i++) {
        bool joins = i + 1 < n && m[i + 1].role == CHAT_INPUT && !f->turn[CHAT_INPUT].open;
        put_message(w, &m[i], joins ? &m[i + 1] : NULL, is_learnt(w->chat, &m[i], i + 1 == last));
        i += joins;
    }
    if (open)
        put_form(w, f->turn[CHAT_ASSISTANT].open, false);
    else
        put_form(w, f->end, n && is_learnt(w->chat, &m[n - 1], true));
    return 0;
}

/* ---- the public functions -------------------------------------------------------------------- */

int chat_encode(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
                bool open, struct tok_ids *ids, struct buf *mask, struct err *e)
{
    BUG_ON(w->chat != c, "work of another chat");
    int code = chat_lay_out(w, m, n, open, e);
    return code ? code : chat_encode_parts(w, ids, mask, e);
}

int chat_encode_record(struct chat_work *w, const char *line, size_t n, bool open,
                       struct tok_ids *ids, struct buf *mask, struct err *e)
{
    const struct chat_record *r = &w->whole.record;
    int code = w->chat->form ? chat_read(&w->whole.record, line, n, e)
                             : chat_whole_read(&w->whole, line, n, e);
    if (!code)
        code = w->chat->form ? chat_lay_out(w, r->m, r->n, open, e) : published_lay_out(w, open, e);
    return code ? code : chat_encode_parts(w, ids, mask, e);
}

void chat_last_text(const struct chat_work *w, struct buf *ret)
{
    for (size_t i = 0; i < w->nparts; i++) {
        const struct chat_part *p = &w->part[i];
        buf_add(ret, p->special ? p->special->piece : p->text,
                p->special ? strlen(p->special->piece) : p->n);
    }
}

int chat_text(const struct chat *c, struct chat_work *w, const struct chat_message *m, size_t n,
              bool open, struct buf *ret, struct err *e)
{
    BUG_ON(w->chat != c, "work of another chat");
    int code = chat_lay_out(w, m, n, open, e);
    if (!code)
        chat_last_text(w, ret);
    return code;
}
