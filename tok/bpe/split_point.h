/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_SPLIT_POINT_H
#define TOK_BPE_SPLIT_POINT_H

/*
 * Places in a text that no token reaches across. Merging never joins what stands on two sides of
 * such a place, whatever the order of merges: so a long run may be cut there, and the parts encoded
 * (and remembered) each for itself, with the same ids.
 *
 * That holds where every symbol a model ever forms is the plain concatenation of the bytes under it
 * and one of the tokens that were added here, or a single character (SentencePiece) or byte: not
 * with continuing prefixes or end suffixes, nor under dropout. Runs of unknown characters that
 * become one id (fuse_unk) are the caller's to join again.
 *
 * Cuts lie before a byte that is no continuation byte of UTF-8; the bytes before it as far back as
 * one more such byte (at most three) and the bytes behind it as many as its lead byte says (at most
 * three) are the pair that is looked up among those that stand side by side in a token. Tokens that
 * begin or end inside a character count with every character that has these bytes. The look-up is a
 * hashed bitmap: a collision costs a cut, never an id.
 *
 * A set is filled once and then only read, by any number of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tok/text/string_map.h"

struct cut {
    uint32_t *word; /* sixteen by the left side, two of these by the byte behind the place; bits by
                       the rest */
    uint32_t lines; /* words, without the last four bits */
    uint32_t *part; /* the same for tokens that begin inside a character, by the byte before the
                       place */
    bool left;      /* there are some */
    unsigned char ascii[128][16]; /* [left][right / 8]: one bit for each pair */
    const struct words *whole;    /* NULL, or see cut_around */
    uint32_t may_be[2048];        /* of these: a bit by both ends of each and its length */
};

/* `bytes` is the length of all tokens together; it fixes the size of the bitmap, which is ample: a
 * cut that is lost makes words longer, which are met less often. */
void cut_init(struct cut *c, size_t bytes);
void cut_add(struct cut *c, const char *token, size_t n);
/* What the place `at` alone adds, inside a token of which three bytes of either side are enough. */
void cut_add_at(struct cut *c, const char *token, size_t at, size_t n);
void cut_finish(struct cut *c);

/*
 * No part that is cut out is one of these words, and none of them is cut: a long part of which that
 * would come true is left as it is by cut_parts. They are the caller's.
 */
void cut_around(struct cut *c, const struct words *whole);

/* May text[0 .. n) be one of the words of cut_around? Three bytes behind it are readable. */
bool cut_may_be_whole(const struct cut *c, const char *text, size_t n);

/* The slow half of cut_here. */
bool cut_between(const struct cut *c, const char *text, size_t at, size_t n);

/* May text[0 .. n) be cut at 0 < at < n? */
static inline bool cut_here(const struct cut *c, const char *text, size_t at, size_t n)
{
    unsigned char a = (unsigned char)text[at - 1], b = (unsigned char)text[at];
    if ((a | b) < 0x80)
        return !(c->ascii[a][b >> 3] >> (b & 7) & 1);
    return cut_between(c, text, at, n);
}

/* The same before p[0], for who knows that characters of three bytes stand on both sides; p[3] is
 * readable. */
bool cut_wide(const struct cut *c, const char *p);

/*
 * Cuts the parts text[start[i] .. start[i + 1]), i < n, that are longer than `longest` where it may
 * be, and those of more than six bytes that begin with characters of three or more: words of such
 * scripts have two, and what stands between two commas seldom comes again. Puts the starts of all
 * parts at `ret`, which has room for as many places as the text has bytes, and one more. Returns
 * the number of parts. n = 1 cuts one whole text. The text is UTF-8 and shorter than 2^31, parts
 * begin with characters, and 3 bytes behind it are readable.
 */
size_t cut_parts(const struct cut *c, const char *text, const uint32_t *start, size_t n,
                 uint32_t longest, uint32_t *ret);

#endif
