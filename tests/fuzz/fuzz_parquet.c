/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/parquet/parquet.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { KEYS = 2, STEP = 5000, ROWS = 20000 };

static const char *const keys[2][KEYS] = {{"text", "m.t"}, {"ids", "m.l"}};

/* The row's texts; *budget bounds what a few bytes may expand to. */
static int take_row(struct parquet *q, const uint64_t *size, int64_t *budget, struct err *e)
{
    static const uint64_t most = (uint64_t)1 << 32;
    char to[STEP];
    int code = 0;
    for (size_t k = 0; k < KEYS && !code; k++) {
        if (size[k] == PARQUET_NULL)
            continue;
        BUG_ON(size[k] >= most, "a text of %llu bytes", (unsigned long long)size[k]);
        *budget -= (int64_t)size[k];
        for (uint64_t left = size[k]; left && !code;) {
            size_t n = left < STEP ? (size_t)left : STEP;
            code = parquet_take(q, k, to, n, e);
            left -= n;
        }
    }
    return code;
}

static void read_all(const char *path, bool ids)
{
    struct err e = {0};
    struct parquet *q = NULL;
    bool more = true;
    int64_t budget = 32 << 20;
    int code = parquet_open(path, keys[ids], KEYS, ids, "/tmp/weft-fuzz", &q, &e);
    for (int rows = 0; !code && more && rows < ROWS && budget > 0; rows++) {
        uint64_t size[KEYS];
        code = parquet_next(q, size, &more, &e);
        if (!code && more)
            code = take_row(q, size, &budget, &e);
    }
    BUG_ON(code && code != ERR_DATA && code != ERR_RESOURCE, "code %d: %s", code, e.msg);
    BUG_ON(code == ERR_DATA && strncmp(e.msg, path, strlen(path)) != 0, "no name in '%s'", e.msg);
    parquet_close(q);
}

/* Whatever the bytes: rows, or one sentence about bad data. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    int fd;
    const char *path = scratch_memory(p, n, &fd);
    read_all(path, false);
    read_all(path, true);
    close(fd);
    return 0;
}
