/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_INSPECT_CORPUS_STATS_H
#define TOK_INSPECT_CORPUS_STATS_H

/*
 * Statistics of a tokenizer over texts: how well it compresses, which tokens it never uses or
 * cannot produce, and what is lost when its ids are decoded.
 *
 * For one thread. The tokenizer is the caller's and must outlive the statistics.
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
    uint64_t docs, bytes, chars, words, tokens, unknown; /* words: separated by white space */
    uint64_t lost;                                       /* documents that do not round-trip */
};

/* A text that does not round-trip: where, and some characters before and after. */
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
    struct corpus_stats_group *group; /* in order of appearance; the last may be "others" */
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

/* Does a text round-trip? */
int corpus_stats_returns(struct corpus_stats *s, const char *text, size_t n, bool *ret,
                         bool *ret_unknown, struct err *e);

/* Characters of the texts that do not round-trip between two letters, most frequent first. */
struct corpus_stats_char {
    uint32_t c;
    uint64_t count;
    bool unknown; /* otherwise it comes back as another, or not at all */
};
int corpus_stats_lost_characters(struct corpus_stats *s, struct corpus_stats_char **ret,
                                 size_t *ret_n, struct err *e);

/*
 * Tokens that their own text never produces. `hidden` marks ids that text is not meant to become
 * (special, control, byte and unknown ones). The text of a token is tried alone, after U+E000 and
 * after letters; parts of characters, which are not text, are listed separately.
 */
struct corpus_stats_reach {
    int32_t *id; /* tokens that are not produced */
    size_t n, tried;
    int32_t *part; /* parts of characters among them */
    size_t parts;
};
int corpus_stats_reach(struct corpus_stats *s, const bool *hidden, struct corpus_stats_reach *ret,
                       struct err *e);

#endif
