/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "train/job/watchdog.h"
#include "train/job/checkpoint.h"

/* How Megatron core would call the tokenizer in the names of its caches. */
static void name_tokenizer(const struct job *j, struct core_tokenizer *ret)
{
    const struct tok_flags *f = &j->o->tokenizer;
    const char *path = f->model ? f->model : f->vocab_file ? f->vocab_file : f->path;
    *ret = (struct core_tokenizer){0};
    if (j->tokenizer && !path && j->has_manifest)
        path = j->manifest.tokenizer_path;
    if (j->tokenizer)
        core_tokenizer_of(tok_info(j->tokenizer)->type_name, path, f->merges, j->vocab - 1, ret);
}

/* What ends of documents are to do needs to know them. */
static int check_eod(const struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    bool asked = o->eod_mask_loss || o->reset_position_ids || o->reset_attention_mask;
    if (!asked || job_layout(j).eod >= 0)
        return 0;
    err_set(e, ERR_USAGE, "--%s needs the id of the end of document, which is not known",
            o->eod_mask_loss        ? "eod-mask-loss"
            : o->reset_position_ids ? "reset-position-ids"
                                    : "reset-attention-mask");
    return err_hint(e, "name the tokenizer of the data, with --eod-token if it does not say");
}

/* Each sample once, in the order of the data. */
static struct feed data_feed(const struct job *j, enum part p)
{
    return j->mocked ? mock_feed(&j->mock[p]) : blend_set_feed(&j->data, p);
}

/* Without fill in the middle. */
static struct feed plain_feed(const struct job *j, enum part p)
{
    return p == PART_TRAIN && j->epochs.n ? epochs_feed(&j->epochs) : data_feed(j, p);
}

static void open_epochs(struct job *j)
{
    if (j->course.ramp.epoch && job_ready(j, PART_TRAIN))
        j->epochs = (struct epochs){.of = data_feed(j, PART_TRAIN),
                                    .n = (uint64_t)j->course.ramp.epoch,
                                    .samples = (uint64_t)j->course.samples,
                                    .seed = (uint32_t)j->o->seed,
                                    .part = PART_TRAIN};
}

/* ERR_USAGE unless the pieces of --fim-rate are in the vocabulary. */
static int open_fim(struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    const char *piece[] = {o->fim_prefix, o->fim_middle, o->fim_suffix};
    int64_t id[3];
    if (o->fim_rate <= 0)
        return 0;
    if (!j->tokenizer)
        return err_set(e, ERR_USAGE, "--fim-rate needs the tokenizer of the data");
    for (int i = 0; i < 3; i++) {
        id[i] = tok_find(j->tokenizer, piece[i]);
        if (id[i] >= 0)
            continue;
        err_set(e, ERR_USAGE, "--fim-rate: the tokenizer has no piece %s", piece[i]);
        return err_hint(e, "name its own by --fim-prefix-token, --fim-middle-token, "
                           "--fim-suffix-token");
    }
    for (enum part p = 0; p < PARTS; p++)
        if (job_ready(j, p))
            j->fim[p] = (struct fim){.of = plain_feed(j, p),
                                     .rate = o->fim_rate,
                                     .spm_rate = o->fim_spm_rate,
                                     .prefix = (int32_t)id[0],
                                     .middle = (int32_t)id[1],
                                     .suffix = (int32_t)id[2],
                                     .eod = job_layout(j).eod,
                                     .seed = (uint64_t)o->seed};
    return 0;
}

static int manifest_fits(const struct shard *s, struct err *e)
{
    struct manifest m;
    bool found;
    int code = manifest_read(s->prefix, &m, &found, e);
    if (code || !found)
        return code;
    code = manifest_fits_shard(&m, s, e);
    manifest_close(&m);
    return code;
}

static int manifests_fit(const struct job *j, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < j->data.nsource && !code; i++)
        code = manifest_fits(&j->data.source[i].shard, e);
    for (size_t i = 0; i < j->pack.nsets && !code; i++)
        code = manifest_fits(&j->pack.set[i].shard, e);
    return code;
}

static int open_packed_sets(struct job *j, const uint64_t samples[PARTS], struct err *e)
{
    struct packed_config c = {.shared = j->lists.per_part ? NULL : &j->lists.shared,
                              .split = j->o->split,
                              .seq_length = (uint32_t)j->seq_length,
                              .seed = (uint32_t)j->o->seed,
                              .limit = j->spec.vocab};
    for (int p = 0; p < PARTS; p++)
        c.own[p] = &j->lists.own[p];
    memcpy(c.samples, samples, sizeof(c.samples));
    return packed_data_open(&j->pack, &c, e);
}

static int open_packed(struct job *j, const uint64_t samples[PARTS], struct err *e)
{
    int code = open_packed_sets(j, samples, e);
    return code ? code : manifests_fit(j, e);
}

int job_open_mock(struct job *j, struct err *e)
{
    const struct data_flags *f = &j->o->data;
    static const char *const idle[] = {"data-cache-path", "data-rules", "no-index-cache"};
    bool other = f->path.n || f->args_path || f->parts_path;
    for (int p = 0; p < PARTS; p++)
        other |= f->part[p].n > 0;
    if (other)
        return err_set(e, ERR_USAGE, "--mock-data and a --data-path exclude each other");
    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
        opts_warn_no_effect(j->opts, idle[i], "--mock-data has no files");
    j->mocked = true;
    j->data_name = "the mock data";
    return 0;
}

static int open_mocks(struct job *j, const uint64_t samples[PARTS], struct err *e)
{
    struct mock_config c = {.split = j->o->split,
                            .vocab = (int32_t)j->vocab,
                            .eod = j->tokenizer ? (int32_t)tok_info(j->tokenizer)->eod : -1,
                            .seq_length = (uint32_t)j->seq_length};
    if (j->vocab < 3)
        return err_set(e, ERR_USAGE, "--mock-data needs a vocabulary of at least 3 tokens");
    int code = 0;
    for (enum part p = 0; !code && p < PARTS; p++) {
        c.samples = samples[p];
        code = mock_open(&j->mock[p], &c, p, e);
    }
    return code;
}

static void close_sets(struct job *j)
{
    for (int p = 0; p < PARTS; p++)
        mock_close(&j->mock[p]);
    blend_set_close(&j->data);
    packed_data_close(&j->pack);
}

static void close_data(struct job *j)
{
    close_sets(j);
    data_lists_finish(&j->lists);
}

struct feed job_feed(const struct job *j, enum part p)
{
    if (j->packed)
        return packed_feed(&j->pack, p);
    return j->fim[p].of.sample ? fim_feed(&j->fim[p]) : plain_feed(j, p);
}

int job_need(const struct job *j, enum part p, struct err *e)
{
    if (j->mocked && !j->mock[p].count)
        return err_set(e, ERR_USAGE, "--mock-data: --split %s leaves the %s share no sample",
                       j->o->split, part_name(p));
    if (j->mocked)
        return 0;
    return j->packed ? packed_need(&j->pack, p, e) : blend_set_need(&j->data, p, e);
}

bool job_ready(const struct job *j, enum part p)
{
    const struct packed_part *part = &j->pack.part[p];
    return j->mocked   ? j->mock[p].count > 0
           : j->packed ? part->n && part->samples
                       : j->data.ready[p];
}

bool job_empty(const struct job *j, enum part p)
{
    if (j->mocked)
        return j->mock[p].documents && !j->mock[p].once;
    if (j->packed)
        return j->pack.empty[p] != NULL;
    return j->data.empty[p] || (p == PART_TEST && j->data.lacking.code);
}

uint64_t job_once(const struct job *j, enum part p)
{
    if (j->mocked)
        return j->mock[p].once;
    return j->packed ? packed_once(&j->pack.part[p]) : blend_set_once(&j->data.part[p]);
}

uint64_t job_there(const struct job *j, enum part p)
{
    return j->mocked || j->packed ? job_once(j, p) : blend_set_there(&j->data.part[p]);
}

struct stretch job_stretch(const struct job *j, enum part p, int64_t step, int64_t interval,
                           bool full)
{
    const struct train_options *o = j->o;
    int64_t turn = p == PART_TEST ? 0 : step > 0 ? (step - 1) / interval : 0;
    int64_t rows = j->rank.effective.micro_batch * j->layout.mesh.dp;
    uint64_t all = p == PART_VALID && full ? job_once(j, p) : 0;
    if (all)
        return (struct stretch){.passes = ((int64_t)all - 1) / rows + 1, .all = all};
    return (struct stretch){.from = (uint64_t)(turn * o->eval_iters * j->global_batch),
                            .passes = o->eval_iters * j->global_batch / rows};
}

static int open_blends(struct job *j, const uint64_t samples[PARTS], bool count, struct err *e)
{
    const struct train_options *o = j->o;
    struct core_tokenizer name;
    name_tokenizer(j, &name);
    struct blend_set_config c = {.shared = j->lists.per_part ? NULL : &j->lists.shared,
                                 .split = o->split,
                                 .cache = o->data.cache,
                                 .rules = (enum data_rules)o->data.rules,
                                 .tokenizer = &name,
                                 .seq_length = (uint32_t)j->seq_length,
                                 .seed = (uint32_t)o->seed,
                                 .limit = j->spec.vocab,
                                 .pad = -1,
                                 .save = !o->no_index_cache && (!o->dry_run || job_is_first(j)),
                                 .trial = o->dry_run,
                                 .plan_only = count,
                                 .spare_test = true};
    for (int p = 0; p < PARTS; p++)
        c.own[p] = &j->lists.own[p];
    memcpy(c.samples, samples, sizeof(c.samples));
    return blend_set_open(&j->data, &c, e);
}

/* Weights say which data come how often, whatever there is of them. */
static int no_weights(const struct job *j, struct err *e)
{
    const struct blend_list *l = j->lists.per_part ? &j->lists.own[PART_TRAIN] : &j->lists.shared;
    if (!l->weight || (l->n == 1 && j->lists.per_part))
        return 0;
    err_set(e, ERR_USAGE, "--num-train-epochs: data that are blended by weights have no epochs");
    return err_hint(e, "without weights an epoch takes each data set once; with them the length of "
                       "the run is --train-samples or --train-iters");
}

static uint64_t samples_there(const struct job *j)
{
    const struct blend_set_share *s = &j->data.part[PART_TRAIN];
    uint64_t sum = 0;
    for (size_t i = 0; !j->mocked && !j->packed && i < s->n; i++)
        sum += gpt_count(s->set[i]);
    return j->mocked || j->packed ? job_once(j, PART_TRAIN) : sum;
}

int job_count_epoch(struct job *j, struct err *e)
{
    const uint64_t samples[PARTS] = {SAMPLES_ALL};
    if (j->o->course.epochs <= 0)
        return 0;
    int code = job_set_length(j, MODEL_TRAIN, e);
    if (!code && !j->mocked)
        code = no_weights(j, e);
    if (!code)
        code = j->packed   ? open_packed_sets(j, samples, e)
               : j->mocked ? open_mocks(j, samples, e)
                           : open_blends(j, samples, true, e);
    if (!code)
        code = job_need(j, PART_TRAIN, e);
    j->epoch = code ? 0 : (int64_t)samples_there(j);
    if (!code && j->epoch < 1)
        code = err_set(e, ERR_USAGE,
                       "--num-train-epochs: %s: the train share has too few tokens for one sample "
                       "of %lld",
                       j->data_name, (long long)j->seq_length);
    close_sets(j);
    return code;
}

int job_open_data(struct job *j, const uint64_t samples[PARTS], struct err *e)
{
    const struct train_options *o = j->o;
    uint64_t n[PARTS];
    memcpy(n, samples, sizeof(n));
    if (j->packed && o->fim_rate > 0)
        return err_set(e, ERR_USAGE, "--fim-rate tells texts, not packed examples, in other order");
    if (j->packed)
        return open_packed(j, samples, e);
    if (j->course.ramp.epoch) /* one of them, whose order each epoch changes */
        n[PART_TRAIN] = SAMPLES_ALL;
    int code = check_eod(j, e);
    if (!code)
        code = j->mocked ? open_mocks(j, n, e) : open_blends(j, n, false, e);
    if (code)
        return code;
    open_epochs(j);
    code = open_fim(j, e);
    return code ? code : manifests_fit(j, e);
}

struct batch_layout job_stretch_layout(const struct job *j, const struct stretch *s)
{
    struct batch_layout l = job_layout(j);
    l.epoch = s->all;
    l.micros = (uint32_t)s->passes;
    return l;
}

struct batch_layout job_train_layout(const struct job *j)
{
    struct batch_layout l = job_layout(j);
    l.epoch = (uint64_t)j->course.ramp.epoch;
    l.micros = (uint32_t)j->rank.effective.micros;
    return l;
}

struct batch_layout job_layout(const struct job *j)
{
    const struct train_options *o = j->o;
    int64_t eod = j->tokenizer      ? tok_info(j->tokenizer)->eod
                  : j->has_manifest ? j->manifest.eod
                  : j->ckpt         ? ckpt_meta(j->ckpt)->eod
                                    : -1;
    struct batch_layout l = {.eod = (int32_t)eod,
                             .eod_mask_loss = o->eod_mask_loss,
                             .reset_position_ids = o->reset_position_ids,
                             .reset_attention_mask = o->reset_attention_mask};
    rank_share_batches(&j->rank, &l);
    return l;
}

void job_close(struct job *j)
{
    close_data(j);
    watchdog_close(j);
    if (j->rank_open)
        rank_close(&j->rank);
    tune_finish(&j->tune);
    comm_close(&j->comm);
    free(j->stage_layers);
    free(j->context_of);
    ckpt_close(j->ckpt);
    hf_grown_finish(&j->grown);
    hf_folder_close(j->hf);
    if (j->has_manifest)
        manifest_close(&j->manifest);
    tok_close(j->tokenizer);
    vocabulary_files_finish(&j->files);
    for (size_t i = 0; i < sizeof(j->kept) / sizeof(j->kept[0]); i++)
        buf_finish(&j->kept[i]);
    hf_documents_finish(&j->documents);
    checkpoint_unlock(j);
}
