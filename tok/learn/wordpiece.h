/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_WORDPIECE_H
#define TOK_LEARN_WORDPIECE_H

/*
 * Cuts texts into the words of BERT's models, for learn_count: a `learn_split` whose argument is a
 * struct learn_wordpiece. What comes out is what BertNormalizer and then BertPreTokenizer of
 * tokenizers 0.23.3 give. White space separates words, so lines may come together
 * (learn_count_join_lines). Bytes that are no UTF-8 count as U+FFFD, and are counted.
 */

#include <stdbool.h>

#include "tok/learn/count.h"

/* Options of BertNormalizer. */
struct learn_bert {
    bool clean;   /* controls go, white space becomes a blank */
    bool chinese; /* ideographs are words by themselves */
    bool accents; /* go */
    bool lower;
};

struct learn_wordpiece;

struct learn_wordpiece *learn_wordpiece_create(const struct learn_bert *o, int threads);
void learn_wordpiece_destroy(struct learn_wordpiece *w);
learn_split learn_wordpiece_split;
uint64_t learn_wordpiece_invalid(const struct learn_wordpiece *w);

#endif
