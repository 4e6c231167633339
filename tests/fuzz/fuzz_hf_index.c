/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "convert/hf/hf_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What was accepted names plain files, finds every tensor, and reads back as it is written. */
static void check(const struct hf_index *x)
{
    struct hf_index again;
    struct buf text = {0};
    struct err e;
    BUG_ON(!x->n || !x->files || x->files > x->n, "%zu tensors in %zu files", x->n, x->files);
    for (size_t i = 0; i < x->files; i++)
        BUG_ON(strchr(x->file[i], '/') || x->file[i][0] == '.', "file '%s'", x->file[i]);
    hf_index_write(x->place, x->n, 1, &text);
    int code = hf_index_parse(&again, "again", text.data, text.len, &e);
    BUG_ON(code, "what was written does not read back: %s", e.msg);
    BUG_ON(again.n != x->n || again.files != x->files, "another index");
    for (size_t i = 0; i < x->n; i++) {
        const char *file = hf_index_find(&again, x->place[i].tensor);
        BUG_ON(!file || strcmp(file, x->place[i].file), "'%s'", x->place[i].tensor);
    }
    hf_index_finish(&again);
    buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct hf_index x;
    struct err e;
    int code = hf_index_parse(&x, "input", (const char *)p, n, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (!code) {
        check(&x);
        hf_index_finish(&x);
    }
    return 0;
}
