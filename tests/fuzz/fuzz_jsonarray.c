/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "prep/input/jsonarray.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static int turn(char *p, size_t n, size_t step, struct err *e)
{
    struct jsonarray a = {0};
    int code = 0;
    for (size_t at = 0; at < n && !code; at += step)
        code = jsonarray_feed(&a, p + at, n - at < step ? n - at : step, e);
    return code ? code : jsonarray_end(&a, e);
}

static bool parses(struct jsonl *j, const char *p, size_t n)
{
    struct jsonl_value v;
    struct err e;
    return !jsonl_parse(j, p, n, &v, &e) || strstr(e.msg, "nest");
}

/* The array as the value of a field, which base/jsonl can validate as a whole. */
static bool good_whole(struct jsonl *j, const uint8_t *p, size_t n)
{
    struct buf b = {0};
    bool marked = n >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3);
    buf_adds(&b, "{\"a\":");
    buf_add(&b, p + (marked ? 3 : 0), n - (marked ? 3 : 0));
    buf_addc(&b, '}');
    size_t len = b.len;
    buf_reserve(&b, JSONL_PADDING);
    bool good = parses(j, b.data, len);
    buf_finish(&b);
    return good;
}

static bool good_lines(struct jsonl *j, const char *p, const char *end)
{
    bool good = true;
    while (good && p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        good = jsonl_blank(p, stop) || parses(j, p, (size_t)(stop - p));
        p = stop + 1;
    }
    return good;
}

/*
 * The same bytes whatever the pieces. What is good as a whole makes an array; lines that are good
 * one by one were one good array.
 */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e, f;
    const char *key = "text";
    struct jsonl *j = jsonl_create(&key, 1);
    char *whole = mem_new(n + JSONL_PADDING, 1), *pieces = mem_new(n + 1, 1);
    if (n) {
        memcpy(whole, p, n);
        memcpy(pieces, p, n);
    }
    int code = turn(whole, n, n + 1, &e), same = turn(pieces, n, 1 + n % 5, &f);
    BUG_ON(code != same, "code %d in one go, %d in pieces", code, same);
    BUG_ON(code && strcmp(e.msg, f.msg) != 0, "'%s' in one go, '%s' in pieces", e.msg, f.msg);
    BUG_ON(!code && memcmp(whole, pieces, n) != 0, "other bytes in pieces");
    bool good = n && good_whole(j, p, n);
    if (!code && good_lines(j, whole, whole + n))
        BUG_ON(!good, "good in lines, but not as a whole");
    const uint8_t *first = p;
    while (first < p + n && jsonl_white((char)*first))
        first++;
    if (good && first < p + n && *first == '[')
        BUG_ON(code, "%s", e.msg);
    jsonl_destroy(j);
    free(whole);
    free(pieces);
    return 0;
}
