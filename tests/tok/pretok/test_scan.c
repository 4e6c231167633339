/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"

enum { ROOM = 1024 };

/* ---- pre-tokens written out ---- */

struct sample {
    enum scan_family family;
    const char *pieces; /* with a bar between two */
};

static const struct sample samples[] = {
    {SCAN_GPT2, "Hello| world|'s| end|!|  "},
    {SCAN_GPT2, "a| '|s|   | b|\n\n|\n|c|  "},
    {SCAN_GPT2, "we|'ve|n|'t| '|d"},
    {SCAN_GPT2, "I|'|M| 123456|x|'re|'|"},
    {SCAN_GPT2, "\xe6\x97\xa5\xe6\x9c\xac|\xe3\x80\x82\xe3\x80\x82|"
                "\xe3\x80\x80|\xe6\x97\xa5"},
    {SCAN_CL100K, "Hello| world|'S|top|.!\r\n|x|\n\n|  | y|123|45| |6|\n  "},
    {SCAN_LLAMA3, "Hello| world|'S|top|.!\r\n|x|\n\n|  | y|123|45| |6|\n|  "},
    {SCAN_LLAMA3, "a|'\xc5\xbf|b| !|c|(d|((|e|\t|\tf"},
    {SCAN_LLAMA3, "!\n\n|  \n  \n| |\tx|\n \n|1"},
    {SCAN_QWEN2, "1|2|3|a|1| |2|'LL"},
    {SCAN_QWEN35, "!a\xcc\x81| \xcc\x81|!!|\xcc\x81|'re|\xcc\x81|1|2"},
    {SCAN_O200K, "can't| stop|The|Big|HTTPServer's|'sx"},
    {SCAN_O200K, "\xe6\x97\xa5|ABC|\xe3\x80\x82\xe6\x97\xa5"
                 "ABc|.\n/\n//|a|/\n/|b| /|c|!!\xcc\x81/|d|!\xcc\x81|!"},
    {SCAN_O200K, "a\xe6\x97\xa5|B|\n|\xe2\x9d\xa4\xef\xb8\x8f|\xe2\x9d\xa4\xef\xb8\x8f"},
    {SCAN_TEKKEN, "can|'t|1|2|Stop|It|!\n/"},
    {SCAN_KIMI, "\xe6\x97\xa5\xe6\x9c\xac|abc|\xe6\x97\xa5|!|\xe6\x97\xa5|"
                "12\xe3\x80\x87|\xe3\x80\x87"},
    {SCAN_DEEPSEEK3, "a|  |123|4|  "
                     "|\xe6\x97\xa5\xe3\x81\x82|\xe3\x83\xbb|\xe3\x82\x99|-abc|\xc3\xa9|!!|x| "
                     "!|y|\x01|\x01z"},
};

/* Splits p at the bars: the text to ret_text, the positions to ret_at. */
static size_t unbar(const char *p, struct buf *ret_text, uint32_t *ret_at)
{
    size_t count = 0;
    bool fresh = true;
    for (; *p; p++) {
        if (*p == '|') {
            fresh = true;
            continue;
        }
        if (fresh)
            ret_at[count++] = (uint32_t)ret_text->len;
        fresh = false;
        buf_addc(ret_text, *p);
    }
    ret_at[count] = (uint32_t)ret_text->len;
    return count;
}

static const char *show(const char *text, const uint32_t *at, size_t count)
{
    static char out[8 * ROOM];
    size_t n = 0;
    for (size_t i = 0; i < count && n < sizeof(out) - 16; i++) {
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s", i ? "|" : "");
        for (uint32_t k = at[i]; k < at[i + 1] && n < sizeof(out) - 16; k++)
            n += (size_t)snprintf(out + n, sizeof(out) - n,
                                  text[k] >= ' ' && text[k] < 127 ? "%c" : "\\x%02x",
                                  (unsigned char)text[k]);
    }
    return out;
}

/* Every level gives these positions, whatever follows the text. */
static void same(enum scan_family f, const char *text, size_t n, const uint32_t *want, size_t count)
{
    static char copy[ROOM * 64];
    static uint32_t at[ROOM * 64];
    T_CHECK(n + 64 <= sizeof(copy));
    memcpy(copy, text, n);
    memset(copy + n, "a1 \n'\xe6"[n % 6], 64);
    for (size_t l = 0; scan_level(l); l++) {
        memset(at, 0xff, (n + 2) * sizeof(*at));
        size_t got = scan_level(l)->starts(f, copy, n, at);
        if (got != count || memcmp(at, want, (count + 1) * sizeof(*at)) != 0) {
            printf("# family %d wants %s\n", (int)f, show(text, want, count));
            t_fail(__FILE__, __LINE__, "%s gives %s", scan_level(l)->name, show(text, at, got));
        }
        T_EQ(at[n + 1], UINT32_MAX);
    }
}

static void samples_are_split_so(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        struct buf text = {0};
        uint32_t want[ROOM];
        size_t count = unbar(samples[i].pieces, &text, want);
        same(samples[i].family, text.data, text.len, want, count);
        buf_finish(&text);
    }
}

/* ---- fast against plain ---- */

static void as_plain(enum scan_family f, const char *text, size_t n)
{
    static uint32_t want[ROOM * 64];
    size_t count = scan_level(0)->starts(f, text, n, want);
    same(f, text, n, want, count);
}

static const char *const bits[] = {
    "a",
    "B",
    "s",
    "S",
    "t",
    "re",
    "VE",
    "ll",
    "'",
    "'s",
    "'S",
    "'ll",
    "'d",
    "lL",
    "'vE",
    "1",
    "22",
    "333",
    "4444",
    " ",
    "  ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\n\n",
    "/",
    "!",
    "?!",
    "//",
    "_",
    "\x01",
    "\x7f",
    "\x1c",
    "\v",
    "\xc5\xbf", /* long s */
    "'\xc5\xbf",
    "\xc3\xa9",         /* e acute */
    "\xc3\x89",         /* E acute */
    "\xc7\x85",         /* Lt */
    "\xca\xb0",         /* Lm */
    "\xcc\x81",         /* combining acute */
    "\xe0\xa4\xbe",     /* Mc */
    "\xc2\xb2",         /* superscript two */
    "\xd9\xa3",         /* Arabic digit */
    "\xef\xbc\x91",     /* fullwidth one */
    "\xf0\x9d\x9f\x98", /* mathematical digit */
    "\xc2\x85",         /* next line */
    "\xc2\xa0",
    "\xe2\x80\x89",
    "\xe2\x80\xa8",
    "\xe3\x80\x80",
    "\xe2\x80\x8b",
    "\xe2\x80\x94",
    "\xc2\xab",
    "\xe3\x80\x82",
    "\xe6\x97\xa5",
    "\xe4\xba\xba",
    "\xe3\x81\x82",
    "\xe3\x82\x99",
    "\xe3\x83\xbb",
    "\xe3\x80\x87",
    "\xe3\x80\x85",
    "\xe2\xba\x80",
    "\xea\xb0\x80",
    "\xe9\xbe\xa6",
    "\xf0\x9f\x98\x80",
    "\xef\xb8\x8f",
    "\xe2\x80\x8d",
    "\xf0\x96\xbf\xb0",
    "\xee\x80\x80",
    "\xf0\x90\x90\x80", /* Lu of four bytes */
    "\xf0\xa0\x80\x80",
    "\xcd\xb8", /* not assigned */
};
enum { BITS = sizeof(bits) / sizeof(bits[0]) };

static void random_text(struct buf *b, uint64_t number, size_t most)
{
    size_t parts = t_rand(1, number) % most, from = t_rand(2, number) % BITS;
    size_t few = 2 + t_rand(3, number) % (number % 3 ? 6 : BITS); /* of few kinds: long runs */
    b->len = 0;
    buf_str(b);
    for (uint64_t i = 0; i < parts; i++)
        buf_adds(b, bits[(from + t_rand(4 + number, i) % few * 7) % BITS]);
}

static void fast_is_as_plain_on_random_text(void)
{
    struct buf b = {0};
    for (uint64_t k = 0; k < 30000; k++) {
        random_text(&b, k, k % 10 ? 40 : 400);
        as_plain((enum scan_family)(1 + k % (SCAN_FAMILIES - 1)), b.data, b.len);
    }
    buf_finish(&b);
}

/* Two parts at every position of a block, after one kind of filling and before another. */
static void constructs_at_all_alignments(void)
{
    static const char *const filling[] = {"x", "-", " ", "7", "\n", "\xe6\x97\xa5", "\xcc\x81"};
    struct buf b = {0};
    for (size_t k = 0; k < BITS * BITS; k++)
        for (size_t at = 0; at < 64; at++) {
            const char *fill = filling[(k + at) % 7];
            b.len = 0;
            while (b.len + strlen(fill) <= at)
                buf_adds(&b, fill);
            while (b.len < at)
                buf_addc(&b, 'x');
            buf_adds(&b, bits[k / BITS]);
            buf_adds(&b, bits[k % BITS]);
            buf_adds(&b, bits[(k / BITS + at) % BITS]);
            for (int i = 0; i < 3; i++)
                buf_adds(&b, filling[(k / 7 + at) % 7]);
            as_plain((enum scan_family)(1 + (k + at / 7) % (SCAN_FAMILIES - 1)), b.data, b.len);
        }
    buf_finish(&b);
}

static void samples_at_all_alignments(void)
{
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
        for (size_t at = 1; at < 130; at++) {
            struct buf b = {0};
            uint32_t none[ROOM];
            for (size_t k = 0; k < at; k++)
                buf_addc(&b, "x\n"[k + 1 == at && at % 2]);
            unbar(samples[i].pieces, &b, none);
            for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
                as_plain((enum scan_family)f, b.data, b.len);
            buf_finish(&b);
        }
}

static void long_runs(void)
{
    for (size_t k = 0; k < BITS; k++)
        for (size_t n = 1; n < 200; n += 13) {
            struct buf b = {0};
            buf_adds(&b, bits[(k * 5 + n) % BITS]);
            for (size_t i = 0; i < n; i++)
                buf_adds(&b, bits[k]);
            buf_adds(&b, bits[(k * 3 + n) % BITS]);
            for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
                as_plain((enum scan_family)f, b.data, b.len);
            buf_finish(&b);
        }
}

static void add_utf8(struct buf *b, uint32_t c)
{
    if (c >= 0x10000)
        buf_addf(b, "%c%c%c%c", 0xf0 | c >> 18, 0x80 | (c >> 12 & 63), 0x80 | (c >> 6 & 63),
                 0x80 | (c & 63));
    else if (c >= 0x800)
        buf_addf(b, "%c%c%c", 0xe0 | c >> 12, 0x80 | (c >> 6 & 63), 0x80 | (c & 63));
    else if (c >= 0x80)
        buf_addf(b, "%c%c", 0xc0 | c >> 6, 0x80 | (c & 63));
    else
        buf_addc(b, (char)c);
}

/* In families that together use every class. */
static void every_code_point(void)
{
    static const enum scan_family family[] = {SCAN_LLAMA3, SCAN_O200K, SCAN_KIMI, SCAN_DEEPSEEK3};
    struct buf b = {0};
    for (uint32_t c = 0; c < 0x110000;) {
        b.len = 0;
        for (uint32_t end = c + 2048; c < end; c++) {
            if (c >= 0xd800 && c < 0xe000)
                continue;
            add_utf8(&b, c);
            buf_adds(&b, c % 3 ? " B" : "a!");
            add_utf8(&b, c);
        }
        for (int i = 0; i < 4 && b.len; i++)
            as_plain(family[i], b.data, b.len);
    }
    buf_finish(&b);
}

static void real_text(void)
{
    const char *path[] = {t_data("text/botchan.txt"), t_data("text/wagahaiwa_nekodearu.txt")};
    enum { PART = 60000 };
    struct err e;
    for (int i = 0; i < 2; i++) {
        struct buf b = {0};
        T_OK(file_read(path[i], 1 << 30, &b, &e), &e);
        for (size_t at = 0, n; at < b.len && at < 20 * PART; at += n) {
            n = b.len - at < PART ? b.len - at : PART;
            while (at + n < b.len && (b.data[at + n] & 0xc0) == 0x80)
                n++;
            for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
                as_plain((enum scan_family)f, b.data + at, n);
        }
        buf_finish(&b);
    }
}

/* ---- patterns, split points ---- */

static void patterns_are_found(void)
{
    static const char *const steps[] = {"\\p{N}{1,3}", "a", "b"};
    static const char *const deepseek3[] = {
        "\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
        "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
        "| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
    T_EQ(scan_find("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| "
                   "?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"),
         SCAN_GPT2);
    T_EQ(scan_find("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                   "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"),
         SCAN_QWEN2);
    T_EQ(scan_find("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                   "?[^\\s\\p{L}\\p{N}]+[\r\\n]*|\\s*[\\r\n]+|\\s+(?!\\S)|\\s+"),
         SCAN_QWEN2); /* literal line ends */
    T_EQ(scan_find("\r"), SCAN_NONE);
    T_EQ(scan_find("\\s+"), SCAN_NONE);
    T_EQ(scan_find(""), SCAN_NONE);
    T_EQ(scan_find_steps(steps, 3), SCAN_NONE);
    T_EQ(scan_find_steps(steps, 1), SCAN_NONE);
    T_EQ(scan_find_steps(steps, 0), SCAN_NONE);
    T_EQ(scan_find_steps(deepseek3, 3), SCAN_DEEPSEEK3);
    T_EQ(scan_find_steps(deepseek3, 2), SCAN_NONE);
}

static void nothing_has_no_pieces(void)
{
    uint32_t at[1] = {7};
    char none[64] = "abc";
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++) {
        T_EQ(scan_starts((enum scan_family)f, none, 0, at), 0);
        T_EQ(at[0], 0);
    }
}

static void cuts_change_nothing(void)
{
    struct buf b = {0};
    uint32_t all[8 * ROOM], part[8 * ROOM];
    size_t cuts = 0;
    for (uint64_t k = 0; k < 20000; k++) {
        enum scan_family f = (enum scan_family)(1 + k % (SCAN_FAMILIES - 1));
        random_text(&b, k, 100);
        size_t count = scan_level(0)->starts(f, b.data, b.len, all);
        size_t seen = b.len ? t_rand(9, k) % b.len : 0;
        char *begun =
            mem_new(seen + 1, 1); /* what follows is unknown, possibly inside a character */
        memcpy(begun, b.data, seen);
        size_t cut = scan_safe_cut(f, begun, seen);
        free(begun);
        T_CHECK(cut <= seen);
        if (!cut)
            continue;
        cuts++;
        size_t first = scan_level(0)->starts(f, b.data, cut, part);
        T_CHECK(first <= count);
        if (memcmp(part, all, (first + 1) * sizeof(*all)) != 0) {
            printf("# family %d: %s\n", (int)f, show(b.data, all, count));
            t_fail(__FILE__, __LINE__, "cut at %zu: %s", cut, show(b.data, part, first));
        }
        size_t rest = scan_level(0)->starts(f, b.data + cut, b.len - cut, part);
        T_EQ(first + rest, count);
        for (size_t i = 0; i < rest; i++)
            T_EQ(part[i] + cut, all[first + i]);
    }
    T_CHECK(cuts > 2000);
    buf_finish(&b);
}

T_MAIN(T_CASE(samples_are_split_so), T_CASE(samples_at_all_alignments),
       T_CASE(constructs_at_all_alignments), T_CASE(long_runs), T_CASE(every_code_point),
       T_CASE(fast_is_as_plain_on_random_text), T_CASE(real_text), T_CASE(patterns_are_found),
       T_CASE(nothing_has_no_pieces), T_CASE(cuts_change_nothing))
