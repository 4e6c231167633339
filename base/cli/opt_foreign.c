/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cli/opt_row.h"
#include "base/core/buf.h"
#include "base/core/log.h"

const struct opt_foreign *opts_foreign(const struct opt_table *t, const char *name, size_t n)
{
    for (const struct opt_foreign *f = t->foreign; f && f->name; f++)
        if (opt_same_name(name, n, f->name))
            return f;
    return NULL;
}

void opt_note_seen(struct opts *o, int argc, const struct opt_seen *s)
{
    struct opt_seen *all = o->seen;
    if (!all)
        all = o->seen = arena_take(&o->arena, (size_t)argc, sizeof(*all));
    all[o->nseen++] = *s;
}

int opt_refuse_foreign(const struct opts *o, const struct opt_foreign *f, const char *place,
                       struct err *e)
{
    err_set(e, ERR_USAGE, "--%s of %s is not supported: %s", f->name, place, f->why);
    struct buf meant = {0};
    if (opt_synonym_of(o->table, o->verb, f->name, strlen(f->name), &meant))
        err_hint(e, "%s", buf_str(&meant));
    buf_finish(&meant);
    return ERR_USAGE;
}

static bool seen_before(const struct opt_seen *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all[k].foreign == all[i].foreign)
            return true;
    return false;
}

void opts_warn_foreign(const struct opts *o)
{
    const struct opt_seen *all = o->seen;
    struct buf names = {0};
    size_t n = 0;
    for (size_t i = 0; i < o->nseen; i++)
        if (all[i].foreign && !all[i].foreign->rejected && !seen_before(all, i))
            buf_addf(&names, "%s--%s", n++ ? ", " : "", all[i].foreign->name);
    if (n)
        log_warn("%s ha%s no effect here (--dry-run says why)", buf_str(&names),
                 n > 1 ? "ve" : "s");
    buf_finish(&names);
}

enum fate { FATE_USED, FATE_IDLE, FATE_REJECTED, FATE_UNKNOWN, FATES };

static enum fate fate_of(const struct opts *o, const struct opt_seen *s, opt_fact_fn *fact,
                         void *arg, struct buf *why)
{
    int row = s->row;
    buf_reset(why);
    if (s->foreign) {
        buf_adds(why, s->foreign->why);
        return s->foreign->rejected ? FATE_REJECTED : FATE_IDLE;
    }
    if (row == NO_ROW && opt_denies(s->name.name, s->name.n))
        row = opt_find(o->table, o->verb, s->name.name + 3, s->name.n - 3);
    if (row == NO_ROW || !opt_for_verb(opt_row(o->table, row), o->verb)) {
        opt_meant(o->table, o->verb, s->name.name, s->name.n, why);
        return FATE_UNKNOWN;
    }
    return opt_unused_why(o, row, fact, arg, why) ? FATE_IDLE : FATE_USED;
}

int opts_dry_run(const struct opts *o, opt_fact_fn *fact, void *arg, FILE *out, struct err *e)
{
    static const char *const word[FATES] = {"used", "without effect", "not supported", "unknown"};
    const struct opt_seen *all = o->seen;
    int n[FATES] = {0};
    struct buf why = {0};
    for (size_t i = 0; i < o->nseen; i++) {
        enum fate f = fate_of(o, &all[i], fact, arg, &why);
        n[f]++;
        fprintf(out, "%-15s--%.*s%s%s%s\n", word[f], (int)all[i].name.n, all[i].name.name,
                why.len && f != FATE_USED ? ": " : "",
                f == FATE_UNKNOWN && why.len ? "perhaps " : "",
                f == FATE_USED ? "" : buf_str(&why));
    }
    fprintf(out, "%zu options: %d used, %d without effect, %d not supported, %d unknown\n",
            o->nseen, n[FATE_USED], n[FATE_IDLE], n[FATE_REJECTED], n[FATE_UNKNOWN]);
    buf_finish(&why);
    if (n[FATE_REJECTED] + n[FATE_UNKNOWN] == 0)
        return 0;
    return err_set(e, ERR_USAGE, "%d of %zu options are not supported or unknown",
                   n[FATE_REJECTED] + n[FATE_UNKNOWN], o->nseen);
}
