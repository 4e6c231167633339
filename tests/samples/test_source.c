// SPDX-License-Identifier: Apache-2.0
#include "samples/stories/source.h"
#include "tests/t.h"

static void weights_fall_along_a_list(void)
{
    struct sources s;
    sources_init(&s);
    const struct source *even = sources_find(&s, span_of("names"));
    const struct source *list = sources_find(&s, span_of("jobs"));
    T_EQ(source_pick(even, 0), 0);
    T_EQ(source_pick(even, source_weight(even) - 1), even->n_items - 1);
    T_CHECK(even->is_even &&
            even->sums[0] < 12 * (source_weight(even) - even->sums[even->n_items - 2]));
    T_CHECK(!list->is_even && list->n_items > 100);
    T_CHECK(list->sums[0] > 100 * (source_weight(list) - list->sums[list->n_items - 2]));
    T_EQ(source_pick(list, list->sums[0] - 1), 0);
    T_EQ(source_pick(list, list->sums[0]), 1);
    sources_finish(&s);
}

static void items_are_found_by_their_first_column(void)
{
    struct sources s;
    sources_init(&s);
    const struct source *names = sources_find(&s, span_of("names"));
    const struct span *found = source_find_item(names, span_of("Tom"));
    T_CHECK(found && span_equal(span_column(*found, 1), span_of("he")));
    T_CHECK(found && span_equal(span_column(*found, 2), span_of("boy")));
    T_CHECK(!source_find_item(names, span_of("he")));
    T_CHECK(!source_find_item(names, span_of("To")));
    sources_finish(&s);
}

static void a_rule_keeps_its_texts(void)
{
    struct sources s;
    sources_init(&s);
    const struct source *how = sources_find(&s, span_of("says_how"));
    T_CHECK(how->is_rule && how->is_even);
    T_EQ(how->items[0].len, 0);
    T_CHECK(span_equal(how->items[how->n_items - 1], span_of(" in @ [voices] voice")));
    sources_finish(&s);
}

T_MAIN(T_CASE(weights_fall_along_a_list), T_CASE(items_are_found_by_their_first_column),
       T_CASE(a_rule_keeps_its_texts))
