/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/resumed.h"

#include <string.h>

#include "base/cli/opt_row.h"
#include "tests/t.h"
#include "train/options/options.h"

/* How many of the lists' entries are the option. */
static int entries_of(const char *name)
{
    int n = 0;
    for (int k = 0; k < RESUMED_KINDS; k++)
        for (const char *const *at = resumed_options[k]; *at; at++)
            n += !strcmp(*at, name);
    return n;
}

static bool is_option(const struct opt *o, int row)
{
    return opt_role(&train_table, row) == OPT_ROLE_VALUE && !opt_absent(&train_table, row) &&
           opt_for_verb(o, VERB_RUN);
}

static void every_option_of_run_is_in_one_list(void)
{
    const struct opt *o;
    int options = 0, wrong = 0;
    for (int row = 0; (o = opt_row(&train_table, row)) != NULL; row++) {
        if (!is_option(o, row))
            continue;
        options++;
        if (entries_of(o->name) == 1)
            continue;
        printf("# --%s is in %d lists of train/options/resumed.c, expected 1\n", o->name,
               entries_of(o->name));
        wrong++;
    }
    printf("# %d options\n", options);
    T_EQ(wrong, 0);
    T_CHECK(options > 200);
}

static void every_entry_is_an_option_of_run(void)
{
    for (int k = 0; k < RESUMED_KINDS; k++)
        for (const char *const *at = resumed_options[k]; *at; at++) {
            int row = opt_find(&train_table, VERB_RUN, *at, strlen(*at));
            if (row == NO_ROW || strcmp(opt_row(&train_table, row)->name, *at) != 0 ||
                !is_option(opt_row(&train_table, row), row))
                t_fail(__FILE__, __LINE__, "train run has no option --%s", *at);
        }
}

T_MAIN(T_CASE(every_option_of_run_is_in_one_list), T_CASE(every_entry_is_an_option_of_run))
