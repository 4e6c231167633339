/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unicode/space_run.h"

#include <string.h>

#include "base/core/utf8.h"

enum {
    REPEATED = 1, /* the character before it again, a number of times that follows */
    REPEATED_BYTES = 1 + sizeof(uint64_t)
};

void space_run_finish(struct space_run *s)
{
    buf_finish(&s->kept);
}

void space_run_reset(struct space_run *s)
{
    buf_reset(&s->kept);
    s->again = 0;
}

/* Appends the repetitions of the last character. */
static void put_repeated(struct space_run *s)
{
    char own[4];
    size_t k = utf8_put(own, s->last);
    if (s->again * k > REPEATED_BYTES) {
        buf_addc(&s->kept, REPEATED);
        buf_add(&s->kept, &s->again, sizeof(s->again));
        s->again = 0;
    }
    for (; s->again; s->again--)
        buf_add(&s->kept, own, k);
}

void space_run_add(struct space_run *s, const char *text, size_t n)
{
    for (size_t at = 0, k; at < n; at += k) {
        uint32_t c = utf8_at(text + at, &k);
        if (s->kept.len && c == s->last) {
            s->again++;
            continue;
        }
        put_repeated(s);
        buf_add(&s->kept, text + at, k);
        s->last = c;
    }
}

const char *space_run_take(struct space_run *s, struct space_run_at *at, size_t *ret_n)
{
    size_t n = 0, k;
    if (s->kept.len)
        put_repeated(s);
    const char *kept = s->kept.data;
    while (n + 4 <= sizeof(at->part)) {
        if (at->again) {
            memcpy(at->part + n, kept + at->before, at->length);
            n += at->length;
            at->again--;
        } else if (at->at == s->kept.len) {
            break;
        } else if (kept[at->at] == REPEATED) {
            memcpy(&at->again, kept + at->at + 1, sizeof(at->again));
            at->at += REPEATED_BYTES;
        } else {
            utf8_at(kept + at->at, &k);
            at->before = at->at;
            at->length = k;
            at->again = 1;
            at->at += k;
        }
    }
    if (!n)
        space_run_reset(s);
    *ret_n = n;
    return at->part;
}
