/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unicode/unicode.h"

#include <string.h>

#include "base/core/buf.h"
#include "base/core/utf8.h"
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
    T_CHECK(uni_word_oniguruma(0x24b6, true) && !uni_word_oniguruma(0x200d, false));
    T_CHECK(uni_word_oniguruma(0xbd, false) && !uni_word_oniguruma(0xbd, true));
    T_CHECK(!uni_word_oniguruma(0x2074, false));
}

static void han_grows_with_the_version(void)
{
    T_CHECK(uni_han(UNI_8, 0x4e00) && uni_han(UNI_16, 0x3007) && !uni_han(UNI_16, 0x3042));
    T_CHECK(!uni_han(UNI_9, 0x9ffc) && uni_han(UNI_15, 0x9ffc));
    T_CHECK(!uni_han(UNI_16, 0x323b0) && uni_han(UNI_17, 0x323b0));
}

static void maps_follow_categories(void)
{
    struct uni_map m;
    uint8_t value[UNI_CATEGORIES];
    for (int i = 0; i < UNI_CATEGORIES; i++)
        value[i] = (uint8_t)(i * 3 + 1);
    uni_map_init(&m, UNI_15, value);
    for (uint32_t c = 0; c < UNI_LIMIT; c++) {
        int want = (int)uni_category(UNI_15, c) * 3 + 1;
        if (uni_map_get(&m, c) != want)
            T_EQ(uni_map_get(&m, c), want);
    }
    uni_map_finish(&m);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void is_normal(enum uni_form f, const char *text, const char *want)
{
    struct buf out = {0};
    uni_normalize(f, text, strlen(text), &out);
    T_STR(buf_str(&out), want);
    size_t stays = uni_normal_prefix(f, text, strlen(text));
    T_CHECK(stays <= out.len);
    T_MEM(out.data, text, stays);
    buf_finish(&out);
}

static void forms_of_known_texts(void)
{
    is_normal(UNI_NFC, "plain", "plain");
    is_normal(UNI_NFC, "", "");
    is_normal(UNI_NFC, "e\u0301t\u00e9", "\u00e9t\u00e9");
    is_normal(UNI_NFD, "e\u0301t\u00e9", "e\u0301te\u0301");
    is_normal(UNI_NFKC, "\uff21\u3000\ufb01\u2460", "A fi1");
    is_normal(UNI_NFKD, "\u304c\uff76\uff9e", "\u304b\u3099\u30ab\u3099");
    is_normal(UNI_NFKC, "\uff76\uff9e", "\u30ac");
    is_normal(UNI_NFC, "\uac00\u11a8", "\uac01");
    is_normal(UNI_NFC, "\u1112\u1161\u11ab", "\ud55c");
    is_normal(UNI_NFD, "\ud55c", "\u1112\u1161\u11ab");
    is_normal(UNI_NFC, "\u212b", "\u00c5");
    is_normal(UNI_NFC, "\u0344", "\u0308\u0301");
    is_normal(UNI_NFC, "\u0958", "\u0915\u093c"); /* excluded from composition */
}

static void marks_are_ordered_and_block_one_another(void)
{
    is_normal(UNI_NFD, "a\u0301\u0323", "a\u0323\u0301");
    is_normal(UNI_NFC, "a\u0301\u0323", "\u1ea1\u0301");
    is_normal(UNI_NFC, "a\u0305\u0301", "a\u0305\u0301");
    is_normal(UNI_NFC, "a\u0327\u0301", "\u00e1\u0327");
    is_normal(UNI_NFC, "\u0301a", "\u0301a");
    /* newer than 9.0: no mark, no composition */
    is_normal(UNI_NFD, "a\u0301\U0001e4ec", "a\u0301\U0001e4ec");
    is_normal(UNI_NFC, "\U00011935\U00011930", "\U00011935\U00011930");
}

/* any number of marks: linear time, on the heap, in order */
static void long_runs_of_marks_keep_their_order(void)
{
    enum { N = 200000 };
    struct buf text = {0}, out = {0};
    buf_adds(&text, "x");
    for (int i = 0; i < N; i++)
        buf_adds(&text, i % 2 ? "\u0316" : "\u0300"); /* classes 220 and 230 */
    uni_normalize(UNI_NFC, text.data, text.len, &out);
    T_EQ(out.len, text.len);
    for (size_t i = 0; i < N; i++)
        T_MEM(out.data + 1 + 2 * i, i < N / 2 ? "\u0316" : "\u0300", 2);
    buf_finish(&text);
    buf_finish(&out);
}

static void what_stays_is_found(void)
{
    static const char text[] = "0123456789012345678901234567890123456789 \u4e2d\u6587 e\u0301";
    T_EQ(uni_normal_prefix(UNI_NFC, text, sizeof(text) - 1), sizeof(text) - 4);
    T_EQ(uni_normal_prefix(UNI_NFD, text, sizeof(text) - 1), sizeof(text) - 3);
    T_EQ(uni_normal_prefix(UNI_NFC, text, 45), 45);
}

/* Each character by itself, and far inside a text, where blocks are processed. */
static void what_stays_is_found_everywhere(void)
{
    enum { AROUND = 24 };
    char text[2 * 3 * AROUND + 8];
    for (uint32_t c = 0; c < UNI_LIMIT; c += c == 0xd7ff ? 0x801 : 1) {
        size_t at = 3 * (AROUND - c % AROUND), n = at;
        for (size_t i = 0; i < sizeof(text) - 3; i += 3)
            memcpy(text + i, "\xe3\x81\x82", 3);
        n += utf8_put(text + at, c);
        for (size_t i = 0; i < AROUND; i++, n += 3)
            memcpy(text + n, "\xe8\xaa\x9e", 3);
        for (int f = UNI_NFC; f <= UNI_NFKD; f++) {
            size_t length = n - 3 * AROUND - at;
            bool stays = uni_normal_prefix((enum uni_form)f, text + at, length) == length;
            bool before = (f == UNI_NFC || f == UNI_NFKC) && uni_acts_before((enum uni_form)f, c);
            size_t want = stays ? n : before ? at - 3 : at;
            T_EQ(uni_normal_prefix((enum uni_form)f, text, n), want);
        }
    }
}

/* for any bytes: nothing outside is read (checked by the sanitizers), and it terminates */
static void bytes_that_are_no_utf8_do_no_harm(void)
{
    for (uint64_t i = 0; i < 20000; i++) {
        char text[24];
        size_t n = t_rand(1, i) % 24;
        for (size_t j = 0; j < n; j++)
            text[j] = (char)t_rand(2 + i, j);
        struct buf out = {0};
        char *exact = memcpy(buf_reserve(&out, n + 1), text, n);
        struct buf to = {0};
        uni_normalize((enum uni_form)(i % 4), exact, n, &to);
        uni_lowercase(exact, n, &to);
        T_CHECK(to.len <= 200 * n);
        buf_finish(&out);
        buf_finish(&to);
    }
}

static void lower_case_of_known_letters(void)
{
    uint32_t to[2];
    T_EQ(uni_lower('A', to), 1);
    T_EQ(to[0], 'a');
    T_EQ(uni_lower(0x130, to), 2);
    T_EQ(to[1], 0x307);
    T_EQ(uni_lower(0xa7ce, to), 1);
    T_EQ(to[0], 0xa7cf);
    struct buf out = {0};
    static const char text[] = "AbC @[`{ \u00c4\u0130\u03a3 Z";
    uni_lowercase(text, sizeof(text) - 1, &out);
    T_STR(buf_str(&out), "abc @[`{ \u00e4i\u0307\u03c3 z");
    buf_finish(&out);
}

static void clusters_end_where_they_should(void)
{
    static const struct {
        const char *text;
        size_t n;
    } of[] = {{"ab", 1},
              {"\r\n\n", 2},
              {"\n\u0301", 1},
              {"e\u0301\u0302x", 5},
              {"\u0600a", 3},                               /* a prepended mark */
              {"\u1100\u1161\u11a8\u1100", 9},              /* a syllable in letters */
              {"\uac00\u11a8\u1161", 6},                    /* and one half in them */
              {"\U0001f1ef\U0001f1f5\U0001f1ef", 8},        /* a flag */
              {"\U0001f468\u200d\U0001f469\U0001f469", 11}, /* two people joined */
              {"\U0001f468\u200d\u200d\U0001f469", 10},     /* not by two joiners */
              {"\u0915\u094d\u0937\u0937", 9},              /* a conjunct */
              {"\u0915\u0301\u0937", 5},
              {"\u0915\u094d\u200c\u0937", 9}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
        T_EQ(uni_cluster_length(of[i].text, strlen(of[i].text)), of[i].n);
}

static void cases_of_known_letters(void)
{
    static const struct {
        uint32_t c;
        size_t upper, title;
        uint32_t upper_of[UNI_CASE_MAX], title_of[UNI_CASE_MAX];
        unsigned flags;
    } of[] = {{'a', 1, 1, {'A'}, {'A'}, UNI_IS_LOWER | UNI_IS_CASED},
              {'A', 1, 1, {'A'}, {'A'}, UNI_IS_UPPER | UNI_IS_CASED},
              {'1', 1, 1, {'1'}, {'1'}, UNI_IS_DIGIT},
              {0x2460, 1, 1, {0x2460}, {0x2460}, UNI_IS_DIGIT},
              {'\'', 1, 1, {'\''}, {'\''}, UNI_IS_CASE_IGNORABLE},
              {0xdf, 2, 2, {'S', 'S'}, {'S', 's'}, UNI_IS_LOWER | UNI_IS_CASED},
              {0x1c6, 1, 1, {0x1c4}, {0x1c5}, UNI_IS_LOWER | UNI_IS_CASED},
              {0x1c5, 1, 1, {0x1c4}, {0x1c5}, UNI_IS_TITLE | UNI_IS_CASED},
              {0x10d0, 1, 1, {0x1c90}, {0x10d0}, UNI_IS_LOWER | UNI_IS_CASED},
              {0xfb03, 3, 3, {'F', 'F', 'I'}, {'F', 'f', 'i'}, UNI_IS_LOWER | UNI_IS_CASED}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        uint32_t got[UNI_CASE_MAX];
        T_EQ(uni_upper(of[i].c, got), of[i].upper);
        T_MEM(got, of[i].upper_of, of[i].upper * sizeof(*got));
        T_EQ(uni_title(of[i].c, got), of[i].title);
        T_MEM(got, of[i].title_of, of[i].title * sizeof(*got));
        T_EQ(uni_case_flags(of[i].c), of[i].flags);
    }
}

T_MAIN(T_CASE(cases_of_known_letters), T_CASE(clusters_end_where_they_should),
       T_CASE(categories_of_known_characters), T_CASE(versions_differ_where_they_should),
       T_CASE(sets_hold_their_categories), T_CASE(white_space_is_exactly_25_characters),
       T_CASE(words_have_joiners_and_circled_letters), T_CASE(han_grows_with_the_version),
       T_CASE(maps_follow_categories), T_CASE(forms_of_known_texts),
       T_CASE(marks_are_ordered_and_block_one_another), T_CASE(long_runs_of_marks_keep_their_order),
       T_CASE(what_stays_is_found), T_CASE(what_stays_is_found_everywhere),
       T_CASE(bytes_that_are_no_utf8_do_no_harm), T_CASE(lower_case_of_known_letters))
