/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/core/log.h"
#include "base/cli/stdout.h"
#include "base/core/program.h"
#include "tok/cmd.h"
#include "tok/edit/recipe.h"

#define NAME_FUNCTION(verb, function) [CMD_VERB_##verb] = (function),

static int main_run(struct opts *o, struct cli *c, struct err *e)
{
    static int (*const cmd[])(const struct cli *, struct err *) = {CMD_VERB_LIST(NAME_FUNCTION)};
    BUG_ON(o->verb < 0, "no verb");
    log_set_level(c->common.quiet ? LOG_WARN : c->common.verbose ? LOG_DEBUG : LOG_INFO);
    c->file = o->file;
    c->nfile = o->nfile;
    c->opts = o;
    c->verb = tok_table.verb[o->verb].name;
    return cmd[o->verb](c, e);
}

int main(int argc, char **argv)
{
    struct opts o;
    struct cli c = {0};
    struct err e = {0};
    stdio_begin(true);
    int code = opts_init(&o, &tok_table, &c, argc, argv, &e);
    if (!code && o.verb == CMD_VERB_TRAIN)
        code = cmd_learn_defaults(&o, &c, &e);
    if (code)
        return log_err(&e);
    if (!opts_answer(&o, stdout))
        code = main_run(&o, &c, &e);
    opts_finish(&o);
    if (code && e.msg[0])
        return log_err(&e);
    return stdout_finish(&e) ? log_err(&e) : code; /* a code without a sentence is a finding */
}
