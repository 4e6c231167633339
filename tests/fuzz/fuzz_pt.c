/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "convert/torch/pt.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct st_file s;
    struct err e;
    int code = pt_parse(&s, "input", p, n, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (code)
        return 0;
    for (size_t i = 0; i < s.n; i++) {
        const struct st_entry *t = &s.entry[i];
        int64_t size[2];
        BUG_ON(t->end < t->begin || t->begin > n || !t->bits, "'%s'", t->name);
        BUG_ON(!st_matrix(t, size) || st_find(&s, t->name) != t, "'%s'", t->name);
        BUG_ON((uint64_t)(size[0] * size[1]) * (uint64_t)t->bits / 8 != t->end - t->begin, "'%s'",
               t->name);
    }
    st_close(&s);
    return 0;
}
