/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_SENTENCE_PUNKT_WORDS_H
#define PREP_SENTENCE_PUNKT_WORDS_H

/* Shared by punkt.c (decisions) and punkt_words.c (facts about words and characters). */

#include "prep/sentence/punkt.h"

#define PUNKT_NUMBER "##number##"

/* Appends w[0 .. n) in lower case as by Python's str.lower. */
void punkt_lower(const struct punkt *p, const char *w, size_t n, struct buf *ret);

#endif
