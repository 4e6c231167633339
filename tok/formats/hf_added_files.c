/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "tok/formats/hf.h"
#include "tok/formats/hf_member.h"

/*
 * The tokens that transformers' AutoTokenizer (5.23.0), and so Megatron-LM's HuggingFaceTokenizer,
 * adds to those of a tokenizer.json from the files beside it: added_tokens_decoder of
 * tokenizer_config.json in the order of its ids; without one, added_tokens.json; then special
 * tokens that are named and still missing. Ids are assigned in sequence, whatever the files say.
 */

enum { SMALL_FILE = 64 << 20, NAMED = 7, PAD = 4 };

static const char *const named[NAMED] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                         "pad_token", "cls_token", "mask_token"};

struct beside {
    struct pipe_spec *s;
    struct json pad;         /* token of its padding, if there is no other */
    struct json_doc *doc[3]; /* any may be NULL */
    const struct json *config, *map, *added;
    const struct json *list[2], *roles[2]; /* likewise */
    bool late;                             /* the first list comes after added_tokens.json */
    struct string_map said;                /* strings added so far */
    struct string_map known;               /* contents of tokens, to their last index */
    struct string_map named;               /* contents of tokens with a role */
    struct string_map plain; /* contents of those that are special in added_tokens.json */
};

struct listed {
    int64_t id;
    size_t order, place;  /* position among all; index in the tokenizer.json */
    const struct json *j; /* the token, or its content; NULL: from the tokenizer.json */
};

static char *path_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return mem_printf("%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}

/* *ret is NULL if the file does not exist. */
static int open_one(const char *path, const char *name, struct json_doc **doc,
                    const struct json **ret, struct err *e)
{
    char *file = path_beside(path, name);
    int code = 0;
    if (access(file, F_OK) == 0) {
        code = json_open_plain(file, SMALL_FILE, doc, e);
        if (!code && json_root(*doc)->kind != JSON_OBJECT)
            code = err_set(e, ERR_DATA, "%s: not a JSON object", file);
        if (code)
            err_hint(e, "it is next to %s and may add tokens: repair it, or move it away", path);
        else
            *ret = json_root(*doc);
    }
    free(file);
    return code;
}

/* A token's content under a key, as a string or in an object. */
static const struct json *content_of(const struct json *v)
{
    v = v && v->kind == JSON_OBJECT ? json_get(v, "content") : v;
    return v && v->kind == JSON_STRING ? v : NULL;
}

/* special_tokens_map.json takes precedence; it is read if there is no added_tokens_decoder. */
static const struct json *value_of(const struct beside *b, const char *key)
{
    const struct json *v = b->map ? json_get(b->map, key) : NULL;
    v = v ? v : b->config ? json_get(b->config, key) : NULL;
    return v && v->kind != JSON_NULL ? v : NULL;
}

static bool has_key(const struct json *j, const char *key)
{
    return j && json_get(j, key);
}

static bool is_empty(const struct json *j)
{
    return !j || j->kind == JSON_NULL || !j->length;
}

/* Further special tokens: lists of them, and objects whose keys are roles, both under one key or,
 * in older files, another. */
static void find_extras(struct beside *b)
{
    static const char old[] = "additional_special_tokens";
    const struct json *e = b->config ? json_get(b->config, "extra_special_tokens") : NULL;
    const struct json *a = b->config ? json_get(b->config, old) : NULL;
    const struct json *more = b->map ? json_get(b->map, "extra_special_tokens") : NULL;
    if (a && is_empty(e)) {
        e = a;
        a = NULL;
    }
    b->roles[0] = e && e->kind == JSON_OBJECT ? e : NULL;
    b->roles[1] = more && more->kind == JSON_OBJECT ? more : NULL;
    e = b->roles[0] || b->roles[1] ? NULL : e;
    a = b->map && json_get(b->map, old) ? json_get(b->map, old) : a;
    b->list[1] = more && more->kind == JSON_ARRAY ? more : NULL;
    b->late = !e && !b->list[1];
    e = b->late ? a : e;
    b->list[0] = e && e->kind == JSON_ARRAY ? e : NULL;
}

static bool is_model_key(const struct json *j)
{
    static const char tail[] = "_token";
    for (int i = 0; i < NAMED; i++)
        if (!strcmp(j->key, named[i]))
            return false;
    return j->key_length >= sizeof(tail) - 1 &&
           !strcmp(j->key + j->key_length - (sizeof(tail) - 1), tail);
}

static bool is_in(const struct json *list, const struct json *j)
{
    return list && j >= list->child && j < list->child + list->length;
}

/* A token with the members of `j`, or of a string, which is special. So are those of the map, and
 * those with a role. */
static struct pipe_token *add_token(struct beside *b, const struct json *j, bool role)
{
    const struct json *content = content_of(j);
    struct get g = {"", j, NULL};
    struct pipe_token *t = pipe_add_token(b->s, content->string, content->length);
    bool whole = j->kind == JSON_OBJECT;
    t->special = role || !whole || is_in(b->map, j) || get_bool(&g, "special", false);
    t->normalized = whole ? get_bool(&g, "normalized", !t->special) : false;
    t->single_word = whole && get_bool(&g, "single_word", false);
    t->lstrip = whole && get_bool(&g, "lstrip", false);
    t->rstrip = whole && get_bool(&g, "rstrip", false);
    return t;
}

static void index_known(struct beside *b)
{
    const struct pipe_spec *s = b->s;
    string_map_finish(&b->known);
    string_map_init(&b->known, s->ntokens + 1);
    for (size_t i = s->ntokens; i-- > 0;)
        string_map_add(&b->known, s->token[i].text, s->token[i].length, (int32_t)i);
}

static int by_id(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* {"7": {"content": ..}}, or {"content": 7} in the older file, where keys are the tokens. */
static int list_one(const struct beside *b, const struct json *j, bool decoder, struct listed *ret,
                    struct err *e)
{
    char *end = NULL;
    ret->id = decoder ? strtoll(j->key, &end, 10) : j->integer;
    if (decoder && (end == j->key || *end || j->kind != JSON_OBJECT || !content_of(j)))
        return err_set(e, ERR_DATA,
                       "%s: added_tokens_decoder of the tokenizer_config.json beside it: "
                       "\"%.64s\" is not an id with a token",
                       b->s->path, j->key);
    if (!decoder && j->kind != JSON_INT)
        return err_set(e, ERR_DATA, "%s: added_tokens.json beside it: \"%.64s\" has no id",
                       b->s->path, j->key);
    return 0;
}

static bool has_role(const struct beside *b, const char *text, size_t n)
{
    return string_map_find(&b->named, text, n) >= 0;
}

static void add_older(struct beside *b, const struct json *j)
{
    struct pipe_token *t = pipe_add_token(b->s, j->key, j->key_length);
    bool special = string_map_find(&b->plain, j->key, j->key_length) >= 0;
    t->special = special || has_role(b, t->text, t->length);
    t->normalized = !special;
}

/* Adds it again, to replace another of the same content. */
static void add_again(struct beside *b, size_t place)
{
    const struct pipe_token was = b->s->token[place];
    struct pipe_token *t = pipe_add_token(b->s, was.text, was.length);
    t->special = was.special || has_role(b, was.text, was.length);
    t->normalized = was.normalized;
    t->single_word = was.single_word;
    t->lstrip = was.lstrip;
    t->rstrip = was.rstrip;
}

static void add_listed(struct beside *b, const struct listed *l, bool decoder)
{
    const struct json *content = decoder ? content_of(l->j) : NULL;
    if (!l->j)
        add_again(b, l->place);
    else if (decoder)
        add_token(b, l->j, has_role(b, content->string, content->length));
    else
        add_older(b, l->j);
}

/* Of several with one id the last counts; without a decoder, those of the tokenizer.json do. */
static int added_add_list(struct beside *b, const struct json *list, bool decoder, struct err *e)
{
    size_t n = list ? list->length : 0, given = decoder ? 0 : b->s->ntokens;
    if (list && list->kind != JSON_OBJECT)
        return err_set(e, ERR_DATA, "%s: added_tokens_decoder beside it is not an object",
                       b->s->path);
    struct listed *l = mem_new(n + given + 1, sizeof(*l));
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        l[i] = (struct listed){.order = i, .j = &list->child[i]};
        code = list_one(b, l[i].j, decoder, &l[i], e);
    }
    for (size_t i = 0; i < given; i++)
        l[n + i] = (struct listed){.id = b->s->token[i].listed, .order = n + i, .place = i};
    n += given;
    qsort(l, n, sizeof(*l), by_id);
    for (size_t i = 0; i < n && !code; i++)
        if (i + 1 == n || l[i].id != l[i + 1].id)
            add_listed(b, &l[i], decoder);
    free(l);
    return code;
}

/* `visit` is called with each token with a role, in the order of transformers. */
typedef void visit(struct beside *b, const struct json *j, bool role);

/* Roles of the model's own, under keys with the common endings: objects of the configuration and
 * members of the map come first. */
static void each_model_key(struct beside *b, visit *f)
{
    for (int pass = 0; pass < 3; pass++) {
        const struct json *from = pass == 1 ? b->map : b->config;
        for (size_t i = 0; from && i < from->length; i++) {
            const struct json *j = &from->child[i];
            const struct json *config = b->config ? json_get(b->config, j->key) : NULL;
            const struct json *map = b->map ? json_get(b->map, j->key) : NULL;
            bool first = config && config->kind == JSON_OBJECT && json_get(config, "__type");
            if (!is_model_key(j) || !content_of(j) || (pass == 0) != first || (pass == 2 && map))
                continue;
            if (pass == 0 || !(config && config->kind == JSON_OBJECT && !first))
                f(b,
                  pass == 0 && map                        ? map
                  : config && config->kind == JSON_STRING ? config
                                                          : j,
                  true);
        }
    }
}

static void each_special(struct beside *b, visit *f)
{
    for (int i = 0; i < NAMED; i++)
        if (content_of(value_of(b, named[i])))
            f(b, value_of(b, named[i]), true);
        else if (i == PAD && b->s->pad_token.p && !has_key(b->config, named[i]) &&
                 !has_key(b->map, named[i]))
            f(b, &b->pad, true);
    each_model_key(b, f);
    for (int k = 0; k < 4; k++) {
        const struct json *from = k < 2 ? b->roles[k] : b->list[k - 2];
        for (size_t i = 0; from && i < from->length; i++)
            if (content_of(&from->child[i]))
                f(b, &from->child[i], k < 2);
    }
}

static void note_role(struct beside *b, const struct json *j, bool role)
{
    const struct json *content = content_of(j);
    if (role)
        string_map_add(&b->named, content->string, content->length, 0);
}

/* Notes what makes a token of added_tokens.json special: a common role, or the lists. */
static void note_plain(struct beside *b)
{
    for (int i = 0; i < NAMED; i++) {
        const struct json *v = value_of(b, named[i]), *content = content_of(v);
        if (content && (v->kind == JSON_STRING || is_in(b->map, v)))
            string_map_add(&b->plain, content->string, content->length, 0);
    }
    for (int k = b->late; k < 2; k++)
        for (size_t i = 0; b->list[k] && i < b->list[k]->length; i++) {
            const struct json *v = &b->list[k]->child[i], *content = content_of(v);
            if (content && (v->kind == JSON_STRING || k))
                string_map_add(&b->plain, content->string, content->length, 0);
        }
}

static void add_missing(struct beside *b, const struct json *j, bool role)
{
    const struct json *content = content_of(j);
    const char *text = content->string;
    size_t n = content->length;
    bool said = j->kind == JSON_STRING && !string_map_add(&b->said, text, n, 0);
    if (string_map_find(&b->known, text, n) < 0 && !said)
        add_token(b, j, role || has_role(b, text, n));
}

static size_t specials_at_most(const struct beside *b)
{
    size_t n = NAMED + 1 + (b->config ? b->config->length : 0) + (b->map ? b->map->length : 0);
    for (int k = 0; k < 2; k++)
        n += (b->roles[k] ? b->roles[k]->length : 0) + (b->list[k] ? b->list[k]->length : 0);
    return 2 * n;
}

static int add_all(struct beside *b, struct err *e)
{
    const struct json *decoder = b->config ? json_get(b->config, "added_tokens_decoder") : NULL;
    if (decoder)
        b->map = b->added = NULL;
    find_extras(b);
    string_map_init(&b->named, specials_at_most(b));
    string_map_init(&b->plain, specials_at_most(b));
    string_map_init(&b->said, specials_at_most(b));
    each_special(b, note_role);
    note_plain(b);
    int code = added_add_list(b, decoder ? decoder : b->added, decoder != NULL, e);
    index_known(b);
    if (!code)
        each_special(b, add_missing);
    return code;
}

/* The digest of the differences from the first n tokens, those of the tokenizer.json. */
static void note_changes(struct pipe_spec *s, size_t n)
{
    struct string_map was;
    struct buf b = {0};
    string_map_init(&was, n + 1);
    for (size_t i = n; i-- > 0;)
        string_map_add(&was, s->token[i].text, s->token[i].length, (int32_t)i);
    for (size_t i = n; i < s->ntokens; i++) {
        const struct pipe_token *t = &s->token[i];
        int64_t k = string_map_find(&was, t->text, t->length);
        const struct pipe_token *o = k < 0 ? NULL : &s->token[k];
        if (!o || o->special != t->special || o->normalized != t->normalized ||
            o->single_word != t->single_word || o->lstrip != t->lstrip || o->rstrip != t->rstrip)
            buf_addf(&b, "%zu %.*s %d%d%d%d%d\n", t->length, (int)t->length, t->text, t->special,
                     t->normalized, t->single_word, t->lstrip, t->rstrip);
    }
    if (b.len)
        sha_once(b.data, b.len, s->beside);
    buf_finish(&b);
    string_map_finish(&was);
}

int hf_beside(struct pipe_spec *s, struct err *e)
{
    size_t given = s->ntokens;
    static const char file[] = "tokenizer.json";
    const char *slash = strrchr(s->path, '/');
    struct beside b = {
        .s = s, .pad = {.kind = JSON_STRING, .string = s->pad_token.p, .length = s->pad_token.n}};
    if (strcmp(slash ? slash + 1 : s->path, file) != 0)
        return 0;
    int code = open_one(s->path, "tokenizer_config.json", &b.doc[0], &b.config, e);
    if (!code)
        code = open_one(s->path, "special_tokens_map.json", &b.doc[1], &b.map, e);
    if (!code)
        code = open_one(s->path, "added_tokens.json", &b.doc[2], &b.added, e);
    if (!code && (b.config || b.map || b.added))
        code = add_all(&b, e);
    if (!code)
        note_changes(s, given);
    string_map_finish(&b.known);
    string_map_finish(&b.named);
    string_map_finish(&b.plain);
    string_map_finish(&b.said);
    for (int i = 0; i < 3; i++)
        json_close(b.doc[i]);
    return code;
}
