/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/jsonarray.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/jsonl.h"

enum state { START, TOP, INSIDE, STRING, DONE };

static const char mark[] = "\xEF\xBB\xBF";

static int jsonarray_bad(const struct jsonarray *a, size_t i, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "byte %" PRIu64 ": %s", a->at + i, why);
}

/* Whether an odd number of backslashes at the end of [p, end) escapes the next byte. */
static bool escapes(const char *p, const char *end, bool escaped)
{
    const char *s = end;
    while (s > p && s[-1] == '\\')
        s--;
    return ((size_t)(end - s) + (s == p && escaped)) % 2;
}

/* Skips the rest of a string, as far as it is there; returns where it stopped. */
static char *pass_string(struct jsonarray *a, char *p, char *end)
{
    while (p < end) {
        char *quote = memchr(p, '"', (size_t)(end - p)), *stop = quote ? quote : end;
        a->escaped = escapes(p, stop, a->escaped);
        for (char *s = p; (s = memchr(s, '\n', (size_t)(stop - s)));)
            *s = '\r';
        if (!quote)
            return end;
        p = quote + 1;
        if (!a->escaped) {
            a->state = a->depth ? INSIDE : TOP;
            return p;
        }
        a->escaped = false;
    }
    return p;
}

static int step_start(struct jsonarray *a, char *p, size_t i, struct err *e)
{
    uint64_t at = a->at + i;
    bool in_mark = at == 0 || (a->any && at < 3); /* the stream may begin with a byte order mark */
    if (in_mark && *p == mark[at])
        a->any = at < 2;
    else if (*p == '[' && !a->any)
        a->state = TOP;
    else if (!jsonl_white(*p) || a->any)
        return jsonarray_bad(a, i, "expected '[', where the array of records begins", e);
    *p = ' ';
    return 0;
}

/* Between elements, or in one that is neither object nor array. */
static int step_top(struct jsonarray *a, char *p, size_t i, struct err *e)
{
    char c = *p;
    if (c == ',' || c == ']') {
        if (!a->any && (c == ',' || a->comma))
            return jsonarray_bad(a, i, "expected a record", e);
        a->any = false;
        a->comma = c == ',';
        a->state = c == ',' ? TOP : DONE;
        *p = c == ',' ? '\n' : ' ';
    } else if (jsonl_white(c)) {
        *p = ' ';
    } else {
        a->any = true;
        a->depth = c == '{' || c == '[';
        a->state = c == '"' ? STRING : a->depth ? INSIDE : TOP;
    }
    return 0;
}

static void step_inside(struct jsonarray *a, char *p)
{
    switch (*p) {
    case '"':
        a->state = STRING;
        break;
    case '{':
    case '[':
        a->depth++;
        break;
    case '}':
    case ']':
        a->state = --a->depth ? INSIDE : TOP;
        break;
    case '\n':
        *p = ' ';
        break;
    default:
        break;
    }
}

int jsonarray_feed(struct jsonarray *a, char *p, size_t n, struct err *e)
{
    char *begin = p, *end = p + n;
    int code = 0;
    while (p < end && !code) {
        size_t i = (size_t)(p - begin);
        switch (a->state) {
        case STRING:
            p = pass_string(a, p, end);
            continue;
        case INSIDE:
            step_inside(a, p);
            break;
        case TOP:
            code = step_top(a, p, i, e);
            break;
        case START:
            code = step_start(a, p, i, e);
            break;
        default:
            if (!jsonl_white(*p))
                code = jsonarray_bad(a, i, "more data after the end of the array", e);
            *p = ' ';
        }
        p++;
    }
    a->at += n;
    return code;
}

int jsonarray_end(const struct jsonarray *a, struct err *e)
{
    if (a->state == DONE)
        return 0;
    return jsonarray_bad(a, 0,
                         a->state == START
                             ? "expected '[', where the array of records begins, found the end"
                             : "the file ends inside the array of records",
                         e);
}
