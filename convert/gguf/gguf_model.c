/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

enum { NAME_MAX_GGUF = 63, MAX_LAYERS = 9999, QUANTIZATION_VERSION = 2 };

/* ---- keys ----------------------------------------------------------------------------------- */

/* A number under "ARCH.KEY". */
static void add_size(struct gguf_plan *p, const char *arch, const char *key, int64_t v)
{
    gguf_add_u32(&p->keys, arena_printf(&p->arena, "%s.%s", arch, key), (uint64_t)v);
}

static void add_real(struct gguf_plan *p, const char *arch, const char *key, double v)
{
    gguf_add_float(&p->keys, arena_printf(&p->arena, "%s.%s", arch, key), v);
}

/* The type of matrices; "auto": that of the embedding, but F64 becomes F32. */
static struct gguf_type matrix_type(const struct hf_export *x, const char *outtype)
{
    struct gguf_type type = {.name = NULL};
    enum dtype d = x->source[0].dtype;
    bool found = strcmp(outtype, "auto")
                     ? gguf_type_find_name(outtype, &type)
                     : gguf_type_find(gguf_type_of(dtype_is_narrow(d) ? d : DTYPE_F32), &type);
    BUG_ON(!found || type.file < 0, "a GGUF file of '%s'", outtype);
    return type;
}

static void put_keys(struct gguf_plan *p, const struct hf_model *m, int file_type, const char *name)
{
    const struct spec *s = &m->spec;
    const char *arch = hf_family_gguf(m->family)->arch;
    bool rope = s->position == SPEC_ROPE;
    gguf_add_text(&p->keys, "general.architecture", arch, strlen(arch));
    gguf_add_text(&p->keys, "general.type", "model", 5);
    gguf_add_text(&p->keys, "general.name", name, strlen(name));
    add_size(p, arch, "block_count", s->layers);
    add_size(p, arch, "context_length", s->max_positions);
    add_size(p, arch, "embedding_length", s->hidden);
    add_size(p, arch, "feed_forward_length", s->ffn);
    add_size(p, arch, "attention.head_count", s->heads);
    if (rope) {
        add_size(p, arch, "attention.head_count_kv", s->kv_heads);
        add_size(p, arch, "attention.key_length", s->head_dim);
        add_size(p, arch, "attention.value_length", s->head_dim);
        add_size(p, arch, "rope.dimension_count", s->head_dim);
        add_real(p, arch, "rope.freq_base", s->rope_base);
    }
    add_size(p, arch, "vocab_size", s->vocab); /* a file without a tokenizer does not say it */
    add_real(p, arch,
             s->norm == SPEC_RMSNORM ? "attention.layer_norm_rms_epsilon"
                                     : "attention.layer_norm_epsilon",
             s->norm_eps);
    gguf_add_u32(&p->keys, "general.file_type", (uint64_t)file_type);
    gguf_add_u32(&p->keys, "general.quantization_version", QUANTIZATION_VERSION);
}

/* ---- tensors -------------------------------------------------------------------------------- */

static const char *layer_tail(const char *name)
{
    const char *dot = strncmp(name, "layers.", 7) ? NULL : strchr(name + 7, '.');
    return dot ? dot + 1 : name;
}

static const struct hf_gguf_row *find_row(const struct hf_gguf *a, const char *global)
{
    const struct hf_gguf_row *r = a->row;
    while (r->global && strcmp(r->global, layer_tail(global)) != 0)
        r++;
    return r->global ? r : NULL;
}

/* "blk.N.attn_q.weight" of "layers.N.attn.q.weight" */
static const char *foreign_name(struct gguf_plan *p, const struct hf_gguf_row *r,
                                const char *global)
{
    const char *tail = layer_tail(global);
    if (tail == global)
        return r->foreign;
    return arena_printf(&p->arena, "blk.%.*s.%s", (int)(tail - global - 8), global + 7, r->foreign);
}

/* Row 2j of a head is the j-th of its first half, row 2j + 1 of its second. */
static int64_t *pair_order(int64_t heads, int64_t d)
{
    int64_t *order = mem_new((size_t)(heads * d), sizeof(*order));
    for (int64_t i = 0; i < heads * d; i++) {
        int64_t j = i % d;
        order[i] = i - j + (j % 2 ? d / 2 + j / 2 : j / 2);
    }
    return order;
}

static void add_target(struct gguf_plan *p, const char *name, const struct hf_global *g,
                       uint32_t type)
{
    struct gguf_tensor *t = &p->tensor[p->n++];
    *t = (struct gguf_tensor){name, g->rank, {g->size[0], g->size[1]}, type};
    if (t->rank == 1 || !strcmp(name, "position_embd.weight"))
        t->type = gguf_type_of(DTYPE_F32);
    if (t->type == GGUF_Q8_0 && t->size[1] % GGUF_Q8_0_BLOCK) {
        t->type = gguf_type_of(DTYPE_F16); /* as llama.cpp's converter does */
        p->narrow++;
    }
}

static int add_tensors(struct gguf_plan *p, const struct hf_export *x, uint32_t type, struct err *e)
{
    const struct hf_gguf *a = hf_family_gguf(x->model.family);
    const struct spec *s = &x->model.spec;
    const struct hf_gguf_row *before = NULL;
    if (a->pairs) {
        p->order[0] = pair_order(s->heads, s->head_dim);
        p->order[1] = pair_order(s->kv_heads, s->head_dim);
    }
    for (size_t i = 0; i < x->map.globals; i++) {
        const struct hf_global *g = &x->map.global[i];
        const struct hf_gguf_row *r = find_row(a, g->name);
        if (!r)
            return err_set(e, ERR_USAGE, "%s: GGUF's architecture %s has no tensor for '%s'",
                           ckpt_path(x->ckpt), a->arch, g->name);
        bool stacked = before && r == before + 1 && !strcmp(r->foreign, before->foreign);
        if (stacked)
            p->tensor[p->n - 1].size[0] += g->size[0];
        else
            add_target(p, foreign_name(p, r, g->name), g, type);
        int64_t first = p->tensor[p->n - 1].size[0] - g->size[0];
        p->step[p->nsteps++] = (struct copy_step){
            .target = p->n - 1,
            .to = {{first, 0}, {g->size[0], g->size[1]}},
            .from = &x->source[i],
            .order = r->order == HF_GGUF_QUERIES ? p->order[0]
                     : r->order == HF_GGUF_KEYS  ? p->order[1]
                                                 : NULL,
        };
        before = r;
    }
    return 0;
}

static int read_freqs(const struct copy_source *s, struct box_mem to, struct err *e)
{
    (void)e;
    for (int64_t r = 0; r < to.box.count[0]; r++)
        memcpy((float *)to.data + r * to.stride, (const float *)s->file + to.box.begin[0] + r,
               sizeof(float));
    return 0;
}

/* What llama3's scaling divides each frequency by. */
static void add_freqs(struct gguf_plan *p, const struct spec *s)
{
    int64_t n = s->head_dim / 2;
    double longest = (double)s->rope_old_length / s->rope_low;
    double shortest = (double)s->rope_old_length / s->rope_high;
    p->freqs = mem_new((size_t)n + 1, sizeof(*p->freqs));
    for (int64_t i = 0; i < n; i++) {
        double freq = 1 / pow(s->rope_base, 2 * (double)i / (double)s->head_dim);
        double wave = 2 * 3.14159265358979323846 / freq;
        double share =
            ((double)s->rope_old_length / wave - s->rope_low) / (s->rope_high - s->rope_low);
        p->freqs[i] = (float)(wave < shortest  ? 1
                              : wave > longest ? s->rope_factor
                                               : 1 / ((1 - share) / s->rope_factor + share));
    }
    const struct hf_global g = {"rope_freqs.weight", 1, {n, 1}};
    add_target(p, g.name, &g, gguf_type_of(DTYPE_F32));
    p->extra = (struct copy_source){
        .name = g.name, .size = {n, 1}, .dtype = DTYPE_F32, .read = read_freqs, .file = p->freqs};
    p->step[p->nsteps++] =
        (struct copy_step){.target = p->n - 1, .to = {{0, 0}, {n, 1}}, .from = &p->extra};
}

/* ---- the plan ------------------------------------------------------------------------------- */

static int refuse_family(enum hf_family family, const char *path, struct err *e)
{
    struct buf all = {0};
    int n = 0, at = 0;
    for (int f = 0; f < HF_FAMILIES; f++)
        n += hf_family_gguf((enum hf_family)f) != NULL;
    for (int f = 0; f < HF_FAMILIES; f++)
        if (hf_family_gguf((enum hf_family)f)) {
            buf_adds(&all, !at ? "" : at == n - 1 ? " and " : ", ");
            buf_adds(&all, hf_family_name((enum hf_family)f));
            at++;
        }
    err_set(e, ERR_USAGE, "%s: a %s model; as GGUF weft writes %s", path, hf_family_name(family),
            buf_str(&all));
    buf_finish(&all);
    return ERR_USAGE;
}

static int check_model(const struct hf_export *x, struct err *e)
{
    const struct hf_model *m = &x->model;
    const struct hf_gguf *a = hf_family_gguf(m->family);
    const struct spec s = m->spec;
    const char *path = ckpt_path(x->ckpt);
    if (!a)
        return refuse_family(m->family, path, e);
    if (s.features & ~a->features) {
        struct buf b = {0};
        spec_feature_words(s.features & ~a->features, &b);
        err_set(e, ERR_USAGE, "%s: GGUF's architecture %s has no place for %s", path, a->arch,
                buf_str(&b));
        buf_finish(&b);
        return ERR_USAGE;
    }
    if (s.rope_scaling > SPEC_ROPE_LLAMA3)
        return err_set(e, ERR_USAGE,
                       "%s: weft writes no rotary scaling into GGUF other than Llama 3's", path);
    if (s.position == SPEC_ROPE && s.rope_percent != 1)
        return err_set(e, ERR_USAGE, "%s: it turns a part of each head, which GGUF's %s does not",
                       path, a->arch);
    if (s.act == SPEC_GELU_ERF)
        return err_set(e, ERR_USAGE, "%s: its GELU is the exact one, GGUF's %s has the one by tanh",
                       path, a->arch);
    if (s.layers > MAX_LAYERS || s.vocab > INT32_MAX || s.max_positions > INT32_MAX ||
        s.hidden > INT32_MAX || s.ffn > INT32_MAX)
        return err_set(e, ERR_USAGE, "%s: its sizes are above what GGUF's keys hold", path);
    return 0;
}

int gguf_plan(struct gguf_plan *ret, const struct hf_export *x, const char *outtype,
              const char *name, struct err *e)
{
    struct gguf_plan *p = ret;
    *p = (struct gguf_plan){0};
    int code = check_model(x, e);
    if (code)
        return code;
    struct gguf_type matrix = matrix_type(x, outtype);
    p->tensor = mem_new(x->map.globals + 1, sizeof(*p->tensor));
    p->step = mem_new(x->map.globals + 1, sizeof(*p->step));
    put_keys(p, &x->model, matrix.file, name);
    code = add_tensors(p, x, matrix.number, e);
    if (!code && x->model.spec.rope_scaling == SPEC_ROPE_LLAMA3 &&
        x->model.spec.position == SPEC_ROPE)
        add_freqs(p, &x->model.spec);
    for (size_t i = 0; !code && i < p->n; i++) {
        p->bytes += gguf_bytes(&p->tensor[i]);
        BUG_ON(strlen(p->tensor[i].name) > NAME_MAX_GGUF, "'%s'", p->tensor[i].name);
    }
    if (code)
        gguf_plan_finish(p);
    return code;
}

void gguf_plan_finish(struct gguf_plan *p)
{
    buf_finish(&p->keys.bytes);
    free(p->tensor);
    free(p->step);
    free(p->freqs);
    free(p->order[0]);
    free(p->order[1]);
    arena_finish(&p->arena);
    *p = (struct gguf_plan){0};
}

int gguf_write(const struct gguf_plan *p, const struct hf_export *x, const char *dst,
               const struct copy_options *o, struct err *e)
{
    struct gguf_out *out = NULL;
    struct copy_target *target = NULL;
    struct copy c = {.step = p->step, .nsteps = p->nsteps};
    int code = gguf_begin(dst, &p->keys, p->tensor, p->n, &out, e);
    if (!code) {
        gguf_sink(out, &c.sink, &target);
        code = copy_check(&c, e);
    }
    if (!code)
        code = copy_run(&c, o, e);
    if (!code)
        code = ckpt_check(x->ckpt, e);
    if (!code)
        code = gguf_end(out, e);
    gguf_destroy(out);
    free(target);
    return code;
}
