/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/step.h"

static struct rank a, b;

/* Steps on batches that follow from the cursor alone, as the loader's do. */
static void steps(struct rank *r, int n)
{
    for (int i = 0; i < n; i++) {
        struct batch in;
        tiny_batch(&in, (uint64_t)r->at.consumed);
        in.first = (uint64_t)r->at.consumed;
        tiny_values(r, lr_at(&r->config.lr, r->at.scheduled), 0.01, r->at.steps + 1);
        tiny_loss(r, &in, true);
        step_issue_update(r);
        r->at.iteration++;
        r->at.steps++;
        r->at.consumed += TINY_ROWS;
        r->at.scheduled += TINY_ROWS;
        batch_finish(&in);
    }
}

static void save(struct rank *r, const char *dir)
{
    struct err e;
    struct ckpt_writer *w;
    struct state_pairs pairs;
    struct buf model = {0};
    state_pairs(r, &pairs);
    spec_to_json(&r->config.spec, &model);
    struct ckpt_meta m = {.iteration = r->at.iteration,
                          .consumed_samples = r->at.consumed,
                          .model = buf_str(&model),
                          .eod = -1,
                          .state = pairs.pair,
                          .nstate = pairs.n};
    T_OK(ckpt_writer_open(dir, r->at.iteration, &w, &e), &e);
    T_OK(state_save(r, w, 1, &e), &e);
    T_OK(ckpt_commit(w, &m, &e), &e);
    ckpt_writer_close(w);
    buf_finish(&model);
}

/* The checkpoint is that of the moment of the snapshot, whatever the rank does until it is written.
 */
static void save_from_snapshot(struct rank *r, const char *dir)
{
    struct err e;
    struct ckpt_writer *w;
    struct state_pairs pairs;
    struct buf model = {0};
    state_pairs(r, &pairs);
    spec_to_json(&r->config.spec, &model);
    struct ckpt_meta m = {.iteration = r->at.iteration,
                          .consumed_samples = r->at.consumed,
                          .model = buf_str(&model),
                          .eod = -1,
                          .state = pairs.pair,
                          .nstate = pairs.n};
    T_OK(ckpt_writer_open(dir, r->at.iteration, &w, &e), &e);
    T_OK(save_snapshot(r, w, &e), &e);
    steps(r, 1);
    T_OK(save_start(r, &e), &e);
    steps(r, 1);
    T_OK(save_end(r, w, &e), &e);
    T_CHECK(save_is_written(r));
    T_OK(ckpt_commit(w, &m, &e), &e);
    ckpt_writer_close(w);
    buf_finish(&model);
}

static void same_bytes(struct tensor x, struct tensor y)
{
    T_MEM(x.data, y.data, tensor_bytes(x));
}

static void check_resume(struct spec spec, const char *name)
{
    struct err e;
    struct ckpt *c;
    struct rank_config config = tiny_config(spec, DTYPE_F32);
    T_OK(rank_open(&a, &config, &e), &e);
    steps(&a, 3);
    save(&a, t_path(name));
    steps(&a, 3);

    config.seed = 99; /* other initial weights, which the checkpoint must replace */
    T_OK(rank_open(&b, &config, &e), &e);
    T_OK(ckpt_open_newest(t_path(name), &c, NULL, &e), &e);
    T_OK(state_same_model(c, &spec, &e), &e);
    T_OK(state_load(&b, c, true, &e), &e);
    T_EQ(b.at.iteration, 3);
    b.config.seed = a.config.seed;
    steps(&b, 3);
    T_MEM(&a.at, &b.at, sizeof(a.at));
    same_bytes(a.zero.weights, b.zero.weights);
    same_bytes(a.optim.state[0], b.optim.state[0]);
    same_bytes(a.optim.state[1], b.optim.state[1]);
    ckpt_close(c);
    rank_close(&a);
    rank_close(&b);
}

static void gpt_resumes_bit_for_bit(void)
{
    struct spec s = tiny_gpt();
    s.hidden_dropout = s.attention_dropout = 0.1;
    check_resume(s, "gpt");
}

static void llama_resumes_bit_for_bit(void)
{
    check_resume(tiny_llama(), "llama");
}

static void weights_alone_start_at_nothing(void)
{
    struct err e;
    struct ckpt *c;
    struct rank_config config = tiny_config(tiny_gpt(), DTYPE_F32);
    T_OK(rank_open(&a, &config, &e), &e);
    steps(&a, 2);
    save(&a, t_path("finetune"));
    T_OK(rank_open(&b, &config, &e), &e);
    T_OK(ckpt_open_newest(t_path("finetune"), &c, NULL, &e), &e);
    T_OK(state_load(&b, c, false, &e), &e);
    T_EQ(b.at.iteration, 0);
    T_EQ(b.at.consumed, 0);
    same_bytes(a.zero.weights, b.zero.weights);
    T_EQ(((const float *)b.optim.state[0].data)[0], 0);
    ckpt_close(c);
    rank_close(&a);
    rank_close(&b);
}

static void another_model_is_refused_by_name(void)
{
    struct err e;
    struct ckpt *c;
    struct spec other = tiny_gpt();
    struct rank_config config = tiny_config(tiny_gpt(), DTYPE_F32);
    T_OK(rank_open(&a, &config, &e), &e);
    save(&a, t_path("other"));
    T_OK(ckpt_open_newest(t_path("other"), &c, NULL, &e), &e);
    other.hidden_dropout = 0.5; /* may change between runs */
    T_OK(state_same_model(c, &other, &e), &e);
    other.ffn = 24;
    T_ERR(state_same_model(c, &other, &e), &e, ERR_USAGE, "ffn");
    ckpt_close(c);
    rank_close(&a);
}

static void a_snapshot_is_what_was_there(void)
{
    struct err e;
    struct ckpt *c;
    struct rank_config config = tiny_config(tiny_gpt(), DTYPE_F32);
    config.async_save = true;
    T_OK(rank_open(&a, &config, &e), &e);
    T_OK(rank_open(&b, &config, &e), &e);
    T_EQ(a.slab[SLAB_SNAPSHOT].peak, (save_bytes(&a) + 255) / 256 * 256);
    steps(&a, 3);
    steps(&b, 3);
    save_from_snapshot(&a, t_path("snapshot"));
    T_EQ(a.at.iteration, 5);
    T_OK(ckpt_open_newest(t_path("snapshot"), &c, NULL, &e), &e);
    T_OK(state_load(&a, c, true, &e), &e);
    ckpt_close(c);
    T_MEM(&a.at, &b.at, sizeof(a.at));
    same_bytes(a.zero.weights, b.zero.weights);
    same_bytes(a.optim.state[0], b.optim.state[0]);
    rank_close(&a);
    rank_close(&b);
}

T_MAIN(T_CASE(a_snapshot_is_what_was_there), T_CASE(gpt_resumes_bit_for_bit),
       T_CASE(llama_resumes_bit_for_bit), T_CASE(weights_alone_start_at_nothing),
       T_CASE(another_model_is_refused_by_name))
