/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SENTENCE_SENTENCES_H
#define PREP_SENTENCE_SENTENCES_H

/*
 * Documents split into sentences, for `prep build --split-sentences`. The stops . ? ! are decided
 * by prep/sentence/punkt.h, either with NLTK's facts about a language (a folder of its punkt_tab;
 * then the sentences are NLTK's), or with the short lists of language.c. With the lists, stops of
 * other scripts count as well: those of Chinese and Japanese also without white space after them,
 * and not within closed brackets.
 *
 * A `struct sentences` is immutable; threads share it, each with a punkt_work of its own.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"
#include "base/core/hash.h"
#include "prep/sentence/punkt.h"

struct sentences;

/*
 * `lang`: a name or its two-letter code; any name if there is a `model`, a folder of punkt_tab or
 * one that contains a folder of that name. ERR_USAGE lists the names; for the model ERR_IO or
 * ERR_DATA. keep_newlines: white space between two sentences belongs to the first.
 */
int sentences_create(const char *lang, const char *model, bool keep_newlines,
                     struct sentences **ret, struct err *e);
void sentences_destroy(struct sentences *s); /* accepts NULL */

/* The language in full, and the digest of the model's files ("" without one). */
const char *sentences_language(const struct sentences *s);
const char *sentences_digest(const struct sentences *s);
bool sentences_keep(const struct sentences *s); /* newlines */

/* Megatron-LM's tool splits texts in pieces of a million characters: the length of the first in
 * bytes. */
enum { SENTENCES_PIECE = 1000000 };
size_t sentences_piece(const char *text, size_t n);

/* The sentences of one piece, in w->spans; none is empty. */
void sentences_split(const struct sentences *s, const char *text, size_t n, struct punkt_work *w);

/* ---- language.c ------------------------------------------------------------------------ */

struct sentence_language {
    const char *name, *code;
    const char *abbreviations; /* separated by spaces, without the final full stop */
    const char *starters;      /* words that begin sentences and are lower case elsewhere */
    const char *months;        /* what follows an ordinal with a full stop */
};

extern const struct sentence_language sentence_languages[]; /* ends with a NULL name */

#endif
