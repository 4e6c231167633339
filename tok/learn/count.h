/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_COUNT_H
#define TOK_LEARN_COUNT_H

/*
 * The words of a corpus and their counts, by several threads within a memory limit. Texts are
 * collected into batches; the threads split those into words, each into a table of its own. Tables
 * that exceed their share of the limit are written as sorted runs to an unnamed file, and merged at
 * the end. The result depends neither on the number of threads nor on the limit, with one exception
 * that is reported: if the words themselves do not fit, the rarest are left out.
 *
 * One thread calls; the functions below give work to the pool.
 */

#include <stdint.h>

#include "base/core/err.h"
#include "base/thread/pool.h"
#include "tok/text/count_table.h"

/* Distinct words, in no particular order. Word i is text[start[i] .. start[i + 1]). */
struct learn_words {
    char *text;
    uint64_t *start; /* n + 1 */
    uint64_t *count;
    size_t n;
};

void learn_words_finish(struct learn_words *w);

/*
 * Splits one text into words and adds them to `t`. Called by several threads at once, told apart by
 * `thread`. 64 bytes after the text are readable.
 */
typedef void learn_split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                         uint64_t count);

struct learn_report {
    uint64_t texts, bytes, words; /* seen; distinct words */
    uint64_t runs;                /* written to disk */
    uint64_t left_out, least;     /* distinct words with fewer than `least` occurrences left out */
};

struct learn_count;

/* `memory`: bytes, 0 for no limit. Runs are written to the folder of `beside`. The pool and all
 * arguments remain the caller's. */
struct learn_count *learn_count_create(struct pool *pool, uint64_t memory, const char *beside,
                                       learn_split *split, void *arg);
void learn_count_destroy(struct learn_count *c);

/* A text that counts `count` times. */
int learn_count_add(struct learn_count *c, const char *text, size_t n, uint64_t count,
                    struct err *e);

/* From now on several lines may be passed to the split as one text. */
void learn_count_join_lines(struct learn_count *c);

/* Whole lines, each with its line feed a text by itself. */
int learn_count_lines(struct learn_count *c, const char *text, size_t n, struct err *e);

/* Called by learn_count_finish once for each distinct word, those that are left out included, on
 * the calling thread. */
typedef void learn_each(void *arg, const char *word, size_t n, uint64_t count);
void learn_count_each(struct learn_count *c, learn_each *each, void *arg);

/* `cost`: bytes that a later step needs for each byte of a word, besides the byte itself; an eighth
 * of the memory and 8 MiB are reserved for everything else. */
int learn_count_finish(struct learn_count *c, uint64_t cost, struct learn_words *ret,
                       struct learn_report *report, struct err *e);

#endif
