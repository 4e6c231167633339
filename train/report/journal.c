/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/journal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/stdout.h"
#include "base/io/file.h"
#include "base/format/json.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/engine/all_ranks.h"
#include "train/report/memory.h"
#include "train/report/wandb.h"

enum { LOST_LIMIT = 50, METRICS_MAX = 1 << 30 };

/* Keeps the lines of steps up to `iteration`: what a run that died wrote beyond its checkpoint
 * goes. */
static int cut_back(const char *path, int64_t iteration, struct err *e)
{
    struct buf old = {0}, kept = {0};
    int code = file_read(path, METRICS_MAX, &old, e);
    if (code)
        return code;
    for (char *p = old.data; p < old.data + old.len;) {
        char *end = memchr(p, '\n', (size_t)(old.data + old.len - p));
        const char *field = end ? strstr(p, "\"iteration\": ") : NULL;
        if (!end)
            break; /* a line that was cut short */
        if (field && field < end && strtoll(field + 13, NULL, 10) <= iteration)
            buf_add(&kept, p, (size_t)(end + 1 - p));
        p = end + 1;
    }
    code = file_replace(path, kept.data, kept.len, e);
    buf_finish(&old);
    buf_finish(&kept);
    return code;
}

/* NULL: none are written. */
static char *metrics_path(const struct train_options *o)
{
    return o->metrics ? mem_strdup(o->metrics)
           : o->save  ? path_join(o->save, "metrics.jsonl")
                      : NULL;
}

static struct events_limit journal_at(const struct journal *j, const struct rank *r)
{
    return (struct events_limit){r->at.iteration, r->at.consumed, r->at.consumed * j->seq_length};
}

static int open_board(struct journal *j, const struct rank *r, struct err *e)
{
    const struct report_flags *f = &j->o->report;
    const struct board_options o = {.dir = f->tensorboard,
                                    .save = j->o->save,
                                    .deepspeed = j->o->log_format == LOG_DEEPSPEED,
                                    .v1 = j->o->log_format == LOG_V1,
                                    .interval = f->interval,
                                    .no_loss_scale = !f->loss_scale,
                                    .timers = f->timers,
                                    .perplexity = f->perplexity,
                                    .memory = f->memory,
                                    .world = f->world,
                                    .batch = f->batch};
    const struct events_limit at = journal_at(j, r);
    return board_open(&j->board, &o, &at, e);
}

int journal_open(struct journal *j, const struct train_options *o, const struct rank *r,
                 int64_t iterations, struct err *e)
{
    *j = (struct journal){.o = o,
                          .iterations = iterations,
                          .seq_length = r->config.seq_length,
                          .since = clock_seconds(),
                          .step_began = clock_seconds()};
    j->flops = spec_step_flops(&r->config.spec, 1, j->seq_length) / r->comm.world;
    j->path = metrics_path(o);
    int failed = open_board(j, r, e);
    if (failed || !j->path)
        return failed;
    if (file_exists(j->path)) {
        int code = cut_back(j->path, r->at.iteration, e);
        if (code)
            return code;
    }
    j->metrics = fopen(j->path, "ae");
    return j->metrics ? 0 : err_sys(e, errno, "%s: cannot write", j->path);
}

int journal_try(const struct train_options *o, struct err *e)
{
    char *metrics = o->metrics ? mem_strdup(o->metrics)
                    : o->save  ? path_join(o->save, "metrics.jsonl")
                               : NULL;
    char *board = o->report.tensorboard ? path_join(o->report.tensorboard, "events") : NULL;
    bool there = metrics && file_exists(metrics);
    int code = board ? file_try(board, e) : 0;
    FILE *f = metrics && !code ? fopen(metrics, "ae") : NULL;
    if (metrics && !code && !f)
        code = err_sys(e, errno, "%s: cannot write", metrics);
    if (f)
        fclose(f);
    if (f && !there)
        unlink(metrics);
    free(metrics);
    free(board);
    return code;
}

void journal_open_silent(struct journal *j, const struct train_options *o, const struct rank *r)
{
    *j = (struct journal){.o = o, .seq_length = r->config.seq_length, .silent = true};
}

static double step_tflops(const struct journal *j, int64_t samples, double ms)
{
    return ms > 0 ? j->flops * (double)samples / (ms * 1e9) : 0;
}

static struct log_values values(const struct journal *j, const struct rank *r,
                                const struct step_result *s, double ms)
{
    return (struct log_values){.when = time(NULL),
                               .iteration = r->at.iteration,
                               .iterations = j->iterations,
                               .consumed_samples = r->at.consumed,
                               .consumed_tokens = r->at.consumed * j->seq_length,
                               .global_batch = s->samples,
                               .seq_length = j->seq_length,
                               .ms = ms,
                               .data_ms = s->waited * 1000,
                               .tflops = step_tflops(j, s->samples, ms),
                               .show_throughput = j->o->log_throughput,
                               .lr = s->lr,
                               .has_loss = true,
                               .loss = s->loss,
                               .has_experts = r->config.spec.experts > 0,
                               .balance = s->balance,
                               .z = s->z,
                               .loss_scale = s->loss_scale,
                               .grad_norm = isnan(s->grad_norm) ? (double)NAN
                                                                : s->grad_norm, /* never "-nan" */
                               .ranks = r->comm.world};
}

static bool writes(const struct journal *j)
{
    return j->metrics && !j->failed.code;
}

static void write_line(struct journal *j)
{
    if (fwrite(j->line.data, 1, j->line.len, j->metrics) != j->line.len || fflush(j->metrics))
        err_sys(&j->failed, errno, "%s: cannot write %zu bytes", j->path, j->line.len);
}

static void print_text(struct journal *j)
{
    if (j->unheard)
        return;
    if (fwrite(j->line.data, 1, j->line.len, stdout) == j->line.len && !fflush(stdout))
        return;
    const char *why = strerror(errno);
    enum log_level level = log_get_level();
    stdout_drop();
    j->unheard = true;
    if (level < LOG_WARN) /* the first process speaks for all, but this one alone knows */
        log_set_level(LOG_WARN);
    log_warn("standard output: cannot write: %s; the run goes on without its log lines there", why);
    log_set_level(level);
}

/* Prints `line`: of the short ones what fits the terminal. */
static void put_out(struct journal *j)
{
    if (j->silent)
        return;
    if (j->brief) {
        progress_fit(&j->line, progress_columns(STDOUT_FILENO));
        buf_addc(&j->line, '\n');
    }
    if (j->meter)
        progress_clear(j->meter);
    print_text(j);
}

static void print_line(struct journal *j, const struct log_values *step)
{
    struct log_values v = *step;
    double now = clock_seconds();
    v.ms = (now - j->since) * 1000 / (double)j->steps;
    v.tflops = step_tflops(j, v.global_batch, v.ms);
    v.loss = j->counted ? j->loss_sum / (double)j->counted : 0;
    v.has_loss = v.loss > 0;
    v.skipped = j->skips.n[SKIP_LINE];
    v.nan = j->skips.n[SKIP_NAN];
    buf_reset(&j->line);
    if (j->brief)
        logline_short(&j->line, &v);
    else
        logline_format(&j->line, (enum log_format)j->o->log_format, &v);
    j->since = now;
    j->loss_sum = 0;
    j->steps = j->counted = 0;
    skips_line(&j->skips);
    put_out(j);
}

/* In Megatron's words: what tensors take, and what the process has. */
static void tell_memory(const struct rank *r)
{
    double tensors = 0, now, most;
    for (int i = 0; i < SLAB_COUNT; i++)
        tensors += (double)r->slab[i].size;
    if (!memory_of_process(&now, &most))
        now = most = tensors;
    log_info("[Rank %d] (after %lld iterations) memory (MB) | allocated: %.1f | max allocated: "
             "%.1f | reserved: %.1f | max reserved: %.1f",
             r->comm.rank, (long long)r->at.iteration, tensors / 0x1p20, tensors / 0x1p20,
             now / 0x1p20, most / 0x1p20);
}

/* Points of each phase for TensorBoard: the longest time of all ranks. */
static void timer_points(struct journal *j, int64_t iteration, const struct timers *t,
                         const double *sum, int ranks)
{
    char tag[64];
    for (int i = 0; i < t->names.n; i++) {
        double most = 0;
        for (int k = 0; k < ranks; k++)
            most = fmax(most, sum[k * TIMERS_MOST + i] / (double)t->steps);
        snprintf(tag, sizeof(tag), "%s-time", t->names.name[i]);
        if (most > 0 && j->o->report.timers)
            board_point(&j->board, iteration, tag, most);
    }
}

/* All ranks together. */
static int print_timers(struct journal *j, struct rank *r, struct err *e)
{
    struct timers *t = &j->timers;
    struct buf all = {0};
    size_t *size = mem_new((size_t)r->comm.world, sizeof(*size));
    int code = all_ranks_gather(&r->comm, t->sum, sizeof(t->sum), &all, size, e);
    if (!code && !j->silent) {
        double *sum = mem_new((size_t)r->comm.world, sizeof(t->sum));
        memcpy(sum, all.data, all.len);
        buf_reset(&j->line);
        timers_lines(t, (enum timer_option)j->o->report.timing_option, sum, r->comm.world, t->steps,
                     &j->line);
        timer_points(j, r->at.iteration, t, sum, r->comm.world);
        if (j->meter)
            progress_clear(j->meter);
        print_text(j);
        free(sum);
    }
    memset(t->sum, 0, sizeof(t->sum));
    t->steps = 0;
    buf_finish(&all);
    free(size);
    return code;
}

/* At the 1st, 10th, 100th ... such step. */
static void tell_crowded(struct journal *j, const struct rank *r, double share)
{
    int64_t n = ++j->crowded;
    while (n % 10 == 0)
        n /= 10;
    if (n != 1)
        return;
    if (j->meter)
        progress_clear(j->meter);
    log_warn("step %lld: in %.1f %% of the passes of layers with experts one process got more "
             "tokens than --expert-buffer-factor %g has room for: they took several rounds, which "
             "is slower, and no token is dropped (%lld such step%s so far)",
             (long long)r->at.iteration, 100 * share, j->o->experts.buffer, (long long)j->crowded,
             j->crowded == 1 ? "" : "s");
}

/* Too many steps in a row were skipped. */
static int tell_lost(const struct journal *j, int64_t iteration, struct err *e)
{
    if (2 * j->skips.n[SKIP_SPIKES] > j->skips.n[SKIP_IN_A_ROW]) {
        err_set(e, ERR_ANOMALY,
                "the loss was too high (--loss-spike-factor) for %d steps in a row, up to step "
                "%lld",
                LOST_LIMIT, (long long)iteration);
        return err_hint(e, "a higher --loss-spike-factor or a lower --lr; the last checkpoint is "
                           "intact");
    }
    err_set(e, ERR_ANOMALY, "the gradient was not finite for %d steps in a row, up to step %lld",
            LOST_LIMIT, (long long)iteration);
    return err_hint(e, "a lower --lr or a longer warm-up; the last checkpoint is intact");
}

int journal_step(struct journal *j, struct rank *r, const struct step_result *s, struct err *e)
{
    double now = clock_seconds();
    struct log_values v = values(j, r, s, (now - j->step_began) * 1000);
    int code = 0;
    v.skipped = s->skipped;
    j->steps++;
    skips_step(&j->skips, s->skipped, s->spike, isnan(s->loss));
    if (!s->skipped) {
        j->loss_sum += s->loss;
        j->counted++;
    }
    if (s->crowded > 0)
        tell_crowded(j, r, s->crowded);
    if (writes(j)) {
        buf_reset(&j->line);
        logline_json(&j->line, &v);
        write_line(j);
    }
    double memory = 0, most;
    if (j->board.events.file && j->o->report.memory)
        memory_of_process(&memory, &most);
    if (!j->failed.code)
        board_step(&j->board, &v, memory, &j->failed);
    if (!j->memory_told && !j->silent && !j->brief)
        tell_memory(r);
    j->memory_told = true;
    if (r->at.iteration % j->o->log_interval == 0)
        print_line(j, &v);
    struct err why;
    if (timers_step(&j->timers, r->at.iteration, &why) && !j->failed.code)
        j->failed = why;
    if (j->timers.level && r->at.iteration % j->o->log_interval == 0)
        code = print_timers(j, r, e);
    j->step_began = clock_seconds();
    return code || j->skips.n[SKIP_IN_A_ROW] < LOST_LIMIT ? code : tell_lost(j, r->at.iteration, e);
}

/* Megatron's lines: a rule of dashes as long as the line, above and below. */
static void ruled_line(struct buf *out, int64_t iteration, const char *suffix, double loss,
                       double ppl)
{
    struct buf text = {0};
    buf_addf(&text,
             " validation loss at iteration %lld%s | lm loss value: %.6E | lm loss PPL: %.6E | ",
             (long long)iteration, suffix, loss, ppl);
    char *rule = mem_new(text.len + 2, 1);
    memset(rule, '-', text.len + 1);
    buf_addf(out, "%s\n%s\n%s\n", rule, buf_str(&text), rule);
    buf_finish(&text);
    free(rule);
}

void journal_evaluation(struct journal *j, const struct rank *r, const char *suffix,
                        const char *part, double loss)
{
    int64_t iteration = r->at.iteration;
    const struct events_limit at = journal_at(j, r);
    double ppl = exp(loss < 20 ? loss : 20);
    buf_reset(&j->line);
    if (j->brief)
        buf_addf(&j->line, "step %lld, %s loss %.6f, perplexity %.4g", (long long)iteration, part,
                 loss, ppl);
    else
        ruled_line(&j->line, iteration, suffix, loss, ppl);
    put_out(j);
    if (writes(j)) {
        buf_reset(&j->line);
        buf_addf(&j->line, "{\"iteration\": %lld, \"%s_loss\": ", (long long)iteration, part);
        jsonw_real(&j->line, loss);
        buf_adds(&j->line, "}\n");
        write_line(j);
    }
    if (!j->failed.code)
        board_evaluation(&j->board, &at, !strcmp(part, "valid") ? "validation" : part, loss,
                         &j->failed);
}

static void mark_time(void *arg, enum rank_timer t, bool begins)
{
    timers_mark(arg, (int)t, begins);
}

int journal_open_timers(struct journal *j, struct rank *r, struct err *e)
{
    static const char *const name[RANK_TIMERS] = {
        "forward-backward", "all-grads-sync", "optimizer",    "batch-generator", "forward-compute",
        "backward-compute", "forward-recv",   "forward-send", "backward-recv",   "backward-send"};
    const struct timer_names names = {name, RANK_TIMERS, RANK_TIMER_DETAILS};
    const struct report_flags *f = &j->o->report;
    bool spans = f->timing_option == TIMER_ALL && j->o->save;
    char *folder = spans ? path_join(j->o->save, "timers") : NULL;
    int code = timers_open(&j->timers, names, (int)f->timing, r->comm.rank, folder, e);
    free(folder);
    if (f->timing)
        rank_set_timer(r, mark_time, &j->timers);
    return code;
}

void journal_tell_wandb(const struct train_options *o)
{
    const struct report_flags *f = &o->report;
    const struct wandb_names names = {f->project, f->name, f->entity, f->group};
    struct buf b = {0};
    if (!f->project && !f->name && !f->entity && !f->group)
        return;
    char *path = metrics_path(o);
    if (path) {
        wandb_command(&names, path, &b);
        log_info("to import the run into Weights & Biases:\n  %s", buf_str(&b));
    } else {
        log_warn("nothing to import into Weights & Biases without --save or --metrics");
    }
    free(path);
    buf_finish(&b);
}

void journal_put_skips(struct journal *j, struct state_pairs *ret)
{
    for (enum skip k = 0; k < SKIPS; k++) {
        long long n = (long long)j->skips.n[k];
        snprintf(j->skips_text[k], sizeof(j->skips_text[k]), "%lld", n);
        if (n)
            state_pairs_add(ret, skips_name(k), j->skips_text[k]);
    }
}

int journal_read_skips(struct journal *j, const struct ckpt *c, struct err *e)
{
    int code = 0;
    for (enum skip k = 0; !code && k < SKIPS; k++)
        code = state_count(c, skips_name(k), &j->skips.n[k], e);
    return code;
}

/* The metrics file is written anew, up to the step at which the rank stands. */
static void reopen_metrics(struct journal *j, const struct rank *r)
{
    fclose(j->metrics);
    cut_back(j->path, r->at.iteration, &j->failed);
    j->metrics = fopen(j->path, "ae");
    if (!j->metrics && !j->failed.code)
        err_sys(&j->failed, errno, "%s: cannot write", j->path);
}

void journal_rewind(struct journal *j, const struct rank *r, int64_t consumed)
{
    const struct events_limit at = {r->at.iteration, consumed, consumed * j->seq_length};
    if (writes(j))
        reopen_metrics(j, r);
    if (!j->failed.code)
        board_rewind(&j->board, &at, &j->failed);
    skips_rewind(&j->skips);
    j->steps = j->counted = 0;
    j->loss_sum = 0;
    j->since = j->step_began = clock_seconds();
}

void journal_pause_over(struct journal *j)
{
    double now = clock_seconds();
    j->since += now - j->step_began;
    j->step_began = now;
}

void journal_sync(struct journal *j)
{
    if (writes(j) && (fflush(j->metrics) || fsync(fileno(j->metrics))))
        err_sys(&j->failed, errno, "%s: cannot sync", j->path);
    if (!j->failed.code)
        board_sync(&j->board, &j->failed);
}

void journal_close(struct journal *j)
{
    if (j->metrics)
        fclose(j->metrics);
    board_close(&j->board);
    timers_close(&j->timers);
    free(j->path);
    buf_finish(&j->line);
    *j = (struct journal){0};
}
