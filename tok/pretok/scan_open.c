/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/scan_open.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "tok/pretok/scan_class.h"

/*
 * Two kinds of rules decide a pre-token's end by what follows. Those that look at a few characters:
 * contractions, the space before a word, the white space that is given back; these do not reach
 * further back than NEAR bytes. And those of runs: white space up to its last newline, upper case
 * that only belongs to the word before if lower case follows. What follows a run decides by its
 * class alone, so a text for each class shows whether anything further back depends on it.
 */

enum {
    NEAR = 16,
    ENDS = 64 /* bytes of either end that a shortened text keeps, at least */
};

static const char *const follows[] = {
    "a",    "A",   "\u01c5", "\u4e00", "\u3042", "\u02b0", "\u0301", "1",  " ",       "\n",
    "\r\n", " \n", " a",     ".",      "/",      "\x01",   "'s",     "Aa", "\u4e00a", "\u0301a"};

void scan_open_finish(struct scan_open *w)
{
    buf_finish(&w->text);
    free(w->other);
}

/* The first position at which one list has a start and the other does not, at most `most`. */
static size_t first_difference(const uint32_t *a, size_t na, const uint32_t *b, size_t nb,
                               size_t most)
{
    for (size_t i = 0; i < na || i < nb; i++) {
        size_t x = i < na ? a[i] : most, y = i < nb ? b[i] : most;
        if (x != y || x >= most)
            return (x < y ? x : y) < most ? (x < y ? x : y) : most;
    }
    return most;
}

size_t scan_sure(enum scan_family f, struct scan_open *w, const char *text, size_t n, uint32_t *at,
                 size_t *ret_count)
{
    size_t sure = n > NEAR ? n - NEAR : 0;
    if (w->room < n + NEAR) {
        w->room = n + n / 2 + NEAR;
        w->other = mem_grow(w->other, w->room, sizeof(*w->other));
    }
    buf_reset(&w->text);
    buf_add(&w->text, text, n);
    size_t count = scan_starts(f, text, n, at);
    for (size_t i = 0; i < sizeof(follows) / sizeof(*follows) && sure; i++) {
        w->text.len = n;
        buf_adds(&w->text, follows[i]);
        size_t k = scan_starts(f, w->text.data, w->text.len, w->other);
        sure = first_difference(at, count, w->other, k, sure);
    }
    while (sure && scan_continues((uint8_t)text[sure]))
        sure--;
    *ret_count = count;
    return sure;
}

/* A character's kind, as far as any family tells it from others: its category and script, but each
 * ASCII sign is its own. */
static unsigned kind_of(uint32_t c)
{
    if (c < 0x80 && (c | 32) - 'a' >= 26u && c - '0' >= 10u)
        return 128 + c;
    if (uni_space(c))
        return 127;
    return uni_category(SCAN_UNICODE, c) + (scan_han(c) ? 32u : 0) + (scan_ideograph(c) ? 64u : 0);
}

/* The middle is left out, but for the first character of each kind: the rules pass from one part of
 * a pattern to the next at a character of another kind, and never back. */
void scan_shorten(const char *text, size_t n, struct buf *out)
{
    const uint8_t *p = (const uint8_t *)text;
    uint8_t seen[256] = {0}, ascii[128] = {0};
    size_t end = n > ENDS ? n - ENDS : 0;
    while (end && scan_continues(p[end]))
        end--;
    for (size_t i = 0; i < end;) {
        if (i >= ENDS && p[i] < 0x80 && ascii[p[i]]) { /* its kind was seen */
            i++;
            continue;
        }
        unsigned k, kind = kind_of(scan_decode_within(p + i, n - i, &k));
        if (i < ENDS || !seen[kind])
            buf_add(out, text + i, k);
        seen[kind] = 1;
        ascii[p[i] & 0x7f] |= p[i] < 0x80;
        i += k;
    }
    buf_add(out, text + end, n - end);
}
