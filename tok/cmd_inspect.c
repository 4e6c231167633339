/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/program.h"
#include "tok/cmd.h"
#include "tok/sp_model.h"

/*
 * What a tokenizer is, as lines for people or as one JSON object. Both are made from one list of
 * facts: a fact belongs to a group ("" at the top) and is a text or a number.
 */

struct facts {
    struct buf out;
    bool json, first;
    const char *group;
};

static void enter(struct facts *f, const char *group)
{
    if (f->json && f->group)
        buf_addc(&f->out, '}');
    f->group = group;
    if (group && f->json)
        buf_addf(&f->out, ",\"%s\":{", group);
    if (group && !f->json)
        buf_addf(&f->out, "%s\n", group);
    f->first = group != NULL;
}

static void name_fact(struct facts *f, const char *name)
{
    if (f->json) {
        if (!f->first)
            buf_addc(&f->out, ',');
        jsonw_key(&f->out, name);
    } else {
        buf_addf(&f->out, "%s%-*s", f->group ? "  " : "", f->group ? 26 : 28, name);
    }
    f->first = false;
}

static void say_text(struct facts *f, const char *name, const char *text)
{
    name_fact(f, name);
    if (f->json)
        jsonw_string(&f->out, text, strlen(text));
    else
        buf_addf(&f->out, "%s\n", text);
}

static void say_number(struct facts *f, const char *name, int64_t v)
{
    name_fact(f, name);
    buf_addf(&f->out, f->json ? "%lld" : "%lld\n", (long long)v);
}

static void say_switch(struct facts *f, const char *name, bool v)
{
    name_fact(f, name);
    buf_adds(&f->out, f->json ? v ? "true" : "false" : v ? "yes\n" : "no\n");
}

/* An id with its piece; "none" and null without one. */
static void say_id(struct facts *f, const char *name, const struct tokenizer *t, int64_t id)
{
    name_fact(f, name);
    const char *piece = tok_piece(t, id);
    if (id < 0) {
        buf_adds(&f->out, f->json ? "null" : "none\n");
    } else if (f->json) {
        buf_addf(&f->out, "{\"id\":%lld,\"piece\":", (long long)id);
        jsonw_string(&f->out, piece, strlen(piece));
        buf_addc(&f->out, '}');
    } else {
        buf_addf(&f->out, "%lld ", (long long)id);
        jsonw_string(&f->out, piece, strlen(piece)); /* a newline among them stays readable */
        buf_addc(&f->out, '\n');
    }
}

static void say_tokenizer(struct facts *f, const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    if (i->path)
        say_text(f, "file", i->path);
    say_text(f, "type", i->type_name);
    say_number(f, "vocab_size", i->vocab_size);
    say_id(f, "eod", t, i->eod);
    say_id(f, "bos", t, i->bos);
    say_id(f, "eos", t, i->eos);
    say_id(f, "pad", t, i->pad);
    say_id(f, "unk", t, i->unk);
    say_text(f, "sha256", i->digest);
}

static void say_model(struct facts *f, const struct sp_model *m)
{
    static const char *const plural[] = {"",
                                         "normal_pieces",
                                         "unknown_pieces",
                                         "control_pieces",
                                         "user_defined_pieces",
                                         "unused_pieces",
                                         "byte_pieces"};
    size_t longest = 0;
    for (size_t i = 0; i < m->npieces; i++)
        longest = m->piece[i].length > longest ? m->piece[i].length : longest;
    enter(f, "model");
    say_text(f, "algorithm", sp_kind_name(m->kind));
    say_number(f, "pieces", (int64_t)m->npieces);
    for (int i = SP_NORMAL; i <= SP_BYTE; i++)
        say_number(f, plural[i], (int64_t)m->count[i]);
    say_number(f, "longest_piece_bytes", (int64_t)longest);
    say_switch(f, "byte_fallback", m->byte_fallback);
    say_number(f, "self_tests", (int64_t)m->self_tests);
    enter(f, "normalization");
    say_text(f, "name", m->normalizer.name);
    say_number(f, "rules_bytes", (int64_t)m->normalizer.charsmap_size);
    say_switch(f, "add_dummy_prefix", m->normalizer.add_dummy_prefix);
    say_switch(f, "whitespace_as_suffix", m->whitespace_as_suffix);
    say_switch(f, "remove_extra_whitespaces", m->normalizer.remove_extra_whitespaces);
    say_switch(f, "escape_whitespaces", m->normalizer.escape_whitespaces);
    say_switch(f, "denormalizer", m->has_denormalizer);
}

/* The symbols that text can turn into, and those that it cannot. */
static void say_symbols(struct facts *f, const struct tokenizer *t, const struct sp_model *m)
{
    enter(f, "symbols");
    for (int64_t id = 0; id < tok_info(t)->vocab_size; id++) {
        bool own = (size_t)id < m->npieces;
        enum sp_piece_type type = own ? m->piece[id].type : SP_CONTROL;
        if (type != SP_CONTROL && type != SP_USER && type != SP_UNKNOWN)
            continue;
        char name[32];
        snprintf(name, sizeof(name), "%lld", (long long)id);
        name_fact(f, name);
        const char *what = own ? sp_type_name(type) : "added";
        if (f->json) {
            buf_adds(&f->out, "{\"piece\":");
            jsonw_string(&f->out, tok_piece(t, id), strlen(tok_piece(t, id)));
            buf_addf(&f->out, ",\"kind\":\"%s\"}", what);
        } else {
            buf_addf(&f->out, "%-14s", what);
            jsonw_string(&f->out, tok_piece(t, id), strlen(tok_piece(t, id)));
            buf_addc(&f->out, '\n');
        }
    }
}

static int say_sp(struct facts *f, const struct tokenizer *t, struct err *e)
{
    struct buf b;
    struct sp_model m;
    const char *path = tok_info(t)->path;
    int code = file_read(path, (size_t)1 << 30, &b, e);
    if (code)
        return code;
    code = sp_check(path, b.data, b.len, &m, e);
    buf_finish(&b);
    if (code)
        return code;
    say_model(f, &m);
    say_symbols(f, t, &m);
    sp_model_finish(&m);
    return 0;
}

static int inspect(const struct cli *c, const struct tokenizer *t, struct err *e)
{
    struct facts f = {.json = c->json, .first = true};
    if (f.json)
        buf_addc(&f.out, '{');
    say_tokenizer(&f, t);
    enum tok_type type = tok_info(t)->type;
    int code = type == TOK_SENTENCEPIECE || type == TOK_GPT_SENTENCEPIECE ? say_sp(&f, t, e) : 0;
    enter(&f, NULL);
    if (f.json)
        buf_adds(&f.out, "}\n");
    if (!code)
        code = fd_write_all(STDOUT_FILENO, "standard output", f.out.data, f.out.len, e);
    buf_finish(&f.out);
    return code;
}

int cmd_inspect(const struct cli *c, struct err *e)
{
    struct tok_flags flags = c->tok;
    if (c->nfile > 1 || (c->nfile && flags.path))
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok inspect looks at one tokenizer at a time");
    if (c->nfile)
        flags.path = c->file[0];
    struct tokenizer *t;
    int code = tok_open_flags(&flags, &t, e);
    if (code)
        return code;
    code = inspect(c, t, e);
    tok_close(t);
    return code;
}
