/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/wandb.h"

#include <stddef.h>

/* In single quotes for the shell. */
static void add_quoted(struct buf *out, const char *text)
{
    buf_addc(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            buf_adds(out, "'\\''");
        else
            buf_addc(out, *text);
    buf_addc(out, '\'');
}

void wandb_command(const struct wandb_names *w, const char *metrics, struct buf *out)
{
    const struct {
        const char *variable, *value;
    } names[] = {{"WANDB_PROJECT", w->project},
                 {"WANDB_NAME", w->name},
                 {"WANDB_ENTITY", w->entity},
                 {"WANDB_RUN_GROUP", w->group}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].value) {
            buf_addf(out, "%s=", names[i].variable);
            add_quoted(out, names[i].value);
            buf_addc(out, ' ');
        }
    buf_adds(out, "python3 -c 'import json, sys, wandb; run = wandb.init(); "
                  "[run.log(r, step=r[\"iteration\"]) for r in map(json.loads, "
                  "open(sys.argv[1]))]; run.finish()' ");
    add_quoted(out, metrics);
}
