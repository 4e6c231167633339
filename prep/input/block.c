/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/block.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"

enum { KEPT = 4 << 20 }; /* bytes; larger buffers are freed */

void item_init(struct item *it, size_t ncolumns)
{
    *it = (struct item){.ncolumns = ncolumns};
    it->column = mem_new(ncolumns, sizeof(*it->column));
}

static void block_empty(struct buf *b)
{
    if (b->cap > KEPT)
        buf_finish(b);
    b->len = 0;
}

void item_reset(struct item *it)
{
    block_empty(&it->text);
    block_empty(&it->run);
    block_empty(&it->bad);
    block_empty(&it->why);
    for (size_t k = 0; k < it->ncolumns; k++) {
        if (it->column[k].ids.cap > KEPT / sizeof(int32_t))
            tok_ids_finish(&it->column[k].ids);
        it->column[k].ids.n = 0;
        block_empty(&it->column[k].packed);
        block_empty(&it->column[k].length);
        block_empty(&it->column[k].sentence);
        block_empty(&it->column[k].run);
        it->column[k].refused = false;
    }
    longrec_destroy(it->large);
    it->large = NULL;
    plain_file_drop(it->file);
    it->file = NULL;
    it->unread = 0;
    it->under_way = 0;
    it->ids.n = 0;
    it->code = 0;
    it->last = false;
    it->lines = it->docs = 0;
    it->specials = it->eods = it->added = 0;
}

void item_finish(struct item *it)
{
    buf_finish(&it->text);
    buf_finish(&it->run);
    buf_finish(&it->bad);
    buf_finish(&it->why);
    for (size_t k = 0; k < it->ncolumns; k++) {
        tok_ids_finish(&it->column[k].ids);
        buf_finish(&it->column[k].packed);
        buf_finish(&it->column[k].length);
        buf_finish(&it->column[k].sentence);
        buf_finish(&it->column[k].run);
    }
    tok_ids_finish(&it->ids);
    longrec_destroy(it->large);
    plain_file_drop(it->file);
    free(it->column);
    *it = (struct item){0};
}

void item_load(struct item *it)
{
    if (it->unread && !it->code)
        it->code = plain_file_read(it->file, it->end - it->unread, it->unread, JSONL_PADDING,
                                   &it->text, &it->err);
    it->unread = 0;
}

void item_add_bad(struct item *it, uint64_t line, const char *p, size_t n, const struct err *why)
{
    struct bad b = {.line = line,
                    .at = p ? (size_t)(p - it->text.data) : 0,
                    .n = n,
                    .why = it->why.len,
                    .kind = why->kind};
    buf_add(&it->bad, &b, sizeof(b));
    buf_add(&it->why, why->msg, strlen(why->msg) + 1);
}

void item_add_filtered(struct item *it, uint64_t line)
{
    struct bad b = {.line = line, .filtered = true};
    buf_add(&it->bad, &b, sizeof(b));
}
