/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unicode.h"

#include "tests/t.h"

static void categories_of_known_characters(void)
{
    T_EQ(uni_category(UNI_16, 'A'), UNI_LU);
    T_EQ(uni_category(UNI_16, 'z'), UNI_LL);
    T_EQ(uni_category(UNI_16, '_'), UNI_PC);
    T_EQ(uni_category(UNI_16, 0x1c5), UNI_LT);
    T_EQ(uni_category(UNI_16, 0x4e00), UNI_LO);
    T_EQ(uni_category(UNI_16, 0xd800), UNI_CS);
    T_EQ(uni_category(UNI_16, 0x10ffff), UNI_CN);
    T_EQ(uni_category(UNI_16, 0x10fffd), UNI_CO);
    T_EQ(uni_category(UNI_16, 0x1f600), UNI_SO);
}

/* characters by the version that brought them */
static void versions_differ_where_they_should(void)
{
    T_EQ(uni_category(UNI_8, 0x1e900), UNI_CN);
    T_EQ(uni_category(UNI_9, 0x1e900), UNI_LU);
    T_EQ(uni_category(UNI_8, 0x2e43), UNI_CN);
    T_EQ(uni_category(UNI_9, 0x2e43), UNI_PO);
    T_EQ(uni_category(UNI_9, 0x31350), UNI_CN);
    T_EQ(uni_category(UNI_15, 0x31350), UNI_LO);
    T_EQ(uni_category(UNI_15, 0x1c89), UNI_CN);
    T_EQ(uni_category(UNI_16, 0x1c89), UNI_LU);
    T_EQ(uni_category(UNI_16, 0xa7ce), UNI_CN);
    T_EQ(uni_category(UNI_17, 0xa7ce), UNI_LU);
}

static void sets_hold_their_categories(void)
{
    T_EQ(UNI_L | UNI_M | UNI_N | UNI_P | UNI_S | UNI_Z | 1u << UNI_CN | 1u << UNI_CC |
             1u << UNI_CF | 1u << UNI_CS | 1u << UNI_CO,
         (1u << UNI_CATEGORIES) - 1);
    T_CHECK(uni_in(UNI_16, 0xbd, UNI_N));
    T_CHECK(uni_in(UNI_16, 0x301, UNI_M));
    T_CHECK(!uni_in(UNI_16, 0x301, UNI_L | UNI_P));
    T_CHECK(uni_in(UNI_16, '+', UNI_S));
}

static void white_space_is_exactly_25_characters(void)
{
    int n = 0;
    for (uint32_t c = 0; c < UNI_LIMIT; c++)
        n += uni_space(c);
    T_EQ(n, 25);
    T_CHECK(uni_space(0x85) && uni_space(0x3000) && !uni_space(0x180e) && !uni_space(0x200b));
    T_CHECK(!uni_space(0x1c) && uni_space('\v'));
}

static void words_have_joiners_and_circled_letters(void)
{
    T_CHECK(uni_word(UNI_17, '_') && uni_word(UNI_17, 0x200d) && uni_word(UNI_17, 0x24b6));
    T_CHECK(uni_word(UNI_17, 0x301) && !uni_word(UNI_17, 0xbd) && !uni_word(UNI_17, '-'));
}

static void han_grows_with_the_version(void)
{
    T_CHECK(uni_han(UNI_8, 0x4e00) && uni_han(UNI_16, 0x3007) && !uni_han(UNI_16, 0x3042));
    T_CHECK(!uni_han(UNI_9, 0x9ffc) && uni_han(UNI_15, 0x9ffc));
    T_CHECK(!uni_han(UNI_16, 0x323b0) && uni_han(UNI_17, 0x323b0));
}

static void folding_reaches_ascii_from_two_others(void)
{
    int beyond = 0;
    for (uint32_t c = 0x80; c < UNI_LIMIT; c++)
        beyond += uni_fold_ascii(c) != 0;
    T_EQ(beyond, 2);
    T_EQ(uni_fold_ascii(0x17f), 's');
    T_EQ(uni_fold_ascii('S'), 's');
    T_EQ(uni_fold_ascii('@'), 0);
    T_EQ(uni_fold_ascii('['), 0);
    T_EQ(uni_fold_ascii('`'), 0);
}

/* every code point, after changes in shared and unshared blocks */
static void maps_follow_categories_and_changes(void)
{
    struct uni_map m;
    uint8_t value[UNI_CATEGORIES];
    for (int i = 0; i < UNI_CATEGORIES; i++)
        value[i] = (uint8_t)(i * 3 + 1);
    uni_map_init(&m, UNI_15, value);
    uni_map_set(&m, 0x4e01, 200);
    uni_map_set(&m, 0x10fffe, 201);
    uni_map_set(&m, 'x', 202);
    uni_map_set(&m, 'x', 203);
    for (uint32_t c = 0; c < UNI_LIMIT; c++) {
        int want = c == 0x4e01     ? 200
                   : c == 0x10fffe ? 201
                   : c == 'x'      ? 203
                                   : (int)uni_category(UNI_15, c) * 3 + 1;
        if (uni_map_get(&m, c) != want)
            T_EQ(uni_map_get(&m, c), want);
    }
    uni_map_finish(&m);
}

T_MAIN(T_CASE(categories_of_known_characters), T_CASE(versions_differ_where_they_should),
       T_CASE(sets_hold_their_categories), T_CASE(white_space_is_exactly_25_characters),
       T_CASE(words_have_joiners_and_circled_letters), T_CASE(han_grows_with_the_version),
       T_CASE(folding_reaches_ascii_from_two_others), T_CASE(maps_follow_categories_and_changes))
