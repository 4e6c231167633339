/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const struct jsonl_value *v)
{
    int64_t sum = 0;
    bool strings = v->kind == JSONL_STRINGS;
    if (v->kind == JSONL_STRING || strings)
        for (const char *s = v->text, *end = s + v->length; s < end;) {
            bool ends = strings && (unsigned char)*s == JSONL_STRING_END;
            size_t k = ends ? 1 : utf8_char(s, end);
            BUG_ON(!k, "a string that is not UTF-8");
            BUG_ON(strings && s + k == end && !ends, "a last string without end");
            s += k;
        }
    bool ids = v->kind == JSONL_IDS || v->kind == JSONL_ID_LISTS;
    if (ids)
        for (size_t i = 0; i < v->length; i++)
            sum ^= v->ids[i]; /* all of them can be read */
    BUG_ON(!ids && sum, "ids in a value without");
}

/* Where no key leads into an object lines are read in one pass: to the same end. */
static void compare(const char *line, size_t n, int want_rc, const struct jsonl_value *want,
                    const struct err *want_e)
{
    static const char *const keys[] = {"text", "ids"};
    struct jsonl *j = jsonl_create(keys, 2);
    struct jsonl_value v[2];
    struct err e;
    int rc = jsonl_parse(j, line, n, v, &e);
    BUG_ON(rc != want_rc, "code %d, and %d by another way", rc, want_rc);
    BUG_ON(rc && strcmp(e.msg, want_e->msg) != 0, "'%s' and '%s'", e.msg, want_e->msg);
    for (int k = 0; k < 2 && !rc; k++) {
        bool text = v[k].kind == JSONL_STRING || v[k].kind == JSONL_STRINGS;
        bool ids = v[k].kind == JSONL_IDS || v[k].kind == JSONL_ID_LISTS;
        BUG_ON(v[k].kind != want[k].kind || ((text || ids) && v[k].length != want[k].length),
               "other values");
        BUG_ON(text && memcmp(v[k].text, want[k].text, v[k].length) != 0, "another text");
    }
    jsonl_destroy(j);
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
        compare(line, n, rc, v, &e);
    }
    free(line);
    jsonl_destroy(j);
    return 0;
}
