/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SENTENCE_SENTENCES_H
#define PREP_SENTENCE_SENTENCES_H

/*
 * Documents cut into sentences: what `prep build --split-sentences` does. The stops . ? ! are
 * judged by prep/sentence/punkt.h, either with what NLTK knows of a language (a folder of its
 * punkt_tab; the sentences are NLTK's own then), or with the short lists of language.c. With the
 * latter what ends sentences in other scripts is a stop, too: those of Chinese and Japanese also
 * without white space behind, and not within brackets that close again.
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
 * `lang`: a name or its code of two letters; any name if there is a `model`, a folder of punkt_tab
 * or one that holds a folder of that name. ERR_USAGE lists the names; of the model ERR_IO or
 * ERR_DATA. keep_newlines: white space between two sentences belongs to the first.
 */
int sentences_create(const char *lang, const char *model, bool keep_newlines,
                     struct sentences **ret, struct err *e);
void sentences_destroy(struct sentences *s); /* takes NULL */

/* The language in full, and the digest of the model's files ("" without one). */
const char *sentences_language(const struct sentences *s);
const char *sentences_digest(const struct sentences *s);
bool sentences_keep(const struct sentences *s); /* newlines */

/* Megatron-LM's tool splits a text by pieces of a million characters: bytes of the first one. */
enum { SENTENCES_PIECE = 1000000 };
size_t sentences_piece(const char *text, size_t n);

/* The sentences of one piece, in w->spans; none is empty. */
void sentences_split(const struct sentences *s, const char *text, size_t n, struct punkt_work *w);

/* ---- language.c ------------------------------------------------------------------------ */

struct sentence_language {
    const char *name, *code;
    const char *abbreviations; /* with spaces between, without the full stop at their ends */
    const char *starters;      /* words that begin sentences and are written small within them */
    const char *months;        /* what follows an ordinal with a full stop */
};

extern const struct sentence_language sentence_languages[]; /* up to a name of NULL */

#endif
