/* SPDX-License-Identifier: Apache-2.0 */
#include "train/verbs.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/cli/progress.h"
#include "train/engine/state.h"
#include "train/engine/step.h"
#include "train/engine/all_ranks.h"
#include "train/options/earlier.h"
#include "train/job/watchdog.h"
#include "train/report/journal.h"
#include "train/report/anomaly.h"
#include "train/report/best.h"
#include "train/report/control.h"
#include "train/job/checkpoint.h"
#include "train/job/signals.h"

/* A checkpoint that is being written. */
struct saving {
    struct ckpt_writer *w; /* of the first process */
    int64_t iteration;     /* 0: none */
    int64_t consumed;
    struct state_pairs state;
    char losses[ANOMALY_TEXT]; /* of the limit of the next ones */
    char best[BEST_TEXT];      /* losses of validation */
    double begun;
};

/* What the loop keeps between steps. */
struct run {
    struct job *job;
    struct loader *train;
    struct journal journal;
    struct progress meter;
    double started;
    int64_t saved; /* iteration of the newest checkpoint of this process, -1: none */
    struct saving saving;
    struct anomaly anomaly;
    struct best best; /* losses of validation */
    bool ended;       /* all steps are done, or the data are used up */
    char *control;    /* a file that is looked for; NULL: none */
    int saves;        /* of signals_saves_asked, that were done */
    int asked;        /* what is to be done once no step is issued any more */
    struct err ahead; /* of a step that was issued before it was due; code 0: none */
    struct err late;  /* ends the run when the weights are saved; code 0: none */
};

/* ---- checkpoints ------------------------------------------------------------------------- */

static int commit(struct job *j, const struct saving *s, struct err *e)
{
    struct buf model = {0};
    spec_to_json(&j->spec, &model);
    struct tune_pairs kernels;
    tune_pairs(&kernels, &j->rank.ops);
    struct ckpt_meta m = {.iteration = s->iteration,
                          .consumed_samples = s->consumed,
                          .model = buf_str(&model),
                          .data_digest = j->data_digest[0] ? j->data_digest : NULL,
                          .kernels = kernels.pair,
                          .nkernels = kernels.n,
                          .state = s->state.pair,
                          .nstate = s->state.n};
    job_describe_tokenizer(j, &m);
    int code = ckpt_commit(s->w, &m, e);
    tune_pairs_finish(&kernels);
    buf_finish(&model);
    return code;
}

/* By the record as it is now: what an evaluation since the save says counts, too. */
static int retain(struct run *r, struct err *e)
{
    const struct train_options *o = r->job->o;
    const struct ckpt_keep keep = {.newest = o->keep ? (int)o->keep : 1,
                                   .every = o->retain,
                                   .best = r->best.iteration,
                                   .nbest = o->keep_best ? r->best.n : 0};
    bool asked = o->keep || o->retain || o->keep_best;
    return asked ? ckpt_retain(o->save, &keep, r->saving.iteration, e) : 0;
}

/* Where all processes have written, with `code`: the checkpoint gets its name. */
static int complete_save(struct run *r, int code, struct err *e)
{
    struct job *j = r->job;
    struct saving *s = &r->saving;
    const char *dir = j->o->save;
    if (!code && s->w)
        code = commit(j, s, e);
    ckpt_writer_close(s->w);
    s->w = NULL;
    if (!code)
        journal_sync(&r->journal);
    if (!code && job_is_first(j))
        code = retain(r, e);
    code = job_agree(j, code, e);
    int64_t iteration = s->iteration;
    s->iteration = 0;
    if (code)
        return code;
    r->saved = iteration;
    progress_clear(&r->meter);
    log_info("saved step %lld to %s in %.1f s", (long long)iteration, dir,
             clock_seconds() - s->begun);
    return 0;
}

/* Of --async-save, where one is being written: waits for it, if it must, and completes it. */
static int finish_save(struct run *r, bool wait, struct err *e)
{
    struct job *j = r->job;
    if (!r->saving.iteration)
        return 0;
    if (all_ranks_max(&j->rank.comm, !wait && !save_is_written(&j->rank)))
        return 0;
    watchdog_enter(j, WATCH_SAVE);
    int code = complete_save(r, save_end(&j->rank, r->saving.w, e), e);
    journal_pause_over(&r->journal);
    return code;
}

/* A run that has failed: what one process wrote alone is whole, of several nobody knows. */
static void abandon_save(struct run *r)
{
    if (r->saving.iteration && r->job->rank.comm.world == 1)
        finish_save(r, true, NULL);
    save_drop(&r->job->rank);
    ckpt_writer_close(r->saving.w);
    r->saving = (struct saving){0};
}

/* A checkpoint of this step in `dir`, with all its files but tensors. */
static int open_saving(struct run *r, const char *dir, struct err *e)
{
    struct job *j = r->job;
    struct saving *s = &r->saving;
    *s = (struct saving){.iteration = j->rank.at.iteration,
                         .consumed = j->rank.at.consumed,
                         .begun = clock_seconds()};
    state_pairs(&j->rank, &s->state);
    int code = job_is_first(j) ? ckpt_writer_open(dir, s->iteration, &s->w, e) : 0;
    if (!code && s->w)
        code = job_put_files(j, s->w, e);
    return job_agree(j, code, e);
}

/* With --async-save returns while it is being written. */
static int save(struct run *r, struct err *e)
{
    struct job *j = r->job;
    struct saving *s = &r->saving;
    int64_t iteration = j->rank.at.iteration;
    int code = finish_save(r, true, e);
    if (code || !j->o->save || r->saved == iteration)
        return code;
    watchdog_enter(j, WATCH_SAVE);
    code = watchdog_compare(j, e); /* what has gone wrong is not saved */
    if (code)
        return code;
    code = open_saving(r, j->o->save, e);
    if (anomaly_write(&r->anomaly, s->losses))
        state_pairs_add(&s->state, "recent_losses", s->losses);
    if (best_write(&r->best, s->best))
        state_pairs_add(&s->state, "validation_losses", s->best);
    journal_put_skips(&r->journal, &s->state);
    bool later = j->o->async_save;
    if (!code && later) {
        code = save_snapshot(&j->rank, s->w, e);
        code = job_agree(j, code ? code : save_start(&j->rank, e), e);
    } else if (!code) {
        code = state_save(&j->rank, s->w, j->rank.config.threads, e);
    }
    if (code || !later)
        code = complete_save(r, code, e);
    journal_pause_over(&r->journal);
    return code;
}

/* ---- evaluation -------------------------------------------------------------------------- */

static int evaluate(struct run *r, enum part part, const char *suffix, struct err *e)
{
    struct job *j = r->job;
    int64_t at = j->rank.at.iteration;
    struct stretch s = job_stretch(j, part, at, j->eval_interval, j->o->full_validation);
    struct batch_layout l = job_stretch_layout(j, &s);
    struct feed f = job_feed(j, part);
    struct loader *in = NULL;
    double loss;
    watchdog_enter(j, WATCH_EVAL);
    int code = job_agree(j, loader_create(&f, &l, s.from, 2, &in, e), e);
    if (!code)
        code = step_evaluate(&j->rank, in, s.passes, &loss, e);
    loader_destroy(in);
    if (!code)
        journal_evaluation(&r->journal, &j->rank, suffix, part_name(part), loss);
    journal_pause_over(&r->journal);
    if (!code && part == PART_VALID && best_note(&r->best, at, loss) && j->o->save)
        code = save(r, e);
    return code;
}

/* After --early-stopping-patience the last evaluation on the validation set is what ended it. */
static int evaluate_at_end(struct run *r, struct err *e)
{
    struct job *j = r->job;
    int code = 0;
    if (job_ready(j, PART_VALID) && !best_is_over(&r->best))
        code = evaluate(r, PART_VALID, " on validation set", e);
    if (!code && job_ready(j, PART_TEST))
        code = evaluate(r, PART_TEST, " on test set", e);
    return code;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static bool divides(int64_t interval, int64_t iteration)
{
    return interval > 0 && iteration % interval == 0;
}

/* STOP_... (job/signals.h) of this process. */
static int what_is_asked(struct run *r)
{
    const struct train_options *o = r->job->o;
    int saves = signals_saves_asked();
    enum control c = r->control && job_is_first(r->job) ? control_read(r->control) : 0;
    bool save_now = c == CONTROL_SAVE || saves != r->saves;
    r->saves = saves;
    if (r->late.code || r->journal.failed.code)
        return STOP_FAILED;
    if (signals_stop_asked())
        return STOP_SIGNAL + signals_stop_asked();
    if (c == CONTROL_STOP)
        return STOP_CONTROL;
    if (o->exit_minutes > 0 && clock_seconds() - r->started > o->exit_minutes * 60)
        return STOP_MINUTES;
    return save_now ? STOP_TO_SAVE : STOP_NOT;
}

static int whether_to_stop(struct run *r)
{
    bool ends = divides(r->job->o->exit_interval, r->job->rank.at.iteration);
    int asked = what_is_asked(r);
    return ends && asked < STOP_INTERVAL ? STOP_INTERVAL : asked;
}

/* Keeps what is asked for. */
static bool is_asked(struct run *r, int what)
{
    r->asked = what > r->asked ? what : r->asked;
    return r->asked != STOP_NOT;
}

static int save_as_asked(struct run *r, struct err *e)
{
    if (!r->job->o->save)
        log_warn("nothing is saved: without --save DIR there is no folder for it");
    return save(r, e);
}

static int open_train(struct run *r, struct err *e)
{
    struct batch_layout l = job_train_layout(r->job);
    struct feed f = job_feed(r->job, PART_TRAIN);
    return loader_create(&f, &l, (uint64_t)r->job->rank.at.consumed, 4, &r->train, e);
}

enum { REWINDS_MAX = 10 };

/*
 * On a device of its own the next step is issued before the end of this one is known. Not where
 * something is done after this one: then the weights must be those that it leaves.
 */
static bool may_run_ahead(const struct run *r)
{
    const struct job *j = r->job;
    const struct train_options *o = j->o;
    const struct rank *k = &j->rank;
    int64_t at = k->at.iteration + 1;
    bool pause = divides(o->check_replicas, at) || divides(o->save_interval, at) ||
                 divides(o->exit_interval, at) || divides(j->eval_interval, at) ||
                 divides(o->report.sample_interval, at);
    return !k->dev.desc.host && k->comm.world == 1 && !pause && step_may_issue(k) &&
           at < j->course.iterations;
}

/* Issues the step, if it is not yet, and the one after it, if that may be, and completes it. */
static int take_step(struct run *r, struct step_result *s, struct err *e)
{
    struct rank *k = &r->job->rank;
    int code = r->ahead.code;
    if (code)
        *e = r->ahead;
    else if (!k->steps_issued)
        code = step_issue(k, r->train, e);
    if (!code && may_run_ahead(r) && !is_asked(r, what_is_asked(r)))
        step_issue(k, r->train, &r->ahead);
    return code ? code : step_complete(k, s, e);
}

/* Back to the newest checkpoint; the data since then are passed over. */
static int rewind_run(struct run *r, struct err *e)
{
    struct job *j = r->job;
    long long from = (long long)j->rank.at.iteration;
    int code = finish_save(r, true, e);
    if (!code && r->saved < 0)
        log_warn("anomaly at step %lld: there is no checkpoint yet to go back to; the step is "
                 "skipped",
                 from);
    if (code || r->saved < 0)
        return code;
    if (r->journal.skips.n[SKIP_REWINDS] >= REWINDS_MAX)
        return err_set(e, ERR_ANOMALY, "step %lld: rewound %d times, the limit", from, REWINDS_MAX);
    watchdog_enter(j, WATCH_LOAD);
    step_drop(&j->rank);
    r->ahead = (struct err){0};
    code = job_go_back(j, e);
    loader_destroy(r->train);
    r->train = NULL;
    if (!code)
        code = open_train(r, e);
    if (code)
        return code;
    journal_rewind(&r->journal, &j->rank, ckpt_meta(j->ckpt)->consumed_samples);
    r->anomaly.n = 0;
    best_read(&r->best, ckpt_state(j->ckpt, "validation_losses"));
    r->saved = j->rank.at.iteration;
    log_warn("anomaly at step %lld: back to the checkpoint of step %lld; the data since then are "
             "skipped",
             from, (long long)r->saved);
    return 0;
}

/* Of a step that was not taken. */
static int judge(struct run *r, const struct step_result *s, struct err *e)
{
    const struct report_flags *f = &r->job->o->report;
    long long at = (long long)r->job->rank.at.iteration;
    /* an overflow, which the next loss scale answers */
    if (!s->spike && isfinite(s->loss) && r->job->rank.config.scale.dynamic)
        return 0;
    if (s->spike)
        log_warn(
            "step %lld: the loss of %g is above %g times the mean of the last steps: no update", at,
            s->loss, f->spike);
    if (f->anomaly == ANOMALY_REWIND)
        return rewind_run(r, e);
    if (f->anomaly != ANOMALY_STOP)
        return 0;
    err_set(e, ERR_ANOMALY, "step %lld: the loss is %g, the gradient norm %g", at, s->loss,
            s->grad_norm);
    return err_hint(e, "--on-anomaly stop ends the run here; the last checkpoint is intact");
}

/* A text by the checkpoint of this step. */
static int write_sample(struct run *r, struct err *e)
{
    struct job *j = r->job;
    int code = save(r, e);
    if (!code)
        code = finish_save(r, true, e);
    watchdog_enter(j, WATCH_EVAL);
    if (!code && job_is_first(j))
        generate_sample(j);
    code = job_agree(j, code, e);
    journal_pause_over(&r->journal);
    return code;
}

/*
 * An error that leaves the weights as they were before it ends the run after they are saved: 0, and
 * it is kept. Not where the weights themselves are in doubt, and not after a fault, with which no
 * process hears of another. All processes have the same code here.
 */
static int end_later(struct run *r, int code, struct err *e)
{
    const struct rank *k = &r->job->rank;
    bool doubt = code == ERR_FAULT || code == ERR_ANOMALY || code == ERR_INTEGRITY;
    if (!code || doubt || !r->job->o->save || k->comm.fault || !k->at.iteration)
        return code;
    r->late = *e;
    return 0;
}

static int one_step(struct run *r, struct err *e)
{
    struct job *j = r->job;
    const struct train_options *o = j->o;
    struct step_result s;
    j->rank.loss_limit = anomaly_limit(&r->anomaly);
    int code = take_step(r, &s, e);
    if (code && !e->step && e->msg[0]) /* a watchdog's sentence names it, another rank has it */
        err_wrap(e, "step %lld", (long long)j->rank.at.iteration + 1);
    if (code)
        return end_later(r, code, e);
    int64_t at = j->rank.at.iteration;
    watchdog_report_optimizer(j, s.skipped);
    code = journal_step(&r->journal, &j->rank, &s, e);
    if (!s.skipped)
        anomaly_note(&r->anomaly, s.loss);
    else if (!code)
        code = judge(r, &s, e);
    if (j->rank.at.iteration != at) /* back at a checkpoint */
        return code;
    if (!code && divides(o->check_replicas, at))
        code = watchdog_compare(j, e);
    if (!code && job_ready(j, PART_VALID) && divides(j->eval_interval, at) &&
        at < j->course.iterations)
        code = end_later(r, evaluate(r, PART_VALID, "", e), e);
    if (!code)
        code = finish_save(r, false, e);
    if (!code && divides(o->save_interval, at))
        code = save(r, e);
    if (!code && o->save && divides(o->report.sample_interval, at))
        code = write_sample(r, e);
    char note[64];
    snprintf(note, sizeof(note), "loss %.4f", s.loss);
    progress_update(&r->meter, (uint64_t)at, note);
    return code;
}

/* The newest weights, where it is not they that failed. */
static int save_at_end(struct run *r, struct err *e)
{
    int code = save(r, e);
    return code ? code : finish_save(r, true, e);
}

/* After STOP_FAILED on one of the processes: all have saved, with `code`. */
static int end_failed(struct run *r, int code, struct err *e)
{
    struct err *why = r->late.code ? &r->late : &r->journal.failed;
    if (code && e->msg[0])
        log_warn("the weights of step %lld could not be saved: %s",
                 (long long)r->job->rank.at.iteration, e->msg);
    *e = *why;
    return job_agree(r->job, why->code, e);
}

static void tell_over(const struct run *r)
{
    const struct best *b = &r->best;
    log_info("--early-stopping-patience %d: the loss of validation, %g at step %lld, was not lower "
             "in %lld evaluations since; the run ends after step %lld",
             b->patience, b->loss[0], (long long)b->iteration[0], (long long)b->without,
             (long long)r->job->rank.at.iteration);
}

static int loop(struct run *r, struct err *e)
{
    struct job *j = r->job;
    int code = 0, stop = STOP_NOT;
    while (!code && !stop && j->rank.at.iteration < j->course.iterations &&
           !best_is_over(&r->best)) {
        code = one_step(r, e);
        if (!code)
            stop = all_ranks_max(&j->rank.comm, whether_to_stop(r));
        is_asked(r, stop);
        stop = j->rank.steps_issued ? STOP_NOT : r->asked; /* it is done after that step */
        if (!j->rank.steps_issued)
            r->asked = STOP_NOT;
        if (stop == STOP_TO_SAVE) {
            code = save_as_asked(r, e);
            r->saves = signals_saves_asked(); /* a signal to all ranks asks for one checkpoint */
            stop = STOP_NOT;
        }
    }
    progress_finish(&r->meter);
    if (!code && !stop && (j->o->eval_iters > 0 || j->o->full_validation))
        code = end_later(r, evaluate_at_end(r, e), e);
    if (!code && !stop && all_ranks_max(&j->rank.comm, r->late.code || r->journal.failed.code))
        stop = STOP_FAILED;
    if (!code && best_is_over(&r->best))
        tell_over(r);
    r->ended = !code && (!stop || j->rank.at.iteration >= j->course.iterations);
    if (!code)
        code = watchdog_compare(j, e);
    if (!code)
        code = save_at_end(r, e);
    if (code)
        abandon_save(r);
    if (stop == STOP_FAILED)
        return end_failed(r, code, e);
    if (!code && all_ranks_max(&j->rank.comm, r->journal.failed.code)) /* of its last lines */
        return end_failed(r, code, e);
    bool in_time = stop < STOP_CONTROL && r->ended;
    return code || !stop || in_time ? code
                                    : signals_tell_stop(stop, j->o->save, j->rank.at.iteration, e);
}

/* ---- set-up ------------------------------------------------------------------------------ */

/* The meter is for a terminal; elsewhere the log lines tell where the run stands. */
static void start_meter(struct run *r)
{
    const struct job *j = r->job;
    progress_init(&r->meter, "train", "steps", 1, (uint64_t)j->course.iterations,
                  j->o->common.quiet || !isatty(STDERR_FILENO) || !job_is_last(j));
    r->meter.from = (uint64_t)j->rank.at.iteration;
    r->meter.rate_unit = "tokens";
    r->meter.rate_per_count = (double)j->global_batch * (double)j->seq_length;
    r->journal.meter = &r->meter;
    r->journal.brief = job_for_people(j);
    r->meter.last = 0; /* it stands there from the first step on */
    progress_update(&r->meter, r->meter.from, NULL);
}

/* --dry-run: the rest of a start, up to the first step, of which it reads the data. */
static int rehearse(struct run *r, struct err *e)
{
    struct job *j = r->job;
    const struct batch *b;
    long long next = (long long)j->rank.at.iteration + 1;
    bool some = j->rank.at.iteration < j->course.iterations;
    int code = job_is_last(j) ? journal_try(j->o, e) : 0;
    if (!code && j->ckpt && j->rank.at.iteration)
        code = journal_read_skips(&r->journal, j->ckpt, e);
    if (!code && some)
        code = open_train(r, e);
    if (!code && some && loader_next(r->train, &b, e))
        code = err_wrap(e, "step %lld", next);
    code = job_agree(j, code, e);
    if (!code && some)
        log_info("--dry-run ends here and leaves no file: the run would go on with step %lld",
                 next);
    else if (!code)
        log_info("--dry-run ends here and leaves no file: the run would have no step to take");
    return code;
}

/* The weights alone, for an export without --save. */
static int write_weights(struct run *r, const char *dir, struct err *e)
{
    struct job *j = r->job;
    struct saving *s = &r->saving;
    watchdog_enter(j, WATCH_SAVE);
    int code = open_saving(r, dir, e);
    if (!code)
        code = state_save(&j->rank, s->w, j->rank.config.threads, e);
    if (!code && s->w)
        code = commit(j, s, e);
    ckpt_writer_close(s->w);
    s->w = NULL;
    s->iteration = 0;
    return job_agree(j, code, e);
}

/* --export-hf: from the last checkpoint of --save, or from one that is made for it. */
static int export_at_end(struct run *r, struct err *e)
{
    struct job *j = r->job;
    const struct train_options *o = j->o;
    struct export_place place = {.lock.fd = -1};
    const char *dir = o->save;
    int code = 0;
    if (!o->export_hf || !r->ended)
        return 0;
    if (!dir) {
        code = job_is_first(j) ? export_place_open(&place, o->export_hf, e) : 0;
        dir = place.folder;
        code = job_agree(j, code, e);
        if (!code)
            code = write_weights(r, dir, e);
    }
    if (!code && job_is_first(j))
        code =
            export_model(j, dir, j->rank.at.iteration, o->test_prompt ? generate_trial : NULL, e);
    if (place.folder)
        export_place_close(&place, o->export_hf);
    return code;
}

/* From what is prepared to the end. */
static int train(struct run *r, struct err *e)
{
    struct job *j = r->job;
    int code = 0;
    if (job_is_last(j))
        code = journal_open(&r->journal, j->o, &j->rank, j->course.iterations, e);
    else
        journal_open_silent(&r->journal, j->o, &j->rank);
    if (!code)
        code = board_arguments(&r->journal.board, j->rank.at.iteration, j->opts, e);
    if (!code) {
        r->anomaly.factor = j->o->report.spike;
        r->best.keep = (int)j->o->keep_best;
        r->best.patience = (int)j->o->patience;
        if (j->ckpt && j->rank.at.iteration) { /* it resumes */
            anomaly_read(&r->anomaly, ckpt_state(j->ckpt, "recent_losses"));
            best_read(&r->best, ckpt_state(j->ckpt, "validation_losses"));
            code = journal_read_skips(&r->journal, j->ckpt, e);
        }
        code = job_agree(j, code ? code : journal_open_timers(&r->journal, &j->rank, e), e);
    }
    if (!code)
        code = open_train(r, e);
    if (!code) {
        if (j->ckpt_is_own)
            r->saved = j->rank.at.iteration;
        watchdog_enter(j, WATCH_START);
        signals_listen();
        start_meter(r);
        code = loop(r, e);
    }
    if (!code && j->rank.tokens_spared)
        log_info("padding: %lld of %lld tokens, which were not computed",
                 (long long)j->rank.tokens_spared, (long long)j->rank.tokens_passed);
    if (!code)
        code = export_at_end(r, e);
    if (!code && job_is_first(j))
        journal_tell_wandb(j->o);
    return code;
}

int verb_run(struct opts *opts, struct err *e)
{
    struct job j = {.opts = opts, .o = opts->values};
    struct run r = {.job = &j, .saved = -1, .started = clock_seconds()};
    r.control = j.o->report.control ? mem_strdup(j.o->report.control)
                : j.o->save         ? path_join(j.o->save, "control")
                                    : NULL;
    int code = job_prepare(&j, e);
    if (!code)
        job_introduce(&j);
    if (!code)
        code = j.o->dry_run ? rehearse(&r, e) : train(&r, e);
    if (code && j.rank.comm.fn)
        watchdog_tell_others(&j, e);
    loader_destroy(r.train);
    free(r.control);
    journal_close(&r.journal);
    job_close(&j);
    return code;
}
