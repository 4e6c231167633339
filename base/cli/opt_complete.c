/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "base/cli/opt_row.h"

/* Completion scripts: verbs, then the options of the verb, then choices or files. */

/* The program's name as the name of a shell function. */
static void put_function(FILE *out, const char *s)
{
    fputc('_', out);
    for (; *s; s++)
        fputc(isalnum((unsigned char)*s) ? *s : '_', out);
}

static bool offered(const struct opt_table *t, int row, int verb)
{
    return !opt_absent(t, row) && opt_for_verb(opt_row(t, row), verb) && !opt_idle(t, row, verb);
}

static int count_verbs(const struct opt_table *t)
{
    int n = 0;
    while (t->verb && t->verb[n].name)
        n++;
    return n;
}

/* "a|b|c" with another separator. */
static void put_choices(FILE *out, const char *choices, char sep)
{
    for (; *choices; choices++)
        fputc(*choices == '|' ? sep : *choices, out);
}

/* The allowed values of an option, separated by '|'; NULL if it is not a choice. */
static const char *choices(const struct opt *o)
{
    return o->type == OPT_CHOICE                ? o->meta
           : strcmp(o->name, "completion") == 0 ? "bash|zsh|fish"
                                                : NULL;
}

static bool is_path(const struct opt *o)
{
    return o->meta &&
           (strstr(o->meta, "PATH") || strstr(o->meta, "FILE") || strstr(o->meta, "DIR") ||
            strstr(o->meta, "GLOB") || strstr(o->meta, "PREFIX"));
}

static void put_presets(FILE *out, const struct opt_table *t, const char *sep)
{
    for (const struct opt_preset *p = t->preset; p && p->name; p++)
        fprintf(out, "%s%s", p == t->preset ? "" : sep, p->name);
}

/* ---- bash ---- */

/* Names are offered with '-', and match what was typed with '_', too. */
static void put_folded(FILE *out, const char *s)
{
    for (; *s; s++)
        fputc(*s == '_' ? '-' : *s, out);
}

static void put_bash_values(FILE *out, const struct opt_table *t, int verb)
{
    const struct opt *o;
    const char *v = verb == NO_VERB ? "" : t->verb[verb].name;
    for (int i = 0; (o = opt_row(t, i)); i++) {
        if (!offered(t, i, verb) || o->type == OPT_SWITCH)
            continue;
        bool preset = !strcmp(o->name, "preset");
        if (!choices(o) && !preset && is_path(o))
            continue; /* bash's own completion of files */
        fprintf(out, "    %s:--", v);
        put_folded(out, o->name);
        fputs(") words=\"", out);
        if (preset)
            put_presets(out, t, " ");
        else if (choices(o))
            put_choices(out, choices(o), ' ');
        fputs("\"; value=1 ;;\n", out);
    }
}

static void put_bash_names(FILE *out, const struct opt_table *t, int verb)
{
    fprintf(out, "    %s) words=\"", verb == NO_VERB ? "''" : t->verb[verb].name);
    for (int i = 0; opt_row(t, i); i++)
        if (offered(t, i, verb)) {
            fputs("--", out);
            put_folded(out, opt_row(t, i)->name);
            fputc(' ', out);
        }
    fputs("-h -q -v\" ;;\n", out);
}

static void print_bash(FILE *out, const struct opt_table *t)
{
    int n = count_verbs(t);
    fprintf(out, "# bash completion of %s; %s --completion bash printed it\n", t->program,
            t->program);
    put_function(out, t->program);
    fputs("()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local verb= word words= value=\n"
          "    if [[ $cur == '=' ]]; then cur=\n"
          "    elif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
          "    prev=--${prev#--}\n    prev=${prev//_/-}\n"
          "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
          "        case $word in\n",
          out);
    for (int i = 0; i < n; i++)
        fprintf(out, "        %s) verb=$word; break ;;\n", t->verb[i].name);
    fputs("        esac\n    done\n    case $verb:$prev in\n", out);
    for (int i = n ? 0 : NO_VERB; i < n; i++)
        put_bash_values(out, t, i);
    fputs("    esac\n"
          "    if [[ -n $value ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n        return\n    fi\n"
          "    case $verb in\n",
          out);
    for (int i = NO_VERB; i < n; i++)
        put_bash_names(out, t, i);
    fputs("    esac\n    if [[ -z $verb && $cur != -* ]]; then words=\"", out);
    for (int i = 0; i < n; i++)
        fprintf(out, "%s%s", i ? " " : "", t->verb[i].name);
    fputs("\"\n    elif [[ $cur != -* ]]; then return\n    fi\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"${cur//_/-}\"))\n}\n",
          out);
    fputs("complete -o default -o bashdefault -F ", out);
    put_function(out, t->program);
    fprintf(out, " %s\n", t->program);
}

/* ---- zsh ---- */

/* Inside '...' and an _arguments specification. */
static void put_zsh(FILE *out, const char *s)
{
    for (; *s; s++)
        if (*s == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *s))
            fprintf(out, "\\%c", *s);
        else
            fputc(*s, out);
}

static void put_zsh_rows(FILE *out, const struct opt_table *t, int verb)
{
    const struct opt *o;
    for (int i = 0; (o = opt_row(t, i)); i++) {
        if (!offered(t, i, verb))
            continue;
        fprintf(out, "            '--%s%s[", o->name, o->type == OPT_SWITCH ? "" : "=");
        put_zsh(out, o->brief ? o->brief : o->help);
        fputs("]", out);
        if (o->type != OPT_SWITCH) {
            fputs(":", out);
            put_zsh(out, o->type == OPT_CHOICE || !o->meta ? "value" : o->meta);
            fputs(":", out);
            if (choices(o)) {
                fputs("(", out);
                put_choices(out, choices(o), ' ');
                fputs(")", out);
            } else if (!strcmp(o->name, "preset")) {
                fputs("(", out);
                put_presets(out, t, " ");
                fputs(")", out);
            } else if (is_path(o)) {
                fputs("_files", out);
            }
        }
        fputs("' \\\n", out);
    }
    fputs("            '*:file:_files'\n", out);
}

static void print_zsh(FILE *out, const struct opt_table *t)
{
    int n = count_verbs(t);
    fprintf(out, "#compdef %s\n", t->program);
    put_function(out, t->program);
    fputs("()\n{\n", out);
    if (n) {
        fputs("    local -a verbs=(\n", out);
        for (int i = 0; i < n; i++) {
            fprintf(out, "        '%s:", t->verb[i].name);
            put_zsh(out, t->verb[i].help);
            fputs("'\n", out);
        }
        fputs("    )\n    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
              "        _describe verb verbs\n        return\n    fi\n",
              out);
    }
    fputs("    case $words[2] in\n", out);
    for (int i = 0; i < n; i++) {
        fprintf(out,
                "    %s)\n        shift words\n        (( CURRENT-- ))\n        _arguments \\\n",
                t->verb[i].name);
        put_zsh_rows(out, t, i);
        fputs("        ;;\n", out);
    }
    fputs("    *)\n        _arguments \\\n", out);
    put_zsh_rows(out, t, NO_VERB);
    fputs("        ;;\n    esac\n}\n", out);
    /* Autoloaded from $fpath the file is the function itself; when sourced it registers one. */
    fputs("if [[ $funcstack[1] == ", out);
    put_function(out, t->program);
    fputs(" ]]; then ", out);
    put_function(out, t->program);
    fputs(" \"$@\"\nelse compdef ", out);
    put_function(out, t->program);
    fprintf(out, " %s\nfi\n", t->program);
}

/* ---- fish ---- */

static void put_fish(FILE *out, const char *s)
{
    for (; *s; s++)
        fprintf(out, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
}

static void put_fish_verbs(FILE *out, const struct opt_table *t, const struct opt *o)
{
    if (!o->verbs)
        return;
    fputs(" -n '__fish_seen_subcommand_from", out);
    for (int i = 0; i < count_verbs(t); i++)
        if (opt_for_verb(o, i) && !(o->idle >> i & 1))
            fprintf(out, " %s", t->verb[i].name);
    fputs("'", out);
}

static void print_fish(FILE *out, const struct opt_table *t)
{
    const struct opt *o;
    int n = count_verbs(t);
    for (int i = 0; i < n; i++) {
        fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d '", t->program,
                t->verb[i].name);
        put_fish(out, t->verb[i].help);
        fputs("'\n", out);
    }
    for (int i = 0; (o = opt_row(t, i)); i++) {
        if (opt_absent(t, i))
            continue;
        fprintf(out, "complete -c %s", t->program);
        put_fish_verbs(out, t, o);
        fprintf(out, " -l %s", o->name);
        bool preset = !strcmp(o->name, "preset");
        if (choices(o) || preset) {
            fputs(" -x -a '", out);
            if (preset)
                put_presets(out, t, " ");
            else
                put_choices(out, choices(o), ' ');
            fputs("'", out);
        } else if (o->type != OPT_SWITCH) {
            fputs(is_path(o) ? " -r -F" : " -x", out);
        }
        fputs(" -d '", out);
        put_fish(out, o->brief ? o->brief : o->help);
        fputs("'\n", out);
    }
}

void opt_print_completion(const struct opts *o, const char *shell, FILE *out)
{
    if (!strcmp(shell, "bash"))
        print_bash(out, o->table);
    else if (!strcmp(shell, "zsh"))
        print_zsh(out, o->table);
    else
        print_fish(out, o->table);
}
