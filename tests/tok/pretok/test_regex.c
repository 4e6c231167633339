/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "tests/t.h"

/* The matches of a pattern as "[..]" in the text. */
enum how { AS_LITERAL, AS_ONIGURUMA, AS_RUST };

static int mark(const char *pattern, enum how how, const char *text, struct buf *out, struct err *e)
{
    struct regex *r = NULL;
    int code = 0;
    if (how == AS_LITERAL)
        r = regex_literal(pattern, strlen(pattern));
    else if (how == AS_RUST)
        code = regex_compile("x.tiktoken", pattern, strlen(pattern), REGEX_RUST, &r, e);
    else
        code = regex_compile_search("x.json: pre", pattern, strlen(pattern), &r, e);
    if (code)
        return code;
    struct regex_work *w = regex_work_create();
    struct regex_at at = {0};
    size_t done = 0, n = strlen(text);
    bool found = true;
    char *padded = calloc(n + 64, 1);
    memcpy(padded, text, n);
    while (!code && found) {
        code = regex_next(r, w, padded, n, &at, &found, e);
        if (code || !found)
            break;
        buf_add(out, text + done, at.start - done);
        buf_addf(out, "[%.*s]", (int)(at.end - at.start), text + at.start);
        done = at.end;
    }
    buf_adds(out, text + done);
    free(padded);
    regex_work_destroy(w);
    regex_destroy(r);
    return code;
}

static void marks_as(enum how how, const char *pattern, const char *text, const char *want)
{
    struct buf b = {0};
    struct err e;
    int code = mark(pattern, how, text, &b, &e);
    if (code && strstr(e.msg, "no known family"))
        t_skip("built without PCRE2");
    T_OK(code, &e);
    T_STR(buf_str(&b), want);
    buf_finish(&b);
}

static void marks(const char *pattern, const char *text, const char *want)
{
    marks_as(AS_ONIGURUMA, pattern, text, want);
}

static void refused(const char *pattern, const char *words)
{
    struct buf b = {0};
    struct err e;
    T_ERR(regex_spell("x.json: pre", pattern, strlen(pattern), REGEX_ONIGURUMA, &b, &e), &e,
          ERR_DATA, words);
    T_CHECK(strstr(e.msg, "x.json: pre"));
    buf_finish(&b);
}

static void literals(void)
{
    struct buf b = {0};
    struct err e;
    T_OK(mark("aa", AS_LITERAL, "aaabaa.a", &b, &e), &e);
    T_STR(buf_str(&b), "[aa]ab[aa].a");
    buf_finish(&b);
}

static void patterns(void)
{
    marks("x+", "axxbx", "a[xx]b[x]");
    marks("\\p{Lu}\\p{Ll}*|\\d", "FooBar1", "[Foo][Bar][1]");
    marks("[^\\S\\n]+",
          "a \t\n\xc2\x85"
          "b",
          "a[ \t]\n[\xc2\x85]b"); /* U+0085 is a space */
    marks("[\\P{L}]", "a1b", "a[1]b");
    marks("\\h+", "xyz-beef", "xyz-[beef]"); /* a hexadecimal digit */
    marks("(?i:'S)", "it's IT'S it'\xc5\xbf", "it['s] IT['S] it['\xc5\xbf]");
    marks("\\d{1,3}+x", "1234x", "[1234x]"); /* a repetition of a repetition */
    marks("\\d{,2}a", "123a", "1[23a]");
    marks("^a|b$", "ab\nab", "[a][b]\n[a][b]");
    marks("(?m:a.b)|c.d", "a\nb c\nd", "[a\nb] c\nd");
    marks("\\bx", "x ax x", "[x] ax [x]");
    marks("\\Bx", "x ax x", "x a[x] x");
    marks("\\u0041", "xA", "x[A]");
    marks("\\p{L}+", "\xe1\xb2\x89 \xea\x9f\x8e", "[\xe1\xb2\x89] \xea\x9f\x8e"); /* 16.0, not 17 */
}

static void words(void)
{
    marks("\\w+",
          "m\xc2\xb2 a\xe2\x80\x8d"
          "b",
          "[m\xc2\xb2] [a]\xe2\x80\x8d[b]");
    marks("\\w\\b",
          "m\xc2\xb2 a\xe2\x80\x8d"
          "b",
          "m[\xc2\xb2] [a]\xe2\x80\x8d[b]");
    marks("\\W", "m\xc2\xb2\xe2\x81\xb4", "m\xc2\xb2[\xe2\x81\xb4]");
    marks("[\\w]+", "m\xc2\xb2", "[m]\xc2\xb2"); /* as Oniguruma has it */
    marks("[^\\w\\s]", "m\xc2\xb2", "m[\xc2\xb2]");
}

/* tiktoken's patterns, in Rust's syntax. */
static void words_of_rust(void)
{
    struct buf onig = {0}, rust = {0};
    struct err e;
    T_OK(regex_spell("x", "\\w", 2, REGEX_ONIGURUMA, &onig, &e), &e);
    T_OK(regex_spell("x", "\\w", 2, REGEX_RUST, &rust, &e), &e);
    T_CHECK(strstr(onig.data, "\\x{b2}") && !strstr(onig.data, "\\x{200c}"));
    T_CHECK(!strstr(rust.data, "\\x{b2}") && strstr(rust.data, "\\x{200c}-\\x{200d}"));
    buf_finish(&onig);
    buf_finish(&rust);
    marks_as(AS_RUST, "(?s).", "a\n", "[a][\n]");
    marks_as(AS_RUST, "(?s:a.)|(?m:^b)", "a\nb\nb", "[a\n][b]\n[b]");
    marks_as(AS_RUST, "b$", "b\nb\n", "b\nb\n"); /* only at the very end */
    marks_as(AS_RUST, "^b", "b\nb", "[b]\nb");
    marks_as(AS_RUST, "[[:alpha:]]+", "a\xc3\xa9z", "[a]\xc3\xa9[z]");
    marks_as(AS_RUST, "[[:^alpha:]]+", "a\xc3\xa9z", "a[\xc3\xa9]z");
}

static void empty_matches(void)
{
    marks("(?=[A-Z])", "FooBar", "[]Foo[]Bar");
    marks("x*", "axb", "[]a[x]b[]");
    marks("\\d{1,3}(?=(\\d{3})*\\b)", "1234567 12", "[1][234][567] [12]");
}

/* Results of tokenizers 0.23.3; tests/interop/tok_pipe.py queries it for more. */
static void classes(void)
{
    marks("[[:alpha:]]+|[[:digit:]]", "ab1\xc3\xa9-", "[ab][1][\xc3\xa9]-");
    marks("[^[:alpha:][:space:]]", "a b-1", "a b[-][1]");
    marks("[[:^alpha:]]+", "ab12", "ab[12]");
    marks("[[:punct:]]", "a$.", "a[$][.]");
    marks("\\p{Punct}", "a$.", "a$[.]");
    marks("[a-z&&[^aeiou]]+", "banana", "[b]a[n]a[n]a");
    marks("[^a&&b]", "ab", "[a][b]"); /* the whole is negated */
    marks("[a[bZ]]", "abcZ", "[a][b]c[Z]");
    marks("[&&a]*x", "ax", "a[x]");
    marks("[]a]+[-x]", "]a-", "[]a-]");
    marks("[\\x41-\\x{43}\\u0061\\n]+", "xABa\nD", "x[ABa\n]D");
    marks("\\p{Hiragana}+|\\p{katakana}", "\u6f22\u3042\u30a2", "\u6f22[\u3042][\u30a2]");
    marks("\\p{Lowercase_Letter}+|\\p{LC}", "abC", "[ab][C]");
    marks("\\p{^L}|\\P{^Lu}", "a1B", "a[1][B]");
    marks("\\p{Garay}", "\U00010d50", "[\U00010d50]"); /* a script of 16.0 */
    marks("(?i)\\p{Lu}", "aB", "a[B]");                /* case is ignored only inside brackets */
    marks("(?i)[\\p{Lu}]", "aB", "[a][B]");
}

static void other_constructs(void)
{
    marks("\\R", "a\r\nb\nc\xe2\x80\xa8", "a[\r\n]b[\n]c[\xe2\x80\xa8]");
    marks("\\N+|\\O", "ab\n", "[ab][\n]");
    marks("a\\Kb", "abb", "a[b]b");
    marks("(?>x*)y|x*+z", "xxy xz", "[xxy] [xz]");
    marks("x**y|x+*", "xxy", "[xxy]");
    marks("(?:ab){2}?c", "ababc c", "[ababc] [c]"); /* zero or two of them */
    marks("x{2,1}", "xxx", "[xx][x]");
    marks("b|a(?i)b|c", "ab aB aC c", "[ab] [aB] [aC] c");
    marks("(?<n>a|b)\\k<n>", "aab", "[aa]b");
    marks("(a|b)\\k<1>", "aab", "[aa]b");
    marks("(?#[)x", "x(", "[x](");
    marks("(?#c)ab(?#c){20}|b", "abbbbbbbbbbbbbbbbbbbbb b", "[abbbbbbbbbbbbbbbbbbbb][b] [b]");
    marks("\\cA\\e?|\\101|\\i",
          "\x01\x1b"
          "Ai",
          "[\x01\x1b][A][i]");
    marks("", "ab", "[]a[]b[]");
}

#define TWENTY "aaaaaaaaaaaaaaaaaaaa"

/* White space between an item and its repetition, ignored and not. */
static void extended_patterns(void)
{
    marks("(?x)a {20}|\\p{L}+|[^\\p{L}]+", TWENTY " ab", "[" TWENTY "][ ][ab]");
    marks("(?x: \\p{N} {3} | [a-z] {16,} ) | . ", "1234 " TWENTY " b", "1[234 ][" TWENTY " ]b");
    marks("(?x)b + {2}c|(?i:\\p{Lu}) \n*", "bbc B", "[bbc] [B]");
    marks("(?x:a) {2}|(?x)b(?-x: {2}) c", "a  b  c", "[a  ][b  c]");
    marks("(?x:a)#|(?x)b", "a#b", "[a#][b]");
    refused("(?x)a # {20}", "a comment");
}

/* U+00DF matches ss and SS where case is ignored, in tokenizers 0.23.3. */
static void folds_to_several(void)
{
    static const char *const bad[] = {"(?i:st)",
                                      "(?i)\\x{1E9E}",
                                      "(?i)\\u00df",
                                      "(?i)\u0130",
                                      "(?i)i\u0307",
                                      "(?i)a\\x73S",
                                      "(?i)x\u00df+",
                                      "(?i)\u017fs",
                                      "(?i)\u03b1\u03b9",
                                      "(?i)\u0391\u0399",
                                      "(?i)\u0565\u0582",
                                      "(?i)\u03b9\u0308\u0301",
                                      "(?i)(?:s)(?:s)",
                                      "(?i)s(?#x)s",
                                      "(?ix)s s",
                                      "(?i)s{1}s",
                                      "(?i)(?:s(?:s))",
                                      "(?i)x(?:ss)+",
                                      "(?i)ss|x",
                                      "(?i)(ss)",
                                      "(?i)[\u00df]",
                                      "(?i)[\u00e0\u00df]",
                                      "(?i)[\ufb00-\ufb06]",
                                      "(?i)[\\p{Ll}]+",
                                      "(?i)[\\w]x",
                                      "(?i)[\\p{L}]+x",
                                      "(?i)([\\w])x",
                                      "(?i)[\\p{L}&&[\u00df]]",
                                      "(?i)(?-i)(?i)ss",
                                      "(?i:x|s(?:s[|)]))"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        refused(bad[i], "case folding between one letter and several");
    /* and these match there as here */
    marks("(?i)s(?:s|x)", "\u00df ss sX", "\u00df [ss] [sX]");
    marks("(?i)(s)s|s(?:s)+|s(?=s)s", "\u00df sS", "\u00df [sS]");
    marks("(?i)ss?x|s+s{2}", "\u00dfx sSx", "\u00dfx [sSx]");
    marks("(?i)(?-i:s)s|s(?i:s)|s(?i)s", "\u00df ss", "\u00df [ss]");
    marks("(?i:x)ss|\u00df(?i:y)|(?-i)st", "SS ss xss \u00dfY", "SS ss [xss] [\u00dfY]");
    marks("(?i)[a-z\u00df]+|[^\u00df]", "sS\u00df!", "[sS\u00df][!]");
    marks("(?i)[\\p{Lu}]|[\\p{L}]+?|[\\p{L}]++x|[\\w]*x", "ssx!", "[s][s][x]!");
    marks("(?i)[s]s|s[s]", "\u00dfss", "\u00df[ss]");
    marks("(?i:s(?:s|[|)])t)", "\u00dft sst", "\u00dft [sst]");
}

static void what_is_not_read(void)
{
    refused("\\p{Klingon}", "byte 0 of the pattern");
    refused("[[:klingon:]]", "a POSIX class of this name");
    refused("[a-\\d]", "a range that ends in a class");
    refused("[b-a]", "a range that ends before it begins");
    refused("[a", "a class without an end");
    refused("[a&&[b]", "a class without an end");
    refused("a\\", "a backslash at the end");
    refused("(?~ab)", "this kind of group");
    refused("(*FAIL)", "this kind of group");
    refused("(?W)a", "this kind of group");
    refused("a)", "a parenthesis that closes nothing");
    refused("\\X", "the version of Unicode");
    refused("\\xe9", "part of a character");
    refused("\\ud800", "a number that is not a character");
    folds_to_several();
}

static void families(void)
{
    static const char cl100k[] =
        "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++"
        "[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s";
    static const char gpt2[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    struct regex *r;
    struct err e;
    T_OK(regex_compile("x", gpt2, strlen(gpt2), REGEX_ONIGURUMA, &r, &e), &e);
    T_EQ(regex_family(r), SCAN_GPT2);
    marks(gpt2, "ab 1!", "[ab][ 1][!]"); /* matched like any other */
    regex_destroy(r);
    T_OK(regex_compile("x", cl100k, strlen(cl100k), REGEX_RUST, &r, &e), &e);
    T_EQ(regex_family(r), SCAN_CL100K);
    regex_destroy(r);
    if (!regex_compile("x", cl100k, strlen(cl100k), REGEX_ONIGURUMA, &r, &e)) {
        T_EQ(regex_family(r), SCAN_NONE); /* {1,3}+ means something else there */
        regex_destroy(r);
    }
}

/* A pattern that explodes in PCRE2 has the matches of its program, in a text of any length. */
static void programs_take_over(void)
{
    enum { RUN = 100000 };
    struct buf text = {0}, out = {0}, want = {0};
    struct err e;
    buf_adds(&text, "x");
    buf_adds(&want, "[x]");
    for (int i = 0; i < RUN; i++) {
        buf_addc(&text, 'y');
        buf_addc(&want, 'y');
    }
    buf_adds(&text, "xyyzyyx\u00e9yzx");
    buf_adds(&want, "[x][yyz]yy[x]\u00e9[yz][x]");
    int code = mark("(y+)+z|x", AS_ONIGURUMA, buf_str(&text), &out, &e);
    if (code && strstr(e.msg, "no known family"))
        t_skip("built without PCRE2");
    T_OK(code, &e);
    T_STR(buf_str(&out), buf_str(&want));
    buf_reset(&out);
    T_OK(mark("(y+)+z|(?=\u00e9)", AS_ONIGURUMA, buf_str(&text), &out, &e), &e);
    buf_reset(&want);
    buf_add(&want, text.data, RUN + 2);
    buf_adds(&want, "[yyz]yyx[]\u00e9[yz]x");
    T_STR(buf_str(&out), buf_str(&want));
    buf_finish(&text);
    buf_finish(&out);
    buf_finish(&want);
}

/* Steps are limited in proportion to the text, however many matches they are of; a long run that an
 * ordinary pattern passes a few times is within the limit. */
static void steps_are_limited(void)
{
    static const struct {
        const char *pattern, *run;
        bool fails;
    } row[] = {{".{0,65535}z", "y", true},      {"[^z]{0,65535}z", "y", true},
               {"y{30000,}z|x", "y", true},     {"(y+)+z|x", "y", false},
               {"y{9,900}z", "y", true},        {"\\s*[\r\n]|\\s+", " ", false},
               {"(?i:'s)|\\p{L}+", "y", false}, {"x+", "y", false},
               {"\\p{L}{1,4}", "y", false}};
    for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
        struct buf text = {0}, out = {0};
        struct err e;
        for (size_t k = 0; k < 1000000; k++)
            buf_adds(&text, row[i].run);
        buf_adds(&text, "w");
        int code = mark(row[i].pattern, AS_ONIGURUMA, buf_str(&text), &out, &e);
        if (code && strstr(e.msg, "no known family"))
            t_skip("built without PCRE2");
        if (row[i].fails) {
            T_ERR(code, &e, ERR_DATA, "takes too many steps on 1000001 bytes of text, from byte");
            T_CHECK(strstr(e.msg, row[i].pattern));
        } else {
            T_OK(code, &e);
        }
        buf_finish(&text);
        buf_finish(&out);
    }
}

/* Pieces whose last match is empty at their end count as searched, too. */
static void steps_of_pieces(void)
{
    static const char pattern[] = ".{0,60}z|\\p{L}?";
    char text[128] = "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy";
    struct regex *r;
    struct err e;
    if (regex_compile_search("x", pattern, strlen(pattern), &r, &e))
        t_skip("built without PCRE2");
    struct regex_work *w = regex_work_create();
    for (int i = 0; i < 30000; i++) {
        struct regex_at at = {0};
        for (bool found = true; found;)
            T_OK(regex_next(r, w, text, strlen(text), &at, &found, &e), &e);
    }
    regex_work_destroy(w);
    regex_destroy(r);
}

static void memory_is_limited(void)
{
    struct buf text = {0}, out = {0};
    struct err e;
    for (size_t k = 0; k < 1000000; k++)
        buf_adds(&text, "ab");
    int code = mark("(a|ab|b)*c(?=xy)", AS_ONIGURUMA, buf_str(&text), &out, &e);
    if (code && strstr(e.msg, "no known family"))
        t_skip("built without PCRE2");
    T_ERR(code, &e, ERR_DATA, "needs too much memory for matching on 2000000 bytes");
    buf_finish(&text);
    buf_finish(&out);
}

static void bad_patterns(void)
{
    struct buf b = {0};
    struct err e;
    T_ERR(mark("(a", AS_ONIGURUMA, "a", &b, &e), &e, ERR_DATA,
          "x.json: pre: byte 2 of the pattern \"(a\"");
    char text[64] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
    int code = mark("(a|a)*(a|a)*\\1$", AS_ONIGURUMA, text, &b, &e);
    T_ERR(code, &e, ERR_DATA, "the pattern");
    buf_finish(&b);
}

T_MAIN(T_CASE(literals), T_CASE(patterns), T_CASE(words), T_CASE(words_of_rust),
       T_CASE(empty_matches), T_CASE(classes), T_CASE(other_constructs), T_CASE(what_is_not_read),
       T_CASE(families), T_CASE(bad_patterns), T_CASE(steps_are_limited),
       T_CASE(programs_take_over), T_CASE(extended_patterns), T_CASE(steps_of_pieces),
       T_CASE(memory_is_limited))
