/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/pool.h"
#include "base/program.h"
#include "prep/cmd.h"
#include "prep/export.h"
#include "tok/options.h"

struct sink {
    struct outfile file;
    bool to_file;
};

static int put(void *to, const void *p, size_t n, struct err *e)
{
    struct sink *s = to;
    return s->to_file ? outfile_write(&s->file, p, n, e)
                      : fd_write_all(STDOUT_FILENO, "standard output", p, n, e);
}

static int judge(const struct cmd *c, struct err *e)
{
    const struct prep_options *o = c->o;
    if (c->opts->nfile != 1)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "prep export takes one PREFIX, %zu were given",
                       c->opts->nfile);
    if (!o->ids && !tok_flags_given(&o->tokenizer))
        return err_set(e, ERR_USAGE,
                       "--tokenizer is missing: it turns ids to text; or --ids to have the ids");
    if (strcmp(o->output, "-") != 0 && !o->overwrite && file_exists(o->output)) {
        err_set(e, ERR_USAGE, "%s: is there already", o->output);
        return err_hint(e, "name another output, or replace it with --overwrite");
    }
    return 0;
}

static int run(const struct cmd *c, const struct tokenizer *tok, struct sink *to, struct err *e)
{
    struct progress meter;
    struct export_report r;
    const struct prep_options *o = c->o;
    size_t n = strlen(c->opts->file[0]);
    const char *end = n > 4 ? c->opts->file[0] + n - 4 : "";
    char *prefix =
        mem_strndup(c->opts->file[0], !strcmp(end, ".bin") || !strcmp(end, ".idx") ? n - 4 : n);
    progress_init(&meter, WEFT_PREFIX "prep export", "K documents", 1e3, 0, o->common.quiet);
    const struct export_request q = {.prefix = prefix,
                                     .tok = o->ids ? NULL : tok,
                                     .key = o->json_key,
                                     .keep_eod = o->keep_eod,
                                     .kind = zblock_of(o->output),
                                     .workers = o->workers ? (int)o->workers : pool_cpus(),
                                     .write = put,
                                     .to = to,
                                     .stop = c->stop,
                                     .progress = cmd_progress,
                                     .arg = &meter};
    int code = export_run(&q, &r, e);
    progress_finish(&meter);
    if (!code)
        log_info("%" PRIu64 " documents, %" PRIu64 " tokens%s", r.documents, r.tokens,
                 r.eod < 0 && !o->keep_eod ? "; no end of document is known, so none was left out"
                                           : "");
    free(prefix);
    return code;
}

int cmd_export(const struct cmd *c, struct err *e)
{
    const struct tok_flags *t = &c->o->tokenizer;
    struct sink to = {.to_file = strcmp(c->o->output, "-") != 0, .file.fd = -1};
    struct tokenizer *tok = NULL;
    int code = judge(c, e);
    if (!code && tok_flags_given(t))
        code = tok_open_flags(t, &tok, e);
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code && to.to_file)
        code = outfile_open(&to.file, c->o->output, e);
    if (!code)
        code = run(c, tok, &to, e);
    if (!code && to.to_file)
        code = outfile_commit(&to.file, e);
    if (to.to_file)
        outfile_abort(&to.file);
    tok_close(tok);
    return code;
}
