/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_CKPT_SAMPLE_H
#define TESTS_TRAIN_CKPT_SAMPLE_H

/*
 * A small checkpoint with all there can be: matrices and vectors, a tensor in several boxes,
 * moments, further files. Its values are a function of the iteration.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/shard.h"

struct sample_tensor {
    const char *name;
    int rank;
    int64_t size[2];
};

static const struct sample_tensor sample_tensors[] = {
    {"embed.weight", 2, {5, 7}},
    {"norm.bias", 1, {9, 1}},
    {"layers.0.attn.q.weight", 2, {6, 4}}, /* put in three boxes */
    {"layers.0.none.weight", 2, {0, 4}},
};

enum { SAMPLE_TENSORS = 4, SAMPLE_MAX = 64, SAMPLE_GROUPS = 3 };

static const char *const sample_groups[SAMPLE_GROUPS] = {CKPT_PARAM, CKPT_EXP_AVG, CKPT_EXP_AVG_SQ};

static inline float sample_value(int64_t iteration, int group, int tensor, int64_t i)
{
    return (float)iteration + (float)(group * 1000 + tensor * 100) + (float)i * 0.25f;
}

static inline void sample_fill(float *to, int64_t iteration, int group, int tensor)
{
    for (int64_t i = 0; i < SAMPLE_MAX; i++)
        to[i] = sample_value(iteration, group, tensor, i);
}

/* The boxes of one rank of `ranks`: all of them, or each its share. */
static inline int sample_put(struct ckpt_writer *w, int64_t iteration, int rank, int ranks,
                             struct err *e)
{
    static const struct box cut[3] = {{{0, 0}, {2, 4}}, {{2, 0}, {4, 1}}, {{2, 1}, {4, 3}}};
    static float data[SAMPLE_GROUPS][SAMPLE_TENSORS][SAMPLE_MAX];
    struct box_mem mem[SAMPLE_GROUPS * SAMPLE_TENSORS * 3];
    struct ckpt_shard *shard;
    struct buf fragment = {0};
    int n = 0;
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){.rank = rank}, &shard);
    for (int g = 0; g < SAMPLE_GROUPS; g++) {
        for (int t = 0; t < SAMPLE_TENSORS; t++) {
            const struct sample_tensor *s = &sample_tensors[t];
            sample_fill(data[g][t], iteration, g, t);
            struct box whole = box_whole(s->rank, s->size);
            int64_t cols = whole.count[1];
            for (int k = 0; k < (t == 2 ? 3 : 1); k++) {
                struct box b = t == 2 ? cut[k] : whole;
                struct box_mem m = {data[g][t] + b.begin[0] * cols + b.begin[1], DTYPE_F32, b,
                                    cols};
                if ((t + k) % ranks != rank)
                    continue;
                ckpt_shard_add(shard, sample_groups[g], s->name, s->rank, s->size, DTYPE_F32, b);
                mem[n++] = m;
            }
        }
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
    return code;
}

static inline struct ckpt_meta sample_meta(int64_t iteration)
{
    static const struct ckpt_pair kernels[] = {{"matmul", "openblas 0.3.21"}};
    static const struct ckpt_pair state[] = {{"steps", "17"}, {"quote\"", "a\\b\n"}};
    return (struct ckpt_meta){.iteration = iteration,
                              .consumed_samples = iteration * 16,
                              .model = "{\"num-layers\": 2, \"norm-epsilon\": 1e-05, \"tied\": "
                                       "true, \"list\": [1, \"x\", null]}",
                              .tokenizer_type = "SentencePieceTokenizer",
                              .tokenizer_digest = "00ff",
                              .tokenizer_meaning = "model=BPE size=9",
                              .vocab_size = 2000,
                              .eod = 7,
                              .kernels = kernels,
                              .nkernels = 1,
                              .state = state,
                              .nstate = 2};
}

static inline int sample_save_ranks(const char *dir, int64_t iteration, int ranks, struct err *e)
{
    struct ckpt_writer *w;
    struct ckpt_meta meta = sample_meta(iteration);
    int code = ckpt_writer_open(dir, iteration, &w, e);
    if (code)
        return code;
    for (int r = 0; !code && r < ranks; r++)
        code = sample_put(w, iteration, r, ranks, e);
    if (!code)
        code = ckpt_put_bytes(w, "config.toml", "[model]\n", 8, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    ckpt_writer_close(w);
    return code;
}

static inline int sample_save(const char *dir, int64_t iteration, struct err *e)
{
    return sample_save_ranks(dir, iteration, 1, e);
}

/* Every value of every tensor. */
static inline void sample_check(struct ckpt *c, int64_t iteration)
{
    struct err e;
    T_EQ(ckpt_meta(c)->iteration, iteration);
    for (int g = 0; g < SAMPLE_GROUPS; g++) {
        for (int t = 0; t < SAMPLE_TENSORS; t++) {
            const struct sample_tensor *s = &sample_tensors[t];
            float want[SAMPLE_MAX], got[SAMPLE_MAX] = {0};
            struct box whole = box_whole(s->rank, s->size);
            struct box_mem to = {got, DTYPE_F32, whole, whole.count[1]};
            sample_fill(want, iteration, g, t);
            T_OK(ckpt_read_box(c, sample_groups[g], s->name, s->rank, s->size, to, &e), &e);
            T_MEM(got, want, (size_t)box_count(whole) * sizeof(float));
        }
    }
}

/* Writes over `n` bytes at `at` of a file of a checkpoint. */
static inline void sample_flip(const char *path, long at, int bits)
{
    FILE *f = fopen(path, "r+b");
    T_CHECK(f != NULL);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ bits, f);
    T_CHECK(fclose(f) == 0);
}

#endif
