/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"
#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "convert/hf/hf_export.h"
#include "convert/hf/hf_write.h"
#include "convert/vocabulary/vocabulary.h"

struct exporting {
    const struct job *job;
    const struct hf_export *plan;
    struct tokenizer *tokenizer; /* NULL: none */
    struct buf report;
    export_trial *trial;
};

/* OUT without slashes at its end, with a suffix: OUT.unanswered is what a model is named that does
 * not answer. */
static char *name_out(const char *out, const char *suffix)
{
    size_t n = strlen(out);
    while (n > 1 && out[n - 1] == '/')
        n--;
    return mem_printf("%.*s%s", (int)n, out, suffix);
}

static int check_unanswered(const struct job *j, struct err *e)
{
    int code = 0;
    char *path = name_out(j->o->export_hf, ".unanswered");
    if (!j->tokenizer)
        code = err_set(e, ERR_USAGE, "--test-prompt-text needs a tokenizer, and none is known");
    else if (file_exists(path))
        code = err_set(e, ERR_USAGE,
                       "%s: exists; a model that does not answer --test-prompt-text gets that name",
                       path);
    free(path);
    return code;
}

int export_check(const struct job *j, struct err *e)
{
    const struct train_options *o = j->o;
    const struct hf_export_options rule = {.dtype = -1};
    struct hf_model m;
    if (!o->export_hf)
        return 0;
    int code = hf_export_check(o->export_hf, &rule, e);
    if (code)
        return err_hint(e, "name another folder after --export-hf, or remove that one");
    code = job_is_first(j) ? file_try(o->export_hf, e) : 0;
    if (!code && o->test_prompt)
        code = check_unanswered(j, e);
    if (code)
        return code;
    if (j->tokenizer && job_is_first(j))
        code = vocabulary_export_check(j->tokenizer, e);
    if (code)
        return err_hint(e, "without --export-hf the run keeps checkpoints alone");
    for (size_t i = 0; i < sizeof(j->kept) / sizeof(j->kept[0]); i++)
        if (j->kept[i].len) /* a config.json that the model came with tells the family */
            return 0;
    return hf_model_of_spec(&j->spec, "--export-hf", &m, e);
}

static int add_vocabulary(void *arg, const char *folder, struct err *e)
{
    struct exporting *x = arg;
    if (!x->tokenizer)
        return 0;
    return vocabulary_export(x->tokenizer, folder, x->plan->model.spec.max_positions, &x->report,
                             e);
}

static int try_export(void *arg, const char *folder, struct err *e)
{
    struct exporting *x = arg;
    return x->trial(x->job, folder, e);
}

static int run_plan(struct ckpt *c, const char *dst, const struct hf_export_options *options,
                    struct exporting *x, struct err *e)
{
    struct hf_export plan;
    struct hf_export_options o = *options;
    char digest[XXH_TEXT], *manifest = path_join(ckpt_path(c), "manifest.json");
    int code = xxh_file(manifest, digest, e);
    free(manifest);
    o.identity = digest;
    if (!code)
        code = hf_export_plan(&plan, c, &o, e);
    if (code)
        return code;
    x->plan = &plan;
    code = hf_export_run(&plan, dst, &o, e);
    hf_export_finish(&plan);
    return code;
}

static int export_ckpt(struct ckpt *c, const struct job *j, export_trial *trial, struct err *e)
{
    struct exporting x = {.job = j, .trial = trial};
    int code = vocabulary_of_ckpt(c, &x.tokenizer, e);
    if (code)
        return code;
    char *out = name_out(j->o->export_hf, ""), *refused = name_out(out, ".unanswered");
    struct hf_export_options o = {.dtype = -1,
                                  .ids = {-1, ckpt_meta(c)->eod, -1},
                                  .copy = {.threads = (int)j->o->threads},
                                  .further = add_vocabulary,
                                  .trial = trial ? try_export : NULL,
                                  .refused = refused,
                                  .arg = &x};
    if (x.tokenizer)
        o.ids = vocabulary_ids(x.tokenizer);
    code = run_plan(c, out, &o, &x, e);
    if (!code)
        log_info("exported step %lld to %s", (long long)ckpt_meta(c)->iteration, out);
    buf_finish(&x.report);
    tok_close(x.tokenizer);
    free(refused);
    free(out);
    return code;
}

int export_model(const struct job *j, const char *dir, int64_t step, export_trial *trial,
                 struct err *e)
{
    struct ckpt *c;
    char *path = ckpt_folder(dir, step);
    int code = ckpt_open(path, &c, e);
    if (!code) {
        code = export_ckpt(c, j, trial, e);
        ckpt_close(c);
    }
    free(path);
    return code;
}

/* ---- the checkpoint that is exported, without --save --------------------------------------- */

int export_place_open(struct export_place *p, const char *out, struct err *e)
{
    char *path = name_out(out, ".weights"), *parent = path_dir(path);
    char *first = path_join(path, "lock");
    *p = (struct export_place){.lock.fd = -1, .made = file_first_missing(parent)};
    int code = file_mkdirs(parent, e);
    if (!code)
        code = outdir_create(path, first, &p->lock, &p->folder, e);
    free(first);
    free(path);
    free(parent);
    return code;
}

void export_place_close(struct export_place *p, const char *out)
{
    char *path = name_out(out, ""), *parent = path_dir(path);
    if (p->folder) {
        file_remove_tree(p->folder, NULL);
        outfile_leave(&p->lock);
    }
    file_prune(parent, p->made);
    free(p->folder);
    free(p->made);
    free(parent);
    free(path);
    *p = (struct export_place){.lock.fd = -1};
}

/* ---- files of a checkpoint beside its tensors ---------------------------------------------- */

/* Files of a model of Hugging Face that go along from checkpoint to checkpoint. */
enum { KEPT = 2 };
static const char *const kept[KEPT] = {"config.json", "generation_config.json"};
_Static_assert(KEPT == sizeof(((struct job *)0)->kept) / sizeof(struct buf), "one buffer each");

/* Of --hf-config, else of the checkpoint to start from; now, for that may be removed later. */
/* The row that transformers gives nn.Embedding as padding_idx, where negative ones count from the
 * end of the vocabulary. */
static int find_pad(struct job *j, struct err *e)
{
    struct json_doc *doc = NULL;
    int code = 0;
    if (j->kept[0].len)
        code = json_parse("config.json", j->kept[0].data, j->kept[0].len, &doc, e);
    const struct json *root = doc ? json_root(doc) : NULL;
    const struct json *id = json_get(root, "pad_token_id");
    if (!id)
        id = json_get(json_get(root, "text_config"), "pad_token_id");
    if (!code && (!id || id->kind != JSON_INT)) {
        err_set(e, ERR_USAGE, "--freeze-pad-embedding: %s",
                root ? "the model's config.json has no pad_token_id"
                     : "the model has no config.json of Hugging Face that names a pad_token_id");
        code = err_hint(e, "without it all rows of the embedding are trained alike");
    }
    if (!code) {
        j->pad_id = id->integer + (id->integer < 0 ? j->spec.vocab : 0);
        if (j->pad_id < 0 || j->pad_id >= j->spec.vocab)
            code = err_set(e, ERR_USAGE,
                           "--freeze-pad-embedding: the pad_token_id %lld of config.json is not "
                           "among the %lld ids of the model",
                           (long long)id->integer, (long long)j->spec.vocab);
    }
    json_close(doc);
    return code;
}

/* The number of rows in a config.json whose model got more (--resize-vocab). */
static int grow_config(struct job *j, struct err *e)
{
    static const char key[] = "vocab_size";
    struct buf value = {0};
    size_t at, n;
    if (!hf_text_find(j->kept[0].data, j->kept[0].len, key, &at, &n))
        return err_set(e, ERR_USAGE, "--resize-vocab: the config.json of %s has no %s to change",
                       j->hf->path, key);
    buf_addf(&value, "%lld", (long long)j->spec.vocab);
    hf_text_set(&j->kept[0], key, &value);
    buf_finish(&value);
    return 0;
}

int job_read_kept(struct job *j, struct err *e)
{
    enum { SMALL_MAX = 16 << 20 };
    char *config = spec_flags_config(&j->o->model);
    const char *text = spec_flags_text(&j->o->model);
    int code = config ? file_read(config, SMALL_MAX, &j->kept[0], e) : 0;
    if (text)
        buf_adds(&j->kept[0], text);
    const char *from = j->ckpt ? ckpt_path(j->ckpt) : j->hf ? j->hf->path : NULL;
    for (size_t i = 0; !code && !config && !text && from && i < KEPT; i++) {
        char *path = path_join(from, kept[i]);
        if (file_exists(path))
            code = file_read_plain(path, SMALL_MAX, &j->kept[i], e);
        free(path);
    }
    if (!code && from)
        code = hf_documents_read(&j->documents, from, e);
    if (!code && j->grown.is)
        code = grow_config(j, e);
    free(config);
    return !code && j->o->freeze_pad ? find_pad(j, e) : code;
}

int job_put_files(struct job *j, struct ckpt_writer *w, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    BUG_ON(!f, "no memory stream");
    opts_print_config(j->opts, f);
    fclose(f);
    int code = ckpt_put_bytes(w, "config.toml", text, n, e);
    free(text);
    if (!code)
        code = vocabulary_files_put(&j->files, w, e);
    for (size_t i = 0; !code && i < KEPT; i++)
        if (j->kept[i].len)
            code = ckpt_put_bytes(w, kept[i], j->kept[i].data, j->kept[i].len, e);
    if (!code)
        code = hf_documents_put(&j->documents, w, e);
    return code;
}
