/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/edit/recipe.h"
#include "tok/edit/recipe_json.h"

/* tokenizer.json, the same bytes as Hugging Face's `Tokenizer.save` of the same tokenizer. */

const char *recipe_component_name(enum recipe_component component)
{
    static const char *const name[] = {"truncation",    "padding",        "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder"};
    return name[component];
}

/* The shortest digits; with an exponent for very large and small values, and then as "1e-7". */
void recipe_put_real(struct buf *b, double v)
{
    struct buf t = {0};
    jsonw_real(&t, v);
    char *e = strchr(buf_str(&t), 'e');
    if (!e) {
        buf_add(b, t.data, t.len);
    } else {
        long power = strtol(e + 1, NULL, 10);
        int digits = 0;
        for (const char *p = t.data; p < e; p++)
            digits += *p >= '0' && *p <= '9';
        if (power < -5 || power > 15)
            buf_addf(b, "%.*se%ld", (int)(e - t.data), t.data, power);
        else if (power < 0)
            buf_addf(b, "%.*f", digits - 1 - (int)power, v);
        else
            buf_addf(b, "%.1f", v);
    }
    buf_finish(&t);
}

void recipe_put_dropout(struct buf *b, double v)
{
    char digits[32];
    for (int n = 1; n < 10; n++) {
        snprintf(digits, sizeof(digits), "%.*g", n, (double)(float)v);
        if (strtof(digits, NULL) == (float)v)
            break;
    }
    recipe_put_real(b, strtod(digits, NULL));
}

static void new_line(struct buf *b, int level)
{
    buf_addf(b, "\n%*s", 2 * level, "");
}

/* Members whose integers are ids of tokens. */
static bool holds_ids(const char *key)
{
    return !strcmp(key, "ids") || !strcmp(key, "cls") || !strcmp(key, "sep") ||
           !strcmp(key, "pad_id");
}

struct id_map {
    const int32_t *to; /* NULL: ids are only visited */
    int64_t n;
    void (*see)(void *arg, int64_t id);
    void *arg;
};

static int64_t map_id(const struct id_map *m, int64_t id)
{
    if (m->see)
        m->see(m->arg, id);
    return m->to && id >= 0 && id < m->n ? m->to[id] : id;
}

static void put_value(struct buf *b, const struct json *j, int level, const char *key,
                      const struct id_map *map)
{
    bool object = j->kind == JSON_OBJECT;
    switch (j->kind) {
    case JSON_NULL:
        buf_adds(b, "null");
        return;
    case JSON_BOOL:
        buf_adds(b, j->boolean ? "true" : "false");
        return;
    case JSON_INT:
        buf_addf(b, "%lld",
                 (long long)(map && holds_ids(key) ? map_id(map, j->integer) : j->integer));
        return;
    case JSON_REAL:
        recipe_put_real(b, j->real);
        return;
    case JSON_STRING:
        jsonw_string(b, j->string, j->length);
        return;
    default:
        break;
    }
    buf_addc(b, object ? '{' : '[');
    for (size_t i = 0; i < j->length; i++) {
        if (i)
            buf_addc(b, ',');
        new_line(b, level + 1);
        if (object) {
            jsonw_string(b, j->child[i].key, j->child[i].key_length);
            buf_adds(b, ": ");
        }
        put_value(b, &j->child[i], level + 1, object ? j->child[i].key : key, map);
    }
    if (j->length)
        new_line(b, level);
    buf_addc(b, object ? '}' : ']');
}

void recipe_put_json(struct buf *b, const struct json *j, int level)
{
    put_value(b, j, level, "", NULL);
}

static void map_component(const struct recipe *r, enum recipe_component component,
                          const struct id_map *map, struct buf *b)
{
    struct json_doc *doc;
    struct err e;
    int code =
        json_parse(r->path, r->component[component], strlen(r->component[component]), &doc, &e);
    BUG_ON(code, "a component that is not JSON: %s", e.msg);
    put_value(b, json_root(doc), 0, "", map);
    json_close(doc);
}

void recipe_map_component(struct recipe *r, enum recipe_component component, const int32_t *map,
                          int64_t n)
{
    struct id_map m = {.to = map, .n = n};
    struct buf b = {0};
    if (!r->component[component])
        return;
    map_component(r, component, &m, &b);
    r->component[component] = arena_strndup(&r->arena, b.data, b.len);
    buf_finish(&b);
}

void recipe_see_ids(const struct recipe *r, enum recipe_component component,
                    void (*see)(void *arg, int64_t id), void *arg)
{
    struct id_map m = {.see = see, .arg = arg};
    struct buf b = {0};
    if (r->component[component])
        map_component(r, component, &m, &b);
    buf_finish(&b);
}

/* ---- members -------------------------------------------------------------------------------- */

static void write_hf_put_text(struct buf *b, const char *s)
{
    if (s)
        jsonw_string(b, s, strlen(s));
    else
        buf_adds(b, "null");
}

static void put_bool(struct buf *b, const char *key, bool v)
{
    buf_addf(b, ",\n    \"%s\": %s", key, v ? "true" : "false");
}

static void put_component(const struct recipe *r, struct buf *b, enum recipe_component component)
{
    struct json_doc *doc;
    struct err e;
    buf_addf(b, "  \"%s\": ", recipe_component_name(component));
    const char *text = r->component[component] ? r->component[component] : "null";
    int code = json_parse(r->path, text, strlen(text), &doc, &e);
    BUG_ON(code, "a component that is not JSON: %s", e.msg);
    recipe_put_json(b, json_root(doc), 1);
    json_close(doc);
    buf_adds(b, ",\n");
}

static void put_flag(struct buf *b, const char *key, bool v, bool last)
{
    buf_addf(b, "      \"%s\": %s%s\n", key, v ? "true" : "false", last ? "" : ",");
}

static void put_tokens(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "  \"added_tokens\": [");
    for (size_t i = 0; i < r->ntokens; i++) {
        const struct recipe_token *t = &r->token[i];
        buf_addf(b, "%s\n    {\n      \"id\": %d,\n      \"content\": ", i ? "," : "", t->id);
        jsonw_string(b, t->text, t->n);
        buf_adds(b, ",\n");
        put_flag(b, "single_word", t->single_word, false);
        put_flag(b, "lstrip", t->lstrip, false);
        put_flag(b, "rstrip", t->rstrip, false);
        put_flag(b, "normalized", t->normalized, false);
        put_flag(b, "special", t->special, true);
        buf_adds(b, "    }");
    }
    buf_adds(b, r->ntokens ? "\n  ],\n" : "],\n");
}

/* ---- models --------------------------------------------------------------------------------- */

static void put_vocab(const struct recipe *r, struct buf *b)
{
    bool any = false;
    buf_adds(b, ",\n    \"vocab\": {");
    for (size_t i = 0; i < r->npieces; i++) {
        if (!r->piece[i].text)
            continue;
        buf_adds(b, any ? ",\n      " : "\n      ");
        jsonw_string(b, r->piece[i].text, r->piece[i].n);
        buf_addf(b, ": %zu", i);
        any = true;
    }
    buf_adds(b, any ? "\n    }" : "}");
}

static void put_scores(const struct recipe *r, struct buf *b)
{
    buf_adds(b, ",\n    \"vocab\": [");
    for (size_t i = 0; i < r->npieces; i++) {
        buf_adds(b, i ? ",\n      [\n        " : "\n      [\n        ");
        jsonw_string(b, r->piece[i].text, r->piece[i].n);
        buf_adds(b, ",\n        ");
        recipe_put_real(b, r->piece[i].score);
        buf_adds(b, "\n      ]");
    }
    buf_adds(b, r->npieces ? "\n    ]" : "]");
}

static void put_merges(const struct recipe *r, struct buf *b)
{
    buf_adds(b, ",\n    \"merges\": [");
    for (size_t i = 0; i < r->nmerges; i++) {
        const struct recipe_piece *left = &r->piece[r->merge[i].left];
        const struct recipe_piece *right = &r->piece[r->merge[i].right];
        buf_adds(b, i ? ",\n      [\n        " : "\n      [\n        ");
        jsonw_string(b, left->text, left->n);
        buf_adds(b, ",\n        ");
        jsonw_string(b, right->text, right->n);
        buf_adds(b, "\n      ]");
    }
    buf_adds(b, r->nmerges ? "\n    ]" : "]");
}

static void put_bpe(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "\"BPE\",\n    \"dropout\": ");
    if (r->dropout > 0)
        recipe_put_dropout(b, r->dropout);
    else
        buf_adds(b, "null");
    buf_adds(b, ",\n    \"unk_token\": ");
    write_hf_put_text(b, r->unk);
    buf_adds(b, ",\n    \"continuing_subword_prefix\": ");
    write_hf_put_text(b, r->prefix);
    buf_adds(b, ",\n    \"end_of_word_suffix\": ");
    write_hf_put_text(b, r->suffix);
    put_bool(b, "fuse_unk", r->fuse_unk);
    put_bool(b, "byte_fallback", r->byte_fallback);
    put_bool(b, "ignore_merges", r->ignore_merges);
    put_vocab(r, b);
    put_merges(r, b);
}

static void put_unigram(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "\"Unigram\",\n    \"unk_id\": ");
    if (r->unk_id >= 0)
        buf_addf(b, "%lld", (long long)r->unk_id);
    else
        buf_adds(b, "null");
    put_scores(r, b);
    put_bool(b, "byte_fallback", r->byte_fallback);
}

static void put_wordpiece(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "\"WordPiece\",\n    \"unk_token\": ");
    write_hf_put_text(b, r->unk ? r->unk : "");
    buf_adds(b, ",\n    \"continuing_subword_prefix\": ");
    write_hf_put_text(b, r->prefix ? r->prefix : "");
    buf_addf(b, ",\n    \"max_input_chars_per_word\": %zu", r->max_chars);
    put_vocab(r, b);
}

static void put_words(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "\"WordLevel\"");
    put_vocab(r, b);
    buf_adds(b, ",\n    \"unk_token\": ");
    write_hf_put_text(b, r->unk ? r->unk : "");
}

void write_hf(const struct recipe *r, struct buf *b)
{
    static void (*const put[])(const struct recipe *,
                               struct buf *) = {[MODEL_BPE] = put_bpe,
                                                [MODEL_UNIGRAM] = put_unigram,
                                                [MODEL_WORDPIECE] = put_wordpiece,
                                                [MODEL_WORDLEVEL] = put_words};
    buf_adds(b, "{\n  \"version\": \"1.0\",\n");
    put_component(r, b, COMPONENT_TRUNCATION);
    put_component(r, b, COMPONENT_PADDING);
    put_tokens(r, b);
    put_component(r, b, COMPONENT_NORMALIZER);
    put_component(r, b, COMPONENT_PRE_TOKENIZER);
    put_component(r, b, COMPONENT_POST_PROCESSOR);
    put_component(r, b, COMPONENT_DECODER);
    buf_adds(b, "  \"model\": {\n    \"type\": ");
    put[r->model](r, b);
    buf_adds(b, "\n  }\n}");
}
