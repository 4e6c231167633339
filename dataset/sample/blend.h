/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_BLEND_H
#define DATASET_SAMPLE_BLEND_H

/*
 * Several datasets as one, by the rules of Megatron core (core_v0.12.3): how the user names them,
 * how many samples each must have, and which sample of which dataset is at each place. Reads no
 * files but the lists; blend_set.h adds the data. Numbers are bit for bit numpy's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "dataset/index/split.h"

/* Prefixes, all with weights or none. */
struct blend_list {
    char **prefix;
    double *weight; /* as given; NULL: none */
    size_t n;       /* 0: nothing was named */
};

/*
 * "W PREFIX W PREFIX ..." or "PREFIX PREFIX ...": there are weights if every other word is a
 * number. ERR_USAGE names `who` ("--data-path") if only some are, or one is not above 0. In either
 * case, and for the other functions too, finish `ret`.
 */
int blend_list_words(const char *who, const char *const *word, size_t n, struct blend_list *ret,
                     struct err *e);

/* Whether a word would be a weight at the place of one. */
bool blend_is_number(const char *word);

/* The same for the words of a file, separated by white space. */
int blend_list_file(const char *path, struct blend_list *ret, struct err *e);

/* {"train": [words] or "words", "valid": .., "test": ..}; a part that is absent or null has no
 * list, any other name is ERR_DATA. */
int blend_list_parts(const char *path, struct blend_list ret[PARTS], struct err *e);
void blend_list_finish(struct blend_list *l);

/* Divides by numpy's sum. */
void blend_normalize(const double *weight, size_t n, double *ret);

/* Samples of a source that N samples of the blend take; and how many to build of it, slightly more.
 */
uint64_t blend_target(uint64_t samples, double weight);
uint64_t blend_margin(uint64_t target);

/* The same before core 0.11: divided by the sum from left to right, and rounded once. */
void blend_normalize_old(const double *weight, size_t n, double *ret);
uint64_t blend_margin_old(uint64_t samples, double weight);

/*
 * Where each sample comes from: the source that is furthest behind its share, the first on a tie.
 * `which` and `sample` may be NULL; taken[n] receives how many of each were taken. `weight` is
 * normalised; blend_weave_all takes count[i] samples of each source.
 */
void blend_weave(const double *weight, size_t n, uint64_t size, int16_t *which, int64_t *sample,
                 uint64_t *taken);
void blend_weave_all(const uint64_t *count, size_t n, int16_t *which, int64_t *sample);

enum { BLEND_MAX = 32766 }; /* sources */

#endif
