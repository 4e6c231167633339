/* SPDX-License-Identifier: Apache-2.0 */

/* convert import, convert export. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/cli/progress.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/gguf.h"
#include "convert/identity.h"
#include "convert/peft.h"
#include "convert/plan.h"
#include "convert/report.h"
#include "convert/rows.h"
#include "convert/source.h"
#include "convert/vocabulary/vocabulary.h"
#include "convert/gguf/gguf_model.h"
#include "convert/hf/hf_adapter.h"
#include "convert/hf/hf_export.h"
#include "convert/hf/hf_import.h"

static void add_bytes(struct buf *b, const char *what, uint64_t n)
{
    buf_addf(b, "%-11s ", what);
    report_count(b, n);
    buf_adds(b, " bytes\n");
}

static int two_names(const struct opts *o, const char *verb, struct err *e)
{
    if (o->nfile == 2)
        return 0;
    err_set(e, ERR_USAGE,
            WEFT_PREFIX "convert %s takes a source and a target, %zu names were given", verb,
            o->nfile);
    return err_hint(e, WEFT_PREFIX "convert %s SRC DST", verb);
}

/* The folder that is there, of a path that may not be. */
static char *existing_parent(const char *path)
{
    char *at = mem_strdup(path);
    while (!file_exists(at)) {
        char *up = path_dir(at);
        free(at);
        at = up;
    }
    return at;
}

/* What a conversion will take, and what there is. */
static void add_needs(struct buf *b, const char *dst, uint64_t bytes)
{
    struct statvfs fs;
    char *at = existing_parent(dst);
    add_bytes(b, "to write", bytes);
    add_bytes(b, "memory", COPY_MEMORY);
    buf_addf(b, "time        about %.0f s at 1 GB/s\n", (double)bytes / 1e9 + 0.5);
    if (!statvfs(at, &fs)) {
        uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
        add_bytes(b, "disk free", left);
        if (left < bytes)
            buf_addf(b, "            %s has too little left\n", at);
    }
    free(at);
}

static void say_progress(void *arg, uint64_t done)
{
    progress_update(arg, done, NULL);
}

static struct copy_options copy_with(const struct cli *v, struct progress *p, const char *what,
                                     uint64_t bytes)
{
    progress_init(p, what, "MB", 1e6, bytes, v->common.quiet);
    return (struct copy_options){.threads = (int)v->threads, .progress = say_progress, .arg = p};
}

static void say_done(const char *dst, uint64_t bytes, double seconds)
{
    struct buf b = {0};
    report_count(&b, bytes);
    log_info("%s: %s bytes of tensors in %.1f s, %.2f GB/s", dst, buf_str(&b), seconds,
             (double)bytes / 1e9 / (seconds > 1e-9 ? seconds : 1e-9));
    buf_finish(&b);
}

/* ---- import -------------------------------------------------------------------------------- */

static void add_ignored(struct buf *b, const struct hf_folder *f, const struct cli *v)
{
    if (f->wrapped)
        buf_adds(b, "names       without what a wrapper put before or into them\n");
    for (size_t i = 0; i < f->npassed; i++)
        buf_addf(b, "ignored     %s: %s\n", f->passed[i].at.entry->name, f->passed[i].why);
    for (size_t i = 0; i < v->ignored_keys.n; i++)
        buf_addf(b, "ignored     the key \"%s\" of config.json\n", v->ignored_keys.item[i]);
}

static void add_adapter(struct buf *b, const struct hf_folder *f)
{
    if (f->adapter)
        buf_addf(b, "merged      %s: %zu tensors updated, %zu replaced\n", f->adapter->path,
                 f->adapter->updated, f->adapter->replaced);
    if (f->adapter && f->adapter->untied)
        buf_adds(b,
                 "untied      the head, which was the embedding: the adapter changes one of them, "
                 "or both apart\n");
}

static void add_features(struct buf *b, const struct hf_folder *f)
{
    struct err e;
    if (spec_can_run(&f->model.spec, f->path, &e))
        buf_addf(b, "note        %s\n", e.msg);
}

static void say_rows(struct buf *b, const struct vocab_rows *r, int64_t vocab)
{
    if (r)
        buf_addf(b, "rows        %lld ids instead of %lld, by %s\n", (long long)r->hf.map.is,
                 (long long)vocab, r->hf.path);
}

static int64_t parameters(const struct hf_folder *f)
{
    int64_t sum = 0;
    for (size_t i = 0; i < f->map.globals; i++)
        sum += f->map.global[i].size[0] * f->map.global[i].size[1];
    return sum;
}

static int import_plan(const struct hf_folder *f, const char *dst, const struct cli *v,
                       const struct vocab_rows *rows, struct err *e)
{
    struct buf b = {0};
    buf_addf(&b, "%s: %s, %zu tensors in %zu file%s, as %zu tensors of %s/iter_0000000\n", f->path,
             hf_family_architecture(f->model.family), f->map.tensors, f->shards,
             f->shards == 1 ? "" : "s", f->map.globals, dst);
    buf_adds(&b, "parameters  ");
    report_count(&b, (uint64_t)parameters(f));
    buf_addc(&b, '\n');
    add_features(&b, f);
    add_adapter(&b, f);
    say_rows(&b, rows, f->model.spec.vocab);
    add_ignored(&b, f, v);
    int code = plan_files(f, &b, e);
    if (!code && (v->tp || v->pp))
        code = plan_ranks(f, v->tp ? (int)v->tp : 1, v->pp ? (int)v->pp : 1, &b, e);
    add_needs(&b, dst, f->bytes);
    if (!code)
        code = cli_write_out(&b, e);
    buf_finish(&b);
    return code;
}

static int import_target(const char *dst, const struct cli *v, struct err *e)
{
    int64_t *list = NULL;
    size_t n = 0;
    if (!file_exists(dst))
        return 0;
    if (!file_is_dir(dst))
        return err_set(e, ERR_USAGE, "%s: exists and is not a folder", dst);
    int code = ckpt_list(dst, &list, &n, e);
    bool others = n > 1 || (n && list[0] != 0);
    free(list);
    if (code)
        return code;
    if (others)
        return err_set(e, ERR_USAGE, "%s: holds checkpoints of a run, name another folder", dst);
    if (n && !v->overwrite) {
        err_set(e, ERR_USAGE, "%s/iter_0000000: exists", dst);
        return err_hint(e, "--overwrite replaces it");
    }
    return 0;
}

static int import_run(const struct hf_folder *f, const char *dst, const struct cli *v,
                      const struct vocab_rows *rows, struct err *e)
{
    struct progress p;
    struct tokenizer *t = NULL;
    if (!rows)
        vocabulary_of_folder(f->path, &t);
    const struct tok_info *info = rows ? tok_info(rows->tokenizer) : t ? tok_info(t) : NULL;
    struct hf_import_options o = {
        .tokenizer_type = info ? info->type_name : NULL,
        .tokenizer_digest = info ? info->digest : NULL,
        .tokenizer_meaning = info ? info->meaning : NULL,
        .tokenizer_vocab = info ? info->vocab_size : 0,
        .eod = info ? info->eod : -1,
        .file_size = (uint64_t)v->file_size,
        .rows = rows ? &rows->hf : NULL,
        .copy = copy_with(v, &p, "convert import", f->bytes),
    };
    double begun = clock_seconds();
    struct buf identity = {0};
    identity_begin(&identity, "import");
    identity_number(&identity, "file size", v->file_size);
    int code = identity_folder(&identity, f, e);
    if (!code && rows)
        code = vocab_rows_identity(rows, &identity, e);
    o.identity = buf_str(&identity);
    if (!code)
        code = hf_import(f, dst, &o, e);
    progress_finish(&p);
    buf_finish(&identity);
    tok_close(t);
    if (!code)
        say_done(dst, f->bytes, clock_seconds() - begun);
    return code;
}

/* --rows, where it is given: *ret is `own`, else NULL. */
static int open_rows(const struct cli *v, struct vocab_rows *own, const struct vocab_rows **ret,
                     struct err *e)
{
    *ret = NULL;
    if (!v->rows)
        return 0;
    if (v->adapter || v->like)
        return err_set(e, ERR_USAGE, "--%s cannot be given beside --rows",
                       v->adapter ? "adapter" : "like");
    int code = vocab_rows_open(own, v->rows, e);
    *ret = code ? NULL : own;
    return code;
}

static int import_opened(const struct hf_folder *f, const char *dst, const struct cli *v,
                         const struct vocab_rows *rows, struct err *e)
{
    struct buf b = {0};
    if (v->dry_run)
        return import_plan(f, dst, v, rows, e);
    add_adapter(&b, f);
    say_rows(&b, rows, f->model.spec.vocab);
    add_ignored(&b, f, v);
    add_features(&b, f);
    int code = plan_files(f, &b, e);
    if (!code)
        code = import_run(f, dst, v, rows, e);
    if (!code)
        code = cli_write_out(&b, e);
    buf_finish(&b);
    return code;
}

int cmd_import(const struct opts *o, const struct cli *v, struct err *e)
{
    const struct hf_ignore ignore = {v->ignored_keys.item, v->ignored_keys.n, false};
    struct hf_folder *f = NULL;
    struct vocab_rows own = {0};
    const struct vocab_rows *rows = NULL;
    int code = two_names(o, "import", e);
    if (!code && (v->tp || v->pp) && !v->dry_run)
        code = err_set(e, ERR_USAGE,
                       "--%s-model-parallel-size only tells --dry-run for which ranks to plan: a "
                       "checkpoint holds whole tensors for any ranks",
                       v->tp ? "tensor" : "pipeline");
    if (!code && !file_is_dir(o->file[0]))
        code = err_set(e, ERR_IO, "%s: there is no such folder", o->file[0]);
    if (!code)
        code = import_target(o->file[1], v, e);
    if (!code)
        code = open_rows(v, &own, &rows, e);
    if (!code)
        code = hf_folder_open(o->file[0], &ignore, &f, e);
    if (!code && v->adapter)
        code = hf_adapter_attach(f, v->adapter, &ignore, e);
    if (!code)
        code = import_opened(f, o->file[1], v, rows, e);
    vocab_rows_finish(&own);
    hf_folder_close(f);
    return code;
}

/* ---- export -------------------------------------------------------------------------------- */

struct exporting {
    const struct hf_export *plan;
    const struct vocab_rows *rows;
    struct tokenizer *tokenizer; /* NULL: none */
    struct buf report;
};

static int add_vocabulary(void *arg, const char *folder, struct err *e)
{
    struct exporting *x = arg;
    if (!x->tokenizer)
        return 0;
    return vocabulary_export(x->tokenizer, folder, x->plan->model.spec.max_positions, &x->report,
                             e);
}

static int export_plan(const struct hf_export *x, const char *dst, struct err *e)
{
    struct buf b = {0};
    size_t n = 0;
    for (size_t i = 0; i < x->files; i++)
        n += x->file[i].n;
    buf_addf(&b, "%s: %s, %zu tensors in %zu file%s of %s\n", ckpt_path(x->ckpt),
             hf_family_architecture(x->model.family), n, x->files, x->files == 1 ? "" : "s", dst);
    for (size_t i = 0; i < x->files; i++)
        add_bytes(&b, x->file[i].name, x->file[i].bytes);
    for (size_t i = 0; i < ckpt_tensors(x->ckpt); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(x->ckpt, i);
        const char *before = i ? ckpt_tensor_at(x->ckpt, i - 1)->group : "";
        if (strcmp(t->group, CKPT_PARAM) && strcmp(t->group, before))
            buf_addf(&b, "ignored     the group %s of the optimizer\n", t->group);
    }
    int code = plan_export_files(x, &b, e);
    add_needs(&b, dst, x->bytes);
    if (!code)
        code = cli_write_out(&b, e);
    buf_finish(&b);
    return code;
}

static int export_run(const struct hf_export *x, const char *dst, struct hf_export_options *o,
                      const struct cli *v, struct exporting *further, struct err *e)
{
    struct progress p;
    o->copy = copy_with(v, &p, "convert export", x->bytes);
    o->further = add_vocabulary;
    o->arg = further;
    double begun = clock_seconds();
    struct buf identity = {0};
    identity_begin(&identity, "export");
    identity_number(&identity, "shard size", v->shard_size);
    identity_number(&identity, "dtype", v->dtype);
    int code = identity_ckpt(&identity, x->ckpt, e);
    if (!code && further->rows)
        code = vocab_rows_identity(further->rows, &identity, e);
    if (!code && x->like)
        code = identity_folder(&identity, x->like, e);
    o->identity = buf_str(&identity);
    if (!code)
        code = hf_export_run(x, dst, o, e);
    if (!code)
        code = plan_export_files(x, &further->report, e);
    progress_finish(&p);
    buf_finish(&identity);
    if (!code) {
        say_done(dst, x->bytes, clock_seconds() - begun);
        code = cli_write_out(&further->report, e);
    }
    return code;
}

/* ---- GGUF ---------------------------------------------------------------------------------- */

static void gguf_report(const struct gguf_plan *p, const struct hf_export *x, const char *dst,
                        struct buf *b)
{
    buf_addf(b, "%s: %s, %zu tensors in %s\n", ckpt_path(x->ckpt),
             hf_family_architecture(x->model.family), p->n, dst);
    if (p->narrow)
        buf_addf(b, "note        %zu matrices are F16: Q8_0 needs rows of a multiple of 32\n",
                 p->narrow);
}

/* The last part of a target's name without its ending. */
static char *model_name(const char *dst)
{
    const char *slash = strrchr(dst, '/'), *name = slash ? slash + 1 : dst;
    size_t n = strlen(name), end = strlen(".gguf");
    return mem_strndup(name, n > end && !strcmp(name + n - end, ".gguf") ? n - end : n);
}

static int export_gguf(const struct hf_export *x, const char *dst, const struct cli *v,
                       const struct tokenizer *t, struct err *e)
{
    struct gguf_plan p;
    struct progress progress;
    struct buf report = {0};
    char *name = model_name(dst);
    int code = gguf_plan(&p, x, (enum gguf_outtype)v->outtype, name, e);
    free(name);
    if (code)
        return code;
    gguf_report(&p, x, dst, &report);
    code = gguf_add_tokenizer(&p.keys, x, t, &report, e);
    if (!code && v->dry_run) {
        add_needs(&report, dst, p.bytes + p.keys.bytes.len);
    } else if (!code) {
        double begun = clock_seconds();
        struct copy_options o = copy_with(v, &progress, "convert export", x->bytes);
        code = gguf_write(&p, x, dst, &o, e);
        progress_finish(&progress);
        if (!code)
            say_done(dst, p.bytes, clock_seconds() - begun);
    }
    if (!code)
        code = cli_write_out(&report, e);
    buf_finish(&report);
    gguf_plan_finish(&p);
    return code;
}

/* A file that may be written under this name. */
static int gguf_target(const char *dst, const struct cli *v, struct err *e)
{
    if (v->like || v->shard_size || v->dtype)
        return err_set(e, ERR_USAGE, "--%s cannot be given beside --to gguf",
                       v->like         ? "like"
                       : v->shard_size ? "max-shard-size"
                                       : "dtype");
    if (file_is_dir(dst))
        return err_set(e, ERR_USAGE, "%s: is a folder, a GGUF file is one file", dst);
    if (file_exists(dst) && !v->overwrite) {
        err_set(e, ERR_USAGE, "%s: exists", dst);
        return err_hint(e, "--overwrite replaces it");
    }
    return 0;
}

/* ---- export: the verb ---------------------------------------------------------------------- */

static int export_opened(struct ckpt *c, const char *dst, const struct cli *v,
                         const struct vocab_rows *rows, struct err *e)
{
    static const int dtypes[] = {-1, DTYPE_F32, DTYPE_F16, DTYPE_BF16};
    struct hf_export plan;
    struct exporting x = {.plan = &plan, .rows = rows};
    int code = rows ? vocab_rows_fit(rows, c, e) : vocabulary_of_ckpt(c, &x.tokenizer, e);
    if (code)
        return code;
    if (rows)
        x.tokenizer = rows->tokenizer;
    struct hf_export_options o = {.like = v->like,
                                  .shard_size = (uint64_t)v->shard_size,
                                  .dtype = dtypes[v->dtype],
                                  .overwrite = v->overwrite,
                                  .rows = rows ? &rows->hf : NULL,
                                  .ids = {-1, ckpt_meta(c)->eod, -1}};
    if (x.tokenizer)
        o.ids = vocabulary_ids(x.tokenizer);
    if (x.tokenizer && v->to == CLI_HF && !v->like)
        code = vocabulary_export_check(x.tokenizer, e);
    if (!code)
        code = hf_export_plan(&plan, c, &o, e);
    if (!code) {
        code = v->to == CLI_GGUF ? export_gguf(&plan, dst, v, x.tokenizer, e)
               : v->dry_run      ? export_plan(&plan, dst, e)
                                 : export_run(&plan, dst, &o, v, &x, e);
        hf_export_finish(&plan);
    }
    buf_finish(&x.report);
    if (!rows)
        tok_close(x.tokenizer);
    return code;
}

int cmd_export(const struct opts *o, const struct cli *v, struct err *e)
{
    struct ckpt *c = NULL;
    struct hf_export_options rule = {.overwrite = v->overwrite};
    struct vocab_rows own = {0};
    const struct vocab_rows *rows = NULL;
    int code = two_names(o, "export", e);
    if (!code && v->like && (v->shard_size || v->dtype))
        code = err_set(e, ERR_USAGE, "--like keeps files and types: --%s cannot be given beside it",
                       v->shard_size ? "max-shard-size" : "dtype");
    if (!code && v->outtype && v->to != CLI_GGUF)
        code = err_set(e, ERR_USAGE, "--outtype is for --to gguf; --dtype is the type otherwise");
    if (!code)
        code = peft_check(v, e);
    if (!code)
        code = v->to == CLI_GGUF ? gguf_target(o->file[1], v, e)
                                 : hf_export_check(o->file[1], &rule, e);
    if (!code)
        code = named_ckpt_open(o->file[0], &c, e);
    if (!code)
        code = open_rows(v, &own, &rows, e);
    if (!code)
        code = v->to == CLI_PEFT ? peft_export(c, o->file[1], v, e)
                                 : export_opened(c, o->file[1], v, rows, e);
    vocab_rows_finish(&own);
    ckpt_close(c);
    return code;
}
