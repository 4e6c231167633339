/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/hf/hf_adapter.h"
#include "convert/hf/hf_import.h"
#include "convert/report/plan.h"
#include "convert/report/report.h"
#include "convert/report/transfer.h"
#include "convert/source/identity.h"
#include "convert/vocabulary/rows.h"
#include "convert/vocabulary/vocabulary.h"

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
    transfer_add_needs(&b, dst, f->bytes);
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
    struct transfer run = {.threads = (int)v->threads, .quiet = v->common.quiet};
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
        .copy = transfer_begin(&run, "convert import", f->bytes),
    };
    struct buf identity = {0};
    identity_begin(&identity, "import");
    identity_number(&identity, "file size", v->file_size);
    int code = identity_folder(&identity, f, e);
    if (!code && rows)
        code = vocab_rows_identity(rows, &identity, e);
    o.identity = buf_str(&identity);
    if (!code)
        code = hf_import(f, dst, &o, e);
    transfer_end(&run);
    buf_finish(&identity);
    tok_close(t);
    if (!code)
        transfer_say(&run, dst, f->bytes);
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
    int code = cli_two_names(o, "import", e);
    if (!code && (v->tp || v->pp) && !v->dry_run)
        code = err_set(e, ERR_USAGE,
                       "--%s-model-parallel-size only tells --dry-run for which ranks to plan: a "
                       "checkpoint holds whole tensors for any ranks",
                       v->tp ? "tensor" : "pipeline");
    if (!code && !file_is_dir(o->file[0]))
        code = path_refuse_address(o->file[0], e)
                   ? ERR_IO
                   : err_set(e, ERR_IO, "%s: there is no such folder", o->file[0]);
    if (!code)
        code = import_target(o->file[1], v, e);
    if (!code)
        code = cli_open_rows(v, &own, &rows, e);
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
