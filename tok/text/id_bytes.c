/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/id_bytes.h"

#include <stdlib.h>
#include <string.h>
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/kernels.h"

enum {
    AT_ONCE = 512, /* ids per reservation of output */
    STEP = 16,
    WIDTH = 64, /* bytes written for four ids */
    RUNS = 1024 /* ids whose bytes are checked together */
};

void id_bytes_init(struct id_bytes_table *s, size_t n)
{
    *s = (struct id_bytes_table){.of = mem_new(n + 1, sizeof(*s->of))};
    mem_large_pages(s->of, n * sizeof(*s->of));
    memset(buf_reserve(&s->text, STEP), 0, STEP);
}

void id_bytes_finish(struct id_bytes_table *s)
{
    free(s->of);
    buf_finish(&s->text);
}

static void set_far(struct id_bytes_table *s, struct id_bytes_entry *to, const char *p, size_t n)
{
    to->far.at = s->text.len;
    to->far.length = (uint32_t)n;
    buf_add(&s->text, p, n);
    memset(buf_reserve(&s->text, STEP), 0, STEP);
}

bool id_bytes_set_plain(struct id_bytes_entry *to, const char *p, size_t n, bool *ret_good)
{
    char text[STEP] = {0};
    memcpy(text, p, n);
    memcpy(to->all, text, STEP);
    *ret_good =
        !((load_u64(text) | load_u64(text + 8)) & 0x8080808080808080u) || utf8_good(p, n) == n;
    return !memchr(text, 0, n);
}

void id_bytes_set(struct id_bytes_table *s, size_t id, const char *p, size_t n, int mark)
{
    struct id_bytes_entry *to = &s->of[id];
    bool good = true;
    int tag = mark;
    if (n && n <= ID_BYTES_LENGTH && text_kernels[simd_best()].id_bytes_set(to, p, n, &good)) {
        tag |= (int)n;
    } else {
        *to = (struct id_bytes_entry){0};
        if (n || !(mark & ID_BYTES_RUN)) {
            set_far(s, to, p, n);
            tag |= ID_BYTES_FAR;
            good = utf8_good(p, n) == n;
        }
    }
    tag |= good ? 0 : ID_BYTES_PART;
    s->parts |= !good && !(mark & ID_BYTES_RUN);
    to->all[15] = (char)tag;
}

const char *id_bytes_text(const struct id_bytes_table *s, int32_t id, size_t *ret_n)
{
    const struct id_bytes_entry *of = &s->of[id];
    bool far = id_bytes_tag(of) & ID_BYTES_FAR;
    *ret_n = far ? of->far.length : id_bytes_tag(of) & ID_BYTES_LENGTH;
    return far ? s->text.data + of->far.at : of->text;
}

/* ---- ids to bytes ---------------------------------------------------------------------------- */

char *id_bytes_put_plain(const struct id_bytes_entry *of, const int32_t **id, const int32_t *end,
                         char *to, unsigned *seen)
{
    return id_bytes_put_each(of, id, end, to, seen);
}

static void put_far(const struct id_bytes_table *s, const struct id_bytes_entry *of,
                    struct buf *out)
{
    size_t n = of->far.length;
    const char *from = s->text.data + of->far.at;
    char *to = buf_reserve(out, n + STEP);
    for (size_t i = 0; i < n; i += STEP)
        memcpy(to + i, from + i, STEP);
    out->len += n;
}

static unsigned put_all(const struct id_bytes_table *s, const int32_t *id, size_t n,
                        struct buf *out, id_bytes_put_fn *put)
{
    const int32_t *p = id, *end = id + n;
    unsigned seen = 0;
    while (p < end) {
        const int32_t *stop = end - p < AT_ONCE ? end : p + AT_ONCE;
        char *to = buf_reserve(out, (size_t)(stop - p) * STEP + WIDTH);
        to = put(s->of, &p, stop, to, &seen);
        out->len = (size_t)(to - out->data);
        if (p < stop && id_bytes_tag(&s->of[*p]) & ID_BYTES_FAR) {
            seen |= id_bytes_tag(&s->of[*p]) | (s->of[*p].far.length ? 0 : ID_BYTES_NOTHING);
            put_far(s, &s->of[*p++], out);
        }
    }
    return seen;
}

unsigned id_bytes_append_by(const struct id_bytes_table *s, const int32_t *id, size_t n,
                            struct buf *out, enum simd_level level)
{
    return put_all(s, id, n, out, text_kernels[level].id_bytes_put);
}

unsigned id_bytes_append(const struct id_bytes_table *s, const int32_t *id, size_t n,
                         struct buf *out)
{
    return put_all(s, id, n, out, text_kernels[n >= 4 ? simd_best() : SIMD_PLAIN].id_bytes_put);
}

/* The ids up to the last position among the first k that is not inside a run of bytes; if there is
 * none, up to the first. */
static size_t to_place(const struct id_bytes_table *s, const int32_t *id, size_t n, size_t k)
{
    size_t last = k;
    while (last && last < n && id_bytes_tag(&s->of[id[last - 1]]) & ID_BYTES_RUN)
        last--;
    while (!last && k < n && id_bytes_tag(&s->of[id[k - 1]]) & ID_BYTES_RUN)
        k++;
    return last ? last : k;
}

size_t id_bytes_append_runs(const struct id_bytes_table *s, const int32_t *id, size_t n,
                            struct buf *out, size_t *ret_odd)
{
    size_t done = 0;
    *ret_odd = s->parts ? n : 0;
    while (done < n && !*ret_odd) {
        size_t k = n - done < RUNS ? n - done : RUNS, from = out->len;
        k = to_place(s, id + done, n - done, k);
        unsigned seen = id_bytes_append(s, id + done, k, out);
        size_t length = out->len - from;
        bool split =
            (seen & (ID_BYTES_PART | ID_BYTES_NOTHING)) == (ID_BYTES_PART | ID_BYTES_NOTHING);
        if (!split && (!(seen & ID_BYTES_PART) || utf8_good(out->data + from, length) == length)) {
            done += k;
        } else {
            out->len = from;
            *ret_odd = k;
        }
    }
    return done;
}
