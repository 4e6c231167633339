/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_import.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/copy/copy_ckpt.h"
#include "convert/hf/hf_documents.h"

const char *const hf_further_files[] = {"generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tiktoken.model",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.json",
                                        "chat_template.jinja",
                                        NULL};

static int put_file(const struct hf_folder *f, const char *name, const struct hf_rows *rows,
                    struct ckpt_writer *w, struct err *e)
{
    char *path = path_join(f->path, name);
    int code = !file_exists(path) ? 0
               : rows             ? hf_rows_put(rows, path, name, w, e)
                                  : ckpt_put_file(w, name, path, e);
    free(path);
    return code;
}

static int put_config(const struct hf_folder *f, const struct hf_rows *rows, struct ckpt_writer *w,
                      struct err *e)
{
    struct buf text = {0};
    bool drop;
    buf_add(&text, f->config.data, f->config.len);
    int code = rows ? hf_rows_edit(rows, "config.json", &text, &drop, e) : 0;
    if (!code)
        code = ckpt_put_bytes(w, "config.json", text.data, text.len, e);
    buf_finish(&text);
    return code;
}

static int put_document(void *arg, const char *path, const char *name, struct err *e)
{
    return ckpt_put_file(arg, name, path, e);
}

static int put_files(const struct hf_folder *f, const struct hf_rows *rows, struct ckpt_writer *w,
                     struct err *e)
{
    int code = put_config(f, rows, w, e);
    for (int i = 0; !code && hf_further_files[i]; i++)
        code = put_file(f, hf_further_files[i], rows, w, e);
    if (!code)
        code = hf_each_document(f->path, put_document, w, e);
    return code || !rows ? code : hf_rows_put_tokenizer(rows, w, e);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static int read_global(const struct copy_source *s, struct box_mem to, struct err *e)
{
    const struct hf_folder *f = s->file;
    const struct hf_global *g = &f->map.global[s->index];
    return hf_folder_read(f, g->name, g->rank, g->size, to, e);
}

/* The global tensor `index` of the folder, and what the map makes of it: `of` and `source`. */
struct through_map {
    struct copy_source of, source;
    struct copy_mapped mapped;
};

static int see_through_map(const struct hf_folder *f, size_t index, enum dtype type,
                           const struct hf_rows *rows, struct through_map *ret, struct err *e)
{
    const struct hf_global *g = &f->map.global[index];
    ret->of = (struct copy_source){.name = g->name,
                                   .size = {g->size[0], g->size[1]},
                                   .dtype = type,
                                   .read = read_global,
                                   .file = f,
                                   .index = index};
    return copy_from_rows(&rows->map, rows->path, &ret->of, &ret->mapped, &ret->source, e);
}

enum { WITH_ROWS = 2 }; /* embedding and head */

struct importing {
    const struct hf_folder *f;
    struct hf_import_options o;
    struct through_map through[WITH_ROWS];
    size_t nthrough;
};

/* A global tensor as an entry of the shard; with rows of the vocabulary its steps become one. */
static int plan_tensor(struct importing *x, size_t i, enum dtype type, struct ckpt_shard *s,
                       struct hf_steps *steps, struct err *e)
{
    const struct hf_global *g = &x->f->map.global[i];
    int64_t size[2] = {g->size[0], g->size[1]};
    int code = 0;
    if (x->o.rows && hf_rows_has(g->name)) {
        struct through_map *t = &x->through[x->nthrough++];
        size_t n = 0;
        code = see_through_map(x->f, i, type, x->o.rows, t, e);
        size[0] = x->o.rows->map.is;
        for (size_t k = 0; k < steps->n; k++)
            if (steps->step[k].target != i)
                steps->step[n++] = steps->step[k];
        BUG_ON(n == steps->n, "nothing makes '%s'", g->name);
        steps->step[n++] =
            (struct copy_step){.target = i, .to = {{0, 0}, {size[0], size[1]}}, .from = &t->source};
        steps->n = n;
    }
    ckpt_shard_add(s, CKPT_PARAM, g->name, g->rank, size, type, box_whole(g->rank, size));
    return code;
}

static int write_tensors(struct importing *x, struct ckpt_writer *w, struct err *e)
{
    struct ckpt_shard_options so = {.max_file_size = x->o.file_size};
    struct hf_steps steps;
    struct ckpt_shard *s;
    int code = hf_folder_steps(x->f, &steps, e);
    if (code)
        return code;
    enum dtype *type = hf_folder_dtypes(x->f);
    ckpt_shard_create(ckpt_writer_folder(w), &so, &s);
    for (size_t i = 0; !code && i < x->f->map.globals; i++)
        code = plan_tensor(x, i, type[i], s, &steps, e);
    if (!code)
        code = copy_ckpt_shard(w, s, steps.step, steps.n, &x->o.copy, e);
    ckpt_shard_destroy(s);
    while (x->nthrough)
        free(x->through[--x->nthrough].mapped.mean);
    free(type);
    hf_steps_finish(&steps);
    return code;
}

static int write_all(void *arg, struct ckpt_writer *w, struct copy_journal *journal, struct err *e)
{
    struct importing *x = arg;
    const struct hf_import_options *o = &x->o;
    struct buf model = {0};
    struct spec spec = x->f->model.spec;
    if (o->rows)
        hf_rows_spec(o->rows, &spec);
    spec_to_json(&spec, &model);
    const struct ckpt_meta meta = {.model = buf_str(&model),
                                   .tokenizer_type = o->tokenizer_type,
                                   .tokenizer_digest = o->tokenizer_digest,
                                   .tokenizer_meaning = o->tokenizer_meaning,
                                   .vocab_size = o->tokenizer_vocab,
                                   .eod = o->eod};
    x->o.copy.journal = journal;
    int code = put_files(x->f, o->rows, w, e);
    if (!code)
        code = write_tensors(x, w, e);
    if (!code)
        code = hf_folder_check(x->f, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    buf_finish(&model);
    return code;
}

int hf_import(const struct hf_folder *f, const char *dst, const struct hf_import_options *o,
              struct err *e)
{
    struct importing x = {.f = f, .o = *o};
    if (o->rows && (f->meta || f->adapter)) {
        err_set(e, ERR_USAGE, "%s: its rows cannot follow %s while %s", f->path, o->rows->path,
                f->meta ? "it is read from Meta's format" : "an adapter is merged");
        return err_hint(e, "import it first, then reshard with the map");
    }
    const struct copy_ckpt c = {.dir = dst, .identity = o->identity, .write = write_all, .arg = &x};
    return copy_ckpt_write(&c, e);
}
