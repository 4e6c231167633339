/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/cli/opt_row.h"
#include "base/format/toml.h"

/* ---- presets ---- */

static int unknown_preset(const struct opts *o, const char *name, struct err *e)
{
    const char *names[64];
    size_t n = 0;
    struct buf all = {0};
    for (; n < 64 && o->table->preset[n].name; n++) {
        names[n] = o->table->preset[n].name;
        buf_addf(&all, "%s%s", n ? ", " : "", names[n]);
    }
    err_set(e, ERR_USAGE, "unknown preset '%s'; the presets are %s", name, buf_str(&all));
    const char *near = opt_nearest_word(names, n, name);
    if (near)
        err_hint(e, "did you mean %s?", near);
    buf_finish(&all);
    return ERR_USAGE;
}

int opt_apply_preset(struct opts *o, const char *name, struct err *e)
{
    const struct opt_preset *p = o->table->preset;
    while (p && p->name && strcmp(p->name, name) != 0)
        p++;
    if (!p || !p->name)
        return unknown_preset(o, name, e);
    struct opt_origin_row origin = {FROM_PRESET, arena_printf(&o->arena, "preset %s", name)};
    for (const char *const(*v)[2] = p->values; (*v)[0]; v++) {
        struct err why;
        int row = opt_find(o->table, o->verb, (*v)[0], strlen((*v)[0]));
        BUG_ON(row == NO_ROW, "preset %s sets %s, which is not an option", name, (*v)[0]);
        if (!opt_for_verb(opt_row(o->table, row), o->verb))
            continue;
        int rc = opt_apply(o, row, &origin, (*v)[0], &(struct opt_texts){&(*v)[1], 1, false}, &why);
        BUG_ON(rc, "preset %s: %s", name, why.msg);
    }
    return 0;
}

/* ---- the file ---- */

static int check_section(const struct opts *o, const struct toml_entry *t, struct err *e)
{
    char slug[64][OPT_NAME_SIZE];
    const char *known[64], *section = NULL;
    size_t n = 0;
    if (!t->section[0])
        return 0;
    while (n < 64 && (section = opt_next_section(o->table, NO_VERB, section))) {
        opt_slug(section, slug[n], sizeof(slug[n]));
        if (opt_same_name(t->section, strlen(t->section), slug[n]))
            return 0;
        known[n] = slug[n];
        n++;
    }
    err_set(e, ERR_USAGE, "unknown section [%s]", t->section);
    const char *near = opt_nearest_word(known, n, t->section);
    return near ? err_hint(e, "did you mean [%s]?", near) : ERR_USAGE;
}

static int unknown_key(const struct opts *o, const struct toml_entry *t, struct err *e)
{
    char near[OPT_NAME_SIZE];
    err_set(e, ERR_USAGE, "unknown key '%s'", t->key);
    if (opt_nearest(o->table, o->verb, t->key, strlen(t->key), near))
        err_hint(e, "did you mean %s?", near);
    return ERR_USAGE;
}

static int apply_entry(struct opts *o, const char *path, const struct toml_entry *t, int row,
                       struct err *e)
{
    const struct opt *r = opt_row(o->table, row);
    if (opt_role(o->table, row) == OPT_ROLE_ANSWER)
        return err_set(e, ERR_USAGE, "'%s' has no place in a configuration file", t->key);
    if (t->is_array && r->type != OPT_LIST)
        return err_set(e, ERR_USAGE, "'%s' takes one value, not an array", t->key);
    if (!opt_for_verb(r, o->verb))
        return 0; /* another verb's: one file may serve all */
    struct opt_origin_row origin = {FROM_FILE,
                                    arena_printf(&o->arena, "file %s:%u", path, t->line)};
    const struct opt_texts value = {t->values, t->nvalues, t->is_array};
    return opt_apply(o, row, &origin, t->key, &value, e);
}

static int judge_entry(struct opts *o, const char *path, const struct toml_file *f, size_t i,
                       int *row, struct err *e)
{
    const struct toml_entry *t = toml_at(f, i);
    int rc = check_section(o, t, e);
    if (rc)
        return rc;
    row[i] = opt_find(o->table, o->verb, t->key, strlen(t->key));
    if (row[i] == NO_ROW)
        return unknown_key(o, t, e);
    for (size_t k = 0; k < i; k++)
        if (row[k] == row[i])
            return err_set(e, ERR_USAGE, "'%s' was already given in line %u as '%s'", t->key,
                           toml_at(f, k)->line, toml_at(f, k)->key);
    return apply_entry(o, path, t, row[i], e);
}

int opt_apply_file(struct opts *o, const char *path, const struct toml_file *t, struct err *e)
{
    int rc = 0;
    size_t n = toml_count(t);
    int *row = mem_new(n, sizeof(*row));
    for (size_t i = 0; i < n && !rc; i++) {
        rc = judge_entry(o, path, t, i, row, e);
        if (rc)
            err_wrap(e, "%s:%u:%u", path, toml_at(t, i)->line, toml_at(t, i)->column);
    }
    free(row);
    return rc;
}

const char *opt_file_preset(const struct toml_file *t)
{
    for (size_t i = 0; i < toml_count(t); i++) {
        const struct toml_entry *k = toml_at(t, i);
        if (!strcmp(k->key, "preset") && k->nvalues == 1)
            return k->values[0];
    }
    return NULL;
}

/* ---- printing ---- */

static const char *origin_text(const struct opt_origin_row *origin)
{
    static const char *const text[] = {"default", "preset", "file", "flag"};
    return origin->where ? origin->where : text[origin->from];
}

static void add_comment(struct buf *b, const char *s)
{
    buf_adds(b, "# ");
    for (; *s; s++) /* a file name may contain control characters */
        buf_addc(b, (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
}

/* False: it has none. A number without a default is 0, which may be out of bounds. */
static bool add_value(const struct opts *o, int row, struct buf *b)
{
    const struct opt_origin_row *origin = (const struct opt_origin_row *)o->origin + row;
    const struct opt *r = opt_row(o->table, row);
    bool unset = (r->type == OPT_INT || r->type == OPT_REAL) && !r->def && !origin->from;
    return !unset && opt_value_text(o, row, b);
}

static void print_row(const struct opts *o, int row, FILE *out)
{
    const struct opt_origin_row *origin = (const struct opt_origin_row *)o->origin + row;
    const struct opt *r = opt_row(o->table, row);
    struct buf b = {0};
    buf_addf(&b, "%s = ", r->name);
    if (!add_value(o, row, &b)) {
        buf_reset(&b);
        buf_addf(&b, "# %s is not set", r->name);
    }
    do
        buf_addc(&b, ' ');
    while (b.len < 40);
    add_comment(&b, origin_text(origin));
    fprintf(out, "%s\n", buf_str(&b));
    buf_finish(&b);
}

/* Without a verb, all verbs' options; the first of those that share a name. */
static bool printed(const struct opts *o, int row)
{
    const struct opt *r = opt_row(o->table, row);
    return opt_role(o->table, row) == OPT_ROLE_VALUE && opt_for_verb(r, o->verb) &&
           !opt_absent(o->table, row) &&
           opt_find(o->table, o->verb, r->name, strlen(r->name)) == row;
}

void opts_each_value(const struct opts *o, opt_value_fn *fn, void *arg)
{
    const struct opt *r;
    for (int i = 0; (r = opt_row(o->table, i)); i++) {
        struct buf b = {0};
        if (printed(o, i))
            fn(arg, r, add_value(o, i, &b) ? buf_str(&b) : NULL);
        buf_finish(&b);
    }
}

void opts_print_config(const struct opts *o, FILE *out)
{
    const char *section = NULL;
    const struct opt *r;
    const char *verb = o->verb == NO_VERB ? "" : o->table->verb[o->verb].name;
    fprintf(out, "# %s%s%s, weft %s: every value, and where it comes from\n", o->table->program,
            verb[0] ? " " : "", verb, WEFT_VERSION);
    while ((section = opt_next_section(o->table, o->verb, section))) {
        char slug[OPT_NAME_SIZE];
        opt_slug(section, slug, sizeof(slug));
        if (slug[0])
            fprintf(out, "\n[%s]\n", slug);
        for (int i = 0; (r = opt_row(o->table, i)); i++)
            if (printed(o, i) && !strcmp(opt_section(r), section))
                print_row(o, i, out);
    }
}
