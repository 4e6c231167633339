/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "base/cli/progress.h"
#include "base/core/utf8.h"
#include "tok/cmd.h"
#include "tok/cmd_facts.h"
#include "tok/edit/recipe_bpe.h"
#include "tok/inspect/corpus_stats.h"

/* The part of inspect that encodes: tokens reached, round trips, and statistics of a corpus. */

enum { EXAMPLES = 10 };

/* ---- the vocabulary ------------------------------------------------------------------------- */

/* Parts of characters are not text: for a BPE their bytes are merged. */
static void say_parts(struct facts *f, const struct recipe *r,
                      const struct corpus_stats_reach *reach)
{
    facts_number(f, "parts_of_characters", (int64_t)reach->parts);
    if (!r || r->model != MODEL_BPE || !r->nmerges)
        return;
    struct recipe_bpe *b = recipe_bpe_create(r);
    int64_t unreached = 0;
    for (size_t i = 0; i < reach->parts; i++)
        unreached += (size_t)reach->part[i] >= r->npieces || !recipe_bpe_reaches(b, reach->part[i]);
    recipe_bpe_destroy(b);
    facts_number(f, "parts_not_reached", unreached);
}

static void say_reach(struct facts *f, const struct corpus_stats *s, const struct recipe *recipe,
                      const struct corpus_stats_reach *r)
{
    facts_group(f, "unreachable");
    facts_text(f, "tested",
               "the text of each token alone, after U+E000, after letters and a digit");
    facts_number(f, "tokens_tested", (int64_t)r->tried);
    say_parts(f, recipe, r);
    facts_number(f, "unreachable_tokens", (int64_t)r->n);
    facts_pieces(f, "examples", s->t, r->id, r->n < EXAMPLES ? r->n : EXAMPLES);
    facts_group_end(f);
}

/* Ids that text is not meant to become. */
static bool *find_hidden(const struct tokenizer *t, const struct recipe *r)
{
    const struct tok_info *i = tok_info(t);
    bool *hidden = mem_new((size_t)i->vocab_size + 1, sizeof(*hidden));
    const int64_t own[] = {i->eod, i->bos, i->eos, i->pad, i->unk};
    for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++)
        if (own[k] >= 0)
            hidden[own[k]] = true;
    for (size_t k = 0; r && k < r->ntokens; k++)
        hidden[r->token[k].id] |= r->token[k].special;
    bool sp = r && r->from == RECIPE_SP;
    for (int64_t id = 0; id < i->vocab_size; id++) {
        size_t n;
        const char *p = tok_piece(t, id, &n);
        bool byte = n == 6 && !strncmp(p, "<0x", 3) && p[5] == '>';
        hidden[id] |= byte && (!r || r->byte_fallback);
        if (sp)
            hidden[id] |= (size_t)id >= r->npieces ||
                          (r->piece[id].type != SP_NORMAL && r->piece[id].type != SP_USER);
    }
    return hidden;
}

/* ---- round trips ---------------------------------------------------------------------------- */

static int say_returns(struct facts *f, struct corpus_stats *s, struct err *e)
{
    static const struct {
        const char *name, *text;
    } kind[] = {{"two_spaces", "a  b"},
                {"space_at_start", " a"},
                {"space_at_end", "a "},
                {"line_feed", "a\nb"},
                {"two_line_feeds", "a\n\nb"},
                {"tab", "a\tb"},
                {"carriage_return", "a\r\nb"},
                {"capital_letter", "aBc"},
                {"punctuation", "a,b (c) d's"},
                {"accented_letter", "\u00e9"},
                {"combining_accent", "e\u0301"},
                {"full_width_letter", "\uff21"},
                {"ligature", "\ufb01"},
                {"no_break_space", "a\u00a0b"},
                {"zero_width_joiner", "a\u200db"},
                {"emoji", "\U0001f600"},
                {"han", "\u6f22\u5b57"},
                {"kana", "\u304b\u306a"},
                {"rare_han", "\U00020000"},
                {"private_use", "\ue000"},
                {"control", "a\001b"}};
    int code = 0;
    facts_group(f, "survives_round_trip");
    for (size_t i = 0; i < sizeof(kind) / sizeof(*kind) && !code; i++) {
        bool same, unknown;
        code = corpus_stats_returns(s, kind[i].text, strlen(kind[i].text), &same, &unknown, e);
        if (code)
            break;
        facts_text(f, kind[i].name, same ? "yes" : unknown ? "unknown" : "changed");
    }
    facts_group_end(f);
    return code;
}

/* ---- the corpus ----------------------------------------------------------------------------- */

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : NAN;
}

static void say_group(struct facts *f, const struct corpus_stats_group *g)
{
    facts_group(f, g->name);
    facts_number(f, "documents", (int64_t)g->docs);
    facts_number(f, "bytes", (int64_t)g->bytes);
    facts_number(f, "characters", (int64_t)g->chars);
    facts_number(f, "tokens", (int64_t)g->tokens);
    facts_real(f, "bytes_per_token", ratio(g->bytes, g->tokens));
    facts_real(f, "characters_per_token", ratio(g->chars, g->tokens));
    facts_real(f, "tokens_per_word", ratio(g->tokens, g->words));
    facts_number(f, "unknown_tokens", (int64_t)g->unknown);
    facts_real(f, "unknown_percent", 100 * ratio(g->unknown, g->tokens));
    facts_number(f, "documents_that_change", (int64_t)g->lost);
    facts_group_end(f);
}

static void say_unused(struct facts *f, const struct corpus_stats *s, const bool *hidden)
{
    int32_t example[EXAMPLES];
    int64_t unused = 0, all = 0;
    for (int64_t id = 0; id < tok_info(s->t)->vocab_size; id++) {
        size_t n;
        tok_piece(s->t, id, &n);
        if (hidden[id] || !n)
            continue;
        all++;
        if (!s->count[id] && unused++ < EXAMPLES)
            example[unused - 1] = (int32_t)id;
    }
    facts_group(f, "unused");
    facts_number(f, "tokens", all);
    facts_number(f, "never_used", unused);
    facts_pieces(f, "examples", s->t, example, unused < EXAMPLES ? (size_t)unused : EXAMPLES);
    facts_group_end(f);
}

static int say_lost(struct facts *f, struct corpus_stats *s, struct err *e)
{
    struct corpus_stats_char *list;
    size_t n;
    int code = corpus_stats_lost_characters(s, &list, &n, e);
    facts_number(f, "characters_that_change", (int64_t)n);
    facts_list(f, "characters");
    for (size_t i = 0; i < n && i < EXAMPLES; i++) {
        char text[4], name[16];
        snprintf(name, sizeof(name), "U+%04X", (unsigned)list[i].c);
        facts_row(f);
        facts_text(f, "code", name);
        facts_bytes(f, "character", text, utf8_put(text, list[i].c));
        facts_number(f, "count", (int64_t)list[i].count);
        facts_text(f, "becomes", list[i].unknown ? "unknown" : "another text");
        facts_row_end(f);
    }
    facts_list_end(f);
    facts_list(f, "changes");
    for (size_t i = 0; i < s->nlosses; i++) {
        const struct corpus_stats_loss *l = &s->loss[i];
        facts_row(f);
        facts_number(f, "document", (int64_t)l->doc);
        facts_number(f, "offset", (int64_t)l->at);
        facts_bytes(f, "text", l->before, strlen(l->before));
        facts_bytes(f, "becomes", l->after, strlen(l->after));
        facts_row_end(f);
    }
    facts_list_end(f);
    free(list);
    return code;
}

/* A line of JSONL: its text, and the language under another key. */
static int take_line(struct jsonl *j, struct buf *line, const char *p, size_t n,
                     const struct jsonl_value v[2], struct buf *group, struct err *e)
{
    buf_reset(line);
    memset(buf_reserve(line, n + JSONL_PADDING) + n, 0, JSONL_PADDING);
    buf_add(line, p, n);
    int code = jsonl_parse(j, line->data, n, (struct jsonl_value *)v, e);
    buf_reset(group);
    if (!code && v[1].kind == JSONL_STRING)
        buf_add(group, v[1].text, v[1].length);
    for (size_t i = 0; i < group->len; i++)
        group->data[i] = group->data[i] ? group->data[i] : ' ';
    if (!group->len)
        buf_adds(group, "(none)");
    buf_str(group);
    if (code || v[0].kind == JSONL_STRING)
        return code;
    struct buf keys = {0};
    jsonl_keys(p, n, &keys);
    err_set(e, ERR_DATA, "no text under the key of --json-keys; its keys are %s", buf_str(&keys));
    buf_finish(&keys);
    return ERR_DATA;
}

static int survey_corpus(const struct cli *c, struct corpus_stats *s, struct err *e)
{
    const char *key[2] = {c->text_key, c->by};
    const struct docs_names names = {.name = c->corpus.item, .n = c->corpus.n, .folders = true};
    struct docs *docs;
    int code =
        cmd_open_docs(c, &names, c->by ? DOCS_TSV : (enum docs_format)c->input_format, &docs, e);
    if (code)
        return code;
    struct jsonl *j = jsonl_create(key, c->by ? 2 : 1);
    struct buf line = {0}, group = {0};
    struct progress p;
    bool more = true;
    progress_init(&p, "tok inspect", "MB", 1e6, docs_total(docs), c->common.quiet);
    while (!code) {
        const char *text, *name;
        uint64_t number;
        size_t n;
        code = docs_next(docs, &text, &n, &more, e);
        if (code || !more)
            break;
        docs_place(docs, &name, &number);
        struct jsonl_value v[2] = {{0}};
        if (c->by && jsonl_blank(text, text + n))
            continue;
        if (c->by)
            code = take_line(j, &line, text, n, v, &group, e);
        if (!code && c->by)
            code = corpus_stats_add(s, group.data, v[0].text, v[0].length, e);
        else if (!code)
            code = corpus_stats_add(s, name, text, n, e);
        if (code)
            err_wrap(e, "%s: %s %" PRIu64, name, docs_unit(docs), number);
        progress_update(&p, docs_consumed(docs), NULL);
    }
    progress_finish(&p);
    if (!code)
        cmd_unused_keys(c, c->by || docs_had_keys(docs));
    jsonl_destroy(j);
    docs_destroy(docs);
    buf_finish(&line);
    buf_finish(&group);
    return code;
}

static int say_corpus(const struct cli *c, struct facts *f, struct corpus_stats *s,
                      const bool *hidden, struct err *e)
{
    int code = survey_corpus(c, s, e);
    if (code)
        return code;
    facts_group(f, "corpus");
    for (size_t i = 0; i < s->ngroups; i++)
        say_group(f, &s->group[i]);
    facts_group_end(f);
    say_unused(f, s, hidden);
    facts_group(f, "lost_in_corpus");
    code = say_lost(f, s, e);
    facts_group_end(f);
    return code;
}

int cmd_survey(const struct cli *c, struct facts *f, const struct tokenizer *t,
               const struct recipe *r, struct err *e)
{
    struct corpus_stats s;
    struct corpus_stats_reach reach = {0};
    bool *hidden = find_hidden(t, r);
    corpus_stats_init(&s, t);
    int code = corpus_stats_reach(&s, hidden, &reach, e);
    if (!code) {
        say_reach(f, &s, r, &reach);
        code = say_returns(f, &s, e);
    }
    if (!code && c->corpus.n)
        code = say_corpus(c, f, &s, hidden, e);
    free(reach.id);
    free(reach.part);
    free(hidden);
    corpus_stats_finish(&s);
    return code;
}
