/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "dataset/tools/merge.h"
#include "prep/cmd.h"

/* --input and the arguments after the verb. */
static int merge_inputs(const struct cmd *c, char ***ret, size_t *ret_n, struct err *e)
{
    const struct opt_list *in = &c->o->merge_input;
    size_t n = 0, all = in->n + c->opts->nfile;
    const char **given = mem_new(all + 1, sizeof(*given));
    for (size_t i = 0; i < in->n; i++)
        given[n++] = in->item[i];
    for (size_t i = 0; i < c->opts->nfile; i++)
        given[n++] = c->opts->file[i];
    int code = n ? merge_find(given, n, ret, ret_n, e)
                 : err_set(e, ERR_USAGE, "no dataset given: name prefixes, patterns or a folder");
    free(given);
    return code;
}

static void merge_tell(const struct cmd *c, size_t shards, const struct merge_report *r)
{
    log_info("%zu shards: %" PRIu64 " documents, %" PRIu64 " sequences, %" PRIu64 " tokens", shards,
             r->documents, r->sequences, r->tokens);
    if (r->unknown && r->unknown < shards)
        log_warn("%zu of the shards have no manifest: that of the output names no tokenizer",
                 r->unknown);
    if (r->mixed_eod)
        log_warn("some of the shards have an end of document after each document, others have "
                 "none");
    log_info("%s.bin, .idx", c->o->output_prefix);
}

int cmd_merge(const struct cmd *c, struct err *e)
{
    struct progress meter;
    struct merge_report r;
    char **prefix = NULL;
    size_t n = 0;
    if (cmd_need_prefix(c->o, e))
        return ERR_USAGE;
    cmd_warn_unused(c, NULL);
    int code = merge_inputs(c, &prefix, &n, e);
    if (code)
        return code;
    progress_init(&meter, WEFT_PREFIX "prep merge", "MB", 1e6, 0, c->o->common.quiet);
    const struct merge_request q = {.prefix = (const char *const *)prefix,
                                    .tokenizer_differs = c->o->tokenizer_differs,
                                    .n = n,
                                    .output = c->o->output_prefix,
                                    .overwrite = c->o->overwrite,
                                    .stop = c->stop,
                                    .progress = cmd_progress,
                                    .arg = &meter};
    code = merge_run(&q, &r, e);
    progress_finish(&meter);
    if (!code)
        merge_tell(c, n, &r);
    names_free(prefix, n);
    return code;
}
