/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Training on a GPU against the CPU: the same tiny models, batches and dropout masks, three steps
 * of two micro-batches; checkpoints; decoding.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/generate.h"
#include "train/engine/state.h"
#include "train/engine/step.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

enum { MICROS = 2, STEPS = 3 };

static const struct rank_backends cuda = {.name = "cuda",
                                          .describe_device = dev_cuda_describe,
                                          .open_device = dev_cuda_start,
                                          .init_ops = ops_cuda_open};

static struct rank cpu, gpu, again;

/* epsilon is large enough that a gradient of nothing but rounding (that of the keys' biases is 0)
 * moves no weight. */
static struct rank_config config_of(struct spec spec, bool on_gpu)
{
    struct rank_config c = tiny_config(spec, DTYPE_F32);
    c.micros = MICROS;
    c.eps = 1e-3;
    if (on_gpu)
        c.backends = &cuda;
    return c;
}

static void open_rank(struct rank *r, const struct rank_config *c)
{
    struct err e;
    struct dev d;
    if (c->backends == &cuda) {
        if (dev_cuda_open(&d, 0, &e))
            t_skip("%s", e.msg);
        dev_close(&d);
    }
    T_OK(rank_open(r, c, &e), &e);
}

struct outcome {
    double loss, norm;
    int32_t skip;
};

/* A step on batches that follow from the cursor alone, of the loss times `scale`; rows fall into
 * documents if `cut`. The cursor stays. */
static struct outcome attempt(struct rank *r, bool cut, double scale)
{
    struct err e;
    struct outcome ret = {0};
    op_fill(&r->ops, &(struct fill_args){.y = r->zero.grads, .value = 0});
    op_fill(&r->ops, &(struct fill_args){.y = r->totals, .value = 0});
    tiny_values(r, lr_at(&r->config.lr, r->at.scheduled), 0.01, r->at.steps + 1);
    for (int64_t i = 0; i < MICROS; i++) {
        struct batch in;
        tiny_batch(&in, (uint64_t)(r->at.consumed + i * TINY_ROWS));
        in.first = (uint64_t)(r->at.consumed + i * TINY_ROWS);
        for (int k = 0; k < TINY_ROWS * TINY_LENGTH; k++)
            in.position[k] = k % TINY_LENGTH;
        in.nstretch = TINY_ROWS;
        for (int k = 0; k <= TINY_ROWS; k++)
            in.start[k] = k * TINY_LENGTH;
        if (cut) { /* the first row in two */
            in.nstretch = TINY_ROWS + 1;
            for (int k = TINY_ROWS + 1; k > 1; k--)
                in.start[k] = in.start[k - 1];
            in.start[1] = 4;
        }
        tiny_micro(r, &in, 0.05 * scale);
        batch_finish(&in); /* the copies must not need it any more */
    }
    step_issue_update(r);
    rank_fetch(r, r->host_totals, r->totals);
    rank_fetch(r, &ret.norm, r->optim.norm);
    rank_fetch(r, &ret.skip, r->optim.skip);
    T_OK(dev_fault(&r->dev, &e), &e);
    ret.loss = r->host_totals[0];
    return ret;
}

static struct outcome step(struct rank *r, bool cut)
{
    struct outcome ret = attempt(r, cut, 1);
    T_EQ(ret.skip, 0);
    r->at.iteration++;
    r->at.steps++;
    r->at.consumed += MICROS * TINY_ROWS;
    r->at.scheduled += MICROS * TINY_ROWS;
    return ret;
}

static float *fetch(struct rank *r, struct tensor t)
{
    float *p = mem_new(1, tensor_bytes(t));
    rank_fetch(r, p, t);
    return p;
}

static double distance(const float *a, const float *b, int64_t n)
{
    double d = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    return sqrt(d / (size > 0 ? size : 1));
}

/* Relative to the norm of the parameter. */
static void near(const char *what, struct tensor a, struct tensor b, double tolerance)
{
    float *x = fetch(&gpu, a), *y = fetch(&cpu, b);
    for (int i = 0; i < cpu.params.n; i++) {
        const struct param *p = &cpu.params.at[i];
        double d = distance(x + p->offset, y + p->offset, p->count);
        if (!(d <= tolerance))
            t_fail(__FILE__, __LINE__, "%s of %s differ by %g", what, p->source[0].name, d);
    }
    free(x);
    free(y);
}

static void steps_by(enum optim_kind optimizer, struct spec spec, bool cut)
{
    struct rank_config there = config_of(spec, true), here = config_of(spec, false);
    there.optimizer = here.optimizer = optimizer;
    there.momentum = here.momentum = 0.9;
    there.tuning = here.tuning = (struct optim_tuning){
        .muon.momentum = 0.95, .muon.extra = 0.2, .muon.nesterov = true, .muon.steps = 5};
    there.documents = here.documents = cut;
    open_rank(&gpu, &there);
    open_rank(&cpu, &here);
    for (int i = 0; i < STEPS; i++) {
        struct outcome a = step(&gpu, cut), b = step(&cpu, cut);
        T_NEAR(a.loss, b.loss, 1e-5 * b.loss);
        T_NEAR(a.norm, b.norm, 1e-5 * b.norm);
        near("weights", gpu.zero.weights, cpu.zero.weights, 1e-5);
    }
    rank_close(&gpu);
    rank_close(&cpu);
}

static void steps_equal(struct spec spec, bool cut)
{
    steps_by(OPTIM_ADAM, spec, cut);
}

static struct spec dropped(struct spec s)
{
    s.hidden_dropout = s.attention_dropout = 0.1;
    return s;
}

static void gpt_equals_the_cpu(void)
{
    steps_equal(dropped(tiny_gpt()), false);
}

static void llama_equals_the_cpu(void)
{
    steps_equal(tiny_llama(), false);
}

static void documents_equal_the_cpu(void)
{
    steps_equal(tiny_llama(), true);
}

static void same(struct rank *x, struct tensor a, struct rank *y, struct tensor b)
{
    float *p = fetch(x, a), *q = fetch(y, b);
    T_MEM(p, q, tensor_bytes(a));
    free(p);
    free(q);
}

static void same_state(struct rank *x, struct rank *y)
{
    same(x, rank_master(x), y, rank_master(y));
    same(x, x->zero.weights, y, y->zero.weights);
    same(x, x->optim.state[0], y, y->optim.state[0]);
    same(x, x->optim.state[1], y, y->optim.state[1]);
    T_MEM(&x->at, &y->at, sizeof(x->at));
}

static void each_optimizer_equals_the_cpu(void)
{
    for (int k = OPTIM_SGD; k < OPTIM_KINDS; k++) {
        steps_by((enum optim_kind)k, dropped(tiny_gpt()), false);
        steps_by((enum optim_kind)k, tiny_llama(), false);
    }
}

/* ---- bf16 and fp16
 * -------------------------------------------------------------------------------------
 */

/* Heads that the tensor cores take. */
static struct spec widened(struct spec s)
{
    s.head_dim = 8;
    s.hidden = s.heads * s.head_dim;
    s.ffn = 40;
    s.init_std = 0.1; /* scores of a few, as a model has them */
    return s;
}

static void round_weights(struct rank *r, enum dtype type)
{
    size_t n = (size_t)tensor_count(r->zero.weights);
    uint16_t *narrow = mem_new(n, sizeof(*narrow));
    box_cast(narrow, type, r->zero.weights.data, DTYPE_F32, (int64_t)n);
    box_cast(r->zero.weights.data, DTYPE_F32, narrow, type, (int64_t)n);
    free(narrow);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The first step's gradients against fp32's of the same rounded weights: of each parameter whose
 * norm counts by their angle and norm, of the others by the difference. */
static void gradients_near(enum dtype type, struct spec spec, bool cut)
{
    struct rank_config there = config_of(spec, true), here = config_of(spec, false);
    there.documents = here.documents = cut;
    there.real = type;
    open_rank(&gpu, &there);
    open_rank(&cpu, &here);
    round_weights(&cpu, type);
    double scale = type == DTYPE_F16 ? 1024 : 1; /* small numbers have few digits in fp16 */
    struct outcome a = attempt(&gpu, cut, scale), b = attempt(&cpu, cut, 1);
    T_EQ(a.skip, 0);
    T_NEAR(a.loss, b.loss, 1e-2 * b.loss);
    T_NEAR(a.norm / scale, b.norm, 1e-2 * b.norm);
    float *x = fetch(&gpu, gpu.zero.grads), *y = fetch(&cpu, cpu.zero.grads);
    for (int64_t i = 0; i < cpu.params.elements; i++)
        x[i] = (float)((double)x[i] / scale);
    double all = sqrt(dot(y, y, cpu.params.elements));
    for (int i = 0; i < cpu.params.n; i++) {
        const struct param *p = &cpu.params.at[i];
        const float *u = x + p->offset, *v = y + p->offset;
        double uu = sqrt(dot(u, u, p->count)), vv = sqrt(dot(v, v, p->count));
        double cosine = dot(u, v, p->count) / (uu * vv);
        bool good = vv > 1e-3 * all ? cosine > 0.999 && fabs(uu / vv - 1) < 0.01
                                    : distance(u, v, p->count) * vv < 1e-3 * all;
        if (!good)
            t_fail(__FILE__, __LINE__, "%s: cosine %.6f, norms %g and %g of %g", p->source[0].name,
                   cosine, uu, vv, all);
    }
    free(x);
    free(y);
    rank_close(&gpu);
    rank_close(&cpu);
}

static void all_near(enum dtype type)
{
    gradients_near(type, dropped(widened(tiny_gpt())), false);
    gradients_near(type, widened(tiny_llama()), false);
    gradients_near(type, widened(tiny_llama()), true);
}

static void bf16_gradients_are_near_fp32(void)
{
    all_near(DTYPE_BF16);
}

static void fp16_gradients_are_near_fp32(void)
{
    all_near(DTYPE_F16);
}

/* Gradients that overflow in fp16 skip the step: nothing has changed, and the next one is as if
 * there had been none. */
static void an_overflow_is_skipped(void)
{
    struct rank_config c = config_of(dropped(widened(tiny_gpt())), true);
    c.real = DTYPE_F16;
    open_rank(&gpu, &c);
    open_rank(&again, &c);
    T_EQ(attempt(&gpu, false, 1e9).skip, 1);
    same_state(&gpu, &again);
    T_EQ(attempt(&gpu, false, 1).skip, 0);
    T_EQ(attempt(&again, false, 1).skip, 0);
    same_state(&gpu, &again);
    rank_close(&gpu);
    rank_close(&again);
}

/* Moments, and with them gradients, in bf16: the weights stay near those of a run that keeps both
 * in fp32. */
static void moments_in_bf16(void)
{
    struct rank_config c = config_of(dropped(widened(tiny_gpt())), true);
    c.real = DTYPE_BF16;
    open_rank(&again, &c);
    c.narrow = (struct ops_narrow){.grad = true, .moment = {true, true}};
    open_rank(&gpu, &c);
    for (int i = 0; i < STEPS; i++) {
        struct outcome a = step(&gpu, false), b = step(&again, false);
        T_NEAR(a.loss, b.loss, 1e-2 * b.loss);
        T_NEAR(a.norm, b.norm, 1e-2 * b.norm);
    }
    T_EQ(gpu.zero.grads.dtype, DTYPE_BF16);
    T_EQ(gpu.optim.state[1].dtype, DTYPE_BF16);
    float *x = fetch(&gpu, gpu.optim.master), *y = fetch(&again, again.optim.master);
    T_CHECK(distance(x, y, gpu.params.elements) < 1e-3);
    free(x);
    free(y);
    rank_close(&gpu);
    rank_close(&again);
}

/* ---- checkpoints ------------------------------------------------------------------------------
 */

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

static void load(struct rank *r, const char *dir)
{
    struct err e;
    struct ckpt *c;
    T_OK(ckpt_open_newest(dir, &c, NULL, &e), &e);
    T_OK(state_load(r, c, true, &e), &e);
    ckpt_close(c);
}

static void resume(enum dtype real, const char *name)
{
    struct rank_config c = config_of(dropped(widened(tiny_gpt())), true);
    c.real = real;
    open_rank(&gpu, &c);
    step(&gpu, false);
    step(&gpu, false);
    save(&gpu, t_path(name));
    c.seed = 99; /* other initial weights, which the checkpoint must replace */
    open_rank(&again, &c);
    load(&again, t_path(name));
    again.config.seed = gpu.config.seed;
    same_state(&gpu, &again);
    step(&gpu, false);
    step(&again, false);
    same_state(&gpu, &again);
    rank_close(&gpu);
    rank_close(&again);
}

static void a_run_resumes_bit_for_bit(void)
{
    resume(DTYPE_F32, "fp32");
    resume(DTYPE_BF16, "bf16");
    resume(DTYPE_F16, "fp16");
}

static void the_cpu_takes_a_run_over(void)
{
    struct rank_config there = config_of(tiny_llama(), true), here = config_of(tiny_llama(), false);
    open_rank(&gpu, &there);
    step(&gpu, false);
    save(&gpu, t_path("moved"));
    open_rank(&cpu, &here);
    load(&cpu, t_path("moved"));
    same_state(&gpu, &cpu);
    step(&gpu, false);
    step(&cpu, false);
    near("weights", gpu.zero.weights, cpu.zero.weights, 1e-5);
    rank_close(&gpu);
    rank_close(&cpu);
}

static void run_twice(enum dtype real)
{
    struct rank_config c = config_of(dropped(widened(tiny_gpt())), true);
    c.real = real;
    open_rank(&gpu, &c);
    open_rank(&again, &c);
    for (int i = 0; i < STEPS; i++) {
        step(&gpu, false);
        step(&again, false);
        same_state(&gpu, &again);
    }
    rank_close(&gpu);
    rank_close(&again);
}

static void two_runs_give_equal_bytes(void)
{
    run_twice(DTYPE_F32);
    run_twice(DTYPE_BF16);
    run_twice(DTYPE_F16);
}

/* ---- decoding ---------------------------------------------------------------------------------
 */

static void decode(struct spec spec)
{
    static const int32_t id[] = {3, 14, 15, 9, 2, 6};
    struct err e;
    struct decoder d[2];
    struct rank *r[2] = {&gpu, &cpu};
    for (int i = 0; i < 2; i++) {
        struct rank_config c = config_of(spec, i == 0);
        c.use = MODEL_DECODE;
        c.micro_batch = c.micros = 1;
        c.seq_length = 16;
        open_rank(r[i], &c);
        decoder_init(&d[i], r[i]);
    }
    for (int n = 0; n < 6; n += n ? 1 : 3) { /* a prompt, then one at a time */
        double most = 0;
        for (int i = 0; i < 2; i++)
            T_OK(decoder_feed(&d[i], id + n, n ? 1 : 3, &e), &e);
        for (int k = 0; k < TINY_VOCAB; k++)
            most = fmax(most, fabs(d[0].host[k] - d[1].host[k]) / (1 + fabs(d[1].host[k])));
        T_CHECK(most <= 1e-5);
    }
    for (int i = 0; i < 2; i++) {
        decoder_finish(&d[i]);
        rank_close(r[i]);
    }
}

static void logits_of_a_cache_equal_the_cpu(void)
{
    decode(tiny_gpt());
    decode(tiny_llama());
}

/* The last case: the device is of no use to the process afterwards. */
static void a_fault_reaches_no_checkpoint(void)
{
    struct err e;
    struct ckpt_writer *w;
    struct rank_config c = config_of(tiny_gpt(), true);
    struct tensor nowhere = tensor_1d((void *)(uintptr_t)4096, DTYPE_F32, 1024);
    open_rank(&gpu, &c);
    op_fill(&gpu.ops, &(struct fill_args){.y = nowhere, .value = 1});
    gpu.dev.fn->sync(&gpu.dev, STREAM_COMPUTE);
    T_ERR(dev_fault(&gpu.dev, &e), &e, ERR_FAULT, "GPU 0");
    T_OK(ckpt_writer_open(t_path("fault"), 1, &w, &e), &e);
    T_ERR(state_save(&gpu, w, 1, &e), &e, ERR_FAULT, "GPU 0");
    ckpt_writer_close(w);
    rank_close(&gpu);
}

T_MAIN(T_CASE(gpt_equals_the_cpu), T_CASE(llama_equals_the_cpu), T_CASE(documents_equal_the_cpu),
       T_CASE(each_optimizer_equals_the_cpu), T_CASE(bf16_gradients_are_near_fp32),
       T_CASE(fp16_gradients_are_near_fp32), T_CASE(an_overflow_is_skipped),
       T_CASE(moments_in_bf16), T_CASE(a_run_resumes_bit_for_bit), T_CASE(the_cpu_takes_a_run_over),
       T_CASE(two_runs_give_equal_bytes), T_CASE(logits_of_a_cache_equal_the_cpu),
       T_CASE(a_fault_reaches_no_checkpoint))
