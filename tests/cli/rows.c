/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option rows that a verb accepts and that may have no effect there, of all programs, as JSON
 * lines for no_effect.py: program, verb, name, type, default, bounds, choices, `needs`; `idle`
 * where the verb is among the row's idle ones.
 */
#include <stdio.h>
#include <string.h>

#include "base/cli/opt_row.h"
#include "base/core/buf.h"
#include "base/format/json.h"
#include "prep/options.h"
#include "tok/cmd.h"
#include "train/options/options.h"

static void put_text(struct buf *b, const char *key, const char *text)
{
    jsonw_key(b, key);
    if (text)
        jsonw_string(b, text, strlen(text));
    else
        buf_adds(b, "null");
    buf_addc(b, ',');
}

static void put_row(const struct opt_table *t, int row, int verb)
{
    static const char *const type[] = {"switch", "int", "real", "text", "choice", "list"};
    const struct opt *o = opt_row(t, row);
    struct buf b = {0};
    bool idle = opt_idle(t, row, verb);
    if (opt_role(t, row) != OPT_ROLE_VALUE || !opt_for_verb(o, verb) || opt_absent(t, row) ||
        (!idle && !o->needs))
        return;
    buf_addc(&b, '{');
    put_text(&b, "program", t->program);
    put_text(&b, "verb", t->verb[verb].name);
    put_text(&b, "name", o->name);
    put_text(&b, "type", type[o->type]);
    put_text(&b, "def", o->def);
    put_text(&b, "meta", o->meta);
    put_text(&b, "needs", o->needs);
    jsonw_key(&b, "min");
    jsonw_real(&b, o->min);
    buf_addc(&b, ',');
    jsonw_key(&b, "max");
    jsonw_real(&b, o->max);
    printf("%s,\"idle\":%s}\n", buf_str(&b), idle ? "true" : "false");
    buf_finish(&b);
}

int main(void)
{
    const struct opt_table *const tables[] = {&tok_table, &prep_table, &train_table};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
        for (int verb = 0; tables[i]->verb[verb].name; verb++)
            for (int row = 0; opt_row(tables[i], row); row++)
                put_row(tables[i], row, verb);
    return 0;
}
