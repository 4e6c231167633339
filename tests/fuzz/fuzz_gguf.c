/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "convert/gguf/gguf_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct st_file s;
    struct err e;
    int code = gguf_parse(&s, "input", p, n, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (code)
        return 0;
    for (size_t i = 0; i < s.n; i++) {
        const struct st_entry *t = &s.entry[i];
        BUG_ON(t->end < t->begin || t->end > s.data_size || s.data_at + s.data_size > n, "'%s'",
               t->name);
        BUG_ON(st_find(&s, t->name) != t || !t->dtype_name, "'%s'", t->name);
    }
    for (size_t i = 0; i < s.metadata->length; i++)
        BUG_ON(s.metadata->child[i].kind != JSON_STRING, "'%s'", s.metadata->child[i].key);
    st_close(&s);
    return 0;
}
