/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads names of options, the first word of each line, and prints for `train run` which table has
 * each: "used", "without effect", "rejected" or "nowhere", or "twice". With the argument `foreign`,
 * of all names that are no options of train. With `marks` the names by which --compat knows a
 * version, each after it: whether that is the "name" of an option here, an "alias" of one,
 * "foreign", or counts "beside" another only.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli/opt_row.h"
#include "train/options/options.h"

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

static void print_mark(const char *dialect, const char *mark)
{
    int row = opt_find(&train_table, VERB_RUN, mark, strlen(mark));
    bool ours = row >= 0 && opt_for_verb(opt_row(&train_table, row), VERB_RUN);
    bool name = ours && !strcmp(opt_row(&train_table, row)->name, mark);
    const char *is = name                                             ? "name"
                     : ours                                           ? "alias"
                     : opts_foreign(&train_table, mark, strlen(mark)) ? "foreign"
                                                                      : "nowhere";
    printf("%s %s %s\n", dialect, mark, is);
}

static int print_marks(void)
{
    for (const struct opt_dialect *d = train_table.dialect; d->name; d++)
        for (int i = 0; d->mark && d->mark[i][0]; i++) {
            print_mark(d->name, d->mark[i][0]);
            if (d->mark[i][1])
                printf("%s %s beside\n", d->name, d->mark[i][1]);
        }
    return 0;
}

int main(int argc, char **argv)
{
    char line[512];
    if (argc == 2 && !strcmp(argv[1], "marks"))
        return print_marks();
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
