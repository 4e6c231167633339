/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/cli/opt.h"
#include "tests/base/opt_table.h"
#include "tests/t.h"

static struct opts o;
static struct values v;
static struct err e;

static const char *write_file(const char *text)
{
    const char *path = t_path("run.toml");
    T_OK(file_replace(path, text, strlen(text), &e), &e);
    return path;
}

static int parse_file(const char *verb, const char *text, const char *more)
{
    char line[1500];
    snprintf(line, sizeof(line), "demo %s --config %s %s", verb, write_file(text), more);
    return parse_line(&o, &v, line, &e);
}

static void refuses(const char *text, const char *words, const char *hint)
{
    e.hint[0] = '\0';
    T_ERR(parse_file("learn", text, ""), &e, ERR_USAGE, words);
    if (!strstr(e.hint, hint))
        t_fail(__FILE__, __LINE__, "%s: no '%s' in the hint '%s'", text, hint, e.hint);
}

static void a_file_sets_values(void)
{
    T_OK(parse_file("learn",
                    "title = \"at the top\"\n[model]\nnum_layers = 12\nvocab-size = \"16k\"\n"
                    "model-family = \"llama\"\n[learning-rate]\nlr = 1e-3\n[data]\nshuffle = true\n"
                    "tie = false\ninput = [\"a,b\", \"c\"]\nuser-defined-symbols = \"x,y\"\n"
                    "eod = 1\n",
                    "--num-layers 3"),
         &e);
    T_STR(v.title, "at the top");
    T_EQ(v.layers, 3);
    T_EQ(v.vocab, 16000);
    T_EQ(v.family, 1);
    T_NEAR(v.rate, 1e-3, 0);
    T_CHECK(v.shuffle && !v.tie);
    T_EQ(v.input.n, 2);
    T_STR(v.input.item[0], "a,b");
    T_EQ(v.symbols.n, 2);
    T_EQ(v.eod, 1); /* any section that exists will do */
    T_EQ(opts_origin(&o, "lr"), FROM_FILE);
    T_EQ(opts_origin(&o, "depth"), FROM_FLAG);
    opts_finish(&o);
}

static void another_verbs_keys_are_let_be(void)
{
    T_OK(parse_file("show", "num-layers = \"this is not judged\"\nvocab_size = 5\n", ""), &e);
    T_EQ(v.layers, 4);
    T_EQ(v.other_vocab, 5);
    opts_finish(&o);
}

static void presets_stand_below_the_file(void)
{
    T_OK(parse_file("learn", "preset = \"tiny\"\nlr = 7\n", ""), &e);
    T_EQ(v.layers, 2);
    T_NEAR(v.rate, 7, 0);
    T_STR(v.common.preset, "tiny");
    opts_finish(&o);
}

static void refusals_name_the_place(void)
{
    refuses("\n[model]\n  num-layrs = 3\n", "run.toml:3:3: unknown key 'num-layrs'", "num-layers?");
    refuses("[modle]\nnum-layers = 3\n", "run.toml:2:1: unknown section [modle]", "[model]?");
    refuses("num-layers = \"many\"\n",
            "run.toml:1:1: num-layers: expected an integer from 1 to 1000, got 'many'", "");
    refuses("num-layers = 2000\n", "run.toml:1:1: num-layers: must be from 1 to 1000, got 2000",
            "");
    refuses("num-layers = 1.5\n", "expected an integer from 1 to 1000, got '1.5'", "");
    refuses("num-layers = [1]\n", "'num-layers' takes one value", "");
    refuses("lr = inf\n", "run.toml:1:1: lr: expected a number, got 'inf'", "");
    refuses("[model]\nlr = 1\n[data]\nlearning_rate = 2\n",
            "run.toml:4:1: 'learning_rate' was already given in line 2 as 'lr'", "");
    refuses("config = \"b.toml\"\n", "'config' has no place in a configuration file", "");
    refuses("help = true\n", "'help' has no place", "");
    refuses("model-family = \"gtp\"\n",
            "run.toml:1:1: model-family: expected gpt, llama or a-much-longer-name, got 'gtp'",
            "gpt");
    refuses("preset = \"tinny\"\n", "unknown preset 'tinny'", "tiny?");
    refuses("lr = \n", "run.toml:1:", "");
    T_ERR(parse_line(&o, &v, "demo learn --config /nowhere/x.toml", &e), &e, ERR_IO,
          "/nowhere/x.toml");
}

/* ---- printing ---- */

static char *print_config(void)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    opts_print_config(&o, f);
    fclose(f);
    return text;
}

static void same_list(const struct opt_list *a, const struct opt_list *b)
{
    T_EQ(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        T_STR(a->item[i], b->item[i]);
}

static void same_values(const struct values *a, const struct values *b)
{
    T_EQ(a->layers, b->layers);
    T_EQ(a->vocab, b->vocab);
    T_EQ(a->eod, b->eod);
    T_EQ(a->limit, b->limit);
    T_CHECK(a->rate == b->rate && a->share == b->share);
    T_EQ(a->shuffle, b->shuffle);
    T_EQ(a->tie, b->tie);
    T_STR(a->save, b->save);
    T_STR(a->title, b->title);
    T_STR(a->common.preset, b->common.preset);
    T_EQ(a->family, b->family);
    T_EQ(a->common.quiet, b->common.quiet);
    same_list(&a->input, &b->input);
    same_list(&a->symbols, &b->symbols);
}

/* Prints what the line gives, reads it back as a file, and prints that. */
static void round_trip(const char *line)
{
    struct opts first;
    struct values before;
    T_OK(parse_line(&o, &before, line, &e), &e);
    first = o;
    char *text = print_config();
    T_OK(parse_file("learn", text, ""), &e);
    same_values(&v, &before);
    free(text);
    opts_finish(&o);
    opts_finish(&first);
}

static void a_printed_configuration_reads_back(void)
{
    round_trip("demo learn");
    round_trip("demo learn --preset tiny --lr 0.1 -q");
    round_trip("demo learn --save= --title \"\\\x01\x7f\xc3\xa9# --input \"a,b\",'c',\"\"\"");
    round_trip("demo learn --save a\tb\nc --lr 1.7976931348623157e308 --min-share 5e-324 --eod -1 "
               "--warm-up-limit 9223372036854775807 --no-tie --shuffle --model-family "
               "a-much-longer-name --user-defined-symbols=");
}

/* Printed without a verb, a file serves every verb. */
static void all_verbs_configuration_reads_back(void)
{
    T_OK(parse_line(&o, &v, "demo --print-config", &e), &e);
    char *text = print_config();
    opts_finish(&o);
    T_OK(parse_file("learn", text, ""), &e);
    T_EQ(v.vocab, 8000);
    opts_finish(&o);
    T_OK(parse_file("show", text, ""), &e);
    T_STR(v.title, "it's .a \"\\title\"");
    opts_finish(&o);
    free(text);
}

static void random_values_read_back(void)
{
    for (uint64_t i = 0; i < 100; i++) {
        char line[512], title[24];
        double lr = (double)t_rand(3, 4 * i) * 1e-13;
        for (size_t k = 0; k < sizeof(title) - 1; k++) {
            char c = (char)(1 + t_rand(4, i * 64 + k) % 127);
            title[k] = c == ' ' ? '_' : c;
        }
        title[sizeof(title) - 1] = '\0';
        snprintf(line, sizeof(line), "demo learn --lr %.17g --num-layers %u --title=%s --input %s",
                 lr, 1 + t_rand(3, 4 * i + 1) % 1000, title, title + (title[0] == '-'));
        if (title[0] != '-')
            round_trip(line);
    }
}

static void every_value_has_its_origin(void)
{
    T_OK(parse_file("learn", "eod = 3\n", "--preset tiny --shuffle"), &e);
    char *text = print_config();
    char want[400];
    static const char *const lines[] = {"num-layers = 2                          # preset tiny\n",
                                        "shuffle = true                          # flag\n",
                                        "tie = true                              # default\n",
                                        "# save is not set                       # default\n",
                                        "preset = \"tiny\"                         # flag\n",
                                        "\n[model]\n",
                                        "\n[learning-rate]\n",
                                        "\n[data]\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(text, lines[i]))
            t_fail(__FILE__, __LINE__, "no '%s' in:\n%s", lines[i], text);
    snprintf(want, sizeof(want), "eod = 3                                 # file %s:1\n",
             t_path("run.toml"));
    T_CHECK(strstr(text, want) != NULL);
    T_CHECK(strstr(text, "config") == NULL || strstr(text, "\nconfig") == NULL);
    free(text);
    opts_finish(&o);
}

T_MAIN(T_CASE(a_file_sets_values), T_CASE(another_verbs_keys_are_let_be),
       T_CASE(presets_stand_below_the_file), T_CASE(refusals_name_the_place),
       T_CASE(a_printed_configuration_reads_back), T_CASE(all_verbs_configuration_reads_back),
       T_CASE(random_values_read_back), T_CASE(every_value_has_its_origin))
