/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonl.h"
#include "base/mem.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const struct jsonl_value *v)
{
    int64_t sum = 0;
    if (v->kind == JSONL_STRING)
        for (const char *s = v->text, *end = s + v->length; s < end;) {
            size_t k = utf8_char(s, end);
            BUG_ON(!k, "a string that is not UTF-8");
            s += k;
        }
    if (v->kind == JSONL_IDS)
        for (size_t i = 0; i < v->length; i++)
            sum ^= v->ids[i]; /* all of them can be read */
    BUG_ON(v->kind != JSONL_IDS && sum, "ids in a value without");
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const keys[] = {"text", "ids", "a.text", "a.b.ids", "a"};
    struct jsonl *j = jsonl_create(keys, 5);
    struct jsonl_value v[5];
    struct err e;
    char *line = mem_new(n + JSONL_PADDING, 1);
    memcpy(line, p, n);
    for (int i = 0; i < 2; i++) { /* buffers are fresh, then used */
        int rc = jsonl_parse(j, line, n, v, &e);
        BUG_ON(rc && rc != ERR_DATA, "code %d: %s", rc, e.msg);
        BUG_ON(rc && strncmp(e.msg, "byte ", 5) != 0, "no place in '%s'", e.msg);
        for (int k = 0; k < 5 && !rc; k++)
            check(&v[k]);
    }
    free(line);
    jsonl_destroy(j);
    return 0;
}
