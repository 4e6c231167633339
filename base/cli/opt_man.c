/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "base/cli/opt_row.h"
#include "base/core/utf8.h"

/* The manual page in roff's man macros. */

/* Writes one character, non-ASCII as a number; returns its bytes. */
static size_t opt_man_put_char(FILE *out, const char *s)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    size_t n = utf8_char(s, s + strlen(s));
    BUG_ON(!n, "an option table with text that is not UTF-8: %s", s);
    unsigned c = (unsigned char)s[0] & mask[n];
    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s[i] & 0x3f);
    fprintf(out, n > 1 ? "\\[u%04X]" : "%c", c);
    return n;
}

/* Writes text, escaped for roff. */
static void opt_man_put(FILE *out, const char *s)
{
    if (*s == '.' || *s == '\'')
        fputs("\\&", out);
    for (; *s; s++)
        switch (*s) {
        case '\\':
            fputs("\\e", out);
            break;
        case '-':
            fputs("\\-", out);
            break;
        case '\n':
            fputs(s[1] == '.' || s[1] == '\'' ? "\n\\&" : "\n", out);
            break;
        default:
            s += opt_man_put_char(out, s) - 1;
        }
}

static void put_line(FILE *out, const char *s)
{
    opt_man_put(out, s);
    fputc('\n', out);
}

static void put_upper(FILE *out, const char *s)
{
    for (; *s; s++)
        fputc(toupper((unsigned char)*s), out);
}

/* `alias`: names joined by commas. */
static void put_aliases(const char *alias, FILE *out)
{
    fputs("Also \\-\\-", out);
    for (const char *s = alias; *s; s++)
        if (*s == ',')
            fputs(", \\-\\-", out);
        else if (*s == '-')
            fputs("\\-", out);
        else
            fputc(*s, out);
    fputs(".\n", out);
}

static void put_verbs(const struct opts *o, const struct opt *row, FILE *out)
{
    if (!row->verbs || !o->table->verb)
        return;
    fputs("For", out);
    for (int i = 0; o->table->verb[i].name; i++)
        if (row->verbs >> i & 1 && !(row->idle >> i & 1))
            fprintf(out, " %s", o->table->verb[i].name);
    fputs(".\n", out);
}

static void put_row(const struct opts *o, const struct opt *row, FILE *out)
{
    char bounds[80] = "";
    bool number = row->type == OPT_INT || row->type == OPT_REAL;
    fputs(".TP\n.B \\-\\-", out);
    opt_man_put(out, row->name);
    if (row->type != OPT_SWITCH) {
        fputs(" \\fI", out);
        opt_man_put(out, row->meta ? row->meta : "VALUE");
        fputs(row->type == OPT_LIST ? "\\fR ...\n" : "\\fR\n", out);
    } else {
        fputs("\n", out);
    }
    opt_man_put(out, row->help);
    fputs(".\n", out);
    if (number)
        opt_bounds_text(row, bounds, sizeof(bounds));
    if (bounds[0])
        fprintf(out, "A number %s.\n", bounds);
    const char *def = row->def && row->def[0] ? row->def : row->unset;
    if (def) {
        fputs("Default: ", out);
        opt_man_put(out, def);
        fputs(".\n", out);
    }
    if (row->alias)
        put_aliases(row->alias, out);
    put_verbs(o, row, out);
}

static void put_options(const struct opts *o, FILE *out)
{
    const char *section = NULL;
    fputs(".SH OPTIONS\n", out);
    put_line(out, "Names may be written with '-' or '_', values as --name VALUE or --name=VALUE. A "
                  "switch takes no value, but --name=false and --no-name turn it off. A list takes "
                  "the words up to the next option, split at commas.");
    while ((section = opt_next_section(o->table, NO_VERB, section))) {
        fputs(".SS ", out);
        put_line(out, section[0] ? section : "common");
        for (int i = 0; opt_row(o->table, i); i++)
            if (!opt_absent(o->table, i) && !strcmp(opt_section(opt_row(o->table, i)), section))
                put_row(o, opt_row(o->table, i), out);
    }
}

static void put_verb_list(const struct opts *o, FILE *out)
{
    const struct opt_verb *v = o->table->verb;
    if (!v)
        return;
    fputs(".SH VERBS\n", out);
    for (; v->name; v++) {
        fputs(".TP\n.B ", out);
        opt_man_put(out, v->name);
        fputs(" \\fR[\\fIOPTION\\fR...]", out);
        fputs(v->args && v->args[0] ? " " : "", out);
        put_line(out, v->args ? v->args : "");
        opt_man_put(out, v->help);
        fputs(".\n", out);
    }
}

static void put_examples(const char *text, FILE *out)
{
    if (!text || !*text)
        return;
    fputs(".nf\n", out);
    opt_man_put(out, text);
    fputs(text[strlen(text) - 1] == '\n' ? ".fi\n.sp\n" : "\n.fi\n.sp\n", out);
}

static void put_presets(const struct opts *o, FILE *out)
{
    const struct opt_preset *p = o->table->preset;
    if (p)
        fputs(".SH PRESETS\n", out);
    for (; p && p->name; p++) {
        fputs(".TP\n.B ", out);
        put_line(out, p->name);
        opt_man_put(out, p->help);
        fputs(".\n", out);
    }
}

static void put_codes(FILE *out)
{
#define MEANING(name, number, meaning) {number, meaning},
    static const struct {
        int number;
        const char *meaning;
    } code[] = {ERR_CODES(MEANING)};
#undef MEANING
    fputs(".SH EXIT STATUS\n", out);
    for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
        fprintf(out, ".TP\n.B %d\n%s.\n", code[i].number, code[i].meaning);
}

void opt_print_man(const struct opts *o, FILE *out)
{
    const struct opt_table *t = o->table;
    fputs(".TH ", out);
    put_upper(out, t->program);
    fprintf(out, " 1 \"\" \"weft %s\" \"weft manual\"\n.ad l\n.SH NAME\n", WEFT_VERSION);
    opt_man_put(out, t->program);
    fputs(" \\- ", out);
    put_line(out, t->help);
    fprintf(out, ".SH SYNOPSIS\n.B %s\n%s[\\fIOPTION\\fR...] [\\fIFILE\\fR...]\n", t->program,
            t->verb ? "\\fIVERB\\fR " : "");
    put_verb_list(o, out);
    put_options(o, out);
    put_presets(o, out);
    fputs(".SH CONFIGURATION\n", out);
    put_line(out,
             "The file that --config names is TOML. Its keys are the names of the options, at the "
             "top or in a table named like a section above in lower case, with '-' for blanks. "
             "Later ones win: default, preset, file, command line. --print-config prints such "
             "a file with the origin of every value.");
    put_codes(out);
    fputs(".SH EXAMPLES\n", out);
    put_examples(t->examples, out);
    for (const struct opt_verb *v = t->verb; v && v->name; v++)
        put_examples(v->examples, out);
}
