/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/stories/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/err.h"

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

extern const char stories_tables[]; /* all the tables, one after the other: made by meson.build */

struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

bool span_equal(struct span a, struct span b)
{
    return a.len == b.len && !memcmp(a.text, b.text, a.len);
}

struct span span_column(struct span item, size_t column)
{
    for (;;) {
        const char *slash = memchr(item.text, '/', item.len);
        size_t len = slash ? (size_t)(slash - item.text) : item.len;
        if (!column--)
            return (struct span){item.text, len};
        BUG_ON(!slash, "stories: '%.*s' has too few columns", (int)item.len, item.text);
        item = (struct span){slash + 1, item.len - len - 1};
    }
}

static size_t count_columns(struct span item)
{
    size_t n = 1;
    for (size_t i = 0; i < item.len; i++)
        n += item.text[i] == '/';
    return n;
}

/* ---- reading the tables ---- */

/* "list NAME", "even NAME" or "rule NAME" begins a paragraph. */
static struct source *begin_source(struct sources *s, struct span line)
{
    static const size_t kind_len = sizeof("list ") - 1;
    bool list = line.len > kind_len && !memcmp(line.text, "list ", kind_len),
         even = line.len > kind_len && !memcmp(line.text, "even ", kind_len),
         rule = line.len > kind_len && !memcmp(line.text, "rule ", kind_len);
    BUG_ON(!list && !even && !rule, "stories: '%.*s' is neither a list nor a rule", (int)line.len,
           line.text);
    s->at = array_more(s->at, s->n, sizeof(*s->at));
    s->at[s->n] = (struct source){
        .name = {line.text + kind_len, line.len - kind_len}, .is_rule = rule, .is_even = !list};
    return &s->at[s->n++];
}

static void add_item(struct source *s, struct span item)
{
    s->items = array_more(s->items, s->n_items, sizeof(*s->items));
    s->items[s->n_items++] = item;
    BUG_ON(!s->is_rule && count_columns(item) != count_columns(s->items[0]),
           "stories: '%.*s' has other columns than the items before it", (int)item.len, item.text);
}

/* The items of a list's line; the text that begins in a rule's line, or more of the last one. */
static void add_line(struct source *s, struct span line)
{
    const char *end = line.text + line.len;
    if (s->is_rule && line.text[0] == '-') {
        size_t mark = line.len > 1 ? 2 : 1;
        add_item(s, (struct span){line.text + mark, line.len - mark});
        return;
    }
    BUG_ON(line.text[0] != ' ' || (s->is_rule && !s->n_items), "stories: '%.*s' is out of place",
           (int)line.len, line.text);
    if (s->is_rule) {
        struct span *last = &s->items[s->n_items - 1];
        last->len = (size_t)(end - last->text);
        return;
    }
    for (const char *at = line.text; (at += strspn(at, " ")) < end; at += strcspn(at, " \n"))
        add_item(s, (struct span){at, strcspn(at, " \n")});
}

/* Weights fall like 1 / (i + offset), as the frequencies of words do. */
static void weigh(struct source *s)
{
    size_t n = s->n_items, common = COMMON_ITEMS + n / COMMON_DIVISOR;
    size_t offset = s->is_even ? EVEN_OFFSET : ZIPF_OFFSET;
    BUG_ON(!n, "stories: %.*s is empty", (int)s->name.len, s->name.text);
    s->sums = mem_new(n, sizeof(*s->sums));
    if (s->is_even || common > n)
        common = n;
    uint32_t sum = 0;
    for (size_t i = 0; i < common; i++)
        s->sums[i] = sum += (uint32_t)((1U << 24) / (i + offset));
    uint32_t rare = common < n ? sum / (uint32_t)(TAIL_SHARE * (n - common)) : 0;
    for (size_t i = common; i < n; i++)
        s->sums[i] = sum += rare;
}

/* By length first. */
static int compare_names(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return memcmp(x->text, y->text, x->len);
}

static int compare_sources(const void *a, const void *b)
{
    return compare_names(&((const struct source *)a)->name, &((const struct source *)b)->name);
}

void sources_init(struct sources *s)
{
    struct source *now = NULL;
    *s = (struct sources){0};
    for (const char *at = stories_tables; *at; at += strcspn(at, "\n") + 1) {
        struct span line = {at, strcspn(at, "\n")};
        if (!line.len)
            now = NULL;
        else if (at[0] != '#' && now)
            add_line(now, line);
        else if (at[0] != '#')
            now = begin_source(s, line);
    }
    qsort(s->at, s->n, sizeof(*s->at), compare_sources);
    for (size_t i = 0; i < s->n; i++) {
        BUG_ON(i && !compare_sources(&s->at[i - 1], &s->at[i]), "stories: there are two %.*s",
               (int)s->at[i].name.len, s->at[i].name.text);
        weigh(&s->at[i]);
    }
}

void sources_finish(struct sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->at[i].items);
        free(s->at[i].sums);
    }
    free(s->at);
    *s = (struct sources){0};
}

/* ---- looking things up ---- */

const struct source *sources_find(const struct sources *s, struct span name)
{
    const struct source key = {.name = name};
    const struct source *found = bsearch(&key, s->at, s->n, sizeof(*s->at), compare_sources);
    BUG_ON(!found, "stories: there is no list or rule '%.*s'", (int)name.len, name.text);
    return found;
}

uint32_t source_weight(const struct source *s)
{
    return s->sums[s->n_items - 1];
}

size_t source_pick(const struct source *s, uint32_t x)
{
    size_t low = 0, high = s->n_items - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (s->sums[mid] > x)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

const struct span *source_find_item(const struct source *s, struct span word)
{
    for (size_t i = 0; i < s->n_items; i++)
        if (span_equal(span_column(s->items[i], 0), word))
            return &s->items[i];
    return NULL;
}
