/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/other.h"
#include "convert/hf/hf_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"
#include "convert/hf/hf_adapter.h"
#include "convert/hf/hf_folder_internal.h"
#include "convert/hf/hf_index.h"
#include "convert/hf/hf_unwrap.h"
#include "convert/torch/pt.h"
#include "train/tensor/box_ops.h"

enum { CONFIG_MAX = 16 << 20, INDEX_MAX = 256 << 20 };

/* What weights are called, in the order in which they are looked for. */
static const struct weight_files {
    const char *single, *index; /* index NULL: there is none */
    const char *stem, *end;     /* what names of shards begin and end with */
    hf_open_fn *open;
} weights[] = {
    {"model.safetensors", "model.safetensors.index.json", "model", ".safetensors", st_open},
    {"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model", ".bin", pt_open},
    {"pytorch_model.pt", NULL, "pytorch_model", ".pt", pt_open},
    {"model.pt", NULL, "model", ".pt", pt_open},
};
enum { SAFETENSORS, WEIGHTS = sizeof(weights) / sizeof(weights[0]) };

static bool folder_has(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    bool there = file_exists(path);
    free(path);
    return there;
}

/* Which of them the folder has, WEIGHTS: none; *ret_index: with an index. */
static int find_weights(const char *path, bool *ret_index)
{
    for (int i = 0; i < WEIGHTS; i++) {
        bool single = folder_has(path, weights[i].single);
        *ret_index = !single && weights[i].index && folder_has(path, weights[i].index);
        if (single || *ret_index)
            return i;
    }
    return WEIGHTS;
}

bool hf_folder_is(const char *path)
{
    bool index;
    return find_weights(path, &index) != WEIGHTS && folder_has(path, "config.json");
}

/* ---- files --------------------------------------------------------------------------------- */

int hf_shard_open(struct hf_folder *f, const char *name, hf_open_fn *open, struct err *e)
{
    char *path = path_join(f->path, name);
    struct st_file st;
    int code = open(&st, path, e);
    if (code) {
        free(path);
        return code;
    }
    f->shard = mem_grow(f->shard, f->shards + 1, sizeof(*f->shard));
    struct hf_shard *s = &f->shard[f->shards++];
    *s = (struct hf_shard){.path = path, .name = strrchr(path, '/') + 1, .st = st};
    return 0;
}

/* Every tensor of a shard is in the index under that shard, and the other way round. */
static int check_shard(const struct hf_shard *s, const struct hf_index *x, const char *index_name,
                       struct err *e)
{
    size_t named = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (strcmp(x->place[i].file, s->name))
            continue;
        named++;
        if (!st_find(&s->st, x->place[i].tensor))
            return err_set(e, ERR_INTEGRITY,
                           "%s: tensor '%.200s' is missing, which %s says is there", s->path,
                           x->place[i].tensor, index_name);
    }
    for (size_t i = 0; named != s->st.n && i < s->st.n; i++) {
        const char *file = hf_index_find(x, s->st.entry[i].name);
        if (!file || strcmp(file, s->name))
            return err_set(e, ERR_INTEGRITY,
                           "%s: tensor '%.200s' is not in %s under this file: a file of another "
                           "save",
                           s->path, s->st.entry[i].name, index_name);
    }
    return 0;
}

/* Weights in the folder that no index names would be taken by nobody, or by the next reader. */
static int find_stale(const struct hf_folder *f, const struct weight_files *w, struct err *e)
{
    size_t tail = strlen(w->end), stem = strlen(w->stem);
    DIR *d = opendir(f->path);
    int code = 0;
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", f->path);
    for (struct dirent *en; !code && (en = readdir(d));) {
        size_t n = strlen(en->d_name);
        bool known = n < stem + tail || strcmp(en->d_name + n - tail, w->end) ||
                     strncmp(en->d_name, w->stem, stem);
        for (size_t i = 0; !known && i < f->shards; i++)
            known = !strcmp(en->d_name, f->shard[i].name);
        if (!known) {
            err_set(e, ERR_INTEGRITY, "%s/%s: weights that %s does not name, of another save",
                    f->path, en->d_name, f->sharded ? w->index : w->single);
            code = err_hint(e, "remove the files that do not belong to the model");
        }
    }
    closedir(d);
    return code;
}

static int open_sharded(struct hf_folder *f, const struct weight_files *w, struct err *e)
{
    char *path = path_join(f->path, w->index);
    struct buf text = {0};
    struct hf_index x = {0};
    int code = file_read_plain(path, INDEX_MAX, &text, e);
    if (!code)
        code = hf_index_parse(&x, path, text.data, text.len, e);
    for (size_t i = 0; !code && i < x.files; i++) {
        if (!folder_has(f->path, x.file[i])) {
            code = err_set(e, ERR_INTEGRITY, "%s/%s: missing, one of the %zu files that %s names",
                           f->path, x.file[i], x.files, w->index);
            break;
        }
        code = hf_shard_open(f, x.file[i], w->open, e);
        if (!code)
            code = check_shard(&f->shard[f->shards - 1], &x, w->index, e);
    }
    hf_index_finish(&x);
    buf_finish(&text);
    free(path);
    return code;
}

static int open_files(struct hf_folder *f, struct err *e)
{
    int kind = find_weights(f->path, &f->sharded);
    if (kind == WEIGHTS)
        return err_set(e, ERR_IO, "%s: no weights: neither %s nor %s nor %s", f->path,
                       weights[0].single, weights[0].index, weights[1].single);
    const struct weight_files *w = &weights[kind];
    f->pytorch = kind != SAFETENSORS;
    int code = f->sharded ? open_sharded(f, w, e) : hf_shard_open(f, w->single, w->open, e);
    return code || !w->index ? code : find_stale(f, w, e);
}

/* ---- tensors ------------------------------------------------------------------------------- */

static bool find_tensor(const struct hf_folder *f, const char *name, struct hf_found *ret)
{
    for (size_t i = 0; i < f->shards; i++) {
        ret->shard = i;
        ret->entry = st_find(&f->shard[i].st, name);
        if (ret->entry)
            return true;
    }
    return false;
}

/* By its name, by the name that a bare model has for it, or, the head of a family that has its own
 * name for it, by the one that transformers 5 has for all in memory. */
static bool find_either(const struct hf_folder *f, const char *name, struct hf_found *ret)
{
    const char *prefix = hf_name_prefix(f->model.family);
    size_t n = strlen(prefix);
    return find_tensor(f, name, ret) ||
           (!strncmp(name, prefix, n) && find_tensor(f, name + n, ret)) ||
           (!strcmp(name, hf_name_head(f->model.family)) && find_tensor(f, "lm_head.weight", ret));
}

int hf_check_type(const char *file, const struct st_entry *t, struct err *e)
{
    if (dtype_is_float(t->dtype))
        return 0;
    return err_set(e, ERR_DATA, "%s: tensor '%.200s' is of type %s, expected %s", file, t->name,
                   t->dtype_name, dtype_floats);
}

void hf_add_shape(struct buf *b, int rank, const int64_t *size)
{
    for (int d = 0; d < rank; d++)
        buf_addf(b, "%s%lld", d ? ", " : "[", (long long)size[d]);
    buf_adds(b, rank ? "]" : "[]");
}

static int check_tensor(const struct hf_folder *f, const struct hf_tensor *want,
                        const struct hf_found *at, struct err *e)
{
    const struct st_entry *t = at->entry;
    bool same = t->rank == want->rank;
    for (int d = 0; same && d < t->rank; d++)
        same = t->size[d] == want->size[d];
    if (!same) {
        struct buf is = {0}, should = {0};
        hf_add_shape(&is, t->rank, t->size);
        hf_add_shape(&should, want->rank, want->size);
        err_set(e, ERR_DATA, "%s: tensor '%.200s' has the shape %s, by config.json it is %s",
                f->shard[at->shard].path, t->name, buf_str(&is), buf_str(&should));
        buf_finish(&is);
        buf_finish(&should);
        return ERR_DATA;
    }
    return hf_check_type(f->shard[at->shard].path, t, e);
}

/* Finds the tensors of the model. */
static int find_all(struct hf_folder *f, struct err *e)
{
    int code = 0;
    f->found = mem_new(f->map.tensors + 1, sizeof(*f->found));
    for (size_t i = 0; !code && i < f->map.tensors; i++) {
        const struct hf_tensor *t = &f->map.tensor[i];
        if (!find_either(f, t->name, &f->found[i]))
            code =
                err_set(e, ERR_INTEGRITY, "%s: tensor '%.200s' is missing, which config.json needs",
                        f->sharded || !f->shards ? f->path : f->shard[0].path, t->name);
        else
            code = check_tensor(f, t, &f->found[i], e);
        if (!code)
            f->bytes += f->found[i].entry->end - f->found[i].entry->begin;
    }
    return code;
}

void hf_pass(struct hf_folder *f, struct hf_found at, const char *why)
{
    f->passed = mem_grow(f->passed, f->npassed + 1, sizeof(*f->passed));
    f->passed[f->npassed++] = (struct hf_passed){at, why};
}

int hf_same_entries(const struct st_file *s, const struct st_entry *a, const struct st_file *t,
                    const struct st_entry *b, bool *ret, struct err *e)
{
    enum { CHUNK = 1 << 20 };
    int64_t x[2], y[2];
    *ret =
        a->dtype == b->dtype && st_matrix(a, x) && st_matrix(b, y) && x[0] == y[0] && x[1] == y[1];
    if (!*ret || a->dtype < 0)
        return 0;
    size_t row = (size_t)x[1] * dtype_size((enum dtype)a->dtype);
    int64_t most = row < CHUNK ? (int64_t)(CHUNK / (row + !row)) : 1;
    struct box_mem m = {.dtype = (enum dtype)a->dtype, .stride = x[1]};
    char *p = mem_new((size_t)most * row + 1, 2);
    int code = 0;
    for (int64_t at = 0; !code && *ret && at < x[0]; at += most) {
        m.box = (struct box){{at, 0}, {x[0] - at < most ? x[0] - at : most, x[1]}};
        size_t n = (size_t)m.box.count[0] * row;
        m.data = p;
        code = st_read(s, a, m, e);
        m.data = p + n;
        if (!code)
            code = st_read(t, b, m, e);
        *ret = !code && !memcmp(p, p + n, n);
    }
    free(p);
    return code;
}

int hf_same_bytes(const struct hf_folder *f, struct hf_found a, struct hf_found b, bool *ret,
                  struct err *e)
{
    return hf_same_entries(&f->shard[a.shard].st, a.entry, &f->shard[b.shard].st, b.entry, ret, e);
}

/* A head beside a tied embedding must be the same bytes. */
static int check_tied(struct hf_folder *f, struct hf_found head, struct err *e)
{
    struct hf_found embed = {0};
    if (!find_either(f, hf_name_embedding(f->model.family), &embed))
        return 0; /* find_all has said so */
    bool same;
    int code = hf_same_bytes(f, head, embed, &same, e);
    if (code)
        return code;
    if (!same) {
        err_set(e, ERR_DATA,
                "%s: tensor '%s' differs from '%s', although config.json says that they are tied",
                f->shard[head.shard].path, head.entry->name, embed.entry->name);
        return err_hint(e, "where the head counts, set \"tie_word_embeddings\" to false");
    }
    hf_pass(f, head, "equal to the embedding, to which it is tied");
    return 0;
}

static int order_found(const void *a, const void *b)
{
    const struct st_entry *x = ((const struct hf_found *)a)->entry;
    const struct st_entry *y = ((const struct hf_found *)b)->entry;
    return x < y ? -1 : x > y;
}

/* What the files hold beside the model. */
static int judge_rest(struct hf_folder *f, struct err *e)
{
    enum hf_family family = f->model.family;
    struct hf_found *known = mem_new(f->map.tensors + 1, sizeof(*known));
    int code = 0;
    memcpy(known, f->found, f->map.tensors * sizeof(*known));
    qsort(known, f->map.tensors, sizeof(*known), order_found);
    for (size_t s = 0; s < f->shards; s++)
        for (size_t i = 0; !code && i < f->shard[s].st.n; i++) {
            struct hf_found at = {s, &f->shard[s].st.entry[i]};
            if (f->shard[s].outside && f->shard[s].outside[i])
                continue;
            if (bsearch(&at, known, f->map.tensors, sizeof(*known), order_found))
                continue;
            if (f->model.spec.tied && !strcmp(at.entry->name, hf_name_head(family)))
                code = check_tied(f, at, e);
            else if (st_find(&f->shard[s].st, at.entry->name) != at.entry)
                code = err_set(e, ERR_DATA, "%s: tensor '%.200s' comes twice, in two spellings",
                               f->shard[s].path, at.entry->name);
            else if (hf_name_ignored(family, at.entry->name))
                hf_pass(f, at, "a buffer that the model makes itself");
            else
                code = err_set(e, ERR_DATA, "%s: tensor '%.200s' is not one of a %s model",
                               f->shard[s].path, at.entry->name, hf_family_name(family));
        }
    free(known);
    return code;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int read_config(struct hf_folder *f, const struct hf_ignore *ignore, struct err *e)
{
    static const char lfs[] = "version https://git-lfs";
    char *path = path_join(f->path, "config.json");
    int code = file_read_plain(path, CONFIG_MAX, &f->config, e);
    if (!code && !strncmp(buf_str(&f->config), lfs, sizeof(lfs) - 1)) {
        err_set(e, ERR_DATA, "%s: this is a pointer of Git LFS, not the file itself", path);
        code = err_hint(e, "git lfs pull fetches it");
    }
    if (!code)
        code = hf_config_parse(path, f->config.data, f->config.len, ignore, &f->model, e);
    free(path);
    return code;
}

/* The tensors of config.json's model in the files. */
static int find_model(struct hf_folder *f, const struct hf_ignore *ignore, struct err *e)
{
    enum hf_experts experts = HF_EXPERTS_SINGLE;
    int code = read_config(f, ignore, e);
    if (!code)
        code = open_files(f, e);
    if (!code)
        hf_unwrap(f);
    for (size_t s = 0; !code && s < f->shards; s++)
        for (size_t i = 0; i < f->shard[s].st.n; i++)
            hf_name_experts(f->shard[s].st.entry[i].name, &experts);
    if (!code) {
        hf_map_build(&f->map, &f->model, experts);
        code = find_all(f, e);
    }
    return code ? code : judge_rest(f, e);
}

int hf_folder_open(const char *path, const struct hf_ignore *ignore, struct hf_folder **ret,
                   struct err *e)
{
    struct hf_folder *f = mem_new(1, sizeof(*f));
    f->path = mem_strdup(path);
    f->meta = !folder_has(path, "config.json") && hf_meta_is(path);
    int code = f->meta || hf_folder_is(path) ? 0 : ckpt_other(path, e);
    if (!code)
        code = f->meta ? hf_meta_fill(f, ignore, e) : find_model(f, ignore, e);
    if (code)
        hf_folder_close(f);
    else
        *ret = f;
    return code;
}

void hf_folder_close(struct hf_folder *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->shards; i++) {
        st_close(&f->shard[i].st);
        free(f->shard[i].path);
        free(f->shard[i].outside);
    }
    arena_finish(&f->names);
    free(f->shard);
    free(f->found);
    free(f->passed);
    hf_adapter_close(f->adapter);
    hf_map_finish(&f->map);
    buf_finish(&f->config);
    free(f->path);
    free(f);
}

int hf_folder_check(const struct hf_folder *f, struct err *e)
{
    int code = f->adapter ? st_check(&f->adapter->st, e) : 0;
    for (size_t i = 0; !code && i < f->shards; i++)
        code = st_check(&f->shard[i].st, e);
    return code;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* One step for each link: a box of a global tensor from a tensor of the folder. */
static int steps_of_links(const struct hf_folder *f, struct hf_steps *ret, struct err *e)
{
    const struct hf_map *m = &f->map;
    int code = 0;
    ret->source = mem_new(m->tensors + 1, sizeof(*ret->source));
    for (size_t i = 0; !code && i < m->tensors; i++) {
        const struct hf_shard *in = &f->shard[f->found[i].shard];
        code = copy_from_safetensors(&in->st, f->found[i].entry, in->path, &ret->source[i], e);
    }
    ret->step = mem_new(m->links + 1, sizeof(*ret->step));
    ret->n = m->links;
    for (size_t i = 0; i < m->links; i++) {
        const struct hf_link *l = &m->link[i];
        ret->step[i] = (struct copy_step){
            .target = l->global,
            .to = {{l->at[0], l->at[1]}, {l->count[0], l->count[1]}},
            .from = &ret->source[l->tensor],
            .row = l->from[l->transposed ? 1 : 0],
            .column = l->from[l->transposed ? 0 : 1],
            .transpose = l->transposed,
        };
    }
    return code;
}

int hf_folder_steps(const struct hf_folder *f, struct hf_steps *ret, struct err *e)
{
    *ret = (struct hf_steps){0};
    int code = f->meta ? hf_meta_steps(f, ret, e) : steps_of_links(f, ret, e);
    if (code)
        hf_steps_finish(ret);
    else if (f->adapter)
        hf_adapter_apply(f, ret);
    return code;
}

void hf_steps_finish(struct hf_steps *s)
{
    free(s->source);
    free(s->step);
    free(s->order[0]);
    free(s->order[1]);
    *s = (struct hf_steps){0};
}

enum dtype *hf_folder_dtypes(const struct hf_folder *f)
{
    enum dtype *type = mem_new(f->map.globals + 1, sizeof(*type));
    for (size_t i = 0; i < f->map.links; i++)
        type[f->map.link[i].global] = (enum dtype)f->found[f->map.link[i].tensor].entry->dtype;
    return type;
}

/* What of `to` the link holds, through memory in the file's own order and type. */
static int read_link(const struct hf_folder *f, const struct hf_link *l, struct box_mem to,
                     struct err *e)
{
    const struct hf_found *at = &f->found[l->tensor];
    struct box whole = {{l->at[0], l->at[1]}, {l->count[0], l->count[1]}}, part;
    if (!box_intersect(whole, to.box, &part))
        return 0;
    int64_t r = part.begin[0] - l->at[0], c = part.begin[1] - l->at[1];
    struct box from = {{l->from[0] + r, l->from[1] + c}, {part.count[0], part.count[1]}};
    if (l->transposed)
        from = (struct box){{l->from[0] + c, l->from[1] + r}, {part.count[1], part.count[0]}};
    struct box_mem m = {.dtype = (enum dtype)at->entry->dtype, .box = from};
    m.stride = from.count[1];
    int code =
        mem_try((size_t)box_count(from), dtype_size(m.dtype), "a tensor of the model", &m.data, e);
    if (!code)
        code = st_read(&f->shard[at->shard].st, at->entry, m, e);
    if (!code) {
        m.box = part; /* the same elements by the places that the global tensor has for them */
        if (l->transposed)
            m.box = (struct box){{part.begin[1], part.begin[0]}, {part.count[1], part.count[0]}};
        if (l->transposed)
            box_copy_transposed(to, m);
        else
            box_copy(to, m);
    }
    free(m.data);
    return code;
}

int hf_folder_read(const struct hf_folder *f, const char *name, int rank, const int64_t *size,
                   struct box_mem to, struct err *e)
{
    size_t g = 0;
    if (f->meta) {
        err_set(e, ERR_USAGE, "%s: a model in Meta's format", f->path);
        return err_hint(e, "convert import makes a checkpoint of it");
    }
    while (g < f->map.globals && strcmp(f->map.global[g].name, name))
        g++;
    if (g == f->map.globals)
        return err_set(e, ERR_USAGE, "%s has no tensor for '%s'", f->path, name);
    const struct hf_global *t = &f->map.global[g];
    if (t->rank != rank || t->size[0] != size[0] || t->size[1] != (rank == 2 ? size[1] : 1))
        return err_set(e, ERR_USAGE, "%s: '%s' has another shape than is asked for", f->path, name);
    int code = 0;
    for (size_t i = 0; !code && i < f->map.links; i++)
        if (f->map.link[i].global == g)
            code = read_link(f, &f->map.link[i], to, e);
    return code;
}

/* ---- which model it is ------------------------------------------------------------------- */

/* Bytes in the middle of a tensor: training changes all of them. */
static int digest_tensor(const struct hf_folder *f, const struct hf_found *at, struct sha *h,
                         struct err *e)
{
    enum { SOME = 1024 };
    const struct st_entry *t = at->entry;
    const struct st_file *st = &f->shard[at->shard].st;
    char some[SOME];
    uint64_t all = t->end - t->begin;
    size_t n = all < SOME ? (size_t)all : SOME;
    int code = st_raw(st, st->data_at + t->begin + (all - n) / 2, some, n, e);
    sha_add(h, t->name, strlen(t->name) + 1);
    sha_add(h, t->dtype_name, strlen(t->dtype_name) + 1);
    sha_add(h, t->size, (size_t)t->rank * sizeof(*t->size));
    if (!code)
        sha_add(h, some, n);
    return code;
}

int hf_folder_digest(const struct hf_folder *f, char ret[SHA_TEXT], struct err *e)
{
    struct sha *h = sha_create();
    int code = 0;
    sha_add(h, f->config.data, f->config.len);
    for (size_t i = 0; !code && i < f->map.tensors; i++)
        code = f->found[i].entry ? digest_tensor(f, &f->found[i], h, e) : 0;
    sha_text(h, ret);
    sha_destroy(h);
    return code;
}
