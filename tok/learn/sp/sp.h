/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_SP_H
#define TOK_LEARN_SP_SP_H

/*
 * What every trainer of SentencePiece models begins with, as trainer_interface.cc of 0.2.2: reads
 * sentences (too long ones and those with U+2585 are left out, a sample may be taken), normalizes
 * them, replaces the special pieces in them by a boundary, splits them at white space if the
 * trainer needs words, and counts; then chooses the characters that get a piece of their own, and
 * replaces all others, and boundaries, by U+2585.
 *
 * A sample (input_sentence_size with shuffling) is random in the library; ours is fixed. Equal
 * sentences are counted once. The result is the same for any number of threads, and for any memory
 * limit unless rare words had to be left out, which `counted` reports.
 *
 * One thread calls; work goes to the pool.
 */

#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/thread/pool.h"
#include "tok/learn/count.h"
#include "tok/learn/sp/meta.h"
#include "tok/learn/sp/library_trainer.h"

/* Stands for characters without a piece, and for boundaries. */
#define LEARN_UNKNOWN 0x2585u
#define LEARN_SPACE 0x2581u

enum { LEARN_CHARS = 0x110000 };

/* The normalizer's rules. */
struct learn_rules {
    char *name;          /* "nmt_nfkc" */
    struct buf charsmap; /* compiled; empty for identity */
};

/* Gets them from the library once, in a child process; identity does not need that. */
int learn_rules_init(struct learn_rules *r, const struct sp_train_options *o, struct err *e);
void learn_rules_finish(struct learn_rules *r);

enum learn_sp_cut {
    LEARN_WHOLE,      /* sentences */
    LEARN_WORDS,      /* words, split at white space according to the options */
    LEARN_PLAIN_WORDS /* words with one mark in front, whatever the options */
};

struct learn_sp_options {
    const struct sp_train_options *train;
    const struct sp_train_input *in;
    const struct learn_meta *meta;
    const struct learn_rules *rules;
    enum learn_sp_cut cut;
    struct pool *pool;
    uint64_t memory, cost; /* for learn_count_create and learn_count_finish */
    const char *beside;
};

/*
 * Distinct texts as code points: text i is ch[start[i] .. start[i + 1]). Whole sentences are in the
 * library's order (of equal ones the first counts), words by falling count, then by code points.
 */
struct learn_sentences {
    uint32_t *ch;
    uint64_t *start; /* n + 1 */
    uint64_t *count;
    size_t n;
};

struct learn_char {
    uint32_t c;
    uint64_t count;
};

struct learn_sp {
    struct learn_sentences text;
    struct learn_char *required; /* by falling count, then by code point */
    size_t nrequired;
    struct sp_train_report report;
    struct learn_report counted;
    uint64_t invalid; /* invalid UTF-8 bytes, replaced by U+FFFD */
};

/* Fills `ret`, which the caller finishes in any case. ERR_DATA for input without sentences. */
int learn_sp_load(const struct learn_sp_options *o, struct learn_sp *ret, struct err *e);
void learn_sp_finish(struct learn_sp *s);
void learn_sentences_finish(struct learn_sentences *s);

/*
 * The second half: from words in UTF-8 to required characters and code points. `count` is by
 * character, and includes words that were left out (a NUL counts as nothing). `rank`, if not NULL,
 * is the order of the texts, which otherwise are sorted. Frees the words.
 */
int learn_sp_chars(const struct learn_sp_options *o, const uint64_t *count, struct learn_words *w,
                   const uint64_t *rank, struct learn_sp *ret, struct err *e);

/* Its last step: words into sorted code points, with unknown characters replaced by U+2585. */
int learn_sp_order(struct pool *pool, const struct learn_words *w, const uint64_t *rank,
                   const bool *known, struct learn_sentences *ret, struct err *e);

#endif
