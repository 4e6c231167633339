/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/formats/hf.h"
#include "tok/formats/hf_member.h"

/*
 * The rest of a tokenizer.json: the post-processor, of which a single text needs only the ids
 * before and after it; added tokens; the model's options.
 */

enum { TEMPLATE_MAX = 1024 };

static int post_put(const struct get *g, struct pipe_round *r, int64_t id)
{
    if (id < ROUND_TEXT || id >= INT32_MAX || r->n == TEMPLATE_MAX)
        return err_set(g->e, ERR_DATA,
                       "%s: a special token whose id is not an integer, or "
                       "too many of them",
                       g->path);
    r->id = mem_grow(r->id, r->n + 1, sizeof(*r->id));
    r->id[r->n++] = (int32_t)id;
    return 0;
}

static void end_list(struct pipe_round *r)
{
    r->end = mem_grow(r->end, r->nlists + 1, sizeof(*r->end));
    r->end[r->nlists++] = r->n;
}

static int put_list(const struct get *g, struct pipe_round *r, const struct pipe_round *from,
                    size_t list)
{
    int code = 0;
    for (size_t i = list ? from->end[list - 1] : 0; i < from->end[list] && !code; i++)
        code = post_put(g, r, from->id[i]);
    return code;
}

static size_t text_at(const struct pipe_round *r)
{
    size_t at = 0;
    while (at < r->n && r->id[at] != ROUND_TEXT)
        at++;
    return at;
}

/* Replaces the lists by new ones. */
static void post_take(struct pipe_spec *s, struct pipe_round r)
{
    free(s->round.id);
    free(s->round.end);
    s->round = r;
}

/* {"Sequence":{"id":"A"}} stands for the first of the current lists. */
static int post_put_sequence(const struct get *g, struct pipe_round *r,
                             const struct pipe_round *from, const struct json *sequence)
{
    const struct json *id = json_get(sequence, "id");
    size_t list = id && id->kind == JSON_STRING && !strcmp(id->string, "B");
    if (list >= from->nlists)
        return get_bad(g, "single", "a template of one text");
    return put_list(g, r, from, list);
}

static int post_put_special(const struct get *g, struct pipe_round *r, const struct json *special)
{
    const struct json *tokens = json_get(g->j, "special_tokens");
    const struct json *id = special ? json_get(special, "id") : NULL;
    const struct json *t =
        id && id->kind == JSON_STRING && tokens ? json_get(tokens, id->string) : NULL;
    const struct json *ids = t ? json_get(t, "ids") : NULL;
    if (!ids || ids->kind != JSON_ARRAY)
        return get_bad(g, "single", "a template whose special tokens have ids");
    int code = 0;
    for (size_t k = 0; k < ids->length && !code; k++)
        code = post_put(g, r,
                        ids->child[k].kind == JSON_INT && ids->child[k].integer >= 0
                            ? ids->child[k].integer
                            : INT32_MAX);
    return code;
}

/* Each of its pieces is a list of its own. After one that made two lists, these are the pair. */
static int add_template(struct pipe_spec *s, const struct get *g)
{
    const char *key = s->round.nlists == 2 ? "pair" : "single";
    const struct json *pieces = json_get(g->j, key);
    struct pipe_round r = {0};
    int code = 0;
    size_t texts = 0;
    if (s->round.nlists > 2)
        return err_set(g->e, ERR_DATA, "%s: a template after one of %zu parts is not supported",
                       g->path, s->round.nlists);
    if (!pieces || pieces->kind != JSON_ARRAY)
        return get_bad(g, key, "an array");
    for (size_t i = 0; i < pieces->length && !code; i++) {
        const struct json *text = json_get(&pieces->child[i], "Sequence");
        code = text ? post_put_sequence(g, &r, &s->round, text)
                    : post_put_special(g, &r, json_get(&pieces->child[i], "SpecialToken"));
        end_list(&r);
    }
    for (size_t i = 0; i < r.n; i++)
        texts += r.id[i] == ROUND_TEXT;
    if (!code && texts != 1)
        code = get_bad(g, key, "a template with the text in it once");
    post_take(s, r);
    return code;
}

/* ["[CLS]", 101] and ["[SEP]", 102] around the first list; after every other one a [SEP], and
 * before it too in RoBERTa's. */
static int add_bert(struct pipe_spec *s, const struct get *g, bool roberta)
{
    int64_t id[2];
    struct pipe_round r = {0};
    int code = 0;
    for (int i = 0; i < 2; i++) {
        const struct json *v = json_get(g->j, i ? "sep" : "cls");
        if (!v || v->kind != JSON_ARRAY || v->length != 2 || v->child[1].kind != JSON_INT ||
            v->child[1].integer < 0 || v->child[1].integer >= INT32_MAX)
            return get_bad(g, i ? "sep" : "cls", "a token and its id");
        id[i] = v->child[1].integer;
    }
    for (size_t i = 0; i < s->round.nlists && !code; i++) {
        if (!i || roberta)
            code = post_put(g, &r, id[i > 0]);
        if (!code)
            code = put_list(g, &r, &s->round, i);
        if (!code)
            code = post_put(g, &r, id[1]);
        end_list(&r);
    }
    post_take(s, r);
    return code;
}

/* Trims white space from offsets, unless told not to. To it, what precedes the text in its list is
 * part of the text. */
static void add_trim(struct pipe_spec *s, const struct get *g)
{
    if (!get_bool(g, "trim_offsets", true))
        return;
    size_t at = text_at(&s->round), begin = 0;
    for (size_t i = 0; i < s->round.nlists && s->round.end[i] <= at; i++)
        begin = s->round.end[i];
    s->trim = mem_grow(s->trim, s->ntrims + 1, sizeof(*s->trim));
    s->trim[s->ntrims++] = (struct tok_trim){get_bool(g, "add_prefix_space", true), at - begin};
}

static int add_processor(struct pipe_spec *s, const struct get *g)
{
    const char *type;
    int code = get_type(g, &type);
    if (code)
        return code;
    if (!strcmp(type, "Sequence"))
        return get_each(s, g, "processors", add_processor);
    if (!strcmp(type, "TemplateProcessing"))
        return add_template(s, g);
    bool roberta = !strcmp(type, "RobertaProcessing");
    if (roberta)
        add_trim(s, g); /* before its own ids are added */
    if (roberta || !strcmp(type, "BertProcessing"))
        return add_bert(s, g, roberta);
    if (!strcmp(type, "ByteLevel"))
        return add_trim(s, g), 0;
    return get_unknown(g, "post-processor", type);
}

int hf_post_processor(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    struct pipe_round *r = &s->round;
    struct get g = {where, j, e};
    int code = post_put(&g, r, ROUND_TEXT);
    end_list(r);
    if (!code)
        code = get_begin(s, j, where, e, add_processor);
    if (code)
        return code;
    s->nbefore = text_at(r);
    s->nafter = r->n - s->nbefore - 1;
    s->before = mem_grow(NULL, r->n, sizeof(*s->before));
    s->after = mem_grow(NULL, r->n, sizeof(*s->after));
    memcpy(s->before, r->id, s->nbefore * sizeof(*s->before));
    memcpy(s->after, r->id + s->nbefore + 1, s->nafter * sizeof(*s->after));
    return 0;
}

static int get_side(const struct get *g, bool *ret_left)
{
    const struct json *side = json_get(g->j, "direction");
    if (side && (side->kind != JSON_STRING ||
                 (strcmp(side->string, "Left") != 0 && strcmp(side->string, "Right") != 0)))
        return get_bad(g, "direction", "Left or Right");
    *ret_left = side && !strcmp(side->string, "Left");
    return 0;
}

/* The ids that truncation leaves. For a single text all strategies but OnlySecond are equal; that
 * one is an error in the reference for a text that is too long. */
static int add_truncation(struct pipe_spec *s, const struct get *g)
{
    const struct json *which = json_get(g->j, "strategy");
    s->longest = get_int(g, "max_length", -1); /* 0 means none */
    if (s->longest < 0)
        return get_bad(g, "max_length", "an integer");
    s->longest_second = which && which->kind == JSON_STRING && !strcmp(which->string, "OnlySecond");
    s->longest_stride = get_int(g, "stride", 0);
    if (s->longest_stride < 0)
        return get_bad(g, "stride", "an integer");
    return get_side(g, &s->longest_left);
}

int hf_truncation(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    return get_begin(s, j, where, e, add_truncation);
}

static int add_padding(struct pipe_spec *s, const struct get *g)
{
    const struct json *way = json_get(g->j, "strategy"),
                      *fixed = way ? json_get(way, "Fixed") : NULL;
    const struct json *multiple = json_get(g->j, "pad_to_multiple_of");
    const struct json *token = json_get(g->j, "pad_token");
    struct tok_padding *p = &s->padding;
    int64_t id = get_int(g, "pad_id", -1);
    bool any = multiple && multiple->kind != JSON_NULL;
    if (fixed ? fixed->kind != JSON_INT || fixed->integer < 0 || fixed->integer > INT32_MAX
              : !way || way->kind != JSON_STRING || strcmp(way->string, "BatchLongest") != 0)
        return get_bad(g, "strategy", "\"BatchLongest\" or {\"Fixed\": N}");
    if (any &&
        (multiple->kind != JSON_INT || multiple->integer < 0 || multiple->integer > INT32_MAX))
        return get_bad(g, "pad_to_multiple_of", "null or an integer");
    if (id < 0 || id >= INT32_MAX)
        return get_bad(g, "pad_id", "an id");
    if (token && token->kind == JSON_STRING)
        s->pad_token = (struct string_ref){arena_strndup(&s->arena, token->string, token->length),
                                           token->length};
    p->known = true;
    p->to = fixed ? fixed->integer : 0;
    p->multiple = any && !(fixed && !p->to) ? multiple->integer : 0; /* 0 counts as a multiple */
    p->id = (int32_t)id;
    return get_side(g, &p->left);
}

int hf_padding(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    return get_begin(s, j, where, e, add_padding);
}

int hf_version(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    if (j->kind == JSON_STRING && !strcmp(j->string, "1.0"))
        return 0;
    return err_set(e, ERR_DATA, "%s: %s is not \"1.0\"", s->path, where);
}

int hf_added_tokens(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    if (j->kind != JSON_ARRAY)
        return err_set(e, ERR_DATA, "%s: %s is not an array", s->path, where);
    for (size_t i = 0; i < j->length; i++) {
        struct get g = {s->path, &j->child[i], e};
        const struct json *content = json_get(g.j, "content");
        if (!content || content->kind != JSON_STRING)
            return err_set(e, ERR_DATA, "%s: %s[%zu].content is not a string", s->path, where, i);
        struct pipe_token *t = pipe_add_token(s, content->string, content->length);
        t->listed = get_int(&g, "id", -1);
        t->special = get_bool(&g, "special", false);
        t->normalized = get_bool(&g, "normalized", !t->special);
        t->single_word = get_bool(&g, "single_word", false);
        t->lstrip = get_bool(&g, "lstrip", false);
        t->rstrip = get_bool(&g, "rstrip", false);
    }
    return 0;
}

/* ---- the model ---------------------------------------------------------------------------- */

/* Older files do not name the model's type: the first whose members exist. */
static int find_model(const struct get *g, bool scores, bool merges, enum pipe_model *ret)
{
    static const char *const name[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    const struct json *type = json_get(g->j, "type");
    if (!type || type->kind == JSON_NULL) {
        *ret = merges                                        ? MODEL_BPE
               : scores                                      ? MODEL_UNIGRAM
               : json_get(g->j, "continuing_subword_prefix") ? MODEL_WORDPIECE
                                                             : MODEL_WORDLEVEL;
        return 0;
    }
    for (int i = 0; type->kind == JSON_STRING && i < 4; i++)
        if (!strcmp(type->string, name[i])) {
            *ret = (enum pipe_model)i;
            return 0;
        }
    return get_unknown(g, "model", type->kind == JSON_STRING ? type->string : "");
}

static int get_optional(struct pipe_spec *s, const struct get *g, const char *key,
                        struct string_ref *ret)
{
    const struct json *v = json_get(g->j, key);
    return v && v->kind != JSON_NULL ? get_text(s, g, key, ret) : 0;
}

static double post_number(const struct json *j)
{
    return j->kind == JSON_INT ? (double)j->integer : j->kind == JSON_REAL ? j->real : 0;
}

static bool is_part(const struct json *j)
{
    return (j->kind == JSON_INT || j->kind == JSON_REAL) && post_number(j) >= 0 &&
           post_number(j) <= 1;
}

int hf_model(struct pipe_spec *s, const struct json *j, bool scores, bool merges, struct err *e)
{
    char *path = mem_printf("%s: model", s->path);
    struct get g = {path, j, e};
    const struct json *dropout = json_get(j, "dropout");
    int code = find_model(&g, scores, merges, &s->model);
    if (!code && scores != (s->model == MODEL_UNIGRAM))
        code = get_bad(&g, "vocab",
                       s->model == MODEL_UNIGRAM ? "an array of pieces and scores"
                                                 : "an object of pieces and ids");
    if (!code && s->model == MODEL_BPE && !merges)
        code = get_bad(&g, "merges", "there");
    if (!code && dropout && dropout->kind != JSON_NULL && !is_part(dropout))
        code = get_bad(&g, "dropout", "a number from 0 to 1");
    s->dropout = code || !dropout || s->model != MODEL_BPE ? 0 : post_number(dropout);
    if (!code)
        code = get_optional(s, &g, "unk_token", &s->unk);
    if (!code)
        code = get_optional(s, &g, "continuing_subword_prefix", &s->prefix);
    if (!code)
        code = get_optional(s, &g, "end_of_word_suffix", &s->suffix);
    s->fuse_unk = get_bool(&g, "fuse_unk", false);
    s->byte_fallback = get_bool(&g, "byte_fallback", false);
    s->ignore_merges = get_bool(&g, "ignore_merges", false);
    s->unk_id = get_int(&g, "unk_id", -1);
    s->max_chars = (size_t)get_int(&g, "max_input_chars_per_word", 100);
    free(path);
    return code;
}
