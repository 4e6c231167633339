/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_UNICODE_UNICODE_H
#define TOK_UNICODE_UNICODE_H

/*
 * Classes of code points by version of Unicode: each reference has its own tables, and a tokenizer
 * is exact only with the tables of the one it imitates.
 *
 *     UNI_8   punctuation, control and nonspacing marks of Hugging Face's tokenizers
 *     UNI_9   its normal forms
 *     UNI_15, UNI_16, UNI_17   regex engines by age
 *
 * tests/interop/unicode.py queries the references for every code point. A code point is any number
 * below UNI_LIMIT (0x110000), surrogates included; passing a larger one is a bug. Everything here
 * is constant and thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

enum uni_version { UNI_8, UNI_9, UNI_15, UNI_16, UNI_17, UNI_VERSIONS };

enum {
    UNI_LIMIT = 0x110000,
    UNI_SHIFT = 7, /* two-level tables: code points to a block */
    UNI_MASK = (1 << UNI_SHIFT) - 1,
    UNI_BLOCKS = UNI_LIMIT >> UNI_SHIFT
};

/* General categories. */
enum uni_category {
    UNI_CN,
    UNI_LU,
    UNI_LL,
    UNI_LT,
    UNI_LM,
    UNI_LO,
    UNI_MN,
    UNI_MC,
    UNI_ME,
    UNI_ND,
    UNI_NL,
    UNI_NO,
    UNI_PC,
    UNI_PD,
    UNI_PS,
    UNI_PE,
    UNI_PI,
    UNI_PF,
    UNI_PO,
    UNI_SM,
    UNI_SC,
    UNI_SK,
    UNI_SO,
    UNI_ZS,
    UNI_ZL,
    UNI_ZP,
    UNI_CC,
    UNI_CF,
    UNI_CS,
    UNI_CO,
    UNI_CATEGORIES
};

enum uni_category uni_category(enum uni_version v, uint32_t c);

/* Sets of categories, for uni_in: bit 1 << category. */
#define UNI_BITS(first, last) ((2u << (last)) - (1u << (first)))
#define UNI_L UNI_BITS(UNI_LU, UNI_LO)
#define UNI_M UNI_BITS(UNI_MN, UNI_ME)
#define UNI_N UNI_BITS(UNI_ND, UNI_NO)
#define UNI_P UNI_BITS(UNI_PC, UNI_PO)
#define UNI_S UNI_BITS(UNI_SM, UNI_SO)
#define UNI_Z UNI_BITS(UNI_ZS, UNI_ZP)

static inline bool uni_in(enum uni_version v, uint32_t c, uint32_t set)
{
    return set >> uni_category(v, c) & 1;
}

/* The property White_Space, equal in all versions here: \s of Oniguruma and of Rust's regex, and
 * Rust's char::is_whitespace. */
bool uni_space(uint32_t c);

/* \w of Rust's regex: Alphabetic, M, Nd, Pc and the joiners. */
bool uni_word(enum uni_version v, uint32_t c);

/* \w of Oniguruma, which \b uses too: Alphabetic, M, Nd and Pc of 16.0, no joiners, and the
 * numerals of Latin-1 (U+00B2 and five more), which are missing inside [..]. */
bool uni_word_oniguruma(uint32_t c, bool in_class);

/* The property Script = Han. */
bool uni_han(enum uni_version v, uint32_t c);

/*
 * The property Script of 9.0 as SentencePiece's trainers use it: a number for each. Hiragana,
 * Katakana and U+30FC count as Han; characters without a script count as common.
 */
enum { UNI_SCRIPT_COMMON, UNI_SCRIPT_INHERITED, UNI_SCRIPT_HAN };
uint8_t uni_script(uint32_t c);

/*
 * A property by Oniguruma's name (16.0: scripts, POSIX classes, some binary ones), in lower case
 * without spaces, '-' and '_'; iterates over its ranges. False: no property of this name, or no
 * further range.
 */
struct uni_ranges {
    const uint8_t *at;
    uint32_t first, end; /* the range: [first, end) */
};
bool uni_find_named(const char *name, struct uni_ranges *ret);
bool uni_next_range(struct uni_ranges *r);

/*
 * Lower case as Rust's char::to_lowercase of 17.0, code point by code point, without context.
 * Returns the number of code points: 1, or 2 for U+0130.
 */
size_t uni_lower(uint32_t c, uint32_t ret[2]);

/*
 * Upper and title case of 15.0 with all that one character becomes, as Python's str has them.
 * Return the number of code points.
 */
enum { UNI_CASE_MAX = 3 };
size_t uni_upper(uint32_t c, uint32_t ret[UNI_CASE_MAX]);
size_t uni_title(uint32_t c, uint32_t ret[UNI_CASE_MAX]);

/* What a character of 15.0 is where words get their case, and whether it is a digit. */
enum {
    UNI_IS_LOWER = 1,
    UNI_IS_UPPER = 2,
    UNI_IS_TITLE = 4,
    UNI_IS_CASED = 8,
    UNI_IS_CASE_IGNORABLE = 16, /* stands inside of words */
    UNI_IS_DIGIT = 32           /* has the value of one, superscripts too */
};
unsigned uni_case_flags(uint32_t c);

/* Grapheme_Cluster_Break of 17.0, and what rules GB9c and GB11 test besides. */
enum uni_cluster {
    CLUSTER_OTHER,
    CLUSTER_CR,
    CLUSTER_LF,
    CLUSTER_CONTROL,
    CLUSTER_EXTEND,
    CLUSTER_ZWJ,
    CLUSTER_REGIONAL,
    CLUSTER_PREPEND,
    CLUSTER_SPACING,
    CLUSTER_L,
    CLUSTER_V,
    CLUSTER_T,
    CLUSTER_LV,
    CLUSTER_LVT,
    CLUSTER_PICTURE,   /* Extended_Pictographic */
    CLUSTER_CONSONANT, /* of conjuncts */
    CLUSTER_OUTSIDE,   /* an EXTEND that ends a conjunct */
    CLUSTER_LINKER     /* an EXTEND that makes one */
};

enum uni_cluster uni_cluster(uint32_t c);

/* The script as Hugging Face's UnicodeScripts pre-tokenizer distinguishes them, by a number of its
 * own; 0: belongs to whatever precedes. */
uint8_t uni_script_run(uint32_t c);

/* ---- texts: UTF-8 that the caller has validated; invalid bytes are harmless, but their result is
 * unspecified. Output is appended. ------------------------------------------------------------- */

void uni_lowercase(const char *text, size_t n, struct buf *out);

/* Normal forms of Unicode 9.0. */
enum uni_form { UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD };

/* Length of a prefix that surely stays unchanged: n, or the start of a character. It is n for
 * nearly every text that is in the form; ASCII is skipped at the speed of memory. */
size_t uni_normal_prefix(enum uni_form f, const char *text, size_t n);

/* Whether c may act on what precedes it: if not, a text may be split before c, and its two parts
 * have the normal form of the whole. */
bool uni_acts_before(enum uni_form f, uint32_t c);

void uni_normalize(enum uni_form f, const char *text, size_t n, struct buf *out);

/* The steps of a form: the code points that c decomposes to, in order, and their number; what two
 * compose to, 0: nothing. */
enum { UNI_DECOMPOSED_MAX = 18 };
size_t uni_decompose(enum uni_form f, uint32_t c, uint32_t ret[UNI_DECOMPOSED_MAX]);
uint32_t uni_composite(uint32_t a, uint32_t b);

/* Bytes of the extended grapheme cluster that begins at p, n > 0. */
size_t uni_cluster_length(const char *p, size_t n);

/* What a cluster consists of so far; zeroed: at the beginning of a text. */
struct uni_cluster_so_far {
    bool any;
    enum uni_cluster last;
    int picture;  /* 1: a pictograph and marks after it, 2: then a joiner */
    int conjunct; /* 1: a consonant and marks, 2: with a linker among them */
    bool odd;     /* an odd number of regional indicators */
};

/* The next character of a text; true if a cluster begins there. */
bool uni_cluster_begins(struct uni_cluster_so_far *s, uint32_t c);

/* The canonical combining class of 9.0. */
uint8_t uni_combining(uint32_t c);

/* A caller's byte for each code point, by general category of a version, for hot loops: two loads.
 */
struct uni_map {
    uint16_t *block; /* UNI_BLOCKS of them */
    uint8_t *value;
    size_t blocks, cap;
};

void uni_map_init(struct uni_map *m, enum uni_version v, const uint8_t value[UNI_CATEGORIES]);
void uni_map_finish(struct uni_map *m);

static inline uint8_t uni_map_get(const struct uni_map *m, uint32_t c)
{
    return m->value[(size_t)m->block[c >> UNI_SHIFT] << UNI_SHIFT | (c & UNI_MASK)];
}

#endif
