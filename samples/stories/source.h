// SPDX-License-Identifier: Apache-2.0
/*
 * What one can draw from: the lists and rules of the tables, found by name, their items weighted.
 *
 * Set up once and constant after that: any thread may read. A fault in the tables is our bug; it
 * aborts with its place.
 */
#ifndef SAMPLES_STORIES_SOURCE_H
#define SAMPLES_STORIES_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A stretch of a table's text; not ended by NUL.
struct span {
    const char *text;
    size_t len;
};

struct source {
    const char *name;
    bool is_rule;
    size_t n_items;
    struct span *items;
    uint32_t *sums; // of the weights of items [0..i]
};

enum { MAX_SOURCES = 512 };

struct sources {
    size_t n;
    struct source at[MAX_SOURCES]; // by name
};

// Takes all tables. False when memory is short; sources_finish is due in any case.
bool sources_init(struct sources *sources);
void sources_finish(struct sources *sources);

// The list or rule of this name.
const struct source *sources_find(const struct sources *sources, struct span name);

// The item at x of the scale of weights: x lies below source_weight.
size_t source_pick(const struct source *source, uint32_t x);
uint32_t source_weight(const struct source *source);

// Column `column` of an item.
struct span span_column(struct span item, size_t column);

// Like strcmp.
int span_compare(const char *name, struct span s);
struct span span_of(const char *text);

_Noreturn void table_bug(const char *what, struct span where);

#endif
