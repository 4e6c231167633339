/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_UTF8_STREAM_H
#define TOK_TEXT_UTF8_STREAM_H

/* Incremental check whether a text is UTF-8. A zeroed struct is at the beginning. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strict {
    uint64_t at;       /* bytes seen */
    uint64_t begun;    /* offset of the current character */
    unsigned need;     /* bytes that it still needs */
    uint8_t low, high; /* bounds of the next byte */
};

/* False if it is not; s->begun is the offset. `last`: the text ends here. */
bool strict_add(struct strict *s, const char *text, size_t n, bool last);

#endif
