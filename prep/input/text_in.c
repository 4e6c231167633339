/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/text_in.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/utf8.h"

enum { HELD = 4 }; /* bytes of a long text that may be held back: \r, a cut character */

static bool by_line(const struct text_form *f)
{
    return f->nsep == 1 && *f->sep == '\n';
}

bool text_next(const struct text_form *f, const char **p, const char *end, size_t *ret_n)
{
    const char *from = *p, *stop;
    if (from == end)
        return false;
    stop = sep_find(from, end, f->sep, f->nsep);
    if (stop == end && !by_line(f) && jsonl_blank(from, end))
        return false;
    *p = stop < end ? stop + f->nsep : end;
    if (by_line(f) && f->keep_newlines)
        stop = *p;
    else if (by_line(f) && stop < end && stop > from && stop[-1] == '\r')
        stop--;
    *ret_n = (size_t)(stop - from);
    return true;
}

int text_check(const char *p, size_t n, struct err *e)
{
    size_t good = n ? utf8_good(p, n) : 0;
    return good == n ? 0 : err_set(e, ERR_DATA, "byte %zu: invalid UTF-8", good);
}

/* Appends the end of the line if the document keeps it. */
static void end_line(const struct text_form *f, const struct lines *l, struct buf *b)
{
    if (by_line(f) && f->keep_newlines && l->met)
        buf_addc(b, '\n');
    else if (by_line(f) && !f->keep_newlines && l->met && b->len && b->data[b->len - 1] == '\r')
        b->len--;
}

int text_long(const struct text_form *f, struct lines *l, struct buf *b, struct spill *to,
              struct spill *line, bool *ret_bad, struct err *e)
{
    struct buf all = {0}; /* held bytes and the piece */
    bool end = false;
    int code = 0, judged = 0;
    struct err later; /* an error in the record is reported first */
    for (bool more = true; more && !code;) {
        more = !end;
        if (b->len)
            buf_add(&all, b->data, b->len);
        if (line->fd >= 0 && (code = spill_add(line, b->data, b->len, judged ? &later : e)))
            break;
        if (end)
            end_line(f, l, &all);
        size_t n = end ? all.len : all.len > HELD ? all.len - HELD : 0, good = 0;
        if (!judged && all.len)
            good = utf8_good(all.data, all.len);
        if (!judged && good < n) /* a character cut by the end of the piece is held */
            judged = err_set(e, ERR_DATA, "byte %" PRIu64 ": invalid UTF-8", to->size + good);
        if (!judged)
            code = spill_add(to, all.data, n, e);
        memmove(all.data, all.data + n, all.len - n);
        all.len -= n;
        if (more && !code)
            code = lines_more(l, b, &end, judged ? &later : e);
    }
    if (code && judged)
        *e = later;
    if (!code && line->fd >= 0)
        code = spill_flush(line, judged ? &later : e);
    if (!code && !judged)
        code = spill_flush(to, e);
    *ret_bad = !code && judged;
    buf_finish(&all);
    return code ? code : judged;
}

static int text_in_hex(char c)
{
    const char *digits = "0123456789abcdef", *s = c ? strchr(digits, c | 0x20) : NULL;
    return s && (c >= 'A' || (c >= '0' && c <= '9')) ? (int)(s - digits) : -1;
}

int text_separator(const char *written, char *ret, size_t *ret_n, struct err *e)
{
    static const char from[] = "nrtf0\\", to[] = "\n\r\t\f\0\\";
    size_t n = 0;
    for (const char *p = written; *p; p++) {
        if (n == LINES_SEPARATOR)
            return err_set(e, ERR_USAGE, "a separator has at most %d bytes", LINES_SEPARATOR);
        const char *s = p[0] == '\\' && p[1] ? strchr(from, p[1]) : NULL;
        int high = p[0] == '\\' && p[1] == 'x' ? text_in_hex(p[2]) : -1,
            low = high < 0 ? -1 : text_in_hex(p[3]);
        if (s) {
            ret[n++] = to[s - from];
            p++;
        } else if (low >= 0) {
            ret[n++] = (char)(high << 4 | low);
            p += 3;
        } else if (*p == '\\') {
            return err_set(e, ERR_USAGE,
                           "'%s': a backslash is followed by n, r, t, f, 0, xHH or another one",
                           written);
        } else {
            ret[n++] = *p;
        }
    }
    *ret_n = n;
    return n ? 0 : err_set(e, ERR_USAGE, "a separator cannot be empty");
}
