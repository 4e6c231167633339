/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cli/opt_row.h"

/*
 * -h: an example, then the options one needs, each with its short sentence, values and default.
 * --help: all of them, by section. Both are as wide as the terminal; nothing is cut.
 */
enum { NARROWEST = 40, WIDEST = 200 };

/* Columns of the page and of the labels on its left. */
struct page {
    FILE *out;
    size_t width, label;
};

/* COLUMNS, else the terminal's width, else 80. */
static struct page open_page(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size = {0};
    long n = columns ? strtol(columns, NULL, 10) : 0;
    int fd = fileno(out);
    if (n <= 0 && fd >= 0 && isatty(fd) && !ioctl(fd, TIOCGWINSZ, &size))
        n = size.ws_col;
    n = n <= 0 ? 80 : n < NARROWEST ? NARROWEST : n > WIDEST ? WIDEST : n;
    return (struct page){out, (size_t)n, n < 70 ? (size_t)n / 3 : 30};
}

/* ---- text in columns ---- */

static size_t width(const char *s, size_t n)
{
    size_t w = 0;
    for (size_t i = 0; i < n; i++)
        w += ((unsigned char)s[i] & 0xc0) != 0x80;
    return w;
}

/* A non-breaking space. */
#define JOIN "\x1f"

/* Words from column `at` on, further lines from column `indent`; ends the line. */
static void wrap(const struct page *p, const char *s, size_t at, size_t indent)
{
    for (bool first = true;; first = false) {
        s += strspn(s, " ");
        size_t n = strcspn(s, " "), w = width(s, n);
        if (!n)
            break;
        if (!first && at + 1 + w > p->width) {
            fprintf(p->out, "\n%*s", (int)indent, "");
            at = indent;
            first = true;
        }
        if (!first)
            fputc(' ', p->out);
        for (size_t i = 0; i < n; i++)
            fputc(s[i] == JOIN[0] ? ' ' : s[i], p->out);
        at += w + !first;
        s += n;
    }
    fputc('\n', p->out);
}

/* Where to break a shell command so that at most `room` columns remain: a blank outside quotes. */
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

/* Examples; long lines are continued with a backslash. */
static void print_examples(const struct page *p, const char *s)
{
    for (size_t indent = 2; s && *s;) {
        size_t n = strcspn(s, "\n"), room = p->width - indent, k = n;
        if (width(s, n) > room)
            k = shell_break(s, n, room - 2);
        fprintf(p->out, "%*s%.*s%s\n", (int)indent, "", (int)k, s, k < n ? " \\" : "");
        indent = k < n ? 6 : 2;
        s += k < n ? k + strspn(s + k, " ") : n + (s[n] == '\n');
    }
}

/* ---- one option ---- */

/* Long lists of choices are explained in the text instead. */
static bool choices_fit(const struct page *p, const struct opt *o)
{
    return o->type == OPT_CHOICE && strlen(o->name) + strlen(o->meta) + 5 < p->label;
}

static void add_label(const struct page *p, struct buf *b, const struct opt *o)
{
    bool on = o->type == OPT_SWITCH && o->def && !strcmp(o->def, "true");
    bool many = o->type == OPT_LIST && (!o->meta || !strstr(o->meta, "..."));
    buf_addf(b, "  --%s%s", on ? "[no-]" : "", o->name);
    if (o->type == OPT_CHOICE)
        buf_addf(b, " %s", choices_fit(p, o) ? o->meta : "KIND");
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

/* -h: values and [default]. */
static void add_short_details(const struct page *p, struct buf *b, const struct opt *o)
{
    if (o->type == OPT_CHOICE && !choices_fit(p, o))
        add_choices(b, o);
    if (o->def && o->def[0] && o->type != OPT_SWITCH)
        buf_addf(b, " [%s]", o->def);
    else if (o->unset)
        buf_addf(b, " [%s]", o->unset);
}

/* --help: values, bounds, default and other names. */
static void add_long_details(const struct page *p, struct buf *b, const struct opt *o)
{
    char bounds[80] = "";
    if (o->type == OPT_INT || o->type == OPT_REAL)
        opt_bounds_text(o, bounds, sizeof(bounds));
    if (o->type == OPT_CHOICE && !choices_fit(p, o))
        add_choices(b, o);
    if (bounds[0])
        buf_addf(b, ", %s", bounds);
    if (o->def && o->def[0] && o->type != OPT_SWITCH)
        buf_addf(b, " (default" JOIN "%s)", o->def);
    else if (o->unset)
        buf_addf(b, " (default: %s)", o->unset);
    if (o->alias)
        buf_adds(b, " (also" JOIN "--");
    for (const char *s = o->alias; s && *s; s++)
        if (*s == ',')
            buf_adds(b, ", --");
        else
            buf_addc(b, *s);
    buf_adds(b, o->alias ? ")" : "");
}

static void print_row(const struct page *p, const struct opt *o, bool all)
{
    struct buf b = {0};
    add_label(p, &b, o);
    size_t n = width(b.data, b.len);
    fputs(buf_str(&b), p->out);
    if (n + 2 > p->label) {
        fputc('\n', p->out);
        n = 0;
    }
    fprintf(p->out, "%*s", (int)(p->label - n), "");
    buf_reset(&b);
    buf_adds(&b, all || !o->brief ? o->help : o->brief);
    (all ? add_long_details : add_short_details)(p, &b, o);
    wrap(p, buf_str(&b), p->label, p->label);
    buf_finish(&b);
}

/* ---- -h ---- */

static const struct opt_verb *verb_of(const struct opts *o)
{
    return o->verb == NO_VERB ? NULL : &o->table->verb[o->verb];
}

/* Without a verb: the options that all verbs take. */
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

static void print_usage(const struct opts *o, const struct page *p)
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
    wrap(p, text, 0, 4);
}

static void print_verbs(const struct opts *o, const struct page *p)
{
    const struct opt_verb *v = o->table->verb;
    for (; v && v->name; v++) {
        fprintf(p->out, "  %-*s", (int)p->label - 2, v->name);
        wrap(p, v->help, p->label, p->label);
    }
}

static const char *examples(const struct opts *o)
{
    const struct opt_verb *v = verb_of(o);
    return v ? v->examples : o->table->examples;
}

/* Where to find more help. */
static void print_pointer(const struct opts *o, const struct page *p)
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
                 "Defaults are in [brackets]; %s%s%s --help explains all %d options.", program,
                 v ? " " : "", v ? v->name : "", count_rows(o));
    wrap(p, text, 0, 4);
}

void opt_print_short(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = verb_of(o);
    const struct page p = open_page(out);
    fputs("Example:\n", out);
    print_examples(&p, examples(o));
    fputc('\n', out);
    print_usage(o, &p);
    fputc('\n', out);
    if (!v)
        print_verbs(o, &p);
    /* --help, the first row, comes last, as the pointer to the rest. */
    for (int i = 1; opt_row(o->table, i); i++)
        if ((v || !o->table->verb) && opt_row(o->table, i)->basic && listed(o, i))
            print_row(&p, opt_row(o->table, i), false);
    fputc('\n', out);
    print_pointer(o, &p);
}

/* ---- --help ---- */

/* "input options:", so that no section has the name of another heading. */
static void print_section(const struct opts *o, const char *section, const struct page *p)
{
    if (!any_listed(o, section))
        return;
    fprintf(p->out, "\n%s options:\n", section[0] ? section : "common");
    for (int i = 0; opt_row(o->table, i); i++)
        if (listed(o, i) && !strcmp(opt_section(opt_row(o->table, i)), section))
            print_row(p, opt_row(o->table, i), true);
}

/* The common options, which have no section, come last. */
static void print_sections(const struct opts *o, const struct page *p)
{
    const char *section = NULL;
    while ((section = opt_next_section(o->table, o->verb, section)))
        if (section[0])
            print_section(o, section, p);
    print_section(o, "", p);
}

static void print_presets(const struct opts *o, const struct page *page)
{
    const struct opt_preset *p = o->table->preset;
    int row = opt_find(o->table, NO_VERB, "preset", 6);
    if (!p || (row != NO_ROW && opt_idle(o->table, row, o->verb)))
        return;
    fputs("\npresets:\n", page->out);
    for (; p->name; p++) {
        fprintf(page->out, "  %-*s", (int)page->label - 2, p->name);
        wrap(page, p->help, page->label, page->label);
    }
}

void opt_print_long(const struct opts *o, FILE *out)
{
    const struct page p = open_page(out);
    print_usage(o, &p);
    fputs("\nexamples:\n", out);
    print_examples(&p, examples(o));
    if (o->verb == NO_VERB && o->table->verb) {
        fputs("\nverbs:\n", out);
        print_verbs(o, &p);
    }
    print_sections(o, &p);
    print_presets(o, &p);
    if (o->verb == NO_VERB && o->table->verb)
        fprintf(out, "\n%s VERB --help explains the options of a verb.\n", o->table->program);
    fputc('\n', out);
    wrap(&p,
         "Names may be written with '-' or '_', values as --name VALUE or --name=VALUE; a switch "
         "also as --name=false or --no-name. A list takes all words up to the next option, split "
         "at commas, and adds up when it is given again. Every name is a key of the file that "
         "--config reads.",
         0, 0);
}

void opt_print_version(const struct opts *o, FILE *out)
{
    fprintf(out, "%s (weft) %s\nfeatures: cpu\n", o->table->program, WEFT_VERSION);
}
