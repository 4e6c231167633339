/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/crlf.h"

#include <string.h>

#include "base/core/mem.h"

bool sp_put_lines(struct buf *out, const char *text, size_t n, bool cr, bool last)
{
    size_t done = 0;
    buf_reserve(out, n + 1);
    if (cr && !n && !last)
        return true;
    if (cr && !(n && text[0] == '\n'))
        buf_addc(out, '\r');
    while (done < n) {
        const char *at = memchr(text + done, '\r', n - done);
        size_t k = at ? (size_t)(at - text) : n;
        buf_add(out, text + done, k - done);
        done = k + (at != NULL);
        if (at && done == n && !last)
            return true;
        if (at && !(done < n && text[done] == '\n'))
            buf_addc(out, '\r');
    }
    return false;
}

size_t *sp_lines_from(const char *text, size_t n)
{
    size_t *from = mem_new(n + 1, sizeof(*from)), k = 0;
    for (size_t i = 0; i < n; i++, k++) {
        from[k] = i;
        i += text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
    }
    from[k] = n;
    return from;
}
