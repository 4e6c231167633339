/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/scan.h"

#include <string.h>

#include "base/core/err.h"
#include "tok/pretok/scan_class.h"

/* ---- the patterns ---- */

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CONTRACTION_BRIEF "'(?i:[sdmt]|ll|ve|re)"
#define WHITE "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LEADER "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPERS "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWERS "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define CASED(not_han, end)                                                                        \
    LEADER "[" UPPERS not_han "]*[" LOWERS not_han "]+" end "|" LEADER "[" UPPERS not_han          \
           "]+[" LOWERS not_han "]*" end
#define NOT_HAN "&&[^\\p{Han}]"

/* A pattern may be spelled in several ways that never differ in their results. */
static const struct pattern {
    enum scan_family family;
    const char *text;
} patterns[] = {
    {SCAN_GPT2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {SCAN_GPT2, "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
    {SCAN_GPT2,
     "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"},
    {SCAN_CL100K, CONTRACTION_BRIEF "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+"
                                    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!"
                                    "\\S)|\\s"},
    {SCAN_LLAMA3,
     CONTRACTION "|" LEADER "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" WHITE},
    {SCAN_LLAMA3,
     CONTRACTION_BRIEF "|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}"
                       "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
    {SCAN_QWEN2, CONTRACTION "|" LEADER "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" WHITE},
    {SCAN_QWEN35,
     CONTRACTION "|" LEADER "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" WHITE},
    {SCAN_O200K, CASED("", CONTRACTION "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" WHITE},
    {SCAN_TEKKEN, CASED("", "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" WHITE},
    {SCAN_KIMI,
     "[\\p{Han}]+|" CASED(NOT_HAN, CONTRACTION "?") "|\\p{N}{1,3}"
                                                    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" WHITE},
};

static const char *const deepseek3[] = {
    "\\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./"
    ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*" WHITE,
};
enum { DEEPSEEK3_STEPS = sizeof(deepseek3) / sizeof(deepseek3[0]) };

/* Whether a pattern is the one of a family; line ends in it may be literal. */
static bool is_spelling(const char *pattern, const char *known)
{
    for (; *pattern && *known; pattern++, known++) {
        if (*pattern == *known)
            continue;
        char letter = *pattern == '\r' ? 'r' : *pattern == '\n' ? 'n' : 0;
        if (!letter || *known++ != '\\' || *known != letter)
            return false;
    }
    return *pattern == *known;
}

enum scan_family scan_find(const char *pattern)
{
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
        if (is_spelling(pattern, patterns[i].text))
            return patterns[i].family;
    return SCAN_NONE;
}

const char *scan_spelling(size_t i)
{
    return i < sizeof(patterns) / sizeof(patterns[0]) ? patterns[i].text : NULL;
}

enum scan_family scan_find_steps(const char *const pattern[], size_t n)
{
    size_t same = 0;
    if (n == 1) {
        enum scan_family one = scan_find(pattern[0]);
        return one == SCAN_CL100K ? SCAN_NONE : one;
    }
    while (n == DEEPSEEK3_STEPS && same < n && is_spelling(pattern[same], deepseek3[same]))
        same++;
    return same == DEEPSEEK3_STEPS ? SCAN_DEEPSEEK3 : SCAN_NONE;
}

/* ---- the levels ---- */

static bool always(void)
{
    return true;
}

#ifdef __x86_64__
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

static const struct {
    struct scan_level level;
    bool (*here)(void);
} levels[] = {
    {{"plain", scan_plain_starts}, always},
#ifdef __x86_64__
    {{"avx2", scan256_starts}, has_avx2},
    {{"avx512", scan512_starts}, has_avx512},
#endif
};
enum { LEVELS = sizeof(levels) / sizeof(levels[0]) };

const struct scan_level *scan_level(size_t i)
{
    for (size_t k = 0; k < LEVELS; k++)
        if (levels[k].here() && i-- == 0)
            return &levels[k].level;
    return NULL;
}

size_t scan_starts(enum scan_family f, const char *text, size_t n, uint32_t *at)
{
    size_t best = LEVELS - 1;
    while (!levels[best].here())
        best--;
    return levels[best].level.starts(f, text, n, at);
}

/* ---- safe split points ---- */

enum kind { KIND_LETTER, KIND_DIGIT, KIND_SIGN, KIND_BLANK, KIND_WHITE, KIND_UNSURE };

/* Of the code point at p; unsure if it is incomplete in n bytes. */
static enum kind kind_of(const uint8_t *p, size_t n)
{
    unsigned bytes;
    uint32_t c = scan_decode_within(p, n, &bytes);
    if (bytes > n)
        return KIND_UNSURE;
    if (c < 0x80 && c != '\n' && c != '\r' && uni_space(c))
        return KIND_BLANK;
    if (uni_space(c))
        return KIND_WHITE;
    if (c < 0x80)
        return c >= '0' && c <= '9'                     ? KIND_DIGIT
               : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? KIND_LETTER
                                                        : KIND_UNSURE;
    if (uni_in(SCAN_UNICODE, c, UNI_L))
        return KIND_LETTER;
    bool sign =
        uni_in(SCAN_UNICODE, c, UNI_P | UNI_S) && !uni_han(SCAN_UNICODE, c) && !scan_ideograph(c);
    return sign ? KIND_SIGN : KIND_UNSURE;
}

/*
 * No family has a pre-token that continues from a character other than white space into a blank,
 * from a letter into an ASCII digit, or from a letter into punctuation above ASCII; and what ends
 * before one of these would end the same at the end of the text.
 */
size_t scan_safe_cut(enum scan_family f, const char *text, size_t n)
{
    const uint8_t *p = (const uint8_t *)text;
    enum kind here = KIND_UNSURE;
    BUG_ON(f <= SCAN_NONE || f >= SCAN_FAMILIES, "scan family %d", (int)f);
    for (size_t cut = n, i = n; i > 0; cut = i) {
        do
            i--;
        while (i > 0 && scan_continues(p[i]));
        enum kind before = kind_of(p + i, n - i);
        bool letter = before == KIND_LETTER;
        if (cut < n && ((here == KIND_BLANK && before != KIND_BLANK && before != KIND_WHITE) ||
                        (letter && (here == KIND_DIGIT || here == KIND_SIGN))))
            return cut;
        here = before;
    }
    return 0;
}
