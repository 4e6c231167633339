/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_BLOCK_H
#define TOK_PRETOK_SCAN_BLOCK_H

/*
 * Shared by the families of scan_fast*.c: the classes of 64 bytes as masks, shifts with a carry
 * from the block before, runs, output of positions. A continuation byte has the class of its code
 * point, so a change of class is always at a lead byte, and the byte before one has the class of
 * the code point before.
 */

#include <stdbool.h>
#include <string.h>

#include "tok/pretok/scan_class.h"
#include "tok/pretok/scan_vec.h"

#define ALWAYS static inline __attribute__((always_inline))
#define RARELY(x) __builtin_expect(!!(x), 0)

/* The classes that a family needs. */
enum scan_want {
    WANT_CASES = 1, /* upper and lower case besides letter */
    WANT_MARKS = 2,
    WANT_PUNCT = 4,
    WANT_ISLES = 8,
    WANT_HAN = 16
};

struct masks {
    uint64_t letter, upper, lower, mark, number, white, newline, space, apostrophe, slash, punct;
    uint64_t special;   /* of WANT_ISLES or WANT_HAN */
    uint64_t high;      /* bytes from 0x80 */
    uint64_t continues; /* continuation bytes */
};

/* The categories of the bytes from 0x80, as letters from 'a' on. */
struct classes {
    _Alignas(64) uint8_t of[64 + 8];
};

/* Lead bytes of code points by kind, see east_of. */
struct east {
    uint64_t white, sign, letter, special;
};

/* One text in progress. */
struct scan {
    const uint8_t *all, *text; /* its beginning; this block, padded with spaces at the end */
    size_t left;               /* bytes of the text from here on */
    uint32_t base;             /* position of this block */
    uint32_t *at;
    size_t count;
    struct classes classes;
    struct east east; /* of the last block with bytes above ASCII */
};

/* ---- classes ---- */

/*
 * Fills in the classes of the code points that begin at `leads`, with bit 7 for the special ones.
 */
static __attribute__((noinline)) void classes_fill(struct classes *c, const uint8_t *p,
                                                   uint64_t leads, unsigned want)
{
    const uint16_t *block = uni_category_block[SCAN_UNICODE];
    for (; leads; leads &= leads - 1) {
        unsigned i = (unsigned)__builtin_ctzll(leads), bytes;
        uint32_t code = scan_decode(p + i, &bytes);
        size_t at = (size_t)block[code >> UNI_SHIFT] << UNI_SHIFT | (code & UNI_MASK);
        uint32_t class = (uint8_t)uni_category_letter[at];
        if (code == SCAN_NEXT_LINE)
            class = 'a' + UNI_ZS;
        if (want & WANT_ISLES && scan_ideograph(code))
            class |= 0x80;
        if (want & WANT_HAN && scan_han(code))
            class |= 0x80;
        class *= 0x01010101;
        memcpy(c->of + i, &class, 4);
    }
}

ALWAYS uint64_t in_categories(struct bytes class, int first, int last)
{
    return b_range(class, (uint8_t)('a' + first), (uint8_t)('a' + last));
}

/* Bits `mask` of this block and those that reach into it from the block before, from `last`. */
ALWAYS uint64_t three_bytes(uint64_t mask, uint64_t last, uint64_t continues)
{
    return mask | ((mask << 1 | mask << 2 | last >> 63 | last >> 62) & continues);
}

/*
 * Code points of three bytes that make up running East Asian text, and quotes and dashes, are
 * classified by their bytes, so that few table lookups remain: each bit stands for the code points
 * that have it by each of the low half of the first byte and the low six bits of the other two.
 */
enum east_sign {
    EAST_WHITE = 1,   /* e3 80 80 */
    EAST_SIGN = 2,    /* e3 80 81..83, 88..91 */
    EAST_FULL = 4,    /* ef bc 81..8f, 9a..a0 */
    EAST_GENERAL = 8, /* e2 80 90..a7 */
    EAST_SIGNS = EAST_SIGN | EAST_FULL | EAST_GENERAL
};

enum east_letter {
    EAST_HIRAGANA = 1,     /* e3 81 81..bf */
    EAST_MIXED = 2,        /* both kinds of kana */
    EAST_KATAKANA = 4,     /* e3 83 80..ba, bc..bf */
    EAST_HAN_LOW = 8,      /* e4 b8..bf; e5 to e8 */
    EAST_HAN_HIGH = 16,    /* e5 to e8; e9 80..bd */
    EAST_HANGUL_LOW = 32,  /* ea b0..bf */
    EAST_HANGUL_HIGH = 64, /* ed 80..9d */
    EAST_HANGUL = 128,     /* eb, ec */
    EAST_KANA = EAST_HIRAGANA | EAST_MIXED | EAST_KATAKANA,
    EAST_HAN = EAST_HAN_LOW | EAST_HAN_HIGH
};

static const uint8_t east_sign_first[16] = {
    0x00, 0x00, 0x08, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04,
};
static const _Alignas(64) uint8_t east_sign_second[64] = {
    0x0b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
};
static const _Alignas(64) uint8_t east_sign_third[64] = {
    0x01, 0x06, 0x06, 0x06, 0x04, 0x04, 0x04, 0x04, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06, 0x06,
    0x0a, 0x0a, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c, 0x0c,
    0x0c, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
static const uint8_t east_letter_first[16] = {
    0x00, 0x00, 0x00, 0x07, 0x08, 0x18, 0x18, 0x18, 0x18, 0x10, 0x20, 0x80, 0x80, 0x40, 0x00, 0x00,
};
static const _Alignas(64) uint8_t east_letter_second[64] = {
    0xd0, 0xd1, 0xd2, 0xd4, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0,
    0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0xd0, 0x90, 0x90,
    0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
    0xb0, 0xb0, 0xb0, 0xb0, 0xb0, 0xb0, 0xb0, 0xb0, 0xb8, 0xb8, 0xb8, 0xb8, 0xb8, 0xb8, 0xa8, 0xa8,
};
static const _Alignas(64) uint8_t east_letter_third[64] = {
    0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd, 0xfd,
    0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfb, 0xff, 0xff, 0xff, 0xff,
};

ALWAYS struct east east_of(const uint8_t *p, struct bytes b, unsigned want)
{
    struct bytes b1 = b_load(p + 1), b2 = b_load(p + 2);
    struct bytes sign = b_both(b_pick16(east_sign_first, b), b_pick64(east_sign_second, b1),
                               b_pick64(east_sign_third, b2));
    struct bytes letter = b_both(b_pick16(east_letter_first, b), b_pick64(east_letter_second, b1),
                                 b_pick64(east_letter_third, b2));
    uint64_t three = b_range(b, 0xe0, 0xef);
    struct east e = {0};
    e.white = b_test(three, sign, EAST_WHITE);
    e.sign = b_test(three, sign, EAST_SIGNS);
    e.letter = b_test(three, letter, 0xff);
    if (want & (WANT_ISLES | WANT_HAN))
        e.special = b_test(three, letter, want & WANT_ISLES ? EAST_HAN | EAST_KANA : EAST_HAN);
    return e;
}

/* Adds the code points above ASCII by table lookup; `in` is the mask of their bytes. */
ALWAYS void masks_by_table(struct scan *s, struct masks *m, uint64_t in, unsigned want)
{
    memcpy(s->classes.of, s->classes.of + 64,
           4); /* code points that reach in from the block before */
    classes_fill(&s->classes, s->text, in & ~m->continues, want);
    struct bytes c = b_load(s->classes.of);
    if (want & (WANT_ISLES | WANT_HAN)) {
        m->special |= in & b_high(c);
        c = b_and(c, 0x7f);
    }
    m->letter |= in & in_categories(c, UNI_LU, UNI_LO);
    m->number |= in & in_categories(c, UNI_ND, UNI_NO);
    m->white |= in & in_categories(c, UNI_ZS, UNI_ZP);
    if (want & WANT_CASES) {
        m->upper |= in & (b_eq(c, 'a' + UNI_LU) | b_eq(c, 'a' + UNI_LT));
        m->lower |= in & b_eq(c, 'a' + UNI_LL);
    }
    if (want & WANT_MARKS)
        m->mark |= in & in_categories(c, UNI_MN, UNI_ME);
    if (want & WANT_PUNCT)
        m->punct |= in & in_categories(c, UNI_PC, UNI_SO);
}

ALWAYS void masks_beyond_ascii(struct scan *s, struct masks *m, struct bytes b, unsigned want)
{
    struct east e = east_of(s->text, b, want), last = s->east;
    s->east = e;
    m->continues = b_range(b, 0x80, 0xbf);
    e.white = three_bytes(e.white, last.white, m->continues);
    e.sign = three_bytes(e.sign, last.sign, m->continues);
    e.letter = three_bytes(e.letter, last.letter, m->continues);
    m->white |= e.white;
    m->punct |= e.sign;
    m->letter |= e.letter;
    if (want & (WANT_ISLES | WANT_HAN))
        m->special = three_bytes(e.special, last.special, m->continues);
    uint64_t in = m->high & ~(e.white | e.sign | e.letter);
    if (in)
        masks_by_table(s, m, in, want);
}

ALWAYS struct masks masks_of(struct scan *s, unsigned want)
{
    struct bytes b = b_load(s->text), folded = b_or(b, 0x20);
    struct masks m = {0};
    m.letter = b_range(folded, 'a', 'z');
    m.number = b_range(b, '0', '9');
    m.space = b_eq(b, ' ');
    m.white = m.space | b_range(b, '\t', '\r');
    m.newline = b_eq(b, '\n') | b_eq(b, '\r');
    m.apostrophe = b_eq(b, '\'');
    m.slash = b_eq(b, '/');
    m.high = b_high(b);
    if (want & WANT_CASES) {
        m.upper = b_range(b, 'A', 'Z');
        m.lower = m.letter & ~m.upper;
    }
    if (want & WANT_PUNCT)
        m.punct = b_range(b, '!', '~') & ~m.letter & ~m.number;
    if (m.high)
        masks_beyond_ascii(s, &m, b, want);
    return m;
}

/* ---- bits ---- */

/* For each byte, the mask's bit of the byte before; `last` is the mask of the block before. */
ALWAYS uint64_t before(uint64_t mask, uint64_t last)
{
    return mask << 1 | last >> 63;
}

/* The rest of each run of `run` from a bit of `from` inside it on. */
ALWAYS uint64_t rest_of_runs(uint64_t run, uint64_t from)
{
    return run & (~(run + from) | from);
}

/* All bytes of the code points whose lead byte is in `mask` or, in `last`, any of their bytes. */
ALWAYS uint64_t whole(uint64_t mask, uint64_t last, uint64_t continues)
{
    mask |= last >> 63 & continues;
    if (continues)
        for (int i = 0; i < 3; i++)
            mask |= mask << 1 & continues;
    return mask;
}

/* ---- output of positions ---- */

ALWAYS void put(struct scan *s, uint64_t starts)
{
    if (RARELY(s->left < 64)) {
        starts &= ((uint64_t)1 << s->left) - 1;
        for (; starts; starts &= starts - 1)
            s->at[s->count++] = s->base + (uint32_t)__builtin_ctzll(starts);
        return;
    }
    s->count += b_places(starts, s->base, s->at + s->count);
}

/* A position in the block before, after which nothing was output. */
ALWAYS void put_before(struct scan *s, uint32_t place, bool really)
{
    if (s->count) {
        s->at[s->count] = place;
        s->count += really && s->at[s->count - 1] < place;
    }
}

/* code_points_before where one of them is longer than a byte. */
static __attribute__((noinline)) uint64_t wide_before(struct scan *s, uint64_t here)
{
    uint64_t starts = 0;
    for (; here; here &= here - 1) {
        uint32_t at = s->base + (uint32_t)__builtin_ctzll(here) - 1;
        while (at > 0 && scan_continues(s->all[at]))
            at--;
        if (at < s->base)
            put_before(s, at, true);
        else
            starts |= (uint64_t)1 << (at - s->base);
    }
    return starts;
}

/*
 * The lead bytes of the code points before the bytes `here`; one that begins in the block before is
 * output. `wide`: the bytes after a code point of more than one byte.
 */
ALWAYS uint64_t code_points_before(struct scan *s, uint64_t here, uint64_t wide)
{
    if (RARELY(here & wide))
        return wide_before(s, here);
    put_before(s, s->base - 1, here & 1);
    return here >> 1;
}

/*
 * Starts that are valid unless the run that begins with them ends in one of `killers`. That may be
 * known only blocks later: they are output, and the last one is withdrawn. *open: such a run
 * continues into this block. Nothing else may be output between such a start and its run's end.
 */
static __attribute__((noinline)) uint64_t take_back(struct scan *s, uint64_t starts, uint64_t dead)
{
    for (; dead; dead &= dead - 1) {
        uint64_t older = starts & ((dead & -dead) - 1);
        if (older)
            starts &= ~((uint64_t)1 << (63 - __builtin_clzll(older)));
        else
            s->count -= s->count > 0; /* invalid UTF-8 may have none */
    }
    return starts;
}

ALWAYS uint64_t starts_unless(struct scan *s, uint64_t *open, uint64_t starts, uint64_t run,
                              uint64_t killers)
{
    unsigned long long sum;
    uint64_t over = __builtin_uaddll_overflow(run, starts, &sum);
    over |= __builtin_uaddll_overflow(sum, *open, &sum);
    *open = over;
    uint64_t dead = sum & ~run & killers;
    return RARELY(dead) ? take_back(s, starts, dead) : starts;
}

/* ---- white space, for all families but GPT-2 ---- */

struct spaces {
    uint64_t white, plain, newline, continues; /* of the block before */
    uint64_t open;
};

/*
 * White space up to its last newline; else without its last code point if text follows; else all of
 * it. `taken`: newlines that belong to what precedes them. `text`: bytes that count as following
 * text.
 *
 * White space after a newline begins a pre-token unless it ends in another newline.
 */
ALWAYS uint64_t white_starts(struct scan *s, struct spaces *last, const struct masks *m,
                             uint64_t taken, uint64_t text)
{
    uint64_t white = m->white & ~taken, newline = m->newline & ~taken;
    uint64_t plain = m->white & ~m->newline;
    uint64_t starts = white & ~before(white, last->white);
    starts |=
        starts_unless(s, &last->open, plain & before(newline, last->newline), plain, m->newline);
    starts |= code_points_before(s, text & before(plain, last->plain),
                                 before(m->continues, last->continues));
    *last = (struct spaces){white, plain, newline, m->continues, last->open};
    return starts;
}

/* ---- numbers, three code points at a time ---- */

struct digits {
    uint64_t number, starts; /* of the block before; enough of their upper bits */
};

/* Code points of any length, counted one by one. */
static __attribute__((noinline)) uint64_t triples_counted(struct digits *last, uint64_t number,
                                                          uint64_t continues)
{
    uint64_t starts = 0, first = number & ~continues, open = last->number >> 63;
    unsigned have = open ? (unsigned)__builtin_clzll(last->starts) + 1 : 0;
    for (; first; first &= first - 1) {
        unsigned i = (unsigned)__builtin_ctzll(first);
        if (have == 3 || !(before(number, open << 63) >> i & 1))
            have = 0;
        if (have++ == 0)
            starts |= (uint64_t)1 << i;
    }
    *last = (struct digits){0, 0};
    if (number >> 63 && have) /* the state that ASCII digits would have left */
        *last = (struct digits){~(uint64_t)0 << (64 - have), (uint64_t)1 << (64 - have)};
    return starts;
}

/* Every third digit of a run begins a pre-token: the one three after a start, in a run of four. */
ALWAYS uint64_t triples(struct digits *last, uint64_t number, uint64_t high, uint64_t continues)
{
    if (RARELY(number & high))
        return triples_counted(last, number, continues);
    uint64_t past = last->number;
    uint64_t four =
        number & before(number, past) & (number << 2 | past >> 62) & (number << 3 | past >> 61);
    uint64_t starts = number & ~before(number, past);
    uint64_t more = (starts << 3 | last->starts >> 61) & four;
    for (; RARELY(more); more = more << 3 & four)
        starts |= more;
    *last = (struct digits){number, starts};
    return starts;
}

/* ---- contractions ---- */

/* Bits of this block and of the next. */
struct aho_corasick {
    uint64_t here, next;
};

ALWAYS void aho_corasick_add(struct aho_corasick *e, unsigned i)
{
    if (i < 64)
        e->here |= (uint64_t)1 << i;
    else
        e->next |= (uint64_t)1 << (i - 64);
}

/* ---- the loop ---- */

/* The last bytes of a text, padded with spaces. */
struct block_end {
    uint8_t bytes[128];
};

ALWAYS void scan_move(struct scan *s, size_t base, size_t n, struct block_end *end)
{
    s->base = (uint32_t)base;
    s->left = n - base;
    s->text = s->all + base;
    if (s->left < 64 + 4) { /* a code point that begins in the block may end after it */
        memset(end->bytes, ' ', sizeof(end->bytes));
        memcpy(end->bytes, s->text, s->left);
        s->text = end->bytes;
    }
}

typedef void scan_block(struct scan *s, void *last, unsigned rules);

/* `last` is what a family carries from block to block, zeroed before the text. */
ALWAYS size_t scan_blocks(const char *text, size_t n, uint32_t *at, void *last, unsigned rules,
                          scan_block *block)
{
    struct block_end end;
    struct scan s = {.all = (const uint8_t *)text, .at = at};
    for (size_t base = 0; base < n; base += 64) {
        scan_move(&s, base, n, &end);
        block(&s, last, rules);
    }
    at[s.count] = (uint32_t)n;
    return s.count;
}

#endif
