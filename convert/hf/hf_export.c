/* SPDX-License-Identifier: Apache-2.0 */

/* The plan of an export: configuration, files, tensors, steps. */

#include "convert/hf/hf_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"

enum { CONFIG_MAX = 16 << 20 };

/* ---- the model ----------------------------------------------------------------------------- */

/* `code` when what is called `name` is of another model than the checkpoint, which is of `ours`. */
static int same_model(const struct ckpt *c, const struct spec *ours, const char *name,
                      const struct spec *theirs, int code, struct err *e)
{
    struct buf what = {0};
    bool differ = spec_differ(ours, theirs, &what);
    if (differ)
        err_set(e, code, "%s and %s must be of the same model, and differ: %s", ckpt_path(c), name,
                buf_str(&what));
    buf_finish(&what);
    return differ ? code : 0;
}

/* By the config.json in the checkpoint, else by the model itself. */
static int find_model(struct hf_export *x, struct buf *text, struct err *e)
{
    static const struct hf_ignore all = {.all = true};
    struct spec s;
    char *path = path_join(ckpt_path(x->ckpt), "config.json");
    int code =
        spec_from_manifest(ckpt_model(x->ckpt), ckpt_must_know(x->ckpt), ckpt_path(x->ckpt), &s, e);
    if (!code && file_exists(path)) {
        code = file_read_plain(path, CONFIG_MAX, text, e);
        if (!code)
            code = hf_config_parse(path, text->data, text->len, &all, &x->model, e);
        if (!code && same_model(x->ckpt, &s, path, &x->model.spec, ERR_INTEGRITY, e))
            code = err_hint(e, "one of the two was changed or replaced: copy both again");
    } else if (!code) {
        code = hf_model_of_spec(&s, ckpt_path(x->ckpt), &x->model, e);
    }
    free(path);
    return code;
}

static int write_mapped_config(struct hf_export *x, const struct hf_rows *rows,
                               const struct buf *text, struct err *e)
{
    struct buf edited = {0};
    bool drop;
    buf_add(&edited, text->data, text->len);
    int code = hf_rows_edit(rows, "config.json", &edited, &drop, e);
    if (!code)
        code = hf_config_again(ckpt_path(x->ckpt), edited.data, edited.len, &x->model, x->dtype,
                               &x->config, e);
    buf_finish(&edited);
    return code;
}

static int write_config(struct hf_export *x, const struct hf_export_options *o,
                        const struct buf *text, struct err *e)
{
    if (x->like)
        buf_add(&x->config, x->like->config.data, x->like->config.len);
    else if (text->len && !o->rows)
        return hf_config_again(ckpt_path(x->ckpt), text->data, text->len, &x->model, x->dtype,
                               &x->config, e);
    else if (text->len)
        return write_mapped_config(x, o->rows, text, e);
    else
        hf_config_new(&x->model, x->dtype, o->ids, &x->config);
    return 0;
}

/* ---- sources ------------------------------------------------------------------------------- */

/* A tensor of the checkpoint, which has the shape that the model needs. */
static int find_source(struct hf_export *x, size_t i, int64_t rows, struct err *e)
{
    const struct hf_global *g = &x->map.global[i];
    const struct ckpt_tensor *t = ckpt_find(x->ckpt, CKPT_PARAM, g->name);
    if (!t)
        return err_set(e, ERR_INTEGRITY, "%s: tensor '%s' is missing, which its model needs",
                       ckpt_path(x->ckpt), g->name);
    if (t->rank != g->rank || t->size[0] != rows || t->size[1] != g->size[1])
        return err_set(e, ERR_INTEGRITY,
                       "%s: tensor '%s' is [%lld, %lld], its model needs [%lld, %lld]",
                       ckpt_path(x->ckpt), g->name, (long long)t->size[0], (long long)t->size[1],
                       (long long)rows, (long long)g->size[1]);
    copy_from_ckpt(x->ckpt, t, &x->plain[i]);
    return 0;
}

/* `was`: ids of the checkpoint's model, before its rows are mapped. */
static int find_sources(struct hf_export *x, const struct hf_rows *rows, int64_t was, struct err *e)
{
    const struct hf_map *m = &x->map;
    size_t params = 0;
    int code = 0;
    x->source = mem_new(m->globals + 1, sizeof(*x->source));
    x->plain = mem_new(m->globals + 1, sizeof(*x->plain));
    for (size_t i = 0; !code && i < m->globals; i++) {
        bool through = rows && hf_rows_has(m->global[i].name);
        code = find_source(x, i, through ? was : m->global[i].size[0], e);
        x->source[i] = x->plain[i];
        if (!code && through)
            code = copy_from_rows(&rows->map, rows->path, &x->plain[i], &x->mapped[x->nmapped++],
                                  &x->source[i], e);
    }
    for (size_t i = 0; i < ckpt_tensors(x->ckpt); i++)
        params += !strcmp(ckpt_tensor_at(x->ckpt, i)->group, CKPT_PARAM);
    if (!code && params != m->globals)
        return err_set(e, ERR_INTEGRITY, "%s: it has %zu tensors, its model has %zu",
                       ckpt_path(x->ckpt), params, m->globals);
    return code;
}

/* ---- files --------------------------------------------------------------------------------- */

static struct hf_export_file *new_file(struct hf_export *x)
{
    x->file = mem_grow(x->file, x->files + 1, sizeof(*x->file));
    struct hf_export_file *f = &x->file[x->files++];
    *f = (struct hf_export_file){0};
    return f;
}

static void add_item(struct hf_export_file *f, struct st_plan p)
{
    if (f->n == f->cap)
        f->item = mem_grow(f->item, f->cap = f->cap ? 2 * f->cap : 64, sizeof(*f->item));
    f->item[f->n++] = p;
    f->bytes += st_plan_bytes(&p);
}

static void add_step(struct hf_export_file *f, struct copy_step s)
{
    if (f->nsteps == f->steps_cap)
        f->step = mem_grow(f->step, f->steps_cap = f->steps_cap ? 2 * f->steps_cap : 64,
                           sizeof(*f->step));
    f->step[f->nsteps++] = s;
}

/* The steps that fill item `target` of a file, tensor t of the map. */
static void add_steps(struct hf_export *x, struct hf_export_file *f, size_t target, size_t t,
                      size_t *link)
{
    const struct hf_map *m = &x->map;
    for (; *link < m->links && m->link[*link].tensor == t; (*link)++) {
        const struct hf_link *l = &m->link[*link];
        bool turn = l->transposed;
        add_step(f, (struct copy_step){
                        .target = target,
                        .to = {{l->from[0], l->from[1]}, {l->count[turn], l->count[!turn]}},
                        .from = &x->source[l->global],
                        .row = l->at[turn],
                        .column = l->at[!turn],
                        .transpose = turn,
                    });
    }
}

static enum dtype type_of(const struct hf_export *x, const struct hf_export_options *o, size_t link)
{
    return o->dtype >= 0 ? (enum dtype)o->dtype : x->source[x->map.link[link].global].dtype;
}

/* What transformers does: in order, a new file where the limit would be passed; a tensor above the
 * limit has a file of its own, before the one that is being filled. */
static void cut_files(struct hf_export *x, const struct hf_export_options *o)
{
    uint64_t limit = o->shard_size ? o->shard_size : HF_SHARD_SIZE;
    struct hf_export_file open = {0};
    size_t link = 0;
    for (size_t t = 0; t < x->map.tensors; t++) {
        const struct hf_tensor *h = &x->map.tensor[t];
        struct st_plan p = {.name = h->name, .rank = h->rank, .dtype = type_of(x, o, link)};
        memcpy(p.size, h->size, sizeof(h->size));
        if (st_plan_bytes(&p) > limit) {
            struct hf_export_file *own = new_file(x);
            add_item(own, p);
            add_steps(x, own, 0, t, &link);
            continue;
        }
        if (open.n && open.bytes + st_plan_bytes(&p) > limit) {
            *new_file(x) = open;
            open = (struct hf_export_file){0};
        }
        add_item(&open, p);
        add_steps(x, &open, open.n - 1, t, &link);
    }
    if (open.n)
        *new_file(x) = open;
    x->index = x->files > 1;
    for (size_t i = 0; i < x->files; i++)
        x->file[i].name =
            x->files == 1
                ? "model.safetensors"
                : arena_printf(&x->arena, "model-%05zu-of-%05zu.safetensors", i + 1, x->files);
}

/* ---- like a folder ------------------------------------------------------------------------- */

/* The metadata of a file's header, in its order. */
static void read_metadata(const struct hf_shard *s, struct hf_export_file *f)
{
    const struct json *m = s->st.metadata;
    f->pair = mem_new(m ? m->length + 1 : 1, sizeof(*f->pair));
    for (size_t i = 0; m && i < m->length; i++)
        f->pair[f->npairs++] = (struct st_pair){m->child[i].key, m->child[i].string};
}

static struct st_plan plan_like(const struct st_entry *t)
{
    struct st_plan p = {.name = t->name, .rank = t->rank, .dtype = (enum dtype)t->dtype};
    memcpy(p.size, t->size, sizeof(p.size));
    return p;
}

static int files_like(struct hf_export *x, struct err *e)
{
    const struct hf_folder *like = x->like;
    size_t link = 0;
    int code = 0;
    for (size_t i = 0; i < like->shards; i++) {
        struct hf_export_file *f = new_file(x);
        f->name = like->shard[i].name;
        read_metadata(&like->shard[i], f);
    }
    for (size_t t = 0; t < x->map.tensors; t++) {
        struct hf_export_file *f = &x->file[like->found[t].shard];
        add_item(f, plan_like(like->found[t].entry));
        add_steps(x, f, f->n - 1, t, &link);
    }
    x->passed = mem_new(like->npassed + 1, sizeof(*x->passed));
    for (size_t i = 0; !code && i < like->npassed; i++) {
        const struct hf_found *at = &like->passed[i].at;
        struct hf_export_file *f = &x->file[at->shard];
        const struct hf_shard *s = &like->shard[at->shard];
        code = copy_from_safetensors(&s->st, at->entry, s->path, &x->passed[i], e);
        if (code)
            break;
        add_item(f, plan_like(at->entry));
        add_step(f, (struct copy_step){.target = f->n - 1,
                                       .to = {{0, 0}, {x->passed[i].size[0], x->passed[i].size[1]}},
                                       .from = &x->passed[i]});
    }
    x->index = like->sharded;
    return code;
}

static int open_like(struct hf_export *x, const struct hf_export_options *o, struct err *e)
{
    static const struct hf_ignore all = {.all = true};
    int code = hf_folder_open(o->like, &all, &x->like, e);
    if (!code && x->like->wrapped)
        code = err_set(e, ERR_USAGE,
                       "%s: its tensors have names of a wrapper, such as \"module.\", before or "
                       "in their own: an export has the model's",
                       o->like);
    if (!code && x->like->pytorch)
        code = err_set(e, ERR_USAGE, "%s: its weights are PyTorch files, an export is safetensors",
                       o->like);
    if (!code && same_model(x->ckpt, &x->model.spec, o->like, &x->like->model.spec, ERR_DATA, e))
        code = err_hint(e, "--like takes a folder of the model that the checkpoint holds");
    if (!code && x->like->model.family != x->model.family && x->config.len)
        code = err_set(e, ERR_DATA, "%s is a %s model, %s a %s model", o->like,
                       hf_family_name(x->like->model.family), ckpt_path(x->ckpt),
                       hf_family_name(x->model.family));
    return code;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Targets for the check, as the copy engine has them: rows and columns. */
static int check_file(struct hf_export_file *f, struct err *e)
{
    f->target = mem_new(f->n + 1, sizeof(*f->target));
    for (size_t i = 0; i < f->n; i++) {
        const struct st_plan *p = &f->item[i];
        struct copy_target *t = &f->target[i];
        *t = (struct copy_target){.name = p->name, .size = {1, 1}, .dtype = p->dtype};
        if (p->rank == 1)
            t->size[0] = p->size[0];
        for (int d = 0; p->rank > 1 && d < p->rank; d++)
            t->size[d == p->rank - 1] *= p->size[d];
    }
    struct copy c = {
        .sink = {.target = f->target, .n = f->n}, .step = f->step, .nsteps = f->nsteps};
    return copy_check(&c, e);
}

static const struct st_pair torch_format = {"format", "pt"};

int hf_export_plan(struct hf_export *ret, struct ckpt *c, const struct hf_export_options *o,
                   struct err *e)
{
    struct buf text = {0};
    struct hf_export *x = ret;
    *x = (struct hf_export){.ckpt = c};
    int code = find_model(x, &text, e);
    if (!code && o->like)
        code = open_like(x, o, e);
    if (!code) {
        if (x->like)
            x->model = x->like->model;
        enum hf_experts experts = HF_EXPERTS_SINGLE;
        for (size_t i = 0; x->like && i < x->like->map.tensors; i++)
            hf_name_experts(x->like->map.tensor[i].name, &experts);
        int64_t was = x->model.spec.vocab;
        if (o->rows)
            hf_rows_spec(o->rows, &x->model.spec);
        hf_map_build(&x->map, &x->model, experts);
        code = find_sources(x, o->rows, was, e);
    }
    if (!code && x->like)
        code = files_like(x, e);
    else if (!code)
        cut_files(x, o);
    for (size_t i = 0; !code && i < x->files; i++) {
        struct hf_export_file *f = &x->file[i];
        if (!x->like) {
            f->pair = mem_new(1, sizeof(*f->pair));
            f->pair[f->npairs++] = torch_format;
        }
        x->bytes += f->bytes;
        code = check_file(f, e);
    }
    if (!code) {
        x->dtype = type_of(x, o, 0);
        code = write_config(x, o, &text, e);
    }
    hf_generation_new(o->ids, &x->generation);
    buf_finish(&text);
    if (code)
        hf_export_finish(x);
    return code;
}

void hf_export_finish(struct hf_export *x)
{
    for (size_t i = 0; i < x->files; i++) {
        free(x->file[i].item);
        free(x->file[i].pair);
        free(x->file[i].target);
        free(x->file[i].step);
    }
    free(x->file);
    free(x->source);
    free(x->plain);
    for (size_t i = 0; i < x->nmapped; i++)
        free(x->mapped[i].mean);
    free(x->passed);
    hf_map_finish(&x->map);
    hf_folder_close(x->like);
    buf_finish(&x->config);
    buf_finish(&x->generation);
    arena_finish(&x->arena);
    *x = (struct hf_export){0};
}
