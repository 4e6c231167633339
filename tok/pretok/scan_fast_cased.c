/* SPDX-License-Identifier: Apache-2.0 */

/*
 * o200k, Tekken and Kimi over 64 bytes at a time; compiled once per vector width. A word is an
 * optional leader, upper-case code points, lower-case code points; marks and letters without case
 * count as both, and are called "open" here.
 */

#include "tok/pretok/scan_block.h"
#include "tok/pretok/scan_fast.h"
#include "tok/pretok/scan_vec.h"

enum { RULE_SINGLE = 1, RULE_CONTRACTIONS = 2, RULE_SLASHES = 4, RULE_HAN = 8 };

struct cased {
    uint64_t word, open, settled, other, single, firm, plain, space, taken, han;
    uint64_t unsettled; /* a run of upper case after an open one continues into this block */
    struct aho_corasick ends, cut;
    struct spaces spaces;
    struct digits digits;
};

/* The roles of bytes in this block. */
struct roles {
    uint64_t other;  /* punctuation and what counts as such */
    uint64_t starts; /* starts of its runs, where no space precedes */
    uint64_t single; /* code points at such starts */
    uint64_t firm;   /* the others */
    uint64_t taken;  /* newlines and slashes after others */
    uint64_t mark;   /* marks that belong to words */
};

/*
 * others  as in cl100k, but marks are others too after an other that is not a leader: in a longer
 *         run, or after a space. Then newlines and, except for Kimi, slashes mixed with them
 *         (`line`), which are others elsewhere.
 *
 * What a mark is depends on the other before it, which may depend on a mark before that: iterated
 * until nothing changes. Every round settles at least one byte more, from the left.
 */
ALWAYS struct roles roles_of(const struct cased *last, const struct masks *m, uint64_t other,
                             uint64_t line)
{
    struct roles r;
    uint64_t marks = 0, now;
    for (;;) {
        r.other = other | marks;
        uint64_t from = (m->newline & before(r.other, last->other)) | (line & last->taken >> 63);
        r.taken = rest_of_runs(line, from);
        r.other &= ~r.taken;
        r.starts = other & r.other & ~before(r.other, last->other) & ~before(m->space, last->space);
        r.single = whole(r.starts, last->single, m->continues);
        r.firm = r.other & ~r.single;
        now = rest_of_runs(m->mark, m->mark & before(r.firm, last->firm));
        if (now == marks)
            break;
        marks = now;
    }
    r.mark = m->mark & ~marks;
    return r;
}

/*
 * A contraction belongs to the word right before it, but a word has only one: an apostrophe at the
 * end of a contraction begins a pre-token. Returns the apostrophes that belong to words; after the
 * contraction a pre-token begins, but none inside it (as in 'lL).
 */
static __attribute__((noinline)) uint64_t cased_contractions(struct scan *s, struct cased *last,
                                                             uint64_t candidates)
{
    uint64_t belong = 0;
    for (; candidates; candidates &= candidates - 1) {
        unsigned i = (unsigned)__builtin_ctzll(candidates);
        unsigned n = s->left > i ? scan_contraction(s->text + i, s->left - i, true) : 0;
        if (n && !(last->ends.here >> i & 1)) {
            aho_corasick_add(&last->ends, i + n);
            aho_corasick_add(&last->cut, i + n - 1);
            belong |= candidates & -candidates;
        }
    }
    return belong;
}

/*
 * Within a run of letters and marks a pre-token begins
 * - at an upper one when a lower one precedes it, with only open ones between: after those, the
 *   lower-case part has begun and takes no upper one;
 * - at the first of the upper ones at the end of the run when an open one precedes them: the first
 *   alternative, which must end in a lower one, is tried first and leaves them. Whether the upper
 *   ones end the run is known only after them.
 * No open one after a contraction is in the lower-case part of what precedes it.
 */
ALWAYS uint64_t case_starts(struct scan *s, struct cased *last, const struct masks *m,
                            uint64_t open, uint64_t ends)
{
    uint64_t behind_lower = open & (before(m->lower, 0) | last->settled >> 63) & ~ends;
    uint64_t settled = m->lower | rest_of_runs(open, behind_lower);
    uint64_t free = open & ~settled;
    uint64_t starts = m->upper & before(settled, last->settled);
    starts |= starts_unless(s, &last->unsettled, m->upper & before(free, last->open), m->upper,
                            m->lower | open);
    last->settled = settled;
    last->open = free;
    return starts;
}

/*
 * Letters with a leader as in cl100k, marks among them; numbers and white space too. In Kimi a run
 * of Han is a pre-token and not part of words; false, and nothing is done, if a block has Han that
 * are not letters, since their role depends on what precedes them.
 */
ALWAYS bool cased_block(struct scan *s, struct cased *last, unsigned rules)
{
    struct masks m = masks_of(s, WANT_CASES | WANT_MARKS | (rules & RULE_HAN ? WANT_HAN : 0));
    uint64_t other = ~(m.letter | m.mark | m.number | m.white), belong = 0;
    if (rules & RULE_HAN && RARELY(m.special & ~m.letter))
        return false;
    m.letter &= ~m.special;
    struct roles r =
        roles_of(last, &m, other, rules & RULE_SLASHES ? m.newline | m.slash : m.newline);
    uint64_t word = m.letter | r.mark, plain = m.white & ~m.newline;
    last->ends = (struct aho_corasick){last->ends.next, 0};
    last->cut = (struct aho_corasick){last->cut.next, 0};
    if (rules & RULE_CONTRACTIONS) {
        uint64_t candidates = m.apostrophe & before(word, last->word);
        if (candidates)
            belong = cased_contractions(s, last, candidates);
    }
    uint64_t ends = last->ends.here;
    uint64_t starts = case_starts(s, last, &m, word & ~(m.upper | m.lower), ends);
    starts = (starts & ~last->cut.here) | ends | (r.starts & ~belong);
    starts |= white_starts(s, &last->spaces, &m, r.taken, ~m.white);
    starts |= word & ~(before(word, last->word) | before(plain, last->plain) |
                       before(r.single, last->single));
    starts |= m.special & ~before(m.special, last->han);
    starts |= rules & RULE_SINGLE ? m.number & ~m.continues
                                  : triples(&last->digits, m.number, m.high, m.continues);
    put(s, starts);
    last->word = word;
    last->other = r.other;
    last->single = r.single;
    last->firm = r.firm;
    last->plain = plain;
    last->space = m.space;
    last->taken = r.taken;
    last->han = m.special;
    return true;
}

ALWAYS void o200k_block(struct scan *s, void *last, unsigned rules)
{
    cased_block(s, last, rules);
}

size_t SCAN(o200k)(const char *text, size_t n, uint32_t *at)
{
    struct cased last = {0};
    return scan_blocks(text, n, at, &last, RULE_CONTRACTIONS | RULE_SLASHES, o200k_block);
}

size_t SCAN(tekken)(const char *text, size_t n, uint32_t *at)
{
    struct cased last = {0};
    return scan_blocks(text, n, at, &last, RULE_SINGLE | RULE_SLASHES, o200k_block);
}

/* The pre-tokens of this block from the last certain start on, one by one; returns the start of the
 * first one after it. */
static size_t kimi_by_hand(struct scan *s, const struct cased *last, size_t n)
{
    const char *text = (const char *)s->all;
    s->count -= last->unsettled | last->spaces.open;
    size_t next = s->count ? s->at[--s->count] : 0, end = s->base + 64;
    while (next < end && next < n) {
        s->at[s->count++] = (uint32_t)next;
        next = scan_plain_next(SCAN_KIMI, text, n, next);
    }
    return next;
}

/* A certain start is like the beginning of a text: blocks restart there. */
size_t SCAN(kimi)(const char *text, size_t n, uint32_t *at)
{
    struct cased last = {0};
    struct block_end end;
    struct scan s = {.all = (const uint8_t *)text, .at = at};
    for (size_t base = 0; base < n;) {
        scan_move(&s, base, n, &end);
        if (cased_block(&s, &last, RULE_CONTRACTIONS | RULE_HAN)) {
            base += 64;
            continue;
        }
        base = kimi_by_hand(&s, &last, n);
        last = (struct cased){0};
        s.east = (struct east){0};
    }
    at[s.count] = (uint32_t)n;
    return s.count;
}
