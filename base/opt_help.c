/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/opt_row.h"

/*
 * -h: an example, then the options one needs, on a screen of 24 lines by 80 columns. --help: all
 * of them, by section.
 */
enum { LINES = 24, COLUMNS = 80, LABEL = 30 };

/* ---- text in columns ---- */

static size_t width(const char *s, size_t n)
{
    size_t w = 0;
    for (size_t i = 0; i < n; i++)
        w += ((unsigned char)s[i] & 0xc0) != 0x80;
    return w;
}

/* A blank at which no line is broken. */
#define JOIN "\x1f"

/*
 * Words from column `at` on, further lines from column `indent`; ends the line. The number of
 * lines; `out` may be NULL.
 */
static int wrap(FILE *out, const char *s, size_t at, size_t indent)
{
    int lines = 1;
    for (bool first = true;; first = false) {
        s += strspn(s, " ");
        size_t n = strcspn(s, " "), w = width(s, n);
        if (!n)
            break;
        if (!first && at + 1 + w > COLUMNS - 1) {
            if (out)
                fprintf(out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
            lines++;
        }
        if (out && !first)
            fputc(' ', out);
        for (size_t i = 0; out && i < n; i++)
            fputc(s[i] == JOIN[0] ? ' ' : s[i], out);
        at += w + !first;
        s += n;
    }
    if (out)
        fputc('\n', out);
    return lines;
}

/* As much of the line as fits behind column `at`, cut between words. */
static void clip(FILE *out, const char *s, size_t at)
{
    size_t n = strlen(s), room = COLUMNS - 1 - at;
    if (width(s, n) > room) {
        while (n && (width(s, n) > room - 3 || s[n] != ' '))
            n--;
        fprintf(out, "%.*s...\n", (int)n, s);
        return;
    }
    fprintf(out, "%s\n", s);
}

/* Where a shell's line may be broken so that at most `room` columns stay: a blank outside quotes.
 */
static size_t shell_break(const char *s, size_t n, size_t room)
{
    size_t best = n;
    char quote = 0;
    for (size_t i = 0; i < n && width(s, i) <= room; i++) {
        if (quote ? s[i] == quote : s[i] == '\'' || s[i] == '"')
            quote = quote ? 0 : s[i];
        else if (s[i] == ' ' && !quote && i)
            best = i;
    }
    return best;
}

/* Examples, long ones broken as a shell reads them. The number of lines; `out` may be NULL. */
static int print_examples(FILE *out, const char *s)
{
    int lines = 0;
    for (size_t indent = 2; s && *s; lines++) {
        size_t n = strcspn(s, "\n"), room = COLUMNS - 1 - indent, k = n;
        if (width(s, n) > room)
            k = shell_break(s, n, room - 2);
        if (out)
            fprintf(out, "%*s%.*s%s\n", (int)indent, "", (int)k, s, k < n ? " \\" : "");
        indent = k < n ? 6 : 2;
        s += k < n ? k + strspn(s + k, " ") : n + (s[n] == '\n');
    }
    return lines;
}

/* ---- one option ---- */

/* Long sets of choices are told in the text instead. */
static bool choices_fit(const struct opt *o)
{
    return o->type == OPT_CHOICE && strlen(o->name) + strlen(o->meta) + 5 < LABEL;
}

static void add_label(struct buf *b, const struct opt *o)
{
    bool on = o->type == OPT_SWITCH && o->def && !strcmp(o->def, "true");
    bool many = o->type == OPT_LIST && (!o->meta || !strstr(o->meta, "..."));
    buf_addf(b, "  --%s%s", on ? "[no-]" : "", o->name);
    if (o->type == OPT_CHOICE)
        buf_addf(b, " %s", choices_fit(o) ? o->meta : "KIND");
    else if (o->type != OPT_SWITCH)
        buf_addf(b, " %s%s", o->meta ? o->meta : "VALUE", many ? "..." : "");
}

static void add_choices(struct buf *b, const struct opt *o)
{
    buf_adds(b, ": ");
    for (const char *s = o->meta; *s; s++)
        if (*s == '|')
            buf_adds(b, ", ");
        else
            buf_addc(b, *s);
}

static void add_details(struct buf *b, const struct opt *o)
{
    char bounds[80] = "";
    if (o->type == OPT_INT || o->type == OPT_REAL)
        opt_bounds_text(o, bounds, sizeof(bounds));
    if (o->type == OPT_CHOICE && !choices_fit(o))
        add_choices(b, o);
    if (bounds[0])
        buf_addf(b, ", %s", bounds);
    if (o->def && o->def[0] && strcmp(o->def, "false") != 0)
        buf_addf(b, " (default" JOIN "%s)", o->def);
    if (o->alias)
        buf_adds(b, " (also" JOIN "--");
    for (const char *s = o->alias; s && *s; s++)
        if (*s == ',')
            buf_adds(b, ", --");
        else
            buf_addc(b, *s);
    buf_adds(b, o->alias ? ")" : "");
}

static void print_short_row(FILE *out, const struct opt *o)
{
    struct buf b = {0};
    add_label(&b, o);
    size_t n = width(b.data, b.len);
    do
        buf_addc(&b, ' ');
    while (++n < LABEL);
    fputs(buf_str(&b), out);
    buf_reset(&b);
    buf_adds(&b, o->brief ? o->brief : o->help);
    if (o->type == OPT_CHOICE && !choices_fit(o))
        add_choices(&b, o);
    clip(out, buf_str(&b), n);
    buf_finish(&b);
}

static void print_long_row(FILE *out, const struct opt *o)
{
    struct buf b = {0};
    add_label(&b, o);
    size_t n = width(b.data, b.len);
    fputs(buf_str(&b), out);
    if (n + 2 > LABEL) {
        fputc('\n', out);
        n = 0;
    }
    fprintf(out, "%*s", (int)(LABEL - n), "");
    buf_reset(&b);
    buf_adds(&b, o->help);
    add_details(&b, o);
    wrap(out, buf_str(&b), LABEL, LABEL);
    buf_finish(&b);
}

/* ---- -h ---- */

static const struct opt_verb *verb_of(const struct opts *o)
{
    return o->verb == NO_VERB ? NULL : &o->table->verb[o->verb];
}

/* Without a verb, what all verbs take. */
static bool listed(const struct opts *o, int row)
{
    const struct opt *r = opt_row(o->table, row);
    if (opt_absent(o->table, row))
        return false;
    return o->verb == NO_VERB ? !o->table->verb || !r->verbs
                              : opt_for_verb(r, o->verb) && !opt_idle(o->table, row, o->verb);
}

static int count_rows(const struct opts *o)
{
    int n = 0;
    for (int i = 0; opt_row(o->table, i); i++)
        n += listed(o, i);
    return n;
}

static bool any_listed(const struct opts *o, const char *section)
{
    for (int i = 0; opt_row(o->table, i); i++)
        if (listed(o, i) && !strcmp(opt_section(opt_row(o->table, i)), section))
            return true;
    return false;
}

/* The number of its lines. */
static int print_usage(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = verb_of(o);
    const struct opt_table *t = o->table;
    char text[240];
    if (v)
        snprintf(text, sizeof(text), "%s %s [OPTION...]%s%s: %s", t->program, v->name,
                 v->args && v->args[0] ? " " : "", v->args ? v->args : "", v->help);
    else
        snprintf(text, sizeof(text), "%s %s[OPTION...]: %s", t->program,
                 t->verb && t->verb[0].name ? "VERB " : "", t->help);
    return wrap(out, text, 0, 4);
}

static int print_verbs(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = o->table->verb;
    int n = 0;
    for (; v && v[n].name; n++) {
        fprintf(out, "  %-*s", LABEL - 2, v[n].name);
        clip(out, v[n].help, LABEL);
    }
    return n;
}

static const char *examples(const struct opts *o)
{
    const struct opt_verb *v = verb_of(o);
    return v ? v->examples : o->table->examples;
}

/* Where more is told; the number of its lines. */
static int print_pointer(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = verb_of(o);
    const char *program = o->table->program;
    char text[240];
    if (!v && o->table->verb)
        snprintf(text, sizeof(text),
                 "%s VERB -h shows the options of a verb, %s --man is the manual page.", program,
                 program);
    else
        snprintf(text, sizeof(text),
                 "%s%s%s --help explains all %d options, --man is the manual page.", program,
                 v ? " " : "", v ? v->name : "", count_rows(o));
    return wrap(out, text, 0, 4);
}

void opt_print_short(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = verb_of(o);
    fputs("Example:\n", out);
    print_examples(out, examples(o));
    fputc('\n', out);
    int left = LINES - 4 - print_examples(NULL, examples(o)) - print_usage(o, out) -
               print_pointer(o, NULL);
    fputc('\n', out);
    if (!v)
        left -= print_verbs(o, out);
    /* --help, the first row, comes last, as the pointer to the rest. */
    for (int i = 1; opt_row(o->table, i) && left > 0; i++)
        if ((v || !o->table->verb) && opt_row(o->table, i)->basic && listed(o, i)) {
            print_short_row(out, opt_row(o->table, i));
            left--;
        }
    fputc('\n', out);
    print_pointer(o, out);
}

/* ---- --help ---- */

static void print_section(const struct opts *o, const char *section, FILE *out)
{
    if (!any_listed(o, section))
        return;
    fprintf(out, "\n%s:\n", section[0] ? section : "common");
    for (int i = 0; opt_row(o->table, i); i++)
        if (listed(o, i) && !strcmp(opt_section(opt_row(o->table, i)), section))
            print_long_row(out, opt_row(o->table, i));
}

/* The common options, which have no section, come last. */
static void print_sections(const struct opts *o, FILE *out)
{
    const char *section = NULL;
    while ((section = opt_next_section(o->table, o->verb, section)))
        if (section[0])
            print_section(o, section, out);
    print_section(o, "", out);
}

static void print_presets(const struct opts *o, FILE *out)
{
    const struct opt_preset *p = o->table->preset;
    if (p)
        fputs("\npresets:\n", out);
    for (; p && p->name; p++) {
        fprintf(out, "  %-*s", LABEL - 2, p->name);
        wrap(out, p->help, LABEL, LABEL);
    }
}

void opt_print_long(const struct opts *o, FILE *out)
{
    print_usage(o, out);
    fputs("\nexamples:\n", out);
    print_examples(out, examples(o));
    if (o->verb == NO_VERB && o->table->verb) {
        fputs("\nverbs:\n", out);
        print_verbs(o, out);
    }
    print_sections(o, out);
    print_presets(o, out);
    if (o->verb == NO_VERB && o->table->verb)
        fprintf(out, "\n%s VERB --help explains the options of a verb.\n", o->table->program);
    fputc('\n', out);
    wrap(out,
         "Names may be written with '-' or '_', values as --name VALUE or --name=VALUE; a switch "
         "also as --name=false or --no-name. Every name is a key of the file that --config reads.",
         0, 0);
}

void opt_print_version(const struct opts *o, FILE *out)
{
    fprintf(out, "%s (weft) %s\nfeatures: cpu\n", o->table->program, WEFT_VERSION);
}
