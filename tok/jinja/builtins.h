/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_JINJA_BUILTINS_H
#define TOK_JINJA_BUILTINS_H

/*
 * What templates find by name: filters, with transformers' tojson, tests, and functions, with
 * transformers' raise_exception and strftime_now. filters.c has the filters of single values,
 * filters_items.c those of sequences.
 */

#include "tok/jinja/context.h"

extern const struct builtin jinja_filters[];
extern const struct builtin jinja_tests[];
extern const struct builtin jinja_functions[];

/* A function of the table's type for each filter of filters_items.c. */
#define FILTER(name)                                                                               \
    bool name(struct jinja_context *c, const struct value *self, const struct args *a,             \
              struct value *ret)
FILTER(filter_dictsort);
FILTER(filter_first);
FILTER(filter_items);
FILTER(filter_join);
FILTER(filter_last);
FILTER(filter_length);
FILTER(filter_list);
FILTER(filter_map);
FILTER(filter_max);
FILTER(filter_min);
FILTER(filter_reject);
FILTER(filter_rejectattr);
FILTER(filter_reverse);
FILTER(filter_select);
FILTER(filter_selectattr);
FILTER(filter_sort);
FILTER(filter_sum);
FILTER(filter_unique);

#endif
