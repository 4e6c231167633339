/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cli/opt_row.h"

/* ---- rows ---- */

#define AT(member) .offset = offsetof(struct opt_common, member)

static const struct opt common_rows[] = {
    OPT_ROW(.name = "help", .type = OPT_SWITCH, AT(help_long), .basic = true,
            .brief = "explain all options (-h: the basic ones)",
            .help = "explain all options; -h shows the basic ones"),
    OPT_ROW(.name = "version", .type = OPT_SWITCH, AT(version),
            .help = "print version and features"),
    OPT_ROW(.name = "man", .type = OPT_SWITCH, AT(man), .help = "show the manual page"),
    OPT_ROW(.name = "completion", .type = OPT_TEXT, AT(completion), .meta = "SHELL",
            .help = "completion script for bash, zsh or fish"),
    OPT_ROW(.name = "print-config", .type = OPT_SWITCH, AT(print_config),
            .brief = "print every value and its origin as TOML",
            .help = "print every value and its origin, as a file for --config"),
    OPT_ROW(.name = "config", .type = OPT_TEXT, AT(config), .meta = "PATH",
            .brief = "read options from a TOML file",
            .help = "read options from this TOML file; flags override it"),
    OPT_ROW(.name = "preset", .type = OPT_TEXT, AT(preset), .meta = "NAME", .resumed = RESUMED_FREE,
            .local = true, .help = "start from a named set of values"),
    OPT_ROW(.name = "quiet", .type = OPT_SWITCH, AT(quiet), .resumed = RESUMED_FREE, .local = true,
            .help = "print warnings and errors only (-q)"),
    OPT_ROW(.name = "verbose", .type = OPT_SWITCH, AT(verbose), .resumed = RESUMED_FREE,
            .local = true, .help = "print more (-v)"),
};

enum {
    NCOMMON = sizeof(common_rows) / sizeof(common_rows[0]),
    ROW_CONFIG = 5,
    ROW_PRESET = 6,
    ROW_VERBOSE = 8
};

const struct opt *opt_row(const struct opt_table *t, int row)
{
    if (row < NCOMMON)
        return &common_rows[row];
    const struct opt *o = &t->opt[row - NCOMMON];
    return o->name ? o : NULL;
}

enum opt_role opt_role(const struct opt_table *t, int row)
{
    (void)t;
    return row <= ROW_CONFIG ? OPT_ROLE_ANSWER : OPT_ROLE_VALUE;
}

bool opt_absent(const struct opt_table *t, int row)
{
    return row == ROW_PRESET && !t->preset;
}

bool opt_for_verb(const struct opt *o, int verb)
{
    return verb == NO_VERB || o->verbs == 0 || (o->verbs >> verb & 1);
}

static bool preset_acts(const struct opt_table *t, int verb)
{
    for (const struct opt_preset *p = t->preset; p && p->name; p++)
        for (const char *const(*v)[2] = p->values; (*v)[0]; v++) {
            int row = opt_find(t, verb, (*v)[0], strlen((*v)[0]));
            if (row != NO_ROW && opt_for_verb(opt_row(t, row), verb) && !opt_idle(t, row, verb))
                return true;
        }
    return false;
}

bool opt_idle(const struct opt_table *t, int row, int verb)
{
    if (verb == NO_VERB)
        return false;
    if (row == ROW_PRESET)
        return !preset_acts(t, verb);
    if (row == ROW_VERBOSE)
        return !(t->verbose >> verb & 1);
    return opt_row(t, row)->idle >> verb & 1;
}

const char *opt_section(const struct opt *row)
{
    return row->group ? row->group : "";
}

void opt_slug(const char *section, char *ret, size_t size)
{
    size_t n = 0;
    for (; section[n] && n + 1 < size; n++)
        ret[n] = section[n] == ' ' ? '-' : (char)tolower((unsigned char)section[n]);
    ret[n] = '\0';
}

const char *opt_next_section(const struct opt_table *t, int verb, const char *last)
{
    bool passed = last == NULL;
    const struct opt *o;
    for (int i = 0; (o = opt_row(t, i)); i++) {
        if (!opt_for_verb(o, verb) || opt_absent(t, i))
            continue;
        const char *section = opt_section(o);
        bool first = true;
        const struct opt *p;
        for (int k = 0; k < i && first; k++)
            first = (p = opt_row(t, k)) && (!opt_for_verb(p, verb) || opt_absent(t, k) ||
                                            strcmp(opt_section(p), section) != 0);
        if (!first)
            continue;
        if (passed)
            return section;
        passed = strcmp(section, last) == 0;
    }
    return NULL;
}

/* ---- names ---- */

static char fold(char c)
{
    return c == '_' ? '-' : c;
}

bool opt_same_name(const char *a, size_t na, const char *b)
{
    for (size_t i = 0; i < na; i++)
        if (fold(a[i]) != fold(b[i])) /* stops at b's NUL: no name contains one */
            return false;
    return b[na] == '\0';
}

/* Calls `use` with the option's name and its aliases; stops at the first non-zero result. */
static int each_name(const struct opt *o, int (*use)(void *with, const char *name, size_t n),
                     void *with)
{
    int rc = use(with, o->name, strlen(o->name));
    const char *a = o->alias;
    while (!rc && a && *a) {
        size_t n = strcspn(a, ",");
        rc = use(with, a, n);
        a += n + (a[n] == ',');
    }
    return rc;
}

struct wanted {
    const char *name;
    size_t n;
};

static int is_wanted(void *with, const char *name, size_t n)
{
    const struct wanted *w = with;
    if (w->n != n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (fold(w->name[i]) != fold(name[i]))
            return 0;
    return 1;
}

int opt_find(const struct opt_table *t, int verb, const char *name, size_t n)
{
    struct wanted w = {name, n};
    int other = NO_ROW;
    const struct opt *o;
    for (int i = 0; (o = opt_row(t, i)); i++) {
        if (opt_absent(t, i) || !each_name(o, is_wanted, &w))
            continue;
        if (opt_for_verb(o, verb))
            return i;
        if (other == NO_ROW)
            other = i;
    }
    return other;
}

struct rival {
    const struct opt_table *t;
    int row;
};

static int has_rival(void *with, const char *name, size_t n)
{
    const struct rival *r = with;
    struct wanted w = {name, n};
    const struct opt *mine = opt_row(r->t, r->row), *o;
    for (int i = 0; i < r->row; i++) {
        o = opt_row(r->t, i);
        bool meet = !o->verbs || !mine->verbs || (o->verbs & mine->verbs);
        BUG_ON(meet && each_name(o, is_wanted, &w), "two options are called %.*s", (int)n, name);
    }
    return 0;
}

static size_t columns(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static bool has_verb(const struct opt_table *t, const char *name)
{
    int i = 0;
    while (t->verb[i].name && strcmp(t->verb[i].name, name) != 0)
        i++;
    return t->verb[i].name != NULL;
}

void opt_check_table(const struct opt_table *t)
{
    for (int i = 0; opt_row(t, i); i++) {
        const struct opt *o = opt_row(t, i);
        struct rival r = {t, i};
        each_name(o, has_rival, &r);
        BUG_ON(!o->help, "--%s has no sentence", o->name);
        const char *brief = o->brief ? o->brief : o->help;
        BUG_ON(columns(brief) > OPT_BRIEF, "the short sentence of --%s has %zu columns, %d fit: %s",
               o->name, columns(brief), OPT_BRIEF, brief);
    }
    for (const struct opt_synonym *s = t->synonym; s && s->name; s++)
        BUG_ON(s->ours ? opt_find(t, NO_VERB, s->ours, strlen(s->ours)) == NO_ROW : !s->text,
               "the synonym %s stands for no option", s->name);
    for (const struct opt_synonym *s = t->verb_synonym; s && s->name; s++)
        BUG_ON(s->ours ? !has_verb(t, s->ours) : !s->text, "the synonym %s stands for no verb",
               s->name);
}

/* ---- the nearest name ---- */

enum { LONGEST = 64 };

static int min3(int a, int b, int c)
{
    int m = a < b ? a : b;
    return m < c ? m : c;
}

/* Insertions, deletions, substitutions and swaps of neighbours between two names. */
static int distance(const char *a, size_t na, const char *b, size_t nb)
{
    int d[3][LONGEST + 1];
    int *before = d[0], *above = d[1], *row = d[2];
    for (size_t j = 0; j <= nb; j++)
        above[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y && x != y &&
                before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        int *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[nb];
}

struct nearest {
    const char *name;
    size_t n;
    const char *best;
    size_t best_n;
    int best_score; /* lower is better */
};

static size_t common_head(const char *a, size_t na, const char *b, size_t nb)
{
    size_t n = 0;
    while (n < na && n < nb && fold(a[n]) == fold(b[n]))
        n++;
    return n;
}

static size_t common_tail(const char *a, size_t na, const char *b, size_t nb)
{
    size_t n = 0;
    while (n < na && n < nb && fold(a[na - 1 - n]) == fold(b[nb - 1 - n]))
        n++;
    return n;
}

/* Fewer edits are better; on a tie, the longer common prefix and suffix. */
static int opt_find_weigh(void *with, const char *name, size_t n)
{
    struct nearest *s = with;
    if (n > LONGEST || s->n > LONGEST)
        return 0;
    size_t head = common_head(s->name, s->n, name, n), tail = common_tail(s->name, s->n, name, n);
    int edits = distance(s->name, s->n, name, n);
    int limit = s->n <= 3 ? 1 : s->n <= 7 ? 2 : (int)s->n / 3;
    int score = edits * 1000 - (int)(head + tail);
    if (edits > limit && s->n >= 3 && head == s->n)
        score = 100 * 1000 + (int)n; /* an abbreviation: the shortest name that begins so */
    else if (edits > limit)
        return 0;
    if (!s->best || score < s->best_score) {
        s->best = name;
        s->best_n = n;
        s->best_score = score;
    }
    return 0;
}

static void weigh_rows(struct nearest *s, const struct opt_table *t, int verb, bool switches)
{
    const struct opt *o;
    for (int i = 0; (o = opt_row(t, i)); i++)
        if (!opt_absent(t, i) && opt_for_verb(o, verb) && (!switches || o->type == OPT_SWITCH))
            each_name(o, opt_find_weigh, s);
}

bool opt_nearest(const struct opt_table *t, int verb, const char *name, size_t n,
                 char ret[OPT_NAME_SIZE])
{
    struct nearest plain = {.name = name, .n = n};
    struct nearest denied = {.name = name + 3, .n = n - 3};
    weigh_rows(&plain, t, verb, false);
    if (opt_denies(name, n))
        weigh_rows(&denied, t, verb, true);
    bool no = denied.best && (!plain.best || denied.best_score < plain.best_score);
    const struct nearest *s = no ? &denied : &plain;
    if (s->best)
        snprintf(ret, OPT_NAME_SIZE, "%s%.*s", no ? "no-" : "", (int)s->best_n, s->best);
    return s->best != NULL;
}

const char *opt_nearest_word(const char *const *words, size_t nwords, const char *name)
{
    struct nearest s = {.name = name, .n = strlen(name)};
    for (size_t i = 0; i < nwords; i++)
        opt_find_weigh(&s, words[i], strlen(words[i]));
    return s.best;
}

bool opt_denies(const char *name, size_t n)
{
    return n > 3 && name[0] == 'n' && name[1] == 'o' && fold(name[2]) == '-';
}
