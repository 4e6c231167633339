/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SENTENCE_PUNKT_H
#define PREP_SENTENCE_PUNKT_H

/*
 * Sentences by the decisions of Kiss and Strunk, "Unsupervised Multilingual Sentence Boundary
 * Detection" (2006), as NLTK 3.10's PunktSentenceTokenizer makes them: with the same facts about a
 * language the sentences are the same, byte for byte, as tests/interop/sentences.py checks.
 *
 * A `struct punkt` has the facts about a language; once filled it is immutable and threads may
 * share it. A `struct punkt_work` belongs to one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/core/hash.h"

/* Facts about a word, in lower case and without a trailing full stop; numbers are "##number##". */
enum {
    PUNKT_BEG_UC = 1 << 1, /* seen with a capital at the beginning of a sentence, */
    PUNKT_MID_UC = 1 << 2, /* inside one, */
    PUNKT_UNK_UC = 1 << 3, /* or where that is unknown; */
    PUNKT_BEG_LC = 1 << 4, /* and the same without */
    PUNKT_MID_LC = 1 << 5,
    PUNKT_UNK_LC = 1 << 6,
    PUNKT_ABBREVIATION = 1 << 7,
    PUNKT_STARTER = 1 << 8, /* often starts a sentence */
    PUNKT_PAIR = 1 << 9     /* two words separated by a tab: no sentence ends between them */
};

struct punkt;
struct punkt *punkt_create(void);
void punkt_destroy(struct punkt *p); /* accepts NULL */
void punkt_add(struct punkt *p, const char *word, size_t n, unsigned facts);
unsigned punkt_facts(const struct punkt *p, const char *word, size_t n);

/*
 * The four files of a language in NLTK's punkt_tab: abbrev_types.txt, collocations.tab,
 * sent_starters.txt, ortho_context.tab. ERR_IO, or ERR_DATA with file and line. `ret_digest`: of
 * their bytes, in this order.
 */
int punkt_load(struct punkt *p, const char *folder, char ret_digest[XXH_TEXT], struct err *e);

/* Parses one of these files, recognized by its name. */
int punkt_parse(struct punkt *p, const char *path, const char *text, size_t n, struct err *e);

/* Bits of a character. */
enum punkt_class {
    PUNKT_SPACE = 1,
    PUNKT_LETTER = 2, /* \w of Python's module regex, except decimal digits */
    PUNKT_DIGIT = 4,
    PUNKT_UPPER = 8,
    PUNKT_LOWER = 16,
    PUNKT_CASED = 32,
    PUNKT_IGNORED = 64, /* ignored at the end of a word */
    PUNKT_CONTROL = 128 /* U+001C to U+001F: white space to str.rstrip, but not to patterns */
};

/* The class of the character at `at` (< end), and its length: 1 for an invalid byte. */
unsigned punkt_class(const struct punkt *p, const char *at, const char *end, size_t *ret_n);

struct punkt_span {
    size_t at, end; /* bytes of the text */
};

struct punkt_work {
    struct buf type[2], pair;
    struct buf raw;
    struct buf spans; /* struct punkt_span: the result of punkt_split */
};
void punkt_work_finish(struct punkt_work *w);

static inline size_t punkt_count(const struct punkt_work *w)
{
    return w->spans.len / sizeof(struct punkt_span);
}

static inline const struct punkt_span *punkt_span(const struct punkt_work *w, size_t i)
{
    return (const struct punkt_span *)(const void *)w->spans.data + i;
}

/*
 * The sentences of text[0 .. n) in w->spans, none of them empty. White space between two sentences
 * and at the end belongs to none; with `keep_newlines` that between two belongs to the first, as in
 * Megatron-LM's preprocess_data.py.
 */
void punkt_split(const struct punkt *p, bool keep_newlines, const char *text, size_t n,
                 struct punkt_work *w);

#endif
