/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_UNICODE_TABLES_TABLES_H
#define TOK_UNICODE_TABLES_TABLES_H

/*
 * The tables that generate.py and asked.py write; tok/unicode*.c look into them, nobody else. All
 * are of two levels: the code points in blocks of 128, equal blocks kept once.
 */

#include <stddef.h>
#include <stdint.h>

#include "tok/unicode/unicode.h"

/* The letter 'a' + category of code point c of version v is at
 * [uni_category_block[v][c >> UNI_SHIFT] << UNI_SHIFT | (c & UNI_MASK)]. */
extern const uint16_t uni_category_block[][UNI_BLOCKS];
extern const char uni_category_letter[];

/* The step from c to its lower-case letter: uni_lower_step[uni_at(uni_lower_class, c)]. */
extern const uint16_t uni_lower_class_block[UNI_BLOCKS];
extern const uint8_t uni_lower_class[];
extern const int32_t uni_lower_step[];

/* Upper and title case of c: uni_case[uni_at(uni_case_class, c)]. */
struct uni_case {
    int32_t upper, title;     /* the step to it; where it has more than one code point or differs
                                 from a step, their place in uni_case_text */
    uint8_t upper_n, title_n; /* how many are there; 0: it is a step */
    uint8_t flags;            /* UNI_IS_LOWER and the like */
};
extern const uint16_t uni_case_class_block[UNI_BLOCKS];
extern const uint16_t uni_case_class[];
extern const struct uni_case uni_case[];
extern const uint16_t uni_case_text[];

/* What matters of c for the normal forms: uni_norm[uni_at(uni_norm_class, c)]. */
struct uni_norm {
    uint8_t ccc;   /* canonical combining class */
    uint8_t flags; /* 1 << form: it may change; 16 << form: it may act on what stands before it */
};
extern const uint16_t uni_norm_class_block[UNI_BLOCKS];
extern const uint8_t uni_norm_class[];
extern const struct uni_norm uni_norm[];

/* Full decompositions: a place in uni_decomposed (their number, then the code points), 0: none.
 * uni_compat has those that differ from the canonical ones. Hangul syllables are in neither. */
extern const uint16_t uni_canonical_block[UNI_BLOCKS];
extern const uint16_t uni_canonical[];
extern const uint16_t uni_compat_block[UNI_BLOCKS];
extern const uint16_t uni_compat[];
extern const uint32_t uni_decomposed[];

/* What c composes with: a place in uni_composed (second, composite; a second of 0 ends), 0: none.
 */
extern const uint16_t uni_compose_block[UNI_BLOCKS];
extern const uint16_t uni_compose[];
extern const uint32_t uni_composed[][2];

/* Scripts: see uni_script. */
extern const uint16_t uni_script_class_block[UNI_BLOCKS];
extern const uint8_t uni_script_class[];

/* enum uni_cluster; runs of scripts: see uni_script_run. */
extern const uint16_t uni_cluster_class_block[UNI_BLOCKS];
extern const uint8_t uni_cluster_class[];
extern const uint16_t uni_run_class_block[UNI_BLOCKS];
extern const uint8_t uni_run_class[];

#define uni_at(table, c)                                                                           \
    (table)[(size_t)table##_block[(c) >> UNI_SHIFT] << UNI_SHIFT | ((c)&UNI_MASK)]

/* Properties by their names, in the order of strcmp, small letters without spaces, '-' and '_': the
 * ranges begin at a place in uni_named_ranges, numbers of 7 bits a byte, the gap before each and
 * its length, which is 0 behind the last. */
struct uni_named {
    const char *name;
    uint16_t at;
};
extern const struct uni_named uni_named[];
extern const size_t uni_named_count;
extern const uint8_t uni_named_ranges[];

#endif
