/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/buf.h"
#include "dataset/index/npy.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct npy a;
    scratch_write("x.npy", p, n);
    int code = npy_open(&a, scratch("x.npy"), &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "/x.npy: ")), "code %d: %s", code, e.msg);
    if (code)
        return 0;
    size_t bytes = a.count * npy_width(a.dtype);
    BUG_ON(a.data + bytes != a.map.data + a.map.size, "elements are not the rest of the file");
    uint64_t sum = 0;
    for (uint64_t i = 0; i < a.count; i++)
        sum += (uint64_t)npy_load(a.dtype, a.data + i * npy_width(a.dtype));
    /* its own header before the same elements reads back the same */
    struct buf b = {0};
    struct npy again;
    npy_header(&b, a.dtype, a.ndim, a.shape);
    buf_add(&b, a.data, bytes);
    npy_close(&a);
    scratch_write("x.npy", b.data, b.len);
    buf_finish(&b);
    code = npy_open(&again, scratch("x.npy"), &e);
    BUG_ON(code, "what was written does not read back: %s", e.msg);
    for (uint64_t i = 0; i < again.count; i++)
        sum -= (uint64_t)npy_load(again.dtype, again.data + i * npy_width(again.dtype));
    BUG_ON(sum, "other elements");
    npy_close(&again);
    return 0;
}
