/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cli/opt_row.h"

/* Values that a program sets and asks for by name, once the command line is read. */

int opts_set(struct opts *o, enum opt_origin from, const char *name, const char *text,
             struct err *e)
{
    return opts_set_from(o, from, NULL, name, text, e);
}

int opts_set_from(struct opts *o, enum opt_origin from, const char *where, const char *name,
                  const char *text, struct err *e)
{
    size_t n = strlen(name);
    int row = opt_find(o->table, o->verb, name, n);
    struct opt_name one = {name, n};
    if (row == NO_ROW || opt_role(o->table, row) == OPT_ROLE_ANSWER)
        return opt_refuse_names(o->table, o->verb, opt_place(o), &one, 1, e);
    struct opt_origin_row origin = {from, where};
    if (!opt_for_verb(opt_row(o->table, row), o->verb))
        return 0;
    const char *label = arena_printf(&o->arena, "--%s", name);
    return opt_apply(o, row, &origin, label, &(struct opt_texts){&text, 1, false}, e);
}

enum opt_origin opts_origin(const struct opts *o, const char *name)
{
    int row = opt_find(o->table, o->verb, name, strlen(name));
    BUG_ON(row == NO_ROW, "no option is called %s", name);
    return ((const struct opt_origin_row *)o->origin)[row].from;
}

bool opts_takes(const struct opts *o, const char *name)
{
    int row = opt_find(o->table, o->verb, name, strlen(name));
    return row != NO_ROW && opt_for_verb(opt_row(o->table, row), o->verb);
}

/* A number without a default, as if nobody had given it. */
static int unset(struct opts *o, int row, const char *where)
{
    const struct opt *r = opt_row(o->table, row);
    BUG_ON(r->def || (r->type != OPT_INT && r->type != OPT_REAL), "--%s has a default", r->name);
    memset((char *)o->values + r->offset, 0, sizeof(int64_t)); /* 0.0 of a double, too */
    ((struct opt_origin_row *)o->origin)[row] = (struct opt_origin_row){FROM_DEFAULT, where};
    return 0;
}

int opts_overrule(struct opts *o, const char *where, const char *name, const char *text,
                  bool *ret_other, struct err *e)
{
    struct buf was = {0}, is = {0};
    int row = opt_find(o->table, o->verb, name, strlen(name));
    bool given = opts_origin(o, name) == FROM_FLAG;
    opt_value_text(o, row, &was);
    int code = text ? opts_set_from(o, FROM_FLAG, where, name, text, e) : unset(o, row, where);
    opt_value_text(o, row, &is);
    *ret_other = !code && given && strcmp(buf_str(&was), buf_str(&is)) != 0;
    if (*ret_other)
        opt_note_overruled(o, row,
                           arena_printf(&o->arena, "%s says %s", where,
                                        text ? buf_str(&is) : opt_row(o->table, row)->unset));
    buf_finish(&was);
    buf_finish(&is);
    return code;
}
