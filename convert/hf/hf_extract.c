/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_extract.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "base/io/folder.h"
#include "base/io/path.h"
#include "base/thread/each.h"
#include "convert/copy/copy_files.h"
#include "convert/copy/low_rank.h"

/* A tensor of the model, and what becomes of it. */
struct change {
    const struct st_plan *item;
    const struct copy_step *step[2]; /* of tuned and base */
    size_t steps[2];
    int64_t size[2];
    bool differs, linear;
    float *whole, *b, *a; /* linear: b [out, rank], a [rank, in] */
    double squares, rest;
};

struct extraction {
    const struct hf_export *of[2];
    const struct hf_extract *o;
    struct change *at;
    size_t n;
    bool turned; /* weights of linear layers are [in, out], as GPT-2's */
};

/* ---- tensors ------------------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}

/* A linear layer's matrix: neither an embedding nor the head nor a stack of experts. */
static bool is_linear(const struct hf_export *x, const struct st_plan *p)
{
    enum hf_family f = x->model.family;
    return p->rank == 2 && ends_with(p->name, ".weight") && strcmp(p->name, hf_name_head(f)) &&
           strcmp(p->name, hf_name_embedding(f)) && !ends_with(p->name, "wpe.weight");
}

/* Item k of all files in turn, with its steps. */
static size_t add_side(struct extraction *x, int side, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < x->of[side]->files; i++) {
        const struct hf_export_file *f = &x->of[side]->file[i];
        for (size_t k = 0, s = 0; k < f->n; k++, n++) {
            if (n >= cap)
                continue;
            struct change *c = &x->at[n];
            c->step[side] = f->step + s;
            while (s < f->nsteps && f->step[s].target == k) {
                s++;
                c->steps[side]++;
            }
            if (side)
                continue;
            c->item = &f->item[k];
            c->size[0] = f->target[k].size[0];
            c->size[1] = f->target[k].size[1];
            c->linear = is_linear(x->of[0], c->item);
        }
    }
    return n;
}

struct held {
    char *data;
};

static int hold(void *arg, size_t target, uint64_t at, const void *p, size_t n, struct err *e)
{
    struct held *h = arg;
    (void)target, (void)e;
    memcpy(h->data + at, p, n);
    return 0;
}

/* The tensor of one side as floats. */
static int read_side(const struct change *c, int side, float *to, struct err *e)
{
    struct held h = {(char *)to};
    struct copy_target t = {.name = c->item->name, .size = {c->size[0], c->size[1]}};
    struct copy_step *step = mem_new(c->steps[side] + 1, sizeof(*step));
    struct copy copy = {.sink = {.target = &t, .n = 1, .write = hold, .arg = &h}, .step = step};
    const struct copy_options o = {.threads = 1, .memory = 32 << 20};
    t.dtype = DTYPE_F32;
    for (; copy.nsteps < c->steps[side]; copy.nsteps++) {
        step[copy.nsteps] = c->step[side][copy.nsteps];
        step[copy.nsteps].target = 0;
    }
    int code = copy_check(&copy, e);
    if (!code)
        code = copy_run(&copy, &o, e);
    free(step);
    return code;
}

static void turn_floats(const float *from, int64_t rows, int64_t cols, float *to)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            to[c * rows + r] = from[r * cols + c];
}

/* The factors of tuned - base, which is left in `tuned`. */
static void factorize(const struct extraction *x, struct change *c, float *tuned, float *base)
{
    int64_t rank = x->o->rank, out = c->size[x->turned], in = c->size[!x->turned];
    size_t n = (size_t)(out * in);
    for (size_t i = 0; i < n; i++)
        tuned[i] -= base[i];
    if (x->turned)
        turn_floats(tuned, in, out, base);
    c->b = mem_new((size_t)(out * rank), sizeof(float));
    c->a = mem_new((size_t)(rank * in), sizeof(float));
    c->squares = low_rank_factors(x->turned ? base : tuned, out, in, rank, c->b, c->a, &c->rest);
}

static int compare_one(void *arg, size_t i, struct err *e)
{
    struct extraction *x = arg;
    struct change *c = &x->at[i];
    size_t n = (size_t)(c->size[0] * c->size[1]);
    void *tuned = NULL, *base = NULL;
    int code = mem_try(n + 1, sizeof(float), "a tensor of the model", &tuned, e);
    if (!code)
        code = mem_try(n + 1, sizeof(float), "a tensor of the base", &base, e);
    if (!code)
        code = read_side(c, 0, tuned, e);
    if (!code)
        code = read_side(c, 1, base, e);
    c->differs = !code && memcmp(tuned, base, n * sizeof(float)) != 0;
    if (c->differs && c->linear) {
        factorize(x, c, tuned, base);
    } else if (c->differs) {
        c->whole = tuned;
        tuned = NULL;
    }
    free(tuned);
    free(base);
    return code;
}

/* A bias whose matrix is a linear layer's: adapters hold those of all layers or of none. */
static int check_biases(const struct extraction *x, struct err *e)
{
    for (size_t i = 0; i < x->n; i++) {
        const char *name = x->at[i].item->name;
        if (!x->at[i].differs || x->at[i].linear || !ends_with(name, ".bias"))
            continue;
        for (size_t k = 0; k < x->n; k++) {
            size_t stem = strlen(name) - strlen("bias");
            if (x->at[k].linear && !strncmp(x->at[k].item->name, name, stem) &&
                !strcmp(x->at[k].item->name + stem, "weight"))
                return err_set(e, ERR_DATA,
                               "tensor '%.200s' changed: an adapter holds factors of matrices, "
                               "and not the bias of a linear layer",
                               name);
        }
    }
    return 0;
}

/* ---- files --------------------------------------------------------------------------------- */

/* "model.layers.0.self_attn.q_proj" of its weight, in new memory. */
static char *module_of(const char *tensor)
{
    const char *dot = strrchr(tensor, '.');
    return mem_strndup(tensor, dot ? (size_t)(dot - tensor) : strlen(tensor));
}

static void put_module(struct buf *b, const char *module, bool first)
{
    buf_adds(b, first ? "" : ", ");
    jsonw_string(b, module, strlen(module));
}

static void put_modules(const struct extraction *x, bool linear, struct buf *b)
{
    char *last = NULL;
    size_t n = 0;
    buf_addc(b, '[');
    for (size_t i = 0; i < x->n; i++) {
        if (!x->at[i].differs || x->at[i].linear != linear)
            continue;
        char *module = module_of(x->at[i].item->name);
        if (!last || strcmp(last, module))
            put_module(b, module, !n++);
        free(last);
        last = module;
    }
    free(last);
    buf_addc(b, ']');
}

static void put_config(const struct extraction *x, struct buf *b)
{
    long long r = (long long)x->o->rank;
    buf_adds(b, "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"CAUSAL_LM\",\n"
                "  \"base_model_name_or_path\": ");
    jsonw_string(b, x->o->base_name, strlen(x->o->base_name));
    buf_addf(b, ",\n  \"r\": %lld,\n  \"lora_alpha\": %lld,\n  \"lora_dropout\": 0.0,\n", r, r);
    buf_addf(b, "  \"fan_in_fan_out\": %s,\n  \"bias\": \"none\",\n  \"use_rslora\": false,\n",
             x->turned ? "true" : "false");
    buf_adds(b, "  \"init_lora_weights\": true,\n  \"inference_mode\": true,\n"
                "  \"rank_pattern\": {},\n  \"alpha_pattern\": {},\n  \"target_modules\": ");
    put_modules(x, true, b);
    buf_adds(b, ",\n  \"modules_to_save\": ");
    struct buf whole = {0};
    put_modules(x, false, &whole);
    buf_adds(b, whole.len > 2 ? buf_str(&whole) : "null");
    buf_adds(b, "\n}\n");
    buf_finish(&whole);
}

struct planned {
    struct st_plan *item;
    const float **data;
    size_t n;
    struct arena arena;
};

static void plan_item(struct planned *p, char *name, int rank, const int64_t *size,
                      const float *data)
{
    p->item = mem_grow(p->item, p->n + 1, sizeof(*p->item));
    p->data = mem_grow(p->data, p->n + 1, sizeof(*p->data));
    p->item[p->n] = (struct st_plan){.name = name, .dtype = DTYPE_F32, .rank = rank};
    memcpy(p->item[p->n].size, size, (size_t)rank * sizeof(*size));
    p->data[p->n++] = data;
}

/* A whole module is written with all its tensors, those that did not change, too. */
static bool is_saved(const struct extraction *x, size_t i)
{
    char *module = module_of(x->at[i].item->name);
    bool saved = false;
    for (size_t k = 0; !saved && k < x->n; k++) {
        if (!x->at[k].whole)
            continue;
        char *other = module_of(x->at[k].item->name);
        saved = !strcmp(module, other);
        free(other);
    }
    free(module);
    return saved && !x->at[i].linear;
}

static int plan_tensors(struct extraction *x, struct planned *p, struct err *e)
{
    static const char begin[] = "base_model.model.";
    int code = 0;
    for (size_t i = 0; !code && i < x->n; i++) {
        struct change *c = &x->at[i];
        if (c->b) {
            char *m = module_of(c->item->name);
            const int64_t out = c->size[x->turned], in = c->size[!x->turned], r = x->o->rank;
            plan_item(p, arena_printf(&p->arena, "%s%s.lora_A.weight", begin, m), 2,
                      (int64_t[]){r, in}, c->a);
            plan_item(p, arena_printf(&p->arena, "%s%s.lora_B.weight", begin, m), 2,
                      (int64_t[]){out, r}, c->b);
            free(m);
            continue;
        }
        if (!is_saved(x, i))
            continue;
        if (!c->whole) {
            c->whole = mem_new((size_t)(c->size[0] * c->size[1]) + 1, sizeof(float));
            code = read_side(c, 0, c->whole, e);
        }
        plan_item(p, arena_printf(&p->arena, "%s%s", begin, c->item->name), c->item->rank,
                  c->item->size, c->whole);
    }
    return code;
}

static int write_tensors(const struct planned *p, const char *folder, uint64_t *ret_bytes,
                         struct err *e)
{
    static const struct st_pair format = {"format", "pt"};
    char *path = path_join(folder, "adapter_model.safetensors");
    struct st_out *out = NULL;
    int code = st_out_begin(path, folder, p->item, p->n, &format, 1, &out, e);
    for (size_t i = 0; !code && i < p->n; i++)
        code = st_out_write(out, i, 0, p->data[i], (size_t)st_plan_bytes(&p->item[i]), e);
    if (!code) {
        *ret_bytes = st_out_size(out);
        code = st_out_end(out, e);
    }
    st_out_destroy(out);
    free(path);
    return code;
}

static int write_adapter(const struct extraction *x, const struct planned *p, const char *dst,
                         uint64_t *ret_bytes, struct err *e)
{
    struct outfile config = {.fd = -1};
    struct buf text = {0};
    char *tmp = NULL, *parent = path_dir(dst), *first = path_join(dst, "adapter_config.json");
    char *made = file_first_missing(parent);
    put_config(x, &text);
    int code = file_mkdirs(parent, e);
    if (!code)
        code = outdir_create(dst, first, &config, &tmp, e);
    if (!code)
        code = write_tensors(p, tmp, ret_bytes, e);
    if (!code)
        code = outfile_write(&config, text.data, text.len, e);
    if (!code)
        code = outfile_sync(&config, e);
    if (!code)
        code = file_sync_dir(tmp, e);
    if (!code && folder_rename(tmp, dst))
        code =
            err_set(e, ERR_IO, "%s: cannot be given to the folder %s that was written", dst, tmp);
    if (!code)
        code = file_sync_dir(parent, e);
    if (code && tmp)
        file_remove_tree(tmp, NULL);
    outfile_leave(&config);
    if (code)
        file_prune(parent, made);
    buf_finish(&text);
    free(made);
    free(first);
    free(parent);
    free(tmp);
    return code;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void sum_up(const struct extraction *x, struct hf_extracted *ret)
{
    for (size_t i = 0; i < x->n; i++) {
        const struct change *c = &x->at[i];
        double part = c->squares > 0 ? sqrt(c->rest / c->squares) : 0;
        ret->matrices += c->b != NULL;
        ret->whole += c->differs && !c->linear;
        ret->squares += c->squares;
        ret->rest += c->rest;
        if (c->b && part >= ret->worst) {
            ret->worst = part;
            snprintf(ret->worst_name, sizeof(ret->worst_name), "%s", c->item->name);
        }
    }
}

static int same_tensors(struct extraction *x, struct err *e)
{
    size_t n = x->of[0]->map.tensors;
    struct buf what = {0};
    bool differ = spec_differ(&x->of[0]->model.spec, &x->of[1]->model.spec, &what) ||
                  x->of[0]->model.family != x->of[1]->model.family;
    int code = 0;
    if (!what.len)
        buf_addf(&what, "the family is %s and %s", hf_family_name(x->of[0]->model.family),
                 hf_family_name(x->of[1]->model.family));
    if (differ) {
        err_set(e, ERR_USAGE, "%s and %s must hold the same model, and differ: %s",
                ckpt_path(x->of[0]->ckpt), ckpt_path(x->of[1]->ckpt), buf_str(&what));
        code = err_hint(e, "--base is the checkpoint that the model was trained from");
    }
    buf_finish(&what);
    x->at = mem_new(n + 1, sizeof(*x->at));
    x->n = n;
    if (!code && (add_side(x, 0, n) != n || add_side(x, 1, n) != n))
        code = err_set(e, ERR_USAGE, "%s and %s have different tensors", ckpt_path(x->of[0]->ckpt),
                       ckpt_path(x->of[1]->ckpt));
    return code;
}

int hf_extract_adapter(const struct hf_export *tuned, const struct hf_export *base, const char *dst,
                       const struct hf_extract *o, struct hf_extracted *ret, struct err *e)
{
    struct extraction x = {
        .of = {tuned, base}, .o = o, .turned = hf_name_transposed(tuned->model.family)};
    struct planned p = {0};
    *ret = (struct hf_extracted){0};
    int code = file_exists(dst) ? err_set(e, ERR_USAGE, "%s: exists", dst) : same_tensors(&x, e);
    if (!code)
        code = each_run(x.n, o->threads, compare_one, &x, e);
    if (!code)
        code = check_biases(&x, e);
    if (!code)
        code = plan_tensors(&x, &p, e);
    for (int side = 0; !code && side < 2; side++)
        code = ckpt_check(x.of[side]->ckpt, e);
    if (!code && !p.n)
        code = err_set(e, ERR_DATA, "%s has the same weights as %s: there is nothing to export",
                       ckpt_path(tuned->ckpt), ckpt_path(base->ckpt));
    if (!code)
        code = write_adapter(&x, &p, dst, &ret->bytes, e);
    sum_up(&x, ret);
    for (size_t i = 0; i < x.n && x.at; i++) {
        free(x.at[i].whole);
        free(x.at[i].b);
        free(x.at[i].a);
    }
    free(x.at);
    free(p.item);
    free(p.data);
    arena_finish(&p.arena);
    return code;
}
