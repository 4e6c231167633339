/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "train/ckpt/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What was accepted keeps the rules that readers rely on. */
static void check(const struct st_file *s, const uint8_t *p)
{
    uint64_t at = 0;
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct st_entry *t = &s->entry[i];
        uint64_t count = 1;
        BUG_ON(t->begin != at || t->end < t->begin || t->end > s->data_size, "'%s' lies wrong",
               t->name);
        BUG_ON(t->rank < 0 || t->rank > ST_RANK_MAX, "rank %d", t->rank);
        for (int d = 0; d < t->rank; d++)
            count *= (uint64_t)t->size[d];
        BUG_ON(count * (uint64_t)t->bits != (t->end - t->begin) * 8, "'%s' has another size",
               t->name);
        BUG_ON(st_find(s, t->name) != t, "'%s' is not found", t->name);
        for (uint64_t k = t->begin; k < t->end; k++) /* every byte is there */
            sum = (unsigned char)(sum + p[s->data_at + k]);
        int64_t size[2];
        if (t->dtype >= 0 && st_matrix(t, size))
            BUG_ON((uint64_t)size[0] * (uint64_t)size[1] != count, "'%s' as a matrix", t->name);
        at = t->end;
    }
    BUG_ON(at != s->data_size, "%llu of %llu bytes", (unsigned long long)at,
           (unsigned long long)s->data_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct st_file s;
    struct err e;
    int code = st_parse(&s, "input", p, n, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (!code) {
        check(&s, p);
        st_close(&s);
    }
    return 0;
}
