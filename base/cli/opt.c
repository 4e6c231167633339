/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/opt.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/cli/opt_row.h"
#include "base/format/toml.h"

/* One option as it stands on the command line. */
struct flag {
    const char *name; /* after "--", not NUL-terminated */
    size_t n;
    int row;
    const char **text;
    size_t ntext;
};

struct cursor {
    struct opts *o;
    int argc, i;
    char **argv;
    bool ended; /* "--" was seen */
    struct flag *flag;
    size_t nflag, room;
    struct opt_name *unknown;
    size_t nunknown;
    bool new_unknown; /* the last option was unknown: its values follow */
    bool dry_run;     /* unknown options are no error */
    struct err *e;
};

/* ---- words ---- */

/* An option rather than a value: "-x" or "--", then a letter; "-1", "-" and "- item" are values. */
static bool is_option(const char *s)
{
    if (s[0] != '-' || !(s[1] == '-' || isalpha((unsigned char)s[1])))
        return false;
    return strcspn(s, " \t\n") >= strcspn(s, "=");
}

static int find_verb(const struct opt_table *t, const char *word)
{
    for (int i = 0; t->verb && t->verb[i].name; i++)
        if (!strcmp(t->verb[i].name, word))
            return i;
    return NO_VERB;
}

static bool has_verbs(const struct opt_table *t)
{
    return t->verb && t->verb[0].name;
}

static struct opt_common *common(struct opts *o)
{
    return o->values;
}

const char *opt_place(struct opts *o)
{
    if (o->verb == NO_VERB)
        return o->table->program;
    return arena_printf(&o->arena, "%s %s", o->table->program, o->table->verb[o->verb].name);
}

static const char *verb_names(struct opts *o)
{
    struct buf b = {0};
    const struct opt_verb *v = o->table->verb;
    for (int i = 0; v[i].name; i++)
        buf_addf(&b, "%s%s", !i ? "" : v[i + 1].name ? ", " : " and ", v[i].name);
    const char *text = arena_strndup(&o->arena, b.data, b.len);
    buf_finish(&b);
    return text;
}

/* ---- errors ---- */

/* Unknown names are kept until the line is read, to be reported together. */
static int note_unknown(struct cursor *c, const char *name, size_t n)
{
    for (size_t i = 0; i < c->nunknown; i++)
        if (c->unknown[i].n == n && !memcmp(c->unknown[i].name, name, n))
            return 0;
    c->unknown = mem_grow(c->unknown, c->nunknown + 1, sizeof(*c->unknown));
    c->unknown[c->nunknown++] = (struct opt_name){name, n};
    c->new_unknown = true;
    return 0;
}

static int refuse_verb(struct opts *o, const char *word, struct err *e)
{
    const char *names[32];
    size_t n = 0;
    for (; n < 32 && o->table->verb[n].name; n++)
        names[n] = o->table->verb[n].name;
    err_set(e, ERR_USAGE, "unknown verb '%s'; %s has %s", word, o->table->program, verb_names(o));
    const struct opt_synonym *s = o->table->verb_synonym;
    while (s && s->name && !opt_same_name(word, strlen(word), s->name))
        s++;
    if (s && s->name && s->text)
        return err_hint(e, "%s", s->text);
    const char *near = s && s->name ? s->ours : opt_nearest_word(names, n, word);
    if (near)
        err_hint(e, "did you mean %s %s?", o->table->program, near);
    return ERR_USAGE;
}

/* ---- the command line ---- */

static struct flag *add_flag(struct cursor *c, const char *name, size_t n, int row)
{
    ARRAY_GROW(c->flag, c->nflag, c->room);
    struct flag *f = &c->flag[c->nflag++];
    *f = (struct flag){.name = name, .n = n, .row = row};
    f->text = arena_take(&c->o->arena, (size_t)(c->argc - c->i) + 1, sizeof(char *));
    return f;
}

static void opt_add_text(struct flag *f, const char *text)
{
    f->text[f->ntext++] = text;
}

/* --no-NAME of a switch. */
static int take_denial(struct cursor *c, const char *name, size_t n, bool has_value)
{
    int row = opt_denies(name, n) ? opt_find(c->o->table, c->o->verb, name + 3, n - 3) : NO_ROW;
    if (row == NO_ROW || opt_row(c->o->table, row)->type != OPT_SWITCH)
        return note_unknown(c, name, n);
    if (has_value)
        return err_set(c->e, ERR_USAGE, "--%.*s takes no value", (int)n, name);
    opt_add_text(add_flag(c, name, n, row), "false");
    return 0;
}

/* "7", "-7" */
static bool is_numeric(const char *s)
{
    return isdigit((unsigned char)s[*s == '-']);
}

/* Takes the words after the option as its values. */
static int take_values(struct cursor *c, struct flag *f)
{
    const struct opt *row = opt_row(c->o->table, f->row);
    bool list = row->type == OPT_LIST;
    while (c->i < c->argc && !is_option(c->argv[c->i]) && (list || !f->ntext) &&
           !(row->numbers && f->ntext && !is_numeric(c->argv[c->i])))
        opt_add_text(f, c->argv[c->i++]);
    if (f->ntext && row->single && c->i < c->argc && is_numeric(c->argv[c->i]))
        return opt_refuse_second(row, f->text[0], c->argv[c->i], c->e);
    if (f->ntext > 1)
        c->o->swallowed =
            arena_printf(&c->o->arena, "--%.*s took '%s' as a value: write it before --%.*s",
                         (int)f->n, f->name, f->text[f->ntext - 1], (int)f->n, f->name);
    if (f->ntext)
        return 0;
    err_set(c->e, ERR_USAGE, "--%.*s needs %s", (int)f->n, f->name,
            list ? "at least one value" : "a value");
    if (c->i < c->argc && strcmp(c->argv[c->i], "--") != 0)
        return err_hint(c->e, "if '%s' is the value, write --%.*s=%s", c->argv[c->i], (int)f->n,
                        f->name, c->argv[c->i]);
    return err_hint(c->e, "write --%.*s=%s", (int)f->n, f->name, row->meta ? row->meta : "VALUE");
}

/* An option of another program, with its values. */
static int take_foreign(struct cursor *c, const struct opt_foreign *f, const char *name)
{
    size_t n = strcspn(name, "="), most = f->takes == FOREIGN_SWITCH || name[n] == '=' ? 0
                                          : f->takes == FOREIGN_VALUE                  ? 1
                                                                                       : SIZE_MAX;
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    for (size_t k = 0; k < most && c->i < c->argc && !is_option(c->argv[c->i]); k++)
        value = c->argv[c->i++];
    struct opt_seen s = opt_judge_foreign(f, name, n, value);
    opt_note_seen(c->o, c->argc, &s);
    return s.rejected && !c->dry_run ? opt_refuse_foreign(c->o, f, opt_place(c->o), c->e) : 0;
}

static int take_long(struct cursor *c, const char *name)
{
    size_t n = strcspn(name, "=");
    bool has_value = name[n] == '=', ours;
    int row = opt_find(c->o->table, c->o->verb, name, n);
    ours = row != NO_ROW && opt_for_verb(opt_row(c->o->table, row), c->o->verb);
    const struct opt_foreign *other = ours ? NULL : opt_find_foreign(c->o, name, n);
    if (other)
        return take_foreign(c, other, name);
    opt_note_seen(c->o, c->argc, &(struct opt_seen){.name = {name, n}, .row = row});
    if (row == NO_ROW)
        return take_denial(c, name, n, has_value);
    struct flag *f = add_flag(c, name, n, row);
    if (has_value)
        opt_add_text(f, name + n + 1);
    else if (opt_row(c->o->table, row)->type == OPT_SWITCH)
        opt_add_text(f, "true");
    else
        return take_values(c, f);
    return 0;
}

static int take_short(struct cursor *c, const char *word)
{
    if (!strcmp(word, "-q"))
        return take_long(c, "quiet");
    if (!strcmp(word, "-v"))
        return take_long(c, "verbose");
    err_set(c->e, ERR_USAGE, "unknown option %s of %s", word, opt_place(c->o));
    char near[OPT_NAME_SIZE];
    size_t n = strcspn(word + 1, "=");
    if (opt_nearest(c->o->table, c->o->verb, word + 1, n, near))
        return err_hint(c->e, "did you mean --%s?", near);
    return err_hint(c->e, "the short options are -h, -q, -v and -V; %s --help lists all",
                    opt_place(c->o));
}

static int take_word(struct cursor *c)
{
    char *word = c->argv[c->i++];
    struct opts *o = c->o;
    if (!c->ended && !strcmp(word, "--")) {
        c->ended = true;
        return 0;
    }
    bool value = c->new_unknown && (o->verb != NO_VERB || find_verb(o->table, word) == NO_VERB);
    if (!c->ended && !is_option(word) && value)
        return 0; /* a value of an unknown option */
    c->new_unknown = false;
    if (!c->ended && is_option(word))
        return word[1] == '-' ? take_long(c, word + 2) : take_short(c, word);
    if (o->verb == NO_VERB && has_verbs(o->table)) {
        o->verb = find_verb(o->table, word);
        return o->verb == NO_VERB ? refuse_verb(o, word, c->e) : 0;
    }
    o->file[o->nfile++] = word;
    return 0;
}

/* -h, --help, --version and --man win over any error in the line. */
static bool wants_answer(struct opts *o, int argc, char **argv)
{
    struct opt_common *k = common(o);
    int verb = NO_VERB;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        k->help_short |= !strcmp(argv[i], "-h");
        k->help_long |= !strcmp(argv[i], "--help");
        k->version |= !strcmp(argv[i], "--version") || !strcmp(argv[i], "-V");
        k->man |= !strcmp(argv[i], "--man");
        if (verb == NO_VERB && !is_option(argv[i]))
            verb = find_verb(o->table, argv[i]);
    }
    /* `tok`, `tok help`, `tok help encode` and `tok version`, as git and cargo have them */
    const char *word = argc > 1 ? argv[1] : NULL;
    if (has_verbs(o->table) && (!word || find_verb(o->table, word) == NO_VERB)) {
        k->help_short |= !word;
        k->help_long |= word && !strcmp(word, "help");
        k->version |= word && !strcmp(word, "version");
    }
    bool answer = k->help_short || k->help_long || k->version || k->man;
    if (answer)
        o->verb = verb;
    return answer;
}

static bool wants_dry_run(const struct opt_table *t, int argc, char **argv)
{
    bool wants = false, has = opt_find(t, NO_VERB, "dry-run", strlen("dry-run")) != NO_ROW;
    for (int i = 1; has && i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t n = strcspn(argv[i], "=");
        if (n > 2 && argv[i][0] == '-' && opt_same_name(argv[i] + 2, n - 2, "dry-run"))
            wants = strcmp(argv[i] + n, "=false") != 0;
        else if (n > 2 && argv[i][0] == '-' && opt_same_name(argv[i] + 2, n - 2, "no-dry-run"))
            wants = false;
    }
    return wants;
}

/* ---- sources ---- */

static void apply_defaults(struct opts *o)
{
    struct err e;
    const struct opt *r;
    /* The verb's own rows last: other verbs may keep their values in the same place. */
    for (int mine = 0; mine <= 1; mine++)
        for (int i = 0; (r = opt_row(o->table, i)); i++) {
            bool own = opt_for_verb(r, o->verb);
            if (own != mine || !r->def)
                continue;
            int rc = opt_store(o, i, r->name, &(struct opt_texts){&r->def, 1, false}, &e);
            BUG_ON(rc, "default of --%s: %s", r->name, e.msg);
        }
}

/* The last flag of that name, or NULL. */
static const char *flag_text(const struct cursor *c, const char *name)
{
    for (size_t i = c->nflag; i-- > 0;)
        if (!strcmp(opt_row(c->o->table, c->flag[i].row)->name, name))
            return c->flag[i].text[0];
    return NULL;
}

static const char *verbs_of(struct opts *o, const struct opt *row)
{
    struct buf b = {0};
    for (int i = 0; o->table->verb[i].name; i++)
        if (opt_for_verb(row, i))
            buf_addf(&b, "%s%s %s", b.len ? ", " : "", o->table->program, o->table->verb[i].name);
    const char *text = arena_strndup(&o->arena, b.data, b.len);
    buf_finish(&b);
    return text;
}

/* Options before the verb were looked up without it. */
static int settle_row(struct opts *o, struct flag *f, struct err *e)
{
    enum opt_type type = opt_row(o->table, f->row)->type;
    bool denied = opt_find(o->table, o->verb, f->name, f->n) == NO_ROW;
    size_t skip = denied ? 3 : 0;
    f->row = opt_find(o->table, o->verb, f->name + skip, f->n - skip);
    const struct opt *row = opt_row(o->table, f->row);
    if (opt_for_verb(row, o->verb) && row->type == type)
        return 0;
    if (opt_for_verb(row, o->verb))
        return err_set(e, ERR_USAGE, "--%.*s precedes the verb: write %s first", (int)f->n, f->name,
                       opt_place(o));
    struct buf meant = {0};
    err_set(e, ERR_USAGE, "--%.*s is not an option of %s", (int)f->n, f->name, opt_place(o));
    bool ours = opt_synonym_of(o->table, o->verb, f->name, f->n, &meant);
    if (ours)
        err_hint(e, "did you mean %s? --%.*s belongs to %s", buf_str(&meant), (int)f->n, f->name,
                 verbs_of(o, row));
    else
        err_hint(e, "it belongs to %s", verbs_of(o, row));
    buf_finish(&meant);
    return ERR_USAGE;
}

/* The flag before this one with the same option, or NULL. */
static struct flag *earlier(const struct cursor *c, size_t i)
{
    int row = c->flag[i].row;
    while (i-- > 0)
        if (c->flag[i].row == row)
            return &c->flag[i];
    return NULL;
}

/* A list that is given again adds up. */
static void opt_join(struct opts *o, const struct flag *before, struct flag *f)
{
    size_t n = before->ntext + f->ntext;
    const char **text = arena_take(&o->arena, n, sizeof(char *));
    memcpy(text, before->text, before->ntext * sizeof(char *));
    memcpy(text + before->ntext, f->text, f->ntext * sizeof(char *));
    f->text = text;
    f->ntext = n;
}

/* Of several values for a single option the last one wins. */
static int apply_flag(struct opts *o, struct flag *f, const struct flag *before, struct err *e)
{
    static const struct opt_origin_row flag = {FROM_FLAG, NULL};
    struct buf was = {0}, is = {0};
    const char *label = arena_printf(&o->arena, "--%.*s", (int)f->n, f->name);
    bool list = opt_row(o->table, f->row)->type == OPT_LIST;
    if (before && list) {
        opt_tell_joined(opt_row(o->table, f->row), before->text, before->ntext, f->text, f->ntext);
        opt_join(o, before, f);
    }
    if (before && !list)
        opt_value_text(o, f->row, &was);
    const struct opt_texts value = {f->text, f->ntext, false};
    int rc = opt_apply(o, f->row, &flag, label, &value, e);
    if (!rc && before && !list) {
        opt_value_text(o, f->row, &is);
        if (strcmp(buf_str(&was), buf_str(&is)) != 0)
            log_warn("--%s was given as %s and as %s: the last one counts",
                     opt_row(o->table, f->row)->name, before->text[0], f->text[0]);
    }
    buf_finish(&was);
    buf_finish(&is);
    return rc;
}

static int apply_flags(struct cursor *c)
{
    int rc = 0;
    for (size_t i = 0; i < c->nflag && !rc; i++) {
        rc = settle_row(c->o, &c->flag[i], c->e);
        if (!rc)
            rc = apply_flag(c->o, &c->flag[i], earlier(c, i), c->e);
    }
    return rc;
}

static int apply_sources(struct cursor *c)
{
    struct opts *o = c->o;
    const char *config = flag_text(c, "config"), *preset = flag_text(c, "preset");
    struct toml_file *t = NULL;
    int rc = config ? toml_open(config, &t, c->e) : 0;
    if (!rc && !preset && t && o->table->preset)
        preset = opt_file_preset(t);
    if (!rc && preset)
        rc = opt_apply_preset(o, preset, c->e);
    if (!rc && t)
        rc = opt_apply_file(o, config, t, c->e);
    toml_close(t);
    if (!rc)
        rc = apply_flags(c);
    return rc ? rc : opt_apply_dialect(o, c->e);
}

static int check_rest(struct cursor *c)
{
    struct opts *o = c->o;
    struct opt_common *k = common(o);
    const char *shell = k->completion;
    if (shell && strcmp(shell, "bash") && strcmp(shell, "zsh") && strcmp(shell, "fish"))
        return err_set(c->e, ERR_USAGE, "--completion: expected bash, zsh or fish, got '%s'",
                       shell);
    if (shell || k->print_config)
        return 0;
    if (o->verb == NO_VERB && has_verbs(o->table)) {
        err_set(c->e, ERR_USAGE, "%s needs a verb; it has %s", o->table->program, verb_names(o));
        return err_hint(c->e, "%s -h shows examples", o->table->program);
    }
    if (!o->nfile || o->verb == NO_VERB || o->table->verb[o->verb].takes_files)
        return 0;
    err_set(c->e, ERR_USAGE, "%s takes no files, but '%s' was given", opt_place(o), o->file[0]);
    bool word = !strcmp(o->file[0], "true") || !strcmp(o->file[0], "false");
    return word ? err_hint(c->e, "write --SWITCH=%s", o->file[0]) : ERR_USAGE;
}

static int opt_read_all(struct cursor *c)
{
    int rc = 0;
    while (!rc && c->i < c->argc)
        rc = take_word(c);
    if (c->nunknown && !c->dry_run)
        return opt_refuse_names(c->o->table, c->o->verb, opt_place(c->o), c->unknown, c->nunknown,
                                c->e);
    if (rc)
        return rc;
    apply_defaults(c->o);
    rc = apply_sources(c);
    return rc ? rc : check_rest(c);
}

/* ---- the interface ---- */

int opts_init(struct opts *o, const struct opt_table *t, void *values, int argc, char **argv,
              struct err *e)
{
    int rows = 0;
    *o = (struct opts){.table = t, .values = values, .verb = NO_VERB};
    memset(values, 0, sizeof(struct opt_common));
    opt_check_table(t);
    while (opt_row(t, rows))
        rows++;
    o->origin = arena_take(&o->arena, (size_t)rows, sizeof(struct opt_origin_row));
    o->file = arena_take(&o->arena, (size_t)argc + 1, sizeof(char *));
    if (wants_answer(o, argc, argv)) {
        apply_defaults(o);
        return 0;
    }
    struct cursor c = {.o = o,
                       .argc = argc,
                       .i = 1,
                       .argv = argv,
                       .dry_run = wants_dry_run(t, argc, argv),
                       .e = e};
    int rc = opt_read_all(&c);
    free(c.flag);
    free(c.unknown);
    if (rc)
        opts_finish(o);
    return rc;
}

int opts_hint_swallowed(const struct opts *o, struct err *e)
{
    return o->swallowed ? err_hint(e, "%s", o->swallowed) : e->code;
}

/* Shows the page through man(1); false if it is not installed. */
static bool show_man(struct opts *o)
{
    void (*old)(int) = signal(SIGPIPE, SIG_IGN); /* the pager may quit early */
    FILE *man = system("command -v man >/dev/null 2>&1") ? NULL : popen("man -l -", "w");
    if (man)
        opt_print_man(o, man);
    bool shown = man && pclose(man) == 0;
    signal(SIGPIPE, old);
    return shown;
}

bool opts_answer(struct opts *o, FILE *out)
{
    const struct opt_common *k = common(o);
    bool terminal = out == stdout && isatty(STDOUT_FILENO);
    if (k->help_long)
        opt_print_long(o, out);
    else if (k->help_short)
        opt_print_short(o, out);
    else if (k->version)
        opt_print_version(o, out);
    else if (k->man && !(terminal && show_man(o)))
        opt_print_man(o, out);
    else if (k->man)
        return true;
    else if (k->completion)
        opt_print_completion(o, k->completion, out);
    else if (k->print_config)
        opts_print_config(o, out);
    else
        return false;
    return true;
}

void opts_finish(struct opts *o)
{
    arena_finish(&o->arena);
    o->file = NULL;
    o->nfile = 0;
    o->origin = NULL;
}
