/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_adapter.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"
#include "convert/hf/hf_folder_internal.h"
#include "convert/hf/hf_tied.h"
#include "convert/torch/pt.h"
#include "train/tensor/box_ops.h"

enum { ADAPTER_CONFIG_MAX = 16 << 20 };

/* ---- files ---------------------------------------------------------------------------------- */

static int read_files(struct hf_adapter *a, const char *dir, const struct hf_ignore *ignore,
                      struct err *e)
{
    struct buf text = {0};
    char *tensors = path_join(dir, "adapter_model.safetensors");
    char *bin = path_join(dir, "adapter_model.bin");
    bool safe = file_exists(tensors);
    a->config_path = path_join(dir, "adapter_config.json");
    int code = path_refuse_address(dir, e);
    if (!code && !file_is_dir(dir))
        code = err_set(e, ERR_IO, "%s: there is no such folder", dir);
    if (!code && !file_exists(a->config_path))
        code = err_set(e, ERR_IO, "%s: no adapter: it has no adapter_config.json", dir);
    if (!code)
        code = file_read_plain(a->config_path, ADAPTER_CONFIG_MAX, &text, e);
    if (!code)
        code = hf_adapter_parse(&a->config, a->config_path, buf_str(&text), text.len, ignore, e);
    if (!code && !safe && !file_exists(bin))
        code = err_set(e, ERR_INTEGRITY, "%s: missing, the adapter's weights", tensors);
    a->path = mem_strdup(safe ? tensors : bin);
    if (!code)
        code = safe ? st_open(&a->st, tensors, e) : pt_open(&a->st, bin, e);
    buf_finish(&text);
    free(bin);
    free(tensors);
    return code;
}

/* ---- which tensor belongs where ------------------------------------------------------------- */

/* The tensor of the model with this name, by its whole or its bare spelling; map.tensors: none. */
static size_t find_of_model(const struct hf_folder *f, const char *name, size_t n)
{
    const char *prefix = hf_name_prefix(f->model.family);
    size_t skip = strlen(prefix), i = 0;
    for (; i < f->map.tensors; i++) {
        const char *t = f->map.tensor[i].name;
        bool bare = !strncmp(t, prefix, skip) && !strncmp(t + skip, name, n) && !t[skip + n];
        if (bare || (!strncmp(t, name, n) && !t[n]))
            break;
    }
    return i;
}

/* Whether `name` ends with `end`; *n is then the length before it. */
static bool strip(const char *name, size_t *n, const char *end)
{
    size_t k = strlen(end);
    if (*n < k || memcmp(name + *n - k, end, k) != 0)
        return false;
    *n -= k;
    return true;
}

/* Leaves ".base_layer" and ".modules_to_save" out of a name. */
static char *plain_name(const char *name)
{
    static const char *const inner[] = {".base_layer", ".modules_to_save"};
    char *s = mem_strdup(name);
    for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++) {
        char *at = strstr(s, inner[i]);
        size_t n = strlen(inner[i]);
        if (at && (at[n] == '.' || !at[n]))
            memmove(at, at + n, strlen(at + n) + 1);
    }
    return s;
}

static int place_entry(const struct hf_folder *f, struct hf_adapter *a, const struct st_entry *t,
                       struct err *e)
{
    static const char begin[] = "base_model.model.", idle[] = ".original_module.";
    if (strstr(t->name, idle))
        return 0; /* a trained copy takes its place */
    size_t skip = strncmp(t->name, begin, sizeof(begin) - 1) ? 0 : sizeof(begin) - 1;
    char *name = plain_name(t->name + skip), *weight = NULL;
    size_t n = strlen(name), at = f->map.tensors;
    bool first = strip(name, &n, ".lora_A.weight"), second = strip(name, &n, ".lora_B.weight");
    bool e1 = strip(name, &n, ".lora_embedding_A"), e2 = strip(name, &n, ".lora_embedding_B");
    bool factor = first || second || e1 || e2;
    weight = factor ? mem_printf("%.*s.weight", (int)n, name) : mem_strdup(name);
    if (skip)
        at = find_of_model(f, weight, strlen(weight));
    free(weight);
    free(name);
    if (at == f->map.tensors)
        return err_set(e, ERR_DATA, "%s: tensor '%.200s' belongs to no tensor of %s", a->path,
                       t->name, f->path);
    if (hf_check_type(a->path, t, e))
        return ERR_DATA;
    struct hf_adapted *to = &a->of[at];
    const struct st_entry **slot = first || e1 ? &to->a : second || e2 ? &to->b : &to->whole;
    bool same = false;
    int code = *slot ? hf_same_entries(&a->st, *slot, &a->st, t, &same, e) : 0;
    if (code || same)
        return code;
    if (*slot || (factor && (to->a || to->b) && to->embedding != (e1 || e2)))
        return err_set(e, ERR_DATA, "%s: tensor '%.200s' comes twice, in two spellings", a->path,
                       t->name);
    *slot = t;
    to->embedding |= e1 || e2;
    return 0;
}

/* ---- factors -------------------------------------------------------------------------------- */

static int unfit(const struct hf_adapter *a, const struct st_entry *t, const int64_t *want,
                 int rank, struct err *e)
{
    struct buf is = {0}, should = {0};
    hf_add_shape(&is, t->rank, t->size);
    hf_add_shape(&should, rank, want);
    err_set(e, ERR_DATA, "%s: tensor '%.200s' has the shape %s, the model needs %s", a->path,
            t->name, buf_str(&is), buf_str(&should));
    buf_finish(&is);
    buf_finish(&should);
    return ERR_DATA;
}

static bool has_shape(const struct st_entry *t, int rank, const int64_t *size)
{
    bool same = t->rank == rank;
    for (int d = 0; same && d < rank; d++)
        same = t->size[d] == size[d];
    return same;
}

/* A matrix of the file as floats, turned on request. */
static int read_factor(const struct hf_adapter *a, const struct st_entry *t, bool turn, float **ret,
                       struct err *e)
{
    int64_t size[2];
    void *raw = NULL, *to = NULL;
    bool fits = st_matrix(t, size);
    struct box_mem m = {.dtype = (enum dtype)t->dtype, .box = box_whole(2, size)};
    BUG_ON(!fits, "'%s'", t->name);
    m.stride = size[1];
    size_t n = (size_t)(size[0] * size[1]);
    int code = mem_try(n + 1, dtype_size(m.dtype), "a factor of an adapter", &raw, e);
    if (!code)
        code = mem_try(n + 1, sizeof(float), "a factor of an adapter", &to, e);
    m.data = raw;
    if (!code)
        code = st_read(&a->st, t, m, e);
    struct box_mem out = {to, DTYPE_F32, box_whole(2, size), size[1]};
    if (turn) {
        out.box = (struct box){{0, 0}, {size[1], size[0]}};
        out.stride = size[0];
    }
    if (!code && turn)
        box_copy_transposed(out, m);
    else if (!code)
        box_copy(out, m);
    free(raw);
    *ret = to;
    return code;
}

/* The value of the first pattern that a module's name ends with. */
static int find_pattern(const struct hf_adapter *a, const struct hf_pattern *p, size_t n,
                        const char *module, double *ret, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        regex_t r;
        char *text = mem_printf("^(.*\\.)?(%s)$", p[i].pattern);
        int failed = strstr(text, "(?") || regcomp(&r, text, REG_EXTENDED | REG_NOSUB);
        free(text);
        if (failed)
            return err_set(e, ERR_DATA, "%s: '%.100s' is not a pattern that weft can match",
                           a->config_path, p[i].pattern);
        bool found = !regexec(&r, module, 0, NULL, 0);
        regfree(&r);
        if (found) {
            *ret = p[i].value;
            break;
        }
    }
    return 0;
}

static int find_scale(const struct hf_adapter *a, const char *tensor, struct hf_adapted *to,
                      struct err *e)
{
    const struct hf_adapter_config *c = &a->config;
    double r = (double)c->r, alpha = c->alpha;
    char *module = mem_strndup(tensor, strlen(tensor) - strlen(".weight"));
    int code = find_pattern(a, c->rank_of, c->nranks, module, &r, e);
    if (!code)
        code = find_pattern(a, c->alpha_of, c->nalphas, module, &alpha, e);
    free(module);
    if (code)
        return code;
    if (r != (double)to->rank)
        return err_set(e, ERR_DATA, "%s: tensor '%.200s' has the rank %lld, %s says %g", a->path,
                       to->a->name, (long long)to->rank, a->config_path, r);
    to->scale = (float)(alpha / (c->root ? sqrt(r) : r));
    return 0;
}

/* Holds both factors against the tensor and reads them. A linear layer's weight is [out, in], as a
 * Conv1D [in, out]. */
static int take_update(const struct hf_folder *f, struct hf_adapter *a, size_t i, struct err *e)
{
    struct hf_adapted *to = &a->of[i];
    const struct hf_tensor *t = &f->map.tensor[i];
    size_t l = 0;
    while (f->map.link[l].tensor != i)
        l++;
    bool turned = f->map.link[l].transposed;
    const struct st_entry *one = to->a ? to->a : to->b;
    if (!to->a || !to->b)
        return err_set(e, ERR_INTEGRITY, "%s: tensor '%.200s' is there, its lora_%s is missing",
                       a->path, one->name, to->a ? "B" : "A");
    if (t->rank != 2)
        return err_set(e, ERR_DATA, "%s: tensor '%.200s' updates '%s', which is not a matrix",
                       a->path, one->name, t->name);
    int64_t out = t->size[turned], in = t->size[!turned], rank = to->a->rank ? to->a->size[0] : 0;
    const int64_t of_a[2] = {rank, to->embedding ? out : in};
    const int64_t of_b[2] = {to->embedding ? in : out, rank};
    if (!rank || !has_shape(to->a, 2, of_a))
        return unfit(a, to->a, of_a, 2, e);
    if (!has_shape(to->b, 2, of_b))
        return unfit(a, to->b, of_b, 2, e);
    to->rank = rank;
    to->width = in;
    int code = find_scale(a, t->name, to, e);
    if (!code)
        code = read_factor(a, to->embedding ? to->a : to->b, to->embedding, &to->left, e);
    if (!code)
        code = read_factor(a, to->embedding ? to->b : to->a, to->embedding, &to->right, e);
    a->updated++;
    return code;
}

static int take_all(const struct hf_folder *f, struct hf_adapter *a, bool tied, struct err *e)
{
    int code = 0;
    a->tensors = f->map.tensors;
    a->of = mem_new(a->tensors + 1, sizeof(*a->of));
    a->source = mem_new(f->map.tensors + 1, sizeof(*a->source));
    a->update = mem_new(f->map.links + 1, sizeof(*a->update));
    for (size_t i = 0; !code && i < a->st.n; i++)
        code = place_entry(f, a, &a->st.entry[i], e);
    if (!code && tied)
        code = hf_tied_share(f, a, e);
    for (size_t i = 0; !code && i < f->map.tensors; i++) {
        struct hf_adapted *to = &a->of[i];
        const struct hf_tensor *t = &f->map.tensor[i];
        if (to->whole && !has_shape(to->whole, t->rank, t->size))
            return unfit(a, to->whole, t->size, t->rank, e);
        if (to->whole)
            code = copy_from_safetensors(&a->st, to->whole, a->path, &a->source[i], e);
        a->replaced += to->whole != NULL;
        if (!code && (to->a || to->b))
            code = take_update(f, a, i, e);
    }
    if (!code && !a->updated && !a->replaced)
        code = err_set(e, ERR_DATA, "%s: an adapter without tensors", a->path);
    return code;
}

int hf_adapter_attach(struct hf_folder *f, const char *dir, const struct hf_ignore *ignore,
                      struct err *e)
{
    struct hf_adapter *a = mem_new(1, sizeof(*a));
    a->st.fd = -1;
    int code = 0;
    if (f->meta) {
        err_set(e, ERR_USAGE, "%s: adapters have the names of Hugging Face, not Meta's", f->path);
        code = err_hint(e, "convert import and convert export make a folder of Hugging Face of it");
    }
    if (!code)
        code = read_files(a, dir, ignore, e);
    bool tied = f->model.spec.tied;
    if (!code && tied)
        hf_folder_tie(f, false); /* to place what the adapter has of the head */
    if (!code)
        code = take_all(f, a, tied, e);
    if (!code && tied)
        code = hf_tied_settle(f, a, e);
    if (code)
        hf_adapter_close(a);
    else
        f->adapter = a;
    return code;
}

void hf_adapter_close(struct hf_adapter *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->tensors; i++) {
        free(a->of[i].left);
        free(a->of[i].right);
    }
    st_close(&a->st);
    hf_adapter_config_finish(&a->config);
    free(a->of);
    free(a->source);
    free(a->update);
    free(a->config_path);
    free(a->path);
    free(a);
}

/* ---- steps ---------------------------------------------------------------------------------- */

void hf_adapter_apply(const struct hf_folder *f, struct hf_steps *s)
{
    const struct hf_adapter *a = f->adapter;
    BUG_ON(s->n != f->map.links, "%zu steps of %zu links", s->n, f->map.links);
    for (size_t i = 0; i < s->n; i++) {
        const struct hf_link *l = &f->map.link[i];
        const struct hf_adapted *x = &a->of[l->tensor];
        int64_t out = l->from[l->transposed], in = l->from[!l->transposed];
        if (x->whole)
            s->step[i].from = &a->source[l->tensor];
        if (!x->left)
            continue;
        BUG_ON(in || l->count[1] != x->width, "an update of some columns of '%s'",
               f->map.tensor[l->tensor].name);
        a->update[i] = (struct copy_low_rank){x->left + out * x->rank, x->right, x->rank, x->scale};
        s->step[i].update = &a->update[i];
    }
}
