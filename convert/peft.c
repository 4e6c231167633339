/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/peft.h"

#include <math.h>
#include <stdlib.h>

#include "base/core/mem.h"
#include "convert/report.h"
#include "convert/source.h"
#include "convert/hf/hf_extract.h"

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

int peft_check(const struct cli *v, struct err *e)
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

int peft_export(struct ckpt *tuned, const char *dst, const struct cli *v, struct err *e)
{
    struct ckpt *base;
    int code = named_ckpt_open(v->base, &base, e);
    if (code)
        return code;
    code = extract(tuned, base, dst, v, e);
    ckpt_close(base);
    return code;
}
