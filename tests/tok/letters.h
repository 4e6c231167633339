/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_LETTERS_H
#define TESTS_TOK_LETTERS_H

/* Vocabularies of GPT-2's kind for tests: with a symbol for each byte. */

#include <string.h>

#include "base/core/buf.h"
#include "tok/text/byte_alphabet.h"

/* Appends a vocab.json with these entries, {"a":0,"ab":1}, and from `id` on the letters that it
 * lacks. */
static inline void put_letters_vocab(struct buf *b, const char *some, int id)
{
    buf_add(b, some, strlen(some) - 1);
    for (int byte = 0; byte < 256; byte++) {
        char entry[16] = "\"";
        size_t n = 1 + letter_put(entry + 1, (uint8_t)byte);
        if (byte == '"' || byte == '\\') {
            entry[2] = entry[1];
            entry[1] = '\\';
            n++;
        }
        memcpy(entry + n, "\":", 3);
        if (!strstr(some, entry))
            buf_addf(b, ",%s%d", entry, id++);
    }
    buf_addc(b, '}');
}

#endif
