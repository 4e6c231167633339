/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_POINT_H
#define TOK_BPE_SPLIT_POINT_H

/*
 * Split points: positions in a text that no token spans. Merging never joins symbols on two sides
 * of one, whatever the order of merges, so a long run may be split there into segments that are
 * encoded (and cached) independently, with the same ids.
 *
 * This holds if every symbol that a model ever forms is the plain concatenation of its bytes and is
 * one of the tokens added here, or a single character (SentencePiece) or byte: not with continuing
 * prefixes or end suffixes, nor under dropout. The caller must rejoin runs of unknown characters
 * that become one id (fuse_unk).
 *
 * A split point is before a byte that is not a UTF-8 continuation byte. The character before it (at
 * most three of its bytes) and the character after it (at most three bytes, by its lead byte) are
 * the pair that is looked up among the pairs that are adjacent within a token. Tokens that begin or
 * end inside a character count for every character with these bytes. The lookup is a
 * hashed bitmap: a collision loses a split point but never changes an id.
 *
 * A set is filled once and then only read, by any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tok/text/string_map.h"

struct cut {
    uint32_t *word; /* sixteen by the left side, two of these by the byte after the position; bits
                       by the rest */
    uint32_t lines; /* words, without the last four bits */
    uint32_t *part; /* the same for tokens that begin inside a character, by the byte before the
                       position */
    bool left;      /* such tokens exist */
    unsigned char ascii[128][16];   /* [left][right / 8]: one bit for each pair */
    const struct string_map *whole; /* NULL, or see cut_around */
    uint32_t may_be[2048];          /* a bit for both ends and the length of each of these words */
};

/* `bytes` is the total length of all tokens; it determines the size of the bitmap, which is
 * generous: a lost split point makes segments longer, and longer ones recur less often. */
void cut_init(struct cut *c, size_t bytes);
void cut_add(struct cut *c, const char *token, size_t n);
/* Adds the position `at` alone; of the token, three bytes on either side suffice. */
void cut_add_at(struct cut *c, const char *token, size_t at, size_t n);
void cut_finish(struct cut *c);

/*
 * Words that must stay whole and that no segment may equal: cut_segments leaves a run alone if
 * splitting would violate that. The caller owns them.
 */
void cut_around(struct cut *c, const struct string_map *whole);

/* May text[0 .. n) be one of the words of cut_around? Three bytes after it must be readable. */
bool cut_may_be_whole(const struct cut *c, const char *text, size_t n);

/* The slow half of cut_here. */
bool cut_between(const struct cut *c, const char *text, size_t at, size_t n);

/* Is 0 < at < n a split point of text[0 .. n)? */
static inline bool cut_here(const struct cut *c, const char *text, size_t at, size_t n)
{
    unsigned char a = (unsigned char)text[at - 1], b = (unsigned char)text[at];
    if ((a | b) < 0x80)
        return !(c->ascii[a][b >> 3] >> (b & 7) & 1);
    return cut_between(c, text, at, n);
}

/* The same before p[0], if characters of three bytes are known to be on both sides; p[3] must be
 * readable. */
bool cut_wide(const struct cut *c, const char *p);

/*
 * Splits the pre-tokens text[start[i] .. start[i + 1]), i < n, that are longer than `longest`, and
 * those of more than six bytes that begin with a character of three bytes or more: words of such
 * scripts have about two characters, and what is between two commas seldom recurs. Writes the
 * starts of all segments to `ret`, which must hold one position for each byte of the text, and one
 * more, and returns their number. n = 1 splits a whole text. The text is UTF-8, shorter than 2^31,
 * pre-tokens begin with a character, and 3 bytes after the text must be readable.
 */
size_t cut_segments(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                    uint32_t longest, uint32_t *ret);

#endif
