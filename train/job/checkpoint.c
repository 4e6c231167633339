/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/ckpt/other.h"
#include "train/engine/state.h"
#include "train/engine/all_ranks.h"
#include "convert/hf/hf_origin.h"
#include "train/report/anomaly.h"

/* ---- the lock of --save ------------------------------------------------------------------- */

int checkpoint_lock(struct job *j, struct err *e)
{
    struct save_lock *l = &j->lock;
    const char *save = j->o->save;
    bool held = false;
    int code = 0;
    if (!save)
        return 0;
    l->made = file_first_missing(save);
    l->path = path_join(save, ".lock");
    l->fd = -1;
    while (!code && !held && l->fd < 0) {
        code = file_mkdirs(save, e);
        if (!code)
            code = file_lock(l->path, &l->fd, &held, e);
    }
    if (held) {
        err_set(e, ERR_USAGE, "%s: another process is training there", save);
        code = err_hint(e, "wait until it has ended, or name another folder by --save");
    }
    if (code) {
        file_prune(save, l->made);
        free(l->made);
        free(l->path);
        l->path = NULL;
    }
    return code;
}

void checkpoint_unlock(struct job *j)
{
    struct save_lock *l = &j->lock;
    if (!l->path)
        return;
    unlink(l->path);
    close(l->fd);
    file_prune(j->o->save, l->made);
    free(l->made);
    free(l->path);
    l->path = NULL;
}

/* ---- what a folder is --------------------------------------------------------------------- */

static char *without_slashes(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 2 && path[0] == '.' && path[1] == '/') {
        path += 2;
        n -= 2;
    }
    return mem_strndup(path, n);
}

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    if (!stat(a, &x) && !stat(b, &y))
        return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    char *s = without_slashes(a), *t = without_slashes(b);
    bool same = !strcmp(s, t);
    free(s);
    free(t);
    return same;
}

static bool start_holds(const char *dir, const char *name)
{
    char *path = path_join(dir, name);
    bool found = file_exists(path);
    free(path);
    return found;
}

/* What lies in a folder without checkpoints. */
struct content {
    struct buf names; /* the first of them */
    size_t n;
};

/* Files of a run that has not saved yet do not count as content. */
static int look_into(const char *dir, struct content *ret, struct err *e)
{
    static const char *const own[] = {
        "config.toml", "metrics.jsonl", "latest_checkpointed_iteration.txt",
        "timers",      "control",       "tensorboard"};
    DIR *d = opendir(dir);
    *ret = (struct content){0};
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", dir);
    for (struct dirent *en; (en = readdir(d));) {
        bool ours = en->d_name[0] == '.';
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
            ours |= !strcmp(en->d_name, own[i]);
        if (ours)
            continue;
        if (ret->n++ < 4)
            buf_addf(&ret->names, "%s%s", ret->n > 1 ? ", " : "", en->d_name);
    }
    closedir(d);
    return 0;
}

static const char by_load[] = "--load takes the folder that was a run's --save, or one of its "
                              "checkpoints (RUN/iter_0000100)";

/* The error for a --load without checkpoints; 0 with *ret_empty if it is missing or empty. */
static int without_checkpoints(const char *load, bool *ret_empty, struct err *e)
{
    struct content c = {0};
    struct stat st;
    *ret_empty = stat(load, &st) != 0;
    if (*ret_empty)
        return errno == ENOENT ? 0 : err_sys(e, errno, "%s: cannot open the folder", load);
    if (!S_ISDIR(st.st_mode)) {
        err_set(e, ERR_DATA, "%s is a file, not a folder of checkpoints", load);
        return err_hint(e, "%s", by_load);
    }
    int code = look_into(load, &c, e);
    if (!code && c.n) {
        err_set(e, ERR_DATA, "%s holds no checkpoint (iter_0000100), but other files: %s%s", load,
                buf_str(&c.names), c.n > 4 ? ", ..." : "");
        code = err_hint(e, "%s", by_load);
    }
    *ret_empty = !code;
    buf_finish(&c.names);
    return code;
}

/* ---- opening ------------------------------------------------------------------------------ */

static void say_skipped(struct ckpt_skips *s)
{
    for (size_t i = 0; i < s->n; i++)
        log_warn("%s is passed over: %s", s->at[i].path, s->at[i].why.msg);
    ckpt_skips_finish(s);
}

enum { HINT_MAX = 4096 };

/* The file that scripts read may be damaged or older than the newest checkpoint, which is taken. */
static void check_hint(const char *dir, const struct ckpt *c)
{
    char *path = path_join(dir, "latest_checkpointed_iteration.txt"), *end = NULL;
    struct buf b = {0};
    struct err ignored;
    if (file_exists(path) && !file_read(path, HINT_MAX, &b, &ignored)) {
        long long step = strtoll(buf_str(&b), &end, 10);
        while (*end == '\n' || *end == '\r' || *end == ' ')
            end++;
        if (!b.len || *end || step != (long long)ckpt_meta(c)->iteration)
            log_warn("%s does not name the newest checkpoint, %s, which is taken", path,
                     ckpt_path(c));
    }
    buf_finish(&b);
    free(path);
}

/* The newest before step `below`, whose tensors are judged when they are loaded. */
static int newest(struct job *j, const char *dir, int64_t below, struct ckpt **ret, struct err *e)
{
    struct ckpt_skips skips = {0};
    int code = ckpt_open_before(dir, below, ret, &skips, e);
    say_skipped(&skips);
    if (!code && below == INT64_MAX)
        check_hint(dir, *ret);
    j->ckpt_among = code ? NULL : dir;
    return code;
}

/* The sentence of the first process that has found damage. */
static int share_reason(struct job *j, const struct err *why, struct buf *ret, struct err *e)
{
    struct buf all = {0};
    size_t *size = mem_new((size_t)j->rank.comm.world, sizeof(*size)), i = 0;
    int code = all_ranks_gather(&j->rank.comm, why->msg, strlen(why->msg), &all, size, e);
    while (!code && i + 1 < (size_t)j->rank.comm.world && !size[i])
        i++;
    if (!code)
        buf_add(ret, all.data, size[i]);
    buf_finish(&all);
    free(size);
    return code;
}

/* What is said of a checkpoint that is damaged. */
static int pass_over(struct job *j, const struct err *why, struct err *e)
{
    struct buf reason = {0};
    int code = share_reason(j, why, &reason, e);
    if (!code)
        log_warn("%s is passed over: %s", ckpt_path(j->ckpt), buf_str(&reason));
    buf_finish(&reason);
    return code;
}

int checkpoint_fall_back(struct job *j, const struct err *why, struct err *e)
{
    struct ckpt *c;
    int64_t step = ckpt_meta(j->ckpt)->iteration;
    struct err none;
    int code = newest(j, j->ckpt_among, step, &c, &none);
    if (all_ranks_max(&j->rank.comm, code || !c)) {
        if (!code)
            ckpt_close(c);
        *e = *why;
        err_hint(e, "no earlier checkpoint of that run is intact");
        return why->code;
    }
    code = pass_over(j, why, e);
    if (!code)
        code = state_same_model(c, &j->spec, e);
    if (code) {
        ckpt_close(c);
        return code;
    }
    ckpt_close(j->ckpt);
    j->ckpt = c;
    log_info("%s %s", j->ckpt_is_own ? "resuming from" : "checkpoint", ckpt_path(c));
    return job_same_checkpoint(j, 0, e);
}

/* --load names one checkpoint. */
static int open_one(const char *path, int64_t step, struct ckpt **ret, struct err *e)
{
    int code = ckpt_open(path, ret, e);
    if (!code && step && ckpt_meta(*ret)->iteration != step)
        code = err_set(e, ERR_USAGE, "--load %s is step %lld, and --ckpt-step is %lld", path,
                       (long long)ckpt_meta(*ret)->iteration, (long long)step);
    if (!code)
        code = ckpt_verify_further(*ret, e); /* the tensors when they are loaded */
    if (code) {
        ckpt_close(*ret);
        *ret = NULL;
    }
    return code;
}

/* One checkpoint by its step; if it is missing the error lists those that are there. */
static int by_step(struct job *j, const char *dir, int64_t step, struct ckpt **ret, struct err *e)
{
    int64_t *list;
    size_t n;
    struct buf b = {0};
    int code = ckpt_list(dir, &list, &n, e);
    if (code)
        return code;
    for (size_t i = 0; i < n; i++)
        if (list[i] == step) {
            char *path = ckpt_folder(dir, step);
            code = open_one(path, step, ret, e);
            j->ckpt_step_of = dir;
            free(path);
            free(list);
            return code == ERR_INTEGRITY || code == ERR_DATA ? ckpt_hint_intact(dir, step, e)
                                                             : code;
        }
    for (size_t i = n < 12 ? n : 12; i-- > 0;)
        buf_addf(&b, "%s%lld", b.len ? ", " : "", (long long)list[i]);
    err_set(e, ERR_IO, "%s has no checkpoint of step %lld", dir, (long long)step);
    if (n)
        err_hint(e, "it has %s%s", n > 12 ? "among others " : "", buf_str(&b));
    buf_finish(&b);
    free(list);
    return ERR_IO;
}

static bool has_checkpoints(const char *dir)
{
    int64_t *list = NULL;
    size_t n = 0;
    if (!dir || !file_is_dir(dir) || ckpt_list(dir, &list, &n, NULL))
        return false;
    free(list);
    return n > 0;
}

/* What `load` names; *ret NULL if it is missing or empty. */
static int open_load(struct job *j, const char *load, int64_t step, struct ckpt **ret,
                     struct err *e)
{
    bool empty;
    *ret = NULL;
    if (start_holds(load, "manifest.json"))
        return open_one(load, step, ret, e);
    if (!has_checkpoints(load))
        return without_checkpoints(load, &empty, e);
    return step ? by_step(j, load, step, ret, e) : newest(j, load, INT64_MAX, ret, e);
}

/* ---- which one ---------------------------------------------------------------------------- */

/* --load is --save, or a checkpoint in it. */
static bool load_is_own(const struct train_options *o, bool *ret_one)
{
    *ret_one = false;
    if (!o->load || !o->save)
        return false;
    if (same_folder(o->load, o->save))
        return true;
    char *bare = without_slashes(o->load), *dir = path_dir(bare);
    *ret_one = start_holds(bare, "manifest.json") && same_folder(dir, o->save);
    free(bare);
    free(dir);
    return *ret_one;
}

static char *aside_path(const struct job *j, int64_t step, const char *before)
{
    return mem_printf("%s/%sreplaced_after_%07lld", j->o->save, before, (long long)step);
}

/* The step of --save that is asked for, 0 for the newest: one that the run was resumed from before
 * is the newest again, so that a job script may give the same command each time. */
static int asked_step(struct job *j, bool one, int64_t *ret, struct err *e)
{
    struct ckpt *c = NULL;
    *ret = j->o->ckpt_step;
    if (one) {
        int code = open_one(j->o->load, *ret, &c, e);
        if (code)
            return code;
        *ret = ckpt_meta(c)->iteration;
        ckpt_close(c);
    }
    char *aside = *ret ? aside_path(j, *ret, "") : NULL;
    if (aside && file_exists(aside)) {
        log_info("the run was resumed from step %lld before (%s): its newest checkpoint is taken; "
                 "rename that folder to resume from step %lld again",
                 (long long)*ret, aside, (long long)*ret);
        *ret = 0;
    }
    free(aside);
    return 0;
}

/* The options as they stand in the config.toml of --save are those that resume: without what chose
 * an older checkpoint of it. */
static void forget_choice(struct job *j, bool one)
{
    struct train_options *o = j->opts->values;
    o->ckpt_step = 0;
    if (one)
        o->load = NULL;
}

static int resume(struct job *j, bool own, bool one, struct err *e)
{
    const struct train_options *o = j->o;
    int64_t step = 0;
    int code = own || !o->load ? asked_step(j, one, &step, e) : 0;
    if (!code)
        code = step ? by_step(j, o->save, step, &j->ckpt, e)
                    : newest(j, o->save, INT64_MAX, &j->ckpt, e);
    if (code)
        return code;
    j->ckpt_is_own = true;
    j->ckpt_is_chosen = step != 0;
    log_info("resuming from %s", ckpt_path(j->ckpt));
    if (own || !o->load)
        forget_choice(j, one);
    return 0;
}

static int nothing_to_load(const struct train_options *o, bool own, struct err *e)
{
    if (own && !o->exit_on_missing && !o->ckpt_step) {
        log_info("no checkpoint in %s yet: the run starts from nothing", o->load);
        return 0;
    }
    int code = path_refuse_address(o->load, e);
    if (code)
        return code;
    if (file_is_dir(o->load))
        err_set(e, ERR_IO, "%s holds no checkpoint", o->load);
    else
        err_set(e, ERR_IO, "%s: no such folder", o->load);
    return err_hint(e, "%s", by_load);
}

/* --load is a model of Hugging Face: its weights, and nothing else of a run. */
static int open_foreign(struct job *j, struct err *e)
{
    const struct opt_list *keys = &j->o->model.ignored_keys;
    const struct hf_ignore ignore = {keys->item, keys->n, false};
    if (j->o->ckpt_step)
        return err_set(e, ERR_USAGE,
                       "--ckpt-step %lld: %s is a model of Hugging Face, without steps",
                       (long long)j->o->ckpt_step, j->o->load);
    int code = hf_folder_open(j->o->load, &ignore, &j->hf, e);
    if (!code)
        log_info("weights of %s", j->hf->path);
    return code;
}

int checkpoint_find(struct job *j, bool required, struct err *e)
{
    const struct train_options *o = j->o;
    bool one, own = load_is_own(o, &one);
    if (required && !o->load) {
        err_set(e, ERR_USAGE, "--load is missing");
        return err_hint(e, "%s", by_load);
    }
    int other = o->save ? ckpt_other(o->save, e) : 0;
    if (!other && o->load && !hf_folder_is(o->load))
        other = ckpt_other(o->load, e);
    if (other)
        return other;
    if (has_checkpoints(o->save)) {
        int code = resume(j, own, one, e);
        if (!code && o->load && !own && !one)
            code = hf_origin_check(j->ckpt, o->load, o->save, o->resize_vocab, e);
        if ((code != ERR_INTEGRITY && code != ERR_DATA) || !o->load || own || o->ckpt_step)
            return code;
        log_warn("no checkpoint of %s is intact: %s is taken", o->save, o->load);
    }
    if (!o->load && o->ckpt_step)
        return err_set(e, ERR_USAGE, "--ckpt-step %lld: neither --load nor --save has checkpoints",
                       (long long)o->ckpt_step);
    if (!o->load)
        return 0;
    if (!has_checkpoints(o->load) && hf_folder_is(o->load))
        return open_foreign(j, e);
    int code = open_load(j, o->load, o->ckpt_step, &j->ckpt, e);
    if (code)
        return code;
    if (!j->ckpt)
        return nothing_to_load(o, own, e);
    log_info("%s %s", required || !o->finetune ? "checkpoint" : "weights of", ckpt_path(j->ckpt));
    return 0;
}

/* ---- later checkpoints -------------------------------------------------------------------- */

static int move_into(const char *dir, int64_t step, const char *to, struct err *e)
{
    char *name = mem_printf("iter_%07lld", (long long)step);
    char *from = path_join(dir, name), *into = path_join(to, name);
    int code = 0;
    if (rename(from, into))
        code = err_sys(e, errno, "%s: cannot rename it to %s", from, into);
    free(name);
    free(from);
    free(into);
    return code;
}

static int keep_metrics(const struct train_options *o, const char *to, struct err *e)
{
    enum { METRICS_MAX = 1 << 30 };
    char *from = o->metrics ? mem_strdup(o->metrics) : path_join(o->save, "metrics.jsonl");
    char *copy = path_join(to, "metrics.jsonl");
    struct buf b = {0};
    int code = 0;
    if (file_exists(from) && !file_exists(copy)) {
        code = file_read(from, METRICS_MAX, &b, e);
        if (!code)
            code = file_replace(copy, b.data, b.len, e);
    }
    buf_finish(&b);
    free(from);
    free(copy);
    return code;
}

/* Scripts that read the hint find the checkpoint that is the newest now. */
static int write_hint(const struct job *j, int64_t step, struct err *e)
{
    char text[32], *path = path_join(j->o->save, "latest_checkpointed_iteration.txt");
    int n = snprintf(text, sizeof(text), "%lld", (long long)step);
    int code = file_replace(path, text, (size_t)n, e);
    free(path);
    return code;
}

/*
 * The metrics first, the newest checkpoint next, all under a hidden name: the folder appears when
 * everything is in it, and what was interrupted is finished by the next start.
 */
static int set_aside(const struct job *j, int64_t step, const int64_t *list, size_t n,
                     struct err *e)
{
    const char *save = j->o->save;
    char *to = aside_path(j, step, "."), *final = aside_path(j, step, "");
    struct buf b = {0};
    int code = file_mkdirs(to, e);
    if (!code)
        code = keep_metrics(j->o, to, e);
    for (size_t i = 0; !code && i < n && list[i] > step; i++) {
        code = move_into(save, list[i], to, e);
        buf_addf(&b, "%s%lld", b.len ? ", " : "", (long long)list[i]);
    }
    if (!code)
        code = write_hint(j, step, e);
    if (!code)
        code = file_sync_dir(to, e);
    if (!code && rename(to, final))
        code = err_sys(e, errno, "%s: cannot rename it to %s", to, final);
    if (!code)
        code = file_sync_dir(save, e);
    if (!code)
        log_warn("the run restarts from step %lld: its checkpoints of later steps (%s) and "
                 "a copy of its metrics are kept in %s",
                 (long long)step, buf_str(&b), final);
    buf_finish(&b);
    free(to);
    free(final);
    return code;
}

int checkpoint_set_aside(struct job *j, struct err *e)
{
    int64_t *list, step;
    size_t n;
    if (!j->ckpt_is_own || !j->ckpt_is_chosen)
        return 0;
    step = ckpt_meta(j->ckpt)->iteration;
    char *begun = aside_path(j, step, ".");
    int code = ckpt_list(j->o->save, &list, &n, e);
    if (!code && ((n && list[0] > step) || file_exists(begun)))
        code = set_aside(j, step, list, n, e);
    free(list);
    free(begun);
    return code;
}

int checkpoint_write_config(struct job *j, struct err *e)
{
    char *text = NULL, *path;
    size_t n = 0;
    if (!j->o->save)
        return 0;
    int code = file_mkdirs(j->o->save, e);
    if (code)
        return code;
    FILE *f = open_memstream(&text, &n);
    BUG_ON(!f, "no memory stream");
    opts_print_config(j->opts, f);
    fclose(f);
    path = path_join(j->o->save, "config.toml");
    code = file_replace(path, text, n, e);
    free(path);
    free(text);
    return code;
}

/* ---- options ------------------------------------------------------------------------------ */

int job_check_options(const struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    bool no_lr = opts_origin(j->opts, "lr") == FROM_DEFAULT;
    if ((no_lr || !course_has_length(&o->course)) && o->load && hf_folder_is(o->load)) {
        err_set(e, ERR_USAGE, "to train the model of %s further takes a length and a learning rate",
                o->load);
        return err_hint(e, "--recipe trl or --recipe llm-jp-sft has both, or give "
                           "--num-train-epochs X --lr X");
    }
    if (!course_has_length(&o->course)) {
        err_set(e, ERR_USAGE, "--train-iters is missing");
        return err_hint(e, "--train-iters N, --train-samples N, --train-tokens N or "
                           "--num-train-epochs X");
    }
    if (o->course.lr <= 0) {
        err_set(e, ERR_USAGE, no_lr ? "--lr is missing" : "--lr 0 learns nothing");
        return err_hint(e, "6e-4 suits 0.1 billion parameters, 1e-3 a tiny model");
    }
    if (o->save && o->no_save)
        return err_set(e, ERR_USAGE, "--save and --no-save exclude each other");
    if (o->finetune && !o->load) {
        err_set(e, ERR_USAGE, "--finetune needs --load: the weights to start from");
        return err_hint(e, "--load RUN takes the newest checkpoint of a run");
    }
    if ((o->keep_best || o->patience) && !o->eval_iters && !o->full_validation)
        return err_set(e, ERR_USAGE, "--%s: --eval-iters 0 leaves no loss of validation",
                       o->keep_best ? "keep-best" : "early-stopping-patience");
    if (o->report.anomaly == ANOMALY_REWIND && !o->save)
        return err_set(e, ERR_USAGE, "--on-anomaly rewind: expected --save");
    if (o->report.anomaly == ANOMALY_REWIND && o->no_save_optim)
        return err_set(e, ERR_USAGE, "--on-anomaly rewind: expected a run without --no-save-optim");
    return 0;
}
