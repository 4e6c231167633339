/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_BPE_H
#define TOK_LEARN_BPE_H

/*
 * Byte pair encoding as Hugging Face's BpeTrainer learns it (tokenizers 0.23): special tokens
 * first, then the alphabet by code point, then one symbol for each merge; the most frequent pair
 * goes first, of equal ones the pair with the smaller ids. Counts have 64 bits where the reference
 * has 32. Its order is random in two places, where ours is fixed: of characters with equal counts
 * at the cut of limit_alphabet those with smaller code points are kept (of the bytes that always
 * get a symbol, those that occur more often), and the symbols that a continuing prefix or an end
 * suffix adds follow the alphabet, by code point. A pair whose string is an existing symbol with
 * another number of characters (a prefix that occurs in the text itself) is skipped.
 */

#include "tok/learn/count.h"
#include "tok/learn/vocab.h"

struct learn_bpe_options {
    bool bytes;          /* words are bytes, spelled in GPT-2's byte alphabet; else characters */
    bool whole_alphabet; /* all 256 bytes get a symbol, even if they do not occur */
    uint64_t vocab_size;
    uint64_t min_frequency;
    uint64_t max_token_length;   /* symbols are shorter than this many characters; 0: any */
    uint64_t limit_alphabet;     /* 0: no limit */
    const char *initial;         /* characters that always get a symbol; UTF-8, may be NULL */
    uint64_t floor;              /* learn_rule's; 0: estimated from the words */
    const char *prefix, *suffix; /* may be NULL */
    const char *const *special;
    size_t nspecial;
    /* Called after each merge; may be NULL. */
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
};

/* Most bytes of memory per byte of a word. */
enum { LEARN_BPE_COST = 11 };

/* Fills `v`, which the caller finishes in any case. Frees the words on the way. */
int learn_bpe(const struct learn_bpe_options *o, struct learn_words *w, struct learn_vocab *v,
              struct err *e);

#endif
