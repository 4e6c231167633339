/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/cli/opt_row.h"

/* Options that were given but have no effect, by the `needs` of their rows. */

struct search {
    const struct opts *o;
    opt_fact_fn *fact;
    void *arg;
    const char *verb;
    int row; /* of the previous alternative */
    bool not ;
};

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " ");
}

/* ---- values ---- */

/* Whether the value of `row` equals what `text` parses to. */
static bool has_value(const struct opts *o, int row, const char *text)
{
    const struct opt *r = opt_row(o->table, row);
    struct buf now = {0}, other = {0};
    struct err e;
    struct opts scratch = *o;
    scratch.arena = (struct arena){0};
    scratch.values = mem_new(r->offset + sizeof(struct opt_list), 1);
    int rc = text ? opt_store(&scratch, row, r->name, &(struct opt_texts){&text, 1, false}, &e) : 0;
    BUG_ON(rc, "--%s: %s", r->name, e.msg);
    bool set = opt_value_text(o, row, &now), set_there = opt_value_text(&scratch, row, &other);
    bool same = set == set_there && (!set || !strcmp(buf_str(&now), buf_str(&other)));
    buf_finish(&now);
    buf_finish(&other);
    free(scratch.values);
    arena_finish(&scratch.arena);
    return same;
}

/* The zero value: a switch that is off, a number that is 0, an empty list. */
static bool is_empty(const struct opts *o, int row)
{
    return has_value(o, row, NULL);
}

bool opts_is_on(const struct opts *o, const char *name)
{
    int row = opt_find(o->table, o->verb, name, strlen(name));
    return opts_takes(o, name) && !is_empty(o, row);
}

/*
 * A flag always counts. A line of a file counts only if it changes the default, as a printed
 * configuration has all options, and belongs to the verb, as one file may serve all verbs.
 */
static bool was_given(const struct opts *o, int row)
{
    enum opt_origin from = ((const struct opt_origin_row *)o->origin)[row].from;
    return from == FROM_FLAG || (from == FROM_FILE && !opt_idle(o->table, row, o->verb) &&
                                 !has_value(o, row, opt_row(o->table, row)->def));
}

/* ---- conditions ---- */

/* "without --format text or json or --split" */
static void add_missing(struct search *s, int row, bool not, const char *value, struct buf *why)
{
    bool again = why->len && s->row == row && s->not == not &&value;
    if (why->len)
        buf_adds(why, " or ");
    if (!why->len || s->not != not )
        buf_adds(why, not ? "with " : "without ");
    if (!again)
        buf_addf(why, "--%s%s", opt_row(s->o->table, row)->name, value ? " " : "");
    buf_adds(why, value ? value : "");
    s->row = row;
    s->not = not ;
}

/* One alternative: "name", "name=value", "!name", "@fact". If false, adds what is missing to `why`.
 */
static bool opt_unused_holds(struct search *s, const char *term, size_t n, struct buf *why)
{
    bool not = *term == '!';
    term += not ;
    n -= not ;
    if (*term == '@') {
        char *fact = mem_strndup(term + 1, n - 1);
        const char *reason = s->fact ? s->fact(s->arg, fact) : NULL;
        free(fact);
        if (reason)
            buf_adds(why, reason);
        return !reason;
    }
    size_t k = 0;
    while (k < n && term[k] != '=')
        k++;
    int row = opt_find(s->o->table, s->o->verb, term, k);
    BUG_ON(row == NO_ROW, "needs: no option is called %.*s", (int)k, term);
    if (!opt_for_verb(opt_row(s->o->table, row), s->o->verb))
        return false; /* another verb's option */
    char *value = k < n ? mem_strndup(term + k + 1, n - k - 1) : NULL;
    bool is = value ? has_value(s->o, row, value) : !is_empty(s->o, row);
    if (is == not )
        add_missing(s, row, not, value, why);
    free(value);
    return is != not ;
}

/* "verb: a, b=c" applies to that verb only. True if any alternative holds. */
static bool clause_holds(struct search *s, const char *c, size_t n, struct buf *why)
{
    size_t colon = 0;
    while (colon < n && c[colon] != ':')
        colon++;
    if (colon < n) {
        if (strlen(s->verb) != colon || memcmp(c, s->verb, colon) != 0)
            return true;
        c += colon + 1;
        n -= colon + 1;
    }
    buf_reset(why);
    for (const char *end = c + n; c < end;) {
        c = skip_blanks(c);
        size_t k = 0;
        while (c + k < end && c[k] != ',')
            k++;
        if (opt_unused_holds(s, c, k, why))
            return true;
        c += k + (c + k < end);
    }
    return !why->len; /* all alternatives are other verbs' options */
}

/* Why the option of this row has no effect; false if it may have one. */
static bool is_idle(struct search *s, int i, struct buf *why)
{
    const struct opt *row = opt_row(s->o->table, i);
    buf_reset(why);
    if (opt_idle(s->o->table, i, s->o->verb)) {
        buf_addf(why, "in %s %s", s->o->table->program, s->verb);
        return true;
    }
    for (const char *c = row->needs; c && *c;) {
        c = skip_blanks(c);
        size_t n = strcspn(c, ";");
        if (!clause_holds(s, c, n, why))
            return true;
        c += n + (c[n] == ';');
    }
    return false;
}

bool opt_unused_why(const struct opts *o, int row, opt_fact_fn *fact, void *arg, struct buf *why)
{
    struct search s = {.o = o,
                       .fact = fact,
                       .arg = arg,
                       .verb = o->verb == NO_VERB ? "" : o->table->verb[o->verb].name};
    return is_idle(&s, row, why);
}

/* ---- sentences ---- */

struct finding {
    const char *why, *names;
    int n;
};

/* Merges options that lack the same thing. `names` and `why` live in `a`. */
static void add_finding(struct finding **list, size_t *n, const char *name, const char *why,
                        struct arena *a)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp((*list)[i].why, why)) {
            (*list)[i].names = arena_printf(a, "%s, --%s", (*list)[i].names, name);
            (*list)[i].n++;
            return;
        }
    *list = mem_grow(*list, *n + 1, sizeof(**list));
    (*list)[(*n)++] = (struct finding){arena_strdup(a, why), arena_printf(a, "--%s", name), 1};
}

static void add_sentence(struct buf *b, const struct finding *f)
{
    const char *last = strrchr(f->names, ',');
    if (f->n > 1)
        buf_addf(b, "%.*s and%s have no effect %s\n", (int)(last - f->names), f->names, last + 1,
                 f->why);
    else
        buf_addf(b, "%s has no effect %s\n", f->names, f->why);
}

void opts_unused(const struct opts *o, opt_fact_fn *fact, void *arg, struct buf *ret)
{
    struct search s = {.o = o,
                       .fact = fact,
                       .arg = arg,
                       .verb = o->verb == NO_VERB ? "" : o->table->verb[o->verb].name};
    struct finding *list = NULL;
    struct arena a = {0};
    struct buf why = {0};
    size_t n = 0;
    const struct opt *row;
    for (int i = 0; (row = opt_row(o->table, i)); i++)
        if (opt_for_verb(row, o->verb) && was_given(o, i) && is_idle(&s, i, &why))
            add_finding(&list, &n, row->name, buf_str(&why), &a);
    for (size_t i = 0; i < n; i++)
        add_sentence(ret, &list[i]);
    buf_finish(&why);
    arena_finish(&a);
    free(list);
}

void opts_warn_unused(const struct opts *o, opt_fact_fn *fact, void *arg)
{
    struct buf b = {0};
    opts_unused(o, fact, arg, &b);
    char *rest = buf_str(&b);
    while (*rest)
        log_warn("%s", strsep(&rest, "\n"));
    buf_finish(&b);
}

void opts_warn_no_effect(const struct opts *o, const char *name, const char *why)
{
    int row = opt_find(o->table, o->verb, name, strlen(name));
    BUG_ON(row == NO_ROW, "no option is called %s", name);
    if (was_given(o, row))
        log_warn("--%s has no effect: %s", name, why);
}
