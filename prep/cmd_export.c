/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "base/io/sink.h"
#include "dataset/shard/prefix.h"
#include "prep/cmd.h"
#include "prep/tools/export.h"
#include "tok/tokenizer/options.h"

static int export_put(void *to, const void *p, size_t n, struct err *e)
{
    return sink_write(to, p, n, e);
}

static int export_judge(const struct cmd *c, struct err *e)
{
    const struct prep_options *o = c->o;
    if (c->opts->nfile != 1)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "prep export takes one PREFIX, %zu were given",
                       c->opts->nfile);
    if (!o->ids && !tok_flags_given(&o->tokenizer))
        return err_set(e, ERR_USAGE,
                       "--tokenizer is missing: it decodes the ids; --ids writes them as they are");
    return 0;
}

static int check_output(const struct cmd *c, const char *prefix, const struct tokenizer *tok,
                        struct err *e)
{
    char *bin = mem_printf("%s.bin", prefix), *idx = mem_printf("%s.idx", prefix);
    char *manifest = mem_printf("%s.manifest.json", prefix);
    const char *const input[] = {bin, idx, manifest, tok ? tok_info(tok)->path : NULL,
                                 c->o->common.config};
    const struct output_rule rule = {.overwrite = c->o->overwrite, .input = input, .ninputs = 5};
    int code = output_check(c->o->output, &rule, e);
    free(bin);
    free(idx);
    free(manifest);
    return code ? code : output_prepare(c->o->output, e);
}

static int run_export(const struct cmd *c, const char *prefix, const struct tokenizer *tok,
                      struct sink *to, struct err *e)
{
    struct progress meter;
    struct export_report r;
    const struct prep_options *o = c->o;
    progress_init(&meter, WEFT_PREFIX "prep export", "K documents", 1e3, 0, o->common.quiet);
    const struct export_request q = {.prefix = prefix,
                                     .tok = o->ids ? NULL : tok,
                                     .tokenizer_differs = o->tokenizer_differs,
                                     .key = o->json_key,
                                     .keep_eod = o->keep_eod,
                                     .kind = zblock_of(o->output),
                                     .workers = o->workers ? (int)o->workers : pool_cpus(),
                                     .write = export_put,
                                     .to = to,
                                     .stop = c->stop,
                                     .progress = cmd_progress,
                                     .arg = &meter};
    int code = export_run(&q, &r, e);
    progress_finish(&meter);
    if (!code)
        log_info("%" PRIu64 " documents, %" PRIu64 " tokens%s", r.documents, r.tokens,
                 r.eod < 0 && !o->keep_eod
                     ? "; the end-of-document id is unknown, so none was dropped"
                     : "");
    return code;
}

int cmd_export(const struct cmd *c, struct err *e)
{
    const struct tok_flags *t = &c->o->tokenizer;
    struct sink to;
    struct tokenizer *tok = NULL;
    char *prefix;
    int code = export_judge(c, e);
    if (!code)
        code = prefix_find(c->opts->file[0], &prefix, e);
    if (code)
        return code;
    if (tok_flags_given(t))
        code = tok_open_flags(t, &tok, e);
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code)
        code = check_output(c, prefix, tok, e);
    if (!code)
        code = sink_open(&to, c->o->output, e);
    if (!code)
        code = sink_close(&to, run_export(c, prefix, tok, &to, e), e);
    free(prefix);
    tok_close(tok);
    return code;
}
