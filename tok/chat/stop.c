/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tok/chat/chat.h"

size_t chat_answer(const struct chat_stop *s, const char *text, size_t n, bool *ret_ended)
{
    *ret_ended = false;
    for (size_t at = 0; at < n && s->n; at++) {
        size_t left = n - at < s->n ? n - at : s->n;
        if (memcmp(text + at, s->text, left))
            continue;
        *ret_ended = left == s->n;
        return at;
    }
    return n;
}
