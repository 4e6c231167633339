/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLES_STORIES_SOURCE_H
#define SAMPLES_STORIES_SOURCE_H

/*
 * The lists and rules of the tables (cast.txt, words.txt, ...; their notation is in
 * samples/README.md), found by name, their items weighted.
 *
 * Set up once and constant after that: any thread may read. A mistake in the tables is our bug; it
 * aborts with the text at its place.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stretch of a table's text; not ended by NUL. */
struct span {
    const char *text;
    size_t len;
};

struct source {
    struct span name;
    bool is_rule, is_even;
    size_t n_items;
    struct span *items;
    uint32_t *sums; /* of the weights of items [0..i] */
};

struct sources {
    size_t n;
    struct source *at; /* by name */
};

/* Reads the tables that the program was built with. sources_finish is due. */
void sources_init(struct sources *s);
void sources_finish(struct sources *s);

/* The list or rule of this name. */
const struct source *sources_find(const struct sources *s, struct span name);

/* The item at x of the scale of weights: x is below source_weight. */
size_t source_pick(const struct source *s, uint32_t x);
uint32_t source_weight(const struct source *s);

/* The first item of a list whose first column is `word`, or NULL. */
const struct span *source_find_item(const struct source *s, struct span word);

/* Column `column` of an item. */
struct span span_column(struct span item, size_t column);

struct span span_of(const char *text);
bool span_equal(struct span a, struct span b);

#endif
