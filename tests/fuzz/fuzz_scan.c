/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "tok/pretok/regex.h"
#include "tok/pretok/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Bytes that a first byte of these stretches asks for; the rest of them need a closer look. */
static size_t more(uint8_t b)
{
    return b >= 0xf1 && b < 0xf4 ? 3 : b >= 0xe1 && b < 0xed ? 2 : b >= 0xc2 && b < 0xe0;
}

/* The bytes as UTF-8: one that does not belong where it stands becomes a code point of its own. */
static size_t repair(const uint8_t *p, size_t n, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 1; k <= more(p[i]) && i + k < n && (p[i + k] & 0xc0) == 0x80;)
            k++;
        if (p[i] < 0x80 || (more(p[i]) && k == more(p[i]) + 1)) {
            memcpy(to + len, p + i, k);
            len += k;
        } else {
            k = 1;
            to[len++] = 0xc2 + (p[i] & 1);
            to[len++] = 0x80 + (p[i] & 0x3f);
        }
    }
    return len;
}

static void check(enum scan_family f, const char *text, size_t n, uint32_t *want, uint32_t *got)
{
    size_t count = scan_level(0)->starts(f, text, n, want);
    for (size_t l = 1; scan_level(l); l++) {
        size_t other = scan_level(l)->starts(f, text, n, got);
        BUG_ON(other != count, "family %d: %s has %zu pieces, plain %zu", (int)f,
               scan_level(l)->name, other, count);
        BUG_ON(memcmp(got, want, (count + 1) * sizeof(*got)) != 0, "family %d: %s has other places",
               (int)f, scan_level(l)->name);
    }
    size_t cut = scan_safe_cut(f, text, n / 2), first = 0;
    while (want[first] < cut)
        first++;
    BUG_ON(want[first] != cut, "family %d: nothing begins at the cut %zu", (int)f, cut);
    size_t before = scan_starts(f, text, cut, got);
    BUG_ON(before != first || memcmp(got, want, first * sizeof(*got)) != 0,
           "family %d: other pieces before the cut %zu", (int)f, cut);
}

#if WEFT_PCRE2

#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WHITE "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LEADER "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) LEADER UPPER "*" LOWER "+" end "|" LEADER UPPER "+" LOWER "*" end

/* In a group, so that they are of no known family and go to PCRE2. */
static const char *const pattern[SCAN_FAMILIES] = {
    [SCAN_GPT2] = "(?:'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
                  "|\\s+(?!\\S)|\\s+)",
    [SCAN_CL100K] = "(?:'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+"
                    "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s)",
    [SCAN_LLAMA3] = "(?:" CONTRACTION "|" LEADER "\\p{L}+|\\p{N}{1,3}"
                    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" WHITE ")",
    [SCAN_QWEN2] = "(?:" CONTRACTION "|" LEADER "\\p{L}+|\\p{N}"
                   "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" WHITE ")",
    [SCAN_QWEN35] = "(?:" CONTRACTION "|" LEADER "[\\p{L}\\p{M}]+|\\p{N}"
                    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" WHITE ")",
    [SCAN_O200K] = "(?:" CASED(CONTRACTION "?") "|\\p{N}{1,3}"
                                                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" WHITE ")",
    [SCAN_TEKKEN] = "(?:" CASED("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" WHITE ")",
};

/* Matches, and the text between them. */
static void compare(enum scan_family f, const char *text, size_t n, const uint32_t *want)
{
    static struct regex *r[SCAN_FAMILIES];
    static struct regex_work *w;
    struct err e;
    size_t k = 0, end = 0;
    bool found;
    if (!pattern[f])
        return;
    if (!r[f] && regex_compile("x", pattern[f], strlen(pattern[f]), REGEX_RUST, &r[f], &e))
        BUG("%s", e.msg);
    BUG_ON(regex_family(r[f]) != SCAN_NONE, "family %d against itself", (int)f);
    w = w ? w : regex_work_create();
    for (struct regex_at at = {0}; end < n; end = at.end) {
        if (regex_next(r[f], w, text, n, &at, &found, &e))
            return; /* too many steps */
        if (!found || at.start > end)
            BUG_ON(want[k++] != end, "family %d: PCRE2 has a piece at %zu", (int)f, end);
        if (!found)
            break;
        BUG_ON(want[k++] != at.start, "family %d: PCRE2 has a piece at %zu", (int)f, at.start);
    }
    BUG_ON(want[k] != n, "family %d: PCRE2 has no piece at %u", (int)f, want[k]);
}

#else

static void compare(enum scan_family f, const char *text, size_t n, const uint32_t *want)
{
    (void)f, (void)text, (void)n, (void)want;
}

#endif

/* All levels find the same pre-tokens in any UTF-8, and PCRE2 does by the pattern; a safe cut
 * changes none; any bytes do no harm. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint8_t *text = mem_new(2 * n + 1, 1);
    uint32_t *want = mem_new(2 * n + 1, sizeof(*want)), *got = mem_new(2 * n + 1, sizeof(*got));
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
        scan_starts((enum scan_family)f, (const char *)p, n, got);
    size_t len = repair(p, n, text);
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++) {
        check((enum scan_family)f, (const char *)text, len, want, got);
        scan_starts((enum scan_family)f, (const char *)text, len, want);
        compare((enum scan_family)f, (const char *)text, len, want);
    }
    free(text);
    free(want);
    free(got);
    return 0;
}
