/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "convert/copy/copy_rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What was accepted stays inside the tensor that it is a map of. */
static void check(const struct copy_rows *r)
{
    BUG_ON(r->was < 1 || r->is < 1 || r->start[0], "%lld to %lld rows", (long long)r->was,
           (long long)r->is);
    for (int64_t i = 0; i < r->is; i++) {
        BUG_ON(r->old[i] < -1 || r->old[i] >= r->was, "old row %lld", (long long)r->old[i]);
        BUG_ON(r->start[i + 1] < r->start[i], "sources of row %lld", (long long)i);
        BUG_ON(r->old[i] >= 0 && r->start[i + 1] > r->start[i], "a kept row with sources");
    }
    for (size_t k = 0; k < r->start[r->is]; k++)
        BUG_ON(r->from[k] < 0 || r->from[k] >= r->was, "source %lld", (long long)r->from[k]);
    int64_t at = copy_rows_find(r, 0);
    BUG_ON(at >= 0 && r->old[at], "row %lld", (long long)at);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct copy_rows r;
    struct err e;
    char *text = mem_new(n + 1, 1); /* of exactly the size: what is read beyond is seen */
    memcpy(text, p, n);
    text = mem_grow(text, n ? n : 1, 1);
    int code = copy_rows_parse(&r, "input", text, n, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (!code) {
        check(&r);
        copy_rows_finish(&r);
    }
    free(text);
    return 0;
}
