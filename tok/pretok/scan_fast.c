/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GPT-2, and cl100k and its relatives, over 64 bytes at a time; compiled once per vector width.
 * "Before" is always the byte before, which has the class of the code point before.
 */

#include "tok/pretok/scan_block.h"
#include "tok/pretok/scan_fast.h"
#include "tok/pretok/scan_vec.h"

enum {
    RULE_SINGLE = 1, /* numbers one by one, else by threes */
    RULE_MARKS = 2   /* marks are letters, else like punctuation */
};

/* ---- GPT-2 ---- */

struct gpt2 {
    uint64_t letter, number, other, white, space, continues; /* of the block before */
    struct aho_corasick ends, cut;
};

/* An apostrophe that begins a run of others, and letters: a start after them, none before them. */
static __attribute__((noinline)) void gpt2_contractions(struct scan *s, struct gpt2 *last,
                                                        uint64_t candidates)
{
    for (; candidates; candidates &= candidates - 1) {
        unsigned i = (unsigned)__builtin_ctzll(candidates);
        unsigned n = s->left > i ? scan_contraction(s->text + i, s->left - i, false) : 0;
        if (n) {
            aho_corasick_add(&last->ends, i + n);
            aho_corasick_add(&last->cut, i + 1);
        }
    }
}

/*
 * Runs of letters, of numbers and of neither begin at a change of class, or with the space (U+0020)
 * before them. White space ends before its last code point if text follows; that one, if it is a
 * space, belongs to the following run, otherwise it is a pre-token by itself.
 */
ALWAYS void gpt2_block(struct scan *s, void *state, unsigned rules)
{
    struct gpt2 *last = state;
    struct masks m = masks_of(s, 0);
    uint64_t other = ~(m.letter | m.number | m.white);
    uint64_t starts = (m.letter & ~before(m.letter, last->letter)) |
                      (m.number & ~before(m.number, last->number)) |
                      (other & ~before(other, last->other));
    uint64_t candidates = m.apostrophe & starts & ~before(m.space, last->space);
    (void)rules;
    last->ends = (struct aho_corasick){last->ends.next, 0};
    last->cut = (struct aho_corasick){last->cut.next, 0};
    if (candidates)
        gpt2_contractions(s, last, candidates);
    starts &= ~before(m.space, last->space) & ~last->cut.here;
    starts |= last->ends.here | (m.white & ~before(m.white, last->white));
    starts |= code_points_before(s, ~m.white & before(m.white, last->white),
                                 before(m.continues, last->continues));
    put(s, starts);
    last->letter = m.letter;
    last->number = m.number;
    last->other = other;
    last->white = m.white;
    last->space = m.space;
    last->continues = m.continues;
}

/* ---- cl100k, Llama-3, Qwen2, Qwen3.5 ---- */

struct cl100k {
    uint64_t letter, other, single, plain, space, taken; /* of the block before */
    struct aho_corasick ends;
    struct spaces spaces;
    struct digits digits;
};

static __attribute__((noinline)) void cl100k_contractions(struct scan *s, struct aho_corasick *ends,
                                                          uint64_t candidates)
{
    for (; candidates; candidates &= candidates - 1) {
        unsigned i = (unsigned)__builtin_ctzll(candidates);
        unsigned n = s->left > i ? scan_contraction(s->text + i, s->left - i, true) : 0;
        if (n)
            aho_corasick_add(ends, i + n);
    }
}

/*
 * others     a run of characters other than letters, numbers and white space, with a space before
 *            it and the newlines after it: begins at a change of class unless a space precedes
 * letters    with one code point before them other than newline, letter or number: the last of
 *            plain white space, or an other that is a run of its own without a space before it (an
 *            other in a longer run or after a space belongs to that run)
 * contraction an apostrophe that begins a run of others without a space: a start after it. Letters
 *            after it begin no pre-token anyway, since the apostrophe is their leader
 */
ALWAYS void cl100k_block(struct scan *s, void *state, unsigned rules)
{
    struct cl100k *last = state;
    struct masks m = masks_of(s, rules & RULE_MARKS ? WANT_MARKS : 0);
    uint64_t letter = m.letter | m.mark;
    uint64_t other = ~(letter | m.number | m.white), plain = m.white & ~m.newline;
    uint64_t behind_other = m.newline & (before(other, last->other) | last->taken >> 63);
    uint64_t taken = rest_of_runs(m.newline, behind_other);
    uint64_t starts = other & ~before(other, last->other) & ~before(m.space, last->space);
    uint64_t single = whole(starts, last->single, m.continues);
    last->ends = (struct aho_corasick){last->ends.next, 0};
    if (starts & m.apostrophe)
        cl100k_contractions(s, &last->ends, starts & m.apostrophe);
    uint64_t white = white_starts(s, &last->spaces, &m, taken, ~m.white);
    starts |= letter & ~(before(letter, last->letter) | before(plain, last->plain) |
                         before(single, last->single));
    starts |= last->ends.here | white;
    starts |= rules & RULE_SINGLE ? m.number & ~m.continues
                                  : triples(&last->digits, m.number, m.high, m.continues);
    put(s, starts);
    last->letter = letter;
    last->other = other;
    last->single = single;
    last->plain = plain;
    last->space = m.space;
    last->taken = taken;
}

/* cl100k makes all white space at the end of the text one pre-token, newlines included. */
static size_t join_end(const char *text, size_t n, uint32_t *at, size_t count)
{
    if (count < 2 || (text[at[count - 1] - 1] != '\n' && text[at[count - 1] - 1] != '\r') ||
        scan_plain_next(SCAN_CL100K, text, n, at[count - 2]) != n)
        return count;
    at[count - 1] = (uint32_t)n;
    return count - 1;
}

size_t SCAN(gpt2)(const char *text, size_t n, uint32_t *at)
{
    struct gpt2 last = {0};
    return scan_blocks(text, n, at, &last, 0, gpt2_block);
}

size_t SCAN(llama3)(const char *text, size_t n, uint32_t *at)
{
    struct cl100k last = {0};
    return scan_blocks(text, n, at, &last, 0, cl100k_block);
}

size_t SCAN(cl100k)(const char *text, size_t n, uint32_t *at)
{
    return join_end(text, n, at, SCAN(llama3)(text, n, at));
}

size_t SCAN(qwen2)(const char *text, size_t n, uint32_t *at)
{
    struct cl100k last = {0};
    return scan_blocks(text, n, at, &last, RULE_SINGLE, cl100k_block);
}

size_t SCAN(qwen35)(const char *text, size_t n, uint32_t *at)
{
    struct cl100k last = {0};
    return scan_blocks(text, n, at, &last, RULE_SINGLE | RULE_MARKS, cl100k_block);
}

size_t SCAN(starts)(enum scan_family f, const char *text, size_t n, uint32_t *at)
{
    switch (f) {
    case SCAN_GPT2:
        return SCAN(gpt2)(text, n, at);
    case SCAN_CL100K:
        return SCAN(cl100k)(text, n, at);
    case SCAN_LLAMA3:
        return SCAN(llama3)(text, n, at);
    case SCAN_QWEN2:
        return SCAN(qwen2)(text, n, at);
    case SCAN_QWEN35:
        return SCAN(qwen35)(text, n, at);
    case SCAN_O200K:
        return SCAN(o200k)(text, n, at);
    case SCAN_TEKKEN:
        return SCAN(tekken)(text, n, at);
    case SCAN_KIMI:
        return SCAN(kimi)(text, n, at);
    case SCAN_DEEPSEEK3:
        return SCAN(deepseek3)(text, n, at);
    default:
        return scan_plain_starts(f, text, n, at);
    }
}
