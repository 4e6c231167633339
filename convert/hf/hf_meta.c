/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Llama as Meta distributes it: params.json and consolidated.NN.pth, one file for each
 * model-parallel rank. The matrices are cut by rows or columns, and the rows of queries and keys
 * lie in pairs (2j, 2j + 1 turn together), where transformers and weft have halves (j, j + d/2).
 */

#include "convert/hf/hf_folder_internal.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"
#include "convert/hf/hf_write.h"
#include "convert/torch/pt.h"

enum { FILES_MAX = 100, PARAMS_MAX = 1 << 20 };

/* How a matrix is cut over the files; EITHER: by rows if those have all columns. */
enum cut { WHOLE, ROWS, COLUMNS, EITHER };

/* Tails of names: those of a layer begin with "layers.N." on both sides. */
static const struct meta_row {
    const char *global, *foreign;
    enum cut cut;
    int turned; /* 1: rows of queries, 2: of keys, in pairs */
} rows[] = {
    {"embed.weight", "tok_embeddings.weight", EITHER, 0},
    {"norm.weight", "norm.weight", WHOLE, 0},
    {"head.weight", "output.weight", ROWS, 0},
    {"attn_norm.weight", "attention_norm.weight", WHOLE, 0},
    {"mlp_norm.weight", "ffn_norm.weight", WHOLE, 0},
    {"attn.q.weight", "attention.wq.weight", ROWS, 1},
    {"attn.k.weight", "attention.wk.weight", ROWS, 2},
    {"attn.v.weight", "attention.wv.weight", ROWS, 0},
    {"attn.out.weight", "attention.wo.weight", COLUMNS, 0},
    {"mlp.gate.weight", "feed_forward.w1.weight", ROWS, 0},
    {"mlp.down.weight", "feed_forward.w2.weight", COLUMNS, 0},
    {"mlp.up.weight", "feed_forward.w3.weight", ROWS, 0},
};

/* Where a name goes on after "layers.N.". */
static const char *tail_of(const char *name)
{
    static const char layers[] = "layers.";
    const char *dot =
        strncmp(name, layers, sizeof(layers) - 1) ? NULL : strchr(name + sizeof(layers) - 1, '.');
    return dot ? dot + 1 : name;
}

static const struct meta_row *meta_row_of(const char *global)
{
    size_t i = 0;
    while (strcmp(rows[i].global, tail_of(global)) != 0)
        BUG_ON(++i == sizeof(rows) / sizeof(rows[0]), "'%s'", global);
    return &rows[i];
}

static const struct st_entry *find_in(const struct hf_folder *f, size_t file, const char *global)
{
    const char *tail = tail_of(global);
    char *name = mem_printf("%.*s%s", (int)(tail - global), global, meta_row_of(global)->foreign);
    const struct st_entry *t = st_find(&f->shard[file].st, name);
    free(name);
    return t;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* NN of "consolidated.NN.pth", -1: another name. */
static int file_number(const char *name)
{
    static const char begin[] = "consolidated.", end[] = ".pth";
    size_t b = sizeof(begin) - 1;
    if (strlen(name) != b + 2 + sizeof(end) - 1 || strncmp(name, begin, b) ||
        strcmp(name + b + 2, end) || strspn(name + b, "0123456789") != 2)
        return -1;
    return (name[b] - '0') * 10 + name[b + 1] - '0';
}

/* One more than the largest number of a file, 0: there is none. */
static int count_files(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *en; d && (en = readdir(d));)
        n = file_number(en->d_name) >= n ? file_number(en->d_name) + 1 : n;
    if (d)
        closedir(d);
    return n;
}

bool hf_meta_is(const char *path)
{
    char *params = path_join(path, "params.json");
    bool is = file_exists(params) && count_files(path);
    free(params);
    return is;
}

static int open_all(struct hf_folder *f, struct err *e)
{
    int n = count_files(f->path), code = 0;
    for (int i = 0; !code && i < n; i++) {
        char *name = mem_printf("consolidated.%02d.pth", i), *path = path_join(f->path, name);
        if (!file_exists(path))
            code = err_set(e, ERR_INTEGRITY, "%s: missing, although consolidated.%02d.pth is there",
                           path, n - 1);
        else
            code = hf_shard_open(f, name, pt_open, e);
        free(path);
        free(name);
    }
    return code;
}

/* ---- params.json ---------------------------------------------------------------------------- */

struct params {
    int64_t dim, layers, heads, kv_heads, multiple, vocab, ffn, positions;
    double multiplier, eps, theta, factor;
    bool scaled;
};

/* Every key that shapes a model; `real`: may have a fraction. */
static int meta_read_key(const struct json *v, const char *path, const struct hf_ignore *ignore,
                         struct params *p, struct err *e)
{
    const struct {
        const char *key;
        int64_t *number;
        double *real;
    } known[] = {
        {"dim", &p->dim, NULL},
        {"n_layers", &p->layers, NULL},
        {"n_heads", &p->heads, NULL},
        {"n_kv_heads", &p->kv_heads, NULL},
        {"multiple_of", &p->multiple, NULL},
        {"vocab_size", &p->vocab, NULL},
        {"max_seq_len", &p->positions, NULL},
        {"ffn_dim_multiplier", NULL, &p->multiplier},
        {"norm_eps", NULL, &p->eps},
        {"rope_theta", NULL, &p->theta},
        {"rope_scaling_factor", NULL, &p->factor},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(v->key, known[i].key) != 0)
            continue;
        if (v->kind != JSON_INT && (v->kind != JSON_REAL || !known[i].real))
            return err_set(e, ERR_DATA, "%s: \"%s\" is not a %s", path, v->key,
                           known[i].real ? "number" : "whole number");
        if (known[i].real)
            *known[i].real = v->real;
        else
            *known[i].number = v->integer;
        return 0;
    }
    if (!strcmp(v->key, "use_scaled_rope") && v->kind == JSON_BOOL) {
        p->scaled = v->boolean;
        return 0;
    }
    bool ignored = !strcmp(v->key, "max_batch_size");
    for (size_t i = 0; ignore && i < ignore->n; i++)
        ignored |= !strcmp(v->key, ignore->key[i]);
    if (ignored)
        return 0;
    err_set(e, ERR_DATA, "%s: the key \"%.100s\" is not one of Llama 1 to 3.2", path, v->key);
    return err_hint(e, "--ignore-config-key %.100s passes over it", v->key);
}

static int read_params(const char *path, const struct hf_ignore *ignore, struct params *p,
                       struct err *e)
{
    struct json_doc *doc = NULL;
    *p = (struct params){.multiple = 256, .multiplier = 1, .eps = 1e-5, .theta = 10000};
    int code = json_open_plain(path, PARAMS_MAX, &doc, e);
    if (code)
        return code;
    const struct json *o = json_root(doc);
    if (o->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "%s: is not a JSON object", path);
    for (size_t i = 0; !code && i < o->length; i++)
        code = meta_read_key(&o->child[i], path, ignore, p, e);
    if (!json_get(o, "n_kv_heads"))
        p->kv_heads = p->heads;
    if (!code && (p->dim < 1 || p->layers < 1 || p->heads < 1 || p->kv_heads < 1 ||
                  p->multiple < 1 || p->dim > INT32_MAX || p->multiple > INT32_MAX ||
                  p->layers > HF_LAYERS_MAX || p->dim % p->heads || p->heads % p->kv_heads ||
                  !(p->multiplier > 0 && p->multiplier < 100)))
        code = err_set(e, ERR_DATA,
                       "%s: dim, n_layers, n_heads, n_kv_heads, multiple_of and "
                       "ffn_dim_multiplier make no model",
                       path);
    json_close(doc);
    return code;
}

/* What the files themselves decide: the vocabulary, and whether there is a head. */
static int read_shapes(struct hf_folder *f, struct params *p, bool *ret_tied, struct err *e)
{
    struct hf_found embed = {0, find_in(f, 0, "embed.weight")};
    struct hf_found head = {0, find_in(f, 0, "head.weight")};
    int64_t files = (int64_t)f->shards, rows_of = 0;
    if (!embed.entry || embed.entry->rank != 2 || (head.entry && head.entry->rank != 2))
        return err_set(e, ERR_INTEGRITY, "%s: tensor '%s' is missing, or is not a matrix",
                       f->shard[0].path, embed.entry ? "output.weight" : "tok_embeddings.weight");
    rows_of = head.entry                       ? head.entry->size[0] * files
              : embed.entry->size[1] == p->dim ? embed.entry->size[0] * files
                                               : embed.entry->size[0];
    if (p->vocab > 0 && p->vocab != rows_of)
        return err_set(e, ERR_DATA, "%s: its vocabulary has %lld entries, params.json says %lld",
                       f->shard[0].path, (long long)rows_of, (long long)p->vocab);
    p->vocab = rows_of;
    *ret_tied = !head.entry;
    bool same = head.entry && files == 1;
    int code = same ? hf_same_bytes(f, head, embed, &same, e) : 0;
    if (!code && same) {
        *ret_tied = true;
        hf_pass(f, head, "equal to the embedding, to which it is tied");
    }
    return code;
}

/* The width of the MLP: two thirds of four times the model's, scaled and rounded up. */
static void settle(struct params *p, bool tied)
{
    int64_t ffn = (int64_t)(p->multiplier * (double)(2 * (4 * p->dim) / 3));
    p->ffn = (ffn + p->multiple - 1) / p->multiple * p->multiple;
    if (!p->positions) /* no file says it */
        p->positions = p->scaled          ? 131072
                       : p->theta >= 1e6  ? 16384
                       : p->theta > 10000 ? 8192
                                          : 4096;
    if (p->factor == 0)
        p->factor = tied ? 32 : 8; /* Llama 3.2's small models, which are tied; 3.1 */
}

/* The config.json that transformers would have. */
static void write_config(const struct params *p, bool tied, enum dtype d, struct buf *b)
{
    bool third = p->vocab >= 128000;
    buf_addf(b,
             "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ],\n"
             "  \"attention_bias\": false,\n  \"bos_token_id\": %d,\n  \"eos_token_id\": %d,\n"
             "  \"hidden_act\": \"silu\",\n  \"hidden_size\": %lld,\n"
             "  \"intermediate_size\": %lld,\n  \"max_position_embeddings\": %lld,\n"
             "  \"mlp_bias\": false,\n  \"model_type\": \"llama\",\n"
             "  \"num_attention_heads\": %lld,\n  \"num_hidden_layers\": %lld,\n"
             "  \"num_key_value_heads\": %lld,\n  \"rms_norm_eps\": ",
             third ? 128000 : 1, third ? 128001 : 2, (long long)p->dim, (long long)p->ffn,
             (long long)p->positions, (long long)p->heads, (long long)p->layers,
             (long long)p->kv_heads);
    jsonw_real(b, p->eps);
    buf_adds(b, ",\n  \"rope_scaling\": ");
    if (p->scaled) {
        buf_adds(b, "{\n    \"factor\": ");
        jsonw_real(b, p->factor);
        buf_adds(b, ",\n    \"high_freq_factor\": 4.0,\n    \"low_freq_factor\": 1.0,\n"
                    "    \"original_max_position_embeddings\": 8192,\n"
                    "    \"rope_type\": \"llama3\"\n  }");
    } else {
        buf_adds(b, "null");
    }
    buf_adds(b, ",\n  \"rope_theta\": ");
    jsonw_real(b, p->theta);
    buf_addf(b,
             ",\n  \"tie_word_embeddings\": %s,\n  \"torch_dtype\": \"%s\",\n"
             "  \"use_cache\": true,\n  \"vocab_size\": %lld\n}\n",
             tied ? "true" : "false", dtype_word(d), (long long)p->vocab);
}

static int meta_read_config(struct hf_folder *f, const struct hf_ignore *ignore, struct err *e)
{
    struct params p;
    bool tied = false;
    char *path = path_join(f->path, "params.json");
    int code = read_params(path, ignore, &p, e);
    if (!code)
        code = read_shapes(f, &p, &tied, e);
    if (!code) {
        int d = find_in(f, 0, "embed.weight")->dtype;
        settle(&p, tied);
        write_config(&p, tied, d < 0 ? DTYPE_F32 : (enum dtype)d, &f->config);
        code = hf_config_parse(path, f->config.data, f->config.len, ignore, &f->model, e);
    }
    int64_t files = (int64_t)f->shards;
    if (!code && (p.kv_heads % files || p.ffn % files || p.vocab % files))
        code = err_set(e, ERR_DATA,
                       "%s: %lld files cannot share %lld key/value heads, %lld columns of the MLP "
                       "and %lld entries of the vocabulary equally",
                       path, (long long)files, (long long)p.kv_heads, (long long)p.ffn,
                       (long long)p.vocab);
    free(path);
    return code;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static enum cut meta_cut(const struct hf_folder *f, const struct hf_global *g,
                         const struct st_entry *t)
{
    enum cut c = meta_row_of(g->name)->cut;
    bool by_rows = t->rank == 2 && t->size[1] == g->size[1] && f->shards > 1;
    return c != EITHER ? c : by_rows ? ROWS : COLUMNS;
}

/* What of a global tensor file k holds. */
static struct box box_of_file(const struct hf_folder *f, const struct hf_global *g, enum cut c,
                              size_t k)
{
    struct box b = box_whole(2, g->size);
    if (c != WHOLE) {
        int d = c == COLUMNS;
        b.count[d] /= (int64_t)f->shards;
        b.begin[d] = b.count[d] * (int64_t)k;
    }
    return b;
}

static int meta_check_tensor(const struct hf_folder *f, const struct hf_global *g, size_t k,
                             const struct st_entry *t, struct err *e)
{
    struct box b = box_of_file(f, g, meta_cut(f, g, t), k);
    bool same = t->rank == g->rank;
    for (int d = 0; same && d < t->rank; d++)
        same = t->size[d] == b.count[d];
    if (!same) {
        struct buf is = {0}, should = {0};
        hf_add_shape(&is, t->rank, t->size);
        hf_add_shape(&should, g->rank, b.count);
        err_set(e, ERR_DATA, "%s: tensor '%.200s' has the shape %s, by params.json it is %s",
                f->shard[k].path, t->name, buf_str(&is), buf_str(&should));
        buf_finish(&is);
        buf_finish(&should);
        return ERR_DATA;
    }
    return hf_check_type(f->shard[k].path, t, e);
}

/* A global tensor in every file; what is whole must be the same in all. */
static int find_global(struct hf_folder *f, size_t i, struct err *e)
{
    const struct hf_global *g = &f->map.global[i];
    int code = 0;
    for (size_t k = 0; !code && k < f->shards; k++) {
        struct hf_found at = {k, find_in(f, k, g->name)};
        bool same = true, whole = meta_row_of(g->name)->cut == WHOLE;
        if (!at.entry)
            return err_set(e, ERR_INTEGRITY,
                           "%s: the tensor of '%s' (%s) is missing, which params.json needs",
                           f->shard[k].path, g->name, meta_row_of(g->name)->foreign);
        if (!k)
            f->found[i] = at;
        code = meta_check_tensor(f, g, k, at.entry, e);
        if (!code && k && at.entry->dtype != f->found[i].entry->dtype)
            code = err_set(e, ERR_DATA, "%s: tensor '%.200s' is of type %s, in %s of type %s",
                           f->shard[k].path, at.entry->name, at.entry->dtype_name, f->shard[0].name,
                           f->found[i].entry->dtype_name);
        if (!code && k && whole)
            code = hf_same_bytes(f, f->found[i], at, &same, e);
        if (!code && !same)
            code = err_set(e, ERR_DATA, "%s: tensor '%.200s' differs from that of %s",
                           f->shard[k].path, at.entry->name, f->shard[0].name);
        if (!code && (!whole || !k))
            f->bytes += at.entry->end - at.entry->begin;
    }
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int judge_others(struct hf_folder *f, struct err *e)
{
    const char **known = mem_new(f->map.globals + 1, sizeof(*known));
    int code = 0;
    for (size_t i = 0; i < f->map.globals; i++)
        known[i] = f->found[i].entry->name;
    qsort(known, f->map.globals, sizeof(*known), by_name);
    for (size_t k = 0; k < f->shards; k++)
        for (size_t i = 0; !code && i < f->shard[k].st.n; i++) {
            struct hf_found at = {k, &f->shard[k].st.entry[i]};
            bool passed = f->npassed && f->passed[0].at.entry == at.entry;
            if (passed || bsearch(&at.entry->name, known, f->map.globals, sizeof(*known), by_name))
                continue;
            if (!strcmp(at.entry->name, "rope.freqs") ||
                strstr(at.entry->name, ".inner_attention."))
                hf_pass(f, at, "a buffer that the model makes itself");
            else
                code = err_set(e, ERR_DATA, "%s: tensor '%.200s' is not one of a Llama model",
                               f->shard[k].path, at.entry->name);
        }
    free(known);
    return code;
}

int hf_meta_fill(struct hf_folder *f, const struct hf_ignore *ignore, struct err *e)
{
    f->pytorch = true;
    int code = open_all(f, e);
    if (!code)
        code = meta_read_config(f, ignore, e);
    if (code)
        return code;
    f->sharded = f->shards > 1;
    hf_map_build(&f->map, &f->model, HF_EXPERTS_SINGLE);
    f->found = mem_new(f->map.globals + 1, sizeof(*f->found));
    for (size_t i = 0; !code && i < f->map.globals; i++)
        code = find_global(f, i, e);
    return code ? code : judge_others(f, e);
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Row j of a head's first half is row 2j there, of its second half row 2j + 1. */
static int64_t *order_of(int64_t heads, int64_t d)
{
    int64_t *order = mem_new((size_t)(heads * d), sizeof(*order));
    for (int64_t i = 0; i < heads * d; i++) {
        int64_t j = i % d;
        order[i] = i - j + (j < d / 2 ? 2 * j : 2 * (j - d / 2) + 1);
    }
    return order;
}

int hf_meta_steps(const struct hf_folder *f, struct hf_steps *ret, struct err *e)
{
    size_t most = f->map.globals * f->shards;
    const struct spec *s = &f->model.spec;
    int code = 0;
    ret->source = mem_new(most + 1, sizeof(*ret->source));
    ret->step = mem_new(most + 1, sizeof(*ret->step));
    ret->order[0] = order_of(s->heads / (int64_t)f->shards, s->head_dim);
    ret->order[1] = order_of(s->kv_heads / (int64_t)f->shards, s->head_dim);
    for (size_t i = 0; i < f->map.globals; i++) {
        const struct hf_global *g = &f->map.global[i];
        const struct meta_row *row = meta_row_of(g->name);
        for (size_t k = 0; !code && k < (row->cut == WHOLE ? 1 : f->shards); k++) {
            const struct st_entry *t = find_in(f, k, g->name);
            struct copy_source *from = &ret->source[ret->n];
            code = copy_from_safetensors(&f->shard[k].st, t, f->shard[k].path, from, e);
            ret->step[ret->n++] =
                (struct copy_step){.target = i,
                                   .to = box_of_file(f, g, meta_cut(f, g, t), k),
                                   .from = from,
                                   .order = row->turned ? ret->order[row->turned - 1] : NULL};
        }
    }
    return code;
}
