/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/long_record.h"

#include <stdlib.h>

#include "base/core/mem.h"

int longrec_create(const struct long_plan *p, struct long_record **ret, struct err *e)
{
    struct long_record *r = mem_new(1, sizeof(*r));
    r->line.fd = -1;
    r->fail = p->fail;
    int code = jscan_open(&r->scan, p->key, p->nkeys, p->output, e);
    if (!code && p->keep_line)
        code = spill_open(&r->line, p->output, e);
    r->column = mem_new(p->nkeys, sizeof(*r->column));
    r->ncolumns = p->nkeys;
    for (size_t k = 0; k < p->nkeys; k++) {
        r->column[k].packed.fd = r->column[k].sentence.fd = -1;
        if (!code)
            code = spill_open(&r->column[k].packed, p->output, e);
        if (!code)
            code = spill_open(&r->column[k].sentence, p->output, e);
    }
    if (code)
        longrec_destroy(r);
    else
        *ret = r;
    return code;
}

void longrec_destroy(struct long_record *r)
{
    if (!r)
        return;
    jscan_close(&r->scan);
    spill_close(&r->line);
    for (size_t k = 0; k < r->ncolumns; k++) {
        spill_close(&r->column[k].packed);
        spill_close(&r->column[k].sentence);
    }
    free(r->column);
    free(r);
}

int longrec_read(struct long_record *r, struct lines *l, struct buf *b, bool *ret_bad,
                 struct err *e)
{
    int code = 0, judged = 0;
    struct err later; /* the record's first error is the one reported */
    bool end = false;
    while (!code) {
        if (!judged)
            judged = jscan_feed(&r->scan, b->data, b->len, e);
        if (judged && judged != ERR_DATA)
            return judged;
        if (judged && r->fail) {
            *ret_bad = true;
            return judged;
        }
        if (r->line.fd >= 0)
            code = spill_add(&r->line, b->data, b->len, judged ? &later : e);
        if (end || code)
            break;
        code = lines_more(l, b, &end, judged ? &later : e);
    }
    if (code && judged)
        *e = later;
    if (!code && r->line.fd >= 0)
        code = spill_flush(&r->line, e);
    if (!code && !judged)
        judged = jscan_end(&r->scan, e);
    *ret_bad = !code && judged == ERR_DATA;
    return code ? code : judged;
}
