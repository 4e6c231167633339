/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "dataset/tools/repair.h"
#include "dataset/shard/shard.h"
#include "tests/fuzz/scratch.h"

/* Input: u16 size of the .idx, the .idx, the .bin. What repair_look promises, the shard has. */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void hold(const struct repair *r)
{
    struct err e;
    struct shard s;
    struct shard_stats st;
    const struct shard_check c = {.limit = SHARD_ANY_ID, .eod = r->eod};
    int code = shard_open(&s, scratch("x"), &e);
    BUG_ON(code, "mended, and does not open: %s", e.msg);
    code = shard_check_idx(&s, &st, &e);
    BUG_ON(code, "mended, and not sound: %s", e.msg);
    BUG_ON(st.documents != r->documents || st.sequences != r->sequences || st.tokens != r->tokens,
           "other counts");
    code = shard_check(&s, &c, &st, &e);
    BUG_ON(code && !strstr(e.msg, "token id"), "mended, and not sound: %s", e.msg);
    shard_close(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct repair r, done;
    size_t idx = n < 2 ? 0 : load_u16(p);
    if (n < 2 || idx > n - 2)
        return 0;
    scratch_write("x.idx", p + 2, idx);
    scratch_write("x.bin", p + 2 + idx, n - 2 - idx);
    int code = repair_look(scratch("x"), -1, &r, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "/x.")), "look: code %d: %s", code, e.msg);
    if (code)
        return 0;
    code = repair_run(scratch("x"), -1, &done, &e);
    BUG_ON(code && !strstr(e.msg, "2147483647"), "run: code %d: %s", code, e.msg);
    if (!code)
        hold(&done);
    return 0;
}
