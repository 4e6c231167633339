/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_USE_H
#define TESTS_FUZZ_USE_H

#include "base/core/mem.h"
#include "tok/formats/formats.h"

/* A file's bytes as one format of tok/formats/table.h, whatever they look like. */
static inline int fuzz_open(const char *format, const struct tok_options *o, const void *p,
                            size_t n, struct tok_engine *ret, struct tok_info *info, struct err *e)
{
    struct buf file = {0};
    buf_reserve(&file, 1);
    buf_add(&file, p, n);
    int code = format_engine_open(format_named(format), o, &file, ret, info, e);
    buf_finish(&file);
    return code;
}

/* What must hold of an engine that opened, whatever its file: ids of the vocabulary out of any
 * text, and text out of them. Returns whether the text could be encoded. */
static inline bool fuzz_use(const struct tok_engine *g, const struct tok_info *info, const void *p,
                            size_t n)
{
    struct err e;
    struct tok_ids ids = {0};
    struct tok_tally tally = {0};
    struct buf text = {0};
    void *scratch = g->scratch_create(g->state);
    int code = g->encode(g->state, scratch, p, n, &ids, &tally, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    for (size_t i = 0; i < ids.n; i++)
        BUG_ON(ids.id[i] < 0 || ids.id[i] >= info->vocab_size, "id %d", ids.id[i]);
    if (!code)
        BUG_ON(g->decode(g->state, scratch, ids.id, ids.n, &text, &e), "%s", e.msg);
    tok_ids_finish(&ids);
    buf_finish(&text);
    g->scratch_destroy(scratch);
    return !code;
}

#endif
