/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/stream/parquet_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"

int docs_rows_open(struct docs_rows *r, const char *path, const char *const *key, size_t nkeys,
                   const char *beside, struct err *e)
{
    *r = (struct docs_rows){.key = key};
    int code = parquet_open(path, key, nkeys, false, beside, &r->file, e);
    if (!code)
        r->length = mem_new(nkeys, sizeof(*r->length));
    return code;
}

void docs_rows_close(struct docs_rows *r)
{
    parquet_close(r->file);
    free(r->length);
    buf_finish(&r->part);
    *r = (struct docs_rows){0};
}

int docs_rows_next(struct docs_rows *r, bool *ret_more, struct err *e)
{
    return parquet_next(r->file, r->length, ret_more, e);
}

uint64_t docs_rows_begin(struct docs_rows *r, size_t k)
{
    r->k = k;
    r->left = r->length[k] == PARQUET_NULL ? 0 : r->length[k];
    r->taken = r->held = 0;
    return r->length[k];
}

int docs_rows_take(struct docs_rows *r, uint64_t most, const char **ret, size_t *ret_n,
                   bool *ret_last, struct err *e)
{
    size_t n = r->left < most ? (size_t)r->left : (size_t)most;
    char *p = buf_reserve(&r->part, r->taken + r->held + n + 1);
    memmove(p, p + r->taken, r->held);
    int code = parquet_take(r->file, r->k, p + r->held, n, e);
    if (code)
        return code;
    r->left -= n;
    n += r->held;
    size_t good = utf8_good(p, n);
    if (good < n && (!r->left || n - good >= 4))
        return err_set(e, ERR_DATA, "the text under \"%s\": byte %" PRIu64 ": not UTF-8",
                       r->key[r->k], r->length[r->k] - r->left - n + good);
    r->taken = good;
    r->held = n - good;
    *ret = p;
    *ret_n = good;
    *ret_last = !r->left;
    return 0;
}

uint64_t docs_rows_consumed(const struct docs_rows *r)
{
    uint64_t rows = parquet_rows(r->file);
    double part = rows ? (double)parquet_row(r->file) / (double)rows : 1;
    return (uint64_t)((double)parquet_size(r->file) * part);
}
