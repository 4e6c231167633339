/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/core/program.h"
#include "tok/cmd.h"
#include "tok/cmd_facts.h"
#include "tok/inspect/compare.h"
#include "tok/edit/recipe_edit.h"

/* Conversion, and the proof that both tokenizers encode a corpus the same. */

enum { NO_DROPOUT = -1 }; /* random ids prove nothing */

static struct tok_options options_of(const struct cli *c, const char *path)
{
    return (struct tok_options){.path = path,
                                .type = (enum tok_type)c->tok.type,
                                .pattern = c->tok.pattern,
                                .merges = c->tok.merges,
                                .dropout = NO_DROPOUT,
                                .no_template = true};
}

/* Logs the recipe's notes, a line each. */
void cmd_say_notes(const struct recipe *r)
{
    const char *p = r->notes.data, *end = p ? p + r->notes.len : p;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        log_warn("%s: %.*s", r->path, (int)(stop - p), p);
        p = stop + 1;
    }
}

/* ---- the proof ------------------------------------------------------------------------------ */

struct proof {
    const struct cli *cli;
    const struct tokenizer *from;
    const struct recipe *r;
    enum recipe_format format;
};

int cmd_open_staged(const struct recipe *r, enum recipe_format format, enum tok_type type,
                    const struct recipe_file *staged, struct tokenizer **ret, struct err *e)
{
    struct tok_options o = {
        .path = staged[0].path, .type = type, .dropout = NO_DROPOUT, .no_template = true};
    if (format == RECIPE_GPT2) {
        o.type = TOK_GPT2_BPE;
        o.merges = staged[1].path;
    } else if (format == RECIPE_TIKTOKEN) {
        /* a name would also bring the special tokens for this number of ranks */
        o.pattern = r->store.nnorm ? recipe_pattern_name(r) : r->pattern;
    } else if (format == RECIPE_BERT) {
        o.type = r->type;
    }
    int code = tok_open(&o, ret, e);
    return code ? err_wrap(e, "the converted tokenizer cannot be read back") : 0;
}

/* Lists what a comparison of ids does not show. */
static void say_extras(struct facts *f, const struct recipe *r)
{
    char extra[RECIPE_EXTRAS][RECIPE_EXTRA];
    size_t n = recipe_extras(r, extra);
    struct buf b = {0};
    for (size_t i = 0; i < n; i++)
        buf_addf(&b, "%s%s", i ? ", " : "", extra[i]);
    if (n)
        facts_text(f, "compared_without", buf_str(&b));
    buf_finish(&b);
}

static int prove_corpus(const struct proof *p, const struct tokenizer *to, struct err *e)
{
    const struct cli *c = p->cli;
    struct compare *with = compare_create(p->from, to, true);
    struct facts f;
    facts_init(&f, c->json);
    facts_list(&f, "segments");
    int code = cmd_compare(c, c->proof.item, c->proof.n, with, &f, UINT64_MAX, e);
    facts_list_end(&f);
    const struct compare_sums *s = compare_sums(with);
    facts_group(&f, "proof");
    facts_number(&f, "documents", (int64_t)s->docs);
    facts_number(&f, "bytes", (int64_t)s->bytes);
    facts_number(&f, "tokens", (int64_t)s->tokens[0]);
    facts_number(&f, "documents_other_ids", (int64_t)s->other_ids);
    say_extras(&f, p->r);
    facts_group_end(&f);
    code = facts_finish(&f, code, e);
    if (!code && s->other_ids)
        code = err_set(e, ERR_INTEGRITY,
                       "%s as %s gives different ids for %" PRIu64 " of %" PRIu64
                       " documents: nothing was written",
                       p->r->path, recipe_format_name(p->format), s->other_ids, s->docs);
    compare_destroy(with);
    return code;
}

/* Without a corpus, at least checks that the file can be read back. */
static int prove(void *arg, const struct recipe_file *staged, size_t n, struct err *e)
{
    const struct proof *p = arg;
    struct tokenizer *to;
    (void)n;
    int code = cmd_open_staged(p->r, p->format, TOK_AUTO, staged, &to, e);
    if (code)
        return code;
    if (p->cli->proof.n)
        code = prove_corpus(p, to, e);
    tok_close(to);
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------- */

static int convert_write_out(const struct cli *c, const struct tokenizer *from, struct recipe *r,
                             enum recipe_format format, struct err *e)
{
    struct recipe_file f[2];
    size_t n = 0;
    struct proof p = {c, from, r, format};
    int code = recipe_files(r, format, c->file[1], f, &n, e);
    if (!code)
        code = output_prepare(f[0].path, e);
    if (!code)
        cmd_say_notes(r); /* before a proof, which may take long */
    if (!code)
        code = recipe_save(f, n, prove, &p, e);
    for (size_t i = 0; i < n && !code; i++)
        log_info("tok convert: %s", f[i].path);
    if (!code && !c->proof.n)
        log_info("tok convert: written unchecked; --proof FILE compares both tokenizers");
    recipe_files_finish(f, n);
    return code;
}

static int may_write(const struct cli *c, const struct tokenizer *from, enum recipe_format format,
                     struct err *e)
{
    char *path[2];
    size_t n = 0;
    int code = recipe_paths(format, c->file[1], path, &n, e);
    if (!code)
        code = cmd_may_write(c, path, n, from, e);
    for (size_t i = 0; i < n; i++)
        free(path[i]);
    return code;
}

static int convert(const struct cli *c, const struct tokenizer *from, const struct tok_options *o,
                   struct err *e)
{
    struct recipe r;
    enum recipe_format format = (enum recipe_format)c->to;
    if (format == RECIPE_AUTO)
        format = recipe_format_of(c->file[1]);
    if (format == RECIPE_AUTO) {
        err_set(e, ERR_USAGE, "%s: cannot tell the format from the file name", c->file[1]);
        return err_hint(e, "give --to, one of huggingface, gpt2, tiktoken, bert and sentencepiece");
    }
    int code = may_write(c, from, format, e);
    if (!code)
        code = recipe_read(&r, from, o, e);
    if (code)
        return code;
    code = recipe_to(&r, format, e);
    if (!code)
        code = convert_write_out(c, from, &r, format, e);
    recipe_finish(&r);
    return code;
}

int cmd_convert(const struct cli *c, struct err *e)
{
    struct tokenizer *from;
    if (c->nfile != 2)
        return err_set(e, ERR_USAGE,
                       WEFT_PREFIX "tok convert takes two names: FROM TO, and a corpus after "
                                   "--proof");
    struct tok_options o = options_of(c, c->file[0]);
    int code = tok_open(&o, &from, e);
    if (code)
        return code;
    cmd_unused_warn(c, &from, 1);
    code = convert(c, from, &o, e);
    tok_close(from);
    return code;
}
