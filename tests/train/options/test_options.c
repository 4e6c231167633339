/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/options.h"

#include "base/cli/opt_row.h"
#include "tests/t.h"

static bool is_value_of_run(const struct opt *o, int row)
{
    return opt_role(&train_table, row) == OPT_ROLE_VALUE && !opt_absent(&train_table, row) &&
           opt_for_verb(o, VERB_RUN);
}

/* A row is complete: it says what a resumed run does with its option. */
static void each_option_of_run_says_what_a_resumed_run_does(void)
{
    int n[RESUMED_FREE + 1] = {0}, options = 0;
    const struct opt *o;
    for (int row = 0; (o = opt_row(&train_table, row)) != NULL; row++) {
        if (!is_value_of_run(o, row))
            continue;
        options++;
        n[o->resumed]++;
        if (o->resumed == RESUMED_UNDECIDED)
            t_fail(__FILE__, __LINE__, "the row of --%s has no .resumed", o->name);
    }
    T_CHECK(options > 200);
    T_CHECK(n[RESUMED_EQUAL] > 30 && n[RESUMED_WARNED] > 50 && n[RESUMED_SCHEDULE] > 15);
}

static void other_options_do_not(void)
{
    const struct opt *o;
    for (int row = 0; (o = opt_row(&train_table, row)) != NULL; row++)
        if (!is_value_of_run(o, row) && !opt_absent(&train_table, row) &&
            (o->resumed != RESUMED_UNDECIDED || o->local))
            t_fail(__FILE__, __LINE__, "--%s is no option of train run, which alone is resumed",
                   o->name);
}

T_MAIN(T_CASE(each_option_of_run_says_what_a_resumed_run_does), T_CASE(other_options_do_not))
