/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "train/engine/state.h"
#include "train/metrics/logline.h"
#include "train/job/served.h"
#include "train/job/watchdog.h"
#include "train/job/checkpoint.h"

/* ---- data manifest -------------------------------------------------------------------- */

/* List number i of the data: the shared one or those of the parts. NULL behind the last. */
static const struct blend_list *list_at(const struct job *j, int i)
{
    if (!j->lists.per_part)
        return i ? NULL : &j->lists.shared;
    return i < PARTS ? &j->lists.own[i] : NULL;
}

/* The tokenizer of a data set is the first one's; its manifest's digest goes into `all`. */
static int add_manifest(const struct job *j, const char *prefix, struct buf *all, struct err *e)
{
    struct manifest m;
    bool found;
    char digest[SHA_TEXT];
    char *path = manifest_path(prefix);
    int code = manifest_read(prefix, &m, &found, e);
    if (!code && found) {
        if (j->has_manifest)
            code = job_same_data_tokenizer(j, &m, prefix, e);
        if (!code)
            code = sha_file(path, digest, e);
        if (!code)
            buf_addf(all, "%s\n", digest);
        manifest_close(&m);
    }
    free(path);
    return code;
}

/* One digest for the manifests of all data sets; of a single one, its own. */
static int digest_manifests(struct job *j, struct err *e)
{
    struct buf all = {0};
    const struct blend_list *l;
    size_t sets = 0;
    int code = 0;
    for (int i = 0; (l = list_at(j, i)) != NULL; i++)
        for (size_t k = 0; k < l->n && !code; k++, sets++)
            code = add_manifest(j, l->prefix[k], &all, e);
    if (!code && all.len && sets == 1)
        memcpy(j->data_digest, all.data, SHA_TEXT - 1);
    else if (!code && all.len)
        sha_once(all.data, all.len, j->data_digest);
    buf_finish(&all);
    j->data_name = sets == 1 ? j->data_prefix : "the blend";
    return code;
}

/* Packed sets go with packed ones alone: which examples lie side by side is settled, and so is what
 * is learnt. */
static int find_packed(struct job *j, struct err *e)
{
    static const char *const idle[] = {"data-cache-path", "data-rules", "no-index-cache"};
    const struct train_options *o = j->o;
    const struct blend_list *l;
    const char *found = NULL, *plain = NULL;
    for (int i = 0; (l = list_at(j, i)) != NULL; i++)
        for (size_t k = 0; k < l->n; k++)
            *(packed_exists(l->prefix[k]) ? &found : &plain) = l->prefix[k];
    j->packed = found != NULL;
    if (found && plain)
        return packed_mixed(found, plain, e);
    if (found && (o->eod_mask_loss || o->reset_position_ids || o->reset_attention_mask))
        return err_set(e, ERR_USAGE,
                       "%s is a packed set and says itself what ends where: --eod-mask-loss, "
                       "--reset-position-ids and --reset-attention-mask are for other data",
                       found);
    for (size_t i = 0; found && i < sizeof(idle) / sizeof(idle[0]); i++)
        opts_warn_no_effect(j->opts, idle[i], "packed sets have no index maps");
    return 0;
}

int job_open_manifest(struct job *j, struct err *e)
{
    if (j->o->mock_data)
        return job_open_mock(j, e);
    int code = data_flags_lists(&j->o->data, &j->lists, e);
    if (code)
        return code;
    for (int i = 0; !j->data_prefix; i++)
        j->data_prefix = list_at(j, i)->n ? list_at(j, i)->prefix[0] : NULL;
    code = find_packed(j, e);
    if (!code)
        code = manifest_read(j->data_prefix, &j->manifest, &j->has_manifest, e);
    return code ? code : digest_manifests(j, e);
}

/* ---- model ------------------------------------------------------------------------------- */

/* Neither tokenizer nor manifest: data that cannot be read at all is told first. */
static int without_vocabulary(const struct job *j, struct err *e)
{
    struct shard s;
    int code = j->packed ? 0 : shard_open(&s, j->data_prefix, e);
    if (code)
        return code;
    if (!j->packed)
        shard_close(&s);
    err_set(e, ERR_USAGE, "%s has no manifest that names its tokenizer", j->data_prefix);
    return err_hint(e, "name the tokenizer that it was made with: --tokenizer FILE, or "
                       "--tokenizer-type NullTokenizer --vocab-size N for ids alone");
}

/* The model of what --load names. */
static int loaded_spec(struct job *j, struct err *e)
{
    if (j->ckpt)
        return spec_from_manifest(ckpt_model(j->ckpt), ckpt_must_know(j->ckpt), ckpt_path(j->ckpt),
                                  &j->spec, e);
    j->spec = j->hf->model.spec;
    return 0;
}

/* --resize-vocab: rows for all ids of the tokenizer. Only where the run begins. */
static int resize_vocab(struct job *j, struct err *e)
{
    if (!j->o->resize_vocab || j->ckpt_is_own)
        return 0;
    if (!j->hf) {
        err_set(e, ERR_USAGE, "--resize-vocab: %s is no model of Hugging Face", j->o->load);
        return err_hint(e, WEFT_PREFIX "convert export makes one of it");
    }
    if (j->vocab <= j->spec.vocab) {
        if (job_is_first(j))
            log_warn("--resize-vocab has no effect: %s has %lld rows for the tokenizer's %lld ids",
                     j->hf->path, (long long)j->spec.vocab, (long long)j->vocab);
        return 0;
    }
    if (job_is_first(j))
        log_info("%lld rows are added to the %lld of %s, each their mean",
                 (long long)(j->vocab - j->spec.vocab), (long long)j->spec.vocab, j->hf->path);
    j->spec.vocab = j->spec.padded_vocab = j->vocab;
    return hf_grown_open(&j->grown, j->hf, j->vocab, e);
}

int job_spec(struct job *j, bool from_checkpoint, struct err *e)
{
    const char *path = j->ckpt ? ckpt_path(j->ckpt) : j->hf ? j->hf->path : NULL;
    bool theirs = j->o->checkpoint_args && j->ckpt;
    bool shaped = !from_checkpoint && !theirs && spec_flags_shaped(&j->o->model);
    if (path && (j->hf || !shaped)) {
        int failed = loaded_spec(j, e);
        bool lacks = !failed && j->hf && j->vocab > j->spec.vocab;
        if (!failed && !from_checkpoint)
            failed = resize_vocab(j, e);
        if (failed)
            return failed;
        if (theirs)
            j->spec.padded_vocab =
                spec_pad_vocab(j->spec.vocab, j->o->model.vocab_divisor, j->layout.mesh.tp);
        if (from_checkpoint || theirs)
            return spec_can_run(&j->spec, path, e);
        failed = spec_from_model(&j->o->model, path, j->vocab, j->layout.mesh.tp, &j->spec, e);
        return failed && lacks && j->vocab > j->spec.vocab
                   ? err_hint(e, "--resize-vocab adds rows for them, each the mean of the others")
                   : failed;
    }
    int code = j->vocab < 1 && j->data_prefix ? without_vocabulary(j, e) : 0;
    if (!code)
        code = spec_from_flags(&j->o->model, j->vocab, j->layout.mesh.tp, &j->spec, e);
    if (!code && j->o->pad_in_loss)
        j->spec.vocab = j->spec.padded_vocab;
    if (!code && j->ckpt)
        code = state_same_model(j->ckpt, &j->spec, e);
    return code;
}

static int batches(struct job *j, enum model_use use, struct err *e)
{
    const struct train_options *o = j->o;
    int dp = j->layout.mesh.dp;
    int64_t all = o->micro_batch * dp * (o->accumulation ? o->accumulation : 1);
    j->global_batch = o->global_batch ? o->global_batch : all;
    if (o->accumulation && j->global_batch != all)
        return err_set(e, ERR_USAGE,
                       "--global-batch-size %lld is not --micro-batch-size %lld x "
                       "--gradient-accumulation-steps %lld x %d data-parallel processes",
                       (long long)o->global_batch, (long long)o->micro_batch,
                       (long long)o->accumulation, dp);
    if (j->global_batch % o->micro_batch)
        return err_set(e, ERR_USAGE,
                       "--global-batch-size %lld is not a multiple of --micro-batch-size %lld",
                       (long long)j->global_batch, (long long)o->micro_batch);
    if (j->global_batch % (o->micro_batch * dp))
        return err_set(e, ERR_USAGE,
                       "--global-batch-size %lld is not a multiple of --micro-batch-size %lld x %d "
                       "data-parallel processes",
                       (long long)j->global_batch, (long long)o->micro_batch, dp);
    j->micros = j->global_batch / (o->micro_batch * dp);
    if (use != MODEL_TRAIN)
        return 0;
    const struct course_units u = {.global_batch = j->global_batch,
                                   .divisor = o->micro_batch * dp,
                                   .seq_length = j->seq_length,
                                   .epoch = j->epoch};
    int code = course_settle(&o->course, &u, &j->course, e);
    j->eval_interval = course_eval_interval(&j->course, o->eval_interval);
    return code;
}

/* Bytes that lie beside the rank: batches of the loaders, a decoder's logits. */
static uint64_t beside(const struct job *j, enum model_use use)
{
    enum { BATCHES = 8, TOKEN = 24 }; /* 4 + 1 to train, 2 + 1 to evaluate */
    if (use == MODEL_DECODE)
        return (uint64_t)j->spec.vocab * (sizeof(double) + sizeof(int32_t));
    return (uint64_t)j->o->micro_batch * (uint64_t)j->seq_length * BATCHES * TOKEN;
}

/* The files of the data that are going to be mapped, index maps made of them included. */
static uint64_t data_bytes(const struct job *j)
{
    static const char *const kind[] = {"bin", "idx", "idx"};
    const struct blend_list *l;
    uint64_t sum = 0, n;
    for (int i = 0; j->data_prefix && (l = list_at(j, i)) != NULL; i++)
        for (size_t k = 0; k < l->n * 3; k++) {
            char *path = mem_printf("%s.%s", l->prefix[k / 3], kind[k % 3]);
            sum += file_size(path, &n, NULL) ? 0 : n;
            free(path);
        }
    return sum;
}

static int read_foreign(const void *from, const char *name, int rank, const int64_t *size,
                        struct box_mem to, struct err *e)
{
    const struct job *j = from;
    return j->grown.is ? hf_grown_read(&j->grown, name, rank, size, to, e)
                       : hf_folder_read(j->hf, name, rank, size, to, e);
}

/* Of an imported model that was never trained since, or of --no-save-optim. */
static bool weights_alone(const struct ckpt *c)
{
    bool alone = true;
    for (size_t i = 0; alone && i < ckpt_tensors(c); i++)
        alone = !strcmp(ckpt_tensor_at(c, i)->group, CKPT_PARAM);
    return alone;
}

/*
 * --no-load-optim holds for one start: where it stands in the config.toml of a run that is resumed
 * it is of an earlier one, and counts only for a checkpoint that has no more than weights.
 */
static bool leaves_moments(const struct job *j)
{
    bool of_before = j->ckpt_is_own && opts_origin(j->opts, "no-load-optim") != FROM_FLAG;
    if (!j->o->no_load_optim || j->started)
        return false;
    if (!of_before || weights_alone(j->ckpt))
        return true;
    log_info("no-load-optim in the configuration is ignored: the run resumes from its own "
             "checkpoint");
    return false;
}

/* Of a run's checkpoints the newest that is intact: each is judged while it is read. */
static int load_newest(struct job *j, bool optimizer, struct err *e)
{
    const struct optim_rule *rule = optim_rule(j->rank.config.optimizer);
    bool resumes = optimizer, anew = ckpt_meta(j->ckpt)->iteration == 0;
    struct err why;
    if (optimizer && leaves_moments(j)) {
        log_info("optimizer state of %s is not loaded", ckpt_path(j->ckpt));
        optimizer = false;
    } else if (optimizer && weights_alone(j->ckpt) && (anew || rule->states || rule->number)) {
        if (!anew) {
            err_set(e, ERR_USAGE, "%s was saved without the optimizer's state", ckpt_path(j->ckpt));
            return err_hint(e, "--no-load-optim begins it anew, --finetune the run, too");
        }
        log_info("%s has weights alone: the optimizer starts afresh", ckpt_path(j->ckpt));
        optimizer = false;
    }
    int code = state_load(&j->rank, j->ckpt, optimizer, &why);
    while (code == ERR_INTEGRITY && j->ckpt_among) {
        code = checkpoint_fall_back(j, &why, e);
        if (code)
            return code;
        code = state_load(&j->rank, j->ckpt, optimizer, &why);
    }
    if (code)
        *e = why;
    if (!code && resumes && !optimizer) {
        j->rank.at.iteration = ckpt_meta(j->ckpt)->iteration;
        j->rank.at.consumed = ckpt_meta(j->ckpt)->consumed_samples;
    }
    if (code == ERR_INTEGRITY && j->ckpt_step_of)
        ckpt_hint_intact(j->ckpt_step_of, ckpt_meta(j->ckpt)->iteration, e);
    return code;
}

static enum graphs_use graphs_of(const struct train_options *o)
{
    return o->graphs == GRAPHS_AUTO && o->graphs_on ? GRAPHS_ON : (enum graphs_use)o->graphs;
}

int job_set_length(struct job *j, enum model_use use, struct err *e)
{
    const struct train_options *o = j->o;
    j->seq_length = o->seq_length && use != MODEL_DECODE ? o->seq_length : j->spec.max_positions;
    if (j->seq_length > j->spec.max_positions)
        return err_set(e, ERR_USAGE, "--seq-length %lld is longer than the model's %lld positions",
                       (long long)o->seq_length, (long long)j->spec.max_positions);
    return 0;
}

/* Batch arithmetic, and what the rank is to be. */
static int rank_configure(struct job *j, enum model_use use, struct rank_config *ret, struct err *e)
{
    const struct train_options *o = j->o;
    if (o->any_order && o->deterministic)
        return err_set(e, ERR_USAGE,
                       "--no-deterministic and --deterministic-mode exclude each other");
    struct precision p = {.real = DTYPE_F32};
    int code = job_set_length(j, use, e);
    if (!code)
        code = batches(j, use, e);
    if (!code && use == MODEL_TRAIN)
        code = precision_of(&o->precision, o->optimizer == OPTIMIZER_ADAM, &p, e);
    if (!code && use == MODEL_TRAIN)
        code = job_adopt_schedule(j, e);
    if (code)
        return code;
    *ret = (struct rank_config){.rank = j->comm.rank,
                                .comm = j->comm.world > 1 ? &j->comm : NULL,
                                .spec = j->spec,
                                .use = use,
                                .real = p.real,
                                .narrow = p.narrow,
                                .round = p.round,
                                .tf32 = o->precision.tf32,
                                .any_order = o->any_order,
                                .choices = j->tune.at,
                                .nchoices = j->tune.n,
                                .tune = o->tune_gemm && use == MODEL_TRAIN && j->comm.world <= 1,
                                .scale = p.scale,
                                .loads = j->hf || j->ckpt,
                                .graphs = graphs_of(o),
                                .threads = job_threads(j),
                                .kernels = o->kernels,
                                .library_path = o->library_path,
                                .file_size = (uint64_t)o->file_size,
                                .weights_only = o->no_save_optim || !o->save,
                                .async_save = o->async_save && o->save,
                                .overlap_grad_reduce = o->overlap_grad_reduce,
                                .overlap_param_gather = o->overlap_param_gather,
                                .bucket_size = o->bucket_size,
                                .micro_batch = o->micro_batch,
                                .seq_length = j->seq_length,
                                .micros = j->micros,
                                .frozen = o->freeze_pad,
                                .frozen_id = j->pad_id,
                                .documents = o->reset_attention_mask || j->packed,
                                .beside = beside(j, use),
                                .mapped = data_bytes(j),
                                .seed = (uint64_t)o->seed,
                                .decay = j->course.decay,
                                .lr = j->course.lr,
                                .ramp = j->course.ramp,
                                .progress = watchdog_progress,
                                .progress_arg = j};
    job_settle_optimizer(o, ret);
    if (use == MODEL_DECODE)
        ret->micro_batch = ret->micros = 1;
    code = job_settle_layout(j, use == MODEL_TRAIN, ret, e);
    return code ? code : job_choose_device(j, ret, e);
}

int job_configure_rank(struct job *j, struct rank_config *ret, struct dev_desc *desc, struct err *e)
{
    int code = rank_configure(j, MODEL_TRAIN, ret, e);
    if (code)
        return code;
    code = rank_choose(ret, desc, e);
    if (code && j->o->device == DEVICE_CUDA && ret->backends->assume_device) {
        ret->backends->assume_device(desc); /* nothing runs, so there need be none */
        code = 0;
    }
    return code;
}

int job_plan_rank(struct job *j, struct err *e)
{
    struct rank_config c;
    struct dev_desc desc;
    int code = job_configure_rank(j, &c, &desc, e);
    if (code)
        return code;
    j->rank_open = true;
    return rank_plan(&j->rank, &c, &desc, e);
}

int job_open_rank(struct job *j, enum model_use use, struct err *e)
{
    const struct train_options *o = j->o;
    struct rank_config c;
    const struct ckpt_meta *m = j->ckpt ? ckpt_meta(j->ckpt) : NULL;
    int code = use == MODEL_TRAIN ? tune_open(&j->tune, o->tune_gemm, m, e) : 0;
    if (!code)
        code = rank_configure(j, use, &c, e);
    if (!code && use == MODEL_TRAIN)
        code = course_check(&o->course, &j->course, e);
    code = job_agree(j, code, e);
    if (code)
        return code;
    if (o->threads > 2 * (int64_t)pool_cpus())
        log_warn("--threads %lld on %d processors: more threads than processors are slower",
                 (long long)o->threads, pool_cpus());
    j->rank_open = true;
    code = rank_open(&j->rank, &c, e);
    if (!code && use == MODEL_TRAIN && job_is_first(j) && !o->dry_run)
        code = tune_report(&j->tune, &j->rank.ops, o->tune_gemm, e);
    code = job_agree(j, code, e);
    if (!code && j->hf)
        code = state_load_weights(&j->rank, read_foreign, j, e);
    if (!code && j->hf)
        code = hf_folder_check(j->hf, e);
    if (code || !j->ckpt)
        return code;
    return load_newest(j, use == MODEL_TRAIN && (j->ckpt_is_own || !o->finetune), e);
}

int job_go_back(struct job *j, struct err *e)
{
    int64_t consumed = j->rank.at.consumed;
    ckpt_close(j->ckpt);
    j->ckpt = NULL;
    j->ckpt_is_own = false;
    j->started = true;
    int code = checkpoint_find(j, false, e);
    if (!code && !j->ckpt_is_own)
        code = err_set(e, ERR_ANOMALY, "--on-anomaly rewind: there is no checkpoint to go back to");
    code = job_same_checkpoint(j, code, e);
    if (!code)
        code = load_newest(j, true, e);
    j->rank.at.consumed = consumed;
    return code;
}

/* ---- what is about to run ---------------------------------------------------------------- */

bool job_for_people(const struct job *j)
{
    return isatty(STDOUT_FILENO) && !j->o->world->one_output && j->o->log_format == LOG_CORE &&
           opts_origin(j->opts, "log-format") != FROM_FLAG;
}

void job_introduce(const struct job *j)
{
    struct buf b = {0};
    if (!j->o->save && opts_origin(j->opts, "save-interval") == FROM_FLAG)
        log_warn("--save-interval has no effect without --save");
    if (!j->o->save && !j->o->no_save && !j->o->export_hf)
        log_warn("without --save DIR the model is not kept (--no-save silences this warning)");
    rank_describe(&j->rank, &b);
    const struct dev *d = &j->rank.dev;
    char on[sizeof(d->desc.name)];
    if (d->desc.host)
        snprintf(on, sizeof(on), "%d thread%s", d->desc.threads, d->desc.threads == 1 ? "" : "s");
    else
        snprintf(on, sizeof(on), "%s", d->desc.name);
    if (j->o->precision.tf32 && (d->desc.host || j->rank.ops.real != DTYPE_F32))
        log_warn("--tf32 has no effect: it is for fp32 on a GPU");
    if (j->o->any_order && d->desc.host)
        log_warn("--no-deterministic has no effect: it is for a GPU");
    if (d->desc.host && opts_origin(j->opts, "tokens-per-pass") == FROM_FLAG)
        log_warn("--tokens-per-pass has no effect: it is for a GPU");
    if (j->rank.config.graphs == GRAPHS_ON && !j->rank.graphs.on)
        log_warn("--cuda-graphs on has no effect: it is for one process on a GPU");
    if (!d->desc.host) {
        buf_addf(&b, "; products: %s, attention: ", j->rank.ops.entry[OP_MATMUL].backend);
        served_add(&j->rank, &b);
        served_tell(&j->rank);
    }
    log_info("%lld parameters, %s; memory: %s", (long long)j->rank.params.parameters, on,
             buf_str(&b));
    if (model_merged(&j->rank.model) > 1)
        log_info("%lld micro-batches are computed in one pass",
                 (long long)model_merged(&j->rank.model));
    if (j->rank.graphs.on)
        log_info("passes are launched as CUDA graphs");
    const struct ramp *ramp = &j->rank.config.ramp;
    int64_t first = ramp->increment ? ramp_at(ramp, j->rank.at.consumed) : j->global_batch;
    char from[32] = "";
    if (first < j->global_batch)
        snprintf(from, sizeof(from), "%lld to ", (long long)first);
    if (j->rank.at.iteration < j->course.iterations)
        log_info("steps %lld to %lld of %s%lld sequences of %lld tokens",
                 (long long)j->rank.at.iteration + 1, (long long)j->course.iterations, from,
                 (long long)j->global_batch, (long long)j->seq_length);
    else
        log_warn("nothing to train: the checkpoint is at step %lld of %lld",
                 (long long)j->rank.at.iteration, (long long)j->course.iterations);
    buf_finish(&b);
}
