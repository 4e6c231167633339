/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/mem.h"
#include "tests/train/tiny.h"
#include "train/engine/state.h"

/*
 * hf_logits CHECKPOINT ID...: the logits of one sequence of ids, in fp32, as raw little-endian
 * numbers on standard output, for tests/interop/hf.py.
 */

int main(int argc, char **argv)
{
    static struct rank r;
    struct ckpt *c;
    struct spec s;
    struct batch b;
    struct err e;
    uint32_t n = (uint32_t)(argc > 2 ? argc - 2 : 0);
    if (!n)
        return 2;
    int code = ckpt_open(argv[1], &c, &e);
    if (!code)
        code = spec_from_manifest(ckpt_model(c), ckpt_must_know(c), argv[1], &s, &e);
    if (!code)
        code = spec_can_run(&s, argv[1], &e);
    if (!code) {
        s.padded_vocab = spec_pad_vocab(s.vocab, 128, 1);
        s.hidden_dropout = s.attention_dropout = 0;
        struct rank_config config = tiny_config(s, DTYPE_F32);
        config.micro_batch = 1;
        config.seq_length = n;
        code = rank_open(&r, &config, &e);
    }
    if (!code)
        code = state_load(&r, c, false, &e);
    if (code) {
        fprintf(stderr, "%s\n", e.msg);
        return code;
    }
    batch_init(&b, 1, n);
    for (uint32_t i = 0; i < n; i++) {
        b.tokens[i] = b.labels[i] = atoi(argv[i + 2]);
        b.loss_mask[i] = 1;
    }
    tiny_loss(&r, &b, false);
    float *logits = mem_new(n * (size_t)s.vocab, sizeof(*logits));
    model_logits(&r.model, 0, (int64_t)n, tensor_2d(logits, DTYPE_F32, (int64_t)n, s.vocab));
    fwrite(logits, sizeof(*logits), n * (size_t)s.vocab, stdout);
    free(logits);
    batch_finish(&b);
    rank_close(&r);
    ckpt_close(c);
    return 0;
}
