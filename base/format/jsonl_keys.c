/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/format/jsonl.h"

/* Names are found by their quotes alone: the line is known to be valid. */

enum { LISTED = 16, PATH = 200, DEPTH = 8 };

struct reader {
    const char *p, *end;
    struct buf *list;
    size_t n;       /* listed */
    struct buf way; /* names of the open objects, each with a dot after it */
};

static void blanks(struct reader *r)
{
    while (r->p < r->end && jsonl_white(*r->p))
        r->p++;
}

/* The next string without its quotes; escapes stay as they are. */
static void string(struct reader *r, const char **ret, size_t *ret_n)
{
    *ret = ++r->p;
    while (r->p < r->end && *r->p != '"')
        r->p += *r->p == '\\' ? 2 : 1;
    if (r->p > r->end)
        r->p = r->end;
    *ret_n = (size_t)(r->p - *ret);
    r->p += r->p < r->end;
}

/* Skips a value. */
static void jsonl_keys_skip(struct reader *r)
{
    size_t depth = 0, n;
    const char *s;
    do {
        blanks(r);
        if (r->p == r->end)
            return;
        char c = *r->p;
        if (c == '"') {
            string(r, &s, &n);
            continue;
        }
        if (!depth && (c == ',' || c == '}' || c == ']'))
            return;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        r->p++;
    } while (depth || (r->p < r->end && *r->p != ',' && *r->p != '}' && *r->p != ']'));
}

static void jsonl_keys_add(struct reader *r, const char *name, size_t n)
{
    if (r->n++ < LISTED && r->way.len + n <= PATH) {
        buf_adds(r->list, r->n > 1 ? ", " : "");
        buf_add(r->list, r->way.data, r->way.len);
        buf_add(r->list, name, n);
    } else if (r->n == LISTED + 1) {
        buf_adds(r->list, ", ...");
    }
}

static void object(struct reader *r, size_t depth)
{
    r->p++;
    for (;;) {
        const char *name;
        size_t n, way = r->way.len;
        blanks(r);
        if (r->p < r->end && *r->p == ',') {
            r->p++;
            blanks(r);
        }
        if (r->p == r->end || *r->p != '"')
            break;
        string(r, &name, &n);
        blanks(r);
        r->p += r->p < r->end; /* the colon */
        blanks(r);
        if (r->p < r->end && *r->p == '{' && depth < DEPTH && way + n < PATH) {
            buf_add(&r->way, name, n);
            buf_addc(&r->way, '.');
            object(r, depth + 1);
            r->way.len = way;
        } else {
            jsonl_keys_add(r, name, n);
            jsonl_keys_skip(r);
        }
    }
    r->p += r->p < r->end; /* the brace */
}

void jsonl_keys(const char *line, size_t n, struct buf *ret)
{
    struct reader r = {.p = line, .end = line + n, .list = ret};
    blanks(&r);
    if (r.p < r.end && *r.p == '{')
        object(&r, 0);
    buf_finish(&r.way);
}
