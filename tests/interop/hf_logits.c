/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/train/tiny.h"
#include "train/engine/state.h"

/*
 * hf_logits [-g FOLDER] CHECKPOINT ID...: the logits of one sequence of ids, in fp32, as raw
 * little-endian numbers on standard output, for tests/interop/hf.py. With -g also, in the folder,
 * the mean loss of each id's successor as text (loss) and its gradients as raw numbers (g.NAME for
 * every global tensor), without a router's losses.
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

static void put_gradients(const struct rank *r, const char *dir, double loss)
{
    char text[40];
    put(dir, "loss", text, (size_t)snprintf(text, sizeof(text), "%.17g", loss));
    for (int i = 0; i < r->params.n; i++)
        for (int k = 0; k < r->params.at[i].sources; k++) {
            const struct param *p = &r->params.at[i];
            const struct param_source *s = &p->source[k];
            int64_t cols = p->rank == 2 ? p->size[1] : 1;
            char *name = mem_printf("g.%s", s->name);
            put(dir, name, (const float *)r->zero.grads.data + p->offset + s->row * cols,
                (size_t)(s->size[0] * cols) * sizeof(float));
            free(name);
        }
}

static int open_model(struct rank *r, const char *path, uint32_t n, struct ckpt **ret,
                      struct err *e)
{
    struct spec s;
    int code = ckpt_open(path, ret, e);
    if (!code)
        code = spec_from_manifest(ckpt_model(*ret), ckpt_must_know(*ret), path, &s, e);
    if (!code)
        code = spec_can_run(&s, path, e);
    if (code)
        return code;
    s.padded_vocab = spec_pad_vocab(s.vocab, 128, 1);
    s.hidden_dropout = s.attention_dropout = 0;
    s.balance_coeff = s.z_coeff = 0;
    struct rank_config config = tiny_config(s, DTYPE_F32);
    config.micro_batch = 1;
    config.seq_length = n;
    code = rank_open(r, &config, e);
    return code ? code : state_load(r, *ret, false, e);
}

int main(int argc, char **argv)
{
    static struct rank r;
    struct ckpt *c = NULL;
    struct batch b;
    struct err e;
    const char *gradients = argc > 3 && !strcmp(argv[1], "-g") ? argv[2] : NULL;
    char **id = argv + (gradients ? 4 : 2);
    uint32_t n = (uint32_t)(argv + argc > id ? argv + argc - id : 0);
    if (!n)
        return 2;
    int code = open_model(&r, id[-1], n, &c, &e);
    if (code) {
        fprintf(stderr, "%s\n", e.msg);
        return code;
    }
    batch_init(&b, 1, n);
    for (uint32_t i = 0; i < n; i++) {
        b.tokens[i] = atoi(id[i]);
        b.labels[i] = i + 1 < n ? atoi(id[i + 1]) : 0;
        b.loss_mask[i] = i + 1 < n;
    }
    double loss = tiny_loss(&r, &b, gradients != NULL);
    size_t vocab = (size_t)r.config.spec.vocab;
    float *logits = mem_new(n * vocab, sizeof(*logits));
    model_logits(&r.model, 0, (int64_t)n, tensor_2d(logits, DTYPE_F32, (int64_t)n, (int64_t)vocab));
    fwrite(logits, sizeof(*logits), n * vocab, stdout);
    if (gradients)
        put_gradients(&r, gradients, loss);
    free(logits);
    batch_finish(&b);
    rank_close(&r);
    ckpt_close(c);
    return 0;
}
