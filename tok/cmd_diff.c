/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "tok/cmd.h"
#include "tok/cmd_facts.h"
#include "tok/inspect/compare.h"
#include "tok/inspect/token_bytes.h"

/* Compares two tokenizers: their vocabularies, and their ids for a corpus. */

enum { EXAMPLES = 8 };

/* Opens a tokenizer named as an argument, without its template. */
static int cmd_open(const struct cli *c, const char *path, struct tokenizer **ret, struct err *e)
{
    struct tok_options o = {.path = path,
                            .pattern = c->tok.pattern,
                            .merges = c->tok.merges,
                            .specials = (enum tok_specials)c->tok.specials,
                            .type = (enum tok_type)c->tok.type,
                            .no_template = true};
    return tok_open(&o, ret, e);
}

/* ---- vocabularies --------------------------------------------------------------------------- */

struct vocab {
    const struct tokenizer *t;
    struct token_bytes surface;
    bool spelt; /* pieces are compared as they are spelled */
    struct string_map words;
};

static const char *word_of(const struct vocab *v, int64_t id, size_t *ret_n)
{
    if (!v->spelt)
        return token_bytes_of(&v->surface, (int32_t)id, ret_n);
    return tok_piece(v->t, id, ret_n);
}

static void open_vocab(struct vocab *v, const struct tokenizer *t)
{
    *v = (struct vocab){.t = t};
    token_bytes_init(&v->surface, t);
}

static void index_vocab(struct vocab *v, bool spelt)
{
    v->spelt = spelt;
    string_map_init(&v->words, (size_t)v->surface.size);
    for (int64_t id = 0; id < v->surface.size; id++) {
        size_t n;
        const char *p = word_of(v, id, &n);
        if (n)
            string_map_add(&v->words, p, n, (int32_t)id);
    }
}

static void close_vocab(struct vocab *v)
{
    string_map_finish(&v->words);
    token_bytes_finish(&v->surface);
}

struct overlap {
    int64_t same, moved, only;
    int32_t example[EXAMPLES], moved_example[EXAMPLES];
};

/* For the pieces of a: whether b has them, with the same id or another. */
static struct overlap find_overlap(const struct vocab *a, const struct vocab *b)
{
    struct overlap o = {0};
    for (int64_t id = 0; id < a->surface.size; id++) {
        size_t n;
        const char *p = word_of(a, id, &n);
        if (!n || string_map_find(&a->words, p, n) != id)
            continue;
        int32_t at = string_map_find(&b->words, p, n);
        if (at < 0 && o.only++ < EXAMPLES)
            o.example[o.only - 1] = (int32_t)id;
        if (at >= 0 && at != id && o.moved++ < EXAMPLES)
            o.moved_example[o.moved - 1] = (int32_t)id;
        o.same += at == id;
    }
    return o;
}

static size_t at_most(int64_t n)
{
    return n < EXAMPLES ? (size_t)n : EXAMPLES;
}

/* True: they are the same. */
static bool say_vocabularies(struct facts *f, const struct tokenizer *const t[2])
{
    struct vocab v[2];
    for (int i = 0; i < 2; i++)
        open_vocab(&v[i], t[i]);
    bool spelt = v[0].surface.kind == v[1].surface.kind;
    for (int i = 0; i < 2; i++)
        index_vocab(&v[i], spelt);
    struct overlap a = find_overlap(&v[0], &v[1]), b = find_overlap(&v[1], &v[0]);
    facts_group(f, "vocabulary");
    facts_text(f, "pieces_compared_as", spelt ? "their spelling" : "the text they stand for");
    facts_number(f, "same_id", a.same);
    facts_number(f, "other_id", a.moved);
    facts_number(f, "only_in_a", a.only);
    facts_number(f, "only_in_b", b.only);
    facts_pieces(f, "examples_other_id", t[0], a.moved_example, at_most(a.moved));
    facts_pieces(f, "examples_only_in_a", t[0], a.example, at_most(a.only));
    facts_pieces(f, "examples_only_in_b", t[1], b.example, at_most(b.only));
    facts_group_end(f);
    close_vocab(&v[0]);
    close_vocab(&v[1]);
    return !a.moved && !a.only && !b.only;
}

/* ---- the corpus ----------------------------------------------------------------------------- */

static void say_sides(struct facts *f, const struct tokenizer *const t[2])
{
    static const char *const name[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        facts_group(f, name[i]);
        facts_text(f, "file", tok_info(t[i])->path);
        facts_text(f, "type", tok_info(t[i])->type_name);
        facts_number(f, "vocab_size", tok_info(t[i])->vocab_size);
        facts_text(f, "sha256", tok_info(t[i])->digest);
        facts_group_end(f);
    }
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : NAN;
}

static void say_sums(struct facts *f, const struct compare_sums *s)
{
    facts_group(f, "corpus");
    facts_number(f, "documents", (int64_t)s->docs);
    facts_number(f, "bytes", (int64_t)s->bytes);
    facts_number(f, "tokens_a", (int64_t)s->tokens[0]);
    facts_number(f, "tokens_b", (int64_t)s->tokens[1]);
    facts_real(f, "bytes_per_token_a", ratio(s->bytes, s->tokens[0]));
    facts_real(f, "bytes_per_token_b", ratio(s->bytes, s->tokens[1]));
    facts_number(f, "unknown_a", (int64_t)s->unknown[0]);
    facts_number(f, "unknown_b", (int64_t)s->unknown[1]);
    facts_number(f, "documents_other_ids", (int64_t)s->other_ids);
    facts_number(f, "documents_other_pieces", (int64_t)s->other_pieces);
    facts_number(f, "differing_segments", (int64_t)s->stretches);
    facts_group_end(f);
}

static void say_frequent(struct facts *f, const struct tokenizer *const t[2],
                         const struct compare *c, size_t most)
{
    struct compare_frequent *list;
    size_t n = compare_frequent(c, most, &list);
    facts_list(f, "frequent_segments");
    for (size_t i = 0; i < n; i++) {
        struct buf text = {0};
        for (size_t k = 0; k < list[i].n[0]; k++) {
            size_t bytes;
            const char *p = compare_surface(c, 0, list[i].id[0][k], &bytes);
            buf_add(&text, p, bytes);
        }
        facts_row(f);
        facts_number(f, "count", (int64_t)list[i].count);
        facts_bytes(f, "text", buf_str(&text), text.len);
        facts_pieces(f, "pieces_a", t[0], list[i].id[0], list[i].n[0]);
        facts_pieces(f, "pieces_b", t[1], list[i].id[1], list[i].n[1]);
        facts_row_end(f);
        buf_finish(&text);
    }
    facts_list_end(f);
    compare_frequent_free(list, n);
}

/* A line for each stretch of a document. */
static void say_stretch(struct facts *f, uint64_t doc, const char *text,
                        const struct compare_stretch *s)
{
    facts_row(f);
    facts_number(f, "document", (int64_t)doc);
    facts_number(f, s->sure ? "offset" : "offset_about", (int64_t)s->at);
    facts_bytes(f, "text", text + s->at, s->end - s->at);
    facts_ids(f, "ids_a", s->id[0], s->n[0]);
    facts_ids(f, "ids_b", s->id[1], s->n[1]);
    facts_row_end(f);
}

int cmd_compare(const struct cli *c, const char *const *path, size_t npath, struct compare *with,
                struct facts *f, uint64_t most, struct err *e)
{
    const struct docs_names names = {.name = path, .n = npath};
    struct docs *docs;
    struct progress p;
    int code = cmd_open_docs(c, &names, (enum docs_format)c->input_format, &docs, e);
    if (code)
        return code;
    progress_init(&p, "tok: comparing", "MB", 1e6, docs_total(docs), c->common.quiet);
    uint64_t said = 0;
    bool more = true;
    for (uint64_t doc = 0; !code; doc++) {
        const char *text, *name;
        uint64_t line;
        size_t n, k;
        bool same;
        code = docs_next(docs, &text, &n, &more, e);
        if (code || !more)
            break;
        code = compare_text(with, text, n, &same, e);
        docs_place(docs, &name, &line);
        if (code)
            err_wrap(e, "%s: %s %" PRIu64, name, docs_unit(docs), line);
        const struct compare_stretch *s = compare_stretches(with, &k);
        for (size_t i = 0; !code && i < k && said < most; i++, said++)
            say_stretch(f, doc, text, &s[i]);
        if (!code)
            code = facts_flush(f, e);
        progress_update(&p, docs_consumed(docs), NULL);
    }
    progress_finish(&p);
    if (!code)
        cmd_unused_keys(c, docs_had_keys(docs));
    docs_destroy(docs);
    return code;
}

static int diff_corpus(const struct cli *c, const struct tokenizer *const t[2], struct facts *f,
                       bool *ret_same, struct err *e)
{
    struct compare *with = compare_create(t[0], t[1], false);
    facts_list(f, "segments");
    int code = cmd_compare(c, c->file + 2, c->nfile - 2, with, f, (uint64_t)c->show, e);
    facts_list_end(f);
    if (!code) {
        say_frequent(f, t, with, (size_t)c->show);
        say_sums(f, compare_sums(with));
        *ret_same = compare_sums(with)->other_ids == 0;
    }
    compare_destroy(with);
    return code;
}

static int diff(const struct cli *c, const struct tokenizer *const t[2], struct err *e)
{
    struct facts f;
    bool same;
    facts_init(&f, c->json);
    say_sides(&f, t);
    same = say_vocabularies(&f, t);
    int code = c->nfile > 2 ? diff_corpus(c, t, &f, &same, e) : 0;
    code = facts_finish(&f, code, e);
    if (code || same)
        return code;
    log_info(c->nfile > 2 ? "%s and %s give different ids for the same text"
                          : "%s and %s have different vocabularies",
             c->file[0], c->file[1]);
    return ERR_FAIL;
}

int cmd_diff(const struct cli *c, struct err *e)
{
    struct tokenizer *t[2] = {NULL, NULL};
    if (c->nfile < 2)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok diff needs two tokenizers: A B [CORPUS...]");
    int code = cmd_open(c, c->file[0], &t[0], e);
    if (!code)
        code = cmd_open(c, c->file[1], &t[1], e);
    if (!code)
        cmd_unused_warn(c, t, 2);
    if (!code)
        code = diff(c, (const struct tokenizer *const *)t, e);
    tok_close(t[0]);
    tok_close(t[1]);
    return code;
}
