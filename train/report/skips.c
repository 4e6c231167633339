/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/skips.h"

const char *skips_name(enum skip s)
{
    static const char *const names[SKIPS] = {"skipped_in_a_row", "spikes_in_a_row",
                                             "skipped_since_log", "nan_since_log", "rewinds"};
    return names[s];
}

void skips_step(struct skips *s, bool skipped, bool spike, bool nan)
{
    s->n[SKIP_IN_A_ROW] = skipped ? s->n[SKIP_IN_A_ROW] + 1 : 0;
    s->n[SKIP_SPIKES] = skipped ? s->n[SKIP_SPIKES] + spike : 0;
    s->n[SKIP_LINE] += skipped;
    s->n[SKIP_NAN] += nan;
}

void skips_line(struct skips *s)
{
    s->n[SKIP_LINE] = s->n[SKIP_NAN] = 0;
}

void skips_rewind(struct skips *s)
{
    *s = (struct skips){.n[SKIP_REWINDS] = s->n[SKIP_REWINDS] + 1};
}
