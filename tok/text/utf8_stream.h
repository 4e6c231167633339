/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_UTF8_STREAM_H
#define TOK_TEXT_UTF8_STREAM_H

/* Whether a text that comes in parts is UTF-8, byte by byte. A zeroed struct is at its beginning.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strict {
    uint64_t at;       /* bytes seen */
    uint64_t begun;    /* where the character under way begins */
    unsigned need;     /* bytes that it still needs */
    uint8_t low, high; /* bounds of the next of them */
};

/* False when it is not: s->begun is where. `last`: the text ends here. */
bool strict_add(struct strict *s, const char *text, size_t n, bool last);

#endif
