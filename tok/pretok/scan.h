/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PRETOK_SCAN_H
#define TOK_PRETOK_SCAN_H

/*
 * Where the pre-tokens of a text begin, for the regexes that the known byte-level vocabularies are
 * split with, without a regex engine. Classes of code points are Unicode 16.0's, as in Hugging
 * Face's tokenizers since 0.21.2.
 *
 * scan_plain.c follows the alternatives of each regex over code points and defines the result;
 * scan_fast.c does the same as bit algebra over the classes of 64 bytes at once, compiled once per
 * vector width. Everything here is constant and thread-safe.
 */

#include <stddef.h>
#include <stdint.h>

enum scan_family {
    SCAN_NONE,
    SCAN_GPT2,
    SCAN_CL100K, /* white space at the end of the text is one pre-token */
    SCAN_LLAMA3, /* as older spellings of cl100k: newlines there are a pre-token of their own */
    SCAN_QWEN2,
    SCAN_QWEN35,
    SCAN_O200K,
    SCAN_TEKKEN,
    SCAN_KIMI,
    SCAN_DEEPSEEK3, /* three splits, one after another */
    SCAN_FAMILIES
};

/*
 * The family whose regex this is, in one of its known spellings and as tiktoken's engine reads it;
 * SCAN_NONE for any other.
 */
enum scan_family scan_find(const char *pattern);

/* The i-th of these spellings; NULL: there are fewer. */
const char *scan_spelling(size_t i);

/*
 * The same for n successive splits of a tokenizer.json, each of which isolates what its pattern
 * matches. Never SCAN_CL100K: Oniguruma reads the {1,3}+ of its pattern as any number of digits.
 */
enum scan_family scan_find_steps(const char *const pattern[], size_t n);

/*
 * Writes the starts of the pre-tokens of text[0 .. n) to at[0 .. count), and n to at[count];
 * returns the count. The text is UTF-8, n < 2^31 - 64; nothing after it is read. `at` must hold n +
 * 1 positions. For invalid UTF-8 the positions are unspecified, but ascend.
 */
size_t scan_starts(enum scan_family f, const char *text, size_t n, uint32_t *at);

/*
 * The last position c < n where a pre-token begins whatever precedes the text or follows it, and
 * such that text[0 .. c) by itself has the pre-tokens that it has within the whole; 0 if there is
 * none. For parts of one document and for streams.
 */
size_t scan_safe_cut(enum scan_family f, const char *text, size_t n);

/* The implementations on this machine, slowest first: for tests and benchmarks. */
struct scan_level {
    const char *name;
    size_t (*starts)(enum scan_family f, const char *text, size_t n, uint32_t *at);
};

/* The i-th level that the processor has, or NULL after the last. */
const struct scan_level *scan_level(size_t i);

#endif
