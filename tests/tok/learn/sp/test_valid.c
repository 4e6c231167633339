/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/valid.h"

#include <string.h>

#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/unicode/unicode.h"

static const struct sp_train_options usual = {.split_by_unicode_script = true,
                                              .split_by_number = true,
                                              .split_by_whitespace = true,
                                              .max_sentencepiece_length = 16};

static bool is_valid(const struct sp_train_options *o, const char *text)
{
    struct learn_valid v;
    learn_valid_init(&v, o);
    uint8_t kind[64];
    uint32_t n = 0;
    for (const char *end = text + strlen(text); text < end; n++) {
        size_t k = utf8_char(text, end);
        kind[n] = learn_valid_class(&v, utf8_code(text, k));
        text += k;
    }
    bool valid = learn_valid(&v, kind, n);
    for (uint32_t i = 1; i < n && valid;
         i++) /* adjacent characters of a piece must be allowed to join */
        T_CHECK(learn_valid_joins(&v, kind[i - 1], kind[i]));
    return valid;
}

static void scripts(void)
{
    T_EQ(uni_script('a'), uni_script(0xe9));
    T_EQ(uni_script('7'), UNI_SCRIPT_COMMON);
    T_EQ(uni_script(0x301), UNI_SCRIPT_INHERITED);
    T_EQ(uni_script(0x953), uni_script(0x915)); /* Devanagari in 9.0, inherited later */
    T_EQ(uni_script(0x589), UNI_SCRIPT_COMMON); /* Armenian later */
    T_EQ(uni_script(0x3042), UNI_SCRIPT_HAN);
    T_EQ(uni_script(0x30a2), UNI_SCRIPT_HAN);
    T_EQ(uni_script(0x30fc), UNI_SCRIPT_HAN);
    T_EQ(uni_script(0x732b), UNI_SCRIPT_HAN);
    T_EQ(uni_script(0x3002), UNI_SCRIPT_COMMON);
    T_CHECK(uni_script(0x430) != uni_script('a'));
    T_EQ(uni_script(0x1f600), UNI_SCRIPT_COMMON);
    T_EQ(uni_script(0x10ffff), UNI_SCRIPT_COMMON);
    T_EQ(uni_script(0x14400), uni_script(0x14646)); /* Anatolian hieroglyphs */
    T_CHECK(uni_script(0x14400) > UNI_SCRIPT_HAN);
}

static void by_script(void)
{
    struct sp_train_options o = usual;
    T_CHECK(is_valid(&o, "\xe2\x96\x81the"));
    T_CHECK(!is_valid(&o, "the,"));
    T_CHECK(is_valid(&o, ".5,"));
    T_CHECK(!is_valid(&o, "a5"));
    T_CHECK(is_valid(&o, "e\xcc\x81t")); /* a combining accent has the letter's script */
    T_CHECK(is_valid(&o, "\xcc\x81t"));
    T_CHECK(!is_valid(&o, "e\xcc\x81\xe7\x8c\xab"));
    T_CHECK(is_valid(&o, "\xe7\x8c\xab\xe3\x81\xab")); /* Han and Hiragana */
    T_CHECK(!is_valid(&o, "\xe7\x8c\xab\xe3\x80\x82"));
    o.split_by_number = false;
    T_CHECK(is_valid(&o, "a5"));
    T_CHECK(is_valid(&o, "a5\xe7\x8c\xab"));
    o.split_by_unicode_script = false;
    T_CHECK(is_valid(&o, "a\xe7\x8c\xab."));
    o.split_digits = true;
    T_CHECK(!is_valid(&o, "a5"));
    T_CHECK(!is_valid(&o, "55"));
    T_CHECK(is_valid(&o, "5"));
    T_CHECK(!is_valid(&o, "\xef\xbc\x95\xef\xbc\x95")); /* full width */
}

static void by_space(void)
{
#define MARK "\xe2\x96\x81"
    static const struct {
        const char *text;
        /* by what the mark does: before words, after them, each also inside, only marks allowed */
        const char *valid;
    } cases[] = {{MARK, "+++++"},          {MARK "a", "+-+-+"},      {"a" MARK, "-+-+-"},
                 {"a" MARK "b", "--++-"},  {MARK MARK, "----+"},     {MARK MARK "a", "--+--"},
                 {"a" MARK MARK, "---+-"}, {MARK "a" MARK, "-----"}, {"a" MARK "b" MARK, "---+-"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        for (int k = 0; k < 5; k++) {
            struct sp_train_options o = usual;
            o.treat_whitespace_as_suffix = k == 1 || k == 3;
            o.split_by_whitespace = k < 2 || k == 4;
            o.allow_whitespace_only_pieces = k == 4;
            T_EQ(is_valid(&o, cases[i].text), cases[i].valid[k] == '+');
        }
#undef MARK
}

static void others(void)
{
    struct sp_train_options o = usual;
    T_CHECK(!is_valid(&o, ""));
    T_CHECK(!is_valid(&o, "a b"));
    T_CHECK(!is_valid(&o, "a\tb"));
    T_CHECK(!is_valid(&o, "\xe2\x96\x85"));
    T_CHECK(is_valid(&o, "abcdefghijklmnop"));
    T_CHECK(!is_valid(&o, "abcdefghijklmnopq"));
    o.max_sentencepiece_length = 1;
    T_CHECK(is_valid(&o, "a"));
    T_CHECK(!is_valid(&o, "ab"));
}

T_MAIN(T_CASE(scripts), T_CASE(by_script), T_CASE(by_space), T_CASE(others))
