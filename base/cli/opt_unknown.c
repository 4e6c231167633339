/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/cli/opt_row.h"

/* Unknown option names: suggestions, and one error for all of them. */

/* Names of other tools that fit every program; a row counts where the verb has the option. */
static const struct opt_synonym common_synonyms[] = {
    {"force", "overwrite", NULL},
    {"yes", "overwrite", NULL},
    {"jobs", "workers", NULL},
    {"jobs", "threads", NULL},
    {"threads", "workers", NULL},
    {"num-threads", "workers", NULL},
    {"num-threads", "threads", NULL},
    {"workers", "threads", NULL},
    {"processes", "workers", NULL},
    {"num-proc", "workers", NULL},
    {"num-workers", "workers", NULL},
    {"num-workers", "threads", NULL},
    {"out", "output", NULL},
    {"output-file", "output", NULL},
    {"out", "output-prefix", NULL},
    {"output", "output-prefix", NULL},
    {"output-dir", "output-prefix", NULL},
    {"files", "input", NULL},
    {"data", "input", NULL},
    {"dataset", "input", NULL},
    {"silent", "quiet", NULL},
    {"debug", "verbose", NULL},
    {"config-file", "config", NULL},
    {"resume", NULL, "not needed: the same command resumes an interrupted run"},
    {NULL, NULL, NULL},
};

static const struct opt_synonym *find_synonym(const struct opt_synonym *s,
                                              const struct opt_table *t, int verb, const char *name,
                                              size_t n)
{
    for (; s && s->name; s++) {
        if (!opt_same_name(name, n, s->name))
            continue;
        int row = s->ours ? opt_find(t, verb, s->ours, strlen(s->ours)) : NO_ROW;
        if (!s->ours ||
            (row != NO_ROW && opt_for_verb(opt_row(t, row), verb) && !opt_idle(t, row, verb)))
            return s;
    }
    return NULL;
}

bool opt_synonym_of(const struct opt_table *t, int verb, const char *name, size_t n,
                    struct buf *ret)
{
    const struct opt_synonym *s = find_synonym(t->synonym, t, verb, name, n);
    if (!s)
        s = find_synonym(common_synonyms, t, verb, name, n);
    if (s)
        buf_addf(ret, "%s%s", s->text ? "" : "--", s->text ? s->text : s->ours);
    return s != NULL;
}

/* A misspelled name of another tool. */
static bool near_synonym(const struct opt_table *t, int verb, const char *name, size_t n,
                         struct buf *ret)
{
    const struct opt_synonym *const lists[] = {t->synonym, common_synonyms};
    const char *words[128], *near;
    size_t nwords = 0;
    struct buf given = {0};
    for (int i = 0; i < 2; i++)
        for (const struct opt_synonym *s = lists[i]; s && s->name && nwords < 128; s++)
            words[nwords++] = s->name;
    buf_add(&given, name, n);
    near = opt_nearest_word(words, nwords, buf_str(&given));
    buf_finish(&given);
    return near && opt_synonym_of(t, verb, near, strlen(near), ret);
}

bool opt_meant(const struct opt_table *t, int verb, const char *name, size_t n, struct buf *ret)
{
    char near[OPT_NAME_SIZE];
    if (opt_synonym_of(t, verb, name, n, ret))
        return true;
    if (!opt_nearest(t, verb, name, n, near))
        return near_synonym(t, verb, name, n, ret);
    buf_addf(ret, "--%s", near);
    return true;
}

static int refuse_one(const struct opt_table *t, int verb, const char *place,
                      const struct opt_name *u, struct err *e)
{
    struct buf meant = {0};
    err_set(e, ERR_USAGE, "unknown option --%.*s of %s", (int)u->n, u->name, place);
    if (!opt_meant(t, verb, u->name, u->n, &meant))
        err_hint(e, "%s --help lists all options", place);
    else if (buf_str(&meant)[0] == '-')
        err_hint(e, "did you mean %s?", buf_str(&meant));
    else
        err_hint(e, "%s", buf_str(&meant));
    buf_finish(&meant);
    return ERR_USAGE;
}

int opt_refuse_names(const struct opt_table *t, int verb, const char *place,
                     const struct opt_name *list, size_t n, struct err *e)
{
    struct buf names = {0}, hint = {0}, meant = {0};
    if (n == 1)
        return refuse_one(t, verb, place, list, e);
    for (size_t i = 0; i < n; i++) {
        buf_addf(&names, "%s--%.*s",
                 !i          ? ""
                 : i + 1 < n ? ", "
                             : " and ",
                 (int)list[i].n, list[i].name);
        buf_reset(&meant);
        if (opt_meant(t, verb, list[i].name, list[i].n, &meant))
            buf_addf(&hint, "%s--%.*s: %s", hint.len ? "; " : "", (int)list[i].n, list[i].name,
                     buf_str(&meant));
    }
    err_set(e, ERR_USAGE, "%zu unknown options of %s: %s", n, place, buf_str(&names));
    if (hint.len)
        err_hint(e, "possible meanings: %s", buf_str(&hint));
    else
        err_hint(e, "%s --help lists all options", place);
    buf_finish(&names);
    buf_finish(&hint);
    buf_finish(&meant);
    return ERR_USAGE;
}
