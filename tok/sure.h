/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SURE_H
#define TOK_SURE_H

/*
 * Cuts between characters of three bytes, by four of them and by the order of merges: cut.h asks
 * whether any token has the two at a place side by side, this whether a merge there can come about
 * at all. Two symbols join across a place only if one of the pairs that lie so has the text on both
 * sides. Of these pairs are left out:
 *
 * - Those with another character than the text's before the one at the place, or behind it.
 * - Those with a single character, or a part of it, on a side where it has joined with the one
 *   before (or behind) by then. That is sure for neighbours x, y, a pair of rank r, if x and y are
 *   each made of their bytes by lower ranks, and every other pair that may lie across the place
 *   between them, or across the one before x or behind y, has a higher rank: whichever join were
 *   the first across one of these places, x and y would be there by then, and go first.
 * - Those with a part of a character, if the character is made by lower ranks, and no pair across
 *   its other side has one so low.
 *
 * A hashed table: a collision costs a cut, never an id. Filled once, then only read, by any number
 * of threads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SURE_PLACES = 512 };

struct sure;

/* `pairs`: how many sure_add may hear of that have a lead byte of such a character on the right. */
struct sure *sure_create(size_t pairs);
void sure_destroy(struct sure *s);

/* Merging makes this character (U+0800 to U+FFFF) of its bytes, by ranks up to `made`. All of these
 * come first. */
void sure_add_char(struct sure *s, uint32_t code, uint32_t made);
/* Two symbols that merge, as bytes of UTF-8, or parts of it. */
void sure_add(struct sure *s, const char *left, size_t nleft, const char *right, size_t nright,
              uint32_t rank);
void sure_close(struct sure *s);

/*
 * Of characters that follow each other, n <= SURE_PLACES, by the four bytes from each on: a bit of
 * `cut` for those before which a text may be cut. Words begin where `begins` has a bit, with the
 * characters behind them, and a word ends behind the last if `ends`: what is not known to be there
 * is no cut, nor is what begins a word anyway. Bits behind n are zero.
 */
void sure_places(const struct sure *s, const uint32_t *bytes, const uint64_t *begins, size_t n,
                 bool ends, uint64_t *cut);

/* The same without vectors; for processors without them, and tests. */
void sure_places_plain(const struct sure *s, const uint32_t *bytes, const uint64_t *begins,
                       size_t n, bool ends, uint64_t *cut);

#endif
