/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { AT_ONCE = 256, STEP = 16 };

void join_init(struct join_table *s, size_t n)
{
    *s = (struct join_table){.of = mem_new(n + 1, sizeof(*s->of))};
    memset(buf_reserve(&s->text, STEP), 0, STEP);
}

void join_finish(struct join_table *s)
{
    free(s->of);
    buf_finish(&s->text);
}

void join_set(struct join_table *s, size_t id, const char *p, size_t n, int mark)
{
    struct join_entry *to = &s->of[id];
    int tag = mark | (utf8_good(p, n) == n ? 0 : JOIN_PART);
    *to = (struct join_entry){0};
    if (n > JOIN_LENGTH) {
        to->far.at = s->text.len;
        to->far.length = (uint32_t)n;
        buf_add(&s->text, p, n);
        memset(buf_reserve(&s->text, STEP), 0, STEP);
        tag |= JOIN_LONG;
    } else {
        memcpy(to->text, p, n);
        tag |= (int)n;
    }
    to->all[15] = (char)tag;
}

void join_set_other(struct join_table *s, size_t id, int value)
{
    s->of[id] = (struct join_entry){.value = value};
    s->of[id].all[15] = (char)JOIN_OTHER;
}

const char *join_text(const struct join_table *s, int32_t id, size_t *ret_n)
{
    const struct join_entry *of = &s->of[id];
    bool far = join_tag(of) & JOIN_LONG;
    *ret_n = far ? of->far.length : join_tag(of) & JOIN_LENGTH;
    return far ? s->text.data + of->far.at : of->text;
}

/* The ids up to `end` or the first that does not lie in the table; there is room for them. */
static char *put_near(const struct join_entry *of, const int32_t **id, const int32_t *end, char *to,
                      unsigned *seen)
{
    const int32_t *p = *id;
    unsigned all = 0;
    for (; p < end; p++) {
        const struct join_entry *s = &of[*p];
        unsigned tag = join_tag(s);
        memcpy(to, s->all, 16);
        if (tag >= JOIN_OTHER)
            break;
        all |= tag;
        to += tag & JOIN_LENGTH;
    }
    *id = p;
    *seen |= all;
    return to;
}

static void put_far(const struct join_table *s, const struct join_entry *of, struct buf *out)
{
    size_t n = of->far.length;
    const char *from = s->text.data + of->far.at;
    char *to = buf_reserve(out, n + STEP);
    for (size_t i = 0; i < n; i += STEP)
        memcpy(to + i, from + i, STEP);
    out->len += n;
}

size_t join_put(const struct join_table *s, const int32_t *id, size_t n, struct buf *out,
                unsigned *seen)
{
    const int32_t *p = id, *end = id + n;
    while (p < end) {
        size_t count = (size_t)(end - p) < AT_ONCE ? (size_t)(end - p) : AT_ONCE;
        char *to = buf_reserve(out, (count + 1) * STEP);
        const int32_t *stop = p + count;
        to = put_near(s->of, &p, stop, to, seen);
        out->len = (size_t)(to - out->data);
        if (p == stop)
            continue;
        const struct join_entry *of = &s->of[*p];
        if (join_tag(of) & JOIN_OTHER)
            break;
        *seen |= join_tag(of);
        put_far(s, of, out);
        p++;
    }
    return (size_t)(p - id);
}
