/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_WORDPIECE_H
#define TOK_LEARN_WORDPIECE_H

/*
 * Splits texts into the words of BERT's models, for learn_count: a `learn_split` whose argument is
 * a struct learn_wordpiece. The result is that of BertNormalizer followed by BertPreTokenizer of
 * tokenizers 0.23.3. White space separates words, so lines may be joined (learn_count_join_lines).
 * Invalid UTF-8 becomes U+FFFD, and its bytes are counted.
 */

#include <stdbool.h>

#include "tok/learn/count.h"

/* Options of BertNormalizer. */
struct learn_bert {
    bool clean;   /* remove control characters; white space becomes a space */
    bool chinese; /* ideographs are words by themselves */
    bool accents; /* strip accents */
    bool lower;
};

struct learn_wordpiece;

struct learn_wordpiece *learn_wordpiece_create(const struct learn_bert *o, int threads);
void learn_wordpiece_destroy(struct learn_wordpiece *w);
learn_split learn_wordpiece_split;
uint64_t learn_wordpiece_invalid(const struct learn_wordpiece *w);

#endif
