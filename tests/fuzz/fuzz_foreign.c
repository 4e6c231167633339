/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/bytes.h"
#include "dataset/tools/foreign.h"
#include "dataset/shard/shard.h"
#include "tests/fuzz/scratch.h"

/*
 * Input: a byte that names the kind, u16 size of the first file, the first file, the second one:
 * TNTIDX .idx and .bin, .ds and .ds.index, or a single file.
 */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { ROOM = 64 };

static void walk(const char *path, const struct foreign_options *ask)
{
    struct err e;
    struct foreign f;
    struct foreign_run r;
    int32_t id[ROOM];
    uint64_t at = 0;
    int code = foreign_open(&f, path, ask, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_USAGE, "open: code %d: %s", code, e.msg);
    if (code)
        return;
    while (foreign_next(&f, &r, &code, &e)) {
        BUG_ON(r.from != at || r.n > f.ntokens - at, "a run that is not the next one");
        at += r.n;
        for (uint64_t i = 0; i < r.n && !code; i += ROOM)
            code =
                foreign_ids(&f, r.from + i, r.n - i < ROOM ? r.n - i : ROOM, SHARD_ANY_ID, id, &e);
        BUG_ON(code && code != ERR_DATA, "ids: code %d: %s", code, e.msg);
    }
    BUG_ON(code && code != ERR_DATA, "next: code %d: %s", code, e.msg);
    BUG_ON(!code && at != f.ntokens, "tokens are missing");
    foreign_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    size_t first = n < 3 ? 0 : load_u16(p + 1);
    if (n < 3 || first > n - 3)
        return 0;
    struct foreign_options ask = {.dtype = -1, .boundary = FOREIGN_UNSET, .eod = 9};
    const char *a[] = {"x.idx", "x.ds", "x.bin", "x.npy"};
    int kind = p[0] % 4;
    scratch_write(a[kind], p + 3, first);
    if (kind == 0)
        scratch_write("x.bin", p + 3 + first, n - 3 - first);
    else if (kind == 1)
        scratch_write("x.ds.index", p + 3 + first, n - 3 - first);
    ask.format = kind == 0 ? FOREIGN_TNTIDX : kind == 2 ? FOREIGN_LLMC : FOREIGN_AUTO;
    walk(scratch(a[kind]), &ask);
    ask.format = FOREIGN_RAW;
    ask.dtype = p[0] / 4 % 8;
    walk(scratch(a[kind]), &ask);
    return 0;
}
