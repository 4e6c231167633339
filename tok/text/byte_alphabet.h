/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TEXT_BYTE_ALPHABET_H
#define TOK_TEXT_BYTE_ALPHABET_H

/*
 * GPT-2's byte alphabet: each byte is written as one character, those that print as themselves, the
 * other 68 as U+0100 to U+0143 in order. Vocabularies of byte-level models are spelled in it.
 */

#include <stddef.h>
#include <stdint.h>

uint32_t letter_of_byte(uint8_t b);                            /* U+0021 to U+0143 */
size_t letter_put(char *dst, uint8_t b);                       /* its UTF-8, 1 or 2 bytes */
int byte_of_letter(const char *p, size_t left, size_t *ret_n); /* -1: p is not at a letter */

/* The bytes that a text of letters spells; returns their number, 0 if a character is not a letter.
 * The text is valid UTF-8; dst holds n + LETTERS_ROOM bytes, any of which may be written. */
enum { LETTERS_ROOM = 64 };
size_t letters_bytes(const char *p, size_t n, char *dst);
size_t letters_bytes_plain(const char *p, size_t n, char *dst); /* without vectors, for tests */

#endif
