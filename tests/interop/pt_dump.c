/* SPDX-License-Identifier: Apache-2.0 */

/* pt_dump FILE: what pt_open makes of a file of torch.save, a line for each tensor: name, dtype,
 * shape, and its bytes in hex for the types that weft calculates with. */

#include <stdio.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "convert/torch/pt.h"

static int dump(const struct st_file *s, const struct st_entry *t, struct err *e)
{
    int64_t size[2];
    int code = 0;
    printf("%s %s [", t->name, t->dtype_name);
    for (int d = 0; d < t->rank; d++)
        printf("%s%lld", d ? "," : "", (long long)t->size[d]);
    printf("] ");
    if (t->dtype >= 0 && st_matrix(t, size)) {
        struct box_mem m = {.dtype = (enum dtype)t->dtype, .stride = size[1]};
        size_t n = (size_t)(size[0] * size[1]) * dtype_size(m.dtype);
        unsigned char *p = mem_new(n + 1, 1);
        m.box = box_whole(2, size);
        m.data = p;
        code = st_read(s, t, m, e);
        for (size_t i = 0; !code && i < n; i++)
            printf("%02x", p[i]);
        free(p);
    }
    printf("\n");
    return code;
}

int main(int argc, char **argv)
{
    struct st_file s;
    struct err e;
    if (argc != 2)
        return 2;
    int code = pt_open(&s, argv[1], &e);
    if (code)
        return log_err(&e);
    for (size_t i = 0; !code && i < s.n; i++)
        code = dump(&s, s.by_name[i], &e);
    st_close(&s);
    return code ? log_err(&e) : 0;
}
