/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/published.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/core/array.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "tok/chat/folder.h"
#include "tok/chat/learn.h"
#include "tok/chat/templates.h"
#include "tok/jinja/jinja.h"

struct published {
    struct chat_folder folder;
    struct jinja *t, *tools; /* the template, and for records with tools; NULL: the same */
    struct special_set special;
    const struct folder_token *eos; /* NULL: none */
    struct folder_token own[2];     /* bos_token and eos_token, if no file has tokens */
    size_t nown;
    struct jinja_date date;
    char day[16];
    char digest[SHA_TEXT];
};

struct published_work {
    struct jinja_context *text, *probe; /* of the conversation, and of parts of it */
    unsigned char *message;
    size_t cap;
    struct buf learn;
    struct buf without; /* the turns before an answer */
    struct buf prompt;  /* the generation prompt that was asked for last */
};

/* ---- opening ----------------------------------------------------------------------------------
 */

static void collect_piece(struct special_set *s, const struct tokenizer *t, int64_t id)
{
    size_t n;
    const char *piece = id >= 0 ? tok_piece(t, id, &n) : "";
    if (id >= 0)
        special_set_add(s, piece, n, (int32_t)id);
}

static void find_specials(struct published *p, const struct tokenizer *t)
{
    const struct tok_info *info = tok_info(t);
    for (int64_t id = 0; id < info->vocab_size; id++)
        if (tok_is_special(t, (int32_t)id))
            collect_piece(&p->special, t, id);
    collect_piece(&p->special, t, info->bos);
    collect_piece(&p->special, t, info->eos);
    for (size_t i = 0; i < p->folder.ntokens; i++)
        collect_piece(&p->special, t, tok_find(t, p->folder.token[i].text));
    const char *text;
    for (size_t i = 0; (text = chat_folder_special(&p->folder, i)); i++)
        collect_piece(&p->special, t, tok_find(t, text));
    special_set_sort(&p->special);
}

static void add_own(struct published *p, const char *name, const struct tokenizer *t, int64_t id)
{
    struct folder_token *token = &p->own[p->nown];
    if (id < 0)
        return;
    token->name = name;
    token->text = tok_piece(t, id, &token->n);
    p->nown++;
}

static void find_tokens(struct published *p, const struct tokenizer *t)
{
    const struct tok_info *info = tok_info(t);
    if (!p->folder.ntokens) {
        add_own(p, "bos_token", t, info->bos);
        add_own(p, "eos_token", t, info->eos >= 0 ? info->eos : info->eod);
    }
    for (size_t i = 0; i < p->folder.ntokens; i++)
        if (!strcmp(p->folder.token[i].name, "eos_token"))
            p->eos = &p->folder.token[i];
    for (size_t i = 0; i < p->nown; i++)
        if (!strcmp(p->own[i].name, "eos_token"))
            p->eos = &p->own[i];
}

static struct jinja_date today(void)
{
    struct tm t;
    time_t now = time(NULL);
    localtime_r(&now, &t);
    return (struct jinja_date){t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                               t.tm_hour,        t.tm_min,     t.tm_sec};
}

static int parse_templates(struct published *p, struct err *e)
{
    const struct chat_folder *f = &p->folder;
    int code = jinja_parse(f->name, f->text, f->n, &p->t, e);
    if (!code && f->tools)
        code = jinja_parse(f->tools_name, f->tools, f->ntools, &p->tools, e);
    struct sha *h = sha_create();
    sha_add(h, f->text, f->n);
    if (f->tools)
        sha_add(h, f->tools, f->ntools);
    sha_text(h, p->digest);
    sha_destroy(h);
    return code;
}

int published_open(struct chat *c, const char *name, struct err *e)
{
    const struct tok_info *info = tok_info(c->tok);
    bool find = !strcmp(name, "auto");
    if (!find && access(name, F_OK)) {
        err_set(e, ERR_USAGE, "unknown template '%s'; the templates are %s", name,
                CHAT_TEMPLATE_WORDS);
        return err_hint(e, "auto takes the one of the tokenizer's folder; any other name is that "
                           "of a file with a template in Jinja");
    }
    if (find && !info->path)
        return err_set(e, ERR_USAGE, "the template auto needs a tokenizer with a folder");
    struct published *p = mem_new(1, sizeof(*p));
    c->published = p;
    int code =
        chat_folder_open(info->path ? info->path : "./none", find ? NULL : name, &p->folder, e);
    if (!code)
        code = parse_templates(p, e);
    if (code)
        return code;
    find_specials(p, c->tok);
    find_tokens(p, c->tok);
    p->date = today();
    snprintf(p->day, sizeof(p->day), "%04d-%02d-%02d", p->date.year % 10000, p->date.month % 100,
             p->date.day % 100);
    c->special = p->special.item;
    c->nspecials = p->special.n;
    return 0;
}

void published_close(struct published *p)
{
    if (!p)
        return;
    jinja_close(p->t);
    jinja_close(p->tools);
    special_set_finish(&p->special);
    chat_folder_close(&p->folder);
    free(p);
}

bool published_writes(const struct published *p, const struct chat_special *s)
{
    const struct chat_folder *f = &p->folder;
    bool writes = memmem(f->text, f->n, s->piece, s->n) ||
                  (f->tools && memmem(f->tools, f->ntools, s->piece, s->n));
    for (size_t i = 0; i < f->ntokens && !writes; i++)
        writes = !strcmp(f->token[i].text, s->piece) && jinja_names(p->t, f->token[i].name);
    return writes;
}

const char *published_digest(const struct published *p)
{
    return p->digest;
}

const char *published_date(const struct published *p)
{
    bool asks =
        jinja_names(p->t, "strftime_now") || (p->tools && jinja_names(p->tools, "strftime_now"));
    return asks ? p->day : NULL;
}

struct published_work *published_work_create(void)
{
    struct published_work *w = mem_new(1, sizeof(*w));
    w->text = jinja_context_create();
    w->probe = jinja_context_create();
    return w;
}

void published_work_destroy(struct published_work *w)
{
    if (!w)
        return;
    jinja_context_destroy(w->text);
    jinja_context_destroy(w->probe);
    free(w->message);
    buf_finish(&w->learn);
    buf_finish(&w->without);
    buf_finish(&w->prompt);
    free(w);
}

/* ---- rendering --------------------------------------------------------------------------------
 */

static const struct json null_node = {.kind = JSON_NULL};

/* The first n messages by the template. */
static int render(const struct chat_work *w, struct jinja_context *c, size_t n, bool open,
                  struct jinja_output *ret, struct err *e)
{
    const struct published *p = w->chat->published;
    const struct chat_whole *r = &w->whole;
    const struct folder_token *token = p->nown ? p->own : p->folder.token;
    size_t ntokens = p->nown ? p->nown : p->folder.ntokens;
    struct json messages = r->messages;
    messages.length = n;
    jinja_forget(c);
    jinja_set_date(c, p->date);
    for (size_t i = 0; i < ntokens; i++)
        jinja_set_literal(c, token[i].name, token[i].text, token[i].n);
    jinja_set_messages(c, "messages", &messages);
    jinja_set_json(c, "tools", r->tools ? r->tools : &null_node);
    jinja_set_json(c, "documents", r->documents ? r->documents : &null_node);
    jinja_set_bool(c, "add_generation_prompt", open);
    for (size_t i = 0; r->parameters && i < r->parameters->length; i++)
        jinja_set_json(c, r->parameters->child[i].key, &r->parameters->child[i]);
    return jinja_render(r->tools && p->tools ? p->tools : p->t, c, ret, e);
}

/* What add_generation_prompt appends to the messages before k, anew, or writes in place of what
 * ends them otherwise; a template that refuses them has none. */
static void ask_prompt(const struct chat_work *w, size_t k)
{
    struct published_work *p = w->published;
    struct jinja_output o;
    struct err ignored;
    buf_reset(&p->without);
    buf_reset(&p->prompt);
    if (render(w, p->probe, k, false, &o, &ignored))
        return;
    buf_add(&p->without, o.text, o.n);
    if (render(w, p->probe, k, true, &o, &ignored))
        return;
    size_t same = 0;
    while (same < o.n && same < p->without.len && o.text[same] == p->without.data[same])
        same++;
    buf_add(&p->prompt, o.text + same, o.n - same);
}

static void give_prompt(void *arg, size_t k, bool known, const char **ret, size_t *ret_n)
{
    struct published_work *p = ((const struct chat_work *)arg)->published;
    if (!known)
        ask_prompt(arg, k);
    *ret = buf_str(&p->prompt);
    *ret_n = p->prompt.len;
}

/* ---- what messages are ------------------------------------------------------------------------
 */

static bool is_role_of(const struct json *m, const char *name)
{
    const struct json *role = json_get(m, "role");
    return role && role->kind == JSON_STRING && !strcmp(role->string, name);
}

static bool is_known(const struct json *m)
{
    static const char *const known[] = {"system", "developer", "user", "assistant", "tool"};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (is_role_of(m, known[i]))
            return true;
    return false;
}

/* Has it a content, or tool calls? */
static bool has_words(const struct json *m)
{
    static const char *const key[] = {"content", "tool_calls"};
    for (size_t i = 0; i < 2; i++) {
        const struct json *v = json_get(m, key[i]);
        if (v && (v->kind == JSON_STRING || v->kind == JSON_ARRAY) && v->length)
            return true;
    }
    return false;
}

static void judge_messages(struct chat_work *w)
{
    struct published_work *p = w->published;
    const struct json *list = &w->whole.messages;
    size_t last = SIZE_MAX;
    if (p->cap < list->length) {
        p->cap = list->length;
        p->message = mem_grow(p->message, p->cap, 1);
    }
    for (size_t k = 0; k < list->length; k++) {
        const struct json *m = &list->child[k];
        bool answer = is_role_of(m, "assistant");
        p->message[k] = (answer ? LEARN_ANSWER : 0) | (has_words(m) ? LEARN_SAYS : 0) |
                        (chat_is_unlearnt(m) ? LEARN_NOT : 0);
        last = answer ? k : last;
    }
    for (size_t k = 0; k < list->length; k++) {
        if (w->chat->rules.learn == CHAT_LEARN_LAST && k != last)
            p->message[k] |= LEARN_NOT;
        if ((p->message[k] & (LEARN_ANSWER | LEARN_NOT)) == LEARN_ANSWER)
            p->message[k] |= LEARN_WANTED;
    }
}

/* Messages of which nothing came out: those of unknown roles are an error. */
static int count_unwritten(struct chat_work *w, struct err *e)
{
    const struct published_work *p = w->published;
    const struct json *list = &w->whole.messages;
    for (size_t k = 0; k < list->length; k++) {
        if ((p->message[k] & (LEARN_SAYS | LEARN_WRITTEN)) != LEARN_SAYS)
            continue;
        if (!is_known(&list->child[k]))
            return err_set(
                e, ERR_DATA,
                "message %zu has the role '%.64s', and the template writes nothing of it", k + 1,
                json_get(&list->child[k], "role")->string);
        w->unwritten++;
    }
    return 0;
}

/* ---- parts ------------------------------------------------------------------------------------
 */

/* Text of one origin, cut where it begins or ends to be learnt. */
static void put_origin(struct chat_work *w, const struct jinja_output *o, size_t from, size_t to,
                       bool data)
{
    const char *learn = w->published->learn.data;
    while (from < to) {
        const char *p = memchr(learn + from, !learn[from], to - from);
        size_t end = p ? (size_t)(p - learn) : to;
        chat_put(w,
                 (struct chat_part){
                     .text = o->text + from, .n = end - from, .learnt = learn[from], .data = data});
        from = end;
    }
}

/* The template's text: its special tokens, and what is between them. */
static void put_own_text(struct chat_work *w, const struct jinja_output *o, size_t from, size_t to)
{
    const struct special_set *set = &w->chat->published->special;
    size_t plain = from;
    for (size_t at = from; at < to;) {
        const struct chat_special *s = special_at(set, o->text + at, to - at);
        if (!s) {
            at++;
            continue;
        }
        put_origin(w, o, plain, at, false);
        bool learnt = memchr(w->published->learn.data + at, 1, s->n) != NULL;
        chat_put(w, (struct chat_part){.special = s, .learnt = learnt});
        plain = at += s->n;
    }
    put_origin(w, o, plain, to, false);
}

/* Stretches of the template's text may have many runs, tokens may lie across them. */
static void put_output(struct chat_work *w, const struct jinja_output *o)
{
    size_t at = 0, from = 0;
    for (size_t i = 0; i < o->nruns; at += o->run[i++].n) {
        if (!o->run[i].is_data)
            continue;
        put_own_text(w, o, from, at);
        from = at + o->run[i].n;
        put_origin(w, o, at, from, true);
    }
    put_own_text(w, o, from, o->n);
}

int published_lay_out(struct chat_work *w, bool open, struct err *e)
{
    const struct published *p = w->chat->published;
    struct published_work *own = w->published;
    struct jinja_output o;
    w->nparts = 0;
    buf_reset(&own->prompt);
    judge_messages(w);
    int code = render(w, own->text, w->whole.messages.length, open, &o, e);
    if (code)
        return code;
    const struct learn_request q = {
        .text = o.text,
        .n = o.n,
        .run = o.run,
        .nruns = o.nruns,
        .message = own->message,
        .nmessages = w->whole.messages.length,
        .generation = jinja_has_generation(w->whole.tools && p->tools ? p->tools : p->t),
        .think = w->chat->rules.learn_think,
        .special = &p->special,
        .eos = p->eos ? p->eos->text : NULL,
        .neos = p->eos ? p->eos->n : 0,
        .prompt = give_prompt,
        .arg = w};
    buf_reset(&own->learn);
    buf_reserve(&own->learn, o.n + 1);
    learn_bytes(&q, own->learn.data);
    code = count_unwritten(w, e);
    if (!code)
        put_output(w, &o);
    return code;
}

struct chat_stop published_stop(struct chat_work *w)
{
    static const struct chat_message m[] = {{.role = CHAT_USER, .text = "question", .n = 8},
                                            {.role = CHAT_ASSISTANT, .text = "answer", .n = 6}};
    const struct tok_info *info = tok_info(w->chat->tok);
    struct chat_stop stop = {.id = info->eos >= 0 ? info->eos : info->eod};
    uint64_t unwritten = w->unwritten;
    bool said = false;
    struct err ignored;
    chat_whole_set(&w->whole, m, 2);
    if (!published_lay_out(w, false, &ignored))
        for (size_t i = 0; i < w->nparts; i++) {
            const struct chat_part *p = &w->part[i];
            said |= !p->special && p->n == 6 && p->data && !memcmp(p->text, "answer", 6);
            if (said && p->special && p->learnt)
                stop.id = p->special->id;
        }
    w->unwritten = unwritten;
    return stop;
}
