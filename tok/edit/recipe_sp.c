/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "tok/text/base64.h"
#include "tok/edit/recipe.h"
#include "tok/edit/recipe_json.h"

/*
 * A SentencePiece model as a tokenizer.json and back, following transformers' converters.
 *
 * The normalizer prepends the mark for a space, as for Llama-2. User-defined pieces become added
 * tokens that are matched in normalized text, as SentencePiece matches them, so that a text may
 * begin with one behind the mark; they are normalized themselves, and the mark is taken from a text
 * that is nothing but one of them. If the rules would change a piece, which SentencePiece protects
 * from them, added tokens are matched in raw text and split it: then the pre-tokenizer prepends the
 * mark to its first part (Metaspace, "first"), unless that is a token.
 */

#define MARK "\u2581"

/* ---- to a tokenizer.json: what it cannot express -------------------------------------------- */

static int check_sp(const struct recipe *r, struct err *e)
{
    const struct sp_model *m = &r->sp;
    const char *lone;
    if (m->kind != SP_UNIGRAM && m->kind != SP_BPE)
        return recipe_refuse(r, RECIPE_HF, e, "a SentencePiece model of type ",
                             sp_kind_name(m->kind));
    if (m->whitespace_as_suffix)
        return recipe_refuse(r, RECIPE_HF, e,
                             "white space as a suffix (treat_whitespace_as_suffix)", "");
    if (m->has_denormalizer)
        return recipe_refuse(r, RECIPE_HF, e, "a denormalizer", "");
    if (m->count[SP_UNUSED])
        return recipe_refuse(r, RECIPE_HF, e, "unused pieces", "");
    for (size_t i = 0; i < m->npieces; i++)
        if (!sp_piece_is_utf8(&m->piece[i]))
            return recipe_refuse(r, RECIPE_HF, e, "a piece that is not UTF-8", "");
    lone = m->kind == SP_BPE ? recipe_lone_character(r) : NULL;
    return lone ? recipe_refuse(r, RECIPE_HF, e,
                                "a piece with a character that is not a piece: ", lone)
                : 0;
}

/* ---- components ----------------------------------------------------------------------------- */

static void put_replace(struct buf *b, const char *kind, const char *pattern, const char *content)
{
    buf_addf(b, "{\"type\":\"Replace\",\"pattern\":{\"%s\":\"%s\"},\"content\":\"%s\"},", kind,
             pattern, content);
}

/* A component made of a list of steps that each end in a comma. */
static const char *recipe_sp_join(struct recipe *r, struct buf *b, const char *type,
                                  const char *list, size_t steps)
{
    struct buf out = {0};
    if (steps == 0)
        return NULL;
    b->len--; /* the last comma */
    if (steps == 1)
        buf_add(&out, b->data, b->len);
    else
        buf_addf(&out, "{\"type\":\"%s\",\"%s\":[%.*s]}", type, list, (int)b->len, b->data);
    const char *component = arena_strndup(&r->arena, out.data, out.len);
    buf_finish(&out);
    return component;
}

/* ---- user-defined pieces -------------------------------------------------------------------- */

/* The unit of the trie (tok/text/charsmap.c) at which a key ends that the text begins with, and the
 * key's length; -1: none. The trie was checked. */
static int64_t rule_at(const struct sp_normalizer *n, const char *p, size_t len, size_t *ret_key)
{
    if (!n->charsmap_size)
        return -1;
    const unsigned char *trie = n->charsmap + 4;
    uint32_t u = load_u32(trie);
    uint32_t at = (u >> 10) << ((u & (1u << 9)) >> 6);
    for (size_t i = 0; i < len; i++) {
        at ^= (unsigned char)p[i];
        u = load_u32(trie + (size_t)at * 4);
        if ((u & 0x800000ffu) != (unsigned char)p[i])
            return -1;
        if (u & (1u << 8))
            return *ret_key = i + 1, (int64_t)at;
        at ^= (u >> 10) << ((u & (1u << 9)) >> 6);
    }
    return -1;
}

/* Is the carriage return a space? */
static bool return_is_space(const struct sp_normalizer *n)
{
    size_t key;
    int64_t at = rule_at(n, "\r", 1, &key);
    if (at < 0)
        return false;
    const unsigned char *trie = n->charsmap + 4;
    uint32_t u = load_u32(trie + (size_t)at * 4);
    uint32_t leaf = (uint32_t)at ^ ((u >> 10) << ((u & (1u << 9)) >> 6));
    uint32_t text = load_u32(trie + (size_t)leaf * 4) & 0x7fffffffu;
    return !strcmp((const char *)trie + load_u32(n->charsmap) + text, " ");
}

/* Do the rules leave a piece as it is, once that of a piece of one byte is taken out? */
static bool stays(const struct sp_normalizer *n, const struct recipe_piece *p)
{
    bool same = !n->remove_extra_whitespaces || (!strstr(p->text, " ") && !strstr(p->text, MARK));
    size_t k;
    for (size_t i = 0; i < p->n && p->n > 1 && same; i++)
        same = rule_at(n, p->text + i, p->n - i, &k) < 0;
    return same && (p->n > 1 || (unsigned char)*p->text < 0x80);
}

enum { PATTERN_MOST = 1 << 14 }; /* bytes of the pattern that names all user-defined pieces */

/* Can they be matched in normalized text? */
static bool match_normalized(const struct recipe *r)
{
    size_t sum = 0;
    bool all = r->sp.count[SP_USER] && r->sp.normalizer.add_dummy_prefix;
    for (size_t i = 0; i < r->npieces && all; i++)
        if (r->piece[i].type == SP_USER) {
            sum += 2 * r->piece[i].n + 1;
            all = r->piece[i].n && stays(&r->sp.normalizer, &r->piece[i]) && sum < PATTERN_MOST;
        }
    return all;
}

/* Takes the mark from a text that is one of them. */
static void put_alone(const struct recipe *r, struct buf *b)
{
    struct buf pattern = {0};
    buf_addf(&pattern, "\\A%s(?=(?:", r->sp.normalizer.escape_whitespaces ? MARK : " ");
    for (size_t i = 0, n = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (p->type != SP_USER)
            continue;
        buf_adds(&pattern, n++ ? "|" : "");
        for (size_t k = 0; k < p->n; k++) {
            unsigned char c = (unsigned char)p->text[k];
            bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z');
            if (c < 0x20 || c == 0x7f)
                buf_addf(&pattern, "\\x%02x", c);
            else
                buf_addf(&pattern, "%s%c", plain ? "" : "\\", c);
        }
    }
    buf_adds(&pattern, ")\\z)");
    buf_adds(b, "{\"type\":\"Replace\",\"pattern\":{\"Regex\":");
    jsonw_string(b, pattern.data, pattern.len);
    buf_adds(b, "},\"content\":\"\"},");
    buf_finish(&pattern);
}

/* The rules; without those for user-defined pieces of one byte, if `normalized`. */
static size_t put_charsmap(const struct recipe *r, bool normalized, struct buf *b)
{
    const struct sp_normalizer *n = &r->sp.normalizer;
    struct buf map = {0};
    bool feed = false;
    size_t key;
    buf_add(&map, n->charsmap, n->charsmap_size);
    for (size_t i = 0; i < r->npieces && normalized; i++) {
        const struct recipe_piece *p = &r->piece[i];
        int64_t at = p->type == SP_USER && p->n == 1 ? rule_at(n, p->text, 1, &key) : -1;
        if (at < 0)
            continue;
        unsigned char *unit = (unsigned char *)map.data + 4 + (size_t)at * 4;
        unit[1] &= 0xfe; /* no key ends here */
        feed |= *p->text == '\n';
    }
    /* tokenizers takes CR LF as one character, and would make one space of both */
    feed = (feed || !n->remove_extra_whitespaces) && return_is_space(n);
    if (feed)
        put_replace(b, "Regex", "\\\\r(?=\\\\n)", " ");
    buf_adds(b, "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"");
    base64_put(b, (const unsigned char *)map.data, map.len);
    buf_adds(b, "\"},");
    buf_finish(&map);
    return feed ? 2 : 1;
}

/* The normalizer's rules, without the mark at the start. */
static size_t put_rules(const struct recipe *r, bool normalized, struct buf *b)
{
    const struct sp_normalizer *n = &r->sp.normalizer;
    size_t steps = n->charsmap_size ? put_charsmap(r, normalized, b) : 0;
    if (n->remove_extra_whitespaces) {
        /* marks at the end are dropped even if they are in the text */
        put_replace(b, "Regex",
                    n->escape_whitespaces ? "\\\\A +|[ " MARK "]+\\\\z" : "\\\\A +| +\\\\z", "");
        put_replace(b, "Regex", " {2,}", " ");
        steps += 2;
    }
    return steps;
}

static void put_metaspace(struct recipe *r, enum recipe_component component, const char *scheme,
                          bool split)
{
    r->component[component] = arena_printf(&r->arena,
                                           "{\"type\":\"Metaspace\",\"replacement\":\"" MARK
                                           "\",\"prepend_scheme\":\"%s\",\"split\":%s}",
                                           scheme, split ? "true" : "false");
}

static void put_decoder(struct recipe *r)
{
    struct buf b = {0};
    size_t steps = 2;
    put_replace(&b, "String", MARK, " ");
    if (r->byte_fallback) {
        buf_adds(&b, "{\"type\":\"ByteFallback\"},");
        steps++;
    }
    buf_adds(&b, "{\"type\":\"Fuse\"},");
    if (r->sp.normalizer.add_dummy_prefix) {
        buf_adds(&b, "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0},");
        steps++;
    }
    r->component[COMPONENT_DECODER] = recipe_sp_join(r, &b, "Sequence", "decoders", steps);
    buf_finish(&b);
}

/* Do all pieces have marks only at the start? Then no piece spans a space. User-defined ones that
 * are matched in normalized text have none. */
static bool marks_begin(const struct recipe *r, bool normalized)
{
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (p->type == SP_NORMAL && p->n > 1 && strstr(p->text + 1, MARK))
            return false;
        if (p->type == SP_USER && normalized && strstr(p->text, MARK))
            return false;
    }
    return true;
}

static void put_parts(struct recipe *r)
{
    const struct sp_normalizer *n = &r->sp.normalizer;
    bool user = r->sp.count[SP_USER] > 0, unigram = r->model == MODEL_UNIGRAM;
    struct buf b = {0};
    bool normalized = match_normalized(r);
    size_t steps = put_rules(r, normalized, &b);
    bool first = user && n->add_dummy_prefix && !normalized;
    if (n->add_dummy_prefix && !first) {
        buf_addf(&b, "{\"type\":\"Prepend\",\"prepend\":\"%s\"},",
                 n->escape_whitespaces ? MARK : " ");
        steps++;
    }
    if (normalized) {
        put_alone(r, &b);
        steps++;
    }
    bool split = unigram && n->escape_whitespaces && marks_begin(r, normalized);
    if (n->escape_whitespaces && !first && !split) {
        put_replace(&b, "String", " ", MARK);
        steps++;
    }
    r->component[COMPONENT_NORMALIZER] = recipe_sp_join(r, &b, "Sequence", "normalizers", steps);
    if (first || split)
        put_metaspace(r, COMPONENT_PRE_TOKENIZER, first ? "first" : "never", split);
    put_decoder(r);
    if (first)
        recipe_note(r,
                    "a text that begins with a space or a user-defined piece gets no %s of "
                    "its own from a tokenizer.json",
                    MARK);
    if (normalized)
        recipe_note(r,
                    "a text that is nothing but a user-defined piece gets no %s of its own from a "
                    "tokenizer.json",
                    MARK);
    recipe_note_ties(r);
    buf_finish(&b);
}

/* ---- vocabulary ----------------------------------------------------------------------------- */

/*
 * HF's model would match pieces that text cannot become. They get scores that no path takes: below
 * the sum of their characters' scores.
 */
static void hide_pieces(struct recipe *r)
{
    double least = 0;
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].type == SP_NORMAL && r->piece[i].score < least)
            least = r->piece[i].score;
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].type != SP_NORMAL)
            r->piece[i].score = floor(least - 10) * (double)(r->piece[i].n + 1);
}

static void put_tokens(struct recipe *r)
{
    bool normalized = match_normalized(r);
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        if (p->type != SP_CONTROL && p->type != SP_UNKNOWN && p->type != SP_USER)
            continue;
        struct recipe_token *t = recipe_add_token(r, p->text, p->n, (int32_t)i);
        t->special = p->type != SP_USER;
        t->normalized = normalized && p->type == SP_USER;
    }
}

/* Llama-2's bos before each text, if the model was opened as that type. */
static void put_template(struct recipe *r)
{
    if (r->type != TOK_LLAMA2 || r->sp.bos < 0)
        return;
    struct buf s = {0};
    const char *bos = r->piece[r->sp.bos].text;
    jsonw_string(&s, bos, strlen(bos));
    const char *q = buf_str(&s);
    r->component[COMPONENT_POST_PROCESSOR] = arena_printf(
        &r->arena,
        "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":%s,\"type_id\":0}},"
        "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":%s,"
        "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":%s,"
        "\"type_id\":1}},{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{%s:{"
        "\"id\":%s,\"ids\":[%d],\"tokens\":[%s]}}}",
        q, q, q, q, q, r->sp.bos, q);
    buf_finish(&s);
}

int recipe_from_sp(struct recipe *r, struct err *e)
{
    int code = check_sp(r, e);
    if (code)
        return code;
    r->unk = r->piece[r->sp.unk].text;
    r->fuse_unk = r->model == MODEL_BPE;
    if (r->model == MODEL_BPE)
        recipe_derive_merges(r, false);
    else
        hide_pieces(r);
    put_parts(r);
    put_tokens(r);
    put_template(r);
    return 0;
}
