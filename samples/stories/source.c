// SPDX-License-Identifier: Apache-2.0
#include "samples/stories/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples/stories/grammar.h"

/*
 * Of a long list COMMON_ITEMS and some more are common; the others together are drawn once in
 * TAIL_SHARE times. So thousands of words occur in a few megabytes and yet make up little of any
 * page, as in books, only steeper: a small vocabulary of word pieces can hold what is common.
 */
enum {
    COMMON_ITEMS = 6,
    COMMON_DIVISOR = 32,
    TAIL_SHARE = 26,
    ZIPF_OFFSET = 3,
    EVEN_OFFSET = 12,
};

_Noreturn void table_bug(const char *what, struct span where)
{
    fprintf(stderr, "stories: bug in the tables: %s: '%.*s'\n", what, (int)where.len, where.text);
    abort();
}

struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

int span_compare(const char *name, struct span s)
{
    int order = strncmp(name, s.text, s.len);
    return order != 0 ? order : name[s.len] != '\0';
}

struct span span_column(struct span item, size_t column)
{
    struct span rest = item;
    for (;;) {
        const char *slash = memchr(rest.text, '/', rest.len);
        size_t len = slash == NULL ? rest.len : (size_t)(slash - rest.text);
        if (column == 0) {
            return (struct span){rest.text, len};
        }
        if (slash == NULL) {
            table_bug("the item has no such column", item);
        }
        rest.text += len + 1;
        rest.len -= len + 1;
        column--;
    }
}

static size_t count_columns(struct span item)
{
    size_t n = 1;
    for (size_t i = 0; i < item.len; i++) {
        n += item.text[i] == '/';
    }
    return n;
}

// Weights fall like 1 / (i + offset), as the frequencies of words do.
static bool source_weigh(struct source *source, bool even)
{
    size_t n = source->n_items;
    source->sums = malloc((n + 1) * sizeof *source->sums);
    if (source->sums == NULL) {
        return false;
    }
    size_t common = COMMON_ITEMS + n / COMMON_DIVISOR;
    if (even || common > n) {
        common = n;
    }
    size_t offset = even ? EVEN_OFFSET : ZIPF_OFFSET;
    uint32_t sum = 0;
    for (size_t i = 0; i < common; i++) {
        sum += (uint32_t)((1U << 24) / (i + offset));
        source->sums[i] = sum;
    }
    uint32_t rare = common < n ? sum / (uint32_t)(TAIL_SHARE * (n - common)) : 0;
    for (size_t i = common; i < n; i++) {
        sum += rare;
        source->sums[i] = sum;
    }
    return true;
}

static bool source_add_list(struct source *source, const struct story_list *list, bool even)
{
    source->name = list->name;
    source->items = malloc((strlen(list->items) / 2 + 1) * sizeof *source->items);
    if (source->items == NULL) {
        return false;
    }
    for (const char *at = list->items; *at != '\0';) {
        struct span item = {at, strcspn(at, " ")};
        if (item.len == 0) {
            table_bug("an item without letters", span_of(list->name));
        }
        source->items[source->n_items++] = item;
        if (count_columns(item) != count_columns(source->items[0])) {
            table_bug("an item with fewer or more columns", item);
        }
        at += item.len + (at[item.len] == ' ');
    }
    return source_weigh(source, even);
}

static bool add_rule(struct source *source, const struct story_rule *rule)
{
    source->name = rule->name;
    source->is_rule = true;
    while (rule->texts[source->n_items] != NULL) {
        source->n_items++;
    }
    source->items = malloc((source->n_items + 1) * sizeof *source->items);
    if (source->items == NULL) {
        return false;
    }
    for (size_t i = 0; i < source->n_items; i++) {
        source->items[i] = span_of(rule->texts[i]);
    }
    return source_weigh(source, true);
}

static bool add_table(struct sources *sources, const struct story_table *table)
{
    if (sources->n + table->n_lists + table->n_even_lists + table->n_rules > MAX_SOURCES) {
        table_bug("too many lists and rules", span_of(""));
    }
    bool fine = true;
    for (size_t i = 0; fine && i < table->n_lists; i++) {
        fine = source_add_list(&sources->at[sources->n++], &table->lists[i], false);
    }
    for (size_t i = 0; fine && i < table->n_even_lists; i++) {
        fine = source_add_list(&sources->at[sources->n++], &table->even_lists[i], true);
    }
    for (size_t i = 0; fine && i < table->n_rules; i++) {
        fine = add_rule(&sources->at[sources->n++], &table->rules[i]);
    }
    return fine;
}

static int compare_sources(const void *a, const void *b)
{
    const struct source *left = a;
    const struct source *right = b;
    return strcmp(left->name, right->name);
}

bool sources_init(struct sources *sources)
{
    static const struct story_table *const tables[] = {
        &story_people, &story_words, &story_deeds, &story_scenes, &story_plots, &story_town,
    };
    memset(sources, 0, sizeof *sources);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (!add_table(sources, tables[i])) {
            return false;
        }
    }
    qsort(sources->at, sources->n, sizeof *sources->at, compare_sources);
    for (size_t i = 1; i < sources->n; i++) {
        if (compare_sources(&sources->at[i - 1], &sources->at[i]) == 0) {
            table_bug("two of this name", span_of(sources->at[i].name));
        }
    }
    return true;
}

void sources_finish(struct sources *sources)
{
    for (size_t i = 0; i < sources->n; i++) {
        free(sources->at[i].items);
        free(sources->at[i].sums);
    }
    sources->n = 0;
}

const struct source *sources_find(const struct sources *sources, struct span name)
{
    size_t low = 0;
    size_t high = sources->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = span_compare(sources->at[mid].name, name);
        if (order == 0) {
            return &sources->at[mid];
        }
        if (order < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    table_bug("no list or rule of this name", name);
}

uint32_t source_weight(const struct source *source)
{
    return source->sums[source->n_items - 1];
}

size_t source_pick(const struct source *source, uint32_t x)
{
    size_t low = 0;
    size_t high = source->n_items - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (source->sums[mid] > x) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}
