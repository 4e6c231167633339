/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "base/format/jscan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static const char *const keys[] = {"text", "ids", "a.text", "a.b.ids", "a"};

static void same(const struct jscan_value *got, const struct jsonl_value *want)
{
    struct err e;
    BUG_ON(got->kind != want->kind, "kind %d, but %d in memory", got->kind, want->kind);
    bool text = want->kind == JSONL_STRING || want->kind == JSONL_STRINGS;
    const void *p = text ? (const void *)want->text : want->ids;
    bool ids = want->kind == JSONL_IDS || want->kind == JSONL_ID_LISTS;
    size_t n = text ? want->length : ids ? want->length * sizeof(int64_t) : 0;
    if (!text && !ids)
        return;
    BUG_ON(got->spill.size != n, "%zu bytes, but %zu in memory", (size_t)got->spill.size, n);
    char *b = mem_new(n, 1);
    BUG_ON(spill_read(&got->spill, 0, b, n, &e), "%s", e.msg);
    BUG_ON(n && memcmp(b, p, n), "other bytes than in memory");
    free(b);
}

/* The scanner of long lines takes and gives what base/jsonl does, wherever the line is cut. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct jsonl *j = jsonl_create(keys, 5);
    struct jsonl_value want[5];
    struct jscan s;
    struct err e;
    char *line = mem_new(n + JSONL_PADDING, 1);
    memcpy(line, p, n);
    int expected = jsonl_parse(j, line, n, want, &e), code = 0;
    BUG_ON(jscan_open(&s, keys, 5, "/tmp/weft-fuzz", &e), "%s", e.msg);
    size_t step = 1 + n % 13;
    for (size_t at = 0; at < n && !code; at += step)
        code = jscan_feed(&s, line + at, n - at < step ? n - at : step, &e);
    if (!code)
        code = jscan_end(&s, &e);
    BUG_ON(code != expected, "code %d, but %d in memory: %s", code, expected, e.msg);
    for (int k = 0; k < 5 && !code; k++)
        same(&s.value[k], &want[k]);
    jscan_close(&s);
    free(line);
    jsonl_destroy(j);
    return 0;
}
