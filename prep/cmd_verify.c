/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "dataset/tools/merge.h"
#include "prep/cmd.h"
#include "prep/tools/verify.h"
#include "tok/tokenizer/options.h"

static void tell_repair(const char *prefix, const struct repair *r)
{
    char words[128];
    repair_words(r->damage, words, sizeof(words));
    log_info("%s: repaired (%s)", prefix, words);
    if (r->damage & DAMAGE_EODS)
        log_info("%s: each document ends in id %" PRId64 " and is now one token longer", prefix,
                 r->eod);
    if (r->rebuilt)
        log_warn("%s: the ends of %" PRIu64 " documents are lost; each sequence is a document now",
                 prefix, r->rebuilt);
    if (r->lost)
        log_warn("%s: %" PRIu64 " documents are lost", prefix, r->lost);
}

static void tell_sound(const char *prefix, const struct verify_report *r)
{
    const struct shard_stats *s = &r->stats;
    printf("%s: ok: %" PRIu64 " documents, %" PRIu64 " of them empty, %" PRIu64
           " sequences, %" PRIu64 " tokens, highest id %" PRId64,
           prefix, s->documents, s->empty_documents, s->sequences, s->tokens, s->highest_id);
    if (r->limit != SHARD_ANY_ID)
        printf(" of %" PRId64, r->limit);
    if (r->packed)
        printf(", packed");
    if (r->eod >= 0)
        printf(", %" PRIu64 " documents end in %" PRId64, s->ended, r->eod);
    printf("%s\n", r->has_manifest ? ", as the manifest says" : ", without a manifest");
}

static int verify_one(const struct cmd *c, const char *prefix, const struct tokenizer *tok,
                      struct err *e)
{
    struct progress meter;
    struct verify_report r;
    progress_init(&meter, WEFT_PREFIX "prep verify", "MB", 1e6, 0, c->o->common.quiet);
    const struct verify_request q = {.prefix = prefix,
                                     .tok = tok,
                                     .tokenizer_differs = c->o->tokenizer_differs,
                                     .vocab_size = c->o->tokenizer.vocab_size,
                                     .repair = c->o->repair,
                                     .progress = cmd_progress,
                                     .arg = &meter};
    int code = verify_run(&q, &r, e);
    progress_finish(&meter);
    if (r.repaired)
        tell_repair(prefix, &r.repair);
    if (!code)
        tell_sound(prefix, &r);
    return code;
}

/* Checks all; returns the code of the first that fails. */
static int verify_all(const struct cmd *c, char *const *prefix, size_t n,
                      const struct tokenizer *tok, struct err *e)
{
    int first = 0;
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        struct err this;
        int code = verify_one(c, prefix[i], tok, &this);
        if (code && n > 1)
            log_err(&this);
        else if (code)
            *e = this;
        if (code && !first)
            first = code;
        bad += code != 0;
    }
    return first && n > 1 ? err_set(e, first, "%zu of %zu datasets failed verification", bad, n)
                          : first;
}

int cmd_verify(const struct cmd *c, struct err *e)
{
    const struct tok_flags *t = &c->o->tokenizer;
    struct tokenizer *tok = NULL;
    char **prefix = NULL;
    size_t n = 0;
    if (!c->opts->nfile)
        return err_set(e, ERR_USAGE, "no dataset given: name prefixes, patterns or a folder");
    int code = tok_flags_given(t) ? tok_open_flags(t, &tok, e) : 0;
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code)
        code = merge_find(c->opts->file, c->opts->nfile, &prefix, &n, e);
    if (!code)
        code = verify_all(c, prefix, n, tok, e);
    names_free(prefix, n);
    tok_close(tok);
    return code;
}
