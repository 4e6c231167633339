/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/train/tiny.h"

/*
 * model_dump FAMILY FOLDER: one micro-batch through a tiny model in fp32, for
 * tests/interop/model.py. FOLDER gets meta.json and, as raw little-endian numbers: ids, labels
 * (i32), mask, logits (f32), and w.NAME, g.NAME for every global tensor.
 */

static void put(const char *dir, const char *name, const void *p, size_t bytes)
{
    struct err e;
    char *path = path_join(dir, name);
    if (file_replace(path, p, bytes, &e)) {
        fprintf(stderr, "%s\n", e.msg);
        exit(1);
    }
    free(path);
}

static void put_params(const struct rank *r, const char *dir, const char *prefix,
                       struct tensor flat, struct buf *meta)
{
    for (int i = 0; i < r->params.n; i++)
        for (int k = 0; k < r->params.at[i].sources; k++) {
            const struct param *p = &r->params.at[i];
            const struct param_source *s = &p->source[k];
            int64_t cols = p->rank == 2 ? p->size[1] : 1, rows = s->size[0];
            char name[80];
            snprintf(name, sizeof(name), "%s.%s", prefix, s->name);
            put(dir, name, (const float *)flat.data + p->offset + s->row * cols,
                (size_t)(rows * cols) * sizeof(float));
            if (prefix[0] == 'w')
                buf_addf(meta, "%s\"%s\": [%lld, %lld]", meta->len > 1 ? ", " : "", s->name,
                         (long long)rows, (long long)(p->rank == 2 ? cols : 0));
        }
}

int main(int argc, char **argv)
{
    static struct rank r;
    struct err e;
    struct batch b;
    if (argc != 3)
        return 2;
    struct spec s = strcmp(argv[1], "llama") ? tiny_gpt() : tiny_llama();
    if (!strcmp(argv[1], "gpt-erf"))
        s.act = SPEC_GELU_ERF;
    struct rank_config c = tiny_config(s, DTYPE_F32);
    if (rank_open(&r, &c, &e)) {
        fprintf(stderr, "%s\n", e.msg);
        return 1;
    }
    /* vectors start as ones and zeros, which would hide mistakes */
    for (int i = 0; i < r.params.n; i++)
        for (int64_t k = 0; r.params.at[i].rank == 1 && k < r.params.at[i].count; k++)
            ((float *)r.zero.weights.data)[r.params.at[i].offset + k] += 0.01f * (float)(k % 7);
    tiny_batch(&b, 21);
    double loss = tiny_loss(&r, &b, true);

    size_t n = TINY_ROWS * TINY_LENGTH;
    float *logits = mem_new(n * TINY_VOCAB, sizeof(*logits));
    struct tensor t = tensor_2d(logits, DTYPE_F32, (int64_t)n, TINY_VOCAB);
    model_logits(&r.model, 0, (int64_t)n, t);

    struct buf meta = {0}, names = {0};
    buf_addc(&names, '{');
    put_params(&r, argv[2], "w", r.zero.weights, &names);
    put_params(&r, argv[2], "g", r.zero.grads, &names);
    spec_to_json(&s, &meta);
    put(argv[2], "spec.json", meta.data, meta.len);
    buf_reset(&meta);
    buf_addf(&meta, "{\"loss\": %.17g, \"rows\": %d, \"length\": %d, \"tensors\": %s}}", loss,
             TINY_ROWS, TINY_LENGTH, buf_str(&names));
    put(argv[2], "meta.json", meta.data, meta.len);
    put(argv[2], "ids", b.tokens, n * sizeof(int32_t));
    put(argv[2], "labels", b.labels, n * sizeof(int32_t));
    put(argv[2], "mask", b.loss_mask, n * sizeof(float));
    put(argv[2], "logits", logits, n * TINY_VOCAB * sizeof(float));
    buf_finish(&meta);
    buf_finish(&names);
    free(logits);
    batch_finish(&b);
    rank_close(&r);
    return 0;
}
