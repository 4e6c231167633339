/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cli/opt_row.h"
#include "base/core/buf.h"
#include "base/core/log.h"

static const char option[] = "compat";

static const struct opt_origin_row *origin_of(const struct opts *o, int row)
{
    return (const struct opt_origin_row *)o->origin + row;
}

/* A switch that is off was not meant. */
static bool is_meant(const struct opts *o, const struct opt_seen *s)
{
    const struct opt *r = s->row == NO_ROW ? NULL : opt_row(o->table, s->row);
    return !r || r->type != OPT_SWITCH || opts_is_on(o, r->name);
}

/* Whether the command line has that very name, not another one of the same option; a switch of
 * that name may also be on by a file. */
static bool has_name(const struct opts *o, const char *name)
{
    const struct opt_seen *all = o->seen;
    for (size_t i = 0; i < o->nseen; i++)
        if (opt_same_name(all[i].name.name, all[i].name.n, name) && is_meant(o, &all[i]))
            return true;
    int row = opt_find(o->table, o->verb, name, strlen(name));
    const struct opt *r = row == NO_ROW ? NULL : opt_row(o->table, row);
    return r && r->type == OPT_SWITCH && !strcmp(r->name, name) && opts_is_on(o, name);
}

/* The first mark of the dialect that is there, NULL if none is. */
static const char *mark_of(const struct opts *o, const struct opt_dialect *d)
{
    for (const char *const(*m)[2] = d->mark; m && (*m)[0]; m++)
        if (has_name(o, (*m)[0]) && (!(*m)[1] || has_name(o, (*m)[1])))
            return (*m)[0];
    return NULL;
}

/* Chooses a dialect by the names of the command line. */
static int choose(struct opts *o, int row, struct err *e)
{
    for (const struct opt_dialect *d = o->table->dialect; d->name; d++) {
        const char *mark = mark_of(o, d);
        if (!mark)
            continue;
        const struct opt_origin_row origin = {FROM_PRESET,
                                              arena_printf(&o->arena, "--%s of %s", mark, d->who)};
        return opt_apply(o, row, &origin, d->name, &(struct opt_texts){&d->name, 1, false}, e);
    }
    return 0;
}

static const struct opt_dialect *chosen(const struct opts *o, int row)
{
    const char *at = (const char *)o->values + opt_row(o->table, row)->offset;
    int i;
    memcpy(&i, at, sizeof(i));
    return &o->table->dialect[i];
}

static int apply_values(struct opts *o, const struct opt_dialect *d, struct err *e)
{
    const struct opt_origin_row origin = {FROM_PRESET,
                                          arena_printf(&o->arena, "%s %s", option, d->name)};
    for (const char *const(*v)[2] = d->values; (*v)[0]; v++) {
        int row = opt_find(o->table, o->verb, (*v)[0], strlen((*v)[0]));
        BUG_ON(row == NO_ROW, "%s %s sets %s, which is not an option", option, d->name, (*v)[0]);
        if (!opt_for_verb(opt_row(o->table, row), o->verb))
            continue;
        int rc = opt_apply(o, row, &origin, (*v)[0], &(struct opt_texts){&(*v)[1], 1, false}, e);
        BUG_ON(rc, "%s %s: %s", option, d->name, e->msg);
    }
    return 0;
}

int opt_apply_dialect(struct opts *o, struct err *e)
{
    if (!o->table->dialect || !opts_takes(o, option))
        return 0;
    int row = opt_find(o->table, o->verb, option, strlen(option));
    int rc = origin_of(o, row)->from == FROM_DEFAULT ? choose(o, row, e) : 0;
    if (rc || origin_of(o, row)->from == FROM_DEFAULT)
        return rc;
    return apply_values(o, chosen(o, row), e);
}

void opts_tell_dialect(const struct opts *o)
{
    struct buf b = {0};
    if (!o->table->dialect || !opts_takes(o, option))
        return;
    int row = opt_find(o->table, o->verb, option, strlen(option));
    const struct opt_dialect *d = chosen(o, row);
    if (origin_of(o, row)->from != FROM_PRESET)
        return;
    for (const char *const(*v)[2] = d->values; (*v)[0]; v++) {
        int one = opt_find(o->table, o->verb, (*v)[0], strlen((*v)[0]));
        if (opts_takes(o, (*v)[0]) && origin_of(o, one)->from == FROM_PRESET)
            buf_addf(&b, "%s--%s %s", b.len ? ", " : "", (*v)[0], (*v)[1]);
    }
    if (b.len)
        log_info("%s: as there, %s (--%s %s: as here)", origin_of(o, row)->where, buf_str(&b),
                 option, o->table->dialect->name);
    buf_finish(&b);
}
