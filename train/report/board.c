/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/path.h"

enum { LIST_MAX = 1 << 24, TAG_SIZE = 128 };

static double wall_time(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (double)now.tv_sec + (double)now.tv_usec * 1e-6;
}

/* ---- the files of a run -------------------------------------------------------------------- */

static int read_list(const char *path, struct buf *ret, struct err *e)
{
    return file_exists(path) ? file_read(path, LIST_MAX, ret, e) : 0;
}

/* One of them that cannot be cut stays as it is. */
static void cut_file(const char *dir, const char *name, const struct events_limit *at)
{
    struct err e;
    char *path = path_join(dir, name);
    if (file_exists(path) && events_cut(path, at, &e))
        log_warn("%s: later steps stay in it: %s", path, e.msg);
    free(path);
}

static void cut_all(const char *dir, struct buf *list, const struct events_limit *at)
{
    char *rest = buf_str(list), *name;
    while ((name = strsep(&rest, "\n")) != NULL)
        if (*name)
            cut_file(dir, name, at);
}

/* A new file, on the run's list; those that are on it are cut. */
static int open_file(struct board *b, const struct events_limit *at, struct err *e)
{
    char *list = b->o.save ? path_join(b->o.save, ".tensorboard_files") : NULL;
    struct buf names = {0}, old = {0};
    int code = list ? read_list(list, &names, e) : 0;
    if (!code) {
        buf_add(&old, names.data, names.len);
        cut_all(b->o.dir, &old, at);
        code = events_open(&b->events, b->o.dir, wall_time(), e);
    }
    if (!code && list) {
        char *base = path_base(b->events.path);
        buf_addf(&names, "%s\n", base);
        free(base);
        code = file_replace(list, names.data, names.len, e);
    }
    buf_finish(&names);
    buf_finish(&old);
    free(list);
    return code;
}

int board_open(struct board *ret, const struct board_options *o, const struct events_limit *at,
               struct err *e)
{
    *ret = (struct board){.o = *o};
    return o->dir ? open_file(ret, at, e) : 0;
}

int board_rewind(struct board *b, const struct events_limit *at, struct err *e)
{
    if (!b->o.dir)
        return 0;
    char *path = b->events.path ? mem_strdup(b->events.path) : NULL;
    int code = events_flush(&b->events, false, e);
    events_close(&b->events);
    if (!code && path)
        code = events_cut(path, at, e);
    free(path);
    return code ? code : open_file(b, at, e);
}

/* ---- curves -------------------------------------------------------------------------------- */

/* A curve over iterations, samples and perhaps tokens, under "group/name" or "name". */
static void put_curve(struct board *b, const struct events_limit *at, const char *group,
                      const char *name, double value)
{
    char tag[TAG_SIZE];
    double now = wall_time();
    const char *slash = b->o.deepspeed ? "/" : "";
    if (!b->o.deepspeed)
        group = "";
    snprintf(tag, sizeof(tag), "%s%s%s", group, slash, name);
    for (char *p = tag; b->o.v1 && *p; p++)
        *p = *p == '-' ? '_' : *p;
    events_scalar(&b->events, now, at->iteration, tag, value);
    if (b->o.v1)
        return;
    snprintf(tag, sizeof(tag), "%s%s%s vs samples", group, slash, name);
    events_scalar(&b->events, now, at->samples, tag, value);
    snprintf(tag, sizeof(tag), "%s%s%s vs tokens", group, slash, name);
    if (b->o.deepspeed)
        events_scalar(&b->events, now, at->tokens, tag, value);
}

static void put_counts(struct board *b, const struct events_limit *at)
{
    double now = wall_time();
    if (!b->o.deepspeed)
        return;
    events_scalar(&b->events, now, at->samples, "steps-vs-samples/y=steps,x=samples",
                  (double)at->iteration);
    events_scalar(&b->events, now, at->iteration, "steps-vs-samples/y=samples,x=steps",
                  (double)at->samples);
    events_scalar(&b->events, now, at->tokens, "steps-vs-tokens/y=steps,x=tokens",
                  (double)at->iteration);
    events_scalar(&b->events, now, at->iteration, "steps-vs-tokens/y=tokens,x=steps",
                  (double)at->tokens);
}

static void put_losses(struct board *b, const struct events_limit *at, const struct log_values *v)
{
    if (v->has_loss && !v->skipped && isfinite(v->loss))
        put_curve(b, at, "lm-loss-training", "lm loss", v->loss);
    if (v->has_experts && !v->skipped) {
        put_curve(b, at, "lm-loss-training", "load_balancing_loss", v->balance);
        put_curve(b, at, "lm-loss-training", "z_loss", v->z);
    }
}

int board_step(struct board *b, const struct log_values *v, double memory, struct err *e)
{
    const struct events_limit at = {v->iteration, v->consumed_samples, v->consumed_tokens};
    if (!b->events.file || v->iteration % b->o.interval)
        return 0;
    put_counts(b, &at);
    put_curve(b, &at, "learning-rate", "learning-rate", v->lr);
    if (b->o.batch)
        put_curve(b, &at, "batch-size", "batch-size", (double)v->global_batch);
    put_losses(b, &at, v);
    if (!b->o.no_loss_scale)
        put_curve(b, &at, "loss-scale", "loss-scale", v->loss_scale);
    if (b->o.world)
        put_curve(b, &at, "world-size", "world-size", v->ranks);
    if (isfinite(v->grad_norm))
        put_curve(b, &at, "grad-norm", "grad-norm", v->grad_norm);
    if (b->o.deepspeed)
        put_curve(b, &at, "seqlen", "actual_seq_length", (double)v->seq_length);
    if (b->o.timers)
        put_curve(b, &at, "iteration-time", "iteration-time", v->ms / 1000);
    if (b->o.timers && v->show_throughput)
        board_point(b, v->iteration, "throughput", v->tflops);
    if (b->o.memory && memory > 0)
        board_point(b, v->iteration, "mem-allocated-bytes", memory);
    return events_flush(&b->events, false, e);
}

void board_point(struct board *b, int64_t iteration, const char *tag, double value)
{
    if (b->events.file)
        events_scalar(&b->events, wall_time(), iteration, tag, value);
}

int board_evaluation(struct board *b, const struct events_limit *at, const char *part, double loss,
                     struct err *e)
{
    char name[TAG_SIZE];
    if (!b->events.file)
        return 0;
    snprintf(name, sizeof(name), "lm loss %s", b->o.v1 ? "value" : part);
    put_curve(b, at, "lm-loss-validation", name, loss);
    snprintf(name, sizeof(name), "lm loss %s%sppl", b->o.v1 ? "" : part, b->o.v1 ? "" : " ");
    if (b->o.perplexity || b->o.v1)
        put_curve(b, at, "lm-loss-validation", name, exp(loss < 20 ? loss : 20));
    return events_flush(&b->events, false, e);
}

struct board_argument {
    struct board *b;
    double now;
    int64_t iteration;
};

static void put_argument(void *arg, const struct opt *row, const char *text)
{
    struct board_argument *a = arg;
    char tag[TAG_SIZE];
    struct buf value = {0};
    size_t n = text ? strlen(text) : 0;
    snprintf(tag, sizeof(tag), "%s/text_summary", row->name);
    for (char *p = tag; *p; p++)
        *p = *p == '-' ? '_' : *p;
    bool quoted = n > 1 && text[0] == '"' && text[n - 1] == '"' && !strchr(text, '\\');
    if (quoted)
        buf_add(&value, text + 1, n - 2);
    else
        buf_adds(&value, text ? text : "None");
    events_text(&a->b->events, a->now, a->iteration, tag, buf_str(&value));
    buf_finish(&value);
}

int board_arguments(struct board *b, int64_t iteration, const struct opts *o, struct err *e)
{
    struct board_argument a = {b, wall_time(), iteration};
    if (!b->events.file)
        return 0;
    opts_each_value(o, put_argument, &a);
    return events_flush(&b->events, false, e);
}

int board_sync(struct board *b, struct err *e)
{
    return events_flush(&b->events, true, e);
}

void board_close(struct board *b)
{
    events_close(&b->events);
    *b = (struct board){0};
}
