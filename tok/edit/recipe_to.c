/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/pretok/families.h"
#include "tok/text/byte_alphabet.h"
#include "tok/edit/recipe.h"
#include "tok/edit/recipe_bpe.h"
#include "tok/edit/recipe_edit.h"
#include "tok/edit/recipe_json.h"

/* Conversions between formats, except SentencePiece's (recipe_sp.c). */

#define LEVEL(space, trim, regex)                                                                  \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":" space ",\"trim_offsets\":" trim                \
    ",\"use_regex\":" regex "}"

int recipe_refuse(const struct recipe *r, enum recipe_format f, struct err *e, const char *what,
                  const char *name)
{
    struct buf b = {0};
    recipe_put_shown(&b, name);
    err_set(e, ERR_USAGE, "%s: %s cannot express %s%s", r->path, recipe_format_name(f), what,
            buf_str(&b));
    buf_finish(&b);
    return ERR_USAGE;
}

/* ---- what cannot be expressed --------------------------------------------------------------- */

/* "NFC, Replace": the types in a component, sequences flattened. */
static void add_types(struct buf *b, const struct json *j)
{
    static const char *const list[] = {"normalizers", "pretokenizers", "decoders", "processors"};
    const struct json *type = json_get(j, "type");
    for (size_t i = 0; i < 4; i++) {
        const struct json *in = json_get(j, list[i]);
        for (size_t k = 0; in && in->kind == JSON_ARRAY && k < in->length; k++)
            add_types(b, &in->child[k]);
        if (in)
            return;
    }
    buf_addf(b, "%s%s", b->len ? ", " : "", type ? type->string : "?");
}

int recipe_refuse_component(const struct recipe *r, enum recipe_format f,
                            enum recipe_component component, struct err *e)
{
    struct json_doc *doc;
    struct buf b = {0};
    const char *text = r->component[component] ? r->component[component] : "{}";
    int code = json_parse(r->path, text, strlen(text), &doc, e);
    if (code)
        return code;
    add_types(&b, json_root(doc));
    json_close(doc);
    code = err_set(e, ERR_USAGE, "%s: %s cannot express the %s %s", r->path, recipe_format_name(f),
                   recipe_component_name(component), buf_str(&b));
    buf_finish(&b);
    return code;
}

static const char *const models[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};

static int need_model(const struct recipe *r, enum recipe_format f, enum pipe_model model,
                      struct err *e)
{
    return r->model == model ? 0 : recipe_refuse(r, f, e, "a model of type ", models[r->model]);
}

/* What a byte-level BPE in a simple file cannot express. */
static int need_plain_bpe(const struct recipe *r, enum recipe_format f, struct err *e)
{
    int code = need_model(r, f, MODEL_BPE, e);
    if (!code && r->store.nnorm)
        code = recipe_refuse_component(r, f, COMPONENT_NORMALIZER, e);
    if (!code && r->prefix)
        code = recipe_refuse(r, f, e, "the continuing_subword_prefix ", r->prefix);
    if (!code && r->suffix)
        code = recipe_refuse(r, f, e, "the end_of_word_suffix ", r->suffix);
    if (!code && (r->byte_fallback || r->unk))
        code = recipe_refuse(r, f, e, r->unk ? "an unknown token: " : "byte_fallback",
                             r->unk ? r->unk : "");
    return code;
}

/* True if the pre-tokenizer is one pattern over bytes. */
static bool one_pattern(const struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    const struct pre_step *last = s->npre ? &s->pre[s->npre - 1] : NULL;
    if (!r->pattern || !last || last->prefix_space)
        return false;
    if (s->npre == 1)
        return true;
    const struct pre_step *cut = &s->pre[0];
    return (cut->behavior == SPLIT_ISOLATED && !cut->invert) ||
           (cut->behavior == SPLIT_REMOVED && cut->invert);
}

static enum scan_family family_of(const struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    return r->pattern ? regex_family(s->pre[0].pattern) : SCAN_NONE;
}

/* Special tokens lose their role with a note; text would no longer match other added tokens. */
static int recipe_to_check_tokens(struct recipe *r, enum recipe_format f, struct err *e)
{
    for (size_t i = 0; i < r->ntokens; i++) {
        const struct recipe_token *t = &r->token[i];
        if (!t->special)
            return recipe_refuse(r, f, e, "an added token that is not special: ", t->text);
    }
    return 0;
}

/* Looking up whole pre-tokens first has no effect if merging reaches every piece. */
static int check_reached(const struct recipe *r, enum recipe_format f, struct err *e)
{
    struct recipe_bpe *b = recipe_bpe_create(r);
    int code = 0;
    for (size_t i = 0; i < r->npieces && !code; i++) {
        if (r->piece[i].text && !recipe_token_of(r, (int32_t)i) &&
            !recipe_bpe_reaches(b, (int32_t)i))
            code = recipe_refuse(r, f, e, "a piece that merges do not reach: ", r->piece[i].text);
    }
    recipe_bpe_destroy(b);
    return code;
}

bool recipe_tokens_follow(const struct recipe *r)
{
    size_t count = 0, outside = 0;
    for (size_t i = 0; i < r->npieces; i++)
        count += r->piece[i].text != NULL;
    bool follow = count == r->npieces;
    for (size_t i = 0; i < r->ntokens; i++)
        if (recipe_find(r, r->token[i].text, r->token[i].n) < 0)
            follow &= r->token[i].id == (int32_t)(count + outside++);
    return follow;
}

void recipe_settle_tokens(struct recipe *r)
{
    for (size_t i = 0; i < r->ntokens; i++) {
        const struct recipe_token *t = &r->token[i];
        while (r->npieces <= (size_t)t->id)
            recipe_add_piece(r, NULL, 0);
        r->piece[t->id].text = t->text;
        r->piece[t->id].n = t->n;
    }
    recipe_index(r);
}

/* ---- vocab.json with merges.txt ------------------------------------------------------------- */

static int to_gpt2(struct recipe *r, struct err *e)
{
    int code = need_plain_bpe(r, RECIPE_GPT2, e);
    if (!code && (!one_pattern(r) || family_of(r) != SCAN_GPT2))
        code = r->component[COMPONENT_PRE_TOKENIZER] || !r->pattern
                   ? recipe_refuse_component(r, RECIPE_GPT2, COMPONENT_PRE_TOKENIZER, e)
                   : recipe_refuse(r, RECIPE_GPT2, e, "the pattern ", r->pattern);
    if (!code)
        code = recipe_to_check_tokens(r, RECIPE_GPT2, e);
    if (!code && r->from == RECIPE_TIKTOKEN)
        recipe_derive_merges(r, true);
    if (!code && r->ignore_merges)
        code = check_reached(r, RECIPE_GPT2, e);
    for (size_t i = 0; i < r->nmerges && !code; i++)
        if (strpbrk(r->piece[r->merge[i].left].text, " \r\n") ||
            strpbrk(r->piece[r->merge[i].right].text, " \r\n"))
            code =
                recipe_refuse(r, RECIPE_GPT2, e, "a merge of a piece with white space in it", "");
    if (code)
        return code;
    for (size_t i = 0; i < r->ntokens; i++)
        if (strcmp(r->token[i].text, "<|endoftext|>"))
            recipe_note(r, "%s is kept as a piece, but the files do not say that it is special",
                        r->token[i].text);
    r->ignore_merges = false;
    recipe_settle_tokens(r);
    return 0;
}

/* ---- tiktoken's ranks ----------------------------------------------------------------------- */

static bool is_letters(const struct recipe_piece *p)
{
    size_t k;
    for (size_t i = 0; i < p->n; i += k)
        if (byte_of_letter(p->text + i, p->n - i, &k) < 0)
            return false;
    return true;
}

static int check_ranks(const struct recipe *r, struct err *e)
{
    for (size_t i = 1; i < r->nmerges; i++)
        if (r->merge[i].id < r->merge[i - 1].id)
            return err_set(
                e, ERR_USAGE,
                "%s: tiktoken's ranks cannot express merges that are not in the order of "
                "their ids: merge %zu makes \"%.64s\", id %d, after id %d",
                r->path, i, r->piece[r->merge[i].id].text, r->merge[i].id, r->merge[i - 1].id);
    for (unsigned b = 0; b < 256; b++) {
        char text[4];
        if (recipe_find(r, text, letter_put(text, (uint8_t)b)) < 0)
            return err_set(e, ERR_USAGE,
                           "%s: tiktoken's ranks cannot express a vocabulary without the byte "
                           "0x%02x",
                           r->path, b);
    }
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].text && !is_letters(&r->piece[i]))
            return recipe_refuse(r, RECIPE_TIKTOKEN, e,
                                 "a piece that is not spelled in bytes: ", r->piece[i].text);
    return 0;
}

static int to_tiktoken(struct recipe *r, struct err *e)
{
    int code = need_plain_bpe(r, RECIPE_TIKTOKEN, e);
    if (!code && !one_pattern(r))
        code = recipe_refuse_component(r, RECIPE_TIKTOKEN, COMPONENT_PRE_TOKENIZER, e);
    if (!code)
        code = recipe_to_check_tokens(r, RECIPE_TIKTOKEN, e);
    if (!code && !r->ignore_merges)
        code = check_reached(r, RECIPE_TIKTOKEN, e);
    if (code)
        return code;
    recipe_drop_tokens(r);
    return check_ranks(r, e);
}

/* ---- vocab.txt ------------------------------------------------------------------------------ */

static bool is_bert(const struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    return s->nnorm == 1 && s->norm[0].kind == NORM_BERT && s->norm[0].clean &&
           s->norm[0].chinese && s->norm[0].accents == s->norm[0].lower;
}

static int to_bert(struct recipe *r, struct err *e)
{
    int code = need_model(r, RECIPE_BERT, MODEL_WORDPIECE, e);
    if (!code && !is_bert(r))
        code = r->component[COMPONENT_NORMALIZER]
                   ? recipe_refuse_component(r, RECIPE_BERT, COMPONENT_NORMALIZER, e)
                   : recipe_refuse(r, RECIPE_BERT, e, "text that is not normalized", "");
    if (!code && (r->store.npre != 1 || r->store.pre[0].kind != PRE_BERT))
        code = recipe_refuse_component(r, RECIPE_BERT, COMPONENT_PRE_TOKENIZER, e);
    if (!code && (!r->prefix || strcmp(r->prefix, "##")))
        code = recipe_refuse(r, RECIPE_BERT, e, "the continuing_subword_prefix ",
                             r->prefix ? r->prefix : "\"\"");
    if (!code && (!r->unk || strcmp(r->unk, "[UNK]")))
        code = recipe_refuse(r, RECIPE_BERT, e, "the unknown token ", r->unk ? r->unk : "\"\"");
    if (!code && r->max_chars != 100)
        code = recipe_refuse(r, RECIPE_BERT, e, "a max_input_chars_per_word other than 100", "");
    if (!code)
        code = recipe_to_check_tokens(r, RECIPE_BERT, e);
    if (code)
        return code;
    recipe_settle_tokens(r);
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (!p->text)
            return recipe_refuse(r, RECIPE_BERT, e, "ids without a piece", "");
        if (!p->n || strpbrk(p->text, "\n") || strchr(" \t\r\v\f", p->text[p->n - 1]))
            return recipe_refuse(r, RECIPE_BERT, e, "a piece with white space at its end", "");
    }
    r->type = r->store.norm[0].lower ? TOK_BERT_LOWER : TOK_BERT_CASE;
    recipe_note(r,
                "the file does not say whether text is lower-cased: read it with "
                "--tokenizer-type %s",
                tok_type_name(r->type));
    return 0;
}

/* ---- tokenizer.json ------------------------------------------------------------------------- */

/* The pattern for Oniguruma, where a{1,3}+ means any number of a. */
static int pattern_to_hf(struct recipe *r, const char **ret, struct err *e)
{
    static const struct {
        enum scan_family family;
        const char *name;
    } known[] = {{SCAN_CL100K, "cl100k"},
                 {SCAN_LLAMA3, "llama3"},
                 {SCAN_QWEN2, "qwen2"},
                 {SCAN_O200K, "o200k"}};
    *ret = r->pattern;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        for (size_t k = 0; family_of(r) == known[i].family && pretok_families[k].name; k++)
            if (!strcmp(pretok_families[k].name, known[i].name))
                return *ret = pretok_families[k].pattern, 0;
    return strstr(r->pattern, "}+")
               ? recipe_refuse(r, RECIPE_HF, e, "a pattern with a possessive {}+: ", r->pattern)
               : 0;
}

static int bytes_to_hf(struct recipe *r, struct err *e)
{
    r->component[COMPONENT_DECODER] = LEVEL("true", "true", "true");
    r->component[COMPONENT_POST_PROCESSOR] = LEVEL("true", "false", "true");
    if (family_of(r) == SCAN_GPT2) {
        r->component[COMPONENT_PRE_TOKENIZER] = LEVEL("false", "true", "true");
        return 0;
    }
    const char *pattern;
    struct buf b = {0};
    int code = pattern_to_hf(r, &pattern, e);
    if (code)
        return code;
    buf_adds(&b, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
                 "\"Regex\":");
    jsonw_string(&b, pattern, strlen(pattern));
    buf_adds(&b,
             "},\"behavior\":\"Isolated\",\"invert\":false}," LEVEL("false", "true", "false") "]}");
    r->component[COMPONENT_PRE_TOKENIZER] = arena_strndup(&r->arena, b.data, b.len);
    buf_finish(&b);
    return 0;
}

static int tiktoken_to_hf(struct recipe *r, struct err *e)
{
    recipe_derive_merges(r, true);
    if (!recipe_tokens_follow(r))
        recipe_settle_tokens(r);
    return bytes_to_hf(r, e);
}

static void recipe_to_put_special(struct buf *b, const char *text, int type)
{
    buf_addf(b, "{\"SpecialToken\":{\"id\":\"%s\",\"type_id\":%d}}", text, type);
}

static void recipe_to_put_sequence(struct buf *b, const char *name, int type)
{
    buf_addf(b, ",{\"Sequence\":{\"id\":\"%s\",\"type_id\":%d}}", name, type);
}

/* [CLS] text [SEP], as users of such a file expect. */
static void bert_template(struct recipe *r)
{
    int32_t cls = recipe_find(r, "[CLS]", 5), sep = recipe_find(r, "[SEP]", 5);
    struct buf b = {0};
    if (cls < 0 || sep < 0)
        return;
    buf_adds(&b, "{\"type\":\"TemplateProcessing\",\"single\":[");
    for (int pair = 0; pair < 2; pair++) {
        recipe_to_put_special(&b, "[CLS]", 0);
        recipe_to_put_sequence(&b, "A", 0);
        buf_addc(&b, ',');
        recipe_to_put_special(&b, "[SEP]", 0);
        if (pair) {
            recipe_to_put_sequence(&b, "B", 1);
            buf_addc(&b, ',');
            recipe_to_put_special(&b, "[SEP]", 1);
        }
        buf_adds(&b, pair ? "],\"special_tokens\":{" : "],\"pair\":[");
    }
    buf_addf(&b, "\"[CLS]\":{\"id\":\"[CLS]\",\"ids\":[%d],\"tokens\":[\"[CLS]\"]},", cls);
    buf_addf(&b, "\"[SEP]\":{\"id\":\"[SEP]\",\"ids\":[%d],\"tokens\":[\"[SEP]\"]}}}", sep);
    r->component[COMPONENT_POST_PROCESSOR] = arena_strndup(&r->arena, b.data, b.len);
    buf_finish(&b);
}

static int bert_to_hf(struct recipe *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->ntokens; i++)
        if ((size_t)r->token[i].id < r->npieces)
            r->token[kept++] = r->token[i];
        else
            recipe_note(r,
                        "%s, id %d, which Megatron-LM adds to the file's vocabulary, is left out",
                        r->token[i].text, r->token[i].id);
    r->ntokens = kept;
    r->component[COMPONENT_NORMALIZER] =
        r->store.norm[0].lower
            ? "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
              "\"strip_accents\":null,\"lowercase\":true}"
            : "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,"
              "\"strip_accents\":null,\"lowercase\":false}";
    r->component[COMPONENT_PRE_TOKENIZER] = "{\"type\":\"BertPreTokenizer\"}";
    r->component[COMPONENT_DECODER] = "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}";
    bert_template(r);
    return 0;
}

static int to_hf(struct recipe *r, struct err *e)
{
    switch (r->from) {
    case RECIPE_SP:
        return recipe_from_sp(r, e);
    case RECIPE_TIKTOKEN:
        return tiktoken_to_hf(r, e);
    case RECIPE_BERT:
        return bert_to_hf(r);
    default:
        return bytes_to_hf(r, e);
    }
}

/* ---- extras and dispatch -------------------------------------------------------------------- */

size_t recipe_extras(const struct recipe *r, char ret[RECIPE_EXTRAS][RECIPE_EXTRA])
{
    const struct pipe_spec *s = &r->store;
    struct buf b = {0};
    size_t n = 0;
    if (r->from != RECIPE_HF)
        return 0;
    recipe_put_dropout(&b, r->dropout);
    if (r->dropout > 0)
        snprintf(ret[n++], RECIPE_EXTRA, "the dropout of merges (%s)", buf_str(&b));
    if (r->component[COMPONENT_TRUNCATION])
        snprintf(ret[n++], RECIPE_EXTRA, "the truncation (to %lld ids)", (long long)s->longest);
    if (r->component[COMPONENT_PADDING])
        snprintf(ret[n++], RECIPE_EXTRA, "the padding");
    if (s->nbefore || s->nafter)
        snprintf(ret[n++], RECIPE_EXTRA, "the template that puts special tokens around a text");
    buf_finish(&b);
    return n;
}

static void leave_out_extras(struct recipe *r)
{
    char extra[RECIPE_EXTRAS][RECIPE_EXTRA];
    size_t n = recipe_extras(r, extra);
    for (size_t i = 0; i < n; i++)
        recipe_note(r, "%s is left out", extra[i]);
}

int recipe_to(struct recipe *r, enum recipe_format format, struct err *e)
{
    if (r->from == format && r->listed)
        recipe_drop_tokens(r);
    if (r->from == format)
        return 0;
    leave_out_extras(r);
    if (r->from == RECIPE_SP && format != RECIPE_HF)
        return recipe_refuse(r, format, e, "a SentencePiece model of type ",
                             sp_kind_name(r->sp.kind));
    switch (format) {
    case RECIPE_HF:
        return to_hf(r, e);
    case RECIPE_GPT2:
        return to_gpt2(r, e);
    case RECIPE_TIKTOKEN:
        return to_tiktoken(r, e);
    case RECIPE_BERT:
        return to_bert(r, e);
    default:
        return recipe_to_sp(r, e);
    }
}

/* ---- merges from scores and ranks ----------------------------------------------------------- */

struct split {
    struct recipe_merge m;
    double score;
    size_t chars[2], place;
};

static size_t characters(const char *p, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += ((unsigned char)p[i] & 0xc0) != 0x80;
    return k;
}

/* Orders the splits of one piece; equal ones keep this order. */
static int compare_local(const void *a, const void *b)
{
    const struct split *x = a, *y = b;
    if (x->m.left != y->m.left)
        return x->m.left < y->m.left ? -1 : 1;
    return (x->m.right > y->m.right) - (x->m.right < y->m.right);
}

static int compare_scores(const void *a, const void *b)
{
    const struct split *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    for (int i = 0; i < 2; i++)
        if (x->chars[i] != y->chars[i])
            return x->chars[i] > y->chars[i] ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static bool can_merge(const struct recipe *r, int32_t id)
{
    return id >= 0 && r->piece[id].type == SP_NORMAL;
}

void recipe_derive_merges(struct recipe *r, bool by_id)
{
    struct split *list = NULL;
    size_t n = 0, cap = 0;
    for (size_t id = 0; id < r->npieces; id++) {
        const struct recipe_piece *p = &r->piece[id];
        size_t first = n;
        for (size_t i = 1; p->text && p->type == SP_NORMAL && i < p->n; i++) {
            if (((unsigned char)p->text[i] & 0xc0) == 0x80)
                continue;
            int32_t left = recipe_find(r, p->text, i);
            int32_t right = left < 0 ? -1 : recipe_find(r, p->text + i, p->n - i);
            if (!can_merge(r, left) || !can_merge(r, right))
                continue;
            ARRAY_GROW(list, n, cap);
            list[n++] = (struct split){{left, right, (int32_t)id},
                                       p->score,
                                       {characters(p->text, i), characters(p->text + i, p->n - i)},
                                       0};
        }
        if (n > first)
            qsort(list + first, n - first, sizeof(*list), compare_local);
    }
    for (size_t i = 0; i < n; i++)
        list[i].place = i;
    if (!by_id && n)
        qsort(list, n, sizeof(*list), compare_scores);
    r->merge = mem_grow(r->merge, n + 1, sizeof(*r->merge));
    r->nmerges = n;
    for (size_t i = 0; i < n; i++)
        r->merge[i] = list[i].m;
    free(list);
}
