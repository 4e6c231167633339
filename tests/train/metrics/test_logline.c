/* SPDX-License-Identifier: Apache-2.0 */
#include "train/metrics/logline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "tests/t.h"

static const struct log_values seed002 = {.when = 1700000000,
                                          .iteration = 30,
                                          .iterations = 50,
                                          .consumed_samples = 1920,
                                          .consumed_tokens = 1966080,
                                          .global_batch = 64,
                                          .seq_length = 1024,
                                          .ms = 1423.8,
                                          .tflops = 12.34,
                                          .lr = 7.03125e-07,
                                          .has_loss = true,
                                          .loss = 10.17721,
                                          .loss_scale = 262144,
                                          .grad_norm = 16.666,
                                          .ranks = 1};

static void megatron_v3_is_the_published_line(void)
{
    struct buf b = {0};
    logline_format(&b, LOG_V3, &seed002);
    T_STR(buf_str(&b),
          " iteration       30/      50 | consumed samples:         1920 | elapsed time per "
          "iteration (ms): 1423.8 | learning rate: 7.031E-07 | global batch size:    64 | lm loss: "
          "1.017721E+01 | loss scale: 262144.0 | grad norm: 16.666 | number of skipped iterations: "
          "  0 | number of nan iterations:   0 |\n");
    buf_finish(&b);
}

static void v1_has_the_fewest_fields(void)
{
    struct buf b = {0};
    logline_format(&b, LOG_V1, &seed002);
    T_STR(
        buf_str(&b),
        " iteration       30/      50 | elapsed time per iteration (ms): 1423.8 | learning rate: "
        "7.031E-07 | lm loss: 1.017721E+01 | loss scale: 262144.0 | number of skipped iterations: "
        "  0 | number of nan iterations:   0 |\n");
    buf_finish(&b);
}

static void core_has_date_throughput_and_six_decimals(void)
{
    struct buf b = {0};
    struct log_values v = seed002;
    setenv("TZ", "UTC", 1);
    v.show_throughput = true;
    logline_format(&b, LOG_CORE, &v);
    T_STR(buf_str(&b),
          " [2023-11-14 22:13:20] iteration       30/      50 | consumed samples:         1920 | "
          "elapsed time per iteration (ms): 1423.8 | throughput per GPU (TFLOP/s/GPU): 12.3 | "
          "learning rate: 7.031250E-07 | global batch size:    64 | lm loss: 1.017721E+01 | loss "
          "scale: 262144.0 | grad norm: 16.666 | number of skipped iterations:   0 | number of nan "
          "iterations:   0 |\n");
    buf_reset(&b);
    v.show_throughput = false;
    v.has_loss = false;
    logline_format(&b, LOG_CORE, &v);
    T_CHECK(!strstr(buf_str(&b), "throughput") && !strstr(b.data, "lm loss"));
    buf_finish(&b);
}

static void the_short_line_is_for_people(void)
{
    struct buf b = {0};
    struct log_values v = seed002;
    logline_short(&b, &v);
    T_STR(buf_str(&b), "step 30 of 50, loss 10.1772, lr 7.03e-07, grad norm 16.7, 1424 ms, "
                       "46029 tokens/s");
    buf_reset(&b);
    v.has_loss = false;
    v.skipped = v.nan = 2;
    v.show_throughput = true;
    logline_short(&b, &v);
    T_STR(buf_str(&b), "step 30 of 50, 2 skipped, 2 NaN, lr 7.03e-07, grad norm 16.7, 1424 ms, "
                       "46029 tokens/s, 12.3 TFLOP/s");
    buf_finish(&b);
}

static void deepspeed_adds_tokens_and_rates(void)
{
    struct buf b = {0};
    struct log_values v = seed002;
    v.ms = 500;
    logline_format(&b, LOG_DEEPSPEED, &v);
    T_STR(buf_str(&b),
          " iteration       30/      50 | consumed samples:         1920 | consumed tokens:      "
          "1966080 | elapsed time per iteration (ms): 500.0 | learning rate: 7.031E-07 | global "
          "batch size:    64 | lm loss: 1.017721E+01 | loss scale: 262144.0 | grad norm: 16.666 | "
          "actual seqlen:  1024 | number of skipped iterations:   0 | number of nan iterations:   "
          "0 | samples per second: 128.000 | tokens per gpu per second (tgs): 131072.000 | TFLOPs: "
          "12.34 |\n");
    buf_finish(&b);
}

static void json_line_reads_back(void)
{
    struct buf b = {0};
    struct err e;
    struct json_doc *d;
    struct log_values v = seed002;
    v.grad_norm = NAN;
    logline_json(&b, &v);
    T_OK(json_parse("line", b.data, b.len, &d, &e), &e);
    const struct json *o = json_root(d);
    T_EQ(json_get(o, "iteration")->integer, 30);
    T_CHECK(json_get(o, "lm_loss")->real == v.loss);
    T_EQ(json_get(o, "grad_norm")->kind, JSON_NULL);
    json_close(d);
    buf_finish(&b);
}

T_MAIN(T_CASE(megatron_v3_is_the_published_line), T_CASE(v1_has_the_fewest_fields),
       T_CASE(core_has_date_throughput_and_six_decimals), T_CASE(the_short_line_is_for_people),
       T_CASE(deepspeed_adds_tokens_and_rates), T_CASE(json_line_reads_back))
