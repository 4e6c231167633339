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

static bool foreign_taken(const struct opt_table *t, int verb)
{
    return verb != NO_VERB && t->foreign_verbs >> verb & 1;
}

/* A switch of our own may be denied by the same word. */
static bool denies_ours(const struct opts *o, const char *name, size_t n)
{
    int row = opt_find(o->table, o->verb, name + 3, n - 3);
    return row != NO_ROW && opt_for_verb(opt_row(o->table, row), o->verb);
}

const struct opt_foreign *opt_find_foreign(const struct opts *o, const char *name, size_t n)
{
    if (!foreign_taken(o->table, o->verb))
        return NULL;
    const struct opt_foreign *f = opts_foreign(o->table, name, n);
    if (f || !opt_denies(name, n) || denies_ours(o, name, n))
        return f;
    f = opts_foreign(o->table, name + 3, n - 3);
    return f && f->takes == FOREIGN_SWITCH ? f : NULL;
}

/* `value` is in the comma separated list. */
static bool is_among(const char *list, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && !strncmp(p, value, n))
            return true;
    return false;
}

struct opt_seen opt_judge_foreign(const struct opt_foreign *f, const char *name, size_t n,
                                  const char *value)
{
    struct opt_seen s = {
        .name = {name, n}, .row = NO_ROW, .foreign = f, .rejected = f->rejected, .why = f->why};
    bool off = f->takes == FOREIGN_SWITCH && value && !strcmp(value, "false");
    if (f->rejected && (off || !opt_same_name(name, n, f->name))) {
        s.rejected = false;
        s.why = "it is always off";
    } else if (f->rejected && value && is_among(f->accepted, value)) {
        s.rejected = false;
        s.why = f->why_then;
    }
    return s;
}

void opt_note_seen(struct opts *o, int argc, const struct opt_seen *s)
{
    struct opt_seen *all = o->seen;
    if (!all)
        all = o->seen = arena_take(&o->arena, (size_t)argc, sizeof(*all));
    all[o->nseen++] = *s;
}

void opt_note_overruled(struct opts *o, int row, const char *why)
{
    struct opt_seen *all = o->seen;
    for (size_t i = 0; i < o->nseen; i++)
        if (!all[i].foreign && all[i].row == row)
            all[i].why = why;
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

/* "a b c", of many the first ones. */
static void add_words(struct buf *b, const char *const *word, size_t n)
{
    enum { SHOWN = 4 };
    for (size_t i = 0; i < n && i < SHOWN; i++)
        buf_addf(b, "%s%.200s", i ? " " : "", word[i]);
    if (n > SHOWN)
        buf_addf(b, " and %zu more", n - SHOWN);
}

void opt_tell_joined(const struct opt *row, const char *const *before, size_t nbefore,
                     const char *const *now, size_t nnow)
{
    struct buf a = {0}, b = {0};
    if (!row->last_in)
        return;
    add_words(&a, before, nbefore);
    add_words(&b, now, nnow);
    log_warn("--%s was given twice, as '%s' and as '%s': both count (%s takes the last)", row->name,
             buf_str(&a), buf_str(&b), row->last_in);
    buf_finish(&a);
    buf_finish(&b);
}

int opt_refuse_second(const struct opt *row, const char *first, const char *second, struct err *e)
{
    return err_set(e, ERR_USAGE, "--%s %.50s %.50s: expected one number: %s", row->name, first,
                   second, row->single);
}

static bool seen_before(const struct opt_seen *all, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (all[k].foreign == all[i].foreign)
            return true;
    return false;
}

/* The verb that has --dry-run, as what precedes it in a sentence: "" for this one. */
static void add_dry_run(const struct opts *o, int row, struct buf *b)
{
    const struct opt *r = opt_row(o->table, row);
    for (int v = 0; !opt_for_verb(r, o->verb) && o->table->verb[v].name; v++)
        if (opt_for_verb(r, v)) {
            buf_addf(b, "%s %s ", o->table->program, o->table->verb[v].name);
            break;
        }
    buf_adds(b, "--dry-run says why");
}

void opts_warn_foreign(const struct opts *o)
{
    const struct opt_seen *all = o->seen;
    struct buf names = {0}, where = {0};
    size_t n = 0;
    int row = opt_find(o->table, NO_VERB, "dry-run", strlen("dry-run"));
    for (size_t i = 0; i < o->nseen; i++) {
        if (!all[i].foreign || all[i].rejected || seen_before(all, i))
            continue;
        if (row == NO_ROW)
            log_warn("--%.*s has no effect here: %s", (int)all[i].name.n, all[i].name.name,
                     all[i].why);
        else
            buf_addf(&names, "%s--%.*s", n++ ? ", " : "", (int)all[i].name.n, all[i].name.name);
    }
    if (n) {
        add_dry_run(o, row, &where);
        log_warn("%s ha%s no effect here (%s)", buf_str(&names), n > 1 ? "ve" : "s",
                 buf_str(&where));
    }
    buf_finish(&names);
    buf_finish(&where);
}

enum fate { FATE_USED, FATE_IDLE, FATE_REJECTED, FATE_UNKNOWN, FATES };

static enum fate fate_of(const struct opts *o, const struct opt_seen *s, opt_fact_fn *fact,
                         void *arg, struct buf *why)
{
    int row = s->row;
    buf_reset(why);
    if (s->why) {
        buf_adds(why, s->why);
        return s->rejected ? FATE_REJECTED : FATE_IDLE;
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
