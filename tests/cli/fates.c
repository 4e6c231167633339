/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names of options, the first word of each line, and prints for `train run` which table has
 * each: "used", "without effect", "rejected" or "nowhere", or "twice". With the argument `foreign`,
 * of all names that are no options of train.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli/opt_row.h"
#include "train/options.h"

static const char *fate_of_name(const char *name)
{
    size_t n = strlen(name);
    int row = opt_find(&train_table, VERB_RUN, name, n);
    if (row == -1 && opt_denies(name, n)) /* NO_ROW */
        row = opt_find(&train_table, VERB_RUN, name + 3, n - 3);
    bool ours = row >= 0 && opt_for_verb(opt_row(&train_table, row), VERB_RUN);
    const struct opt_foreign *f = opts_foreign(&train_table, name, n);
    if (ours && f)
        return "twice";
    if (ours)
        return "used";
    return !f ? "nowhere" : f->rejected ? "rejected" : "without effect";
}

int main(int argc, char **argv)
{
    char line[512];
    if (argc == 2 && !strcmp(argv[1], "foreign")) {
        for (const struct opt_foreign *f = train_table.foreign; f->name; f++)
            printf("%s %s\n", f->name, fate_of_name(f->name));
        return 0;
    }
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, " \t\n")] = 0;
        if (line[0] && line[0] != '#')
            printf("%s %s\n", line, fate_of_name(line));
    }
    return 0;
}
