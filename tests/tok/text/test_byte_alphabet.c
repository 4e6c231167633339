/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/text/byte_alphabet.h"

/* Decoding letter by letter, which the block version must agree with. */
static size_t one_by_one(const char *p, size_t n, char *dst)
{
    size_t count = 0, k;
    for (size_t i = 0; i < n; i += k) {
        int byte = byte_of_letter(p + i, n - i, &k);
        if (byte < 0)
            return 0;
        dst[count++] = (char)byte;
    }
    return count;
}

static void check(const char *p, size_t n)
{
    char want[200], got[200 + LETTERS_ROOM];
    size_t count = one_by_one(p, n, want);
    T_EQ(letters_bytes(p, n, got), count);
    T_MEM(got, want, count);
    T_EQ(letters_bytes_plain(p, n, got), count);
    T_MEM(got, want, count);
}

/* Each character of one or two bytes, alone and between letters. */
static void each_character(void)
{
    for (uint32_t c = 0; c < 0x800; c++) {
        char text[8];
        size_t n = utf8_put(text + 1, c);
        text[0] = 'a';
        memcpy(text + 1 + n, "\xc4\xa0", 2);
        check(text + 1, n);
        check(text, n + 1);
        check(text, n + 3);
    }
}

static void bytes_and_back(void)
{
    for (uint64_t i = 0; i < 20000; i++) {
        char bytes[100], text[200], got[200 + LETTERS_ROOM];
        size_t n = t_rand(i, 0) % (i % 4 ? 20 : 100), length = 0;
        for (size_t k = 0; k < n; k++) {
            uint32_t r = t_rand(i, k + 1);
            bytes[k] = (char)(i & 1 ? ' ' + r % 95 : r % 256);
            length += letter_put(text + length, (uint8_t)bytes[k]);
        }
        T_EQ(letters_bytes(text, length, got), n);
        T_MEM(got, bytes, n);
        check(text, length);
        if (n) { /* and with one character that may not be a letter */
            uint32_t other = t_rand(i, 200) % 0x500;
            size_t at = length - t_rand(i, 201) % 2;
            at = utf8_before(text, at ? at : 1);
            char mixed[210];
            memcpy(mixed, text, at);
            size_t k = utf8_put(mixed + at, other);
            memcpy(mixed + at + k, text + at, length - at);
            check(mixed, length + k);
        }
    }
}

T_MAIN(T_CASE(each_character), T_CASE(bytes_and_back))
