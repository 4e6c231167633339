/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/log.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "tok/cmd.h"
#include "tok/edit/recipe_edit.h"

/*
 * extend, merge and prune: write another vocabulary, and a file that maps the rows of embeddings.
 */

enum { LIST_MAX = 64 << 20, NO_DROPOUT = -1 };

struct edit {
    const struct cli *cli;
    const char *verb;
    struct tok_options o;
    struct tokenizer *t;
    struct recipe r;
    struct recipe_rows rows;
    const struct opt_list *corpus; /* whose ids must not change; or NULL */
    const struct list *added;      /* tokens that their text must become, NULL: none; */
    size_t added_from;             /* from here on */
};

struct list {
    const char **item;
    size_t n, cap;
    struct arena arena;
};

/* Checks the names of the outputs: a tokenizer of the same format, and its rows. `t` is one of the
 * inputs. */
static int edit_name_files(struct edit *d, const struct tokenizer *t, struct err *e)
{
    const char *path = d->cli->output;
    enum recipe_format named = recipe_format_of(path), format = d->r.from;
    char *name[3] = {NULL};
    size_t n = 0, length = strlen(path);
    bool folder = (length && path[length - 1] == '/') || file_is_dir(path);
    if (named != RECIPE_AUTO && named != format && !folder)
        return err_set(e, ERR_USAGE, "%s: the name is that of %s, but the output is %s", path,
                       recipe_format_name(named), recipe_format_name(format));
    int code = recipe_paths(format, path, name, &n, e);
    if (!code)
        name[n++] = mem_printf("%s.rows", name[0]);
    if (!code)
        code = cmd_may_write(d->cli, name, n, t, e);
    for (size_t i = 0; i < n; i++)
        free(name[i]);
    return code;
}

static int open_edit(struct edit *d, const struct cli *c, struct err *e)
{
    *d = (struct edit){.cli = c, .verb = c->verb};
    d->o = (struct tok_options){.path = c->file[0],
                                .type = (enum tok_type)c->tok.type,
                                .pattern = c->tok.pattern,
                                .merges = c->tok.merges,
                                .dropout = NO_DROPOUT,
                                .no_template = true};
    if (!c->output)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok %s needs --output", d->verb);
    int code = tok_open(&d->o, &d->t, e);
    if (!code)
        cmd_unused_warn(c, &d->t, 1);
    if (!code)
        code = recipe_read(&d->r, d->t, &d->o, e);
    if (!code)
        code = edit_name_files(d, d->t, e);
    if (!code && d->r.listed)
        code = err_set(e, ERR_USAGE,
                       "%s: ranks in JSON cannot be changed: convert them first, tok convert "
                       "--to tiktoken",
                       d->r.path);
    return code;
}

static void close_edit(struct edit *d)
{
    recipe_finish(&d->r);
    recipe_rows_finish(&d->rows);
    tok_close(d->t);
}

/* ---- over a corpus -------------------------------------------------------------------------- */

typedef int on_text(void *arg, const char *text, size_t n, struct err *e);

static int each_text(const struct cli *c, const struct opt_list *corpus, const char *what,
                     on_text *on, void *arg, bool *ret_jsonl, struct err *e)
{
    const struct docs_names names = {.name = corpus->item, .n = corpus->n};
    struct docs *docs;
    struct progress p;
    bool more = true;
    int code = cmd_open_docs(c, &names, (enum docs_format)c->input_format, &docs, e);
    if (code)
        return code;
    progress_init(&p, what, "MB", 1e6, docs_total(docs), c->common.quiet);
    while (!code) {
        const char *text, *name;
        uint64_t line;
        size_t n;
        code = docs_next(docs, &text, &n, &more, e);
        if (code || !more)
            break;
        code = on(arg, text, n, e);
        docs_place(docs, &name, &line);
        if (code)
            err_wrap(e, "%s: %s %" PRIu64, name, docs_unit(docs), line);
        progress_update(&p, docs_consumed(docs), NULL);
    }
    progress_finish(&p);
    *ret_jsonl = docs_had_keys(docs);
    docs_destroy(docs);
    return code;
}

struct counts {
    const struct tokenizer *t;
    struct tok_work *work;
    struct tok_ids ids;
    uint64_t *count;
};

static int count_text(void *arg, const char *text, size_t n, struct err *e)
{
    struct counts *c = arg;
    c->ids.n = 0;
    int code = tok_encode(c->t, c->work, text, n, &c->ids, e);
    for (size_t i = 0; i < c->ids.n; i++)
        c->count[c->ids.id[i]]++;
    return code;
}

/* How often each id occurs in a corpus; the caller frees it in any case. */
static int cmd_count(const struct cli *c, const struct opt_list *corpus, const struct tokenizer *t,
                     uint64_t **ret, struct err *e)
{
    struct counts n = {.t = t, .work = tok_work_create(t)};
    n.count = mem_new((size_t)tok_info(t)->vocab_size + 1, sizeof(*n.count));
    bool jsonl;
    int code = each_text(c, corpus, "tok: counting tokens", count_text, &n, &jsonl, e);
    if (!code)
        cmd_unused_keys(c, jsonl);
    tok_work_destroy(n.work);
    tok_ids_finish(&n.ids);
    *ret = n.count;
    return code;
}

/* ---- the proof: ids and texts are unchanged, up to renumbering ------------------------------ */

struct mapped {
    const struct recipe_rows *rows;
    const struct tokenizer *t[2];
    struct tok_work *work[2];
    struct tok_ids ids[2];
};

static int check_text(void *arg, const char *text, size_t n, struct err *e)
{
    struct mapped *m = arg;
    for (int i = 0; i < 2; i++) {
        m->ids[i].n = 0;
        int code = tok_encode(m->t[i], m->work[i], text, n, &m->ids[i], e);
        if (code)
            return code;
    }
    bool same = m->ids[0].n == m->ids[1].n;
    for (size_t i = 0; i < m->ids[0].n && same; i++)
        same = m->ids[0].id[i] == m->rows->old[m->ids[1].id[i]];
    return same ? 0
                : err_set(e, ERR_INTEGRITY,
                          "this text would tokenize differently; nothing was written");
}

static int check_corpus(const struct edit *d, const struct tokenizer *to, struct err *e)
{
    struct mapped m = {.rows = &d->rows, .t = {d->t, to}};
    for (int i = 0; i < 2; i++)
        m.work[i] = tok_work_create(m.t[i]);
    bool jsonl;
    int code = each_text(d->cli, d->corpus, "tok: checking", check_text, &m, &jsonl, e);
    for (int i = 0; i < 2; i++) {
        tok_work_destroy(m.work[i]);
        tok_ids_finish(&m.ids[i]);
    }
    return code;
}

static int check_rows(const struct edit *d, const struct tokenizer *to, struct err *e)
{
    const struct recipe_rows *w = &d->rows;
    bool ranks =
        d->r.from == RECIPE_TIKTOKEN; /* special tokens have ids, but the file cannot hold them */
    int64_t size = tok_info(to)->vocab_size;
    if (ranks ? size > (int64_t)w->n : size != (int64_t)w->n)
        return err_set(e, ERR_INTEGRITY,
                       "%s would have %lld ids instead of %zu: nothing was written", d->r.path,
                       (long long)size, w->n);
    for (size_t id = 0; id < w->n; id++) {
        if (w->old[id] < 0 || (ranks && recipe_token_of(&d->r, (int32_t)id)))
            continue;
        size_t n[2];
        const char *now = tok_piece(to, (int64_t)id, &n[0]);
        const char *was = tok_piece(d->t, w->old[id], &n[1]);
        if (n[0] != n[1] || memcmp(now, was, n[0]))
            return err_set(e, ERR_INTEGRITY,
                           "%s: id %zu would be \"%.64s\" and not \"%.64s\": nothing was written",
                           d->r.path, id, now, was);
    }
    return 0;
}

/* A new piece of a list must be what its own text becomes. */
static int check_added(struct edit *d, const struct tokenizer *to, struct err *e)
{
    struct tok_work *work = tok_work_create(to);
    struct tok_ids ids = {0};
    int code = 0;
    for (size_t i = d->added_from; i < d->added->n && !code; i++) {
        const char *text = d->added->item[i], *spelt;
        ids.n = 0;
        code = recipe_spell_piece(&d->r, text, false, &spelt, e);
        if (!code)
            code = tok_encode(to, work, text, strlen(text), &ids, e);
        if (!code && (ids.n != 1 || ids.id[0] != tok_find(to, spelt))) {
            recipe_refuse(&d->r, d->r.from, e, "a token that its own text does not become: ", text);
            code = err_hint(e, "convert it to a tokenizer.json first: tok convert");
        }
    }
    tok_ids_finish(&ids);
    tok_work_destroy(work);
    return code;
}

static bool edit_holds(const struct tokenizer *t, struct tok_work *w, const char *text, int32_t id)
{
    struct tok_ids ids = {0};
    struct err ignored;
    bool found = false;
    if (!tok_encode(t, w, text, strlen(text), &ids, &ignored))
        for (size_t i = 0; i < ids.n && !found; i++)
            found = ids.id[i] == id;
    tok_ids_finish(&ids);
    return found;
}

/* Special tokens that had to become pieces, which text may then become, too. */
static void note_specials(struct edit *d, const struct tokenizer *to)
{
    struct tok_work *work[2] = {tok_work_create(d->t), tok_work_create(to)};
    for (size_t i = 0; i < d->r.ntokens && d->r.from == RECIPE_HF; i++) {
        const struct recipe_token *s = &d->r.token[i];
        if (!s->special || s->id >= (int64_t)d->rows.n || d->rows.old[s->id] < 0)
            continue;
        if (edit_holds(to, work[1], s->text, s->id) &&
            !edit_holds(d->t, work[0], s->text, d->rows.old[s->id]))
            recipe_note(&d->r,
                        "the special token %s is a piece now, so its string as ordinary text "
                        "(--specials text) becomes it, too",
                        s->text);
    }
    tok_work_destroy(work[0]);
    tok_work_destroy(work[1]);
}

static int prove(void *arg, const struct recipe_file *staged, size_t n, struct err *e)
{
    struct edit *d = arg;
    struct tokenizer *to;
    (void)n;
    int code = cmd_open_staged(&d->r, d->r.from, d->r.type, staged, &to, e);
    if (code)
        return code;
    code = check_rows(d, to, e);
    if (!code && d->added && recipe_is_list(&d->r))
        code = check_added(d, to, e);
    if (!code && d->corpus && d->corpus->n)
        code = check_corpus(d, to, e);
    if (!code)
        note_specials(d, to);
    tok_close(to);
    return code;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int save(struct edit *d, struct err *e)
{
    struct recipe_file f[3];
    size_t n = 0, fresh = 0;
    if (d->r.from == RECIPE_TIKTOKEN)
        recipe_drop_tokens(&d->r);
    int code = recipe_files(&d->r, d->r.from, d->cli->output, f, &n, e);
    if (code)
        return code;
    f[n] = (struct recipe_file){.path = mem_printf("%s.rows", f[0].path)};
    recipe_rows_put(&d->rows, &f[n++].content);
    code = output_prepare(f[0].path, e);
    if (!code)
        code = recipe_save(f, n, prove, d, e);
    if (!code)
        cmd_say_notes(&d->r);
    for (size_t i = 0; i < d->rows.n; i++)
        fresh += d->rows.old[i] < 0;
    size_t removed = d->rows.old_size - (d->rows.n - fresh);
    if (!code)
        log_info("tok %s: %s: %zu ids, %zu of them new, %zu of the old ones removed", d->verb,
                 f[0].path, d->rows.n, fresh, removed);
    if (!code && !removed && !strcmp(d->verb, "prune"))
        log_warn("nothing was removed: all %zu ids are used, or fit --size", d->rows.old_size);
    recipe_files_finish(f, n);
    return code;
}

/* ---- extend --------------------------------------------------------------------------------- */

static void edit_add(struct list *l, const char *p, size_t n)
{
    if (!n)
        return;
    ARRAY_GROW(l->item, l->n, l->cap);
    l->item[l->n++] = arena_strndup(&l->arena, p, n);
}

static int add_json(struct list *l, const char *path, const struct buf *b, struct err *e)
{
    struct json_doc *doc;
    int code = json_parse(path, b->data, b->len, &doc, e);
    if (code)
        return code;
    const struct json *j = json_root(doc);
    bool ok = j->kind == JSON_ARRAY;
    for (size_t i = 0; ok && i < j->length; i++) {
        const struct json *s = &j->child[i];
        ok = s->kind == JSON_STRING && s->length && !memchr(s->string, 0, s->length);
        if (ok)
            edit_add(l, s->string, s->length);
    }
    json_close(doc);
    return ok ? 0 : err_set(e, ERR_DATA, "%s: not an array of tokens", path);
}

/* One token per line, or a JSON array of them. */
static int add_input(struct list *l, const char *path, struct err *e)
{
    struct buf b;
    size_t k = strlen(path), line = 1;
    int code = file_read(path, LIST_MAX, &b, e);
    if (code)
        return code;
    if (k > 5 && !strcmp(path + k - 5, ".json")) {
        code = add_json(l, path, &b, e);
        buf_finish(&b);
        return code;
    }
    for (const char *p = b.data, *end = p + b.len, *next; p < end && !code; p = next, line++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        next = stop ? stop + 1 : end;
        size_t n = (size_t)((stop ? stop : end) - p);
        n -= n && p[n - 1] == '\r';
        if (utf8_good(p, n) != n || memchr(p, 0, n))
            code = err_set(e, ERR_DATA, "%s: line %zu is not UTF-8, or contains NUL", path, line);
        else
            edit_add(l, p, n);
    }
    buf_finish(&b);
    return code;
}

int cmd_extend(const struct cli *c, struct err *e)
{
    struct edit d;
    struct list l = {0};
    if (c->nfile != 1) {
        err_set(e, ERR_USAGE, WEFT_PREFIX "tok extend takes one tokenizer");
        return opts_hint_swallowed(c->opts, e);
    }
    if (!c->add && !c->add_special.n)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok extend needs --add or --add-special");
    for (size_t i = 0; i < c->add_special.n; i++)
        edit_add(&l, c->add_special.item[i], strlen(c->add_special.item[i]));
    size_t special = l.n;
    int code = c->add ? add_input(&l, c->add, e) : 0;
    if (!code) {
        code = open_edit(&d, c, e);
        d.added = &l;
        d.added_from = special;
        if (!code)
            code = recipe_extend(&d.r, d.t, l.item, l.n, special, &d.rows, e);
        if (!code)
            code = save(&d, e);
        close_edit(&d);
    }
    free(l.item);
    arena_finish(&l.arena);
    return code;
}

/* ---- merge ---------------------------------------------------------------------------------- */

int cmd_merge(const struct cli *c, struct err *e)
{
    struct edit d;
    struct tokenizer *other = NULL;
    struct recipe b = {0};
    if (c->nfile != 2)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok merge takes two tokenizers: A B");
    int code = open_edit(&d, c, e);
    struct tok_options o = d.o;
    o.path = c->file[1];
    if (!code)
        code = tok_open(&o, &other, e);
    if (!code)
        code = edit_name_files(&d, other, e);
    if (!code)
        code = recipe_read(&b, other, &o, e);
    if (!code)
        code = recipe_join(&d.r, d.t, &b, other, &d.rows, e);
    if (!code)
        code = save(&d, e);
    recipe_finish(&b);
    tok_close(other);
    close_edit(&d);
    return code;
}

/* ---- prune ---------------------------------------------------------------------------------- */

int cmd_prune(const struct cli *c, struct err *e)
{
    struct edit d;
    uint64_t *count = NULL;
    if (c->nfile != 1) {
        err_set(e, ERR_USAGE, WEFT_PREFIX "tok prune takes one tokenizer");
        return opts_hint_swallowed(c->opts, e);
    }
    if (!c->keep_used.n && !c->size)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok prune needs --keep-used or --size");
    int code = open_edit(&d, c, e);
    if (!code && c->keep_used.n)
        code = cmd_count(c, &c->keep_used, d.t, &count, e);
    if (!code)
        code = recipe_prune(&d.r, d.t, count, (size_t)c->size, &d.rows, e);
    d.corpus = c->size ? NULL : &c->keep_used; /* fewer pieces change the ids of the corpus */
    if (!code)
        code = save(&d, e);
    free(count);
    close_edit(&d);
    return code;
}
