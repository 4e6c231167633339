/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/char_sides.h"

#include <string.h>

#include "base/core/utf8.h"
#include "tok/pipeline/look_across.h"

static bool has_all(const struct pipe_spec *s, const char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        utf8_at(text + i, &k);
        bool mark = text[i] == ' ' && s->npre && s->pre[0].kind == PRE_METASPACE;
        if (vocab_find(&s->vocab, mark ? s->pre[0].content.p : text + i,
                       mark ? s->pre[0].content.n : k) < 0)
            return false;
    }
    return true;
}

static uint32_t first_char(const struct buf *b)
{
    size_t k;
    return utf8_at(b->data, &k);
}

static uint32_t last_char(const struct buf *b)
{
    size_t k;
    return utf8_at(b->data + utf8_before(b->data, b->len), &k);
}

struct sides sides_look(const struct pipe_spec *s, struct pipe_work *w, uint32_t c, bool whole)
{
    struct buf *text = &w->norm;
    struct err ignored;
    char own[4];
    size_t n = utf8_put(own, c);
    bool before = true, behind = true, grasps = false;
    buf_reset(text);
    buf_add(text, own, n);
    for (size_t i = 0; i < s->nnorm; i++) {
        uint32_t last = last_char(text);
        bool free = across_behind(s, i, last);
        before &= across_before(s, i, first_char(text)) && (free || across_repeats(s, i, last));
        behind &= free;
        grasps |= across_grasps(s, i, last);
        if (pipe_norm_step(s, i, w, EDGE_CUT | EDGE_STRIPPED, text, &ignored) || !text->len)
            return (struct sides){SIDE_KNOWN, SIDE_KNOWN};
    }
    behind &= before; /* otherwise what precedes it may have changed its last character */
    uint32_t flags = SIDE_KNOWN;
    if (whole && has_all(s, text->data, text->len))
        flags |= SIDE_WHOLE;
    if (before && behind && text->len == n && !memcmp(own, text->data, n))
        flags |= SIDE_SAME;
    return (struct sides){first_char(text) | flags | (before ? SIDE_FREE : 0),
                          last_char(text) | flags | (behind ? SIDE_FREE : 0) |
                              (grasps ? SIDE_GRASPS : 0)};
}
