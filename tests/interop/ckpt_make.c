/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checkpoints for the scripts of other suites:
 *
 *     ckpt_make save DIR ITERATION [GROUP...]  a tiny Llama with moments, values a function of the
 *                                     iteration; and a tensor "stray" of each GROUP
 *     ckpt_make two DIR ITERATION [ROWS]  two tensors of no model, one of 300 rows or ROWS
 *     ckpt_make hollow DIR CONFIG     a checkpoint of the model of a config.json in bfloat16, all
 *                                     zeros, in files that take no space on a disk
 *     ckpt_make read FILE             what st_open makes of a safetensors file, a line for each
 *                                     tensor: name, dtype, shape, XXH3-128 of its bytes
 *     ckpt_make seal MANIFEST         gives a manifest that was edited its digest again
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/map.h"
#include "base/io/path.h"
#include "tests/train/tiny.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/safetensors.h"
#include "train/ckpt/shard.h"
#include "train/spec/hf.h"
#include "train/spec/param.h"

enum { GROUPS = 3 };
static const char *const groups[GROUPS] = {CKPT_PARAM, CKPT_EXP_AVG, CKPT_EXP_AVG_SQ};

static struct spec tiny(void)
{
    struct spec s = tiny_llama();
    s.vocab = 100;
    s.max_positions = 32;
    s.tied = true;
    s.init_std = 0.02;
    spec_settle(&s);
    return s;
}

/* All tensors, and one named "stray" of each further group. */
static int put_all(struct ckpt_writer *w, const struct params *p, float *data, char **stray,
                   struct err *e)
{
    struct ckpt_shard *shard;
    struct buf fragment = {0};
    struct box_mem *mem = NULL;
    size_t n = 0;
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &shard);
    for (int g = 0; g < GROUPS; g++) {
        for (int i = 0; i < p->n; i++) {
            const struct param *q = &p->at[i];
            float *at = data + g * p->elements + q->offset;
            for (int k = 0; k < q->sources; k++) {
                const struct param_source *s = &q->source[k];
                struct box_mem m = {at + s->row * q->size[1],
                                    DTYPE_F32,
                                    {{s->begin[0], s->begin[1]}, {s->count[0], s->count[1]}},
                                    q->size[1]};
                mem = mem_grow(mem, n + 1, sizeof(*mem));
                mem[n++] = m;
                ckpt_shard_add(shard, groups[g], s->name, s->rank, s->size, DTYPE_F32, m.box);
            }
        }
    }
    for (; *stray; stray++) {
        struct box box = {{0, 0}, {4, 1}};
        mem = mem_grow(mem, n + 1, sizeof(*mem));
        mem[n++] = (struct box_mem){data, DTYPE_F32, box, 1};
        ckpt_shard_add(shard, *stray, "stray", 1, (int64_t[]){4}, DTYPE_F32, box);
    }
    int code = ckpt_shard_begin(shard, e);
    if (!code)
        code = ckpt_shard_write_all(shard, mem, 1, e);
    if (!code)
        code = ckpt_shard_end(shard, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    buf_finish(&fragment);
    ckpt_shard_destroy(shard);
    free(mem);
    return code;
}

static int save(const char *dir, int64_t iteration, char **stray, struct err *e)
{
    struct spec s = tiny();
    struct params p;
    struct ckpt_writer *w;
    struct buf model = {0};
    int code = params_build(&p, &s, layout_plain(mesh_single()), 0, e);
    if (code)
        return code;
    float *data = mem_new((size_t)p.elements * GROUPS, sizeof(*data));
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < p.n; i++)
            param_init_rows(&p.at[i], (uint64_t)(iteration * 3 + g), 0, p.at[i].size[0],
                            data + g * p.elements + p.at[i].offset);
    spec_to_json(&s, &model);
    struct ckpt_pair kernels = {"matmul", "plain"}, state = {"optimizer_steps", "12"};
    struct ckpt_meta meta = {.iteration = iteration,
                             .consumed_samples = iteration * 1024,
                             .model = buf_str(&model),
                             .tokenizer_type = "NullTokenizer",
                             .vocab_size = 100,
                             .eod = 99,
                             .kernels = &kernels,
                             .nkernels = 1,
                             .state = &state,
                             .nstate = 1};
    code = ckpt_writer_open(dir, iteration, &w, e);
    if (!code) {
        code = put_all(w, &p, data, stray, e);
        if (!code)
            code = ckpt_put_bytes(w, "config.toml", "[model]\n", 8, e);
        if (!code)
            code = ckpt_commit(w, &meta, e);
        ckpt_writer_close(w);
    }
    buf_finish(&model);
    free(data);
    params_finish(&p);
    return code;
}

/* A shard of the two. */
static int put_two(struct ckpt_writer *w, int64_t rows, struct err *e)
{
    enum { COLS = 7 };
    float *data = mem_new((size_t)rows * COLS, sizeof(*data));
    const int64_t matrix[2] = {rows, COLS}, vector[2] = {COLS, 1};
    struct box_mem mem[2] = {{data, DTYPE_F32, {{0, 0}, {rows, COLS}}, COLS},
                             {data + 3, DTYPE_F32, {{0, 0}, {COLS, 1}}, 1}};
    struct ckpt_shard *s;
    struct buf fragment = {0};
    for (int64_t i = 0; i < rows * COLS; i++)
        data[i] = (float)(i * i % 1000003) / 8;
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &s);
    ckpt_shard_add(s, CKPT_PARAM, "a", 2, matrix, DTYPE_F32, mem[0].box);
    ckpt_shard_add(s, CKPT_PARAM, "b", 1, vector, DTYPE_F32, mem[1].box);
    int code = ckpt_shard_begin(s, e);
    if (!code)
        code = ckpt_shard_write_all(s, mem, 1, e);
    if (!code)
        code = ckpt_shard_end(s, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    buf_finish(&fragment);
    ckpt_shard_destroy(s);
    free(data);
    return code;
}

static int save_two(const char *dir, int64_t iteration, int64_t rows, struct err *e)
{
    const struct ckpt_meta meta = {.iteration = iteration, .model = "{}", .eod = -1};
    struct ckpt_writer *w;
    int code = ckpt_writer_open(dir, iteration, &w, e);
    if (code)
        return code;
    code = put_two(w, rows, e);
    if (!code)
        code = ckpt_put_bytes(w, "config.toml", "[model]\n", 8, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    ckpt_writer_close(w);
    return code;
}

/* A range of zeros adds nothing to a sum, and nobody writes it. */
static int put_zeros(struct ckpt_writer *w, const struct hf_map *m, struct err *e)
{
    enum { AT_ONCE = 64 << 20 };
    char *zeros = mem_new(AT_ONCE, 1);
    struct ckpt_shard *s;
    struct buf fragment = {0};
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &s);
    for (size_t i = 0; i < m->globals; i++) {
        const struct hf_global *g = &m->global[i];
        ckpt_shard_add(s, CKPT_PARAM, g->name, g->rank, g->size, DTYPE_BF16,
                       box_whole(g->rank, g->size));
    }
    int code = ckpt_shard_begin(s, e);
    for (size_t i = 0; !code && i < m->globals; i++) {
        uint64_t n = (uint64_t)(m->global[i].size[0] * m->global[i].size[1]) * 2;
        for (uint64_t at = 0, k; at < n; at += k) {
            k = n - at < AT_ONCE ? n - at : AT_ONCE;
            ckpt_shard_keep(s, i, at, zeros, (size_t)k);
        }
    }
    if (!code)
        code = ckpt_shard_end(s, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    buf_finish(&fragment);
    ckpt_shard_destroy(s);
    free(zeros);
    return code;
}

static int save_hollow(const char *dir, const char *config, struct err *e)
{
    static struct hf_model h;
    struct hf_map m;
    struct buf model = {0};
    struct ckpt_writer *w;
    int code = hf_config_open(config, NULL, &h, e);
    if (code)
        return code;
    code = ckpt_writer_open(dir, 0, &w, e);
    if (code)
        return code;
    hf_map_build(&m, &h, HF_EXPERTS_SINGLE);
    spec_to_json(&h.spec, &model);
    const struct ckpt_meta meta = {.model = buf_str(&model), .eod = -1};
    code = put_zeros(w, &m, e);
    if (!code)
        code = ckpt_put_file(w, "config.json", config, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    ckpt_writer_close(w);
    buf_finish(&model);
    hf_map_finish(&m);
    return code;
}

static int read_back(const char *path, struct err *e)
{
    struct st_file s;
    struct map m;
    int code = st_open(&s, path, e);
    if (code)
        return code;
    code = map_open(&m, path, e);
    for (size_t i = 0; !code && i < s.n; i++) {
        const struct st_entry *t = &s.entry[i];
        char digest[XXH_TEXT];
        xxh_once(m.data + s.data_at + t->begin, t->end - t->begin, digest);
        printf("%s %s ", t->name, t->dtype_name);
        for (int d = 0; d < t->rank; d++)
            printf(d ? ",%lld" : "%lld", (long long)t->size[d]);
        printf(" %s\n", digest);
    }
    if (!code)
        map_close(&m);
    st_close(&s);
    return code;
}

static int seal(const char *path, struct err *e)
{
    static const char tail[] = "\"xxh3_128\": \"";
    struct buf b = {0};
    int code = file_read(path, 1 << 24, &b, e);
    if (!code && b.len > sizeof(tail) + XXH_TEXT + 3) {
        size_t at = b.len - (sizeof(tail) - 1) - (XXH_TEXT - 1) - 4;
        xxh_once(b.data, at, b.data + at + sizeof(tail) - 1);
        b.data[b.len - 4] = '"'; /* the digits end in a NUL */
        code = file_replace(path, b.data, b.len, e);
    }
    buf_finish(&b);
    return code;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    int code;
    if (argc >= 4 && !strcmp(argv[1], "save"))
        code = save(argv[2], strtoll(argv[3], NULL, 10), argv + 4, &e);
    else if (argc >= 4 && !strcmp(argv[1], "two"))
        code = save_two(argv[2], strtoll(argv[3], NULL, 10),
                        argc > 4 ? strtoll(argv[4], NULL, 10) : 300, &e);
    else if (argc == 4 && !strcmp(argv[1], "hollow"))
        code = save_hollow(argv[2], argv[3], &e);
    else if (argc == 3 && !strcmp(argv[1], "read"))
        code = read_back(argv[2], &e);
    else if (argc == 3 && !strcmp(argv[1], "seal"))
        code = seal(argv[2], &e);
    else
        code = err_set(&e, ERR_USAGE,
                       "ckpt_make save DIR ITERATION [GROUP...] | two DIR ITERATION [ROWS] | "
                       "hollow DIR CONFIG | "
                       "read FILE | seal MANIFEST");
    return code ? log_err(&e) : 0;
}
