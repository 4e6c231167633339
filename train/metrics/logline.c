/* SPDX-License-Identifier: Apache-2.0 */
#include "train/metrics/logline.h"

#include <math.h>

#include "base/format/json.h"

static void counts(struct buf *out, const struct log_values *v)
{
    buf_addf(out, " number of skipped iterations: %3lld |", (long long)v->skipped);
    buf_addf(out, " number of nan iterations: %3lld |", (long long)v->nan);
}

static void losses(struct buf *out, enum log_format f, const struct log_values *v)
{
    if (v->has_loss)
        buf_addf(out, " lm loss: %.6E |", v->loss);
    if (v->has_experts)
        buf_addf(out, " load_balancing_loss: %.6E | z_loss: %.6E |", v->balance, v->z);
    buf_addf(out, " loss scale: %.1f |", v->loss_scale);
    if (f != LOG_V1)
        buf_addf(out, " grad norm: %.3f |", v->grad_norm);
}

static void head(struct buf *out, enum log_format f, const struct log_values *v)
{
    buf_addf(out, " iteration %8lld/%8lld |", (long long)v->iteration, (long long)v->iterations);
    if (f != LOG_V1)
        buf_addf(out, " consumed samples: %12lld |", (long long)v->consumed_samples);
}

/* Decimals of a throughput, of which Megatron's `usual` show nothing below 0.1. */
static int decimals(double tflops, int usual)
{
    if (!(tflops > 0 && tflops < 0.1))
        return usual;
    int n = 2 - (int)floor(log10(tflops));
    return n < 12 ? n : 12;
}

void logline_format(struct buf *out, enum log_format f, const struct log_values *v)
{
    double seconds = v->ms / 1000, samples = seconds > 0 ? (double)v->global_batch / seconds : 0;
    if (f == LOG_CORE) {
        struct tm tm;
        char date[32];
        localtime_r(&v->when, &tm);
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
        buf_addf(out, " [%s]", date);
    }
    head(out, f, v);
    if (f == LOG_DEEPSPEED)
        buf_addf(out, " consumed tokens: %12lld |", (long long)v->consumed_tokens);
    buf_addf(out, " elapsed time per iteration (ms): %.1f |", v->ms);
    if (f == LOG_CORE && v->show_throughput)
        buf_addf(out, " throughput per GPU (TFLOP/s/GPU): %.*f |", decimals(v->tflops, 1),
                 v->tflops);
    buf_addf(out, f == LOG_CORE ? " learning rate: %.6E |" : " learning rate: %.3E |", v->lr);
    if (f != LOG_V1)
        buf_addf(out, " global batch size: %5lld |", (long long)v->global_batch);
    losses(out, f, v);
    if (f == LOG_DEEPSPEED)
        buf_addf(out, " actual seqlen: %5lld |", (long long)v->seq_length);
    counts(out, v);
    if (f == LOG_DEEPSPEED) {
        buf_addf(out, " samples per second: %.3f |", samples);
        buf_addf(out, " tokens per gpu per second (tgs): %.3f |",
                 samples * (double)v->seq_length / v->ranks);
        buf_addf(out, " TFLOPs: %.*f |", decimals(v->tflops, 2), v->tflops);
    }
    buf_addc(out, '\n');
}

void logline_short(struct buf *out, const struct log_values *v)
{
    double tokens = (double)v->global_batch * (double)v->seq_length;
    buf_addf(out, "step %lld of %lld", (long long)v->iteration, (long long)v->iterations);
    if (v->has_loss)
        buf_addf(out, ", loss %.4f", v->loss);
    if (v->skipped)
        buf_addf(out, ", %lld skipped", (long long)v->skipped);
    if (v->nan)
        buf_addf(out, ", %lld NaN", (long long)v->nan);
    buf_addf(out, ", lr %.3g, grad norm %.3g, %.0f ms", v->lr, v->grad_norm, v->ms);
    if (v->ms > 0)
        buf_addf(out, ", %.0f tokens/s", tokens * 1000 / v->ms);
    if (v->show_throughput)
        buf_addf(out, ", %.3g TFLOP/s", v->tflops);
}

static void logline_number(struct buf *out, const char *key, double v)
{
    buf_adds(out, ", ");
    jsonw_key(out, key);
    buf_addc(out, ' ');
    jsonw_real(out, v);
}

void logline_json(struct buf *out, const struct log_values *v)
{
    buf_addf(out, "{\"iteration\": %lld, \"consumed_samples\": %lld, \"consumed_tokens\": %lld",
             (long long)v->iteration, (long long)v->consumed_samples,
             (long long)v->consumed_tokens);
    logline_number(out, "lm_loss", v->has_loss ? v->loss : NAN);
    if (v->has_experts) {
        logline_number(out, "load_balancing_loss", v->balance);
        logline_number(out, "z_loss", v->z);
    }
    logline_number(out, "learning_rate", v->lr);
    logline_number(out, "grad_norm", v->grad_norm);
    logline_number(out, "loss_scale", v->loss_scale);
    logline_number(out, "ms", v->ms);
    logline_number(out, "data_ms", v->data_ms);
    logline_number(out, "tflops", v->tflops);
    buf_addf(out, ", \"skipped\": %lld, \"time\": %lld}\n", (long long)v->skipped,
             (long long)v->when);
}
