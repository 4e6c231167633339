/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "dataset/sample/blend.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Lists of datasets: as words of a file, and as JSON for each part. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct blend_list l, part[PARTS];
    scratch_write("list", p, n);
    int code = blend_list_file(scratch("list"), &l, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_USAGE, "code %d: %s", code, e.msg);
    BUG_ON(!code && !l.n, "an empty list was taken");
    for (size_t i = 0; !code && l.weight && i < l.n; i++)
        BUG_ON(!(l.weight[i] > 0), "weight %g", l.weight[i]);
    blend_list_finish(&l);
    code = blend_list_parts(scratch("list"), part, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_USAGE, "code %d: %s", code, e.msg);
    for (int i = 0; i < PARTS; i++)
        blend_list_finish(&part[i]);
    return 0;
}
