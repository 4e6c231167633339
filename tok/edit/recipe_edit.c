/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/edit/recipe_edit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/edit/recipe_bpe.h"
#include "tok/inspect/token_bytes.h"

/* Vocabularies that grow: extend, and merge. */

/* ---- rows ----------------------------------------------------------------------------------- */

/* Existing ids keep their rows. */
static void begin_rows(struct recipe_rows *w, const struct tokenizer *t, size_t most)
{
    *w = (struct recipe_rows){.old_size = (size_t)tok_info(t)->vocab_size};
    w->old = mem_new(w->old_size + most + 1, sizeof(*w->old));
    w->start = mem_new(w->old_size + most + 1, sizeof(*w->start));
    for (; w->n < w->old_size; w->n++)
        w->old[w->n] = (int32_t)w->n;
}

/* Invalid UTF-8: the byte pieces. */
static void bytes_to_ids(const struct recipe *r, const char *p, size_t n, struct tok_ids *ids)
{
    for (size_t i = 0; i < n; i++) {
        char name[16];
        uint8_t b = (uint8_t)p[i];
        int32_t id = recipe_find(r, name, letter_put(name, b));
        memcpy(name, "<0x00>", 6);
        name[3] = "0123456789ABCDEF"[b >> 4];
        name[4] = "0123456789ABCDEF"[b & 15];
        id = id >= 0 ? id : recipe_find(r, name, 6);
        if (id < 0)
            continue;
        *tok_ids_reserve(ids, 1) = id;
        ids->n++;
    }
}

/* A new row: the mean of the rows of the old tokenizer's pieces for its text. */
static int add_row(struct recipe_rows *w, const struct recipe *r, const struct tokenizer *t,
                   struct tok_work *work, const char *p, size_t n, struct err *e)
{
    int code = 0;
    w->old[w->n] = -1;
    if (utf8_good(p, n) == n)
        code = tok_encode(t, work, p, n, &w->from, e);
    else
        bytes_to_ids(r, p, n, &w->from);
    w->start[++w->n] = w->from.n;
    return code;
}

/* ---- ids after all others ------------------------------------------------------------------- */

/*
 * Added tokens that do not follow the vocabulary (recipe_tokens_follow), and all of them if
 * `pieces` will follow, are moved into the pieces, where ids are explicit (true). So are
 * Megatron-LM's pieces after a SentencePiece model.
 */
static bool recipe_make_room(struct recipe *r, const struct tokenizer *t, bool pieces)
{
    if (r->from == RECIPE_SP) {
        for (int64_t id = (int64_t)r->npieces; id < tok_info(t)->vocab_size; id++) {
            size_t length;
            const char *p = tok_piece(t, id, &length);
            recipe_add_piece(r, p, length)->type = SP_CONTROL;
        }
        recipe_index(r);
        return true;
    }
    bool settle = pieces || !recipe_tokens_follow(r);
    if (settle)
        recipe_settle_tokens(r);
    return settle;
}

/* In a unigram vocabulary an added token gets a score that no path takes. */
static void hide_scores(struct recipe *r, size_t from)
{
    double least = 0;
    for (size_t i = 0; i < from; i++)
        least = r->piece[i].score < least ? r->piece[i].score : least;
    if (r->from != RECIPE_HF || r->model != MODEL_UNIGRAM)
        return;
    for (size_t i = from; i < r->npieces; i++)
        if (recipe_token_of(r, (int32_t)i))
            r->piece[i].score = floor(least - 10) * (double)(r->piece[i].n + 1);
}

/* ---- extend --------------------------------------------------------------------------------- */

static void put_token(struct recipe *r, const char *text, int32_t id, bool special, bool among)
{
    size_t n = strlen(text);
    if (r->from == RECIPE_SP) {
        if ((size_t)id == r->npieces)
            recipe_add_piece(r, text, n);
        struct recipe_piece *p = &r->piece[id];
        bool free = p->type != SP_UNKNOWN && p->type != SP_BYTE;
        p->type = !free ? p->type : special ? SP_CONTROL : SP_USER;
        p->score = free ? 0 : p->score;
        return;
    }
    struct recipe_token *t = recipe_token_of(r, id);
    t = t ? t : recipe_add_token(r, text, n, id);
    t->special |= special;
    if (among && (size_t)id == r->npieces)
        recipe_add_piece(r, text, n);
}

/* A user-defined piece is matched in normalized text, where spaces are marks. */
static const char *spell_token(struct recipe *r, const char *text, bool special)
{
    struct buf b = {0};
    if (r->from != RECIPE_SP || special || !r->sp.normalizer.escape_whitespaces)
        return text;
    for (const char *p = text; *p; p++)
        buf_add(&b, *p == ' ' ? "\u2581" : p, *p == ' ' ? 3 : 1);
    const char *spelt = arena_strndup(&r->arena, b.data, b.len);
    buf_finish(&b);
    return spelt;
}

int recipe_extend(struct recipe *r, const struct tokenizer *t, const char *const *text, size_t n,
                  size_t nspecial, struct recipe_rows *ret, struct err *e)
{
    int code = 0;
    struct tok_work *work = tok_work_create(t);
    bool list = recipe_is_list(r);
    begin_rows(ret, t, n);
    bool among = recipe_make_room(r, t, list);
    for (size_t i = 0; i < n && !code; i++) {
        const char *spelt = spell_token(r, text[i], i < nspecial);
        if (list && (code = recipe_spell_piece(r, text[i], i < nspecial, &spelt, e)))
            break;
        int64_t id = tok_find(t, spelt);
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = !strcmp(text[i], text[k]);
        if (id >= 0 || again)
            recipe_note(r, "%s already exists", text[i]);
        if (again)
            continue;
        if (!list)
            put_token(r, spelt, id >= 0 ? (int32_t)id : (int32_t)ret->n, i < nspecial, among);
        else if (id < 0)
            recipe_add_piece(r, spelt, strlen(spelt));
        if (id < 0)
            code = add_row(ret, r, t, work, text[i], strlen(text[i]), e);
    }
    recipe_index(r);
    tok_work_destroy(work);
    return code;
}

/* ---- merge ---------------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

/* Is this member of a component what the reference takes where it is absent? */
static bool is_default(const char *type, const struct json *member)
{
    if (!strcmp(type, "ByteLevel") && !strcmp(member->key, "use_regex"))
        return member->kind == JSON_BOOL && member->boolean;
    if (!strcmp(type, "Metaspace") && !strcmp(member->key, "split"))
        return member->kind == JSON_BOOL && member->boolean;
    return !strcmp(type, "Metaspace") && !strcmp(member->key, "prepend_scheme") &&
           member->kind == JSON_STRING && !strcmp(member->string, "always");
}

static bool same_value(const struct json *a, const struct json *b);

static const char *component_type(const struct json *o)
{
    const struct json *type = json_get(o, "type");
    return type && type->kind == JSON_STRING ? type->string : "";
}

/* Every member of `a` is in `b`, or a default. */
static bool within(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < a->length; i++) {
        const struct json *other = json_get(b, a->child[i].key);
        if (other ? !same_value(&a->child[i], other) : !is_default(component_type(a), &a->child[i]))
            return false;
    }
    return true;
}

/* Values of JSON that mean the same component: the order of members does not matter. */
static bool same_value(const struct json *a, const struct json *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return a->boolean == b->boolean;
    case JSON_INT:
    case JSON_REAL:
        return a->real == b->real;
    case JSON_STRING:
        return a->length == b->length && !memcmp(a->string, b->string, a->length);
    case JSON_OBJECT:
        return within(a, b) && within(b, a);
    case JSON_ARRAY:
        break;
    }
    bool same = a->length == b->length;
    for (size_t i = 0; i < a->length && same; i++)
        same = same_value(&a->child[i], &b->child[i]);
    return same;
}

static bool same_component(const char *a, const char *b)
{
    struct json_doc *x = NULL, *y = NULL;
    struct err ignored;
    if (same_text(a, b))
        return true;
    bool same = a && b && !json_parse("a component", a, strlen(a), &x, &ignored) &&
                !json_parse("a component", b, strlen(b), &y, &ignored) &&
                same_value(json_root(x), json_root(y));
    json_close(x);
    json_close(y);
    return same;
}

static int differ(const struct recipe *r, const struct recipe *b, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "%s and %s cannot be merged: they have different %ss", r->path,
                   b->path, what);
}

static int check_alike(const struct recipe *r, const struct recipe *b, struct err *e)
{
    static const enum recipe_component component[] = {COMPONENT_NORMALIZER,
                                                      COMPONENT_PRE_TOKENIZER};
    if (r->from != b->from)
        return differ(r, b, "format", e);
    if (r->model != b->model || r->sp.kind != b->sp.kind)
        return differ(r, b, "model type", e);
    for (size_t i = 0; i < 2; i++)
        if (!same_component(r->component[component[i]], b->component[component[i]]))
            return differ(r, b, i ? "pre_tokenizer" : "normalizer", e);
    const struct sp_normalizer *x = &r->sp.normalizer, *y = &b->sp.normalizer;
    if (x->charsmap_size != y->charsmap_size || x->add_dummy_prefix != y->add_dummy_prefix ||
        x->remove_extra_whitespaces != y->remove_extra_whitespaces ||
        x->escape_whitespaces != y->escape_whitespaces ||
        (x->charsmap_size && memcmp(x->charsmap, y->charsmap, x->charsmap_size)))
        return differ(r, b, "normalizer", e);
    if (r->byte_fallback != b->byte_fallback)
        return differ(r, b, "byte fallback", e);
    if (recipe_is_list(r) && !same_text(r->pattern, b->pattern))
        return differ(r, b, "pattern", e);
    if (recipe_is_list(r) && r->type != b->type)
        return differ(r, b, "tokenizer type", e);
    if (!same_text(r->prefix, b->prefix) || !same_text(r->suffix, b->suffix))
        return differ(r, b, "mark for parts of word", e);
    return 0;
}

struct scored {
    double score;
    size_t id;
};

static int compare_scored(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* By scores, new pieces of a BPE merge after all others, in their former order. */
static void lower_scores(struct recipe *r, size_t from)
{
    struct scored *list = mem_new(r->npieces + 1, sizeof(*list));
    double least = 0;
    size_t n = 0;
    for (size_t i = 0; i < from; i++)
        least =
            r->piece[i].type == SP_NORMAL && r->piece[i].score < least ? r->piece[i].score : least;
    for (size_t i = from; i < r->npieces; i++)
        if (r->piece[i].type == SP_NORMAL)
            list[n++] = (struct scored){r->piece[i].score, i};
    qsort(list, n, sizeof(*list), compare_scored);
    for (size_t i = 0; i < n; i++)
        r->piece[list[i].id].score = least - 1 - (double)i;
    free(list);
}

/* Appends the merges of b that r lacks. */
static void join_merges(struct recipe *r, const struct recipe *b)
{
    size_t own = r->nmerges;
    struct recipe_bpe *have = recipe_bpe_create(r);
    r->merge = mem_grow(r->merge, own + b->nmerges + 1, sizeof(*r->merge));
    for (size_t i = 0; i < b->nmerges; i++) {
        const struct recipe_piece *p[3] = {&b->piece[b->merge[i].left],
                                           &b->piece[b->merge[i].right], &b->piece[b->merge[i].id]};
        struct recipe_merge m = {recipe_find(r, p[0]->text, p[0]->n),
                                 recipe_find(r, p[1]->text, p[1]->n),
                                 recipe_find(r, p[2]->text, p[2]->n)};
        if (!recipe_bpe_has(have, m.left, m.right))
            r->merge[r->nmerges++] = m;
    }
    recipe_bpe_destroy(have);
}

static void note_unreached(struct recipe *r, size_t from)
{
    struct recipe_bpe *b;
    size_t n = 0, first = 0;
    if (r->model != MODEL_BPE || r->from == RECIPE_TIKTOKEN)
        return;
    b = recipe_bpe_create(r);
    for (size_t i = from; i < r->npieces; i++)
        if (r->piece[i].type == SP_NORMAL && !recipe_token_of(r, (int32_t)i) &&
            !recipe_bpe_reaches(b, (int32_t)i) && n++ == 0)
            first = i;
    recipe_bpe_destroy(b);
    if (n)
        recipe_note(r, "%zu new pieces are not reached by merges, the first is \"%s\"", n,
                    r->piece[first].text);
}

static void join_token(struct recipe *r, const struct recipe_token *t, int32_t id)
{
    struct recipe_token *to = recipe_token_of(r, id);
    if (to || id < 0)
        return;
    to = recipe_add_token(r, t->text, t->n, id);
    to->special = t->special;
    to->normalized = t->normalized;
    to->single_word = t->single_word;
    to->lstrip = t->lstrip;
    to->rstrip = t->rstrip;
}

static int join_pieces(struct recipe *r, const struct tokenizer *t, const struct recipe *b,
                       const struct tokenizer *tb, struct recipe_rows *rows, struct err *e)
{
    struct tok_work *work = tok_work_create(t);
    struct token_bytes s;
    int code = 0;
    token_bytes_init(&s, tb);
    for (int64_t id = 0; id < s.size && !code; id++) {
        const struct recipe_piece *from = (size_t)id < b->npieces ? &b->piece[id] : NULL;
        size_t n, k;
        const char *p = tok_piece(tb, id, &n);
        if (from && from->text) {
            p = from->text;
            n = from->n;
        }
        if (!n || recipe_find(r, p, n) >= 0)
            continue;
        if (b->from == RECIPE_TIKTOKEN && recipe_token_of(b, (int32_t)id)) {
            recipe_note(r, "the special token %s of %s is left out", p, b->path);
            continue;
        }
        struct recipe_piece *to = recipe_add_piece(r, p, n);
        to->type = from ? from->type : SP_CONTROL;
        to->score = from ? from->score : 0;
        const char *text = token_bytes_of(&s, (int32_t)id, &k);
        bool mark = s.kind == SPELLING_MARKS && k > 1 && text[0] == ' ';
        code = add_row(rows, r, t, work, text + mark, k - mark, e);
    }
    token_bytes_finish(&s);
    tok_work_destroy(work);
    recipe_index(r);
    return code;
}

int recipe_join(struct recipe *r, const struct tokenizer *t, const struct recipe *b,
                const struct tokenizer *tb, struct recipe_rows *ret, struct err *e)
{
    int code = check_alike(r, b, e);
    if (code)
        return code;
    begin_rows(ret, t, (size_t)tok_info(tb)->vocab_size);
    size_t before = r->npieces;
    recipe_make_room(r, t, true);
    size_t from = r->npieces;
    code = join_pieces(r, t, b, tb, ret, e);
    if (code)
        return code;
    for (size_t i = 0; i < b->ntokens; i++)
        join_token(r, &b->token[i], recipe_find(r, b->token[i].text, b->token[i].n));
    if (r->from == RECIPE_SP && r->model == MODEL_BPE)
        lower_scores(r, from);
    if ((r->from == RECIPE_HF && r->model == MODEL_BPE) || r->from == RECIPE_GPT2)
        join_merges(r, b);
    hide_scores(r, before);
    note_unreached(r, from);
    return 0;
}
