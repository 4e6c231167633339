/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_CORPUS_STATS_H
#define TOK_INSPECT_CORPUS_STATS_H

/*
 * What a tokenizer makes of texts: how well it compresses, which tokens it never uses or cannot
 * reach, and what does not come back when its ids are decoded.
 *
 * One thread. The tokenizer is the caller's and outlives the survey.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "tok/tokenizer/tokenizer.h"

/* Sums over the texts of a file, or of a language. */
struct corpus_stats_group {
    const char *name;
    uint64_t docs, bytes, chars, words, tokens, unknown; /* words: between white space */
    uint64_t lost;                                       /* documents that do not come back */
};

/* A text that does not come back: where, and some characters there before and after. */
struct corpus_stats_loss {
    uint64_t doc;
    size_t at;
    char *before, *after;
};

enum { CORPUS_STATS_LOSSES = 10, CORPUS_STATS_GROUPS = 1000 };

struct corpus_stats {
    const struct tokenizer *t;
    struct tok_work *work;
    struct tok_ids ids;
    struct buf text;
    struct arena arena;
    struct corpus_stats_group
        *group; /* in the order in which they were met; the last may be "others" */
    size_t ngroups, last;
    uint64_t docs;
    uint64_t *count;     /* of each id */
    uint64_t *character; /* of each code point */
    struct corpus_stats_loss loss[CORPUS_STATS_LOSSES];
    size_t nlosses;
};

void corpus_stats_init(struct corpus_stats *s, const struct tokenizer *t);
void corpus_stats_finish(struct corpus_stats *s);

int corpus_stats_add(struct corpus_stats *s, const char *group, const char *text, size_t n,
                     struct err *e);

/* Does a text come back from its ids? */
int corpus_stats_returns(struct corpus_stats *s, const char *text, size_t n, bool *ret,
                         bool *ret_unknown, struct err *e);

/* Characters of the texts that do not come back between two letters, the frequent ones first. */
struct corpus_stats_char {
    uint32_t c;
    uint64_t count;
    bool unknown; /* else it comes back as another, or not at all */
};
int corpus_stats_lost_characters(struct corpus_stats *s, struct corpus_stats_char **ret,
                                 size_t *ret_n, struct err *e);

/*
 * Tokens that their own text never gives. `hidden` says which ids text is not meant to become
 * (special, control, byte and unknown ones). The text of a token is tried alone, behind U+E000 and
 * behind letters; the parts of characters, which are no text, are listed apart.
 */
struct corpus_stats_reach {
    int32_t *id; /* those that are not reached */
    size_t n, tried;
    int32_t *part; /* parts of characters */
    size_t parts;
};
int corpus_stats_reach(struct corpus_stats *s, const bool *hidden, struct corpus_stats_reach *ret,
                       struct err *e);

#endif
