/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "prep/cmd.h"
#include "prep/tools/import.h"
#include "tok/tokenizer/options.h"

static int parse_boundary(const char *text, int64_t *ret, struct err *e)
{
    char *end;
    *ret = FOREIGN_UNSET;
    if (!text)
        return 0;
    *ret = FOREIGN_NONE;
    if (!strcmp(text, "none"))
        return 0;
    *ret = strtoll(text, &end, 10);
    if (end == text || *end || *ret < 0 || *ret > INT32_MAX)
        return err_set(e, ERR_USAGE, "--boundary: '%s' is neither an id nor 'none'", text);
    return 0;
}

static int ask(const struct prep_options *o, struct foreign_options *ret, struct err *e)
{
    static const int type[] = {-1, NPY_U1, NPY_U2, NPY_U4, NPY_I4, NPY_I8};
    *ret = (struct foreign_options){.format = (enum foreign_format)o->import_format,
                                    .dtype = type[o->import_dtype],
                                    .place = (enum foreign_place)o->boundary_at,
                                    .ignore_loss = o->ignore_loss};
    return parse_boundary(o->boundary, &ret->boundary, e);
}

static int run_import(const struct cmd *c, const struct tokenizer *tok, char *const *file, size_t n,
                      struct err *e)
{
    struct progress meter;
    struct import_report r;
    struct import_request q = {.input = (const char *const *)file,
                               .n = n,
                               .output = c->o->output_prefix,
                               .overwrite = c->o->overwrite,
                               .tok = tok,
                               .vocab_size = c->o->tokenizer.vocab_size,
                               .stop = c->stop,
                               .progress = cmd_progress,
                               .arg = &meter};
    int code = ask(c->o, &q.ask, e);
    if (code)
        return code;
    progress_init(&meter, WEFT_PREFIX "prep import", "M tokens", 1e6, 0, c->o->common.quiet);
    code = import_run(&q, &r, e);
    progress_finish(&meter);
    if (!code)
        log_info("%zu files: %" PRIu64 " documents, %" PRIu64 " sequences, %" PRIu64
                 " tokens of type %s in %s.bin, .idx",
                 n, r.documents, r.sequences, r.tokens, shard_dtype_name(r.dtype), q.output);
    return code;
}

int cmd_import(const struct cmd *c, struct err *e)
{
    const struct tok_flags *t = &c->o->tokenizer;
    struct tokenizer *tok = NULL;
    char **file = NULL;
    size_t n = 0;
    if (!c->opts->nfile)
        return err_set(e, ERR_USAGE, "no token file given");
    if (cmd_need_prefix(c->o, e))
        return ERR_USAGE;
    int code = tok_flags_given(t) ? tok_open_flags(t, &tok, e) : 0;
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code)
        code = import_find(c->opts->file, c->opts->nfile, &file, &n, e);
    if (!code)
        code = run_import(c, tok, file, n, e);
    names_free(file, n);
    tok_close(tok);
    return code;
}
