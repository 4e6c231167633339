/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/cli/opt.h"
#include "tok/cmd.h"

/* The values of --truncation, or those of the tokenizer's file. */

static int from_file(const struct cli *c, const struct tok_info *i, struct tok_window *w,
                     struct err *e)
{
    if (!i->longest)
        return err_set(e, ERR_USAGE, "--truncation file: the tokenizer's file has no truncation");
    if (i->longest_second)
        return err_set(e, ERR_USAGE,
                       "--truncation file: the file's strategy is OnlySecond, which truncates the "
                       "second of two texts: name a number of ids");
    w->most = (size_t)i->longest;
    w->left = i->longest_left;
    if (c->overflow)
        w->stride = (size_t)i->longest_stride;
    return 0;
}

static int from_number(const struct cli *c, struct tok_window *w, struct err *e)
{
    char *end;
    long long n = strtoll(c->truncation, &end, 10);
    if (end == c->truncation || *end || n < 1)
        return err_set(e, ERR_USAGE, "--truncation takes a number above 0 or file, not '%s'",
                       c->truncation);
    w->most = (size_t)n;
    return 0;
}

int cmd_window(const struct cli *c, const struct tokenizer *t, struct tok_window *ret,
               struct err *e)
{
    *ret = (struct tok_window){0};
    if (!c->truncation)
        return 0;
    bool file = strcmp(c->truncation, "file") == 0;
    int code = file ? from_file(c, tok_info(t), ret, e) : from_number(c, ret, e);
    if (code)
        return code;
    if (c->truncation_side)
        ret->left = c->truncation_side == 2;
    if (opts_origin(c->opts, "stride") >= FROM_FILE)
        ret->stride = (size_t)c->stride;
    if (ret->most == c->append_eod)
        return err_set(e, ERR_USAGE, "--truncation leaves space only for the end of document");
    ret->most -= c->append_eod;
    if (c->overflow)
        return tok_window_check(t, ret, e);
    struct tok_ids none = {0}; /* dropped ids are not needed */
    struct tok_limit probe = {.most = ret->most};
    return tok_limit_ids(t, &probe, false, &none, e);
}
