/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/core/mem.h"
#include "base/core/program.h"
#include "dataset/sample/blend_set.h"
#include "prep/cmd.h"
#include "prep/tools/inspect.h"
#include "prep/tools/sample.h"

/* Parses the document or sample numbers of `option`. */
static int inspect_parse(const struct opt_list *l, const char *option, struct number_range *ret,
                         struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < l->n && !code; i++)
        code = range_parse(l->item[i], option, &ret[i], e);
    return code;
}

static int show_shard(const struct cmd *c, const struct tokenizer *tok, struct buf *out,
                      struct err *e)
{
    const struct prep_options *o = c->o;
    struct progress meter;
    if (c->opts->nfile != 1) {
        err_set(e, ERR_USAGE, WEFT_PREFIX "prep inspect takes one PREFIX, %zu were given",
                c->opts->nfile);
        return c->opts->nfile ? ERR_USAGE : opts_hint_swallowed(c->opts, e);
    }
    struct number_range *document = mem_new(o->documents.n + 1, sizeof(*document));
    progress_init(&meter, WEFT_PREFIX "prep inspect", "MB", 1e6, 0, o->common.quiet);
    const struct inspect_request q = {.prefix = c->opts->file[0],
                                      .check = o->check,
                                      .json = o->json,
                                      .document = document,
                                      .ndocuments = o->documents.n,
                                      .tok = tok,
                                      .tokenizer_differs = o->tokenizer_differs,
                                      .vocab_size = o->tokenizer.vocab_size,
                                      .progress = cmd_progress,
                                      .arg = &meter};
    int code = inspect_parse(&o->documents, "--documents", document, e);
    if (!code)
        code = inspect_run(&q, out, e);
    progress_finish(&meter);
    free(document);
    return code;
}

static bool has_parts(const struct prep_options *o)
{
    bool per_part = o->data.parts_path;
    for (int p = 0; p < PARTS; p++)
        per_part |= o->data.part[p].n > 0;
    return per_part;
}

static int judge_samples(const struct cmd *c, struct err *e)
{
    const struct prep_options *o = c->o;
    if (c->opts->nfile > 1 || (c->opts->nfile && (o->data.path.n || has_parts(o))))
        return err_set(e, ERR_USAGE,
                       "--samples takes one PREFIX, or --data-path and related options");
    if (o->check || o->documents.n)
        return err_set(e, ERR_USAGE, "--samples excludes --check and --documents");
    return 0;
}

static int show_samples(const struct cmd *c, const struct tokenizer *tok, struct buf *out,
                        struct err *e)
{
    const struct prep_options *o = c->o;
    const int64_t of_part[PARTS] = {o->num_samples, o->num_valid_samples, o->num_test_samples};
    static const char *const option[PARTS] = {"--num-samples", "--num-valid-samples",
                                              "--num-test-samples"};
    int code = judge_samples(c, e);
    if (!code && !o->exhaustive && !of_part[o->part])
        code = err_set(e, ERR_USAGE,
                       "%s is missing: the order depends on how many samples the run takes",
                       option[o->part]);
    if (code)
        return code;
    struct number_range *sample = mem_new(o->samples.n, sizeof(*sample));
    const struct sample_request q = {.data = &o->data,
                                     .prefix = c->opts->nfile ? c->opts->file[0] : NULL,
                                     .split = has_parts(o) ? NULL : o->split,
                                     .seq_length = (uint32_t)o->seq_length,
                                     .seed = (uint32_t)o->seed,
                                     .samples =
                                         o->exhaustive ? SAMPLES_ALL : (uint64_t)of_part[o->part],
                                     .part = (enum part)o->part,
                                     .sample = sample,
                                     .n = o->samples.n,
                                     .eod_mask_loss = o->eod_mask_loss,
                                     .reset_position_ids = o->reset_position_ids,
                                     .reset_attention_mask = o->reset_attention_mask,
                                     .tok = tok,
                                     .tokenizer_differs = o->tokenizer_differs,
                                     .json = o->json};
    code = inspect_parse(&o->samples, "--samples", sample, e);
    if (!code)
        code = sample_run(&q, out, e);
    free(sample);
    return code;
}

int cmd_inspect(const struct cmd *c, struct err *e)
{
    const struct tok_flags *t = &c->o->tokenizer;
    struct tokenizer *tok = NULL;
    struct buf out = {0};
    int code = tok_flags_given(t) ? tok_open_flags(t, &tok, e) : 0;
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code)
        code = c->o->samples.n ? show_samples(c, tok, &out, e) : show_shard(c, tok, &out, e);
    if (!code)
        fwrite(out.data, 1, out.len, stdout); /* main checks for errors */
    buf_finish(&out);
    tok_close(tok);
    return code;
}
