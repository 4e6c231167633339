/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dataset/shard/manifest.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct manifest m;
    bool found;
    struct buf once = {0}, twice = {0};
    scratch_write("x.manifest.json", p, n);
    int code = manifest_read(scratch("x"), &m, &found, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "/x.manifest.json")), "code %d: %s", code,
           e.msg);
    if (code)
        return 0;
    manifest_text(&m, &once);
    manifest_close(&m);
    scratch_write("x.manifest.json", once.data, once.len);
    code = manifest_read(scratch("x"), &m, &found, &e);
    BUG_ON(code, "what was written does not read back: %s", e.msg);
    manifest_text(&m, &twice);
    manifest_close(&m);
    BUG_ON(once.len != twice.len || memcmp(once.data, twice.data, once.len), "it reads otherwise");
    buf_finish(&once);
    buf_finish(&twice);
    return 0;
}
