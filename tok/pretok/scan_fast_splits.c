/* SPDX-License-Identifier: Apache-2.0 */

/* DeepSeek-V3's three splits at once, over 64 bytes at a time; compiled once per vector width. */

#include "tok/pretok/scan_block.h"
#include "tok/pretok/scan_fast.h"
#include "tok/pretok/scan_vec.h"

struct splits {
    uint64_t word, punct, rest, isle, plain, space, taken, command, continues; /* as in block */
    uint64_t command_open; /* ASCII letters after punctuation continue into this block */
    struct spaces spaces;
    struct digits digits;
};

/*
 * One ASCII punctuation mark that begins a pre-token, and the ASCII letters after it; other letters
 * and marks after those begin a pre-token. `behind`: the first of the ASCII letters.
 */
ALWAYS uint64_t behind_commands(struct splits *last, uint64_t ascii, uint64_t behind, uint64_t word)
{
    unsigned long long sum;
    uint64_t over = __builtin_uaddll_overflow(ascii, behind, &sum);
    over |= __builtin_uaddll_overflow(sum, last->command_open, &sum);
    last->command_open = over;
    return sum & ~ascii & word;
}

/*
 * numbers, isles  the first two splits: pre-tokens end before and after them. White space before
 *                 them is at the end of its piece of text and stays whole; the third split does not
 *                 look beyond an edge of isles
 * words           letters and marks, with one code point before them other than newline, letter or
 *                 punctuation: plain white space, or one of the rest, which then begins a pre-token
 * punctuation     with a space before it and the newlines after it; see behind_commands
 * rest            what no split matches: a run is a pre-token
 */
ALWAYS void splits_block(struct scan *s, void *state, unsigned rules)
{
    struct splits *last = state;
    struct masks m = masks_of(s, WANT_MARKS | WANT_PUNCT | WANT_ISLES);
    uint64_t word = m.letter | m.mark, plain = m.white & ~m.newline;
    uint64_t rest = ~(word | m.number | m.white | m.punct);
    uint64_t edge = m.special ^ before(m.special, last->isle);
    (void)rules;

    uint64_t from = m.newline & ((before(m.punct, last->punct) & ~edge) | last->taken >> 63);
    uint64_t taken = rest_of_runs(m.newline, from);
    uint64_t starts = m.punct & ~before(m.punct, last->punct) & ~before(m.space, last->space);
    uint64_t command = (starts | (m.punct & edge)) & ~m.high;
    uint64_t ascii = m.letter & ~m.high, behind = ascii & before(command, last->command);
    uint64_t joined = before(plain, last->plain) | before(rest, last->rest) | behind;
    starts |= word & ~(before(word, last->word) | joined);
    starts |= behind_commands(last, ascii, behind, word) | edge;
    starts |= rest & ~before(rest, last->rest);
    starts |= white_starts(s, &last->spaces, &m, taken, ~(m.white | m.number | m.special));
    starts |= code_points_before(s, word & before(rest, last->rest) & ~edge,
                                 before(m.continues, last->continues));
    starts |= triples(&last->digits, m.number, m.high, m.continues);
    put(s, starts);
    last->word = word;
    last->punct = m.punct;
    last->rest = rest;
    last->isle = m.special;
    last->plain = plain;
    last->space = m.space;
    last->taken = taken;
    last->command = command;
    last->continues = m.continues;
}

size_t SCAN(deepseek3)(const char *text, size_t n, uint32_t *at)
{
    struct splits last = {0};
    return scan_blocks(text, n, at, &last, 0, splits_block);
}
