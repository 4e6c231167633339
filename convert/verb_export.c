/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/gguf/gguf_model.h"
#include "convert/gguf/gguf_tokenizer.h"
#include "convert/hf/hf_export.h"
#include "convert/hf/hf_extract.h"
#include "convert/report/plan.h"
#include "convert/report/report.h"
#include "convert/report/transfer.h"
#include "convert/source/identity.h"
#include "convert/source/source.h"
#include "convert/vocabulary/rows.h"
#include "convert/vocabulary/vocabulary.h"

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
        transfer_add_bytes(&b, x->file[i].name, x->file[i].bytes);
    for (size_t i = 0; i < ckpt_tensors(x->ckpt); i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(x->ckpt, i);
        const char *before = i ? ckpt_tensor_at(x->ckpt, i - 1)->group : "";
        if (strcmp(t->group, CKPT_PARAM) && strcmp(t->group, before))
            buf_addf(&b, "ignored     the group %s of the optimizer\n", t->group);
    }
    int code = plan_export_files(x, &b, e);
    transfer_add_needs(&b, dst, x->bytes);
    if (!code)
        code = cli_write_out(&b, e);
    buf_finish(&b);
    return code;
}

static int export_run(const struct hf_export *x, const char *dst, struct hf_export_options *o,
                      const struct cli *v, struct exporting *further, struct err *e)
{
    struct transfer t = {.threads = (int)v->threads, .quiet = v->common.quiet};
    o->copy = transfer_begin(&t, "convert export", x->bytes);
    o->further = add_vocabulary;
    o->arg = further;
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
    transfer_end(&t);
    buf_finish(&identity);
    if (!code) {
        transfer_say(&t, dst, x->bytes);
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
    struct transfer run = {.threads = (int)v->threads, .quiet = v->common.quiet};
    struct buf report = {0}, type = {0};
    char *name = model_name(dst);
    opt_choice_word(GGUF_OUTTYPES, v->outtype, &type);
    int code = gguf_plan(&p, x, buf_str(&type), name, e);
    buf_finish(&type);
    free(name);
    if (code)
        return code;
    gguf_report(&p, x, dst, &report);
    code = gguf_add_tokenizer(&p.keys, x, t, &report, e);
    if (!code && v->dry_run) {
        transfer_add_needs(&report, dst, p.bytes + p.keys.bytes.len);
    } else if (!code) {
        struct copy_options o = transfer_begin(&run, "convert export", x->bytes);
        code = gguf_write(&p, x, dst, &o, e);
        transfer_end(&run);
        if (!code)
            transfer_say(&run, dst, p.bytes);
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

/* ---- an adapter ------------------------------------------------------------------------------ */

enum { ONE_FILE = 1 << 30 }; /* GB: tensors in the order of the model */

static int plan_side(struct ckpt *c, struct hf_export *ret, struct err *e)
{
    const struct hf_export_options o = {
        .shard_size = (uint64_t)ONE_FILE * 1000000000, .dtype = -1, .ids = {-1, -1, -1}};
    return hf_export_plan(ret, c, &o, e);
}

static int64_t peft_rank(const struct cli *v)
{
    enum { RANK = 16 };
    return v->rank ? v->rank : RANK;
}

static void peft_report(const struct hf_extracted *x, const struct cli *v, const char *dst,
                        struct buf *b)
{
    buf_addf(b, "%s: factors of rank %lld for %zu matrices, %zu tensors as a whole, ", dst,
             (long long)peft_rank(v), x->matrices, x->whole);
    report_count(b, x->bytes);
    buf_adds(b, " bytes\n");
    if (x->matrices)
        buf_addf(
            b,
            "left out    %.3g of the changes of matrices (root of the sum of squares), most in "
            "%s: %.3g\n",
            x->squares > 0 ? sqrt(x->rest / x->squares) : 0, x->worst_name, x->worst);
}

static int extract(struct ckpt *tuned, struct ckpt *base, const char *dst, const struct cli *v,
                   struct err *e)
{
    struct hf_export of[2];
    struct hf_extracted x;
    struct buf report = {0};
    const struct hf_extract o = {
        .rank = peft_rank(v), .threads = (int)v->threads, .base_name = v->base};
    int code = plan_side(tuned, &of[0], e);
    if (code)
        return code;
    code = plan_side(base, &of[1], e);
    if (!code) {
        code = hf_extract_adapter(&of[0], &of[1], dst, &o, &x, e);
        hf_export_finish(&of[1]);
    }
    hf_export_finish(&of[0]);
    if (!code) {
        peft_report(&x, v, dst, &report);
        code = cli_write_out(&report, e);
    }
    buf_finish(&report);
    return code;
}

static int peft_check(const struct cli *v, struct err *e)
{
    if (v->to != CLI_PEFT && (v->base || v->rank))
        return err_set(e, ERR_USAGE, "--%s is for --to peft", v->base ? "base" : "rank");
    if (v->to != CLI_PEFT)
        return 0;
    if (v->like || v->shard_size || v->dtype || v->rows || v->overwrite || v->dry_run)
        return err_set(e, ERR_USAGE, "--%s cannot be given beside --to peft",
                       v->like         ? "like"
                       : v->shard_size ? "max-shard-size"
                       : v->dtype      ? "dtype"
                       : v->rows       ? "rows"
                       : v->overwrite  ? "overwrite"
                                       : "dry-run");
    if (v->base)
        return 0;
    err_set(e, ERR_USAGE, "--to peft needs --base: the checkpoint that the model was trained from");
    return err_hint(e, "an adapter is what training changed in it");
}

static int peft_export(struct ckpt *tuned, const char *dst, const struct cli *v, struct err *e)
{
    struct ckpt *base;
    int code = named_ckpt_open(v->base, &base, e);
    if (code)
        return code;
    code = extract(tuned, base, dst, v, e);
    ckpt_close(base);
    return code;
}

/* ---- export: the verb ---------------------------------------------------------------------- */

/* -1: auto. */
static int dtype_of_choice(int choice)
{
    struct buf word = {0};
    opt_choice_word(CLI_DTYPES, choice, &word);
    const struct dtype_row *row = dtype_find_word(buf_str(&word));
    BUG_ON(choice && !row, "--dtype %s", buf_str(&word));
    buf_finish(&word);
    return row ? dtype_of_row(row) : -1;
}

static int export_opened(struct ckpt *c, const char *dst, const struct cli *v,
                         const struct vocab_rows *rows, struct err *e)
{
    struct hf_export plan;
    struct exporting x = {.plan = &plan, .rows = rows};
    int code = rows ? vocab_rows_fit(rows, c, e) : vocabulary_of_ckpt(c, &x.tokenizer, e);
    if (code)
        return code;
    if (rows)
        x.tokenizer = rows->tokenizer;
    struct hf_export_options o = {.like = v->like,
                                  .shard_size = (uint64_t)v->shard_size,
                                  .dtype = dtype_of_choice(v->dtype),
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
    int code = cli_two_names(o, "export", e);
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
        code = cli_open_rows(v, &own, &rows, e);
    if (!code)
        code = v->to == CLI_PEFT ? peft_export(c, o->file[1], v, e)
                                 : export_opened(c, o->file[1], v, rows, e);
    vocab_rows_finish(&own);
    ckpt_close(c);
    return code;
}
